"""Checks on what came in: does a wave look like honest devices made it?

Each oracle has the screens that its law allows. All are on one scale, standard deviations of a normal, and hold for
every distribution of true values. docs/threat-model.md says what they see, and what they cannot see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator

from ahead_ldp.oracles import OLH, SS, SW, LinearOracle, Oracle, Tally
from ahead_ldp.oracles.bits import popcount_rows
from ahead_ldp.oracles.signs import SignOracle
from ahead_ldp.oracles.unary import UnaryOracle
from ahead_ldp.protocol.mechanism import Tallies
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.arrays import Bytes, Ints
from ahead_ldp.service.screening.cooccurrence import pair_screens
from ahead_ldp.service.screening.deviates import chi_square, distribution, half_squares, largest_of, wilson_hilferty
from ahead_ldp.service.screening.joint_fit import joint_fit

SAMPLE = 50_000  # reports that co-occurrence looks at
FEWEST = 50  # reports below which nothing is said
_COEFFICIENTS = 3  # of a hash: a, b and c

Rows = Callable[[str], Iterable[Bytes]]


@dataclass(frozen=True, slots=True)
class Screen:
    """One check: how far it is out, in standard deviations, and of how many reports."""

    name: str
    z: float
    n: int
    group: str = ""

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {"screen": self.name, "group": self.group, "z": round(min(self.z, 1e6), 3), "n": self.n}


@dataclass(frozen=True, slots=True)
class WaveScreens:
    """All checks of a wave. It is held if one of them is further out than ``hold_z``."""

    screens: tuple[Screen, ...]
    hold_z: float

    @property
    def hold(self) -> bool:
        """Whether an operator has to look first."""
        return any(screen.z > self.hold_z for screen in self.screens)

    def record(self) -> dict[str, Any]:
        """As plain data, the furthest out first."""
        ordered = sorted(self.screens, key=lambda s: -s.z)
        return {"hold": self.hold, "hold_z": self.hold_z, "screens": [s.record() for s in ordered]}


def screen_wave(
    session: Session, tallies: Tallies, shares: Mapping[str, int], rows: Rows, rng: Generator, hold_z: float
) -> WaveScreens:
    """Screen the open wave of a session, counted but not yet told. ``rows(group)`` gives its payloads, twice if asked.

    The sample is drawn from ``rng`` and not from the reports' ids, which an attacker chooses.
    """
    screens: list[Screen] = []
    for group, tally in tallies.items():
        if tally.n >= FEWEST:
            deviates = screen_group(session.wave[group].oracle, tally, partial(rows, group), rng)
            screens += [Screen(name, z, tally.n, group) for name, z in deviates.items()]
    screens += _balance(tallies, shares)
    screens += [Screen(f"joint_fit {attribute}", z, n) for attribute, z, n in joint_fit(session, tallies)]
    return WaveScreens(tuple(screens), hold_z)


def screen_group(oracle: Oracle, tally: Tally, rows: Callable[[], Iterable[Bytes]], rng: Generator) -> dict[str, float]:
    """The screens that the oracle's law allows, by name."""
    deviates: dict[str, float | None] = {**below_zero(oracle, tally), "raw_sum": raw_sum(oracle, tally)}
    if isinstance(oracle, UnaryOracle):
        deviates["ones_histogram"] = ones_histogram(oracle, rows())
    if isinstance(oracle, SignOracle):
        deviates["rows"] = chi_square(tally.counts[0::2] + tally.counts[1::2], np.full(oracle.law.order, 1.0))
    if isinstance(oracle, SW):
        deviates["fit"] = wave_fit(oracle, tally)
    if isinstance(oracle, OLH):
        deviates |= hash_screens(oracle, rows())
    if isinstance(oracle, UnaryOracle | SS | OLH) and oracle.d > 2:
        share = min(1.0, SAMPLE / tally.n)
        sample = (some[rng.random(len(some)) < share] for some in rows())
        deviates |= pair_screens(oracle, tally, sample)
    return {name: z for name, z in deviates.items() if z is not None}


def below_zero(oracle: Oracle, tally: Tally) -> dict[str, float | None]:
    """How far the lowest cell, and all low cells together, lie below what nobody's value would give.

    Fakes elsewhere push all others down. An honest cell is at or above that, so the squares of the negative deviates
    add up to at most what those of standard normal deviates would.
    """
    n = tally.n
    if isinstance(oracle, LinearOracle):
        z = oracle.estimate(tally) / np.sqrt(oracle.variance(n, 0.0))
    elif isinstance(oracle, SW):
        z = (tally.counts - n * oracle.q) / sqrt(n * oracle.q * (1 - oracle.q))
    else:
        return {}
    together = float((np.minimum(z, 0.0) ** 2).sum())
    return {
        "below_zero_lowest": largest_of(float(-z.min()), z.size),
        "below_zero_together": half_squares(together, z.size),
    }


def raw_sum(oracle: Oracle, tally: Tally) -> float | None:
    """How far the raw estimates' sum lies from 1. For unary encodings this is the mean number of ones."""
    if not isinstance(oracle, LinearOracle):
        return None
    estimate = oracle.estimate(tally)
    variance = float(oracle.quadratic(tally.n, distribution(estimate), np.ones(oracle.d)))
    if variance * tally.n < 1e-9:  # the sum is 1 whatever came in
        return None
    return abs(float(estimate.sum()) - 1) / sqrt(variance)


def ones_histogram(oracle: UnaryOracle, rows: Iterable[Bytes]) -> float | None:
    """Chi-square of the numbers of ones against their law, which does not depend on the value."""
    from scipy.special import gammaln

    others, k = oracle.d - 1, np.arange(oracle.d)
    choose = gammaln(others + 1) - gammaln(k + 1) - gammaln(others - k + 1)
    law = np.exp(choose + k * np.log(oracle.q) + (others - k) * np.log1p(-oracle.q))
    law = np.convolve(law, [1 - oracle.p, oracle.p])
    counts: Ints = np.zeros(oracle.d + 1, np.int64)
    for some in rows:
        counts += np.bincount(popcount_rows(some), minlength=oracle.d + 1)
    return chi_square(counts, np.maximum(law, 1e-300))


def hash_screens(oracle: OLH, rows: Iterable[Bytes]) -> dict[str, float | None]:
    """Coefficients and hash values are uniform on honest devices."""
    top = np.zeros((_COEFFICIENTS, 128), np.int64)  # of each the top byte of a number below 2**31
    values = np.zeros(oracle.law.g, np.int64)
    for some in rows:
        *coefficients, hashed = oracle.fields(some)
        for i, column in enumerate(coefficients):
            top[i] += np.bincount(column >> 24, minlength=128)
        values += np.bincount(hashed, minlength=oracle.law.g)
    deviates = [chi_square(row, np.full(128, 1.0)) for row in top]
    worst = max((z for z in deviates if z is not None), default=None)
    return {
        "coefficients": None if worst is None else largest_of(worst, _COEFFICIENTS),
        "hash_values": chi_square(values, np.full(oracle.law.g, 1.0)),
    }


def wave_fit(oracle: SW, tally: Tally) -> float:
    """Chi-square of the outcomes against the law of the best fitting frequencies."""
    expected = tally.n * oracle.outcome_probabilities(oracle.em(tally))
    value = float(((tally.counts - expected) ** 2 / np.maximum(expected, 1e-9)).sum())
    return wilson_hilferty(value, max(oracle.outcomes - 1, 1))


def _balance(tallies: Tallies, shares: Mapping[str, int]) -> list[Screen]:
    """Chi-square of the groups' sizes against their shares: who chooses a group shows here."""
    standing = [group for group, tally in tallies.items() if tally.n]
    counts = np.array([tallies[group].n for group in standing], float)
    if len(standing) < 2:
        return []
    z = chi_square(counts, np.array([shares[group] for group in standing], float))
    return [] if z is None else [Screen("group_balance", z, int(counts.sum()))]
