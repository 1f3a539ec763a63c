"""A campaign in batch: questions out, reports in, the next wave; everything in one directory.

Beside what ``ahead_ldp.engines.archive`` lists there are the reports, as ``ahead_ldp.engines.files`` has them, and

    frozen/WAVE.json    the files that a wave was counted from, with their rows and digests, and those set aside

Closing a wave goes in steps, each whole or not done: the list of files, the tallies, the next questions (or the
estimate). After a crash the same command goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ahead_ldp.device.canonical import Record, fields
from ahead_ldp.device.codes import Schema
from ahead_ldp.engines import archive
from ahead_ldp.engines.addresses import inside, shown
from ahead_ldp.engines.counting import Engine, Result
from ahead_ldp.engines.files import Asked, Questions
from ahead_ldp.engines.layout import REPORTS, read_record, write_record
from ahead_ldp.engines.local import LOCAL
from ahead_ldp.engines.manifests import Entry, ReportFile
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms import Reading
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.protocol.session import Session

_EXPECTED = "a campaign's directory, as `ahead start` makes it"


@dataclass(frozen=True, slots=True, eq=False)
class Closed:
    """A wave that was closed: what was counted, and whether it was the last."""

    wave: int
    result: Result
    last: bool


def start_campaign(mechanism: Mechanism, schema: Schema, directory: str | Path) -> Session:
    """A new directory with the campaign and its first questions."""
    root, session = archive.begin_run(directory, mechanism, schema), Session(mechanism, schema)
    archive.write_next(root, session)
    return session


def open_campaign(directory: str | Path, reading: Reading = None) -> Session:
    """The session of a directory, replayed: every stored question must be the one that follows from the tallies."""
    return archive.open_run(Path(directory), _EXPECTED, reading)


def open_questions(session: Session) -> Questions:
    """The questions of the open wave, by digest."""
    return _by_digest(session.question_records().values())


def all_questions(directory: str | Path) -> Questions:
    """Every question that a directory holds, by digest."""
    root = Path(directory)
    archive.campaign_fields(root, _EXPECTED)
    return _by_digest(data for asked in archive.read_questions(root) for data in asked.values())


def _by_digest(questions: Iterable[bytes | Record]) -> Questions:
    return {asked.question: asked for asked in map(Asked.of, questions)}


def advance(
    directory: str | Path,
    *,
    engine: Engine = LOCAL,
    reports: str | None = None,
    dedup: bool = True,
    quarantine: bool = False,
    allow_empty: bool = False,
    reading: Reading = None,
) -> Closed:
    """Close the open wave: freeze its list of files, count them, write the tallies and what follows from them.

    Reports that arrive later are not counted: a wave closes once. ``reports`` is where the files are, if not in the
    directory. Damaged files stop it, or are set aside whole and listed by name with ``quarantine``. With the
    ``reading`` "stored" no method is run: the wave is counted, and the campaign ends with it.
    """
    root = Path(directory)
    session = open_campaign(root, reading)
    if not session.is_open:
        raise ValueError(f"expected an open wave in {str(root)!r}, but the campaign has ended: `ahead estimate`")
    wave, questions = session.number, open_questions(session)
    where, stored = reports or str(root / REPORTS), root / "frozen" / f"{wave}.json"
    if stored.exists():  # a crash came between the list and the tallies: the list stands
        files, set_aside = _thaw(where, read_record(stored, _EXPECTED))
        result = engine.count(files, questions, dedup=dedup, verify=True)
        result.set_aside.update(set_aside)
    else:
        files = engine.find(where, f"wave={wave}")
        if not files and not allow_empty:
            raise ValueError(
                f"expected report files in {shown(where)}/wave={wave}, got none: put the reports of wave {wave} there, "
                "or close the wave without any by --allow-empty"
            )
        result = engine.count(files, questions, dedup=dedup, quarantine=quarantine, verify=True)
        if unlisted := [file.name for file in result.files if file.entry is None]:
            raise ValueError(
                f"expected a manifest, to freeze what is counted; {unlisted[0]} is in none: write files by ReportWriter"
            )
        write_record(stored, _frozen_record(session, result))
    session.tell({asked.group: result.tallies[question] for question, asked in questions.items()})
    archive.write_tallies(root, session.provenance)
    archive.write_next(root, session)
    return Closed(wave, result, not session.is_open)


def read_estimate(directory: str | Path, reading: Reading = None) -> tuple[Estimate, int, bool]:
    """The estimate from the waves closed so far, how many they are, and whether they are all.

    After the last wave it is also written to ``estimate.json``, if it is not there; another ``reading`` than the
    campaign's own writes nothing.
    """
    root = Path(directory)
    session = open_campaign(root, reading)
    if reading is None:
        archive.write_next(root, session)
    return session.finish(), len(session.history), not session.is_open


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
    stored = fields(record, "type version campaign wave files set_aside", "the list of files")
    entries = [Entry.from_record(x) for x in stored["files"]]
    aside = {x["name"]: x["why"] for x in stored["set_aside"]}
    return [ReportFile(inside(where, entry.name), entry.name, entry) for entry in entries], aside
