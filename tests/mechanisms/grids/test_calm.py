"""CALM: which marginals, how they agree, what is put together from them, and where it must give up."""

from itertools import combinations, pairwise
from math import comb, exp, prod

import numpy as np
import pytest

from ahead_ldp.device import Schema
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.grids import Grid
from ahead_ldp.estimates.solvers.norm_sub import norm_sub
from ahead_ldp.mechanisms.grids.calm import CALM, choose_marginals, covering_sets, noise_error
from ahead_ldp.mechanisms.grids.grid_consistency import agreements, make_consistent, shared_attributes
from ahead_ldp.mechanisms.grids.marginal_estimates import MarginalEstimate
from ahead_ldp.oracles import GRR, OUE, Tally
from ahead_ldp.protocol.session import finish
from ahead_ldp.schema.attributes import as_schema, codes
from ahead_ldp.schema.workloads import Workload, point_workload, true_answers
from tests.mechanisms.populations import bumpy, cells_of, random_ranges, schema_of, spread, whole

# Which marginals.


@pytest.mark.parametrize("m", [6, 8, 16])
def test_noise_error_of_binary_attributes_is_that_of_unary_encoding(m):
    """(m / l) 2^l 4 e^epsilon / (n (e^epsilon - 1)^2) once a marginal has too many cells for GRR."""
    e = exp(1.0)
    for size in (4, 5, 6):
        expected = m / size * 2**size * 4 * e / (50_000 * (e - 1) ** 2)
        assert noise_error(50_000, 1.0, [2] * m, size) == pytest.approx(expected, rel=1e-4)


def test_noise_error_takes_the_better_oracle():
    """Two binary attributes have 4 cells: (d - 2 + e^epsilon) / (n (e^epsilon - 1)^2) of GRR."""
    e = exp(1.0)
    expected = 8 / 2 * 4 * (4 - 2 + e) / (50_000 * (e - 1) ** 2)
    assert noise_error(50_000, 1.0, [2] * 8, 2) == pytest.approx(expected, rel=1e-4)


def test_noise_error_of_unequal_sizes_has_the_mean_number_of_cells():
    sizes = [3, 5, 7, 2]
    cells = np.mean([prod(s) for s in combinations(sizes, 3)])
    oracle = OUE.make(1.0, round(cells))
    assert noise_error(10**5, 1.0, sizes, 3) == pytest.approx(4 / 3 * cells * oracle.variance(10**5))


def test_more_people_or_epsilon_buy_larger_marginals():
    def sizes(users, epsilon):
        return choose_marginals(users, epsilon, [2] * 8, 0.001, 2**16)[0]

    by_epsilon = [sizes(10**6, e) for e in (0.1, 0.5, 1.0, 2.0)]
    by_people = [sizes(n, 1.0) for n in (10**4, 10**5, 10**6, 10**7)]
    for found in (by_epsilon, by_people):
        assert found == sorted(found)
        assert (found[0], found[-1]) == (2, 8)
    assert len(set(by_people)) >= 3


def test_the_choice_is_the_largest_within_theta():
    for users, epsilon, sizes in [(10**6, 0.5, [2] * 8), (10**6, 1.0, [3] * 6), (3 * 10**5, 1.0, [4, 2, 2, 3, 2])]:
        size, count = choose_marginals(users, epsilon, sizes, 0.001, 2**16)
        assert size > 2
        noise = noise_error(users, epsilon, sizes, size)
        assert noise <= 0.001
        assert size == len(sizes) or noise_error(users, epsilon, sizes, size + 1) > 0.001
        assert noise + count / users <= 0.001 or count == 1
        assert count == comb(len(sizes), size) or noise + (count + 1) / users > 0.001


@pytest.mark.parametrize(("m", "size", "count"), [(6, 3, 1), (7, 3, 9), (8, 4, 20), (5, 2, 1), (4, 4, 1), (6, 5, 100)])
def test_every_pair_is_in_a_marginal(m, size, count):
    sets = covering_sets(m, size, count)
    assert len(set(sets)) == len(sets)
    assert {len(s) for s in sets} == {size}
    assert {p for s in sets for p in combinations(s, 2)} == set(combinations(range(m), 2))
    if comb(m, size) > count and size > 2:
        assert len(sets) < comb(m, size)


def test_marginals_that_are_too_large_are_refused_with_the_numbers():
    with pytest.raises(ValueError, match=r"at most 65536 cells.*1024 x 1024 = 1048576 for a0, a1"):
        CALM(epsilon=1.0).groups(schema_of(1024, 1024))
    estimate = finish(CALM(epsilon=1.0), schema_of(200, 200, 200))
    with pytest.raises(ValueError, match=r"at most 4194304 cells.*200 x 200 x 200 = 8000000"):
        estimate.answer(Workload.from_codes((200, 200, 200), [[[1, 5], [1, 5], [1, 5]]]))


# What is made of them.


@pytest.mark.parametrize(("sizes", "oracle"), [((9,), GRR), ((20,), OUE), ((12, 9), OUE), ((1, 30), OUE)])
def test_on_one_or_two_attributes_it_is_a_flat_oracle(sizes, oracle):
    schema, rng = schema_of(*sizes), np.random.default_rng(1)
    run = CALM(epsilon=1.0, users=10**4).run(schema)
    ((group, question),) = next(run).items()
    assert isinstance(question.oracle, oracle)
    tally = question.oracle.simulate(Population.of_histogram(bumpy(sizes, 10**4, 1)).cells(question), rng)
    with pytest.raises(StopIteration) as stop:
        run.send({group: tally})
    found = stop.value.value.answer(point_workload(sizes))
    np.testing.assert_allclose(found.values, norm_sub(question.oracle.estimate(tally)), atol=1e-12)


def _exact(histogram: np.ndarray, sets: list[tuple[int, ...]]) -> list[Grid]:
    made = []
    for attributes in sets:
        values = histogram.sum(axis=tuple(a for a in range(histogram.ndim) if a not in attributes))
        borders = tuple(np.arange(d + 1) for d in values.shape)
        made.append(Grid(attributes, borders, values / histogram.sum(), 1000, OUE.make(1.0, values.size)))
    return made


def test_a_distribution_of_pair_interactions_is_put_together_exactly():
    """It is the most even one with its pair marginals, so maximum entropy finds it."""
    rng, sizes = np.random.default_rng(2), (4, 3, 5)
    table = np.ones(sizes)
    for i, j in combinations(range(3), 2):
        wide = [sizes[a] if a in (i, j) else 1 for a in range(3)]
        table = table * np.exp(rng.normal(size=(sizes[i], sizes[j]))).reshape(wide)
    table /= table.sum()
    estimate = MarginalEstimate.of(
        schema_of(*sizes), _exact(table, [(0, 1), (0, 2), (1, 2)]), sweeps=2000, tolerance=1e-14
    )
    np.testing.assert_allclose(estimate.table((0, 1, 2)), table, atol=1e-10)
    workload = random_ranges(sizes, 50, 3)
    np.testing.assert_allclose(estimate.answer(workload).values, true_answers(workload, table), atol=1e-9)


def test_a_chain_is_put_together_exactly_from_its_links():
    rng = np.random.default_rng(4)
    links = rng.dirichlet(np.ones(4), size=(2, 4))
    table = np.einsum("a,ab,bc->abc", rng.dirichlet(np.ones(4)), *links)
    estimate = MarginalEstimate.of(schema_of(4, 4, 4), _exact(table, [(0, 1), (1, 2)]), sweeps=500, tolerance=1e-14)
    np.testing.assert_allclose(estimate.table((0, 1, 2)), table, atol=1e-10)
    np.testing.assert_allclose(estimate.table((0, 2)).sum(), 1)


def test_shared_attributes_are_all_intersections_small_ones_first():
    made = _exact(np.ones((2, 2, 2, 2)), [(0, 1, 2), (0, 1, 3), (1, 2, 3)])
    assert shared_attributes(made) == [(1,), (0, 1), (1, 2), (1, 3)]


def test_agreement_on_larger_sets_keeps_that_on_smaller_ones():
    rng = np.random.default_rng(5)
    sets = [(0, 1, 2), (0, 1, 3), (1, 2, 3)]
    made = [
        Grid(s, (np.arange(4),) * 3, rng.dirichlet(np.full(27, 20.0)).reshape(3, 3, 3), 1000, OUE.make(1.0, 27))
        for s in sets
    ]
    found = agreements(made, shared_attributes(made))
    values = [g.values for g in made]
    for agreement in found:
        agreement.apply(values)
    for agreement in found:
        sums = [m.slabs.sums(values[m.grid]) for m in agreement.members]
        assert max(np.abs(s - sums[0]).max() for s in sums) < 1e-12
    for grid in make_consistent(made, found):
        assert grid.values.min() >= 0
        assert grid.values.sum() == pytest.approx(1)


# Any domain, any number of reports; errors.


@pytest.mark.parametrize(
    "sizes", [(1,), (2,), (70,), (1, 1), (5, 1), (3, 64), (2, 2, 2), (10, 3, 17), (4, 1, 5, 6)], ids=str
)
@pytest.mark.parametrize("reports", [True, False])
def test_every_domain_gives_shares(sizes, reports):
    mechanism, schema = CALM(epsilon=1.0, users=5000), schema_of(*sizes)
    if reports:
        people = Population.of_histogram(bumpy(sizes, 5000, 1))
        estimate = run_simulation(mechanism, schema, people, np.random.default_rng(1))
    else:
        estimate = finish(mechanism, schema)
    workload = random_ranges(sizes, 40, 2)
    found = estimate.answer(workload)
    volume = ((workload.boxes[..., 1] - workload.boxes[..., 0]) / np.array(sizes)).prod(axis=1)
    assert ((found.values >= -1e-12) & (found.values <= 1 + 1e-12)).all()
    if not reports:
        np.testing.assert_allclose(found.values, volume)
    assert (np.isinf(found.standard_error) == ((volume < 1) & (not reports))).all()
    np.testing.assert_array_equal(found.values, estimate.answer(workload, errors=False).values)
    everybody = estimate.answer(whole(sizes))
    assert (everybody.values[0], everybody.standard_error[0]) == (1.0, 0.0)


def test_a_marginal_without_reports_is_put_together_from_the_others():
    sizes, mechanism, rng = (6, 5, 4), CALM(epsilon=2.0, users=1000), np.random.default_rng(3)
    assert [g.id for g in mechanism.groups(schema_of(*sizes))] == ["0.1", "0.2", "1.2"]
    histogram = bumpy(sizes, 10**5, 3)
    run = mechanism.run(schema_of(*sizes))
    tallies = {
        group: Tally.empty(q.oracle.outcomes)
        if group == "0.1"
        else q.oracle.simulate(Population.of_histogram(histogram).cells(q), rng)
        for group, q in next(run).items()
    }
    with pytest.raises(StopIteration) as stop:
        run.send(tallies)
    workload = Workload.from_codes(sizes, [[[0, 2], [0, 2], [0, 3]], [[0, 2], [0, 4], [0, 1]]])
    found = stop.value.value.answer(workload)
    assert found.bias_not_included.tolist() == [True, False]
    assert np.isfinite(found.standard_error).all()
    np.testing.assert_allclose(found.values, true_answers(workload, histogram), atol=0.05)


@pytest.mark.parametrize(
    ("sizes", "parts", "attributes", "reps"), [((16,), 16, 1, 120), ((8, 8), 4, 2, 120), ((4, 4, 4), 4, 2, 120)]
)
def test_answers_are_unbiased_and_vary_as_claimed(sizes, parts, attributes, reps):
    off, variance = spread(CALM(epsilon=1.0, users=10**4), sizes, cells_of(sizes, parts, attributes), reps)
    assert (np.abs(off.mean(axis=0)) < 5 * np.sqrt(variance / reps)).all()
    bound = 5 * np.sqrt(2 / (reps * (parts**attributes - 1)))
    assert bound < 0.25
    assert abs(off.var(axis=0, ddof=1).sum() / variance.sum() - 1) < bound


def test_errors_hold_where_a_marginal_is_put_together():
    """Octants of three attributes from pairs, to first order on the cells inside and outside. Seven are free."""
    sizes = (4, 4, 4)
    off, variance = spread(CALM(epsilon=1.0, users=10**4), sizes, cells_of(sizes, 2, 3), 250)
    assert abs(off.var(axis=0, ddof=1).sum() / variance.sum() - 1) < 5 * np.sqrt(2 / (250 * 7))


def test_its_error_grows_with_the_domain():
    """AHEAD Sec. 3.4: a range of a large domain adds up as many noisy cells; in proportion, before Norm-Sub clips."""
    errors = []
    for d in (16, 32, 64):
        off, _ = spread(CALM(epsilon=1.0), (d,), Workload.from_codes((d,), [[[0, d // 2 - 1]]]), 200)
        errors.append((off**2).mean())
    for small, large in pairwise(errors):  # two means of 200 squares: a standard error of 0.14 for the ratio of 2
        assert 1.3 < large / small < 2.9


def test_records_come_back_and_choices_are_checked():
    mechanism = CALM(epsilon="0.5", users=3, theta=0.01)
    assert CALM.from_record(mechanism.record()).record() == mechanism.record()
    for wrong in ({"users": 0}, {"theta": 0.0}, {"max_cells": 1.5}):
        with pytest.raises(ValueError, match="expected"):
            CALM(epsilon=1.0, **wrong)
    schema: Schema = as_schema([codes("a", 1)])
    assert CALM(epsilon=1.0).groups(schema) == ()
