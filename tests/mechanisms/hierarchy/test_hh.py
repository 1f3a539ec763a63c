"""HH: least squares on trees, its published variances, and legal answers on every domain."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Axis
from ahead_ldp.engines.collection import run_collection
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.solvers.norm_sub import nearest_in_simplex
from ahead_ldp.estimates.solvers.tree_least_squares import TreeLeastSquares
from ahead_ldp.mechanisms.hierarchy.hh import HH
from ahead_ldp.mechanisms.hierarchy.hierarchies import Hierarchy
from ahead_ldp.mechanisms.hierarchy.hierarchy_estimates import LeastSquaresEstimate
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import Workload, prefix_workload, random_workload, true_answers
from tests.mechanisms.one_wave import (
    bell_of_256,
    bumpy,
    check_any_numbers,
    check_mean_and_variance,
    check_record,
    mean_and_variance_hold,
    ranges,
    strong_over_paper,
    with_empty,
)
from tests.reference import hierarchies as slow
from tests.support import PASS, SIZES, examples, schema_of

FORMS = {
    "paper": HH.paper("1"),
    "strong": HH.strong("1"),
    "raw": HH(epsilon="1", fanout=3, oracle="oue", consistent=False, non_negative=False),
    "binary": HH(epsilon="1", fanout=2, oracle="hrr", non_negative=False),
}
every_form = pytest.mark.parametrize("mechanism", FORMS.values(), ids=FORMS)


def full_tree(axis: Axis, fanout: int):
    return Hierarchy.of((axis,), fanout).trees[0]


# Least squares.


@examples(60)
@given(size=st.integers(1, 30), fanout=st.integers(2, 6), missing=st.booleans(), seed=st.integers(0, 2**32))
def test_least_squares_is_that_of_the_full_matrix(size, fanout, missing, seed):
    rng = np.random.default_rng(seed)
    tree = full_tree(Axis(size, missing=missing and size > 1), fanout)
    matrix, precision, y = slow.incidence(tree), 0.1 + rng.random(tree.size), rng.normal(size=tree.size)
    for known_root in (True, False):
        found = TreeLeastSquares.of(tree, precision, known_root)
        rows = slice(1 if known_root and size > 1 else 0, None)
        right = slow.least_squares(matrix[rows], precision[rows], y[rows], 1.0 if known_root else None)
        np.testing.assert_allclose(found.solve(y), matrix @ right, atol=1e-9)
        np.testing.assert_allclose(found.solve(y[:, None])[:, 0], found.solve(y), atol=1e-12)
        weights = rng.normal(size=(3, tree.size))
        coefficients, undetermined = found.coefficients(weights)
        constant = weights @ found.solve(np.zeros(tree.size))
        np.testing.assert_allclose(coefficients @ y + constant, weights @ found.solve(y), atol=1e-9)
        assert not undetermined.any() or size == 1


@examples(40)
@given(size=st.integers(2, 30), fanout=st.integers(2, 5), seed=st.integers(0, 2**32))
def test_nodes_without_precision_are_left_to_the_others_and_to_volume(size, fanout, seed):
    """A tiny precision in place of none tends to the same values where something determines them."""
    rng = np.random.default_rng(seed)
    tree = full_tree(Axis(size), fanout)
    precision = np.where(rng.random(tree.size) < 0.5, 0.0, 0.5 + rng.random(tree.size))
    y = rng.random(tree.size)
    found = TreeLeastSquares.of(tree, precision)
    limit = TreeLeastSquares.of(tree, np.maximum(precision, 1e-9)).solve(y)
    undetermined = found.coefficients(np.eye(tree.size))[1]
    np.testing.assert_allclose(found.solve(y)[~undetermined], limit[~undetermined], atol=1e-6)
    for values in (found.solve(y), found.solve_non_negative(y)):
        matrix = slow.incidence(tree)
        np.testing.assert_allclose(values, matrix @ values[tree.leaves][np.argsort(tree.lo[tree.leaves, 0])], atol=1e-9)
    nothing = TreeLeastSquares.of(tree, np.zeros(tree.size))
    np.testing.assert_allclose(nothing.solve(y), tree.volume / size)
    np.testing.assert_allclose(nothing.solve_non_negative(y), tree.volume / size)


@examples(60)
@given(children=st.integers(1, 8), total=st.floats(0, 2), seed=st.integers(0, 2**32))
def test_the_nearest_family_is_the_nearest(children, total, seed):
    rng = np.random.default_rng(seed)
    z, v = rng.normal(size=(5, children)), 0.2 + rng.random((5, children))
    found = nearest_in_simplex(z, np.full(5, total), v)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), total, atol=1e-9)
    shift = (z - found) / v  # the same for all positive entries, and at least that needed for those at 0
    for row, s in zip(found, shift, strict=True):
        positive = row > 1e-12
        assert np.ptp(s[positive]) < 1e-9 if positive.any() else total < 1e-9
        assert (s[~positive] <= s[positive].min(initial=np.inf) + 1e-9).all()
    even = nearest_in_simplex(z, np.full(5, total), np.ones_like(z))
    np.testing.assert_allclose(even, [nearest_in_simplex(row, total) for row in z], atol=1e-9)


def test_non_negative_is_least_squares_where_that_is_not_negative():
    tree = full_tree(Axis(27), 3)
    found = TreeLeastSquares.of(tree, np.ones(tree.size))
    y = tree.volume / 27 + np.random.default_rng(1).normal(size=tree.size) * 1e-3
    np.testing.assert_allclose(found.solve_non_negative(y), found.solve(y), atol=1e-12)
    y[-1] = -0.2
    values = found.solve_non_negative(y)
    assert values.min() == 0.0
    assert found.solve(y).min() < 0


# The mechanism.


@pytest.mark.parametrize("name", ["paper", "raw", "binary"])
def test_unbiased_with_the_promised_variance(name):
    size = 11
    workload = ranges((0, 4), (3, 7), (9, 9), (0, 9), (6, 10), size=size)
    check_mean_and_variance(FORMS[name], schema_of(size), bumpy((size,), 4000), workload)


def test_a_variance_thirty_percent_off_is_seen(monkeypatch):
    whole = LeastSquaresEstimate._variance
    monkeypatch.setattr(LeastSquaresEstimate, "_variance", lambda *args: 1.3 * whole(*args))
    _, off = mean_and_variance_hold(FORMS["paper"], schema_of(9), bumpy((9,), 4000), ranges((0, 4), (2, 7), size=9))
    assert (off < -PASS).all()


def test_single_nodes_have_the_oracles_variance():
    """Raw HH: a node is one cell of its level's question (CKS19), V_F with N / h people."""
    size, people, epsilon = 81, 10**6, 1.0
    mechanism = HH(epsilon=epsilon, fanout=3, oracle="oue", consistent=False, non_negative=False)
    uniform = np.full(size, people // size)
    estimate = run_simulation(mechanism, schema_of(size), Population.of_histogram(uniform), np.random.default_rng(1))
    for width in (1, 3, 9, 27):
        error = estimate.answer(ranges((0, width - 1), size=size)).standard_error[0]
        n, f = people / 4, width / size
        noise = 4 * exp(epsilon) / (n * (exp(epsilon) - 1) ** 2) + f / n  # CKS19, and the term of f
        sampling = f * (1 - f) * (1 / n - 1 / people)
        assert error**2 == pytest.approx(noise + sampling, rel=0.02)  # group sizes vary by 0.2 %


def predicted(mechanism: HH, size: int, workload: Workload, people: int = 10**8) -> np.ndarray:
    """Variances on a uniform population so large that only the oracles' noise counts, times people."""
    uniform = Population.of_histogram(np.full(size, people // size))
    estimate = run_simulation(mechanism, schema_of(size), uniform, np.random.default_rng(1))
    return estimate.answer(workload).standard_error ** 2 * people


V_F = 4 * exp(0.2) / (exp(0.2) - 1) ** 2  # CKS19 for one person, epsilon 0.2


def test_constrained_inference_has_the_published_effect():
    """CKS19: least squares takes a node's variance to at most B / (B + 1) of the oracle's."""
    for fanout, size in ((2, 64), (4, 256), (8, 512)):
        levels = round(log(size, fanout))
        raw = HH(epsilon=0.2, fanout=fanout, oracle="oue", consistent=False, non_negative=False)
        joined = HH(epsilon=0.2, fanout=fanout, oracle="oue", non_negative=False)
        point = ranges((size // 2, size // 2), size=size)
        assert predicted(raw, size, point)[0] == pytest.approx(levels * V_F, rel=0.02)
        assert predicted(joined, size, point)[0] <= levels * V_F * fanout / (fanout + 1) * 1.02
        assert predicted(joined, size, point)[0] >= levels * V_F * fanout / (fanout + 1) * 0.85


def test_range_variances_keep_the_published_bounds():
    """CKS19: (2B - 1) h alpha V_F raw, (B + 1) h log_B(r) V_F / 2 or less with inference."""
    rng = np.random.default_rng(3)
    for fanout, size in ((4, 256), (8, 512)):
        h = round(log(size, fanout))
        workload = random_workload([size], 300, rng)
        length = workload.boxes[:, 0, 1] - workload.boxes[:, 0, 0]
        raw = HH(epsilon=0.2, fanout=fanout, oracle="oue", consistent=False, non_negative=False)
        alpha = np.ceil(np.log(length) / log(fanout)) + 1
        assert (predicted(raw, size, workload) <= (2 * fanout - 1) * h * alpha * V_F).all()
        joined = HH(epsilon=0.2, fanout=fanout, oracle="oue", non_negative=False)
        long = length >= fanout
        bound = (fanout + 1) * h * np.log(length) / log(fanout) * V_F / 2
        assert (predicted(joined, size, workload) <= bound)[long].all()


def whole_nodes(lo: int, hi: int, fanout: int) -> int:
    """How many nodes of a whole tree tile [lo, hi)."""
    count = 0
    while lo < hi:
        width = 1
        while lo % (width * fanout) == 0 and lo + width * fanout <= hi:
            width *= fanout
        lo, count = lo + width, count + 1
    return count


def test_the_best_fanout_without_inference_is_near_five():
    """CKS19: 4.9 by the bound. With whole levels: 4^6 and 8^4 and 16^3 and 2^12 codes."""
    workload = random_workload([4096], 300, np.random.default_rng(4))
    raw = {
        b: predicted(
            HH(epsilon=0.2, fanout=b, oracle="oue", consistent=False, non_negative=False), 4096, workload
        ).mean()
        for b in (2, 4, 8, 16)
    }
    assert min(raw, key=raw.get) in (4, 8)
    ends = workload.boxes[:, 0].astype(int).tolist()
    for b, levels in ((2, 12), (4, 6), (8, 4), (16, 3)):  # V_F for each whole node, with 1 / levels of the people
        nodes = np.mean([whole_nodes(lo, hi, b) for lo, hi in ends])
        assert raw[b] == pytest.approx(levels * V_F * nodes, rel=0.02)
    assert raw[2] > 1.2 * raw[4]


def test_prefix_queries_cost_half():
    """CKS19: one fringe instead of two."""
    size, mechanism = 1024, HH.paper("0.2")
    prefix = predicted(mechanism, size, prefix_workload([size])).mean()
    both = predicted(mechanism, size, random_workload([size], 400, np.random.default_rng(5))).mean()
    assert 0.4 < prefix / both < 0.7


def test_strong_is_better_than_paper():
    assert strong_over_paper(HH, 0.5, *bell_of_256(10**5), runs=10) < 0.6


@every_form
@pytest.mark.parametrize("size", SIZES)
def test_every_domain_size(mechanism, size):
    check_any_numbers(mechanism, schema_of(size), seed=size)


@every_form
def test_nominal_and_missing(mechanism):
    check_any_numbers(mechanism, as_schema("x=nominal,a|b|c|d|e"))
    check_any_numbers(mechanism, as_schema("x=integer,0,9,missing=cell"))


def test_groups_and_empty_groups():
    schema, size = schema_of(64), 64
    assert [g.id for g in HH.paper(1).groups(schema)] == ["1", "2", "3"]
    assert HH.paper(1).groups(schema_of(1)) == ()
    histogram = bumpy((size,), 10**5)
    truth = true_answers(ranges((0, 15), (0, 3), size=size), histogram)
    for empty in ({"1"}, {"2"}):
        found = with_empty(HH.paper(1), schema, histogram, empty).answer(ranges((0, 15), (0, 3), size=size))
        assert (np.abs(found.values - truth) < 5 * found.standard_error).all()
        assert np.isfinite(found.standard_error).all()
    found = with_empty(HH.paper(1), schema, histogram, {"3"}).answer(ranges((0, 15), (0, 2), (4, 7), size=size))
    assert np.isinf(found.standard_error).tolist() == [False, True, False]


def test_reports_that_cross_the_wire():
    people = [{"x": i % 30} for i in range(400)]
    estimate = run_collection(HH(epsilon=4), as_schema("x=integer,0,29"), people).estimate
    found = estimate.ask("x in 0..14")
    assert abs(found.values[0] - 0.5) < 6 * found.standard_error[0]


def test_choices():
    for mechanism in FORMS.values():
        check_record(mechanism)
    with pytest.raises(ValueError, match="expected one attribute for hh, got 2"):
        HH.paper(1).groups(schema_of(4, 4))
    with pytest.raises(ValueError, match="expected fanout to be an integer >= 2, got 1"):
        HH(epsilon=1, fanout=1)
    with pytest.raises(ValueError, match="expected an oracle with an unbiased estimate, got 'sw'"):
        HH(epsilon=1, oracle="sw")
    with pytest.raises(ValueError, match="expected consistent=True"):
        HH(epsilon=1, consistent=False)
