"""Threads of a server share an estimate. What one of them lets go of, another may have in hand."""

from dataclasses import replace

import numpy as np

import ahead_ldp
from ahead_ldp.estimates.strict import evidence

RNG = np.random.default_rng(1)
PEOPLE = {name: RNG.integers(0, 64, 500) for name in "abc"}


class Crowded(dict):
    """When what is to go has been named, another thread has let go of it already."""

    def __iter__(self):
        named = list(super().__iter__())
        self.clear()
        return iter(named)


class Forgetful(dict):
    """What is put in is let go of at once."""

    def __setitem__(self, key, value):
        pass


def test_problems_that_another_thread_let_go_of():
    estimate = ahead_ldp.simulate(PEOPLE["a"], "a=integer,0,255", epsilon=1, method="flat", seed=1)
    ground = estimate._reports.ground((0,))
    boxes = [np.array([[[float(first), float(first + 9)]]]) for first in range(1, 240, 16)]
    expected = [ground.near(box).problem.even for box in boxes]
    assert len(ground.pieces) == evidence._PIECES  # the latest are kept
    for pieces in (Crowded(), Forgetful()):
        shared = replace(ground, pieces=pieces)
        for box, even in zip(boxes, expected, strict=True):
            np.testing.assert_array_equal(shared.near(box).problem.even, even)


def test_tables_that_another_thread_let_go_of():
    text = "a <= 31 and b <= 31 and c <= 31"
    schema = [f"{name}=integer,0,63" for name in PEOPLE]
    estimate = ahead_ldp.simulate(PEOPLE, schema, epsilon=1, method="fused", seed=1)
    expected = estimate.ask(text).share
    object.__setattr__(estimate.model, "_tables", Forgetful())
    np.testing.assert_array_equal(estimate.ask(text).share, expected)
