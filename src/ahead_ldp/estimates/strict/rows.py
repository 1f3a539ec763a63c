"""What a group's reports say about atoms: rows that are linear in the distribution, with their exact variance.

An atom is a set of codes that no row tells apart: a row's expectation is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ahead_ldp.oracles.base import LinearOracle
from ahead_ldp.oracles.haar import Haar
from ahead_ldp.oracles.sw import SW
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.schema.arrays import Floats, Ints

Least = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Unbiased values ``y`` (r,) of ``matrix @ f`` (r, d), from ``n`` people, f the shares of the atoms.

    The variance of w'y, with the chance of who fell into the group, is (S2)

        n Var = sum of w^2 (own s + other k) + shared T^2 + 2 tied T m - m^2,   s = |matrix| f, T = w'k, m = w'matrix f

    where k, ``members``, counts the cells of a question that a row is the sum of. Rows of cells sum to 1 in the mean:
    ``sums`` says so.
    """

    n: int
    y: Floats
    matrix: Floats
    own: float
    other: float
    members: Ints
    shared: float = 0.0
    tied: float = 0.0
    sums: bool = False
    least: Least | None = field(default=None)  # (q, r) -> (q, d): least expectation of w'y for a code of each atom


def cell_rows(oracle: LinearOracle, n: int, y: Floats, matrix: Floats, members: Ints) -> Rows:
    """Estimates of cells by a linear oracle, some of them added up."""
    m = oracle.moments
    tied = m.cross_own - m.cross  # S2
    return Rows(n, y, matrix, m.own - m.other - 2 * tied + 1, m.other - m.cross, members, m.cross, tied, True)


def contrast_rows(oracle: Haar, n: int, y: Floats, matrix: Floats) -> Rows:
    """Haar coefficients: the first half of a node less the second. Those of different nodes are uncorrelated."""
    return Rows(n, y, matrix, 0.0, 1 / (2 * oracle.p - 1) ** 2, np.ones(y.size, np.int64))  # S4


def outcome_rows(oracle: SW, tally: Tally, starts: Ints, place: Ints) -> tuple[Rows, Ints]:
    """Shares of blocks of outcomes of a square-wave report, for atoms that lie in intervals of cells.

    ``starts`` is the first cell of each interval, ``place`` (d,) the interval of each atom. The matrix holds the mean
    probability over the cells of an interval; bounds rest on the cell where a weighted sum of them is least. Beside the
    rows stands the row of each outcome.
    """
    reach = 2 * oracle.law.b + 1
    blocks = np.unique(np.concatenate([starts, starts + reach, [0, oracle.d]]))
    blocks = blocks[blocks < oracle.outcomes]
    matrix = np.empty((blocks.size, starts.size))
    for i, (start, end) in enumerate(zip(starts.tolist(), [*starts[1:].tolist(), oracle.d], strict=True)):
        f = np.zeros(oracle.d)
        f[start:end] = 1 / (end - start)
        matrix[:, i] = np.add.reduceat(oracle.outcome_probabilities(f), blocks)  # S5
    sizes = np.diff(np.append(blocks, oracle.outcomes))

    def least(weights: Floats) -> Floats:
        """The least that the weights expect on every atom."""
        each = [np.minimum.reduceat(oracle.back(np.repeat(w, sizes)), starts) for w in weights]
        return np.stack(each)[:, place]

    y = np.add.reduceat(tally.counts, blocks) / tally.n
    rows = matrix[:, place]
    row_of = np.repeat(np.arange(blocks.size), sizes)
    return Rows(tally.n, y, rows, 1.0, 0.0, np.zeros(y.size, np.int64), least=least), row_of
