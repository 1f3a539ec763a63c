"""The local engine: all cores, a file to a thread, streaming: memory does not grow with the number of reports."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from ahead_ldp.engines.addresses import is_address
from ahead_ldp.engines.counting import Care, Counted, Engine, Result, complete, merge, refuse
from ahead_ldp.engines.dedup import Hashes, LeftOut, Spill, Words
from ahead_ldp.engines.files import Damaged, Foreign, Questions
from ahead_ldp.engines.manifests import ReportFile, find_files
from ahead_ldp.engines.shards import Shard, count_left_out, count_part, open_shard, read_again

T = TypeVar("T")
Progress = Callable[[int, int], None]


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
        whole, tallies, done, total = list[Shard](), [], 0, sum(s.rows for s in shards)
        for shard, (counted, problem) in zip(shards, outcomes, strict=True):
            problem = problem or (counted.problem(shard.promised) if counted else None)
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
            for i in left_out.files:
                found[whole[i].asked.question] -= count_left_out(whole[i], i, left_out)
    return Result(found, tuple(shard.file for shard in whole), dict(damaged), duplicates)


def _attempt(run: Callable[[Shard], T], shard: Shard) -> tuple[T | None, str | None]:
    try:
        return run(shard), None
    except Damaged as error:
        return None, str(error)


def _check(
    files: Sequence[ReportFile], questions: Questions, verify: bool, quarantine: bool, pool: ThreadPoolExecutor
) -> tuple[list[Shard], list[tuple[str, str]]]:
    shards: list[Shard] = []
    damaged: list[tuple[str, str]] = []
    foreign: list[tuple[str, str]] = []

    def look(file: ReportFile) -> Shard | Exception:
        """A file in order, or what is wrong with it."""
        try:
            return open_shard(file, questions, verify)
        except (Damaged, Foreign) as error:
            return error

    for file, shard in zip(files, pool.map(look, files), strict=True):
        if isinstance(shard, Shard):
            shards.append(shard)
        else:
            (foreign if isinstance(shard, Foreign) else damaged).append((file.name, str(shard)))
    refuse(foreign, damaged, quarantine)
    return shards, damaged


def _count(shard: Shard, hashes: Hashes | None, verify: bool) -> Counted:
    return count_part(shard, note=hashes.add if hashes else None, check_pages=verify or hashes is not None)


def _find_copies(
    shards: Sequence[Shard], hashes: Hashes, again: Words, folder: Path, pool: ThreadPoolExecutor
) -> tuple[LeftOut, int]:
    """What to leave out, among the reports whose hash came more than once; files go by their places."""
    spill = Spill(folder, sum(shard.rows for shard in shards))

    def look(number: int) -> None:
        """Write down who may be a copy."""
        for batch in read_again(shards[number], payloads=False):
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


class LocalEngine(Engine):
    """This machine; files may lie in an object store."""

    def find(self, root: str, below: str = "") -> list[ReportFile]:
        """See ``Engine``."""
        return find_files([root], below) if is_address(root) or Path(root).exists() else []

    def count_with(self, care: Care, files: Sequence[ReportFile], questions: Questions) -> Result:
        """See ``Engine``."""
        return count_files(files, questions, **asdict(care))


LOCAL = LocalEngine()
