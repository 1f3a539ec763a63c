"""Quadtree: its height, sums of cells, the structural correction, errors, every domain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms.spatial.box_estimates import density
from ahead_ldp.mechanisms.spatial.quadtree import MOST_CELLS, Quadtree, told_apart
from ahead_ldp.oracles import OUE
from ahead_ldp.protocol.session import finish
from ahead_ldp.schema.workloads import Workload
from tests.mechanisms.one_wave import check_any_numbers, check_mean_and_variance, check_record, mean_and_variance_hold
from tests.mechanisms.populations import bumpy, schema_of
from tests.support import PASS, examples

FORMS = {"paper": Quadtree.paper("1"), "strong": Quadtree.strong("1"), "few": Quadtree.strong("0.5", 2000)}
every_form = pytest.mark.parametrize("mechanism", FORMS.values(), ids=FORMS)
NO_CORRECTION = Quadtree(epsilon="2", height=2, scale=0.0, oracle="grr")


def estimate_of(mechanism, histogram, seed=1):
    schema = schema_of(*histogram.shape)
    return run_simulation(mechanism, schema, Population.of_histogram(histogram), np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("users", "epsilon", "attributes", "height"),
    [(10**6, 1.0, 2, 5), (10**6, 0.1, 2, 3), (10**6, 1.0, 1, 9), (10, 0.1, 2, 1)],
)
def test_the_height_follows_from_people_and_epsilon(users, epsilon, attributes, height):
    """As many cells as the share of one that has the standard deviation of its estimate goes into 1."""
    variance = float(OUE.make(epsilon, 1000).variance(1))
    assert told_apart(users, variance, attributes) == height


def test_one_question_about_the_cells_of_a_full_quadtree():
    schema = schema_of(64, 64)
    assert [g.id for g in Quadtree.paper("1").groups(schema)] == ["1"]
    wave = next(Quadtree.paper("1").run(schema))
    assert {q.partition.cells for q in wave.values()} == {4**5}
    assert Quadtree.paper("1").full_tree(schema_of(3, 40)).leaves.size == 3 * 32
    huge = Quadtree(epsilon="1", height=12).full_tree(schema_of(4096, 4096))
    assert huge.leaves.size == MOST_CELLS


def test_everybody_in_a_corner_leaves_the_rest_undivided():
    """At epsilon 12 noise is nothing: three quadrants are boxes of their own on every level on the way down."""
    histogram = np.zeros((16, 16), np.int64)
    histogram[:2, :2] = 250_000
    estimate = estimate_of(Quadtree(epsilon="12", height=4, theta=0.01), histogram)
    sides = (estimate.hi - estimate.lo)[:, 0].tolist()
    assert sorted(sides) == [1] * 4 + [2] * 3 + [4] * 3 + [8] * 3
    assert estimate.shares[(estimate.hi - estimate.lo)[:, 0] > 1].max() < 1e-3


def test_theta_and_noise_both_stop_a_division():
    histogram = bumpy((16, 16), 10**6, 3)
    boxes = {
        choice: estimate_of(Quadtree(epsilon="6", height=3, **{choice[0]: choice[1]}), histogram).shares.size
        for choice in (("theta", 0.5), ("theta", 0.1), ("theta", 0.01), ("scale", 1e9), ("scale", 1.0))
    }
    assert boxes == {
        ("theta", 0.5): 4,  # the root alone has more
        ("theta", 0.1): 16,  # so do the quadrants, of about a quarter each
        ("theta", 0.01): 64,
        ("scale", 1e9): 1,
        ("scale", 1.0): 64,
    }


def test_a_node_is_the_sum_of_its_cells():
    histogram = bumpy((8, 8), 20_000, 5)
    fine = estimate_of(Quadtree(epsilon="1", height=3, scale=0.0), histogram)
    coarse = estimate_of(Quadtree(epsilon="1", height=3, scale=0.0, theta=0.9), histogram)
    assert coarse.shares.size == 4
    quadrants = Workload.from_codes((8, 8), [[[a, a + 3], [b, b + 3]] for a in (0, 4) for b in (0, 4)])
    np.testing.assert_allclose(fine.answer(quadrants).values, coarse.answer(quadrants).values, atol=1e-12)


@examples(40)
@given(rows=st.integers(1, 20), columns=st.integers(1, 20), seed=st.integers(0, 2**31), theta=st.floats(0, 0.4))
def test_boxes_tile_the_domain(rows, columns, seed, theta):
    rng = np.random.default_rng(seed)
    histogram = rng.multinomial(2000, rng.dirichlet(np.full(rows * columns, 0.2))).reshape(rows, columns)
    estimate = estimate_of(Quadtree(epsilon="1", height=3, theta=theta), histogram, seed)
    covered = np.zeros((rows, columns))
    for (a, b), (c, d) in zip(estimate.lo, estimate.hi, strict=True):
        covered[a:c, b:d] += 1
    assert (covered == 1).all()
    assert estimate.shares.sum() == pytest.approx(1.0)
    assert estimate.shares.min() >= 0


@pytest.mark.parametrize("shape", [(5,), (4, 7), (2, 3, 4)])
def test_the_density_is_that_of_a_loop(shape):
    rng = np.random.default_rng(1)
    middle = [int(rng.integers(1, size)) for size in shape]
    lo = np.array(
        [
            [m if side else 0 for side, m in zip(corner, middle, strict=True)]
            for corner in np.ndindex(*(2,) * len(shape))
        ]
    )
    hi = np.where(lo > 0, shape, middle)
    masses = rng.random(len(lo))
    slow = np.zeros(shape)
    for a, b, mass in zip(lo, hi, masses, strict=True):
        slow[tuple(slice(x, y) for x, y in zip(a, b, strict=True))] = mass / np.prod(b - a)
    np.testing.assert_allclose(density(shape, lo, hi, masses), slow, atol=1e-12)


def test_mean_and_variance():
    histogram = bumpy((8, 8), 40_000, 7)
    workload = Workload.from_codes((8, 8), [[[0, 3], [0, 3]], [[0, 1], [2, 7]], [[2, 3], [4, 5]], [[0, 7], [0, 5]]])
    check_mean_and_variance(NO_CORRECTION, schema_of(8, 8), histogram, workload)


def test_the_variance_would_be_seen_to_be_wrong(monkeypatch):
    from ahead_ldp.mechanisms.spatial.quadtree import CellErrors

    real = CellErrors.variance
    monkeypatch.setattr(CellErrors, "variance", lambda self, weights: 1.3 * real(self, weights))
    workload = Workload.from_codes((8, 8), [[[0, 3], [0, 3]], [[0, 1], [2, 7]]])
    _, off = mean_and_variance_hold(NO_CORRECTION, schema_of(8, 8), bumpy((8, 8), 40_000, 7), workload)
    assert (np.abs(off) > PASS).all()


def test_a_box_that_is_cut_says_so_and_nobody_is_no_information():
    estimate = estimate_of(NO_CORRECTION, bumpy((8, 8), 40_000, 7))
    workload = Workload.from_codes((8, 8), [[[0, 3], [0, 3]], [[0, 2], [0, 3]]])
    assert estimate.answer(workload).bias_not_included.tolist() == [False, True]
    nobody = finish(NO_CORRECTION, schema_of(8, 8))
    assert np.isinf(nobody.answer(workload).standard_error).all()
    np.testing.assert_allclose(nobody.answer(workload).values, [16 / 64, 12 / 64])


@every_form
@pytest.mark.parametrize("sizes", [(1,), (2,), (37,), (1, 1), (1, 9), (3, 17), (32, 32)])
def test_any_numbers_of_people_on_any_domain(mechanism, sizes):
    check_any_numbers(mechanism, schema_of(*sizes))


@every_form
def test_records_come_back(mechanism):
    check_record(mechanism)


@pytest.mark.parametrize(
    ("choice", "value"),
    [("theta", -0.1), ("theta", 1.0), ("scale", -1.0), ("height", 0), ("users", 0), ("oracle", "sw")],
)
def test_choices_that_are_none_are_refused(choice, value):
    with pytest.raises(ValueError, match="expected"):
        Quadtree(epsilon=1, **{choice: value})
