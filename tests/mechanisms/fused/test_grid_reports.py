"""Reports about grids: sums, means over groups, and one grid inside another."""

import numpy as np
import pytest

from ahead_ldp.mechanisms.fused.grid_reports import Blocks, GridReport, pooled


def report(step, variance, seed=1, bins=8):
    starts = np.arange(0, bins, step)
    return GridReport(starts, starts, np.random.default_rng(seed).normal(size=(starts.size,) * 2), variance)


def test_sums_and_spread():
    table, coarse = np.arange(64.0).reshape(8, 8), report(4, 1.0)
    assert coarse.sums(table)[1, 0] == table[4:, :4].sum()
    np.testing.assert_allclose(coarse.sums(coarse.spread(coarse.values, (8, 8))), 16 * coarse.values)


def test_reports_about_the_same_grid_are_averaged_by_their_variances():
    one, other, coarse, silent = report(2, 1.0), report(2, 3.0, 2), report(4, 1.0, 3), report(2, float("inf"), 4)
    found = pooled([one, silent, other, coarse])
    assert [r.values.shape for r in found] == [(2, 2), (4, 4)]
    np.testing.assert_allclose(found[1].values, (3 * one.values + other.values) / 4)
    assert found[1].variance == pytest.approx(0.75)
    assert pooled([silent]) == []


def test_a_grid_inside_a_finer_one_has_the_same_sums():
    table, fine, coarse = np.random.default_rng(5).random((8, 8)), report(2, 1.0), report(4, 1.0)
    np.testing.assert_allclose(coarse.within(fine).sums(fine.sums(table)), coarse.sums(table))


def test_matrices_sum_and_spread_as_the_report_does():
    grid = GridReport(np.array([0, 1, 5]), np.array([0, 4, 6, 7]), np.random.default_rng(6).random((3, 4)), 1.0)
    table = np.random.default_rng(7).random((6, 9))
    blocks = Blocks.of(grid, table.shape)
    np.testing.assert_allclose(blocks.sums(table), grid.sums(table), rtol=1e-14)
    several = np.random.default_rng(8).random((6, 9, 5))
    np.testing.assert_allclose(blocks.sums_of_each(several), grid.sums(several), rtol=1e-14)
    np.testing.assert_allclose(blocks.spread(grid.values), grid.spread(grid.values, (6, 9)), rtol=1e-14)
