"""A collection as files: what was asked, what was sent, what was counted, and what came of it.

    schema.json                      the attributes
    campaign.json                    schema, method with every choice, groups
    questions/WAVE/GROUP.json        as the devices got them
    reports/WAVE/GROUP.bin           wire form: one header, then a frame for each report; none for an empty group
    tallies/WAVE/GROUP.json          what the reports count up to
    estimate.json                    written last: a run without it did not end

Records are canonical JSON. No true value is in any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from ahead_ldp.collection import Person, Progress, decode_reports, run_collection
from ahead_ldp.device.canonical import Record, canonical_bytes, digest, fields, parse_canonical
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.frames import HEADER_LENGTH, Header
from ahead_ldp.device.refusals import ReportRejected
from ahead_ldp.estimates import Estimate
from ahead_ldp.mechanisms import mechanism_from_record
from ahead_ldp.oracles import Oracle, Tally
from ahead_ldp.protocol import Mechanism, Tallies, campaign_record, tally_from_record, tally_record
from ahead_ldp.saved import load
from ahead_ldp.sessions import ReplayMismatch, Session, replay


def collect_run(
    mechanism: Mechanism,
    schema: Schema,
    people: Sequence[Person],
    directory: str | PathLike[str],
    progress: Progress | None = None,
) -> Estimate:
    """Collect one real report from every person and keep everything that a server would, in a new directory."""
    root = Path(directory)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise ValueError(f"expected a new or empty directory, got {str(root)!r}")
    root.mkdir(parents=True, exist_ok=True)
    _write(root / "schema.json", schema.record())
    _write(root / "campaign.json", campaign_record(mechanism, schema))

    def keep(wave: int, group: str, data: bytes) -> None:
        """Append a batch to its group's file."""
        path = _place(root, "reports", wave, group)
        known = path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data[HEADER_LENGTH:] if known else data)  # one header for the whole file

    collected = run_collection(mechanism, schema, people, progress, keep)
    _write_waves(root, Session(mechanism, schema), collected.session.history)
    collected.estimate.save(root / "estimate.json")
    return collected.estimate


def read_run(directory: str | PathLike[str], *, recount: bool = False) -> Estimate:
    """The estimate of a stored run, after the run was replayed.

    Every question is computed again from the tallies before it and must equal the stored bytes, and the estimate must
    be the stored one; with ``recount`` the reports must count up to the tallies. Otherwise there is a
    ``ReplayMismatch`` and no estimate. What is no run at all is a ``ValueError``.
    """
    root = Path(directory)
    campaign = fields(_read(root / "campaign.json"), "type version schema method groups", "the campaign")
    mechanism, schema = mechanism_from_record(campaign["method"]), Schema.from_record(campaign["schema"])
    if campaign_record(mechanism, schema) != campaign or _read(root / "schema.json") != campaign["schema"]:
        raise ReplayMismatch("campaign.json, its groups and schema.json are not of one run")
    questions = [_wave(root, wave) for wave in _waves(root)]
    history = [_tallies(root, wave, asked) for wave, asked in enumerate(questions, start=1)]
    session = replay(mechanism, schema, questions, history)
    if session.is_open:
        raise ValueError(f"expected a finished run in {str(root)!r}, got {len(questions)} waves of a longer one")
    if recount:
        _recount(root, Session(mechanism, schema), history)
    stored = root / "estimate.json"
    if _read(stored).get("frozen") != session.frozen:
        raise ReplayMismatch("estimate.json is not of the stored tallies")
    return load(stored)


def _write_waves(root: Path, session: Session, history: Sequence[Tallies]) -> None:
    for told in history:
        for group, question in session.question_records().items():
            _write(_place(root, "questions", session.number, group), question)
            _write(_place(root, "tallies", session.number, group), tally_record(digest(question), told[group]))
        session.tell(told)


def _recount(root: Path, session: Session, history: Sequence[Tallies]) -> None:
    for told in history:
        for group, question in session.question_records().items():
            path = _place(root, "reports", session.number, group)
            found = _count(path, Header(session.campaign, digest(question)), session.wave[group].oracle)
            if found.n != told[group].n or not np.array_equal(found.counts, told[group].counts):
                raise ReplayMismatch(f"the reports in {path.relative_to(root)} do not count up to the stored tally")
        session.tell(told)


def _count(path: Path, header: Header, oracle: Oracle) -> Tally:
    if not path.exists():
        return Tally.empty(oracle.outcomes)
    try:
        return oracle.tally(decode_reports(path.read_bytes(), header, oracle)[1])
    except ReportRejected as error:
        raise ReplayMismatch(f"the reports in {path.name} are refused: {error}") from None


def _waves(root: Path) -> list[int]:
    found = sorted(int(path.name) for path in (root / "questions").glob("*") if path.name.isdecimal())
    if found != list(range(1, len(found) + 1)):
        raise ValueError(f"expected waves numbered from 1 in {str(root / 'questions')!r}, got {found}")
    return found


def _wave(root: Path, wave: int) -> dict[str, bytes]:
    paths = sorted((root / "questions" / str(wave)).glob("*.json"))
    return {path.name.removesuffix(".json"): path.read_bytes().removesuffix(b"\n") for path in paths}


def _tallies(root: Path, wave: int, questions: Mapping[str, bytes]) -> dict[str, Tally]:
    found = {}
    for group, question in questions.items():
        path = _place(root, "tallies", wave, group)
        try:
            found[group] = tally_from_record(_read(path), digest(parse_canonical(question)))
        except ValueError as error:
            raise ReplayMismatch(f"{path.relative_to(root)} does not go with its question: {error}") from None
    return found


def _place(root: Path, kind: str, wave: int, group: str) -> Path:
    if not group or group.startswith(".") or not all(c.isalnum() or c in "._-" for c in group):
        raise ValueError(f"expected a group's name of letters, digits, dots and dashes, got {group!r}")
    return root / kind / str(wave) / f"{group}.{'bin' if kind == 'reports' else 'json'}"


def _write(path: Path, record: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(canonical_bytes(record) + b"\n")


def _read(path: Path) -> Record:
    try:
        return parse_canonical(path.read_bytes().removesuffix(b"\n"))
    except OSError as error:
        raise ValueError(f"expected the files of a finished run, got {str(path)!r}: {error.strerror}") from None
