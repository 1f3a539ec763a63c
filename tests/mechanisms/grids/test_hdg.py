"""TDG and HDG: the published choices, the slow versions, odd domains, and errors that mean something."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Axis
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.grids import Grid
from ahead_ldp.estimates.solvers.proportional_fitting import proportional_fit
from ahead_ldp.estimates.solvers.slabs import Slabs
from ahead_ldp.estimates.solvers.weighted_update import in_out_cells
from ahead_ldp.mechanisms.grids.grid_consistency import Agreement, agreements, make_consistent
from ahead_ldp.mechanisms.grids.grid_estimates import GridEstimate
from ahead_ldp.mechanisms.grids.hdg import HDG, TDG, nested_borders
from ahead_ldp.oracles import OUE, Tally, adaptive_oracle
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.protocol.session import finish
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import Workload, true_answers
from tests.mechanisms.populations import bumpy, cells_of, random_ranges, schema_of, spread, whole
from tests.reference import grids as slow
from tests.support import examples

MILLION = 10**6


# Granularities. The table is what the published program (privmdr 8a8a619) chose at N = 10^6.


@pytest.mark.parametrize(
    ("m", "chosen"),
    [
        (2, [(8, 2), (32, 4), (32, 8), (64, 8)]),
        (3, [(8, 2), (16, 4), (32, 4), (32, 8)]),
        (5, [(4, 2), (16, 2), (32, 4), (32, 4)]),
    ],
)
def test_granularities_are_the_published_ones(m, chosen):
    found = [HDG(epsilon=e, users=MILLION).granularities(schema_of(*[256] * m)) for e in (0.1, 0.5, 1.0, 1.5)]
    assert found == chosen


def test_the_finest_pair_grid_of_the_ahead_papers_experiments_is_8_by_8():
    """AHEAD Sec. 5.3: two attributes of 1024 values, epsilon up to 1.5."""
    assert HDG(epsilon=1.5, users=MILLION).granularities(schema_of(1024, 1024))[1] == 8


def test_exact_granularities_are_the_nearest_integers():
    assert HDG(epsilon=1.0, users=MILLION, rounding="exact").granularities(schema_of(64, 64)) == (45, 6)  # 44.6, 6.01


def test_tdg_shares_the_people_among_pairs_alone():
    m = schema_of(64, 64, 64)
    assert [g.id for g in TDG(epsilon=1.0).groups(m)] == ["0.1", "0.2", "1.2"]
    assert [g.id for g in HDG(epsilon=1.0).groups(m)] == ["0", "1", "2", "0.1", "0.2", "1.2"]


@examples(100)
@given(
    size=st.integers(1, 150),
    g2=st.integers(2, 20),
    factor=st.integers(1, 6),
    nominal=st.booleans(),
    missing=st.booleans(),
)
def test_columns_of_one_attribute_nest_in_those_of_the_pairs(size, g2, factor, nominal, missing):
    axis = Axis(size, nominal, missing and size > 1)
    fine, coarse = nested_borders(axis, g2 * factor, g2), axis.parts(0, size, g2)
    assert set(coarse) <= set(fine)
    assert fine == sorted(set(fine))
    assert (fine[0], fine[-1]) == (0, size)
    if not nominal and size % (g2 * factor) == 0 and not axis.missing:
        assert fine == list(range(0, size + 1, size // (g2 * factor)))
    if nominal:
        assert fine == list(range(size + 1))
    elif not axis.missing and size >= g2:
        assert len(fine) - 1 == sum(min(factor, hi - lo) for lo, hi in pairwise(coarse))


# The slow versions.


def weighted_update(pair_answers: np.ndarray, q: int, *args, **kwargs) -> np.ndarray:
    """Answers to queries on q attributes from the answers of their pairs: the cell that is inside on all."""
    return in_out_cells(pair_answers, q, *args, **kwargs)[:, 0]


@pytest.mark.parametrize("q", [2, 3, 4, 5])
def test_weighted_update_is_the_slow_one(q):
    rng = np.random.default_rng(q)
    answers = rng.random((30, q * (q - 1) // 2)) ** 2
    answers[0] = 0.0
    found = in_out_cells(answers, q, sweeps=40, tolerance=1e-7)
    for row, a in zip(found, answers, strict=True):
        expected = slow.weighted_update(a.tolist(), q, 40, 1e-7)
        np.testing.assert_allclose(row, list(expected.values()), atol=1e-12)
    np.testing.assert_array_equal(weighted_update(answers, q, 40, 1e-7), found[:, 0])


def test_scaling_the_complement_has_the_same_fixed_point_and_needs_fewer_sweeps():
    rng = np.random.default_rng(0)
    cells = rng.dirichlet(np.ones(16), size=50).reshape(-1, 2, 2, 2, 2)
    answers = np.stack([cells.sum(axis=_others(i, j))[:, 0, 0] for i, j in combinations(range(4), 2)], axis=1)
    limit = weighted_update(answers, 4, sweeps=20_000, tolerance=1e-13)
    np.testing.assert_allclose(weighted_update(answers, 4, 20_000, 1e-13, complement=True), limit, atol=1e-7)
    near_one = np.full((1, 3), 0.97)
    limit = weighted_update(near_one, 3, 100_000, 1e-14)
    both = [abs(weighted_update(near_one, 3, 10, 0.0, complement=c) - limit)[0] for c in (False, True)]
    assert both[1] < 0.05 * both[0]


def _others(i: int, j: int) -> tuple[int, ...]:
    return tuple(axis + 1 for axis in range(4) if axis not in (i, j))


def test_a_query_is_answered_the_same_in_any_company():
    rng = np.random.default_rng(3)
    answers = rng.random((40, 6))
    together = weighted_update(answers, 4)
    alone = np.concatenate([weighted_update(answers[i : i + 1], 4) for i in range(40)])
    np.testing.assert_array_equal(together, alone)


def test_the_response_matrix_is_the_slow_one_summed_over_equal_entries():
    rng = np.random.default_rng(1)
    truth = rng.dirichlet(np.ones(24 * 24)).reshape(24, 24)
    rows, columns = truth.sum(1).reshape(12, 2).sum(1), truth.sum(0).reshape(6, 4).sum(1)
    grid = truth.reshape(3, 8, 3, 8).sum(axis=(1, 3))
    fine = [np.arange(0, 25, 2), np.arange(0, 25, 4)]
    coarse = np.arange(0, 25, 8)
    views = [((0,), [fine[0]], rows), ((1,), [fine[1]], columns), ((0, 1), [coarse, coarse], grid)]
    constraints = [(Slabs.of(fine, axes, borders), target) for axes, borders, target in views]
    start = np.ones((12, 6))
    expected = slow.response_matrix(rows, columns, grid, 24, sweeps=300)
    found = proportional_fit(start, constraints, sweeps=300, tolerance=0.0)
    np.testing.assert_allclose(found, expected.reshape(12, 2, 6, 4).sum(axis=(1, 3)), atol=1e-10)
    for slabs, target in constraints:
        np.testing.assert_allclose(slabs.sums(found), target, atol=1e-10)


def _noisy_grids(seed: int) -> tuple[dict[tuple[int, ...], np.ndarray], list[Grid]]:
    rng = np.random.default_rng(seed)
    shapes: dict[tuple[int, ...], tuple[int, ...]] = {(0,): (8,), (1,): (8,), (2,): (8,)}
    shapes |= {pair: (4, 4) for pair in combinations(range(3), 2)}
    tables = {a: rng.dirichlet(np.full(np.prod(s), 2.0)).reshape(s) for a, s in shapes.items()}
    oracle = OUE.make(1.0, 16)  # one variance for all cells, as in the paper
    made = [Grid(a, tuple(np.arange(0, 17, 16 // k) for k in t.shape), t, 100, oracle) for a, t in tables.items()]
    return {a: t.copy() for a, t in tables.items()}, made


def test_agreement_is_the_slow_one():
    tables, made = _noisy_grids(2)
    values = [g.values for g in made]
    for attribute, agreement in enumerate(agreements(made, [(0,), (1,), (2,)])):
        agreement.apply(values)
        slow.agree(tables, attribute, slabs=4)
    for value, expected in zip(values, tables.values(), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-12)


def test_agreeing_on_an_attribute_leaves_the_others_agreed():
    _, made = _noisy_grids(4)
    values = [g.values for g in made]
    found = agreements(made, [(0,), (1,), (2,)])
    for agreement in found:
        agreement.apply(values)
    for agreement in found:
        sums = [m.slabs.sums(values[m.grid]) for m in agreement.members]
        assert max(np.abs(s - sums[0]).max() for s in sums) < 1e-12


def test_the_transpose_is_the_transpose():
    rng = np.random.default_rng(5)
    _, made = _noisy_grids(6)
    found = agreements(made, [(0,), (1,), (2,)])
    x, y = ([rng.normal(size=g.values.shape) for g in made] for _ in range(2))
    forward, backward = list(x), list(y)
    for agreement in found:
        agreement.apply(forward)
    for agreement in reversed(found):
        agreement.transpose(backward)
    left = sum((a * b).sum() for a, b in zip(forward, y, strict=True))
    right = sum((a * b).sum() for a, b in zip(x, backward, strict=True))
    assert left == pytest.approx(right, abs=1e-10)


def test_a_group_of_more_people_has_more_say():
    table = np.full((2, 2), 0.25)
    small = Grid((0,), (np.array([0, 1, 2]),), np.array([0.2, 0.8]), 100, OUE.make(1.0, 2))
    large = Grid((0, 1), (np.array([0, 1, 2]),) * 2, table, 10**6, OUE.make(1.0, 4))
    first, _ = make_consistent([small, large], agreements([small, large], [(0,)]))
    assert first.values[0] == pytest.approx(0.5, abs=1e-3)


# Any domain, any number of reports.

DOMAINS = [(1,), (2,), (70,), (1, 1), (5, 1), (3, 64), (100, 7), (2, 2, 2), (10, 3, 17), (4, 1, 5, 6)]
KINDS = [HDG, TDG]


def methods(people: int) -> list[Mechanism]:
    strong = [kind.strong(epsilon=1.0, users=people) for kind in KINDS]
    fine = HDG(epsilon=6.0, users=10**9, rounding="exact", oracle="adaptive")
    return [HDG(epsilon=1.0, users=people), TDG(epsilon=1.0, users=people), *strong, fine]


@pytest.mark.parametrize("sizes", DOMAINS, ids=str)
def test_every_domain_gives_shares(sizes):
    histogram = bumpy(sizes, 5000, 1)
    for mechanism in methods(5000):
        estimate = run_simulation(
            mechanism, schema_of(*sizes), Population.of_histogram(histogram), np.random.default_rng(1)
        )
        _check_shares(estimate, sizes)


@pytest.mark.parametrize("sizes", DOMAINS, ids=str)
def test_no_reports_is_no_information(sizes):
    for mechanism in methods(5000):
        estimate = finish(mechanism, schema_of(*sizes))
        found = _check_shares(estimate, sizes)
        workload = random_ranges(sizes, 40, 2)
        volume = ((workload.boxes[..., 1] - workload.boxes[..., 0]) / np.array(sizes)).prod(axis=1)
        if sum(d > 1 for d in sizes) <= 2:
            np.testing.assert_allclose(found.values, volume)
        assert (np.isinf(found.standard_error) == (volume < 1)).all()


def _check_shares(estimate: Estimate, sizes: tuple[int, ...]):
    found = estimate.answer(random_ranges(sizes, 40, 2))
    assert ((found.values >= 0) & (found.values <= 1 + 1e-12)).all()
    assert not np.isnan(found.standard_error).any()
    np.testing.assert_array_equal(found.values, estimate.answer(random_ranges(sizes, 40, 2), errors=False).values)
    everybody = estimate.answer(whole(sizes))
    assert (everybody.values[0], everybody.standard_error[0], everybody.bias_not_included[0]) == (1.0, 0.0, False)
    return found


@pytest.mark.parametrize(
    "empty", [{"0"}, {"0.1"}, {"0", "0.1"}, {"0", "1", "2"}, {"0.1", "0.2", "1.2"}], ids=lambda e: "+".join(sorted(e))
)
def test_groups_without_reports_are_as_if_not_asked(empty):
    sizes, mechanism = (12, 10, 8), HDG(epsilon=2.0, users=10**5)
    histogram, rng = bumpy(sizes, 10**5, 3), np.random.default_rng(3)
    run = mechanism.run(schema_of(*sizes))
    people = Population.of_histogram(histogram)
    tallies = {
        group: Tally.empty(q.oracle.outcomes) if group in empty else q.oracle.simulate(people.cells(q), rng)
        for group, q in next(run).items()
    }
    with pytest.raises(StopIteration) as stop:
        run.send(tallies)
    workload = random_ranges(sizes, 60, 4)
    found = stop.value.value.answer(workload)
    assert np.isfinite(found.standard_error).all()
    assert np.abs(found.values - true_answers(workload, histogram)).max() < 0.1


def test_one_attribute_is_answered_from_its_grid():
    """The published program returns one half for every range of one attribute."""
    sizes = (64, 64)
    shares = np.exp(-0.5 * ((np.arange(64) - 20) / 9) ** 2)
    histogram = np.random.default_rng(1).multinomial(MILLION, np.outer(shares, shares).reshape(-1) / shares.sum() ** 2)
    histogram = histogram.reshape(sizes)
    mechanism = HDG(epsilon=1.0, users=MILLION)
    estimate = run_simulation(
        mechanism, schema_of(*sizes), Population.of_histogram(histogram), np.random.default_rng(2)
    )
    workload = Workload.from_codes(sizes, [[[0, 7], [0, 63]], [[0, 31], [0, 63]], [[0, 63], [16, 23]]])
    found = estimate.answer(workload)
    assert not found.bias_not_included.any()
    assert (np.abs(found.values - true_answers(workload, histogram)) < 5 * found.standard_error).all()
    assert found.standard_error.max() < 0.01


def test_nominal_and_missing_codes_are_cells_of_their_own():
    schema = as_schema(["colour=nominal,red|green|blue|grey|black", "age=integer,0,99,missing=cell"])
    mechanism = HDG(epsilon=1.0, users=20_000)
    wave = next(mechanism.run(schema))
    assert wave["0"].partition.cells == 5
    assert wave["1"].partition.lo[-1, 0] == 100
    histogram = bumpy((5, 101), 20_000, 5)
    estimate = run_simulation(mechanism, schema, Population.of_histogram(histogram), np.random.default_rng(0))
    found = estimate.ask("colour in {red, blue}", "age missing", "colour = red and age in 10..50", "age not missing")
    assert np.isfinite(found.standard_error).all()
    assert list(found.bias_not_included[[0, 1, 3]]) == [False, False, False]
    assert found.values[1] + found.values[3] == pytest.approx(1)


def test_what_rests_on_an_assumption_is_marked():
    sizes, mechanism = (64, 64, 64), HDG(epsilon=1.0, users=MILLION)  # g1 = 32, g2 = 4
    histogram = bumpy(sizes, MILLION, 6)
    estimate = run_simulation(
        mechanism, schema_of(*sizes), Population.of_histogram(histogram), np.random.default_rng(0)
    )
    ranges = {
        (2, 63, 0, 63, 0, 63): False,
        (1, 63, 0, 63, 0, 63): True,  # inside a column of two codes
        (16, 31, 16, 63, 0, 63): False,
        (16, 31, 18, 63, 0, 63): True,  # inside a cell of the pair
        (16, 31, 16, 63, 16, 63): True,  # three attributes
    }
    found = estimate.answer(Workload.from_codes(sizes, list(ranges)))
    assert found.bias_not_included.tolist() == list(ranges.values())


# Errors. Bumpy data keep Norm-Sub from clipping, and boxes of whole cells keep assumptions out.


@pytest.mark.parametrize(
    ("mechanism", "sizes", "parts", "attributes", "reps"),
    [
        (HDG(epsilon=1.0, users=200_000), (32,), 32, 1, 80),
        (HDG(epsilon=1.0, users=200_000), (32, 32), 16, 1, 100),
        (HDG(epsilon=1.0, users=200_000), (32, 32), 4, 2, 120),
        (TDG(epsilon=1.0, users=200_000), (32, 32), 4, 2, 120),
        (TDG(epsilon=1.0, users=200_000), (16, 16, 16), 4, 1, 300),
        (HDG(epsilon=1.0, users=200_000, oracle="best"), (16, 16, 16), 4, 2, 120),
    ],
)
def test_answers_are_unbiased_and_vary_as_claimed(mechanism, sizes, parts, attributes, reps):
    off, variance = spread(mechanism, sizes, cells_of(sizes, parts, attributes), reps)
    assert (np.abs(off.mean(axis=0)) < 5 * np.sqrt(variance / reps)).all()
    # Over nearly independent cells the ratio has a standard error of sqrt(2 / (reps cells)), at most 0.05.
    bound = 5 * np.sqrt(2 / (reps * (parts**attributes - 1)))
    assert bound < 0.25
    ratio = off.var(axis=0, ddof=1).sum() / variance.sum()
    assert abs(ratio - 1) < bound


def test_errors_hold_on_three_attributes():
    """Octants, whose errors go through the response matrices and the weighted update. Seven of them are free."""
    sizes = (16, 16, 16)
    mechanism = HDG(epsilon=1.0, users=200_000, update="complement")
    off, variance = spread(mechanism, sizes, cells_of(sizes, 2, 3), 300)
    assert abs(off.var(axis=0, ddof=1).sum() / variance.sum() - 1) < 5 * np.sqrt(2 / (300 * 7))


def test_errors_of_a_sum_know_what_its_boxes_share():
    sizes = (16, 16)
    population = Population.of_histogram(bumpy(sizes, 10**5, 8))
    estimate = run_simulation(HDG(epsilon=1.0, users=10**5), schema_of(*sizes), population, np.random.default_rng(0))
    halves = np.array([[[0.0, 4.0], [0.0, 8.0]], [[4.0, 16.0], [0.0, 8.0]]])
    split = estimate.answer(Workload(sizes, halves, np.array([0, 0]), 1))
    joined = estimate.answer(Workload.from_codes(sizes, [[[4, 15], [0, 7]]]))
    assert np.isfinite(split.standard_error[0])
    alone = estimate.answer(Workload(sizes, halves, np.array([0, 1]), 2))
    assert split.standard_error[0] ** 2 != pytest.approx((alone.standard_error**2).sum(), rel=0.05)
    assert split.values[0] - alone.values[0] == pytest.approx(joined.values[0])


# Choices.


def test_the_adaptive_oracle_changes_where_its_paper_says():
    """WBLJ17: GRR for fewer than 3 exp(epsilon) + 2 cells, 10.15 at epsilon 1."""
    assert [adaptive_oracle(1.0, d, ("grr", "olh")).name for d in (2, 10, 11, 64)] == ["grr", "grr", "olh", "olh"]


@pytest.mark.parametrize("kind", KINDS)
def test_records_come_back(kind):
    for mechanism in (kind(epsilon="0.5", users=3), kind.strong(epsilon=1.0, users=10**7)):
        assert kind.from_record(mechanism.record()).record() == mechanism.record()


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"users": 0}, "users to be a positive integer, got 0"),
        ({"users": 1e6}, "users to be a positive integer"),
        ({"rounding": "up"}, "rounding to be one of power_of_two, exact, got 'up'"),
        ({"update": "fast"}, "update to be one of"),
        ({"oracle": "sw"}, "an unbiased estimate, got 'sw'"),
        ({"alpha2": 0.0}, "alpha2 > 0"),
        ({"epsilon": -1.0}, "epsilon"),
    ],
)
def test_choices_that_are_none_are_refused(choices, message):
    with pytest.raises(ValueError, match=message):
        HDG(**({"epsilon": 1.0} | choices))


def test_too_many_restricted_attributes_are_refused_with_the_number():
    with pytest.raises(ValueError, match="2 to 16 restricted attributes, got 17"):
        in_out_cells(np.zeros((1, 136)), 17)


def test_grids_are_consistent_after_the_run():
    sizes = (32, 32, 32)
    histogram = np.random.default_rng(9).multinomial(10**5, np.ones(32**3) / 32**3).reshape(sizes)
    estimate = run_simulation(
        HDG(epsilon=0.5, users=10**5), schema_of(*sizes), Population.of_histogram(histogram), np.random.default_rng(9)
    )
    assert isinstance(estimate, GridEstimate)
    for grid in estimate.grids:
        assert grid.values.min() >= 0
        assert grid.values.sum() == pytest.approx(1)
    for agreement in estimate.agreements:
        assert isinstance(agreement, Agreement)
        sums = [m.slabs.sums(estimate.grids[m.grid].values) for m in agreement.members]
        assert max(np.abs(s - sums[0]).max() for s in sums) < 1e-3
