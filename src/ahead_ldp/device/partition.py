"""Partitions as they travel: cut points or split flags. Either form tiles the domain by construction."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from math import prod

from ahead_ldp.device.canonical import Record, expect, fields, integer
from ahead_ldp.device.codes import Attribute

Side = tuple[int, int]
Box = tuple[Side, ...]
_ONE_FLAG = "one flag, 0 or 1, for each node of the tree"


@dataclass(frozen=True, slots=True)
class Axis:
    """How the codes of one attribute may be cut.

    Ordered codes come first; with ``missing`` the last code is outside the order. A nominal axis has no order at all.
    """

    size: int
    nominal: bool = False
    missing: bool = False

    @classmethod
    def of(cls, attribute: Attribute) -> Axis:
        """The axis of an attribute."""
        return cls(attribute.size, attribute.kind == "nominal", attribute.missing == "cell")

    def parts(self, lo: int, hi: int, fanout: int) -> list[int]:
        """Where a side [lo, hi) is cut: the borders of its parts, both ends included.

        Ordered codes fall into at most ``fanout`` parts, as equal as possible; nominal codes part at once; the
        missing code parts from the ordered ones.
        """
        if self.nominal:
            return list(range(lo, hi + 1))
        end = self.size - 1 if self.missing and lo < self.size - 1 and hi == self.size else hi
        count = min(fanout, end - lo)
        borders = [lo + j * (end - lo) // count for j in range(count + 1)]
        return borders if end == hi else [*borders, hi]


@dataclass(frozen=True, slots=True)
class GridForm:
    """A grid: for each attribute the codes at which a column begins. Cells count with the last attribute fastest."""

    cuts: tuple[tuple[int, ...], ...]

    def cells(self, axes: Sequence[Axis]) -> int:
        """How many cells there are; cuts that are no partition are refused."""
        expect(len(self.cuts) == len(axes), f"cuts for {len(axes)} attributes, got {len(self.cuts)}")
        for cuts, axis in zip(self.cuts, axes, strict=True):
            rise = all(0 < cut < axis.size for cut in cuts) and all(a < b for a, b in pairwise(cuts))
            expect(rise, f"cuts to rise strictly inside 0..{axis.size}")
        return prod(len(cuts) + 1 for cuts in self.cuts)

    def cell(self, axes: Sequence[Axis], codes: Sequence[int]) -> int:
        """The one cell that holds these codes."""
        index = 0
        for cuts, code in zip(self.cuts, codes, strict=True):
            index = index * (len(cuts) + 1) + bisect_right(cuts, code)
        return index

    def record(self) -> Record:
        """The canonical form."""
        return {"form": "grid", "cuts": [list(cuts) for cuts in self.cuts]}


@dataclass(frozen=True, slots=True)
class TreeForm:
    """A tree's leaves: one flag per node, breadth first, that says whether the node is cut into its parts.

    A node is cut on all its attributes at once (``Axis.parts``), its children in order with the last attribute
    fastest. Cells are the nodes that are not cut, in the same breadth-first order.
    """

    fanout: int
    flags: str

    def leaves(self, axes: Sequence[Axis]) -> tuple[Box, ...]:
        """The boxes of the cells; flags that do not end where the tree ends are refused."""
        return _leaves(self, tuple(axes))

    def cells(self, axes: Sequence[Axis]) -> int:
        """How many cells there are."""
        return len(self.leaves(axes))

    def cell(self, axes: Sequence[Axis], codes: Sequence[int]) -> int:
        """The one cell that holds these codes. Every cell is looked at, whatever the codes are."""
        inside = [all(lo <= code < hi for (lo, hi), code in zip(box, codes, strict=True)) for box in self.leaves(axes)]
        return inside.index(True)

    def record(self) -> Record:
        """The canonical form."""
        return {"form": "tree", "fanout": self.fanout, "flags": self.flags}


PartitionForm = GridForm | TreeForm


@lru_cache(maxsize=64)
def _leaves(form: TreeForm, axes: tuple[Axis, ...]) -> tuple[Box, ...]:
    queue: list[Box] = [tuple((0, axis.size) for axis in axes)]
    leaves = []
    for i, flag in enumerate(form.flags):
        expect(i < len(queue) and flag in "01", _ONE_FLAG)
        box = queue[i]
        if flag == "0":
            leaves.append(box)
            continue
        expect(any(hi - lo > 1 for lo, hi in box), "no flag to cut a single code")
        borders = [axis.parts(lo, hi, form.fanout) for axis, (lo, hi) in zip(axes, box, strict=True)]
        expect(len(queue) + prod(len(b) - 1 for b in borders) <= len(form.flags), _ONE_FLAG)  # before they take memory
        queue.extend(product(*(pairwise(b) for b in borders)))
    expect(len(queue) == len(form.flags), _ONE_FLAG)
    return tuple(leaves)


def partition_from_record(record: object) -> PartitionForm:
    """The partition behind its canonical form."""
    form = record.get("form") if isinstance(record, dict) else None
    if form == "grid":
        cuts = fields(record, "form cuts", "the partition")["cuts"]
        expect(isinstance(cuts, list) and all(isinstance(c, list) for c in cuts), "cuts to be a list of lists")
        return GridForm(tuple(tuple(integer(x, "a cut", 1) for x in c) for c in cuts))
    if form == "tree":
        tree = fields(record, "form fanout flags", "the partition")
        expect(isinstance(tree["flags"], str) and tree["flags"] != "", "flags to be a text of 0 and 1")
        return TreeForm(integer(tree["fanout"], "fanout", 2, 2**16), tree["flags"])
    raise ValueError("expected the form of a partition to be grid or tree")
