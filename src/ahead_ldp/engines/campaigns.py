"""A campaign in batch: questions out, reports in, the next wave; everything in one directory.

    campaign.json, schema.json, questions/, reports/, tallies/, estimate.json    as ``ahead_ldp.engines.runs`` has them
    frozen/WAVE.json    the files that a wave was counted from, with their rows and digests, and those set aside

A wave is open while its questions are there and its tallies are not. Closing it goes in steps, each whole or not done:
the list of files, the tallies, the next questions (or the estimate). After a crash the same command goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ahead_ldp.device.canonical import Record, fields
from ahead_ldp.device.codes import Schema
from ahead_ldp.engines.counting import Engine, Result, complete
from ahead_ldp.engines.files import Asked, Questions
from ahead_ldp.engines.layout import (
    ESTIMATE,
    REPORTS,
    asked_waves,
    place,
    read_campaign,
    read_questions,
    read_record,
    read_tallies,
    write_campaign,
    write_record,
)
from ahead_ldp.engines.local import LOCAL
from ahead_ldp.engines.manifests import Entry, ReportFile
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.protocol.mechanism import Mechanism, tally_record
from ahead_ldp.protocol.session import ReplayMismatch, Session, replay

_EXPECTED = "a campaign's directory, as `ahead start` makes it"


@dataclass(frozen=True, slots=True, eq=False)
class Closed:
    """A wave that was closed: what was counted, and whether it was the last."""

    wave: int
    result: Result
    last: bool


def start_campaign(mechanism: Mechanism, schema: Schema, directory: str | Path) -> Session:
    """A new directory with the campaign and its first questions."""
    root = Path(directory)
    write_campaign(root, mechanism, schema)
    session = Session(mechanism, schema)
    _write_next(root, session)
    return session


def open_campaign(directory: str | Path) -> Session:
    """The session of a directory, replayed: every stored question must be the one that follows from the tallies."""
    root = Path(directory)
    mechanism, schema, campaign = read_campaign(root, _EXPECTED)
    questions = [read_questions(root, wave) for wave in asked_waves(root)]
    history = []
    for wave, asked in enumerate(questions, start=1):
        if not all(place(root, "tallies", wave, group).exists() for group in asked):
            break
        history.append(read_tallies(root, wave, asked))
    if len(questions) > len(history) + 1:
        raise ReplayMismatch(f"the questions of wave {len(questions)} are there, the tallies of the one before are not")
    return replay(mechanism, schema, questions, history, campaign)


def open_questions(session: Session) -> Questions:
    """The questions of the open wave, by digest."""
    asked = [Asked.of(record) for record in session.question_records().values()]
    return {one.question: one for one in asked}


def all_questions(directory: str | Path) -> Questions:
    """Every question that a directory holds, by digest."""
    root = Path(directory)
    read_campaign(root, _EXPECTED)
    asked = [Asked.of(data) for wave in asked_waves(root) for data in read_questions(root, wave).values()]
    return {one.question: one for one in asked}


def advance(
    directory: str | Path,
    *,
    engine: Engine = LOCAL,
    reports: str | None = None,
    dedup: bool = True,
    quarantine: bool = False,
    allow_empty: bool = False,
) -> Closed:
    """Close the open wave: freeze its list of files, count them, write the tallies and what follows from them.

    Reports that arrive later are not counted: a wave closes once. ``reports`` is where the files are, if not in the
    directory. Damaged files stop it, or are set aside whole and listed by name with ``quarantine``.
    """
    root = Path(directory)
    session = open_campaign(root)
    if not session.is_open:
        raise ValueError(f"expected an open wave in {str(root)!r}, but the campaign has ended: `ahead estimate`")
    wave, questions = session.number, open_questions(session)
    where, stored = reports or str(root / REPORTS), root / "frozen" / f"{wave}.json"
    if stored.exists():  # a crash came between the list and the tallies: the list stands
        files, set_aside = _thaw(where, read_record(stored, _EXPECTED))
        result = _count(engine, files, questions, dedup, quarantine=False)
        result.set_aside.update(set_aside)
    else:
        files = engine.find(where, f"wave={wave}")
        if not files and not allow_empty:
            raise ValueError(
                f"expected report files in {where}/wave={wave}, got none: put the reports of wave {wave} there, "
                "or close the wave without any by --allow-empty"
            )
        result = _count(engine, files, questions, dedup, quarantine)
        if unlisted := [file.name for file in result.files if file.entry is None]:
            raise ValueError(
                f"expected a manifest, to freeze what is counted; {unlisted[0]} is in none: write files by ReportWriter"
            )
        write_record(stored, _frozen_record(session, result))
    told = {asked.group: result.tallies[question] for question, asked in questions.items()}
    for question, asked in questions.items():
        write_record(place(root, "tallies", wave, asked.group), tally_record(question, told[asked.group]))
    session.tell(told)
    _write_next(root, session)
    return Closed(wave, result, not session.is_open)


def read_estimate(directory: str | Path) -> tuple[Estimate, int, bool]:
    """The estimate from the waves closed so far, how many they are, and whether they are all.

    After the last wave it is also written to ``estimate.json``, if it is not there.
    """
    root = Path(directory)
    session = open_campaign(root)
    _write_next(root, session)
    return session.finish(), len(session.history), not session.is_open


def _write_next(root: Path, session: Session) -> None:
    if session.estimate is not None:
        if not (root / ESTIMATE).exists():
            session.estimate.save(root / ESTIMATE)
        return
    for group, record in session.question_records().items():
        if not (path := place(root, "questions", session.number, group)).exists():
            write_record(path, record)


def _count(engine: Engine, files: Sequence[ReportFile], questions: Questions, dedup: bool, quarantine: bool) -> Result:
    if not files:
        return Result(complete(questions, {}), ())
    return engine.count(files, questions, dedup=dedup, quarantine=quarantine, verify=True)


def _frozen_record(session: Session, result: Result) -> Record:
    entries = [file.entry for file in result.files if file.entry and file.name not in result.set_aside]
    aside = [{"name": name, "why": result.set_aside[name]} for name in sorted(result.set_aside)]
    return {
        "type": "frozen_files",
        "version": 1,
        "campaign": session.campaign,
        "wave": session.number,
        "files": [entry.record() for entry in sorted(entries, key=lambda e: e.name)],
        "set_aside": aside,
    }


def _thaw(where: str, record: Record) -> tuple[list[ReportFile], dict[str, str]]:
    found = fields(record, "type version campaign wave files set_aside", "the list of files")
    entries = [Entry.from_record(x) for x in found["files"]]
    aside = {x["name"]: x["why"] for x in found["set_aside"]}
    return [ReportFile(f"{where}/{entry.name}", entry.name, entry) for entry in entries], aside
