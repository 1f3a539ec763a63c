"""Partitions as arrays: the cells of a question, in any number of attributes of any sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ahead_ldp.device.partition import Axis, GridForm, PartitionForm, TreeForm
from ahead_ldp.partitions.summed_area import SummedArea
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.schema.arrays import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Cells that tile a domain: cell i is the half-open box [lo[i], hi[i]). The wire form fixes them all."""

    form: PartitionForm
    axes: tuple[Axis, ...]
    lo: Ints  # (cells, m)
    hi: Ints  # (cells, m)

    @classmethod
    def of_form(cls, form: PartitionForm, axes: Sequence[Axis]) -> Partition:
        """The partition behind a wire form."""
        if isinstance(form, TreeForm):
            return cls.of_tree(Tree.from_flags(axes, form.fanout, np.array([f == "1" for f in form.flags])))
        return cls.grid(axes, form.cuts)

    @classmethod
    def grid(cls, axes: Sequence[Axis], cuts: Sequence[Sequence[int]]) -> Partition:
        """A grid from the inner cut points of each attribute; cells count with the last attribute fastest."""
        form = GridForm(tuple(tuple(int(c) for c in cut) for cut in cuts))
        form.cells(axes)
        borders = [np.array([0, *cut, axis.size]) for cut, axis in zip(form.cuts, axes, strict=True)]
        index = np.indices([b.size - 1 for b in borders]).reshape(len(borders), -1)
        lo = np.stack([b[i] for b, i in zip(borders, index, strict=True)], axis=1)
        hi = np.stack([b[i + 1] for b, i in zip(borders, index, strict=True)], axis=1)
        return cls(form, tuple(axes), lo, hi)

    @classmethod
    def cells_of(cls, axes: Sequence[Axis]) -> Partition:
        """Every code a cell of its own."""
        return cls.grid(axes, [range(1, axis.size) for axis in axes])

    @classmethod
    def equal_grid(cls, axes: Sequence[Axis], parts: Sequence[int]) -> Partition:
        """At most ``parts`` columns per attribute, as equal as possible; nominal and missing codes apart."""
        return cls.grid(axes, [axis.parts(0, axis.size, g)[1:-1] for axis, g in zip(axes, parts, strict=True)])

    @classmethod
    def of_tree(cls, tree: Tree) -> Partition:
        """The leaves of a tree."""
        flags = "".join("1" if split else "0" for split in tree.is_split)
        leaves = tree.leaves
        return cls(TreeForm(tree.fanout, flags), tree.axes, tree.lo[leaves], tree.hi[leaves])

    @property
    def cells(self) -> int:
        """How many cells."""
        return len(self.lo)

    def locate(self, codes: Ints) -> Ints:  # (n, m) -> (n,)
        """The cell of each record."""
        if isinstance(self.form, TreeForm):
            tree = Tree.from_flags(self.axes, self.form.fanout, np.array([f == "1" for f in self.form.flags]))
            return tree.leaf_index[tree.locate(codes)]
        index = np.zeros(len(codes), np.int64)
        for cuts, column in zip(self.form.cuts, codes.T, strict=True):
            index = index * (len(cuts) + 1) + np.searchsorted(np.array(cuts, np.int64), column, side="right")
        return index

    def aggregate(self, histogram: Ints) -> Ints:  # (size, ...) -> (cells,)
        """The histogram of the cells from the histogram of the codes."""
        if histogram.shape != tuple(axis.size for axis in self.axes):
            raise ValueError(f"expected a histogram of shape {tuple(a.size for a in self.axes)}, got {histogram.shape}")
        if self.cells == prod(histogram.shape) and isinstance(self.form, GridForm):
            return histogram.reshape(-1)
        return SummedArea.of(histogram).boxes(self.lo, self.hi)
