"""Experiments as data: figures, panels and lines, and behind every point a cell: one setting of people and method.

A cell is all that is needed to run it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence

from ahead_ldp.device.canonical import digest
from ahead_ldp.device.codes import Schema
from ahead_ldp.mechanisms import MECHANISMS, known_method
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.research.datasets.tables import DATASETS
from ahead_ldp.research.evaluation import SETTINGS, choose
from ahead_ldp.schema.attributes import as_schema, codes
from ahead_ldp.schema.registry import Registry

SEED = 2021
LAW = 1  # raised when people, queries or what is measured are made in another way: stored results are then run again

# What a line of a figure is called, and the registered method with its settings behind it.
METHODS: dict[str, tuple[str | None, str]] = {
    "AHEAD": ("ahead", "paper"),
    "DE": ("ahead", "paper"),
    "LLE": ("lle", "paper"),
    "HIO": ("hio", "paper"),
    "DHT": ("dht", "paper"),
    "CALM": ("calm", "paper"),
    "HDG": ("hdg", "paper"),
    "Uni": ("uni", "default"),
    "default": (None, "default"),
}
# Methods of an experiment alone, which nobody would collect with.
EXPERIMENTAL: Registry[Any] = Registry(
    "method", {"unprocessed": "ahead_ldp.research.experiments.unprocessed:UnprocessedAHEAD"}
)


@dataclass(frozen=True, slots=True)
class Data:
    """Which people: a data set or shape, its columns, the codes of each attribute, how many, how tied or skewed.

    Or those of a ``file`` under a ``declared`` schema, whose attributes take the columns in order.
    """

    name: str
    sizes: tuple[int, ...]
    n: int
    columns: tuple[str, ...] = ()
    r: float | None = None
    skew: float = 0.0
    file: str = ""
    declared: Schema | None = None

    @property
    def id(self) -> str:
        """A short text, different for different people."""
        parts = [self.name, *self.columns, "x".join(map(str, self.sizes)), f"n={self.n}"]
        parts += [] if self.r is None else [f"r={self.r:g}"]
        parts += [f"skew={self.skew:g}"] * bool(self.skew)
        parts += [] if self.declared is None else [self.declared.digest()[:8]]
        return " ".join(parts)

    @property
    def schema(self) -> Schema:
        """As declared, or attributes of plain codes."""
        if self.declared is not None:
            return self.declared
        return as_schema([codes(name, size) for name, size in zip(self.names, self.sizes, strict=True)])

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, or x1, x2, ..."""
        return self.columns or tuple(f"x{i + 1}" for i in range(len(self.sizes)))

    @property
    def title(self) -> str:
        """The name for people."""
        if self.file:
            return self.name
        return DATASETS[self.name].title if self.name in DATASETS else self.name.capitalize()

    @property
    def stamp(self) -> str:
        """Changes when a file does."""
        if not self.file:
            return ""
        status = Path(self.file).stat()
        return f"{status.st_size} {status.st_mtime_ns}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One setting. ``task`` is the metric of its errors, or "leaves": where the tree's leaves are.

    ``theta`` replaces the threshold.
    """

    data: Data
    method: str
    epsilon: float
    repeats: int
    queries: int = 200
    theta: float | None = None
    task: str = "mse"
    seed: int = SEED

    @property
    def id(self) -> str:
        """A short text, different for different settings; tables are sorted by it."""
        parts = [self.data.id, self.method, f"epsilon={self.epsilon:g}"]
        parts += [] if self.theta is None else [f"theta={self.theta:g}"]
        parts += [self.task] * (self.task != "mse")
        parts += [f"queries={self.queries}"] * (self.queries != 200) + [f"seed={self.seed}"] * (self.seed != SEED)
        return " | ".join(parts)

    @property
    def mechanism(self) -> Mechanism:
        """The method as it will run."""
        epsilon = f"{self.epsilon:g}"
        if self.method in EXPERIMENTAL:
            scale = 1.0 if self.theta is None else max(self.theta / paper_theta(self.data, self.epsilon), 1e-9)
            return EXPERIMENTAL[self.method](epsilon=epsilon, scale=scale)
        name, settings = METHODS[self.method] if self.method in METHODS else split_method(self.method)
        return choose(name, self.data.schema, epsilon, self.data.n, settings)[0]

    @property
    def key(self) -> str:
        """A digest of everything that the results depend on; a result stored under another key is run again."""
        method: Any = self.mechanism.record()
        return digest(
            {"law": LAW, "cell": self.id, "method": method, "repeats": self.repeats, "file": self.data.stamp}
        )[:24]


def split_method(text: str) -> tuple[str, str]:
    """A method by its name or ``package.module:Class``, with settings after a colon: "hio", "hio:strong"."""
    name, _, settings = text.rpartition(":")
    if settings not in SETTINGS:
        name, settings = text, "default"
    MECHANISMS.find(known_method(name))
    return name, settings


def rng_of(seed: int, what: str, repetition: int = 0) -> Generator:
    """The generator of one purpose, a function of these three and nothing else."""
    number = int.from_bytes(hashlib.sha256(what.encode()).digest()[:8])
    return np.random.default_rng(SeedSequence(seed, spawn_key=(number, repetition)))


def paper_theta(data: Data, epsilon: float) -> float:
    """The paper's threshold for all levels: sqrt((B + 1) Var), B = 2 to the number of attributes (Eq. 6)."""
    groups = max(data.sizes).bit_length() - 1
    variance = 4 * exp(epsilon) * groups / (data.n * (exp(epsilon) - 1) ** 2)
    return sqrt((2 ** len(data.sizes) + 1) * variance)


@dataclass(frozen=True, slots=True)
class Point:
    """Where a cell's result is drawn; ``y`` is the other axis of a heat map."""

    x: float
    cell: Cell
    y: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """The points of one method; hidden ones are there for the rules alone."""

    method: str
    points: tuple[Point, ...]
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One small picture: the people of its first point say what it is about."""

    name: str
    title: str
    lines: tuple[Line, ...]

    def line(self, method: str) -> Line:
        """The line of this method."""
        return next(line for line in self.lines if line.method == method)

    @property
    def cells(self) -> Iterator[Cell]:
        """Every cell, line by line."""
        return (point.cell for line in self.lines for point in line.points)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the paper: its number there, its label in the source, what is varied, and its panels.

    ``kind`` is "lines", "bars", "theta", "leaves" or "heat".
    """

    name: str
    title: str
    kind: str
    x_label: str
    panels: tuple[Panel, ...]
    y_label: str = "mean squared error"

    @property
    def cells(self) -> list[Cell]:
        """Every cell, each once."""
        return list(dict.fromkeys(cell for panel in self.panels for cell in panel.cells))


def all_cells(figures: Iterable[Figure]) -> list[Cell]:
    """Every cell of some figures, each once, cells on the same people together."""
    cells = dict.fromkeys(cell for figure in figures for cell in figure.cells)
    places: dict[tuple[Data, int], int] = {}
    for cell in cells:
        places.setdefault((cell.data, cell.queries), len(places))
    return sorted(cells, key=lambda cell: places[cell.data, cell.queries])
