"""What a cell will take, before it is run: processor seconds, from one measured on the reference machine.

The table is for planning and for the progress bar. It was measured on one core of the machine of docs/evaluation.md; a
short calculation says how fast this one is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from math import prod

import numpy as np

from ahead_ldp.research.experiments.cells import Cell

_PROBE_S = 0.023  # `_probe` on the reference machine

# Seconds of one repetition: a fixed part, and per thousand cells of the domain.
_ONE = {"HIO": (0.004, 0.007), "DHT": (0.003, 0.003), "CALM": (0.0015, 0.001), "default": (0.065, 0.025)}
_TWO = {"HDG": (0.012, 1.5e-4), "CALM": (0.004, 2e-4), "default": (0.3, 7e-4)}
_AHEAD = {1: (0.004, 0.002), 2: (0.012, 5e-4)}
_PAIR = {"LLE": 0.012, "HDG": 0.006, "default": 0.1}  # per pair of attributes, queries included
_PER_PERSON = 3e-8  # of dividing a crowd and counting its groups
_PER_PERSON_OF_TWO = 1.1e-7  # where groups are many, of two attributes' histogram: the default's


def seconds(cell: Cell) -> float:
    """Estimated processor seconds of all repetitions of a cell."""
    return 0.002 + cell.repeats * (_repetition(cell) if cell.method != "Uni" else 1e-4)


def _repetition(cell: Cell) -> float:
    m, cells = len(cell.data.sizes), prod(cell.data.sizes) / 1000
    if m <= 2:
        fixed, each = (_ONE if m == 1 else _TWO).get(cell.method, _AHEAD[m])
        people = _PER_PERSON_OF_TWO * cell.data.n if m == 2 and cell.method == "default" else 0.0
        return fixed + each * cells + people
    people = 0.03 if cells <= 1 << 10 else _PER_PERSON * cell.data.n
    if cell.method == "DE":
        return 0.02 + people
    growth = 2.0 ** (max(m - 5, 0) * 0.35) if cell.method in ("HDG", "LLE") else 1.0
    fixed = 0.35 if cell.method == "default" else 0.02
    small = (max(cell.data.sizes) / 64) ** 0.7
    return people + small * (fixed + _PAIR.get(cell.method, 0.03) * m * (m - 1) / 2 * growth)


def estimate(cells: Iterable[Cell]) -> float:
    """Processor seconds of some cells on this machine, the making of their people included."""
    chosen = list(cells)
    people = {cell.data for cell in chosen}
    making = sum(0.005 + (1e-8 * data.n * (1 + 2 * len(data.sizes)) if data.r is not None else 0.0) for data in people)
    return (sum(map(seconds, chosen)) + making) * speed()


def speed() -> float:
    """How much longer this machine takes than the reference machine, from a fiftieth of a second of work."""
    return max(0.2, _probe() / _PROBE_S)


def _probe() -> float:
    rng = np.random.default_rng(0)
    begun = time.process_time()
    np.sort(rng.binomial(1000, 0.3, 300_000))
    return time.process_time() - begun
