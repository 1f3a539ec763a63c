"""Populations and their division into groups: the exact law, whichever way people are given."""

from collections import Counter
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.engines.simulation import Population, drawn_groups, run_simulation
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.oracles import make_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import Group, Question
from ahead_ldp.schema.workloads import Workload, true_answers
from tests.reference.sampling import groups_drawn
from tests.support import PASS, POWER, chi_square, domains, examples, schema_of

GROUPS = (Group("a", 1), Group("b", 3), Group("c", 2))
SHARES = np.array([1, 3, 2]) / 6


def records_of(histogram: np.ndarray) -> np.ndarray:
    return np.repeat(np.argwhere(histogram >= 0), histogram.reshape(-1), axis=0)


# Division.


@pytest.mark.parametrize("people", [[2, 0, 1], [40, 0, 30]], ids=["person by person", "cell by cell"])
@pytest.mark.parametrize("form", ["histogram", "records"])
def test_division_is_multinomial_in_every_cell(people, form):
    """Exact law of the first cell's people in two groups, and independence of the cells by their sum.

    The histogram's 3 people in 2 cells and 3 groups are drawn one by one, the 70 cell by cell.
    """
    rng, histogram = np.random.default_rng(41), np.array(people)
    population = (
        Population.of_histogram(histogram) if form == "histogram" else Population.of_records(records_of(histogram), [3])
    )
    found: Counter[tuple[int, ...]] = Counter()
    totals: Counter[int] = Counter()
    for _ in range(4000):
        parts = population.divide(GROUPS, rng)
        cells = np.array(
            [
                part.histogram if part.histogram is not None else np.bincount(part.records[:, 0], minlength=3)
                for part in (parts[g.id] for g in GROUPS)
            ]
        )
        assert cells.sum(axis=0).tolist() == people
        found[tuple(cells[:2, 0].tolist())] += 1
        totals[int(cells[1].sum())] += 1
    n = people[0]
    law = {
        (i, j): comb(n, i) * comb(n - i, j) * SHARES[0] ** i * SHARES[1] ** j * SHARES[2] ** (n - i - j)
        for i, j in product(range(n + 1), repeat=2)
        if i + j <= n
    }
    assert chi_square(np.array([found[k] for k in law]), np.array(list(law.values()))) < PASS
    n = sum(people)
    both = np.array([comb(n, k) * 0.5**n for k in range(n + 1)])
    assert chi_square(np.array([totals[k] for k in range(n + 1)]), both) < PASS


@pytest.mark.parametrize("groups", [1, 2, 3, 140, 300, 20_000])
def test_groups_are_drawn_as_by_going_through_all_of_them(groups):
    """Equal, uneven and no shares: the same groups from the same random numbers."""
    rng = np.random.default_rng(groups)
    for shares in (np.full(groups, 1 / groups), rng.dirichlet(np.full(groups, 0.01)), np.eye(groups)[groups // 2]):
        ends, count = np.cumsum(shares), min(10**6 // groups, 40_000)
        found, slow = (draw(ends, count, np.random.default_rng(3)) for draw in (drawn_groups, groups_drawn))
        np.testing.assert_array_equal(found, slow)


def test_people_who_come_by_columns_are_held_by_rows():
    """A table often holds its columns one after the other. To take a group's rows from it copies all of it."""
    rows = np.random.default_rng(5).integers(0, 7, (3_000, 4))
    by_columns = Population.of_records(np.asfortranarray(rows), (7,) * 4)
    assert by_columns.records.flags.c_contiguous
    of_both = (p.divide(GROUPS, np.random.default_rng(1)) for p in (by_columns, Population.of_records(rows, (7,) * 4)))
    for group, same in zip(*(divided.values() for divided in of_both), strict=True):
        np.testing.assert_array_equal(group.records, same.records)


def test_records_are_divided_as_numpys_choice_draws():
    """Recorded runs rest on these random numbers."""
    records, shares = np.arange(5000)[:, None], np.array([0.2, 0.05, 0.0, 0.75])
    groups = [Group(name, share) for name, share in zip("abcd", (4, 1, 0, 15), strict=True)]
    parts = Population.of_records(records, [5000]).divide(groups, np.random.default_rng(8))
    chosen = np.random.default_rng(8).choice(4, 5000, p=shares)
    for i, part in enumerate(parts.values()):
        np.testing.assert_array_equal(part.records, records[chosen == i])


def test_division_that_is_off_is_seen():
    """A share of 0.53 for 0.5, 4000 times 70 people: 0.03 / sqrt(0.25 / 280,000) is 32 standard errors."""
    rng = np.random.default_rng(42)
    wrong = Counter(int(rng.binomial(70, 0.53)) for _ in range(4000))
    law = np.array([comb(70, k) * 0.5**70 for k in range(71)])
    assert chi_square(np.array([wrong[k] for k in range(71)]), law) > PASS + POWER


@examples(50)
@given(axes=domains(), seed=st.integers(0, 2**32), many=st.booleans())
def test_division_loses_nobody(axes, seed, many):
    rng = np.random.default_rng(seed)
    histogram = rng.integers(0, 200 if many else 2, [a.size for a in axes])
    histogram.reshape(-1)[0] += 1
    for population in (
        Population.of_histogram(histogram),
        Population.of_records(records_of(histogram), histogram.shape),
    ):
        parts = population.divide(GROUPS, rng)
        assert list(parts) == ["a", "b", "c"]
        question = (
            Question((0,), Partition.cells_of(axes[:1]), make_oracle("grr", 1, axes[0].size))
            if axes[0].size > 1
            else None
        )
        assert sum(p.n for p in parts.values()) == population.n == histogram.sum()
        if question:
            total = sum(p.cells(question) for p in parts.values())
            assert total.tolist() == histogram.reshape(axes[0].size, -1).sum(axis=1).tolist()


@examples(80)
@given(axes=domains(), seed=st.integers(0, 2**32), data=st.data())
def test_cells_are_the_same_from_histogram_and_records(axes, seed, data):
    """Any attributes in any order."""
    rng = np.random.default_rng(seed)
    histogram = rng.integers(0, 3, [a.size for a in axes])
    histogram.reshape(-1)[0] += 1
    chosen = data.draw(st.permutations(range(len(axes))))[: data.draw(st.integers(1, len(axes)))]
    partition = Partition.equal_grid([axes[i] for i in chosen], [3] * len(chosen))
    if partition.cells < 2:
        return
    question = Question(tuple(chosen), partition, make_oracle("oue", 1, partition.cells))
    a = Population.of_histogram(histogram).cells(question)
    b = Population.of_records(records_of(histogram), histogram.shape).cells(question)
    assert a.tolist() == b.tolist()
    assert a.sum() == histogram.sum()
    assert a.dtype == b.dtype == np.int64
    one_by_one = [  # a single record is looked up, many are counted by code
        Population.of_records(record[None], histogram.shape).cells(question) for record in records_of(histogram)[:50]
    ]
    many = Population.of_records(records_of(histogram)[:50], histogram.shape).cells(question)
    assert np.sum(one_by_one, axis=0).tolist() == many.tolist()


# Runs.


def errors(population: Population, times: int, epsilon: float = 1) -> np.ndarray:
    """Answers less the truth."""
    workload = Workload.from_codes([4, 2], [[[0, 1], [0, 1]], [[2, 3], [1, 1]]])
    truth, rng = np.array([0.5, 0.1]), np.random.default_rng(43)
    mechanism = Flat(epsilon=epsilon, oracle="oue", non_negative=False)
    runs = [run_simulation(mechanism, schema_of(4, 2), population, rng) for _ in range(times)]
    return np.stack([e.answer(workload, errors=False).values for e in runs]) - truth


def test_histogram_and_records_give_the_same_law():
    """Variances of 800 runs each, within 5 standard errors of the promised; 30 % off is 5 to 6 standard errors."""
    histogram = np.array([[100, 50], [50, 50], [50, 20], [150, 30]])
    oracle = make_oracle("oue", 1, 8)
    # cells in the two queries: 4 and 2, with frequencies 0.5 and 0.1; OUE's estimates are uncorrelated
    promised = np.array([oracle.variance(500, 0.5 / 4) * 4, oracle.variance(500, 0.1 / 2) * 2])
    for population in (
        Population.of_histogram(histogram),
        Population.of_records(records_of(histogram), (4, 2)),
    ):
        found = errors(population, 800)
        assert (np.abs(found.mean(axis=0)) < PASS * np.sqrt(promised / 800)).all()
        off = (found.var(axis=0) / promised - 1) / np.sqrt(2 / 800)
        assert (np.abs(off) < PASS).all()
        assert (np.abs((found.var(axis=0) / (1.3 * promised) - 1) / np.sqrt(2 / 800)) > 3).all()


def test_a_million_people_cost_no_more_random_numbers_than_a_thousand():
    asked = []
    for people in (10**3, 10**6):
        rng = CountingGenerator(np.random.PCG64(7))
        population = Population.of_histogram(np.full(8, people))
        run_simulation(Flat(epsilon=1, oracle="oue"), schema_of(8), population, rng)
        asked.append(rng.numbers)
    assert asked[0] == asked[1] <= 8 + 2 * 8


class CountingGenerator(np.random.Generator):
    """Counts the random numbers asked for."""

    numbers = 0

    def binomial(self, n, p, size=None):
        self.numbers += np.size(n)
        return super().binomial(n, p, size)

    def multinomial(self, n, pvals, size=None):
        self.numbers += np.size(n) * np.size(pvals)
        return super().multinomial(n, pvals, size)

    def random(self, size=None):
        raise AssertionError("person by person")

    choice = integers = random


def test_same_seed_same_estimate():
    population = Population.of_histogram(np.arange(1, 9))
    workload = Workload.from_codes([8], [[0, 3]])
    one, two = (run_simulation(Flat(epsilon=1), schema_of(8), population, np.random.default_rng(9)) for _ in range(2))
    assert one.answer(workload).values == two.answer(workload).values


def test_truth_is_met_without_noise():
    """Without privacy to speak of the answers are the truth: no code is lost, not the first and not the last."""
    histogram = np.array([7, 0, 1, 30, 4])
    estimate = run_simulation(
        Flat(epsilon=25), schema_of(5), Population.of_histogram(histogram), np.random.default_rng(0)
    )
    workload = Workload.from_codes([5], [[i, j] for i in range(5) for j in range(i, 5)])
    np.testing.assert_allclose(estimate.answer(workload).values, true_answers(workload, histogram), atol=1e-4)


# What is refused.


@pytest.mark.parametrize(
    "histogram",
    [np.array([1.0, 2.0]), np.array([1, -1]), np.array(3), np.zeros(4, np.int64), np.zeros((0,), np.int64)],
    ids=repr,
)
def test_histograms_that_are_no_population_are_refused(histogram):
    with pytest.raises(ValueError, match=r"expected a (histogram of counts >= 0|population of at least one)"):
        Population.of_histogram(histogram)


@pytest.mark.parametrize(
    ("records", "sizes"),
    [
        (np.array([[0.0]]), [3]),
        (np.array([0, 1]), [3]),
        (np.array([[0, 1]]), [3]),
        (np.array([[3]]), [3]),
        (np.array([[-1]]), [3]),
        (np.zeros((0, 1), np.int64), [3]),
    ],
)
def test_records_that_are_no_population_are_refused(records, sizes):
    with pytest.raises(ValueError, match=r"expected (records of codes|codes below|a population of at least one)"):
        Population.of_records(records, sizes)


def test_a_population_of_another_domain_is_refused():
    with pytest.raises(ValueError, match=r"expected a population over \(5,\), got \(4,\)"):
        run_simulation(
            Flat(epsilon=1), schema_of(5), Population.of_histogram(np.ones(4, int)), np.random.default_rng(0)
        )
