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

from ahead_ldp.engines.counting import Care, Counted, Engine, Result, complete, count_shard, merge, refuse
from ahead_ldp.engines.dedup import LeftOut, Spill
from ahead_ldp.engines.files import Asked, Damaged, Foreign, Questions, check_file, open_file, read_batches
from ahead_ldp.engines.manifests import Entry, ReportFile, find_files, sha256_of
from ahead_ldp.oracles import Tally
from ahead_ldp.schema.arrays import Bools, Bytes

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
    with ThreadPoolExecutor(workers) as pool:
        shards, damaged = _check(files, questions, verify, quarantine, pool)
        left_out, duplicates = LeftOut(), 0
        if dedup:
            shards, left_out, duplicates = _find_copies(shards, damaged, quarantine, pool)
        count = partial(_attempt, partial(_count, left_out=left_out, verify=verify))
        outcomes = pool.map(count, range(len(shards)), shards)
        tallies, done, total = [], 0, sum(s.rows for s in shards)
        for shard, (counted, problem) in zip(shards, outcomes, strict=True):
            problem = problem or (counted.problem(_promised(shard)) if counted else None)
            if problem or counted is None:
                if dedup:  # its reports have been weighed against the others'
                    raise ValueError(f"{shard.file.name} changed while it was read ({problem}); count again")
                damaged.append((shard.file.name, str(problem)))
            else:
                tallies.append((shard.asked.question, counted.tally))
            done += shard.rows
            if progress:
                progress(done, total)
    refuse([], damaged, quarantine)
    counted_files = tuple(shard.file for shard in shards)
    return Result(complete(questions, merge(tallies)), counted_files, dict(damaged), duplicates)


def _promised(shard: _Shard) -> int:
    return shard.file.entry.rows if shard.file.entry else shard.rows


def _attempt(run: Callable[[int, _Shard], T], number: int, shard: _Shard) -> tuple[T | None, str | None]:
    try:
        return run(number, shard), None
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


def _count(number: int, shard: _Shard, left_out: LeftOut, verify: bool) -> Counted:
    def batches() -> Iterator[tuple[int, Asked, Bytes, Bools | None]]:
        """Its rows, with those to keep."""
        with open_file(shard.file.path, check_pages=verify) as opened:
            for batch in read_batches(opened, shard.asked):
                keep = left_out.keep(number, batch.start, len(batch.payloads))
                yield number, shard.asked, batch.payloads, keep

    by_file = count_shard(batches())
    return by_file.get(number) or Counted(0, 0, Tally.empty(shard.asked.oracle.outcomes))


def _find_copies(
    shards: list[_Shard], damaged: list[tuple[str, str]], quarantine: bool, pool: ThreadPoolExecutor
) -> tuple[list[_Shard], LeftOut, int]:
    """What to leave out. A damaged file is found first and has no say, so the others are looked at again without it."""
    while True:
        with tempfile.TemporaryDirectory(prefix="ahead-dedup-") as folder:
            spill = Spill(Path(folder), sum(s.rows for s in shards))
            attempts = list(pool.map(partial(_attempt, partial(_spill, spill=spill)), range(len(shards)), shards))
            bad = [(s.file.name, why) for s, (_, why) in zip(shards, attempts, strict=True) if why]
            if bad:
                damaged += bad
                refuse([], damaged, quarantine)
                shards = [s for s, (_, why) in zip(shards, attempts, strict=True) if not why]
                continue
            left_out, duplicates = LeftOut(), 0
            for places in spill.resolve():
                left_out.mark(places)
                duplicates += len(places)
            return shards, left_out, duplicates


def _spill(number: int, shard: _Shard, spill: Spill) -> None:
    seen = invalid = 0
    with open_file(shard.file.path) as opened:
        for batch in read_batches(opened, shard.asked, ids=True):
            assert batch.ids is not None
            invalid += int((~shard.asked.oracle.valid(batch.payloads)).sum())
            spill.add(number, batch.start, batch.ids)
            seen += len(batch.ids)
    if problem := Counted(seen, invalid, Tally.empty(0)).problem(_promised(shard)):
        raise Damaged(problem)


class LocalEngine(Engine):
    """This machine."""

    def find(self, root: str, below: str = "") -> list[ReportFile]:
        """See ``Engine``."""
        return find_files([root], below) if Path(root).exists() else []

    def count_with(self, care: Care, files: Sequence[ReportFile], questions: Questions) -> Result:
        """See ``Engine``."""
        return count_files(files, questions, **asdict(care))


LOCAL = LocalEngine()
