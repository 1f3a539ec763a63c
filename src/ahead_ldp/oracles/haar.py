"""Haar coefficients by Hadamard randomised response (HaarHRR)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ahead_ldp.device.laws.signs import HaarLaw
from ahead_ldp.oracles.signs import SignOracle
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.schema.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Haar(SignOracle):
    """One noisy sign of the signed Hadamard column of the code's node (CKS19).

    It knows nothing of a cell's own frequency: what it estimates is, for each node, the frequency of the first half
    less that of the second. HRR on the same cells would do so with twice the variance, since half of its rows say
    nothing about halves.

    Guarantees, besides those of ``Oracle``:
        mean      E[contrasts] is f[2 i] - f[2 i + 1], for every node i
        variance  Var[contrasts] == variance(n, f[2 i] + f[2 i + 1]), exactly, given the group's people; estimates of
                  different nodes are uncorrelated
    """

    name: ClassVar[str] = "haar"
    law_type: ClassVar[type[HaarLaw]] = HaarLaw
    law: HaarLaw

    @property
    def nodes(self) -> int:
        """Pairs of cells; the second half of the last one may not exist."""
        return (self.d + 1) // 2

    def contrasts(self, tally: Tally) -> Floats:  # counts (outcomes,) -> (nodes,)
        """Unbiased Haar coefficients of the nodes; 0 without reports, which no variance supports."""
        self.check_tally(tally)
        if tally.n == 0:
            return np.zeros(self.nodes)
        return self._transform(tally)[: self.nodes]

    def variance(self, n: int, f: Floats | float = 0.0) -> Floats | float:
        """Variance of a node's coefficient given the group's people, f the node's frequency; infinite for n = 0."""
        return (1 / (2 * self.p - 1) ** 2 - f) / n if n else np.full(np.shape(f), np.inf)[()]

    def _sign(self, row: Ints, code: Ints) -> Ints:
        return (np.bitwise_count(row & code >> 1).astype(np.int64) + code) & 1
