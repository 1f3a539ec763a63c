"""Norm-Sub is where the paper's loop ends; the nearest point of the simplex is something else below the total."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ahead_ldp.estimates.solvers.norm_sub import nearest_in_simplex, norm_sub
from tests.reference.norm_sub import norm_sub as paper_loop
from tests.support import examples

numbers = st.lists(st.floats(-3, 3, allow_subnormal=False).map(lambda v: round(v, 6)), min_size=1, max_size=30)
totals = st.floats(0.01, 2)


@examples(200)
@given(x=numbers, total=totals)
def test_the_nearest_point_is_nearest(x, total):
    """The optimality conditions: one shift for all entries that stay positive, no less for those that do not."""
    y = nearest_in_simplex(np.array(x), total)
    assert y.min() >= 0
    assert y.sum() == pytest.approx(total, abs=1e-12)
    shift = np.array(x) - y
    kept = y > 0
    assert np.ptp(shift[kept]) < 1e-12
    assert (np.array(x)[~kept] <= shift[kept].max() + 1e-12).all()


@examples(300)
@given(x=numbers, total=totals)
def test_it_is_where_the_papers_loop_ends(x, total):
    assume(max(x) > 0)
    np.testing.assert_allclose(norm_sub(np.array(x), total), paper_loop(x, total), atol=1e-12)


def test_where_positive_entries_fall_short_the_nearest_point_fills_others_too():
    np.testing.assert_allclose(nearest_in_simplex(np.array([0.2, -0.1])), [0.65, 0.35])
    np.testing.assert_allclose(norm_sub(np.array([0.2, -0.1])), [1.0, 0.0])


def test_without_a_positive_entry_it_is_the_nearest_point():
    np.testing.assert_allclose(norm_sub(np.array([-1.0, -1.0, -1.5])), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(norm_sub(np.zeros(4)), np.full(4, 0.25))
    np.testing.assert_allclose(norm_sub(np.array([-7.0])), [1.0])
    np.testing.assert_array_equal(norm_sub(np.array([0.3, 0.4]), total=0.0), [0.0, 0.0])


@examples(50)
@given(x=numbers)
def test_frequencies_stay_as_they_are(x):
    f = np.abs(x) + 0.01
    f /= f.sum()
    np.testing.assert_allclose(norm_sub(f), f, atol=1e-12)


def test_negative_total_is_refused():
    with pytest.raises(ValueError, match=r"expected total >= 0, got -0\.5"):
        norm_sub(np.ones(3), -0.5)
