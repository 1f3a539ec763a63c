"""A run as files: what was asked and told, written wave by wave, and an estimate that is computed again and checked.

    campaign.json                 schema, method with every choice, groups
    schema.json                   the attributes
    questions/WAVE/GROUP.json     as the devices got them
    tallies/WAVE/GROUP.json       what the reports count up to
    estimate.json                 written last: what the estimate is a function of, and some answers to know it by

A wave is open while its questions are there and its tallies are not. Records are canonical JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from ahead_ldp.device.canonical import Record, canonical_bytes, digest, fields, parse_canonical
from ahead_ldp.device.codes import Schema
from ahead_ldp.engines.layout import CAMPAIGN, ESTIMATE, FINISHED, SCHEMA, place, read_record, write_record
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms import Reading, mechanism_from_record
from ahead_ldp.mechanisms.recorded.recorded import Recorded
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import Mechanism, campaign_record, tally_from_record
from ahead_ldp.protocol.session import Provenance, ReplayMismatch, Session, environment, replay

_FIELDS = "type version campaign schema method waves frozen answers environment"
_RUN = ("schema", "method", "groups")  # what a session is made from; a service's record says more
_TOLERANCE = 1e-9  # between environments; bit for bit in one


def begin_run(directory: str | PathLike[str], mechanism: Mechanism, schema: Schema) -> Path:
    """Begin a directory, which must be new or empty."""
    root = Path(directory)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise ValueError(f"expected a new or empty directory, got {str(root)!r}")
    root.mkdir(parents=True, exist_ok=True)
    write_record(root / SCHEMA, schema.record())
    write_record(root / CAMPAIGN, campaign_record(mechanism, schema))
    return root


def write_tallies(root: Path, after: Provenance) -> None:
    """The tallies of the wave that was closed last."""
    for group, record in after.tally_records().items():
        write_record(place(root, "tallies", len(after.waves), group), record)


def write_next(root: Path, session: Session) -> None:
    """What follows from the tallies, where it is not there yet: the questions of the open wave, or the estimate."""
    if session.estimate is not None and not (root / ESTIMATE).exists():
        session.estimate.save(root / ESTIMATE)
    for group, record in session.question_records().items():
        if not (path := place(root, "questions", session.number, group)).exists():
            write_record(path, record)


def campaign_fields(root: Path, expected: str = FINISHED) -> Record:
    """The record of a directory's campaign. A service's richer record is welcome."""
    stored = read_record(root / CAMPAIGN, expected)
    if stored.get("type") != "campaign" or any(name not in stored for name in _RUN):
        raise ValueError(f"expected a campaign with schema, method and groups in {str(root / CAMPAIGN)!r}")
    if read_record(root / SCHEMA, expected) != stored["schema"]:
        raise ReplayMismatch("campaign.json and schema.json are not of one run")
    return stored


def read_campaign(root: Path, expected: str = FINISHED, reading: Reading = None) -> tuple[Mechanism, Schema, str]:
    """Mechanism, schema and the digest that every question carries."""
    stored = campaign_fields(root, expected)
    schema, campaign = Schema.from_record(stored["schema"]), digest(stored)
    if reading == "stored":
        groups = [(group["id"], group["share"]) for group in stored["groups"]]
        return Recorded.of(stored["method"], schema, groups, read_questions(root), campaign), schema, campaign
    mechanism = mechanism_from_record(stored["method"], reading)
    made = campaign_record(mechanism, schema)
    if any(made[name] != stored[name] for name in (_RUN if reading is None else ("schema", "groups"))):
        raise ReplayMismatch("the groups in campaign.json are not those of its method")
    return mechanism, schema, campaign


def read_questions(root: Path) -> list[dict[str, bytes]]:
    """The canonical bytes of the questions by group, wave by wave, from 1 without a gap."""
    waves = sorted(int(path.name) for path in (root / "questions").glob("*") if path.name.isdecimal())
    if waves != list(range(1, len(waves) + 1)):
        raise ValueError(f"expected waves numbered from 1 in {str(root / 'questions')!r}, got {waves}")
    files = [sorted((root / "questions" / str(wave)).glob("*.json")) for wave in waves]
    return [{path.stem: path.read_bytes().removesuffix(b"\n") for path in paths} for paths in files]


def open_run(root: Path, expected: str = FINISHED, reading: Reading = None) -> Session:
    """The session of a directory, replayed: every stored question must be the one that follows from the tallies."""
    mechanism, schema, campaign = read_campaign(root, expected, reading)
    questions, history = read_questions(root), list[Mapping[str, Tally]]()
    for wave, asked in enumerate(questions, start=1):
        if not all(place(root, "tallies", wave, group).exists() for group in asked):
            break
        history.append(_read_tallies(root, wave, asked))
    if len(questions) > len(history) + 1:
        raise ReplayMismatch(f"the questions of wave {len(questions)} are there, the tallies of the one before are not")
    return replay(mechanism, schema, questions, history, campaign)


def _read_tallies(root: Path, wave: int, questions: Mapping[str, bytes]) -> dict[str, Tally]:
    tallies = {}
    for group, question in questions.items():
        path = place(root, "tallies", wave, group)
        try:
            tallies[group] = tally_from_record(read_record(path), digest(parse_canonical(question)))
        except ValueError as error:
            raise ReplayMismatch(f"{path.relative_to(root)} does not go with its question: {error}") from None
    return tallies


def finished_estimate(root: Path, session: Session, reading: Reading = None) -> Estimate:
    """The estimate of a directory whose run has ended, checked against the one that is stored there.

    Another reading than the stored one has other answers: then the tallies are checked alone.
    """
    if session.estimate is None:
        waves = len(session.history)
        raise ValueError(f"expected a finished run in {str(root)!r}, got {waves} waves of a longer one")
    if reading == "stored":
        return session.estimate
    stored, made = _estimate_fields(read_record(root / ESTIMATE), root / ESTIMATE), session.estimate.record()
    own = {"answers", "environment"} if reading is None else {"answers", "environment", "method", "questions"}
    if any(stored.get(name) != made.get(name) for name in (stored.keys() | made.keys()) - own):
        raise ReplayMismatch("estimate.json is not of the stored tallies")
    return _with_answers(session.estimate, stored) if reading is None else session.estimate


def load(path: str | PathLike[str], *, reading: Reading = None) -> Estimate:
    """The estimate that ``Estimate.save`` wrote: every question is recomputed and compared, then the answers are.

    It is read by the version of the estimate that the file names; ``reading`` asks for another one, or the "newest".
    A file that is not such a record is a ``ValueError``; one that gives other questions, another chain or other
    answers here is a ``ReplayMismatch``, and nothing comes of it.
    """
    return estimate_from_record(_estimate_fields(read_record(Path(path), "a readable file"), path), reading)


def estimate_from_record(record: Record, reading: Reading = None) -> Estimate:
    """The estimate behind its canonical form, recomputed and checked."""
    schema = Schema.from_record(record["schema"])
    session = Session(_saved_mechanism(record, schema, reading), schema, record["campaign"])
    for wave in record["waves"]:
        session.tell(_wave_tallies(session, wave, record["environment"]))
    if session.frozen != record["frozen"]:
        raise ReplayMismatch("the tallies are not those that the saved chain of digests binds")
    return _with_answers(session.finish(), record) if reading is None else session.finish()


def _saved_mechanism(record: Record, schema: Schema, reading: Reading) -> Mechanism:
    """The method that a saved estimate names; where its questions are saved too, they stand for it."""
    if reading == "stored" and "questions" not in record:
        raise ValueError("expected a file with its questions to read it without its method; a run's directory has them")
    if "questions" not in record or reading not in (None, "stored"):
        return mechanism_from_record(record["method"], reading)
    stored = [
        {str(entry["group"]): canonical_bytes(entry["question"]) for entry in wave} for wave in record["questions"]
    ]
    groups = [(group, 1) for wave in stored for group in wave]
    return Recorded.of(record["method"], schema, groups, stored, record["campaign"])


def _estimate_fields(record: object, path: str | PathLike[str]) -> Record:
    named = " questions" if isinstance(record, dict) and "questions" in record else ""
    stored = fields(record, _FIELDS + named, "the estimate")
    lists = [stored["waves"], *([stored["questions"]] if named else [])]
    if (stored["type"], stored["version"]) != ("estimate", 1) or not all(isinstance(x, list) for x in lists):
        raise ValueError(f"expected an estimate of version 1 in {str(path)!r}")
    for entry in (entry for wave in (stored["questions"] if named else []) for entry in _listed(wave)):
        fields(entry, "group question", "a saved question")
    return stored


def _listed(wave: object) -> Sequence[object]:
    if not isinstance(wave, list):
        raise ValueError("expected a list of questions for each wave of the method")
    return wave


def _with_answers(estimate: Estimate, record: Record) -> Estimate:
    """The estimate itself if it gives the saved answers."""
    saved, made = np.array([float(x) for x in record["answers"]]), estimate.fingerprint()
    if saved.shape != made.shape or not np.allclose(made, saved, rtol=0.0, atol=_TOLERANCE):
        raise ReplayMismatch(
            f"the answers are not the saved ones: made by {record['environment']}, here {environment()}"
        )
    return estimate


def _wave_tallies(session: Session, wave: object, made_by: str) -> dict[str, Tally]:
    if not isinstance(wave, list) or not session.is_open:
        raise ValueError("expected a list of tallies for each wave of the method")
    saved = {str(fields(entry, "group tally", "a tally")["group"]): entry["tally"] for entry in wave}
    questions = {group: digest(record) for group, record in session.question_records().items()}
    for group, tally in saved.items():
        asked = tally.get("question") if isinstance(tally, dict) else None
        if group not in questions or asked != questions[group]:
            raise ReplayMismatch(
                f"wave {session.number}: the question of group {group} is not the saved one: "
                f"made by {made_by}, here {environment()}"
            )
    return {group: tally_from_record(tally, questions[group]) for group, tally in saved.items()}
