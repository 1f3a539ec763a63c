"""kd-tree: medians, grids that hold every box, what all groups say of a box, errors, every domain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms.spatial.kdtree import MEDIANS, MOST_DEPTHS, KDTree, told_apart
from ahead_ldp.mechanisms.spatial.medians import DepthReport, nearness
from ahead_ldp.oracles import ORACLES
from ahead_ldp.protocol.session import finish
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import Workload, true_answers
from tests.estimates.strict.lumpy import asked, comb, heaps_and_ranges, spike
from tests.mechanisms.one_wave import check_any_numbers, check_record
from tests.mechanisms.populations import bumpy, schema_of, spread
from tests.mechanisms.waves import any_people, drive
from tests.support import PASS, examples

FORMS = {"paper": KDTree.paper("1"), "strong": KDTree.strong("1"), "few": KDTree.strong("0.5", 2000)}
every_form = pytest.mark.parametrize("mechanism", FORMS.values(), ids=FORMS)


def estimate_of(mechanism, histogram, seed=1):
    schema = schema_of(*histogram.shape)
    return run_simulation(mechanism, schema, Population.of_histogram(histogram), np.random.default_rng(seed))


# The tree.


@pytest.mark.parametrize(
    ("users", "variance", "height"), [(10**6, 3.68, 7), (10**6, 400.0, 4), (5, 400.0, 1), (10**12, 1.0, MOST_DEPTHS)]
)
def test_the_height_follows_from_people_and_epsilon(users, variance, height):
    """The largest h with 2^-h >= sqrt(h Var / n), at least 1 and at most 10."""
    assert told_apart(users, variance) == height
    fits = [h for h in range(1, MOST_DEPTHS + 1) if 2.0**-h >= np.sqrt(h * variance / users)]
    assert height == max(fits, default=1)


@pytest.mark.parametrize(
    ("before", "best"),
    [
        ([1.0, 3.0, 5.0, 6.0], 2),  # half of 10
        ([0.0, 0.0, 0.0, 0.0], 3),  # everybody in the last column: the border before it
        ([10.0, 10.0, 10.0, 10.0], 0),  # in the first: the border after it
        ([0.0, 0.0, 10.0, 10.0], 1),  # in the third: the border before it
        ([1.0, 1.0, 9.5, 9.5], 1),
        ([0.2, 0.2, 9.0, 9.0], 2),
    ],
)
def test_the_border_nearest_to_the_median(before, best):
    assert int(np.argmin(nearness(np.array(before), 10.0))) == best


def test_without_noise_every_box_has_half_of_its_parents_people():
    """Independent exponentials at epsilon 12: cuts are at every fourth code, four of them for each box."""
    x = np.exp(-np.arange(64) / 24)
    histogram = np.round(10**6 * np.outer(x, x) / x.sum() ** 2).astype(np.int64)
    estimate = estimate_of(KDTree(epsilon="12", height=4), histogram)
    assert estimate.shares.size == 16
    np.testing.assert_allclose(estimate.shares, 1 / 16, atol=0.035)
    volumes = (estimate.hi - estimate.lo).prod(axis=1)
    assert volumes.max() > 10 * volumes.min()  # unlike a quadtree's
    for lo, hi, share in zip(estimate.lo, estimate.hi, estimate.shares, strict=True):
        inside = histogram[lo[0] : hi[0], lo[1] : hi[1]].sum() / histogram.sum()
        assert share == pytest.approx(inside, abs=0.002)


def test_attributes_take_turns_and_each_grid_holds_every_border_so_far():
    mechanism, schema = KDTree(epsilon="2", height=5), schema_of(64, 64)
    estimate, waves, _ = drive(mechanism, schema, any_people(np.random.default_rng(1), (2000,)))
    forms = [next(iter(w.values())) for w in waves]
    assert [q.attributes for q in forms] == [(0,), (0, 1), (0, 1), (0, 1), (0, 1), (0, 1)]
    assert [g.share for g in mechanism.groups(schema)] == [1, 1, 1, 1, 1, 5]
    columns = [[len(cuts) + 1 for cuts in q.partition.form.cuts] for q in forms[:-1]]
    assert columns[0] == [32]
    fine = [c[d % 2 if d else 0] for d, c in enumerate(columns)]
    assert fine == [32] * 5  # four for each of the 8 boxes along an attribute
    for a, cuts in enumerate(forms[-1].partition.form.cuts):  # the last group is asked about the boxes' own borders
        assert set(cuts) == (set(estimate.lo[:, a]) | set(estimate.hi[:, a])) - {0, 64}


@examples(40)
@given(
    rows=st.integers(1, 20), columns=st.integers(1, 20), seed=st.integers(0, 2**31), medians=st.sampled_from(MEDIANS)
)
def test_boxes_tile_the_domain_whatever_is_told(rows, columns, seed, medians):
    rng = np.random.default_rng(seed)
    estimate, _, _ = drive(KDTree(epsilon="1", height=4, medians=medians), schema_of(rows, columns), any_people(rng))
    covered = np.zeros((rows, columns))
    for (a, b), (c, d) in zip(estimate.lo, estimate.hi, strict=True):
        covered[a:c, b:d] += 1
    assert (covered == 1).all()
    assert estimate.shares.sum() == pytest.approx(1.0)
    assert estimate.shares.min() >= -1e-12


def test_without_reports_boxes_are_cut_in_the_middle_and_nothing_is_known():
    estimate = finish(KDTree(epsilon="1", height=4), schema_of(16, 16))
    assert {tuple(side) for side in (estimate.hi - estimate.lo).tolist()} == {(4, 4)}
    np.testing.assert_allclose(estimate.shares, 1 / 16)
    answers = estimate.answer(Workload.from_codes((16, 16), [[[0, 7], [0, 7]], [[0, 15], [0, 15]]]))
    assert np.isinf(answers.standard_error[0])
    assert answers.standard_error[1] == 0


# Errors.


@pytest.mark.parametrize("medians", MEDIANS)
def test_answers_are_as_far_off_as_they_say(medians):
    """400 runs at epsilon 4: the mean squared error is within 5 sqrt(2 / 400) = 35 % of the claimed variance.

    Boxes are those of the middle cuts of an even population, so nearly all runs have the same ones.
    """
    workload = Workload.from_codes((16, 16), [[[0, 7], [0, 15]], [[0, 7], [0, 7]], [[8, 15], [8, 15]]])
    mechanism = KDTree(epsilon="4", height=2, medians=medians, users=20_000)
    off, claimed = spread(mechanism, (16, 16), workload, 400, 20_000)
    ratio = (off**2).mean(axis=0) / claimed
    assert (np.abs(ratio - 1) < PASS * np.sqrt(2 / 400)).all(), ratio


def test_the_precision_of_a_box_is_that_of_the_oracles_covariance():
    """A box of 3 of 8 cells that holds a quarter of the people: the closed form against the quadratic form."""
    for name in ("grr", "oue", "olh", "ss", "hrr"):
        oracle = ORACLES[name].make(1.5, 8)
        report = DepthReport((np.arange(9),), np.zeros(8), 100, oracle)
        f, inside = np.full(8, 0.75 / 5), np.zeros(8)
        f[:3], inside[:3] = 0.25 / 3, 1.0
        expected = 1 / oracle.group_variance(100, f, inside)
        assert report.precision(np.array([3]), np.array([0.25]))[0] == pytest.approx(expected, rel=1e-9)


def test_strict_intervals_hold_on_lumps():
    """Heaps on both attributes, 16 runs of 6 answers at 95 %: answers of one run go together, so a run counts as one.

    The share that holds has a standard error of at most sqrt(0.05 * 0.95 / 16) = 5.4 points; three are allowed.
    """
    table = np.outer(spike(0.5, 200, 16), comb(400, 16) + 1)
    workload, truth = heaps_and_ranges(table), true_answers(heaps_and_ranges(table), table)
    held = []
    for seed in range(16):
        low, high = asked(table, 1.0, seed, "kdtree").answer_jointly(workload).interval()
        assert ((low >= 0) & (low < high) & (high <= 1)).all()
        held.append((low <= truth + 1e-9) & (truth <= high + 1e-9))
    assert np.mean(held) >= 0.95 - 3 * 0.054


# Every domain, every number of people.


@every_form
@pytest.mark.parametrize("sizes", [(1,), (2,), (37,), (1, 1), (1, 9), (3, 17), (32, 32)])
def test_any_numbers_of_people_on_any_domain(mechanism, sizes):
    check_any_numbers(mechanism, schema_of(*sizes))


@every_form
def test_records_come_back(mechanism):
    check_record(mechanism)


@pytest.mark.parametrize("text", ["color=nominal,red|green", "x=codes,12,missing=cell"])
def test_what_has_no_order_is_refused(text):
    with pytest.raises(ValueError, match="expected an ordered attribute without a cell"):
        KDTree.strong("1").groups(as_schema(["y=codes,4", text]))


@pytest.mark.parametrize(("choice", "value"), [("height", 0), ("height", 11), ("users", 0), ("oracle", "sw")])
def test_choices_that_are_none_are_refused(choice, value):
    with pytest.raises(ValueError, match="expected"):
        KDTree(epsilon=1, **{choice: value})


def test_even_people_are_cut_near_the_middle():
    estimate = estimate_of(KDTree(epsilon="6", height=2), bumpy((16, 16), 10**6, 3))
    assert {tuple(row) for row in estimate.lo.tolist()} <= {(a, b) for a in (0, 6, 8, 10) for b in (0, 6, 8, 10)}
