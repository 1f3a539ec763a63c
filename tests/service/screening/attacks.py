"""Attackers, to measure what the screens see: fake reports that all speak for a few target cells.

`python -m benchmarks.attacks` runs them against every oracle; docs/threat-model.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ahead_ldp.device.laws.hashing import PRIME
from ahead_ldp.oracles import GRR, OLH, SS, SW, Oracle
from ahead_ldp.oracles.base import LinearOracle, pack_integers
from ahead_ldp.oracles.signs import SignOracle
from ahead_ldp.oracles.unary import UnaryOracle
from ahead_ldp.schema.arrays import Bytes, Ints
from ahead_ldp.service.screening.screens import screen_group

_TRIES = 64  # hashes that a fake tries before it takes the best


@dataclass(frozen=True, slots=True)
class Finding:
    """One attacked wave: the screens' deviates, and how far the targets' share moved."""

    screens: dict[str, float]
    moved: float | None

    def seen(self, hold_z: float) -> bool:
        """Whether the wave would be held."""
        return any(z > hold_z for z in self.screens.values())


def plain(oracle: Oracle, targets: Ints, n: int, rng: Generator) -> Bytes:
    """Maximal gain (Cao, Jia, Gong 2021): support the targets as much as one report can, and nothing else."""
    if isinstance(oracle, UnaryOracle):
        bits = np.zeros((n, oracle.d), bool)
        bits[:, targets] = True
        return np.packbits(bits, axis=1, bitorder="little")
    return padded(oracle, targets, n, rng)


def padded(oracle: Oracle, targets: Ints, n: int, rng: Generator) -> Bytes:
    """The same, with everything else as honest reports have it: number of ones, rows, hashes."""
    if isinstance(oracle, UnaryOracle):
        return _padded_unary(oracle, targets, n, rng)
    if isinstance(oracle, SS):
        return _subsets(oracle, targets, n, rng)
    if isinstance(oracle, OLH):
        return _chosen_hashes(oracle, targets, n, rng)
    if isinstance(oracle, SignOracle):
        row, own = rng.integers(0, oracle.law.order, n), rng.choice(targets, n)
        return pack_integers(2 * row + oracle._sign(row, own), oracle.report_bytes)
    if isinstance(oracle, SW):
        return pack_integers(rng.choice(targets, n) + oracle.law.b, oracle.report_bytes)
    assert isinstance(oracle, GRR)
    return pack_integers(rng.choice(targets, n), oracle.report_bytes)


def lying(oracle: Oracle, targets: Ints, n: int, rng: Generator) -> Bytes:
    """Devices that keep the protocol and lie about the value. Nothing tells them from people with that value."""
    return oracle.perturb(rng.choice(targets, n), rng)


ATTACKS: dict[str, Callable[[Oracle, Ints, int, Generator], Bytes]] = {"plain": plain, "padded": padded, "lying": lying}


def attacked_wave(oracle: Oracle, codes: Ints, targets: Ints, fakes: float, attack: str, rng: Generator) -> Finding:
    """A wave of honest people with these codes, a share of whom is replaced by fakes, screened."""
    reports = oracle.perturb(codes, rng)
    count = round(fakes * codes.size)
    if count:
        reports[rng.permutation(codes.size)[:count]] = ATTACKS[attack](oracle, targets, count, rng)
    tally = oracle.tally(reports)
    moved = None
    if isinstance(oracle, LinearOracle):
        moved = float(oracle.estimate(tally)[targets].sum() - np.isin(codes, targets).mean())
    return Finding(screen_group(oracle, tally, lambda: [reports], rng), moved)


def _padded_unary(oracle: UnaryOracle, targets: Ints, n: int, rng: Generator) -> Bytes:
    """All targets, and as many random others as an honest number of ones leaves room for."""
    wanted = rng.binomial(oracle.d - 1, oracle.q, n) + (rng.random(n) < oracle.p)
    order = rng.random((n, oracle.d))
    order[:, targets] = -1.0 - rng.random((n, targets.size))  # first, and in random order if they do not all fit
    rank = order.argsort(axis=1).argsort(axis=1)
    return np.packbits(rank < wanted[:, None], axis=1, bitorder="little")


def _subsets(oracle: SS, targets: Ints, n: int, rng: Generator) -> Bytes:
    order = rng.random((n, oracle.d))
    order[:, targets] -= 2.0
    rank = order.argsort(axis=1).argsort(axis=1)
    return np.packbits(rank < oracle.law.w, axis=1, bitorder="little")


def _chosen_hashes(oracle: OLH, targets: Ints, n: int, rng: Generator) -> Bytes:
    """Of some random hashes the one, with its value, that supports most targets."""
    best = np.zeros((n, oracle.report_bytes), np.uint8)
    most = np.full(n, -1)
    g = oracle.law.g
    for _ in range(_TRIES):
        a, b, c = rng.integers(0, PRIME, size=(3, n))
        h = g * ((((a[:, None] * targets + b[:, None]) % PRIME) * targets + c[:, None]) % PRIME) // PRIME
        hits = (h[:, :, None] == np.arange(g)).sum(axis=1)  # (n, g)
        y, count = hits.argmax(axis=1), hits.max(axis=1)
        better = count > most
        made = np.hstack([*(pack_integers(x, 4) for x in (a, b, c)), pack_integers(y, oracle.report_bytes - 12)])
        best[better], most = made[better], np.maximum(most, count)
    return best
