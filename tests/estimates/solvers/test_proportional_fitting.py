"""Tables with given sums: they have them, keep what the start knows, and move with them as their slopes say."""

from itertools import combinations

import numpy as np
import pytest

from ahead_ldp.estimates.solvers.proportional_fitting import (
    all_in_slopes,
    fit_blocks,
    fit_margins,
    fit_pairs,
    margin_scales,
    margin_system,
    scaled,
)
from tests.reference.pair_slopes import brought_back


def some_table(rng, *shape):
    table = rng.dirichlet(np.ones(np.prod(shape))).reshape(shape)
    return 0.9 * table + 0.1 / table.size


def pairs_of(table, lead=0):
    q = table.ndim - lead
    return {
        (i, j): table.sum(axis=tuple(b + lead for b in range(q) if b not in (i, j)))
        for i, j in combinations(range(q), 2)
    }


def ratios(table):
    """Cross-product ratios against the first row and column."""
    return table[1:, 1:] * table[0, 0] / (table[1:, :1] * table[:1, 1:])


def test_margins_are_met_and_dependence_is_kept():
    rng = np.random.default_rng(1)
    start, rows, columns = some_table(rng, 5, 7), rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(7))
    fitted = fit_margins(start, rows, columns)
    np.testing.assert_allclose(fitted.sum(axis=1), rows, atol=1e-10)
    np.testing.assert_allclose(fitted.sum(axis=0), columns, atol=1e-10)
    np.testing.assert_allclose(ratios(fitted), ratios(start), rtol=1e-9)


@pytest.mark.parametrize("empty", [False, True])
def test_scales_are_those_of_one_line_after_the_other(empty):
    """From a guess that is far off too; where a line is to be empty, the steps look for it."""
    rng = np.random.default_rng(3)
    start, rows, columns = some_table(rng, 6, 9), rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(9))
    if empty:
        rows[2] = start[4] = rows[4] = 0.0
        rows /= rows.sum()
    slow = brought_back(start, rows, columns, 500)
    for guess in (np.ones(9), np.geomspace(1e-3, 1e3, 9)):
        found = scaled(start, *margin_scales(start, rows, columns, guess, 500, 1e-14))
        np.testing.assert_allclose(found, slow, atol=1e-13)
        assert (found[2] == 0).all() == empty


def test_lines_without_mass_stay_empty():
    fitted = fit_margins(np.ones((3, 2)), np.array([0.4, 0.0, 0.6]), np.array([0.3, 0.7]))
    np.testing.assert_allclose(fitted, np.outer([0.4, 0.0, 0.6], [0.3, 0.7]), atol=1e-12)


def test_a_table_moves_with_its_margins_as_the_system_says():
    rng = np.random.default_rng(2)
    table = some_table(rng, 4, 6)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    change = rng.normal(size=10) * 1e-6
    change[:4] -= change[:4].mean()
    change[4:] -= change[4:].mean()
    moved = fit_margins(table, rows + change[:4], columns + change[4:]) - table
    relative = np.linalg.solve(margin_system(table), change)
    np.testing.assert_allclose(moved, table * (relative[:4, None] + relative[4:]), atol=1e-10)


@pytest.mark.parametrize("shape", [(4, 3, 5), (3, 2, 3, 4)])
def test_a_pairwise_table_is_found_from_its_pairs(shape):
    rng = np.random.default_rng(3)
    logs = np.zeros(shape)
    for i, j in combinations(range(len(shape)), 2):
        term = rng.normal(size=(shape[i], shape[j]))
        logs = logs + term.reshape([n if b in (i, j) else 1 for b, n in enumerate(shape)])
    table = np.exp(logs) / np.exp(logs).sum()
    masses = [table.sum(axis=tuple(b for b in range(len(shape)) if b != a)) for a in range(len(shape))]
    found = fit_pairs(masses, pairs_of(table), sweeps=2000, tolerance=1e-13)
    np.testing.assert_allclose(found, table, atol=1e-9)
    broken = fit_pairs(masses, {**pairs_of(table), (0, 1): np.outer(masses[0], masses[1])}, sweeps=500)
    assert np.abs(broken - table).max() > 1e-3, "a pair's dependence does not count"


def test_pairs_that_contradict_each_other_still_make_a_table():
    same, opposite = np.diag([0.5, 0.5]), np.array([[0.0, 0.5], [0.5, 0.0]])
    half = np.array([0.5, 0.5])
    found = fit_pairs([half] * 3, {(0, 1): same, (0, 2): same, (1, 2): 0.9 * opposite + 0.05})
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1.0)


def test_blocks_are_met_and_the_start_decides_the_rest():
    rng = np.random.default_rng(4)
    cells = np.stack([some_table(rng, 2, 2, 2) for _ in range(5)])
    tilt = np.exp(0.3 * rng.normal(size=(5, 2, 2, 1)) + 0.3 * rng.normal(size=(5, 1, 2, 2)))
    found = fit_blocks(cells * tilt, pairs_of(cells, lead=1), 2000, 1e-13)
    np.testing.assert_allclose(found, cells, atol=1e-9)  # the tilt is one of pairs
    even = fit_blocks(np.ones_like(cells), pairs_of(cells, lead=1), 2000, 1e-13)
    for pair, wanted in pairs_of(cells, lead=1).items():
        np.testing.assert_allclose(pairs_of(even, lead=1)[pair], wanted, atol=1e-9)
    assert np.abs(even - cells).max() > 1e-3


@pytest.mark.parametrize("q", [3, 4])
def test_the_all_in_cell_moves_as_its_slopes_say(q):
    rng = np.random.default_rng(5)
    cells = some_table(rng, *[2] * q)[None]
    by_one, by_two = all_in_slopes(cells)
    step = 1e-5
    direction = some_table(rng, *[2] * q)[None] - cells  # a change of the sums that some table has
    there = fit_blocks(cells, pairs_of(cells + step * direction, lead=1), 5000, 1e-14)
    inside = (0,) * q
    ones = [direction.sum(axis=tuple(b + 1 for b in range(q) if b != a))[0, 0] for a in range(q)]
    twos = [d[0, 0, 0] for d in pairs_of(direction, lead=1).values()]
    expected = by_one[0] @ ones + by_two[0] @ twos
    assert (there[(0, *inside)] - cells[(0, *inside)]) / step == pytest.approx(expected, rel=1e-3, abs=1e-4)
