"""What several test modules share: examples, words from a seed, and bounds that come from theory."""

import dataclasses
from collections.abc import Sequence
from math import prod, sqrt

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from ahead_ldp.device import Axis, Schema
from ahead_ldp.oracles import ORACLES, LinearOracle
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.testing.statistics import PASS, POWER, SeededWords, device_reports, moment_errors, repeat_codes

__all__ = ["PASS", "POWER", "SeededWords", "device_reports", "moment_errors", "repeat_codes"]  # for all tests

LINEAR = [name for name, kind in ORACLES.items() if issubclass(kind, LinearOracle)]


def examples(count: int) -> settings:
    """The same examples in every run: a red test is red for everybody."""
    return settings(derandomize=True, deadline=None, database=None, max_examples=count)


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Chi-square as standard deviations of a normal (Wilson, Hilferty 1931).

    Outcomes expected under 5 times are pooled.
    """
    expected = probabilities * counts.sum()
    rare = expected < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 1e-9:
        assert observed[-1] == 0, "an impossible outcome"
        observed, expected = observed[:-1], expected[:-1]
    freedom = expected.size - 1
    ratio = ((observed - expected) ** 2 / expected).sum() / freedom
    return float((np.cbrt(ratio) - (1 - 2 / (9 * freedom))) / sqrt(2 / (9 * freedom)))


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A measured accuracy that no theory foretells, held as a regression: its value and that value's standard error.

    It is measured once with many seeds, and measured anew where a change of the method moves it, which the change then
    says. A better result breaks it like a worse one: a bound does not follow a result.
    """

    value: float
    standard_error: float

    def check(self, samples: Sequence[float] | np.ndarray, within: float = 4.0) -> None:
        """The mean of independent samples is the recorded value, to four standard errors of both."""
        mean = float(np.mean(samples))
        own = float(np.std(samples, ddof=1)) / sqrt(len(samples))
        off = abs(mean - self.value) / max(sqrt(own**2 + self.standard_error**2), 1e-300)
        assert off < within, (
            f"{mean:.4g} +- {own:.2g} against {self.value} +- {self.standard_error}: {off:.1f} errors off"
        )

    def check_ratio(self, tops: Sequence[float] | np.ndarray, bottoms: Sequence[float] | np.ndarray) -> None:
        """The ratio of two means over the same samples is the recorded one; its error is that of first order."""
        top, bottom = np.asarray(tops), np.asarray(bottoms)
        self.check((top - self.value * (bottom - bottom.mean())) / bottom.mean())


# Domains.


@st.composite
def domains(draw: st.DrawFn, most: int = 3, largest: int = 12) -> tuple[Axis, ...]:
    """Axes of all kinds: ordered, nominal, with a code for missing values."""
    count = draw(st.integers(1, most))
    sizes = [draw(st.integers(1, largest)) for _ in range(count)]
    while prod(sizes) > 600:
        sizes[sizes.index(max(sizes))] //= 2
    return tuple(Axis(size, draw(st.booleans()), size > 1 and draw(st.booleans())) for size in sizes)


@st.composite
def grown_trees(draw: st.DrawFn, most: int = 3, largest: int = 12) -> Tree:
    """A tree after a few rounds of cutting leaves at random."""
    tree = Tree.root(draw(domains(most, largest)), draw(st.integers(2, 5)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(0, 4))):
        tree = tree.split(~tree.is_split & (rng.random(tree.size) < 0.7))[0]
    return tree


def all_codes(axes: Sequence[Axis]) -> np.ndarray:
    """Every record of a domain."""
    return np.indices([axis.size for axis in axes]).reshape(len(axes), -1).T


def random_boxes(sizes: Sequence[int], count: int, rng: np.random.Generator, whole: bool = False) -> np.ndarray:
    """Half-open boxes (count, m, 2): whole ends, ends inside a code, the whole domain and empty boxes."""
    ends = np.sort(rng.random((count, len(sizes), 2)) * np.array(sizes)[None, :, None], axis=-1)
    rounded = rng.random(ends.shape) < (1.0 if whole else 0.6)
    ends = np.where(rounded, np.round(ends), ends)
    ends[0, :, 0], ends[0, :, 1] = 0, sizes
    ends[1, :, 1] = ends[1, :, 0]
    return np.sort(ends, axis=-1)


# 1 to 70 codes: the small ones, powers of the fan-outs 2 to 5 with their neighbours, a square and primes. The others,
# where no tree has a level more and no cell is of another kind, are in `make soak`.
_EDGES = {*range(1, 10), 15, 16, 17, 25, 26, 27, 28, 31, 32, 33, 37, 49, 63, 64, 65, 70}
SIZES = [size if size in _EDGES else pytest.param(size, marks=pytest.mark.soak) for size in range(1, 71)]


# Mechanisms.


def make_mechanism(kind: type[Mechanism], epsilon: float | str = 1.0, users: int = 2000) -> Mechanism:
    """A registered mechanism with its default choices; those that need it are told how many people to expect."""
    names = {f.name for f in dataclasses.fields(kind)}
    return kind(epsilon=epsilon, **({"users": users} if "users" in names else {}))


def takes(kind: type[Mechanism], schema: Schema) -> bool:
    """Whether a mechanism is for attributes of this number and these kinds."""
    few_enough = kind.most_attributes is None or len(schema.attributes) <= kind.most_attributes
    ordered = all(a.kind != "nominal" and a.missing != "cell" for a in schema.attributes)
    return few_enough and (ordered or not kind.ordered_only)


def schema_of(*sizes: int) -> Schema:
    """Attributes x0, x1, ... whose values are codes."""
    return as_schema([f"x{i}=codes,{size}" for i, size in enumerate(sizes)])
