"""A collection in one go, kept as files: what was asked, what was sent, what was counted, and what came of it.

Beside what ``ahead_ldp.engines.archive`` lists there are the reports:

    reports/WAVE/GROUP.bin                     wire form: one header, then a frame for each report; or, if asked for,
    reports/wave=WAVE/group=GROUP/*.parquet    report files with a manifest; none for an empty group

No true value is in any file. A run without its estimate did not end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.frames import HEADER_LENGTH, ID_LENGTH, Header
from ahead_ldp.device.refusals import ReportRejected
from ahead_ldp.engines import archive
from ahead_ldp.engines.addresses import is_address
from ahead_ldp.engines.collection import Person, Progress, decode_reports, run_collection
from ahead_ldp.engines.counting import Result, complete
from ahead_ldp.engines.files import ROWS_PER_GROUP, Asked, Questions, arrow
from ahead_ldp.engines.layout import CAMPAIGN, ESTIMATE, REPORTS, place, report_folder, write_record
from ahead_ldp.engines.local import count_files
from ahead_ldp.engines.manifests import ReportFile, find_files
from ahead_ldp.engines.writer import ReportWriter
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms import Reading
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.protocol.session import Provenance, ReplayMismatch
from ahead_ldp.schema.arrays import Bytes


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
    if parquet:
        arrow()  # before anybody is asked
    root = archive.begin_run(directory, mechanism, schema)

    def keep(wave: int, group: str, data: bytes) -> None:
        """Append a batch to its group's file."""
        path = place(root, REPORTS, wave, group, "bin")
        known = path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data[HEADER_LENGTH:] if known else data)  # one header for the whole file

    session = run_collection(mechanism, schema, people, progress, keep)
    for after in session.provenance.waves:
        _write_wave(root, after, parquet)
    archive.write_next(root, session)
    return session.finish()


def read_run(
    directory: str | PathLike[str], *, recount: bool = False, reading: Reading = None, so_far: bool = False
) -> Estimate:
    """The estimate of a stored run, after the run was replayed.

    Every question is computed again from the tallies before it and must equal the stored bytes, and the estimate must
    be the stored one; with ``recount`` the reports must count up to the tallies. Otherwise there is a
    ``ReplayMismatch`` and no estimate. What is no run at all is a ``ValueError``. ``reading`` asks for another version
    of the estimate than the run names, or by "stored" for what its questions say without any method. With ``so_far``
    a run that has not ended is read as far as its waves are closed, and one without a stored estimate by its tallies.
    """
    root = Path(directory)
    session = archive.open_run(root, reading=reading)
    if recount and (so_far or not session.is_open):
        for after in session.provenance.waves:
            _recount(root, after)
    if so_far and (session.is_open or not (root / ESTIMATE).exists()):
        return session.finish()
    return archive.finished_estimate(root, session, reading)


def audit_run(directory: str | PathLike[str]) -> Iterator[tuple[str, str]]:
    """What of a directory was computed again and is so, a check after the other; what is not is a ValueError.

    A directory of ``ahead collect``, of ``ahead start`` or of ``ahead campaign export``: its method, every question,
    the reports if they are there, and the estimate if it is.
    """
    root = Path(directory)
    try:
        mechanism, _, campaign = archive.read_campaign(root)
        yield "campaign", f"{campaign}, by the method {mechanism.name}"
        session = archive.open_run(root)
        yield "questions", f"{len(session.history)} waves: every question follows from the tallies before it"
        kept = (root / REPORTS).exists()
        for after in session.provenance.waves if kept else ():
            _recount(root, after)
        people = f"{session.provenance.people:,} reports count up to the tallies"
        yield "reports", people if kept else "none are here: the tallies are taken as they are"
        if session.is_open or not (root / ESTIMATE).exists():
            yield "estimate", "none is stored" if not session.is_open else "not all waves are closed"
        else:
            archive.finished_estimate(root, session)
            yield "estimate", "it is the one that the tallies lead to"
    except ReplayMismatch as error:
        raise ValueError(str(error)) from None


def count_wire(places: Sequence[str | PathLike[str]], questions: Questions) -> Result:
    """The tallies of reports in the wire form at or below some paths; a report that is there twice counts once."""
    payloads, files, seen, duplicates = dict[str, list[Bytes]](), list[ReportFile](), set[bytes](), 0
    for path in _wire_files(places):
        data = path.read_bytes()
        if len(data) == HEADER_LENGTH:
            continue
        try:
            asked = questions.get(Header.decode(data[:HEADER_LENGTH]).question)
            if asked is None:
                raise ValueError("its reports are of another campaign")
            ids, sent = decode_reports(data, Header(asked.campaign, asked.question), asked.oracle)
        except (ReportRejected, ValueError) as error:
            raise ValueError(f"expected whole report files of this campaign; {path.name}: {error}") from None
        new = [k for k, name in enumerate(ids) if name not in seen]  # ids of one file differ
        seen.update(ids)
        duplicates += len(ids) - len(new)
        payloads.setdefault(asked.question, []).append(sent[new])
        files.append(ReportFile(str(path), path.name))
    tallies = {key: questions[key].oracle.tally(np.concatenate(parts)) for key, parts in payloads.items()}
    return Result(complete(questions, tallies), tuple(files), duplicates=duplicates)


def _wire_files(places: Sequence[str | PathLike[str]]) -> list[Path]:
    """The files of reports in the wire form at or below some paths; a campaign's directory stands for its reports."""
    found: set[Path] = set()
    for place_ in (Path(given) for given in places if not is_address(str(given))):
        below = place_ / REPORTS if (place_ / CAMPAIGN).exists() else place_
        found |= {below} if below.is_file() and below.suffix == ".bin" else set(below.rglob("*.bin"))
    return sorted(found)


def _write_wave(root: Path, after: Provenance, parquet: bool) -> None:
    number = len(after.waves)
    with ReportWriter(root / REPORTS) as writer:
        for group, question in after.question_records().items():
            write_record(place(root, "questions", number, group), question)
            if parquet:
                _move_frames(place(root, REPORTS, number, group, "bin"), Asked.of(question), writer)
    archive.write_tallies(root, after)


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


def _recount(root: Path, after: Provenance) -> None:
    for group, question in after.question_records().items():
        asked, path = Asked.of(question), root / REPORTS / report_folder(len(after.waves), group)
        if path.exists():
            tally = _count_files(path, asked)
        else:
            path = place(root, REPORTS, len(after.waves), group, "bin")
            tally = _count_frames(path, asked)
        if tally != after.tallies[group]:
            raise ReplayMismatch(f"the reports in {path.relative_to(root)} do not count up to the stored tally")


def _count_frames(path: Path, asked: Asked) -> Tally:
    if not path.exists() or path.stat().st_size == HEADER_LENGTH:  # a header alone: nobody's, or all were deleted
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
