"""What an engine schedules: a file or a part of one is opened, held against its manifest, and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ahead_ldp.engines.counting import Counted, count_shard
from ahead_ldp.engines.dedup import LeftOut
from ahead_ldp.engines.files import Asked, Batch, Damaged, Questions, check_file, open_file, read_batches
from ahead_ldp.engines.manifests import Entry, ReportFile, sha256_of
from ahead_ldp.oracles import Tally
from ahead_ldp.schema.arrays import Bools, Bytes

Part = tuple[int, int]  # which of how many parts of a file, by row groups
WHOLE: Part = (0, 1)


@dataclass(frozen=True, slots=True)
class Shard:
    """A file whose footer is in order, and the question it answers."""

    file: ReportFile
    asked: Asked
    rows: int

    @property
    def promised(self) -> int:
        """The rows that it should have."""
        return self.file.entry.rows if self.file.entry else self.rows


def open_shard(file: ReportFile, questions: Questions, verify: bool) -> Shard:
    """A file that can be counted; one that cannot is ``Damaged`` or ``Foreign``."""
    if file.problem:
        raise Damaged(file.problem)
    with open_file(file.path) as opened:
        shard = Shard(file, check_file(opened, questions), opened.metadata.num_rows)
    if file.entry and file.entry.rows != shard.rows:
        raise Damaged(f"it has {shard.rows:,} rows, its manifest says {file.entry.rows:,}")
    if verify:
        sha256 = sha256_of(file.path)
        if file.entry and file.entry.sha256 != sha256:
            raise Damaged("its bytes are not those of its manifest")
        shard = replace(shard, file=replace(file, entry=Entry(file.name, shard.rows, sha256)))
    return shard


def count_part(
    shard: Shard, part: Part = WHOLE, *, note: Callable[[Bytes], None] | None = None, check_pages: bool = True
) -> Counted:
    """The rows of a part of a file, counted; ``note`` is told their ids."""

    def rows() -> Iterator[tuple[int, Asked, Bytes, None]]:
        """Its rows."""
        with open_file(shard.file.path, check_pages) as opened:
            for batch in read_batches(opened, shard.asked, ids=note is not None, part=part):
                if note is not None and batch.ids is not None:
                    note(batch.ids)
                yield 0, shard.asked, batch.payloads, None

    return count_shard(rows()).get(0) or Counted(0, 0, Tally.empty(shard.asked.oracle.outcomes))


def read_again(shard: Shard, part: Part = WHOLE, payloads: bool = True) -> Iterator[Batch]:
    """The rows of a part of a file that was counted, with their ids."""
    try:
        with open_file(shard.file.path, check_pages=False) as opened:
            if opened.metadata.num_rows != shard.rows:
                raise Damaged(f"{opened.metadata.num_rows:,} rows")
            yield from read_batches(opened, shard.asked, ids=True, payloads=payloads, part=part)
    except Damaged as error:
        raise ValueError(f"{shard.file.name} changed while it was read ({error}); count again") from None


def count_left_out(shard: Shard, number: int, left_out: LeftOut, part: Part = WHOLE) -> Tally:
    """The tally of the reports of a file, the one of this number, that do not count."""

    def rows() -> Iterator[tuple[int, Asked, Bytes, Bools]]:
        """Its rows, with those to leave out."""
        for batch in read_again(shard, part):
            yield number, shard.asked, batch.payloads, left_out.marked(number, batch.start + np.arange(len(batch)))

    found = count_shard(rows()).get(number)
    return found.tally if found else Tally.empty(shard.asked.oracle.outcomes)
