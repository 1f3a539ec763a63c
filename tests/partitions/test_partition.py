"""Partitions: cells tile the domain; bulk, brute force and the device agree on the cell of a record."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Axis, GridForm, TreeForm
from ahead_ldp.device.partition import partition_from_record
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.partitions.trees import Tree
from tests.support import all_codes, domains, examples, grown_trees


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    kind = draw(st.sampled_from(["tree", "grid", "cells", "equal"]))
    if kind == "tree":
        return Partition.of_tree(draw(grown_trees()))
    axes = draw(domains())
    if kind == "cells":
        return Partition.cells_of(axes)
    if kind == "equal":
        return Partition.equal_grid(axes, [draw(st.integers(1, 5)) for _ in axes])
    cuts = [sorted(draw(st.sets(st.integers(1, max(1, a.size - 1)), max_size=4)) if a.size > 1 else []) for a in axes]
    return Partition.grid(axes, cuts)


@examples(200)
@given(partition=partitions(), seed=st.integers(0, 2**32))
def test_every_record_has_one_cell_that_all_agree_on(partition, seed):
    codes = all_codes(partition.axes)
    inside = ((codes[:, None, :] >= partition.lo) & (codes[:, None, :] < partition.hi)).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert inside.any(axis=0).all(), "an empty cell"
    assert partition.locate(codes).tolist() == inside.argmax(axis=1).tolist()
    assert partition.form.cells(partition.axes) == partition.cells
    rng = np.random.default_rng(seed)
    for row in rng.choice(len(codes), min(len(codes), 20), replace=False):
        assert partition.form.cell(partition.axes, codes[row].tolist()) == inside[row].argmax()
    histogram = rng.integers(0, 2**40, [a.size for a in partition.axes])
    expected = [histogram.reshape(-1)[inside[:, cell]].sum() for cell in range(partition.cells)]
    counts = partition.aggregate(histogram)
    assert counts.dtype == np.int64
    assert counts.tolist() == expected


@examples(150)
@given(partition=partitions())
def test_wire_form_round_trip(partition):
    form = partition_from_record(partition.form.record())
    assert form == partition.form
    back = Partition.of_form(form, partition.axes)
    assert (back.lo == partition.lo).all()
    assert (back.hi == partition.hi).all()


def test_equal_grid_keeps_missing_and_nominal_codes_apart():
    axes = [Axis(9, missing=True), Axis(3, nominal=True)]
    assert Partition.equal_grid(axes, [2, 2]).form == GridForm(((4, 8), (1, 2)))


def test_a_histogram_of_another_shape_is_refused():
    partition = Partition.cells_of([Axis(3), Axis(4)])
    for shape in [(4, 3), (12,), (3, 4, 1)]:
        with pytest.raises(ValueError, match=r"expected a histogram of shape \(3, 4\), got"):
            partition.aggregate(np.ones(shape, np.int64))


@pytest.mark.parametrize("cuts", [[[2, 2], []], [[3, 1], []], [[0], []], [[4], []], [[1]], [[1], [], []]])
def test_cuts_that_are_no_partition_are_refused(cuts):
    with pytest.raises(ValueError, match="expected cuts"):
        Partition.grid([Axis(4), Axis(2)], cuts)


def test_a_large_domain_needs_no_table():
    """Cells of records over 10^12 combinations, from the tree alone."""
    axes = [Axis(10**4)] * 3
    tree = Tree.root(axes, 2).split(np.array([True]))[0]
    partition = Partition.of_tree(tree)
    assert isinstance(partition.form, TreeForm)
    codes = np.array([[0, 0, 0], [9999, 0, 5000], [4999, 5000, 0]])
    assert partition.locate(codes).tolist() == [0, 5, 2]
