"""A collection as files: what was asked, what was sent, what was counted, and what came of it.

    schema.json                                the attributes
    campaign.json                              schema, method with every choice, groups
    questions/WAVE/GROUP.json                  as the devices got them
    reports/WAVE/GROUP.bin                     wire form: one header, then a frame for each report; or, if asked for,
    reports/wave=WAVE/group=GROUP/*.parquet    report files with a manifest; none for an empty group
    tallies/WAVE/GROUP.json                    what the reports count up to
    estimate.json                              written last: a run without it did not end

Records are canonical JSON. No true value is in any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from ahead_ldp.device.canonical import digest
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.frames import HEADER_LENGTH, ID_LENGTH, Header
from ahead_ldp.device.refusals import ReportRejected
from ahead_ldp.engines.archive import load
from ahead_ldp.engines.collection import Person, Progress, decode_reports, run_collection
from ahead_ldp.engines.files import ROWS_PER_GROUP, Asked, arrow
from ahead_ldp.engines.layout import (
    ESTIMATE,
    REPORTS,
    asked_waves,
    place,
    read_campaign,
    read_questions,
    read_record,
    read_tallies,
    report_folder,
    write_campaign,
    write_record,
)
from ahead_ldp.engines.local import count_files
from ahead_ldp.engines.manifests import find_files
from ahead_ldp.engines.writer import ReportWriter
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import Mechanism, Tallies, tally_record
from ahead_ldp.protocol.session import ReplayMismatch, Session, replay


def collect_run(
    mechanism: Mechanism,
    schema: Schema,
    people: Sequence[Person],
    directory: str | PathLike[str],
    progress: Progress | None = None,
    *,
    parquet: bool = False,
) -> Estimate:
    """Collect one real report from every person and keep everything that a server would, in a new directory.

    With ``parquet`` the reports are kept as report files, which the engines count, else in the wire form.
    """
    root = Path(directory)
    if parquet:
        arrow()  # before anybody is asked
    write_campaign(root, mechanism, schema)

    def keep(wave: int, group: str, data: bytes) -> None:
        """Append a batch to its group's file."""
        path = place(root, REPORTS, wave, group, "bin")
        known = path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data[HEADER_LENGTH:] if known else data)  # one header for the whole file

    collected = run_collection(mechanism, schema, people, progress, keep)
    _write_waves(root, Session(mechanism, schema), collected.session.history, parquet)
    collected.estimate.save(root / ESTIMATE)
    return collected.estimate


def read_run(directory: str | PathLike[str], *, recount: bool = False) -> Estimate:
    """The estimate of a stored run, after the run was replayed.

    Every question is computed again from the tallies before it and must equal the stored bytes, and the estimate must
    be the stored one; with ``recount`` the reports must count up to the tallies. Otherwise there is a
    ``ReplayMismatch`` and no estimate. What is no run at all is a ``ValueError``.
    """
    root = Path(directory)
    mechanism, schema, campaign = read_campaign(root)
    questions = [read_questions(root, wave) for wave in asked_waves(root)]
    history = [read_tallies(root, wave, asked) for wave, asked in enumerate(questions, start=1)]
    session = replay(mechanism, schema, questions, history, campaign)
    if session.is_open:
        raise ValueError(f"expected a finished run in {str(root)!r}, got {len(questions)} waves of a longer one")
    if recount:
        _recount(root, Session(mechanism, schema, campaign), history)
    stored = root / ESTIMATE
    if read_record(stored).get("frozen") != session.frozen:
        raise ReplayMismatch("estimate.json is not of the stored tallies")
    return load(stored)


def _write_waves(root: Path, session: Session, history: Sequence[Tallies], parquet: bool) -> None:
    for told in history:
        with ReportWriter(root / REPORTS) as writer:
            for group, question in session.question_records().items():
                write_record(place(root, "questions", session.number, group), question)
                write_record(place(root, "tallies", session.number, group), tally_record(digest(question), told[group]))
                if parquet:
                    _move_frames(place(root, REPORTS, session.number, group, "bin"), Asked.of(question), writer)
        session.tell(told)


def _move_frames(path: Path, asked: Asked, writer: ReportWriter) -> None:
    """Reports in the wire form become rows of a report file."""
    if not path.exists():
        return
    frames = np.memmap(path, np.uint8, "r", HEADER_LENGTH).reshape(-1, ID_LENGTH + asked.oracle.report_bytes)
    for start in range(0, len(frames), ROWS_PER_GROUP):
        some = frames[start : start + ROWS_PER_GROUP]
        writer.add(asked, some[:, :ID_LENGTH], some[:, ID_LENGTH:])
    del frames, some
    path.unlink()
    if not any(path.parent.iterdir()):
        path.parent.rmdir()


def _recount(root: Path, session: Session, history: Sequence[Tallies]) -> None:
    for told in history:
        for group, question in session.question_records().items():
            asked, frames = Asked.of(question), place(root, REPORTS, session.number, group, "bin")
            folder = root / REPORTS / report_folder(session.number, group)
            path = folder if folder.exists() else frames
            found = _count_files(folder, asked) if folder.exists() else _count_frames(frames, asked)
            if found != told[group]:
                raise ReplayMismatch(f"the reports in {path.relative_to(root)} do not count up to the stored tally")
        session.tell(told)


def _count_frames(path: Path, asked: Asked) -> Tally:
    if not path.exists():
        return Tally.empty(asked.oracle.outcomes)
    try:
        header = Header(asked.campaign, asked.question)
        return asked.oracle.tally(decode_reports(path.read_bytes(), header, asked.oracle)[1])
    except ReportRejected as error:
        raise ReplayMismatch(f"the reports in {path.name} are refused: {error}") from None


def _count_files(folder: Path, asked: Asked) -> Tally:
    try:
        return count_files(find_files([folder]), {asked.question: asked}, verify=True).tallies[asked.question]
    except ValueError as error:
        raise ReplayMismatch(f"the reports in {folder.name} are refused: {error}") from None
