"""Bins of equal mass, and margins that take in what pairs say about them."""

import numpy as np
import pytest

from ahead_ldp.device import Axis
from ahead_ldp.mechanisms.fused.margins import Margin, equal_mass_borders


def test_bins_have_equal_masses_as_far_as_codes_allow():
    density = np.full(64, 1 / 64)
    assert equal_mass_borders(density, Axis(64), 8).tolist() == list(range(0, 65, 8))
    spike = np.full(64, 0.5 / 63)
    spike[10] = 0.5
    borders = equal_mass_borders(spike, Axis(64), 8)
    assert {10, 11} <= set(borders.tolist()), "a heavy code is a bin of its own"
    assert equal_mass_borders(density[:3] / density[:3].sum(), Axis(3), 8).tolist() == [0, 1, 2, 3]


def test_without_mass_bins_are_even():
    assert equal_mass_borders(np.zeros(8), Axis(8), 4).tolist() == [0, 2, 4, 6, 8]


def test_missing_and_nominal_codes_stay_apart():
    density = np.full(9, 1 / 9)
    missing = Axis(9, missing=True)
    borders = equal_mass_borders(density, missing, 4)
    assert borders.tolist() == [0, 2, 4, 6, 8, 9]
    assert equal_mass_borders(density, Axis(9, nominal=True), 16).tolist() == list(range(10))
    many = equal_mass_borders(np.full(100, 0.01), Axis(100, nominal=True), 10)
    assert many.size == 11


def test_one_ulp_does_not_move_a_border():
    density = np.full(64, 1 / 64)
    for change in (1 + 1e-15, 1 - 1e-15):
        moved = density * np.where(np.arange(64) % 3 == 0, change, 1.0)
        np.testing.assert_array_equal(equal_mass_borders(moved, Axis(64), 7), equal_mass_borders(density, Axis(64), 7))


def some_margin(seed=2):
    rng = np.random.default_rng(seed)
    density = rng.dirichlet(np.full(12, 3.0))
    parts = np.array([0, 3, 5, 8, 12])
    root = rng.normal(size=(4, 4)) * 0.01
    root -= root.mean(axis=0)  # errors sum to 0
    return Margin(density, np.array([0, 5, 12]), parts, root @ root.T)


def test_shares_are_of_mass_and_of_width_where_there_is_none():
    margin = Margin(np.array([0.2, 0.6, 0.0, 0.0, 0.2]), np.array([0, 2, 4, 5]), np.arange(6), np.zeros((5, 5)))
    found = margin.shares(np.array([[1.0, 3.0], [0.5, 5.0]]), margin.bins)
    np.testing.assert_allclose(found, [[0.75, 0.5, 0.0], [0.875, 1.0, 1.0]])


def test_agreement_is_the_least_squares_combination():
    margin = some_margin()
    starts, variance = np.array([0, 5]), 1e-4
    masses = np.add.reduceat(margin.density, margin.parts[:-1])
    told = np.array([masses[:2].sum() + 0.01, masses[2:].sum() - 0.01])
    found = margin.agreed([(starts, told, variance)])
    a = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]])
    gain = margin.covariance @ a.T @ np.linalg.inv(a @ margin.covariance @ a.T + variance * np.eye(2))
    expected = masses + gain @ (told - a @ masses)
    np.testing.assert_allclose(np.add.reduceat(found.density, margin.parts[:-1]), expected, atol=1e-9)
    np.testing.assert_allclose(found.covariance, margin.covariance - gain @ a @ margin.covariance, atol=1e-12)
    assert found.density.sum() == pytest.approx(1.0)
    inside = found.density[5:8] / found.density[5:8].sum()
    np.testing.assert_allclose(inside, margin.density[5:8] / margin.density[5:8].sum())


def test_sure_sums_are_taken_over_and_unsure_ones_left():
    margin = some_margin()
    starts = np.array([0, 5])
    own = np.add.reduceat(margin.density, [0, 5])
    sure = margin.agreed([(starts, own + np.array([0.01, -0.01]), 1e-12)])
    np.testing.assert_allclose(np.add.reduceat(sure.density, [0, 5]), own + np.array([0.01, -0.01]), atol=1e-6)
    assert margin.agreed([(starts, own + 0.1, float("inf"))]) is margin
    assert margin.agreed([]) is margin
