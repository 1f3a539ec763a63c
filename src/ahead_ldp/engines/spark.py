"""The Spark engine: executors get the addresses of files, read them through Arrow and count as one machine does.

Rows do not go through Spark. A task has some files, or a part of a large one; it adds up what it can and returns a
tally for each question. Tasks that fail, are repeated or speculated count once, because Spark takes one result of each,
and counting is a function of the rows. Copies are found by hashes of the ids, which are shuffled; payloads never are.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ahead_ldp.engines.addresses import OBJECT_STORES, scheme
from ahead_ldp.engines.counting import Care, Counted, Engine, Result, complete, merge, refuse
from ahead_ldp.engines.dedup import LeftOut, Words, first_places, hash_ids, records_of, repeated
from ahead_ldp.engines.files import Damaged, Foreign, Questions
from ahead_ldp.engines.manifests import PATTERN, ReportFile, find_at, with_entries
from ahead_ldp.engines.shards import WHOLE, Part, Shard, count_left_out, count_part, open_shard, read_again
from ahead_ldp.engines.spark_session import java_error, spark_map, spark_session
from ahead_ldp.oracles import Tally

ROWS_PER_TASK = 8_000_000  # aimed at: starting a task takes as long as counting millions of reports
ROWS_PER_PART = 2_000_000  # of a file that is larger, and of the hashes that come together
_FILTERED = 1_000_000  # hashes that came again and are sent to all executors; of more, all ids are compared


@dataclass(frozen=True, slots=True)
class _Unit:
    """A file by its number, or a part of it."""

    number: int
    file: ReportFile
    part: Part

    @property
    def rows(self) -> int:
        """About how many."""
        return (self.file.entry.rows if self.file.entry else ROWS_PER_PART) // self.part[1]


@dataclass(slots=True)
class _Found:
    """What a task, or all of them, made of its units."""

    tallies: dict[str, Tally] = field(default_factory=dict)  # by question, of files that are whole
    parts: list[tuple[int, Shard, Counted]] = field(default_factory=list)  # of files that other tasks count too
    shards: dict[int, Shard] = field(default_factory=dict)  # files that count
    foreign: dict[int, str] = field(default_factory=dict)
    damaged: dict[int, str] = field(default_factory=dict)


class SparkEngine(Engine):
    """Spark, through a session of the caller's or one that is started."""

    def __init__(self, session: Any = None) -> None:
        self.session = spark_session(session)

    def find(self, root: str, below: str = "") -> list[ReportFile]:
        """See ``Engine``. The folder is an object store's that Arrow knows, or any that Hadoop's file systems know."""
        if scheme(root) in OBJECT_STORES:
            return find_at(root, below)
        jvm = self.session._jvm
        path = jvm.org.apache.hadoop.fs.Path
        start = path(f"{root.rstrip('/')}/{below}" if below else root)
        system = start.getFileSystem(self.session._jsc.hadoopConfiguration())
        if not system.exists(start):
            return []
        start = system.makeQualified(start)
        folder, manifests = start, {}
        is_folder = system.getFileStatus(start).isDirectory()
        for _ in range(3 if is_folder else 4):  # the folder itself, and the two above it
            for status in system.globStatus(path(folder, PATTERN)) or []:
                stream = system.open(status.getPath())
                manifests[status.getPath().getName()] = bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
                stream.close()
            if manifests or folder.getParent() is None:
                break
            folder = folder.getParent()
        top = folder if manifests else start if is_folder else start.getParent()
        base, names, listed = _address(top), [], system.listFiles(start, True)
        while listed.hasNext():
            name = _address(listed.next().getPath()).removeprefix(base + "/")
            if name.endswith(".parquet") and not any(part.startswith(("_", ".")) for part in name.split("/")):
                names.append(name)
        return with_entries(base, names, manifests, _address(start).removeprefix(base).strip("/") or ".")

    def count_with(self, care: Care, files: Sequence[ReportFile], questions: Questions) -> Result:
        """See ``Engine``."""
        units = [_Unit(i, file, part) for i, file in enumerate(files) for part in _parts(file)]
        found = _Found()
        for one in self._map(partial(_count_units, questions=questions, care=care), units):
            found.tallies = merge([*found.tallies.items(), *one.tallies.items()])
            found.parts += one.parts
            for own, more in ((found.shards, one.shards), (found.foreign, one.foreign), (found.damaged, one.damaged)):
                own |= more
        _join_parts(found)
        refuse(_named(files, found.foreign), _named(files, found.damaged), care.quarantine)
        tallies, duplicates = complete(questions, found.tallies), 0
        if care.dedup and found.shards:
            left_out, duplicates = self._find_copies([u for u in units if u.number in found.shards], found.shards)
            some = [u for u in units if u.number in set(left_out.files)]
            for less in self._map(partial(_count_dropped, shards=found.shards, left_out=left_out), some):
                tallies |= {question: tallies[question] - tally for question, tally in less.items()}
        kept = tuple(found.shards[i].file for i in sorted(found.shards))
        return Result(tallies, kept, dict(_named(files, found.damaged)), duplicates)

    def _map(self, function: Any, units: Sequence[_Unit]) -> list[Any]:
        """A task for each bin of units."""
        try:
            return spark_map(function, self._bins(units), self.session)
        except Exception as error:
            raise ValueError(f"Spark could not count the reports: {java_error(error)}") from error

    def _bins(self, units: Sequence[_Unit]) -> list[list[_Unit]]:
        """Units by tasks of about as many rows, the largest first."""
        count = min(len(units), self._tasks(units, ROWS_PER_TASK))
        bins, full = [list[_Unit]() for _ in range(count)], np.zeros(count, np.int64)
        for unit in sorted(units, key=lambda u: -u.rows):
            smallest = int(full.argmin())
            bins[smallest].append(unit)
            full[smallest] += unit.rows + 1
        return bins

    def _tasks(self, units: Sequence[_Unit], rows: int) -> int:
        """How many tasks of so many rows there are; at least one for every core."""
        return int(max(self.session.sparkContext.defaultParallelism, -(-sum(unit.rows for unit in units) // rows)))

    def _find_copies(self, units: Sequence[_Unit], shards: dict[int, Shard]) -> tuple[LeftOut, int]:
        """What to leave out so that the first of each id is left, and how many reports that are."""
        key = np.frombuffer(secrets.token_bytes(16), np.uint64) | np.uint64(1)
        buckets = self._tasks(units, ROWS_PER_PART)
        again = self._by_bucket(partial(_hashes, shards=shards, key=key, buckets=buckets), _again, units, buckets)
        suspects = np.sort(np.concatenate([np.empty(0, np.uint64), *again]))
        left_out, duplicates = LeftOut(), 0
        if suspects.size:
            wanted = suspects if suspects.size <= _FILTERED else None
            look = partial(_suspects, shards=shards, key=key, buckets=buckets, wanted=wanted)
            for places in self._by_bucket(look, _dropped, units, buckets):
                left_out.mark(places)
                duplicates += len(places)
        return left_out, duplicates

    def _by_bucket(self, emit: Any, resolve: Any, units: Sequence[_Unit], buckets: int) -> list[Words]:
        """Numbers of all units, brought together by their buckets, and what is found in each bucket."""
        bins = self._bins(units)
        emitted = self.session.sparkContext.parallelize(bins, len(bins)).flatMap(emit)
        try:
            found = emitted.groupByKey(buckets).map(lambda item: resolve(item[1])).collect()
        except Exception as error:
            raise ValueError(f"Spark could not look for copies: {java_error(error)}") from error
        return [np.frombuffer(one, np.uint64) for one in found]


def _parts(file: ReportFile) -> list[Part]:
    count = max(1, file.entry.rows // ROWS_PER_PART) if file.entry else 1
    return [(j, count) for j in range(count)]


def _named(files: Sequence[ReportFile], problems: dict[int, str]) -> list[tuple[str, str]]:
    return [(files[i].name, problems[i]) for i in sorted(problems)]


def _join_parts(found: _Found) -> None:
    """Files that were counted in parts: whole, or damaged as a whole."""
    shards = {number: shard for number, shard, _ in found.parts}
    for number, counted in merge((number, counted) for number, _, counted in found.parts).items():
        shard = shards[number]
        if number in found.damaged or number in found.foreign:
            continue
        if problem := counted.problem(shard.promised):
            found.damaged[number] = problem
            continue
        found.shards[number] = shard
        found.tallies = merge([*found.tallies.items(), (shard.asked.question, counted.tally)])


def _count_units(units: Sequence[_Unit], questions: Questions, care: Care) -> _Found:
    """Count some files, on an executor."""
    found = _Found()
    for unit in units:
        try:
            shard = open_shard(unit.file, questions, care.verify and unit.part[0] == 0)
            counted = count_part(shard, unit.part, check_pages=care.verify or care.dedup)  # as the local engine does
            problem = counted.problem(shard.promised) if unit.part == WHOLE else None
        except Foreign as error:
            found.foreign[unit.number] = str(error)
        except Damaged as error:
            found.damaged[unit.number] = str(error)
        else:
            if problem:
                found.damaged[unit.number] = problem
            elif unit.part != WHOLE:
                found.parts.append((unit.number, shard, counted))
            else:
                found.shards[unit.number] = shard
                found.tallies = merge([*found.tallies.items(), (shard.asked.question, counted.tally)])
    return found


def _count_dropped(units: Sequence[_Unit], shards: dict[int, Shard], left_out: LeftOut) -> dict[str, Tally]:
    """The tallies of reports that do not count, by question."""
    tallies = ((unit, count_left_out(shards[unit.number], unit.number, left_out, unit.part)) for unit in units)
    return merge((shards[unit.number].asked.question, tally) for unit, tally in tallies)


def _hashes(units: Sequence[_Unit], shards: dict[int, Shard], key: Words, buckets: int) -> Iterator[tuple[int, bytes]]:
    """Hashes of the ids, by bucket."""
    for unit in units:
        parts = [hash_ids(b.ids, key) for b in read_again(shards[unit.number], unit.part, False) if b.ids is not None]
        yield from _split(np.concatenate([np.empty(0, np.uint64), *parts]), buckets)


def _suspects(
    units: Sequence[_Unit], shards: dict[int, Shard], key: Words, buckets: int, wanted: Words | None
) -> Iterator[tuple[int, bytes]]:
    """Ids and places of the reports whose hash came again, by bucket."""
    for unit in units:
        for batch in read_again(shards[unit.number], unit.part, False):
            if batch.ids is None:
                continue
            hashes = hash_ids(batch.ids, key)
            rows = np.arange(len(batch))
            if wanted is not None:
                rows = np.flatnonzero(wanted[np.searchsorted(wanted[:-1], hashes)] == hashes)
            yield from _split(hashes[rows], buckets, records_of(unit.number, batch.start + rows, batch.ids[rows]))


def _split(hashes: Words, buckets: int, records: Words | None = None) -> Iterator[tuple[int, bytes]]:
    """Rows by the bucket of their hash; the hashes themselves, if no other rows are given."""
    bucket = ((hashes >> np.uint64(32)) * np.uint64(buckets) >> np.uint64(32)).astype(np.int64)
    order = np.argsort(bucket, kind="stable")
    sorted_rows = (hashes if records is None else records)[order]
    ends = np.cumsum(np.bincount(bucket, minlength=buckets))
    for i, part in enumerate(np.split(sorted_rows, ends[:-1])):
        if len(part):
            yield i, part.tobytes()


def _again(parts: Iterable[bytes]) -> bytes:
    return repeated(np.frombuffer(b"".join(parts), np.uint64).copy()).tobytes()


def _dropped(parts: Iterable[bytes]) -> bytes:
    return first_places(np.frombuffer(b"".join(parts), np.uint64))[1].tobytes()


def _address(path: Any) -> str:
    """A path in one spelling, whichever way Hadoop came by it."""
    return re.sub("^file:/+", "file:///", str(path.toUri().toString())).rstrip("/")
