"""The local engine: all cores, a file to a thread, streaming: memory does not grow with the number of reports."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from ahead_ldp.engines.counting import Care, Counted, Engine, Result, complete, count_shard, merge, refuse
from ahead_ldp.engines.dedup import Hashes, LeftOut, Spill, Words
from ahead_ldp.engines.files import Asked, Batch, Damaged, Foreign, Questions, check_file, open_file, read_batches
from ahead_ldp.engines.manifests import Entry, ReportFile, find_files, sha256_of
from ahead_ldp.oracles import Tally
from ahead_ldp.schema.arrays import Bytes

T = TypeVar("T")
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class _Shard:
    """A file whose footer is in order, and the question it answers."""

    file: ReportFile
    asked: Asked
    rows: int


def count_files(
    files: Sequence[ReportFile],
    questions: Questions,
    *,
    dedup: bool = True,
    quarantine: bool = False,
    verify: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """The tallies of report files of this machine, as ``Engine.count`` promises them, on so many threads."""
    workers = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool, tempfile.TemporaryDirectory(prefix="ahead-dedup-") as folder:
        shards, damaged = _check(files, questions, verify, quarantine, pool)
        hashes = Hashes(Path(folder), sum(s.rows for s in shards)) if dedup else None
        outcomes = pool.map(partial(_attempt, partial(_count, hashes=hashes, verify=verify)), shards)
        whole, tallies, done, total = list[_Shard](), [], 0, sum(s.rows for s in shards)
        for shard, (counted, problem) in zip(shards, outcomes, strict=True):
            problem = problem or (counted.problem(_promised(shard)) if counted else None)
            if problem or counted is None:
                damaged.append((shard.file.name, str(problem)))
            else:
                whole.append(shard)
                tallies.append((shard.asked.question, counted.tally))
            done += shard.rows
            if progress:
                progress(done, total)
        refuse([], damaged, quarantine)
        found, duplicates = complete(questions, merge(tallies)), 0
        if hashes is not None and (again := hashes.again()).size:
            left_out, duplicates = _find_copies(whole, hashes, again, Path(folder), pool)
            less = merge(pool.map(partial(_left_out, whole, left_out), left_out.files))
            found |= {question: found[question] - tally for question, tally in less.items()}
    return Result(found, tuple(shard.file for shard in whole), dict(damaged), duplicates)


def _promised(shard: _Shard) -> int:
    return shard.file.entry.rows if shard.file.entry else shard.rows


def _attempt(run: Callable[[_Shard], T], shard: _Shard) -> tuple[T | None, str | None]:
    try:
        return run(shard), None
    except Damaged as error:
        return None, str(error)


def _check(
    files: Sequence[ReportFile], questions: Questions, verify: bool, quarantine: bool, pool: ThreadPoolExecutor
) -> tuple[list[_Shard], list[tuple[str, str]]]:
    shards: list[_Shard] = []
    damaged: list[tuple[str, str]] = []
    foreign: list[tuple[str, str]] = []

    def look(file: ReportFile) -> _Shard | Exception:
        """A file in order, or what is wrong with it."""
        try:
            return _open(file, questions, verify)
        except (Damaged, Foreign) as error:
            return error

    for file, shard in zip(files, pool.map(look, files), strict=True):
        if isinstance(shard, _Shard):
            shards.append(shard)
        else:
            (foreign if isinstance(shard, Foreign) else damaged).append((file.name, str(shard)))
    refuse(foreign, damaged, quarantine)
    return shards, damaged


def _open(file: ReportFile, questions: Questions, verify: bool) -> _Shard:
    if file.problem:
        raise Damaged(file.problem)
    with open_file(file.path) as opened:
        shard = _Shard(file, check_file(opened, questions), opened.metadata.num_rows)
    if file.entry and file.entry.rows != shard.rows:
        raise Damaged(f"it has {shard.rows:,} rows, its manifest says {file.entry.rows:,}")
    if verify:
        sha256 = sha256_of(file.path)
        if file.entry and file.entry.sha256 != sha256:
            raise Damaged("its bytes are not those of its manifest")
        shard = replace(shard, file=replace(file, entry=Entry(file.name, shard.rows, sha256)))
    return shard


def _count(shard: _Shard, hashes: Hashes | None, verify: bool) -> Counted:
    """All rows of a file; their ids are noted where copies are looked for."""

    def batches() -> Iterator[tuple[str, Asked, Bytes, None]]:
        """Its rows."""
        with open_file(shard.file.path, check_pages=verify or hashes is not None) as opened:
            for batch in read_batches(opened, shard.asked, ids=hashes is not None):
                if hashes is not None and batch.ids is not None:
                    hashes.add(batch.ids)
                yield shard.file.name, shard.asked, batch.payloads, None

    by_file = count_shard(batches())
    return by_file.get(shard.file.name) or Counted(0, 0, Tally.empty(shard.asked.oracle.outcomes))


def _find_copies(
    shards: Sequence[_Shard], hashes: Hashes, again: Words, folder: Path, pool: ThreadPoolExecutor
) -> tuple[LeftOut, int]:
    """What to leave out, among the reports whose hash came more than once; files go by their places."""
    spill = Spill(folder, sum(shard.rows for shard in shards))

    def look(number: int) -> None:
        """Write down who may be a copy."""
        for batch in _read_again(shards[number]):
            if batch.ids is not None:
                own = hashes.of(batch.ids)
                rows = np.flatnonzero(again[np.searchsorted(again[:-1], own)] == own)
                spill.add(number, batch.start + rows, batch.ids[rows])

    list(pool.map(look, range(len(shards))))
    left_out, duplicates = LeftOut(), 0
    for places in spill.resolve():
        left_out.mark(places)
        duplicates += len(places)
    return left_out, duplicates


def _left_out(shards: Sequence[_Shard], left_out: LeftOut, number: int) -> tuple[str, Tally]:
    """The question of a file, and the tally of its reports that do not count."""
    shard = shards[number]
    rows = (
        (number, shard.asked, b.payloads, left_out.marked(number, b.start + np.arange(len(b.payloads))))
        for b in _read_again(shard)
    )
    return shard.asked.question, count_shard(rows)[number].tally


def _read_again(shard: _Shard) -> Iterator[Batch]:
    """A file that was counted."""
    seen = 0
    try:
        with open_file(shard.file.path, check_pages=False) as opened:
            for batch in read_batches(opened, shard.asked, ids=True):
                seen += len(batch.payloads)
                yield batch
    except Damaged as error:
        raise ValueError(f"{shard.file.name} changed while it was read ({error}); count again") from None
    if seen != shard.rows:
        raise ValueError(f"{shard.file.name} changed while it was read ({seen:,} rows); count again")


class LocalEngine(Engine):
    """This machine."""

    def find(self, root: str, below: str = "") -> list[ReportFile]:
        """See ``Engine``."""
        return find_files([root], below) if Path(root).exists() else []

    def count_with(self, care: Care, files: Sequence[ReportFile], questions: Questions) -> Result:
        """See ``Engine``."""
        return count_files(files, questions, **asdict(care))


LOCAL = LocalEngine()
