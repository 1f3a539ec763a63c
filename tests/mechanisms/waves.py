"""Driving a mechanism by hand: tallies of any people, any group left out, tallies carried from one run to another."""

from collections.abc import Callable

import numpy as np

from ahead_ldp.device import Schema
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import Mechanism, Question, Tallies, Wave

Boxes = list[tuple[tuple[int, int], ...]]


def boxes_of(question: Question) -> Boxes:
    """The cells of a question."""
    lo, hi = question.partition.lo.tolist(), question.partition.hi.tolist()
    return [tuple(zip(a, b, strict=True)) for a, b in zip(lo, hi, strict=True)]


def drive(
    mechanism: Mechanism, schema: Schema, tell: Callable[[int, str, Question], Tally]
) -> tuple[Estimate, list[Wave], list[Tallies]]:
    """The estimate, all waves and what was told: ``tell(wave, group, question)``."""
    history: list[Tallies] = []
    run, waves = mechanism.run(schema), []
    try:
        waves.append(next(run))
        while True:
            history.append({group: tell(len(history), group, q) for group, q in waves[-1].items()})
            waves.append(run.send(history[-1]))
    except StopIteration as stop:
        return stop.value, waves, history


def any_people(rng: np.random.Generator, sizes: tuple[int, ...] = (0, 1, 30, 2000)) -> Callable[..., Tally]:
    """Groups of such sizes, whose people crowd into few cells."""

    def tell(_wave: int, _group: str, question: Question) -> Tally:
        n = int(rng.choice(sizes))
        cells = question.partition.cells
        shares = rng.dirichlet(np.full(cells, 0.3)) if cells > 1 else np.ones(1)
        return question.oracle.simulate(rng.multinomial(n, shares), rng)

    return tell
