"""What groups said about the nodes of a tree, and all of them pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ahead_ldp.oracles import LinearOracle
from ahead_ldp.partitions.trees import NestedBoxes
from ahead_ldp.schema.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """What one group said: estimates of the frequencies of some nodes, which tile the domain.

    ``projected``: they were brought to non-negative values of sum 1 (Norm-Sub).
    """

    nodes: Ints  # (cells,) the node behind each cell
    estimate: Floats  # (cells,)
    n: int
    oracle: LinearOracle
    projected: bool = False

    @property
    def precision(self) -> float:
        """Inverse of a cell's variance at f = 0; 0 without reports."""
        return self.oracle.precision(self.n)


def pool(tree: NestedBoxes, measurements: Sequence[Measurement]) -> tuple[Floats, Floats]:  # -> (nodes,), (nodes,)
    """Each node's own estimate, pooled over the groups that measured it, and its precision."""
    weighted, precision = np.zeros(tree.size), np.zeros(tree.size)
    for m in measurements:
        weighted[m.nodes] += m.precision * m.estimate
        precision[m.nodes] += m.precision
    return np.divide(weighted, precision, out=np.zeros(tree.size), where=precision > 0), precision
