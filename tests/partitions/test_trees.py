"""Trees as arrays: tiling, splitting, and the wire form that says the same."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Axis, TreeForm
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.partitions.trees import Tree
from tests.reference.covers import children, sides
from tests.support import all_codes, domains, examples, grown_trees


def boxes(tree: Tree) -> list[tuple[tuple[int, int], ...]]:
    return [tuple(node) for node in sides(tree)]


def flags(tree: Tree) -> str:
    return "".join("1" if split else "0" for split in tree.is_split)


@examples(120)
@given(tree=grown_trees())
def test_nodes_stand_breadth_first_and_children_tile_their_parent(tree):
    assert tree.parent[0] == -1
    assert (np.diff(tree.level) >= 0).all()
    assert (np.diff(tree.parent) >= 0).all()
    found, could_have = boxes(tree), tree.prospective_children
    for node, below in enumerate(children(tree)):
        assert tree.child_counts[node] == len(below)
        assert tree.is_split[node] == bool(below)
        assert tree.first_child[node] == (below[0] if below else -1)
        if below:
            assert below == list(range(below[0], below[0] + len(below)))
            assert (tree.level[below] == tree.level[node] + 1).all()
            cuts = [axis.parts(lo, hi, tree.fanout) for axis, (lo, hi) in zip(tree.axes, found[node], strict=True)]
            assert [found[c] for c in below] == list(product(*(pairwise(s) for s in cuts)))
            assert len(below) == could_have[node] > 1
    levels = [np.arange(tree.size)[level] for level in tree.levels()]
    assert np.concatenate(levels).tolist() == list(range(tree.size))
    assert all((tree.level[nodes] == i).all() for i, nodes in enumerate(levels))
    assert len(levels) == tree.height + 1


@examples(120)
@given(tree=grown_trees())
def test_leaves_tile_the_domain_and_locate_finds_them(tree):
    codes = all_codes(tree.axes)
    inside = (codes[:, None, :] >= tree.lo[tree.leaves]) & (codes[:, None, :] < tree.hi[tree.leaves])
    owner = inside.all(axis=2)
    assert (owner.sum(axis=1) == 1).all()
    assert tree.locate(codes).tolist() == tree.leaves[owner.argmax(axis=1)].tolist()
    assert tree.volume[tree.leaves].sum() == len(codes)
    assert (tree.leaf_index[tree.leaves] == np.arange(tree.leaves.size)).all()
    assert (tree.leaf_index[tree.is_split] == -1).all()


@examples(120)
@given(tree=grown_trees())
def test_wire_form_has_the_same_leaves(tree):
    form = TreeForm(tree.fanout, flags(tree))
    found = boxes(tree)
    assert form.leaves(tree.axes) == tuple(found[i] for i in tree.leaves)
    back = Tree.from_flags(tree.axes, tree.fanout, tree.is_split)
    for name in ("lo", "hi", "parent", "level", "first_child"):
        assert (getattr(back, name) == getattr(tree, name)).all()


@examples(80)
@given(tree=grown_trees(), seed=st.integers(0, 2**32))
def test_split_keeps_old_nodes_and_says_where_they_went(tree, seed):
    chosen = np.random.default_rng(seed).random(tree.size) < 0.5
    grown, place = tree.split(chosen)
    assert len(set(place.tolist())) == tree.size
    assert (grown.lo[place] == tree.lo).all()
    assert (grown.hi[place] == tree.hi).all()
    assert (grown.level[place] == tree.level).all()
    assert (grown.parent[place[1:]] == place[tree.parent[1:]]).all()
    single = tree.prospective_children == 1
    assert (grown.is_split[place] == (tree.is_split | (chosen & ~single))).all()
    new = np.setdiff1d(np.arange(grown.size), place)
    assert not grown.is_split[new].any()
    assert (tree.is_split == Tree.from_flags(tree.axes, tree.fanout, tree.is_split).is_split).all(), "unchanged"


@examples(60)
@given(tree=grown_trees(), seed=st.integers(0, 2**32))
def test_children_sum_adds_up_children(tree, seed):
    x = np.random.default_rng(seed).normal(size=tree.size)
    expected = [sum(x[c] for c in below) for below in children(tree)]
    np.testing.assert_allclose(tree.children_sum(x), expected, atol=1e-12)


@examples(60)
@given(axes=domains(), fanout=st.integers(2, 5))
def test_cutting_all_ends_at_single_codes(axes, fanout):
    tree = Tree.root(axes, fanout)
    for _ in range(9):
        tree = tree.split(np.ones(tree.size, bool))[0]
    assert (tree.volume[tree.leaves] == 1).all()
    again, place = tree.split(np.ones(tree.size, bool))
    assert again.size == tree.size
    assert place.tolist() == list(range(tree.size))


def test_powers_of_the_fanout_give_the_papers_tree():
    tree = Tree.root([Axis(27)], 3)
    for _ in range(3):
        tree = tree.split(~tree.is_split)[0]
    assert [level.stop - level.start for level in tree.levels()] == [1, 3, 9, 27]
    for level, length in zip(tree.levels(), (27, 9, 3, 1), strict=True):
        assert tree.lo[level, 0].tolist() == list(range(0, 27, length))
        assert (tree.hi[level, 0] - tree.lo[level, 0] == length).all()


@examples(100)
@given(tree=grown_trees(), data=st.data())
def test_flags_that_do_not_fit_are_refused_by_both(tree, data):
    text = flags(tree)
    change = data.draw(st.sampled_from(["longer", "shorter", "flip"]))
    if change == "longer":
        bad = text + data.draw(st.sampled_from("01"))
    elif change == "shorter":
        bad = text[:-1]
    else:
        i = data.draw(st.integers(0, len(text) - 1))
        bad = text[:i] + ("0" if text[i] == "1" else "1") + text[i + 1 :]
    array = np.array([c == "1" for c in bad], bool)
    form = TreeForm(tree.fanout, bad)
    try:
        leaves = form.leaves(tree.axes)
    except ValueError:
        with pytest.raises(ValueError, match="expected"):
            Tree.from_flags(tree.axes, tree.fanout, array)
        with pytest.raises(ValueError, match="expected"):
            Partition.of_form(form, tree.axes)
    else:
        other = Tree.from_flags(tree.axes, tree.fanout, array)
        assert leaves == tuple(boxes(other)[i] for i in other.leaves)


def test_a_flag_that_cuts_a_single_code_is_refused():
    axes = [Axis(2)]
    with pytest.raises(ValueError, match="expected"):
        Tree.from_flags(axes, 2, np.array([True, True, False]))


def test_fanout_below_two_is_refused():
    with pytest.raises(ValueError, match="expected fanout >= 2, got 1"):
        Tree.root([Axis(4)], 1)
