"""A summed-area table against sums over slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.partitions.summed_area import SummedArea
from tests.support import examples, random_boxes

shapes = st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple)


@examples(80)
@given(shape=shapes, seed=st.integers(0, 2**32))
def test_integers_are_summed_exactly(shape, seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(-(2**50), 2**50, shape)
    boxes = random_boxes(shape, 12, rng, whole=True).astype(np.int64)
    sums = SummedArea.of(values).boxes(boxes[..., 0], boxes[..., 1])
    assert sums.dtype == np.int64
    assert sums.tolist() == [values[tuple(slice(lo, hi) for lo, hi in box)].sum() for box in boxes]


@examples(80)
@given(shape=shapes, seed=st.integers(0, 2**32))
def test_ends_inside_a_cell_take_its_share(shape, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    boxes = random_boxes(shape, 12, rng)
    slow = []
    for box in boxes:
        total = values
        for lo, hi in box:  # one axis at a time: the share of every code that lies inside
            code = np.arange(total.shape[0])
            share = np.clip(np.minimum(hi, code + 1) - np.maximum(lo, code), 0, 1)
            total = np.tensordot(share, total, axes=1)
        slow.append(float(total))
    np.testing.assert_allclose(SummedArea.of(values).fractional_boxes(boxes), slow, atol=1e-12)


def test_an_empty_box_sums_to_nothing():
    table = SummedArea.of(np.ones((4, 5), np.int64))
    lo, hi = np.array([[3, 0], [4, 5], [2, 2]]), np.array([[1, 5], [4, 5], [2, 4]])
    assert table.boxes(lo, hi).tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_])
def test_small_integers_do_not_overflow(dtype):
    values = np.full(1000, np.iinfo(dtype).max if dtype != np.bool_ else True, dtype)
    total = SummedArea.of(values).boxes(np.array([[0]]), np.array([[1000]]))
    assert total.tolist() == [1000 * int(values[0])]
