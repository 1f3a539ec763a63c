"""TDG and HDG (YLWLS20: Yang, Wang, Li, Cheng, Su, VLDB 2020): grids of pairs and of single attributes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from math import exp, floor, log2, sqrt
from typing import ClassVar, Self

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import exact_epsilon
from ahead_ldp.device.partition import Axis
from ahead_ldp.estimates.grids import Grid
from ahead_ldp.mechanisms.grain import GRIDS_COLUMNS
from ahead_ldp.mechanisms.grids.grid_estimates import GridEstimate
from ahead_ldp.oracles import named_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol import mechanism as asking
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, axes_of, dotted, several_codes

ROUNDINGS = ("power_of_two", "exact")
UPDATES = ("published", "complement")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grids(Mechanism):
    """What TDG and HDG share: one wave, a group of equal share for each grid."""

    users: int = 1_000_000  # where nobody declares how many will come
    oracle: str = "oue"
    rounding: str = "power_of_two"
    update: str = "published"
    alpha1: float = 0.7  # as published (YLWLS20; docs/methods/grids/hdg.md)
    alpha2: float = 0.03  # as published (YLWLS20; docs/methods/grids/hdg.md)

    def __post_init__(self) -> None:
        """Raise ValueError for a choice that the method does not have."""
        Mechanism.__post_init__(self)
        asking.check_count("users", self.users)
        asking.check_choice("rounding", self.rounding, ROUNDINGS)
        asking.check_choice("update", self.update, UPDATES)
        for field in ("alpha1", "alpha2"):
            if not 0 < getattr(self, field) < float("inf"):
                raise ValueError(f"expected {field} > 0, got {getattr(self, field)!r}")
        named_oracle(self.oracle, self.epsilon, 2)

    @classmethod
    def strong(cls, *, epsilon: float | str | Fraction, users: int) -> Self:
        """The best setting found at the same epsilon (docs/methods/grids/hdg.md)."""
        return cls(epsilon=epsilon, users=users, oracle="best", update="complement")

    @abstractmethod
    def attribute_sets(self, schema: Schema) -> list[tuple[int, ...]]:
        """The attributes of each grid; attributes of one value are in none."""

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One group for each grid, named by its attributes' places."""
        return tuple(Group(dotted(attributes)) for attributes in self.attribute_sets(schema))

    def granularities(self, schema: Schema) -> tuple[int, int]:
        """g1 and g2 for this schema: columns of a one-attribute grid, and of each side of a pair's."""
        groups, epsilon = max(len(self.attribute_sets(schema)), 1), float(exact_epsilon(self.epsilon))
        round_to = _power_of_two if self.rounding == "power_of_two" else _nearest
        g1 = round_to(one_attribute_granularity(self.users, epsilon, groups, self.alpha1))
        g2 = round_to(two_attribute_granularity(self.users, epsilon, groups, self.alpha2))
        return max(g1, g2), g2

    def run(self, schema: Schema) -> Run:
        """Ask for all grids at once, make them agree, put each pair's together."""
        questions = {dotted(a): self._question(schema, a) for a in self.attribute_sets(schema)}
        tallies = (yield questions) if questions else {}
        grids = [Grid.of(q.attributes, q.partition, q.oracle, tallies[group]) for group, q in questions.items()]
        complement, tolerance = self.update == "complement", 1 / self.users
        return GridEstimate.of(schema, grids, tolerance=tolerance, complement=complement)

    def _question(self, schema: Schema, attributes: tuple[int, ...]) -> Question:
        axes, (g1, g2) = axes_of(schema, attributes), self.granularities(schema)
        if len(axes) == 1:
            partition = Partition.grid(axes, [nested_borders(axes[0], g1, g2)[1:-1]])
        else:
            partition = Partition.equal_grid(axes, [g2] * len(axes))
        return Question(attributes, partition, named_oracle(self.oracle, self.epsilon, partition.cells))


@dataclass(frozen=True, slots=True, kw_only=True)
class HDG(_Grids):
    """Hybrid-dimensional grids: one of g1 columns for each attribute, one of g2 x g2 cells for each pair.

    ``users`` is the number of people expected; with epsilon it fixes the granularities (YLWLS20), rounded
    to a power of two as published or to the nearest integer ("exact"). ``oracle`` is a registered name, "adaptive" (the
    paper's choice of GRR or OLH) or "best". ``update`` is how answers of pairs become answers on more attributes.
    """

    name: ClassVar[str] = "hdg"
    idea: ClassVar[str] = "grids of pairs and of single attributes"
    source: ClassVar[str] = "Yang et al., VLDB 2020"

    def attribute_sets(self, schema: Schema) -> list[tuple[int, ...]]:
        """Every attribute, then every pair."""
        several = several_codes(schema)
        return [(a,) for a in several] + list(combinations(several, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class TDG(_Grids):
    """Two-dimensional grids: HDG without the grids of single attributes, values uniform inside a cell.

    With fewer than two attributes there is no pair, and it is HDG's grid of that attribute.
    """

    name: ClassVar[str] = "tdg"
    idea: ClassVar[str] = "a grid for each pair of attributes"
    source: ClassVar[str] = "Yang et al., VLDB 2020"

    def attribute_sets(self, schema: Schema) -> list[tuple[int, ...]]:
        """Every pair."""
        several = several_codes(schema)
        return list(combinations(several, 2)) if len(several) > 1 else [(a,) for a in several]


def one_attribute_granularity(users: int, epsilon: float, groups: int, alpha1: float = 0.7) -> float:
    """g1 of least squared error: noise of half the columns against the bias (alpha1 / g1)^2 of the two that are cut."""
    e = exp(epsilon)
    return float((users * (e - 1) ** 2 * alpha1**2 / (2 * groups * e)) ** (1 / 3))


def two_attribute_granularity(users: int, epsilon: float, groups: int, alpha2: float = 0.03) -> float:
    """g2 of least squared error: noise of a quarter of the cells against the bias of those on the box's edges."""
    e = exp(epsilon)
    return sqrt(2 * alpha2 * (e - 1) * sqrt(users / (groups * e)))


def nested_borders(axis: Axis, g1: int, g2: int) -> list[int]:
    """The columns of a one-attribute grid: the g2 columns of the pairs' grids, each cut further, about g1 in all.

    For a size that g1 divides these are g1 equal columns. Otherwise equal ones could lie across the pairs' borders, and
    slab sums could not be compared.
    """
    coarse = axis.parts(0, axis.size, g2)
    ordered = sum(lo < axis.size - axis.missing for lo in coarse[:-1])
    borders = [0]
    for j, (lo, hi) in enumerate(pairwise(coarse)):
        parts = (j + 1) * g1 // ordered - j * g1 // ordered
        borders += axis.parts(lo, hi, max(parts, 1))[1:]
    return borders


def _nearest(g: float) -> int:
    return max(2, floor(_steady(g) + 0.5))


def _power_of_two(g: float) -> int:
    """The nearest power of two, ties down, at least 2 (as published)."""
    g = max(_steady(g), 1.0)
    below = 2 ** floor(log2(g))
    return int(max(2, below if g - below <= 2 * below - g else 2 * below))


def _steady(g: float) -> float:
    """Rounded, so that the last bit of ``exp`` does not ask another question."""
    return round(g * GRIDS_COLUMNS) / GRIDS_COLUMNS  # A12
