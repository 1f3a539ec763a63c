"""Columns in halves of equal mass: every depth cuts those of the one before."""

import numpy as np
import pytest

from ahead_ldp.device import Axis
from ahead_ldp.mechanisms.fused.grid_columns import Columns


def skewed(size, seed=1):
    return np.random.default_rng(seed).dirichlet(np.full(size, 0.3))


@pytest.mark.parametrize("axis", [Axis(64), Axis(37), Axis(21, missing=True), Axis(3), Axis(2), Axis(1)], ids=str)
def test_every_depth_cuts_the_one_before_until_bins_are_columns(axis):
    columns = Columns.of(skewed(axis.size), axis, 16)
    assert columns.starts[0].tolist() == [0]
    for above, below in zip(columns.starts, columns.starts[1:], strict=False):
        assert set(above.tolist()) < set(below.tolist())
        assert below.size <= 2 * above.size + axis.missing
    assert columns.starts[-1].tolist() == list(range(columns.bins.size - 1))
    assert columns.cuts(99) == columns.bins[1:-1].tolist()
    assert columns.cuts(0) == []


def test_halves_have_equal_mass_and_heavy_codes_stand_alone():
    even = Columns.of(np.full(64, 1 / 64), Axis(64), 32)
    assert [c.size for c in even.starts] == [1, 2, 4, 8, 16, 32]
    assert even.cuts(2) == [16, 32, 48]
    spike = np.full(64, 0.4 / 63)
    spike[20] = 0.6
    found = Columns.of(spike, Axis(64), 32)
    masses = np.add.reduceat(spike, [0, *found.cuts(3)])
    assert np.sort(masses)[-2] < 0.2, "what is beside the heavy code is cut, the code is not"


def test_nominal_and_missing_codes_are_columns_at_once():
    assert Columns.of(skewed(5), Axis(5, nominal=True), 32).cuts(1) == [1, 2, 3, 4]
    assert Columns.of(np.full(9, 1 / 9), Axis(9, missing=True), 32).cuts(1) == [4, 8]
    many = Columns.of(np.full(100, 0.01), Axis(100, nominal=True), 10)
    assert len(many.cuts(1)) == 1, "more nominal codes than bins go together like ordered ones"


def test_one_ulp_does_not_move_a_cut():
    density = np.full(64, 1 / 64)
    for change in (1 + 1e-15, 1 - 1e-15):
        moved = density * np.where(np.arange(64) % 3 == 0, change, 1.0)
        for here, there in zip(
            Columns.of(moved, Axis(64), 24).starts, Columns.of(density, Axis(64), 24).starts, strict=True
        ):
            np.testing.assert_array_equal(here, there)
