"""Pair trees after consistency on attributes: the slow version, agreement, and nothing else changed."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Axis
from ahead_ldp.mechanisms.ahead.attribute_consistency import (
    LevelGrids,
    attribute_weights,
    level_tables,
    make_consistent,
)
from ahead_ldp.partitions.trees import Tree
from tests.reference import pair_trees as slow
from tests.support import examples, random_boxes


@st.composite
def forests(draw: st.DrawFn, most: int = 4, largest: int = 9) -> tuple[int, dict]:
    """Trees over all pairs of some attributes, with values that are no distribution, and variances, some infinite."""
    fanout = draw(st.integers(2, 3))
    axes = []
    for _ in range(draw(st.integers(3, most))):
        size = draw(st.integers(1, largest))
        kind = draw(st.sampled_from(["ordered", "ordered", "nominal", "missing"]))
        axes.append(Axis(size, kind == "nominal", kind == "missing" and size > 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    forest = {}
    for i, j in combinations(range(len(axes)), 2):
        tree = Tree.root([axes[i], axes[j]], fanout)
        for _ in range(4):
            last = tree.level == tree.height
            tree = tree.split(last & (rng.random(tree.size) < 0.7))[0]
        variance = rng.uniform(0.5, 2, tree.size) * 1e-4
        if rng.random() < 0.2:
            variance[rng.integers(0, tree.size)] = np.inf
        variance[0] = 0.0
        forest[i, j] = tree, rng.dirichlet(np.full(tree.size, 0.5)), variance
    return len(axes), forest


def grids_of(forest: dict) -> dict:
    return {pair: LevelGrids.complete(*parts) for pair, parts in forest.items()}


@examples(25)
@given(drawn=forests(), seed=st.integers(0, 2**32))
def test_grids_and_their_agreement_are_the_slow_ones(drawn, seed):
    attributes, forest = drawn
    made = grids_of(forest)
    levels = {pair: slow.completed(tree, values) for pair, (tree, values, _) in forest.items()}
    variances = {}
    for pair, (tree, _, variance) in forest.items():
        assert [g.shape for g in made[pair].frequencies] == [g.shape for g in slow.as_grids(levels[pair])]
        for grid, expected in zip(made[pair].frequencies, slow.as_grids(levels[pair]), strict=True):
            np.testing.assert_allclose(grid, expected, atol=1e-12)
        for borders, level in zip(made[pair].borders, levels[pair], strict=True):
            assert [b.tolist() for b in borders] == [slow.borders_of(level, side) for side in (0, 1)]
        variances[pair] = [
            [slow.slab_variance(tree, variance, i, list(level), side) for side in (0, 1)]
            for i, level in enumerate(levels[pair])
        ]
        np.testing.assert_allclose(made[pair].slab_variance[1:], variances[pair][1:] or [], rtol=1e-9)
    agreed = make_consistent(made, attributes)
    slow.agree(levels, variances, attributes)
    rng = np.random.default_rng(seed)
    for pair, grids in agreed.items():
        for grid, expected in zip(grids.frequencies, slow.as_grids(levels[pair]), strict=True):
            np.testing.assert_allclose(grid, expected, atol=1e-10)
        boxes = random_boxes([axis.size for axis in forest[pair][0].axes], 6, rng)
        answers = level_tables(grids).answer(boxes)
        np.testing.assert_allclose(answers, [slow.walk(levels[pair], b.tolist()) for b in boxes], atol=1e-10)


@examples(60)
@given(drawn=forests(most=5, largest=16))
def test_shared_slabs_agree_on_every_level(drawn):
    attributes, forest = drawn
    agreed = make_consistent(grids_of(forest), attributes)
    for attribute in range(attributes):
        members = [pair for pair in agreed if attribute in pair]
        for level in range(1 + max(agreed[pair].height for pair in members)):
            sums = [
                agreed[pair].frequencies[level].sum(axis=1 - pair.index(attribute))
                for pair in members
                if agreed[pair].height >= level
            ]
            assert max(np.abs(s - sums[0]).max() for s in sums) < 1e-9
            assert sums[0].sum() == pytest.approx(1, abs=1e-9)


@examples(60)
@given(drawn=forests(largest=16))
def test_agreeing_on_one_attribute_leaves_all_others_as_they_are(drawn):
    _, forest = drawn
    before = grids_of(forest)
    after = make_consistent(before, 1)  # attribute 0 alone
    for pair, grids in before.items():
        for old, new in zip(grids.frequencies, after[pair].frequencies, strict=True):
            for side in (0, 1):
                if pair[side] != 0:
                    np.testing.assert_allclose(new.sum(axis=1 - side), old.sum(axis=1 - side), atol=1e-12)
            if 0 not in pair:
                np.testing.assert_array_equal(new, old)


@examples(40)
@given(drawn=forests(largest=16), seed=st.integers(0, 2**32))
def test_the_order_of_attributes_and_pairs_does_not_matter(drawn, seed):
    attributes, forest = drawn
    rename = np.random.default_rng(seed).permutation(attributes).tolist()
    renamed = {}
    for (i, j), (tree, values, variance) in reversed(forest.items()):
        if rename[i] < rename[j]:
            renamed[rename[i], rename[j]] = tree, values, variance
            continue
        turned = turn(tree)
        place = {box: node for node, box in enumerate(boxes(turned))}
        order = np.empty(tree.size, int)
        order[[place[lo[::-1], hi[::-1]] for lo, hi in boxes(tree)]] = np.arange(tree.size)
        renamed[rename[j], rename[i]] = turned, values[order], variance[order]
    here, there = make_consistent(grids_of(forest), attributes), make_consistent(grids_of(renamed), attributes)
    for (i, j), grids in here.items():
        straight = rename[i] < rename[j]
        others = there[(rename[i], rename[j]) if straight else (rename[j], rename[i])]
        for a, b in zip(grids.frequencies, others.frequencies, strict=True):
            np.testing.assert_allclose(a, b if straight else b.T, atol=1e-10)


def boxes(tree: Tree) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [(tuple(lo), tuple(hi)) for lo, hi in zip(tree.lo.tolist(), tree.hi.tolist(), strict=True)]


def turn(tree: Tree) -> Tree:
    """The tree with its two attributes exchanged."""
    split = {box for box, cut in zip(boxes(tree), tree.is_split, strict=True) if cut}
    turned = Tree.root(tree.axes[::-1], tree.fanout)
    for _ in range(tree.height):
        turned = turned.split(np.array([(lo[::-1], hi[::-1]) in split for lo, hi in boxes(turned)]))[0]
    return turned


def test_a_tree_of_less_variance_has_more_say():
    tree = Tree.root([Axis(2), Axis(2)], 2).split(np.array([True]))[0]
    flat, steep = np.array([1, 0.25, 0.25, 0.25, 0.25]), np.array([1, 0.4, 0.4, 0.1, 0.1])
    quiet, loud = np.array([0, 1, 1, 1, 1]) * 1e-4, np.array([0, 3, 3, 3, 3]) * 1e-4
    forest = {(0, 1): (tree, steep, quiet), (0, 2): (tree, flat, loud), (1, 2): (tree, flat, quiet)}
    grids = grids_of(forest)
    assert attribute_weights(grids, 0) == pytest.approx({(0, 1): 0.75, (0, 2): 0.25})
    agreed = make_consistent(grids, 3)
    assert agreed[0, 2].frequencies[1].sum(axis=1)[0] == pytest.approx(0.75 * 0.8 + 0.25 * 0.5)


def test_what_nobody_told_has_no_say():
    tree = Tree.root([Axis(2), Axis(2)], 2).split(np.array([True]))[0]
    flat, steep = np.array([1, 0.25, 0.25, 0.25, 0.25]), np.array([1, 0.4, 0.4, 0.1, 0.1])
    told, silent = np.array([0, 1, 1, 1, 1]) * 1e-4, np.array([0, *[np.inf] * 4])
    agreed = make_consistent(
        grids_of({(0, 1): (tree, steep, told), (0, 2): (tree, flat, silent), (1, 2): (tree, flat, silent)}), 3
    )
    np.testing.assert_allclose(agreed[0, 2].frequencies[1].sum(axis=1), [0.8, 0.2])
    np.testing.assert_allclose(agreed[1, 2].frequencies[1].sum(axis=1), [0.5, 0.5])
