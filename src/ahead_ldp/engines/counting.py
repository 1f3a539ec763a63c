"""What every engine schedules: count a shard, merge. Any number of machines do the first, in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ahead_ldp.engines.files import Asked, Questions
from ahead_ldp.engines.manifests import ReportFile
from ahead_ldp.oracles import Tally
from ahead_ldp.schema.arrays import Bools, Bytes

K = TypeVar("K")
V = TypeVar("V", Tally, "Counted")
_SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What was seen of one file, or of a part of it. Parts of a file add up."""

    rows: int
    invalid: int  # reports that no device could have made
    tally: Tally  # of the others, without those that were left out

    def __add__(self, other: Counted) -> Counted:
        return Counted(self.rows + other.rows, self.invalid + other.invalid, self.tally + other.tally)

    def problem(self, rows: int | None) -> str | None:
        """Why the file is not counted, if so; ``rows`` is what its manifest promises."""
        if rows is not None and self.rows != rows:
            return f"{self.rows:,} of {rows:,} rows can be read"
        if self.invalid:
            return f"{self.invalid:,} of {self.rows:,} reports could not have been made by a device"
        return None


def count_rows(asked: Asked, payloads: Bytes, keep: Bools | None = None) -> Counted:
    """The tally of some rows of one file; ``keep`` leaves out rows that were counted elsewhere."""
    valid = asked.oracle.valid(payloads)
    invalid = len(payloads) - int(valid.sum())
    chosen = valid if keep is None else valid & keep
    counted = asked.oracle.tally(payloads if chosen.all() else payloads[chosen])
    return Counted(len(payloads), invalid, counted)


def count_shard(batches: Iterable[tuple[K, Asked, Bytes, Bools | None]]) -> dict[K, Counted]:
    """Count a shard: a run of (file, question, payloads, rows to keep), by file. A shard may hold parts of files."""
    return merge((file, count_rows(asked, payloads, keep)) for file, asked, payloads, keep in batches)


def merge(parts: Iterable[tuple[K, V]]) -> dict[K, V]:
    """Sums by key: tallies by question, or counts by file. Integers: any order and grouping give the same bits."""
    totals: dict[K, V] = {}
    for key, part in parts:
        totals[key] = totals[key] + part if key in totals else part
    return totals


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The tallies of every question, and an account of every file and every report that is not in them."""

    tallies: dict[str, Tally]  # by the digest of the question
    files: tuple[ReportFile, ...]
    set_aside: dict[str, str] = field(default_factory=dict)  # name -> why
    duplicates: int = 0  # reports left out because one of the same id counts

    @property
    def reports(self) -> int:
        """How many reports count."""
        return sum(tally.n for tally in self.tallies.values())


@dataclass(frozen=True, slots=True)
class Care:
    """How files are counted: compare reports across them, set damaged ones aside, compare bytes with manifests."""

    dedup: bool = True
    quarantine: bool = False
    verify: bool = False


class Engine(ABC):
    """Where files are found and counted. Counting is ``count_shard`` and ``merge``, whatever schedules them."""

    @abstractmethod
    def find(self, root: str, below: str = "") -> list[ReportFile]:
        """The report files below a folder, each with its manifest's entry; an empty list where there are none."""

    def count(
        self,
        files: Sequence[ReportFile],
        questions: Questions,
        *,
        dedup: bool = True,
        quarantine: bool = False,
        verify: bool = False,
    ) -> Result:
        """The tallies of these files, bit for bit the same from every engine.

        Files of another campaign, wave, oracle or version stop it by name. So do damaged ones, unless ``quarantine``
        leaves them out whole. With ``dedup`` one report of each id counts over all files, the first by name and row.
        ``verify`` also compares every file's bytes with the digest in its manifest.
        """
        if not files:
            return Result(complete(questions, {}), ())
        in_order = sorted(files, key=lambda file: (file.name, file.path))
        return self.count_with(Care(dedup, quarantine, verify), in_order, questions)

    @abstractmethod
    def count_with(self, care: Care, files: Sequence[ReportFile], questions: Questions) -> Result:
        """The tallies of at least one file."""


def complete(questions: Questions, tallies: dict[str, Tally]) -> dict[str, Tally]:
    """The tallies of all questions, empty where there was no report."""
    return {key: tallies.get(key, Tally.empty(asked.oracle.outcomes)) for key, asked in questions.items()}


def refuse(foreign: Sequence[tuple[str, str]], damaged: Sequence[tuple[str, str]], quarantine: bool) -> None:
    """Stop where files belong elsewhere, or are damaged and nobody asked to set them aside."""
    if foreign:
        raise ValueError(f"expected reports of this campaign alone; move away {_listing(foreign)}")
    if damaged and not quarantine:
        raise ValueError(
            f"expected whole report files; deliver again, or leave out with --quarantine: {_listing(damaged)}"
        )


def _listing(problems: Sequence[tuple[str, str]]) -> str:
    shown = "; ".join(f"{name} ({why})" for name, why in problems[:_SHOWN])
    more = len(problems) - _SHOWN
    return f"{shown}; and {more} more" if more > 0 else shown
