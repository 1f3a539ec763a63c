"""Single cells: found where reports are sure of them, left where they are not, never negative."""

import numpy as np
import pytest

from ahead_ldp.estimates.solvers.proportional_fitting import fit_margins
from ahead_ldp.mechanisms.fused.grid_reports import GridReport
from ahead_ldp.mechanisms.fused.rough_cells import fit_cells

BINS = 16
EVEN = np.full(BINS, 1 / BINS)
BASE = np.outer(EVEN, EVEN)


def truth(seed=1):
    cells = np.where(np.random.default_rng(seed).random((8, 8)) < 0.25, 1.0, 0.01)
    return fit_margins(np.kron(cells, np.ones((2, 2))), EVEN, EVEN)


def told(table, step, variance, rng):
    starts = np.arange(0, BINS, step)
    exact = GridReport(starts, starts, np.zeros((starts.size,) * 2), variance)
    values = exact.sums(table)
    return GridReport(starts, starts, values + np.sqrt(variance) * rng.standard_normal(values.shape), variance)


@pytest.mark.parametrize("strength", [1.0, 1e3, 1e9])
def test_margins_stay_and_nothing_is_negative(strength):
    rng = np.random.default_rng(2)
    found = fit_cells(BASE, EVEN, EVEN, [told(truth(), 4, 1e-4, rng), told(truth(), 2, 1e-3, rng)], strength)
    np.testing.assert_allclose(found.sum(axis=0), EVEN, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), EVEN, atol=1e-9)
    assert found.min() >= 0


def test_sure_cells_are_found_and_a_strong_base_stays():
    rng = np.random.default_rng(3)
    sure = [told(truth(), 2, 1e-6, rng)]  # 64 cells, off by some 0.001 each
    assert np.abs(fit_cells(BASE, EVEN, EVEN, sure, 10.0) - truth()).sum() < 0.08
    np.testing.assert_allclose(fit_cells(BASE, EVEN, EVEN, [told(truth(), 2, 1e-4, rng)], 1e12), BASE, atol=1e-6)


def test_one_contrast_is_shrunk_like_a_posterior_mean():
    """Two by two cells with margins 1/2 have one contrast d, and near the base the answer is known in closed form.

    The entropy of the cells 1/4 +- d costs strength * 8 d^2, the reports 4 (d - y)^2 / (2 v).
    """
    half, strength, variance, y = np.full(2, 0.5), 200.0, 1e-2, 0.02
    sign = np.array([[1.0, -1.0], [-1.0, 1.0]])
    report = GridReport(np.arange(2), np.arange(2), 0.25 + y * sign, variance)
    found = fit_cells(np.full((2, 2), 0.25), half, half, [report], strength)
    expected = y * (4 / variance) / (4 / variance + 16 * strength)
    np.testing.assert_allclose(found, 0.25 + expected * sign, atol=2e-5)


def test_two_grids_beat_either_alone():
    """Errors of random boxes over 20 draws: the coarse and the fine grid together."""
    exact = truth()
    ends = np.sort(np.random.default_rng(4).integers(0, BINS + 1, size=(80, 2, 2)), axis=-1)
    inside = ((np.arange(BINS) >= ends[..., :1]) & (np.arange(BINS) < ends[..., 1:])).astype(float)

    def error(table):
        return np.mean(((inside[:, 0] @ (table - exact)) * inside[:, 1]).sum(axis=1) ** 2)

    found = []
    for k in range(20):
        rng = np.random.default_rng([5, k])
        coarse, fine = told(exact, 4, 2e-5, rng), told(exact, 2, 2e-5, rng)
        found.append(
            [error(fit_cells(BASE, EVEN, EVEN, reports, 100.0)) for reports in ([coarse, fine], [coarse], [fine])]
        )
    both, one, other = np.mean(found, axis=0)
    assert both < 0.8 * one
    assert both < 0.8 * other
