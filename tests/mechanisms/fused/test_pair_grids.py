"""Grids of two attributes: as many cells as wanted, cut out of each other."""

from itertools import pairwise

import numpy as np
import pytest

from ahead_ldp.device import Axis
from ahead_ldp.mechanisms.fused.grid_columns import Columns
from ahead_ldp.mechanisms.fused.pair_grids import depths, grid_question, grid_report, scales
from ahead_ldp.oracles import Tally
from tests.support import schema_of


def columns_of(*sizes, nominal=()):
    axes = [Axis(size, nominal=k in nominal) for k, size in enumerate(sizes)]
    return {k: Columns.of(np.full(axis.size, 1 / axis.size), axis, 32) for k, axis in enumerate(axes)}


@pytest.mark.parametrize(
    ("sizes", "cells", "grid"),
    [
        ((64, 64), 4, (4, 4)),
        ((64, 64), 7, (16, 8)),
        ((64, 64), 10, (32, 32)),
        ((64, 64), 0, (2, 2)),
        ((2, 64), 6, (2, 32)),
        ((3, 3), 9, (3, 3)),
    ],
)
def test_a_grid_has_as_many_cells_as_wanted_and_there_are(sizes, cells, grid):
    columns = columns_of(*sizes)
    question = grid_question(schema_of(*sizes), (0, 1), columns, cells, 1.0)
    assert tuple(len(cuts) + 1 for cuts in question.partition.form.cuts) == grid


def test_more_cells_cut_the_same_columns_further():
    for columns in (columns_of(64, 64), columns_of(12, 200), columns_of(5, 64, nominal=(0,))):
        found = [depths(columns[0], columns[1], cells) for cells in range(11)]
        assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(found))


def test_nominal_codes_are_always_apart():
    columns = columns_of(5, 64, nominal=(0,))
    assert depths(columns[0], columns[1], 2)[0] == 1
    assert columns[0].cuts(1) == [1, 2, 3, 4]


def test_smooth_dependence_is_asked_about_two_grids_and_rough_one_about_all_between():
    assert scales(7.0, False) == [4.0, 7.0]
    assert scales(2.0, False) == [2.0, 2.0]
    assert scales(7.0, True) == [4.0, 6.0, 8.0]
    assert scales(2.0, True) == [2.0]


def test_a_report_is_on_the_bins():
    columns = columns_of(64, 64)
    question = grid_question(schema_of(64, 64), (0, 1), columns, 4, 1.0)
    truth = np.random.default_rng(1).multinomial(10**6, np.full(16, 1 / 16))
    tally = question.oracle.simulate(truth, np.random.default_rng(2))
    found = grid_report(question, tally, columns)
    assert found.rows.tolist() == found.columns.tolist() == [0, 8, 16, 24]
    off = (found.values - truth.reshape(4, 4) / 10**6).reshape(-1)
    off -= off.mean()  # 15 contrasts, each with that variance
    assert 0.3 < (off**2).sum() / 15 / found.variance < 2.2
    assert grid_report(question, Tally.empty(question.oracle.outcomes), columns).variance == float("inf")


def test_the_chance_of_who_fell_into_the_group_is_in_the_variance():
    """Nearly the truth is told, so all that is left is that chance: the mean square over 400 groups is the variance."""
    axis = Axis(16)
    columns = dict.fromkeys((0, 1), Columns.of(np.full(16, 1 / 16), axis, 16))
    question = grid_question(schema_of(16, 16), (0, 1), columns, 4.0, 12)
    cells, n, rng, squares, promised = question.partition.cells, 500, np.random.default_rng(4), [], []
    for _ in range(400):
        tally = question.oracle.simulate(rng.multinomial(n, np.full(cells, 1 / cells)), rng)
        report = grid_report(question, tally, columns, drawn=True)
        squares.append(((report.values - 1 / cells) ** 2).sum() / (cells - 1))
        promised.append(report.variance)
    assert np.mean(squares) == pytest.approx(np.mean(promised), rel=5 * np.sqrt(2 / (400 * (cells - 1))))
    assert grid_report(question, tally, columns).variance < 0.5 * promised[0]
