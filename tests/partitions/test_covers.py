"""Answers from tables equal the walk to the coarsest nodes, for any values on any tree."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Axis
from ahead_ldp.partitions import covers
from ahead_ldp.partitions.covers import Answerer, chunks, cover_weights, leaf_density, overlap
from ahead_ldp.partitions.shares import cut
from ahead_ldp.partitions.trees import Tree
from tests.reference.covers import is_covered, share_inside, sides, walk
from tests.support import all_codes, examples, grown_trees, random_boxes


def values_of(tree: Tree, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Consistent values, unrelated ones, and those where one level alone differs from its children."""
    values = rng.uniform(-1, 1, tree.size)
    if kind == "any":
        return values
    values[tree.leaves] /= tree.size
    for level in reversed(list(tree.levels())):
        inner = np.flatnonzero(tree.is_split[level]) + level.start
        values[inner] = tree.children_sum(values)[inner]
    if kind == "one level":
        level = int(rng.integers(0, tree.height + 1))
        values[tree.level == level] = rng.uniform(-1, 1, (tree.level == level).sum())
    return values


@examples(150)
@given(tree=grown_trees(), kind=st.sampled_from(["consistent", "one level", "any"]), seed=st.integers(0, 2**32))
def test_answers_are_those_of_the_walk(tree, kind, seed):
    rng = np.random.default_rng(seed)
    values = values_of(tree, kind, rng)
    boxes = random_boxes([a.size for a in tree.axes], 10, rng)
    slow = [walk(tree, values.tolist(), box.tolist()) for box in boxes]
    weighed = cover_weights(tree, boxes) @ values
    np.testing.assert_allclose(weighed, slow, rtol=0, atol=1e-12)
    np.testing.assert_allclose(Answerer.of(tree, values).answer(boxes), slow, rtol=0, atol=1e-12)


@examples(100)
@given(tree=grown_trees(most=1, largest=40), kind=st.sampled_from(["one level", "any"]), seed=st.integers(0, 2**32))
def test_intervals_get_the_same_answers_from_one_table_as_level_by_level(tree, kind, seed):
    rng = np.random.default_rng(seed)
    values = values_of(tree, kind, rng)
    boxes = random_boxes([a.size for a in tree.axes], 60, rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(covers, "_LARGEST_INTERVAL_TABLE", 0)
        by_level = Answerer.of(tree, values).answer(boxes)
    slow = [walk(tree, values.tolist(), box.tolist()) for box in boxes]
    np.testing.assert_allclose(by_level, slow, rtol=0, atol=1e-12)
    np.testing.assert_allclose(Answerer.of(tree, values).answer(boxes), slow, rtol=0, atol=1e-12)


@examples(60)
@given(tree=grown_trees(), seed=st.integers(0, 2**32))
def test_domains_too_large_for_a_table_get_the_same_answers(tree, seed):
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, tree.size)
    boxes = random_boxes([a.size for a in tree.axes], 10, rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(covers, "LARGEST_TABLE", 0)
        patch.setattr(covers, "_CHUNK", 3 * tree.size)
        without = Answerer.of(tree, values)
        assert without.tables is None
        answers = without.answer(boxes)
    with_table = Answerer.of(tree, values)
    assert with_table.tables is not None
    np.testing.assert_allclose(answers, with_table.answer(boxes), rtol=0, atol=1e-12)


def test_a_domain_of_a_million_millions_is_answered():
    tree = Tree.root([Axis(10**4)] * 3, 2).split(np.array([True]))[0]
    values = np.array([1.0] + [0.125] * 8)
    box = np.array([[[0, 10**4], [0, 5000], [0, 2500]]], float)
    assert Answerer.of(tree, values).tables is None
    np.testing.assert_allclose(Answerer.of(tree, values).answer(box), [0.125])


@examples(60)
@given(tree=grown_trees(), seed=st.integers(0, 2**32))
def test_overlap_density_and_cut_leaves(tree, seed):
    rng = np.random.default_rng(seed)
    boxes = random_boxes([a.size for a in tree.axes], 6, rng)
    share = overlap(tree, boxes)
    nodes = sides(tree)
    slow = [[share_inside(node, box) for node in nodes] for box in boxes.tolist()]
    np.testing.assert_allclose(share, slow, atol=1e-13)
    ends_inside = [
        any(share_inside(nodes[i], box) > 0 and not is_covered(nodes[i], box) for i in tree.leaves)
        for box in boxes.tolist()
    ]
    assert cut(share[:, tree.leaves]).tolist() == ends_inside
    values = rng.uniform(-1, 1, tree.size)
    leaf = tree.locate(all_codes(tree.axes))
    np.testing.assert_allclose(leaf_density(tree, values).reshape(-1), (values / tree.volume)[leaf], atol=1e-13)


def test_whole_domain_is_the_root_and_an_empty_box_nothing():
    tree = Tree.root([Axis(6), Axis(5)], 2).split(np.array([True]))[0]
    values = np.array([1.0, 9, 9, 9, 9])
    boxes = np.array([[[0, 6], [0, 5]], [[2, 2], [0, 5]], [[6, 6], [5, 5]]], float)
    np.testing.assert_allclose(Answerer.of(tree, values).answer(boxes), [1, 0, 0], atol=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (1, 0), (7, 10**9), (10**7, 3), (100, 100)])
def test_chunks_cover_all_rows_once(rows, columns):
    parts = [range(*part.indices(rows)) for part in chunks(rows, columns)]
    assert sum(len(p) for p in parts) == rows
    assert all(a.stop == b.start for a, b in pairwise(parts))
