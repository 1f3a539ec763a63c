"""Dependence of two attributes: found where it is, shrunk where it is not, and as sure as it says."""

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import multivariate_normal

from ahead_ldp.estimates.solvers.proportional_fitting import fit_margins
from ahead_ldp.mechanisms.fused.grid_reports import GridReport
from ahead_ldp.mechanisms.fused.interactions import Basis, _Model, fit_interaction, misfit
from tests.reference.pair_slopes import block_slopes
from tests.support import Recorded

BINS, GRID = 32, 8
EVEN = np.full(BINS, 1 / BINS)
STARTS = np.arange(0, BINS, BINS // GRID)


def copula(r):
    """The masses of a Gaussian copula on equal bins."""
    if r == 0:
        return np.outer(EVEN, EVEN)
    at = np.clip(ndtri(np.arange(BINS + 1) / BINS), -8, 8)
    grid = np.stack(np.meshgrid(at, at, indexing="ij"), axis=-1)
    below = multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf(grid)
    return np.diff(np.diff(below, axis=0), axis=1)


def bases(most=6):
    return Basis.of(EVEN, most), Basis.of(EVEN, most)


def report_of(table, variance, rng=None):
    report = GridReport(STARTS, STARTS, np.zeros((GRID, GRID)), variance)
    values = report.sums(table)
    if rng is not None:
        values = values + np.sqrt(variance) * rng.standard_normal(values.shape)
    return GridReport(STARTS, STARTS, values, variance)


def boxes(count, seed):
    """Shares of bins inside random boxes."""
    ends = np.sort(np.random.default_rng(seed).integers(0, BINS + 1, size=(count, 2, 2)), axis=-1)
    places = np.arange(BINS)
    inside = (places >= ends[..., :1]) & (places < ends[..., 1:])
    return inside[:, 0].astype(float), inside[:, 1].astype(float)


@pytest.mark.parametrize(
    "kind", [{}, {"nominal": True}, {"missing": True}], ids=["ordered", "nominal", "with a missing code"]
)
def test_functions_are_orthonormal_under_the_masses(kind):
    mass = np.random.default_rng(1).dirichlet(np.full(9, 2.0))
    basis = Basis.of(mass, 5, **kind)
    gram = basis.functions.T @ (mass[:, None] * basis.functions)
    np.testing.assert_allclose(gram, np.eye(gram.shape[0]), atol=1e-9)
    np.testing.assert_allclose(mass @ basis.functions, 0.0, atol=1e-9)
    assert basis.roughness.size == basis.functions.shape[1]
    assert basis.roughness.min() == 1


def test_one_bin_has_no_function_and_few_bins_have_few():
    assert Basis.of(np.ones(1), 6).functions.shape == (1, 0)
    assert Basis.of(np.array([0.5, 0.5]), 6).functions.shape == (2, 1)
    assert Basis.of(np.array([0.4, 0.4, 0.2]), 6, missing=True).functions.shape == (3, 2)


@pytest.mark.parametrize("r", [0.3, 0.8, -0.6])
def test_a_gaussian_copula_is_found_with_little_noise(r):
    truth = copula(r)
    found = fit_interaction(EVEN, EVEN, bases(), [report_of(truth, 1e-10)])
    assert np.abs(found.table - truth).sum() / 2 < 0.01
    np.testing.assert_allclose(found.table.sum(axis=1), EVEN, atol=1e-9)
    np.testing.assert_allclose(found.table.sum(axis=0), EVEN, atol=1e-9)
    first = found.coefficients[0]
    assert first == pytest.approx(r / (1 - r * r), rel=0.1), "the coefficient of the two normal scores"


def test_cells_that_no_smooth_function_has_are_found_with_little_noise():
    rng = np.random.default_rng(2)
    cells = np.kron(rng.dirichlet(np.ones(GRID * GRID)).reshape(GRID, GRID), np.ones((4, 4))) / 16
    truth = fit_margins(cells, EVEN, EVEN)
    report = report_of(truth, 1e-10)
    found = fit_interaction(EVEN, EVEN, bases(2), [report])
    assert np.abs(report.sums(found.table) - report.values).max() < 0.01 * report.values.max()


def test_without_reports_or_without_columns_it_is_the_product():
    found = fit_interaction(EVEN, EVEN, bases(), [report_of(copula(0.8), float("inf"))])
    np.testing.assert_allclose(found.table, np.outer(EVEN, EVEN))
    assert found.report is None
    one = Basis.of(np.ones(1), 6)
    alone = GridReport(np.array([0]), STARTS, np.full((1, GRID), 1 / GRID), 1e-4)
    np.testing.assert_allclose(fit_interaction(np.ones(1), EVEN, (one, bases()[0]), [alone]).table, EVEN[None])


def errors_of(r, variance, repeats):
    truth, (first, second) = copula(r), boxes(60, 3)
    exact = ((first @ truth) * second).sum(axis=1)
    off, said, raw = [], [], []
    for k in range(repeats):
        report = report_of(truth, variance, np.random.default_rng([4, k]))
        found = fit_interaction(EVEN, EVEN, bases(), [report])
        slope, cell = found.slopes(first, second)[2], found.cell_slopes(first, second)
        off.append(found.answers(first, second) - exact)
        said.append(((slope @ found.covariance) * slope).sum(axis=1) + cell**2 @ found.cell_variance.reshape(-1))
        direct = report.spread(report.values, (BINS, BINS)) / 16
        raw.append(((first @ direct) * second).sum(axis=1) - exact)
    return np.array(off), np.array(said), np.array(raw)


@pytest.mark.parametrize("r", [0.0, 0.5, 0.8])
def test_shrinkage_beats_the_grid_itself_whatever_the_dependence(r):
    """Cells as noisy as they are large: the fit's error is less than a fifth of the grid's."""
    off, _, raw = errors_of(r, 1 / GRID**4, 10)
    assert (off**2).mean() < (raw**2).mean() / 5


@pytest.mark.parametrize(
    ("r", "recorded"), [(0.0, Recorded(0.222, 0.024)), (0.5, Recorded(0.277, 0.032)), (0.8, Recorded(0.423, 0.055))]
)
def test_errors_are_as_large_as_they_say(r, recorded):
    """Mean squares of errors over what was said, over 30 reports of 60 boxes: 1 in theory, and no more.

    More is said than is needed, most where there is no dependence: errors allow for a rougher one than the likeliest.
    How much more is recorded over 100 reports; 30 of them know it to a fifth or a quarter.
    """
    off, said, _ = errors_of(r, 0.2 / GRID**4, 30)
    recorded.check_ratio((off**2).mean(axis=1), said.mean(axis=1))
    assert (off**2).mean() < said.mean()


def blocks(seed=8):
    """Cells of 8 x 8 that are full or nearly empty, with even margins."""
    rng = np.random.default_rng(seed)
    cells = np.kron(np.where(rng.random((GRID, GRID)) < 0.3, 1.0, 0.02), np.ones((4, 4)))
    return fit_margins(cells, EVEN, EVEN)


def test_misfit_tells_rough_dependence_from_smooth():
    """In standard errors: about normal for a Gaussian copula, far out for full and empty cells."""
    noise = 0.05 / GRID**4
    smooth = [
        misfit(EVEN, EVEN, bases(2), [report_of(copula(0.7), noise, np.random.default_rng([9, k]))]) for k in range(40)
    ]
    assert abs(np.mean(smooth)) < 0.6  # 40 of them: a standard error of 0.16, and up to four coefficients are fitted
    assert 0.7 < np.std(smooth) < 1.4
    rough = misfit(EVEN, EVEN, bases(2), [report_of(blocks(), noise, np.random.default_rng(10))])
    assert rough > 10
    assert misfit(EVEN, EVEN, bases(2), [report_of(blocks(), float("inf"))]) == 0


def test_slopes_are_derivatives():
    rng = np.random.default_rng(5)
    found = fit_interaction(EVEN, EVEN, bases(3), [report_of(copula(0.6), 1e-6, rng)])
    first, second = boxes(4, 6)
    by_row, by_column, by_theta = found.slopes(first, second)
    step = 1e-6
    change = rng.normal(size=(2, BINS))
    change -= change.mean(axis=1, keepdims=True)
    moved = fit_margins(found.table, EVEN + step * change[0], EVEN + step * change[1])
    expected = by_row @ change[0] + by_column @ change[1]
    actual = ((first @ (moved - found.table)) * second).sum(axis=1) / step
    np.testing.assert_allclose(actual, expected, atol=1e-4)
    direction = rng.normal(size=by_theta.shape[1])
    g = np.einsum("ik,jl,kl->ij", *(b.functions for b in found.bases), direction.reshape(3, 3))
    moved = fit_margins(found.table * np.exp(step * g), EVEN, EVEN)
    actual = ((first @ (moved - found.table)) * second).sum(axis=1) / step
    np.testing.assert_allclose(actual, by_theta @ direction, atol=1e-4)


def test_slopes_are_those_of_one_coefficient_after_the_other():
    """Bins and grids of uneven size, two grids of which the finer cuts the coarser one's cells."""
    rng, shape = np.random.default_rng(9), (9, 12)
    masses = [rng.dirichlet(np.full(size, 3.0)) for size in shape]
    both = (Basis.of(masses[0], 2), Basis.of(masses[1], 3))
    fine, coarse = (np.array([0, 2, 3, 7]), np.array([0, 1, 5, 9])), (np.array([0, 3]), np.array([0, 5]))
    reports = [GridReport(*starts, np.zeros((4, 4) if starts is fine else (2, 2)), 1.0) for starts in (coarse, fine)]
    model = _Model(masses[0], masses[1], both, reports)
    theta = 0.3 * rng.normal(size=6)
    table = model.table(theta)
    direct = np.outer(*masses) * np.exp(both[0].functions @ theta.reshape(2, 3) @ both[1].functions.T)
    np.testing.assert_allclose(table, fit_margins(direct, *masses), atol=1e-8)
    slow = [block_slopes(table, (both[0].functions, both[1].functions), starts, 1e-4) for starts in (coarse, fine)]
    np.testing.assert_allclose(model.slopes(table), slow[1], atol=1e-7)
    precision, right = model.law(table, theta)
    flat = [each.reshape(-1, 6) for each in slow]
    np.testing.assert_allclose(precision, sum(each.T @ each for each in flat), atol=1e-6)
    seen = [report.sums(table).reshape(-1) for report in reports]
    wanted = precision @ theta - sum(each.T @ at for each, at in zip(flat, seen, strict=True))
    np.testing.assert_allclose(right, wanted, atol=1e-6)
