"""Forecasts without a simulation: tables of what was simulated before, and what stands between their nodes.

`python -m tools.forecasts` makes the tables (decision 026). One holds the error and the widths of intervals of a method
on the reference populations, over the size of attributes, the noise of all reports together, epsilon, and how many
attributes there are. Between nodes the logarithms are interpolated linearly. A table says which versions of the method
it was simulated with; with another version, or outside of what was simulated, nothing is read from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import exp, expm1, hypot, log2, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.device.epsilon import epsilon_text
from ahead_ldp.mechanisms import MECHANISMS, class_of
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.research.evaluation import choose, workload_rng
from ahead_ldp.research.references import QUERIES, SEED, reference_shares
from ahead_ldp.research.widths import BOXES, KINDS, LEVEL, QUANTILES
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.workloads import random_workload

Source = Literal["table", "simulation"]

PATH = Path(__file__).with_name("forecasts.npz")
SIZES = ("mse", "error", *KINDS)  # what is foretold: mean squared error, its 95 % point, half widths
STEP = 2e-3  # of the natural logarithms in the file
_NOISE_REACH = 8.0  # of a quantile's interval, in standard deviations of a share: left-out ones are foretold best
_NOMINAL_CODES = 4  # of a nominal attribute that is told as exactly as an ordered one: left-out ones are foretold best
_NORMAL = 64  # points that stand for a normal error
_ROOM = 1e-9  # tolerance: at the ends of what was simulated


class NotTabled(LookupError):
    """No table speaks of a collection; the text says why."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What to expect on each reference population: sizes by shape, as far as the attributes have them."""

    mse: dict[str, float]
    error: dict[str, float]  # that 95 % of random range answers stay within
    half: dict[str, dict[str, float | None]]  # of intervals, by kind of question
    scatter: float  # standard deviation of one run's mean squared error, over its mean
    doubt: float  # of the table: 95 % of its logarithms of mean squared errors are so close to the simulation's mean


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """One method on one kind of attributes."""

    about: Mapping[str, Any]  # method, settings, versions, shapes, what was simulated, how exact it is
    axes: tuple[Floats, ...]  # of every coordinate its nodes
    nodes: Ints  # (size, shape, *axes): natural logarithms, in steps
    base: Table | None = None  # to which this one is what more attributes add: the logarithms are summed

    @property
    def versions(self) -> tuple[int, int]:
        """Of the method's questions and of its estimate."""
        questions, estimate = self.about["versions"]
        return questions, estimate

    def takes(self, attributes: int) -> bool:
        """Whether so many were simulated."""
        least, most = self.about["simulated"]["attributes"]
        return bool(least <= attributes <= most)

    def expect(self, schema: Schema, users: int, epsilon: float) -> Outlook:
        """What lies between the nodes around a collection; ``NotTabled`` outside of what was simulated."""
        self._check(schema, users, epsilon)
        logs, found = self.logarithms(coordinates(schema.sizes, users, epsilon)), dict[str, dict[str, float]]()
        for i, size in enumerate(SIZES):
            values = np.exp(logs[i]) * [weight(size, shape, schema, users, epsilon) for shape in self.about["shapes"]]
            found[size] = dict(zip(self.about["shapes"], values.tolist(), strict=True))
        ordered = any(map(_ordered, schema.attributes))
        half: dict[str, dict[str, float | None]] = {}
        for shape in self.about["shapes"]:
            half[shape] = {kind: found[kind][shape] for kind in KINDS}
            if not ordered:
                half[shape]["quantile"] = None
        return Outlook(found["mse"], found["error"], half, self.about["scatter"], self.about["doubt"])

    def logarithms(self, at: Sequence[float]) -> Floats:  # -> (size, shape)
        """What lies between the nodes around a point."""
        weights, places = corners(self.axes, at)
        own: Floats = STEP * np.tensordot(self.nodes.reshape(*self.nodes.shape[:2], -1)[..., places], weights, 1)
        return own if self.base is None else own + self.base.logarithms(at)

    def _check(self, schema: Schema, users: int, epsilon: float) -> None:
        within, sizes = self.about["simulated"], schema.sizes
        nominal = sum(a.kind == "nominal" for a in schema.attributes) / len(sizes)
        if nominal > within["share of nominal attributes"]:
            raise NotTabled(
                f"in the tables at most {within['share of nominal attributes']:.0%} of attributes are nominal"
            )
        given = [
            ("attributes", len(sizes)),
            ("codes", min(sizes)),
            ("codes", max(sizes)),
            ("codes, in the geometric mean", 2 ** _bits(sizes)),
            ("people", users),
            ("people for every attribute and pair", users / questions(len(sizes))),
            ("epsilon", epsilon),
            ("standard deviation of a share", deviation(comparable(len(sizes), users), epsilon)),
        ]
        for what, value in given:
            least, most = within[what]
            if not least * (1 - _ROOM) <= value <= most * (1 + _ROOM):
                reached = f"from {_plain(least)} to {_plain(most)}"
                raise NotTabled(f"the tables have {what} {reached}, got {_plain(value)}")


def look_up(mechanism: Mechanism, schema: Schema, users: int) -> Outlook:
    """What a table says of a collection; ``NotTabled``, with the reason, where none does."""
    own = [table for table in tables() if _is_of(table, mechanism, schema, users)]
    if not own:
        raise NotTabled(f"there is no table of the method {mechanism.name} with these settings and attributes")
    table = next((table for table in own if table.takes(len(schema.sizes))), own[-1])
    if table.versions != (mechanism.version, mechanism.estimate_version):
        raise NotTabled(f"the table of {mechanism.name} was made with an earlier version of it")
    return table.expect(schema, users, float(epsilon_text(mechanism.epsilon)))


@cache
def tables() -> tuple[Table, ...]:
    """Those that ship with the package."""
    return read(PATH)


def read(path: Path) -> tuple[Table, ...]:
    """The tables of a file."""
    with np.load(path) as file:
        found = dict[str, Table]()
        for about in json.loads(str(file["about"])):  # a base stands before what is over it
            axes = tuple(np.array(axis) for axis in about["axes"].values())
            nodes = file[about["name"]].astype(np.int64)
            found[about["name"]] = Table(about, axes, nodes, found.get(about.get("base", "")))
        return tuple(found.values())


def coordinates(sizes: Sequence[int], users: int, epsilon: float) -> tuple[float, ...]:
    """Where a collection lies in a table: attributes, and the logarithms of codes, noise and epsilon."""
    alike = comparable(len(sizes), users)
    return len(sizes), _bits(sizes), log2(deviation(alike, epsilon)), log2(epsilon)


def comparable(attributes: int, users: float) -> float:
    """How many people give two attributes groups of the same size.

    One attribute's groups, and with them one pair's, have the same part of fewer people: the share that is asked about
    single attributes falls so that both stay in proportion (``Fused.single_share``).
    """
    if attributes <= 2:
        return users
    method: Any = class_of("fused")(epsilon=1)
    return float(users * (method.single_share(attributes) / attributes) / (method.single_share(2) / 2))


def questions(attributes: int) -> int:
    """Attributes and pairs of them."""
    return attributes * (attributes + 1) // 2


def deviation(users: float, epsilon: float) -> float:
    """About the standard deviation of the share of a half, if everybody were asked about it (OLH's, WBLJ17 Eq. 11).

    A quarter more in the variance stands for who is drawn into a group: it is what is left where noise ends.
    """
    return sqrt((4 * exp(epsilon) / expm1(epsilon) ** 2 + 0.25) / users)


def weight(size: str, shape: str, schema: Schema, users: int, epsilon: float) -> float:
    """In what units a table has a size.

    With several attributes errors of ranges are over what an error of single attributes makes of them. If these are
    independent, an error e of the share inside one side of a box changes the answer by e times the shares inside its
    other sides. With three and more, sides that hold nearly nobody or everybody have less error, those of many
    unordered codes have more, and the 95 % point is that of normal errors of so many sizes. The interval of a quantile
    reaches over a code, or over what noise makes of it where that is more. That of a range of three attributes and more
    reaches over what pairs leave open, likewise.
    """
    sizes = schema.sizes
    if size == "quantile":
        noise = _NOISE_REACH * deviation(comparable(len(sizes), users), epsilon)
        reached = [hypot(noise, 1 / a.size) for a in schema.attributes if _ordered(a)][:QUANTILES]
        return float(np.mean(reached)) if reached else 1.0
    if size == "range" and len(sizes) > 2:
        noise = _NOISE_REACH * deviation(comparable(len(sizes), users), epsilon)
        return hypot(noise, _untold(shape, tuple(sizes))) / noise
    if size not in ("mse", "error") or len(sizes) == 1:
        return 1.0
    sides = _sides(shape, tuple(sizes))
    others = [np.prod(np.delete(sides, a, axis=1), axis=1) for a in range(len(sizes))]
    if len(sizes) == 2:
        squares = np.sum(np.square(others), axis=0)
        return float(np.mean(squares) if size == "mse" else sqrt(np.quantile(squares, LEVEL)))
    unordered = [sqrt(a.size / _NOMINAL_CODES) if a.kind == "nominal" else 1.0 for a in schema.attributes]
    sides = np.clip(sides, 0.0, 1.0)  # shares that are added up may be a little more
    squares = np.sum(np.square(others) * (sides * (1 - sides) * unordered).T, axis=0)
    if size == "mse":
        return float(np.mean(squares))
    return float(np.quantile(np.sqrt(squares)[:, None] * _normal(), LEVEL))


@cache
def _normal() -> Floats:
    """Distances from 0 of a normal error, evenly likely."""
    normal = NormalDist()
    return np.array([normal.inv_cdf(0.5 + (k + 0.5) / (2 * _NORMAL)) for k in range(_NORMAL)])


def _untold(shape: str, sizes: tuple[int, ...]) -> float:
    """Half the width of what all pairs together leave open about a box: from nobody to the least of its pairs."""
    sides = np.sort(_sides(shape, sizes, BOXES), axis=1)
    return float(np.mean(sides[:, 0] * sides[:, 1])) / 2


@lru_cache(maxsize=64)
def _sides(shape: str, sizes: tuple[int, ...], queries: int = QUERIES) -> Floats:  # -> (queries, attributes)
    """The share of people inside each side of a plan's random queries."""
    boxes = random_workload(sizes, queries, workload_rng(SEED)).boxes.astype(np.int64)
    below = [np.append(0.0, np.cumsum(share)) for share in reference_shares(shape, sizes)]
    return np.stack([b[boxes[:, a, 1]] - b[boxes[:, a, 0]] for a, b in enumerate(below)], axis=1)


def corners(axes: Sequence[Floats], at: Sequence[float]) -> tuple[Floats, Ints]:
    """The nodes around a point, as flat indices, and how much of each there is: linear in every coordinate."""
    weights, places = np.ones(1), np.zeros(1, np.int64)
    for nodes, x in zip(axes, at, strict=True):
        left = int(np.clip(np.searchsorted(nodes, x, side="right") - 1, 0, max(len(nodes) - 2, 0)))
        width = float(nodes[left + 1] - nodes[left]) if len(nodes) > 1 else 1.0
        part = float(np.clip((x - nodes[left]) / width, 0.0, 1.0))
        share = np.array([1 - part, part])[: len(nodes)]
        weights = np.outer(weights, share if len(nodes) > 1 else np.ones(1)).reshape(-1)
        places = (places[:, None] * len(nodes) + left + np.arange(share.size)).reshape(-1)
    return weights, places


def _ordered(attribute: Attribute) -> bool:
    return attribute.kind != "nominal" and attribute.ordered_size > 1


def _plain(number: float) -> str:
    return f"{number:,.4g}" if number < 1000 else f"{number:,.0f}"


def _bits(sizes: Sequence[int]) -> float:
    return float(np.mean(np.log2(sizes)))


def _is_of(table: Table, mechanism: Mechanism, schema: Schema, users: int) -> bool:
    """Whether a mechanism is the table's, as it is planned for so many people.

    How many people a group is to have at least does not matter if it makes no other groups.
    """
    name, settings = table.about["method"], table.about["settings"]
    if mechanism.name != name or type(mechanism) is not MECHANISMS.find(name):
        return False
    ours = choose(name, schema, mechanism.epsilon, users, settings)[0]
    planned: Any = mechanism
    if hasattr(ours, "group_people"):
        planned = replace(planned, group_people=ours.group_people)
    return planned.record() == ours.record() and mechanism.groups(schema) == ours.groups(schema)
