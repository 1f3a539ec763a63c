"""kd-tree (ABG25): built from the top down, a group of people for the medians of each depth.

ABG25: E. Alptekin, Balioglu, Gursoy: Hierarchical Spatial Decompositions under Local Differential Privacy, 2025.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Self

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.partition import Axis
from ahead_ldp.mechanisms.grain import SPATIAL_HEIGHT
from ahead_ldp.mechanisms.spatial.box_estimates import BoxesEstimate
from ahead_ldp.mechanisms.spatial.medians import Cuts, DepthReport, NodeErrors
from ahead_ldp.oracles import LinearOracle, named_oracle
from ahead_ldp.protocol.mechanism import (
    Group,
    Mechanism,
    Question,
    Run,
    axes_of,
    check_choice,
    check_count,
    check_ordered,
    several_codes,
)

MEDIANS = ("raw", "non_negative")
MOST_DEPTHS = 10  # a thousand boxes


@dataclass(frozen=True, slots=True, kw_only=True)
class KDTree(Mechanism):
    """One or two ordered attributes; one wave and one group for each depth, and a last one for the boxes' shares.

    At each depth all boxes are cut on one attribute, the attributes taking turns, where half of a box's people are. The
    group of that depth is asked about a grid: fine columns on the attribute that is cut, and every border so far on the
    other. So each box is a union of cells, and so are both of its halves. Without a ``height`` boxes are about as small
    as ``users`` people can tell apart, and an attribute has four times as many columns as the tree has boxes along it.

    ``medians`` are those of "raw" estimates or of "non_negative" ones. A box's share is told by the group that cut it
    out; least squares makes halves add up to their box. ``oracle`` is a registered name, or "best" for the least
    variance.
    """

    name: ClassVar[str] = "kdtree"
    idea: ClassVar[str] = "a kd-tree, its medians found depth by depth"
    source: ClassVar[str] = "Alptekin et al., 2025"
    most_attributes: ClassVar[int | None] = 2  # places (ABG25)
    ordered_only: ClassVar[bool] = True
    users: int = 1_000_000  # where nobody declares how many will come
    height: int | None = None
    medians: str = "non_negative"
    oracle: str = "best"

    def __post_init__(self) -> None:
        """Raise ValueError for a choice that the method does not have."""
        Mechanism.__post_init__(self)
        check_count("users", self.users)
        check_count("height", self.height, 1, MOST_DEPTHS, optional=True)
        check_choice("medians", self.medians, MEDIANS)
        self._oracle(2)

    @classmethod
    def paper(cls, epsilon: float | str | Fraction, users: int = 1_000_000) -> Self:
        """ABG25 as far as its abstract goes: a height that is chosen beforehand, and OUE."""
        return cls(epsilon=epsilon, users=users, height=6, medians="raw", oracle="oue")

    @classmethod
    def strong(cls, epsilon: float | str | Fraction, users: int = 1_000_000) -> Self:
        """The best setting found at the same epsilon (docs/methods/spatial/kdtree.md): the default."""
        return cls(epsilon=epsilon, users=users)

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One for each depth, of equal share, and one for the boxes' shares, with as many people as all others."""
        depths = self.depths(schema)
        return (*(Group(str(i + 1)) for i in range(depths)), *((Group("shares", depths),) if depths else ()))

    def depths(self, schema: Schema) -> int:
        """How often the boxes are cut: at most until every one could be a single combination of codes."""
        axes = self._axes(schema)
        most = min(MOST_DEPTHS, sum((axis.size - 1).bit_length() for axis in axes))
        if self.height is not None or not most:
            return min(self.height or 0, most)
        return min(told_apart(self.users, float(self._oracle(256).variance(1))), most)

    def run(self, schema: Schema) -> Run:
        """From the top down: ask, cut every box at its median, ask the next group; at the end ask for the shares."""
        axes, attributes, depths = self._axes(schema), several_codes(schema), self.depths(schema)
        cuts = Cuts.start(axes, depths, max(len(attributes), 1))
        reports = []
        for depth in range(depths):
            attribute = attributes[depth % len(attributes)]
            asked, partition = cuts.grid(attribute)
            question = Question(asked, partition, self._oracle(partition.cells))
            tally = (yield {str(depth + 1): question})[str(depth + 1)]
            report = DepthReport.of(cuts.borders(attribute), question.oracle, tally)
            cuts = cuts.halved(attribute, report, self.medians == "non_negative")
            reports.append(report)
        if depths:
            asked, partition = cuts.grid_of_boxes()
            question = Question(asked, partition, self._oracle(partition.cells))
            tally = (yield {"shares": question})["shares"]
            reports.append(DepthReport.of(cuts.used, question.oracle, tally))
        errors, shares = NodeErrors.of(cuts.tree, reports)
        leaves = cuts.tree.leaves
        return BoxesEstimate(schema, True, cuts.tree.lo[leaves], cuts.tree.hi[leaves], shares[leaves], errors)

    def _axes(self, schema: Schema) -> tuple[Axis, ...]:
        axes = axes_of(schema)
        if len(axes) > 2:
            raise ValueError(f"expected at most 2 attributes for {self.name}, got {len(axes)}")
        check_ordered(axes, self.name)
        return axes

    def _oracle(self, cells: int) -> LinearOracle:
        return named_oracle(self.oracle, self.epsilon, cells)


def told_apart(users: int, variance: float) -> int:
    """The height h at which a box's share, 2^-h, is the standard deviation of its estimate from one of h groups."""
    height = 1
    while height < MOST_DEPTHS and _steps(2.0 ** -(height + 1)) >= _steps(sqrt(variance * (height + 1) / users)):
        height += 1
    return height


def _steps(share: float) -> int:
    return round(share * SPATIAL_HEIGHT)  # A12
