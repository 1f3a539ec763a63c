"""Several attributes from their margins and the dependence of every two: answers to boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from ahead_ldp.estimates.solvers.max_entropy import MOST_ATTRIBUTES
from ahead_ldp.estimates.solvers.proportional_fitting import fit_blocks, fit_pairs
from ahead_ldp.mechanisms.fused.grid_reports import block_sums, column_shares
from ahead_ldp.mechanisms.fused.interactions import Interaction
from ahead_ldp.mechanisms.fused.margins import Margin
from ahead_ldp.schema.arrays import Floats, Ints

Pair = tuple[int, int]

_MOST_CELLS = 1 << 16  # of a table over all attributes of a query (choice F22)
_MOST_COLUMNS = 24  # of an attribute in such a table (choice F22)
_MOST_TABLES = 64  # unit: tables kept in memory


@dataclass(frozen=True, slots=True, eq=False)
class Boxed:
    """Answers to boxes that restrict the same attributes."""

    values: Floats  # (n,)
    shares: tuple[Floats, ...]  # of each attribute's bins inside, (n, bins)
    cells: Floats | None = None  # (n, 2, ..., 2) in and out, of three or more attributes


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseModel:
    """Margins, and for each pair a table of bins whose sums are the margins' masses.

    Inside a bin two attributes count as independent, with the margins' own densities. Boxes on one attribute are read
    from its margin, on two from their table. On more, the table of greatest entropy with all pairs' tables on coarser
    bins gives the 2^q in/out cells, which are then brought to the answers of the pairs.
    """

    margins: tuple[Margin, ...]
    pairs: Mapping[Pair, Interaction]
    people: int
    _tables: dict[tuple[int, ...], tuple[list[Ints], Floats]] = field(default_factory=dict)

    def boxed(self, attributes: tuple[int, ...], boxes: Floats) -> Boxed:  # (n, m, 2)
        """The answers; more than 16 restricted attributes are refused."""
        q = len(attributes)
        if q > MOST_ATTRIBUTES:
            raise ValueError(f"expected a query to restrict at most {MOST_ATTRIBUTES} attributes, got {q}")
        if q == 0:
            return Boxed(np.ones(len(boxes)), ())
        if q == 1:
            sides, margin = boxes[:, attributes[0]], self.margins[attributes[0]]
            return Boxed(margin.below(sides[:, 1]) - margin.below(sides[:, 0]), ())
        shares = tuple(self.margins[a].shares(boxes[:, a], self.margins[a].bins) for a in attributes)
        if q == 2:
            return Boxed(self.pairs[attributes[0], attributes[1]].answers(*shares), shares)  # F17
        cells = fit_blocks(self._start(attributes, shares), self._blocks(attributes, shares))  # F23
        return Boxed(cells.reshape(len(boxes), -1)[:, 0], shares, cells)

    def _blocks(self, attributes: tuple[int, ...], shares: tuple[Floats, ...]) -> dict[Pair, Floats]:
        """Each pair's answers, inside and outside on either attribute."""
        blocks = {}
        for i, j in combinations(range(len(attributes)), 2):
            pair = self.pairs[attributes[i], attributes[j]]
            both = pair.answers(shares[i], shares[j])
            one, other = shares[i] @ pair.table.sum(axis=1), shares[j] @ pair.table.sum(axis=0)
            four = np.stack([both, one - both, other - both, 1 - one - other + both], axis=1)
            blocks[i, j] = np.maximum(four, 0.0).reshape(-1, 2, 2)
        return blocks

    def _start(self, attributes: tuple[int, ...], shares: tuple[Floats, ...]) -> Floats:  # -> (n, 2, ..., 2)
        """In/out cells by the pairwise table."""
        starts, table = self._table(attributes)
        n = len(shares[0])
        cells: Floats = np.broadcast_to(table.reshape(1, 1, -1), (n, 1, table.size))
        for a, begin, share in zip(attributes, starts, shares, strict=True):
            inside = column_shares(share, self.margins[a].masses, begin)
            both, done = np.stack([inside, 1 - inside], axis=1), cells.shape[1]  # (n, 2, columns)
            cells = np.einsum("npgr,ncg->npcr", cells.reshape(n, done, begin.size, -1), both).reshape(n, 2 * done, -1)
        return np.maximum(cells.reshape(n, *[2] * len(attributes)), 1e-15)  # F23

    def _table(self, attributes: tuple[int, ...]) -> tuple[list[Ints], Floats]:
        """The pairwise table of these attributes: the bins at which its columns begin, and the table."""
        known = self._tables.get(attributes)  # one look: another thread may clear them
        if known is None:
            if len(self._tables) >= _MOST_TABLES:
                self._tables.clear()
            side = max(2, min(_MOST_COLUMNS, int(_MOST_CELLS ** (1 / len(attributes)) + 1e-9)))
            starts = [_merged(self.margins[a].masses, side) for a in attributes]
            masses = [np.add.reduceat(self.margins[a].masses, s) for a, s in zip(attributes, starts, strict=True)]
            tables = {
                (i, j): block_sums(self.pairs[attributes[i], attributes[j]].table, starts[i], starts[j])
                for i, j in combinations(range(len(attributes)), 2)
            }
            known = self._tables[attributes] = starts, fit_pairs(masses, tables)  # F22
        return known


def _merged(masses: Floats, side: int) -> Ints:
    """Where at most so many groups of neighbouring bins begin, of nearly equal mass."""
    if masses.size <= side:
        return np.arange(masses.size)
    below = np.concatenate([[0.0], np.cumsum(masses)])[:-1]
    return np.unique(np.abs(below[None] - (np.arange(side) / side)[:, None]).argmin(axis=1))
