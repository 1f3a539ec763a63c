"""Wavelet expansion (ZZS+25): the coefficients of a density's Haar series, the low orders before the high ones.

ZZS+25: P. Zhao, Zhang, Sun, Li, Zhang, Wang, Liu: Consistent Estimation of Numerical Distributions under Local
Differential Privacy by Wavelet Expansion. arXiv 2509.19661, 2025.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log2, sqrt, tanh
from typing import ClassVar, Self

from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import exact_epsilon
from ahead_ldp.device.partition import Axis
from ahead_ldp.mechanisms.grain import WAVELET_ORDERS
from ahead_ldp.mechanisms.wavelet.wavelet_estimates import Order, WaveletEstimate
from ahead_ldp.oracles import ORACLES, Haar, LinearOracle, adaptive_oracle, choose_oracle, linear_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import (
    Group,
    Mechanism,
    Question,
    Run,
    check_choice,
    check_count,
    check_ordered,
    only_axis,
)

CURVES = ("clipped", "isotonic", "raw")
_SHARES = 1000  # the share of the lowest order, in which the others are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Wavelet(Mechanism):
    """One ordered attribute, one wave. Order k has 2^k coefficients, and a person has a sign in exactly one of them.

    A group for each order. People are divided over the orders in the proportions 2^(-decay k), and there are as many
    orders as ``users`` people can tell apart; above them the density is even. ``oracle`` is a registered name,
    "grr or oue" for the better of the two, or "best", which knows the noisy signs of DHT too. ``curve`` says what makes
    a distribution of the series: "clipped" keeps each coefficient within its interval's share, from the lowest order
    on; "isotonic" takes the nearest rising curve of shares; "raw" takes the series as it is.
    """

    name: ClassVar[str] = "wavelet"
    idea: ClassVar[str] = "wavelet coefficients, low orders first"
    source: ClassVar[str] = "Zhao et al., 2025"
    most_attributes: ClassVar[int | None] = 1
    ordered_only: ClassVar[bool] = True
    users: int = 1_000_000  # where nobody declares how many will come
    decay: float = 0.0  # docs/methods/wavelet/wavelet.md: equal groups
    oracle: str = "best"
    curve: str = "clipped"

    def __post_init__(self) -> None:
        """Raise ValueError for a choice that the method does not have."""
        Mechanism.__post_init__(self)
        check_count("users", self.users)
        check_choice("curve", self.curve, CURVES)
        if not 0 <= self.decay <= 2:
            raise ValueError(f"expected decay from 0 to 2, got {self.decay!r}")
        if self.oracle not in ("best", "grr or oue", "haar"):
            linear_oracle(self.oracle, self.epsilon, 2)

    @classmethod
    def paper(cls, epsilon: float | str | Fraction, users: int = 1_000_000) -> Self:
        """ZZS+25 as far as its abstract goes (docs/methods/wavelet/wavelet.md): the low orders have more people."""
        return cls(epsilon=epsilon, users=users, decay=0.5, oracle="grr or oue", curve="isotonic")

    @classmethod
    def strong(cls, epsilon: float | str | Fraction, users: int = 1_000_000) -> Self:
        """The best setting found at the same epsilon (docs/methods/wavelet/wavelet.md): the default."""
        return cls(epsilon=epsilon, users=users)

    def orders(self, schema: Schema) -> int:
        """How many orders of coefficients are asked about."""
        finest = (self._axis(schema).size - 1).bit_length()
        return min(finest, told_apart(self.users, float(exact_epsilon(self.epsilon))))

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One for each order, the lowest first."""
        return tuple(Group(str(k), max(1, round(_SHARES * 2 ** (-self.decay * k)))) for k in range(self.orders(schema)))

    def run(self, schema: Schema) -> Run:
        """One wave; order k is asked which half of which of its 2^k intervals a value lies in."""
        axis, questions = self._axis(schema), {}
        for k, group in enumerate(self.groups(schema)):
            width = 1 << (axis.size - 1).bit_length() - k - 1
            partition = Partition.grid([axis], [range(width, axis.size, width)])
            questions[group.id] = Question((0,), partition, self._oracle(partition.cells))
        tallies = (yield questions) if questions else {}
        orders = [Order.of(question, tallies[group]) for group, question in questions.items()]
        return WaveletEstimate.of(schema, orders, self.curve)

    def _axis(self, schema: Schema) -> Axis:
        axis = only_axis(schema, self.name)
        check_ordered([axis], self.name)
        return axis

    def _oracle(self, cells: int) -> LinearOracle | Haar:
        if self.oracle == "grr or oue":
            return adaptive_oracle(self.epsilon, cells, ("grr", "oue"))
        if self.oracle not in ("best", "haar"):
            return linear_oracle(self.oracle, self.epsilon, cells)
        signs = ORACLES["haar"].make(self.epsilon, cells)
        assert isinstance(signs, Haar)
        if self.oracle == "haar":
            return signs
        oracle = choose_oracle(self.epsilon, cells).oracle
        return oracle if 2 * oracle.contrast_variance(1) < signs.variance(1, 2 / cells) else signs


def told_apart(users: int, epsilon: float) -> int:
    """The number of orders: leaving out the next would cost less than half of the noise that asking about it adds.

    A noisy sign of a coefficient, told by n people, has the standard deviation 1 / (tanh(epsilon / 2) sqrt(n)), and a
    quarter of that is what an order adds to the Wasserstein distance, whichever it is. Even densities above order k
    add 2^-k / 4 at most (docs/methods/wavelet/wavelet.md).
    """
    orders = log2(tanh(epsilon / 2) * sqrt(users)) + 1
    return max(1, int(round(orders * WAVELET_ORDERS) / WAVELET_ORDERS + 0.5))  # A12
