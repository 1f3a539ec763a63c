"""Adaptive: its partitions, its waves, its accuracy beside AHEAD's, and what its errors promise."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms.adaptive.adaptive import Adaptive, equal_mass_cuts, reread
from ahead_ldp.mechanisms.adaptive.estimates import AdaptiveEstimate
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.square_wave.sw import SW
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import Question
from ahead_ldp.protocol.session import finish
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import Workload, point_workload, random_workload, true_answers
from tests.support import PASS, Recorded, examples, schema_of


def bell(size: int, n: int) -> np.ndarray:
    f = np.exp(-0.5 * ((np.arange(size) + 0.5 - 0.4 * size) / (0.1 * size)) ** 2)
    return np.round(n * f / f.sum()).astype(np.int64)


def heaps(size: int, n: int) -> np.ndarray:
    f = np.where(np.arange(size) % 10 == 0, 6.0, 0.4) * np.exp(-np.arange(size) / (0.3 * size))
    return np.round(n * f / f.sum()).astype(np.int64)


def asked(mechanism: Adaptive, histogram: np.ndarray, seed: int = 1) -> list[list[Question]]:
    """The questions of a simulated run, wave by wave."""
    schema, rng = schema_of(histogram.size), np.random.default_rng(seed)
    parts = Population.of_histogram(histogram).divide(mechanism.groups(schema), rng)
    found, run = [], mechanism.run(schema)
    try:
        wave = next(run)
        while True:
            found.append(list(wave.values()))
            wave = run.send({g: q.oracle.simulate(parts[g].cells(q), rng) for g, q in wave.items()})
    except StopIteration:
        return found


# Questions.


def test_from_four_cells_to_finer_ones_where_people_are():
    waves = asked(Adaptive(epsilon=1.0), bell(256, 10**6))
    assert [len(wave) for wave in waves] == [4] * 5
    cells = [[q.partition.cells for q in wave] for wave in waves]
    assert min(cells[0]) == 4
    assert max(cells[0]) == 5, "one more where the first and the last are parts"
    assert all(max(a) < min(b) for a, b in pairwise(cells))
    last = waves[-1][0].partition
    width = (last.hi - last.lo)[:, 0]
    middle = (last.lo[:, 0] >= 64) & (last.hi[:, 0] <= 160)
    assert width[middle].max() < width[~middle].max() / 2


def test_the_more_people_the_finer_the_cells_and_never_finer_than_codes():
    most = [asked(Adaptive(epsilon=1.0), bell(64, n))[-1][0].partition.cells for n in (100, 10_000, 10**6)]
    assert most[0] <= 8
    assert most[0] < most[1] < most[2] <= 64


def test_partitions_of_a_wave_are_shifted_against_each_other():
    for wave in asked(Adaptive(epsilon=1.0), bell(512, 10**6)):
        firsts = [int(q.partition.hi[0, 0]) for q in wave]
        assert len(set(firsts)) == len(firsts)


def test_a_code_that_nearly_everybody_has_is_a_cell_of_its_own():
    histogram = np.append(np.full(100, 500), np.full(155, 300))
    histogram = np.insert(histogram, 100, 10**6)
    for question in (q for wave in asked(Adaptive(epsilon=1.0), histogram)[-2:] for q in wave):
        assert (100, 101) in zip(question.partition.lo[:, 0], question.partition.hi[:, 0], strict=True)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=80), st.integers(1, 40), st.floats(0, 0.999))
@examples(150)
def test_cuts_lie_inside_and_cells_hold_what_they_should(weights, cells, shift):
    density = np.array(weights) + 1e-3
    density /= density.sum()
    cuts = equal_mass_cuts(density, cells, shift)
    assert cuts.size >= 1
    assert (np.diff(cuts) > 0).all()
    assert cuts[0] > 0
    assert cuts[-1] < density.size
    held = np.add.reduceat(density, np.append(0, cuts))
    alone = np.diff(np.append(np.append(0, cuts), density.size)) == 1
    most = 2 * max(density[density <= 0.75 / cells], default=0.0) + 1 / cells
    assert (alone | (held <= most + 0.75 / cells + 1e-5)).all()


def test_equal_codes_fall_into_equal_cells():
    assert equal_mass_cuts(np.full(64, 1 / 64), 4, 0.0).tolist() == [16, 32, 48]
    assert equal_mass_cuts(np.full(64, 1 / 64), 4, 0.5).tolist() == [8, 24, 40, 56]
    assert equal_mass_cuts(np.array([1.0, 0.0]), 4, 0.0).tolist() == [1]
    assert equal_mass_cuts(np.ones(1), 4, 0.0).tolist() == []


@pytest.mark.parametrize(("waves", "sizes"), [(1, [5]), (2, [3, 2]), (3, [2, 2, 1]), (None, [1] * 5), (9, [1] * 5)])
def test_scales_share_waves(waves, sizes):
    mechanism = Adaptive(epsilon=1.0, waves=waves)
    found = asked(mechanism, bell(1024, 200_000))
    assert [len(wave) for wave in found] == [4 * size for size in sizes]
    assert mechanism.waves_of(schema_of(1024)) == len(sizes)
    assert [q.partition.cells for q in found[0]][::4] == [4, 8, 16, 32, 64][: sizes[0]]


@pytest.mark.parametrize(("size", "count"), [(1, 0), (2, 1), (3, 1), (4, 1), (5, 8), (8, 8), (64, 20), (4096, 20)])
def test_as_many_groups_as_there_are_scales_and_shifts(size, count):
    groups = Adaptive(epsilon=1.0).groups(schema_of(size))
    assert len(groups) == count
    assert [g.id for g in groups][:6] == ["1a", "1b", "1c", "1d", "2a", "2b"][:count]


def test_without_reports_the_next_question_is_about_equal_cells():
    schema, run = schema_of(64), Adaptive(epsilon=1.0, shifts=1).run(schema_of(64))
    wave = next(run)
    for i in range(3):
        (question,) = wave.values()
        assert question.partition.cells in (4 * 2**i, 4 * 2**i + 1), "as if all were asked at once"
        wave = run.send({group: Tally.empty(q.oracle.outcomes) for group, q in wave.items()})
    assert finish(Adaptive(epsilon=1.0), schema).density == pytest.approx(1 / 64)


@pytest.mark.parametrize(
    "choices",
    [
        {"waves": 0},
        {"waves": 1.5},
        {"scales": 0},
        {"scales": True},
        {"shifts": 27},
        {"finest": 0.0},
        {"oracle": "sw"},
        {"estimator": "x"},
    ],
)
def test_choices_that_are_none_are_refused(choices):
    with pytest.raises(ValueError, match="expected"):
        Adaptive(epsilon=1.0, **choices)


# Kinds of attributes.


def test_people_without_a_value_are_told_apart():
    schema = as_schema(["x=codes,64,missing=cell"])
    histogram = np.append(bell(64, 600_000), 400_000)
    estimate = run_simulation(
        Adaptive(epsilon=2.0), schema, Population.of_histogram(histogram), np.random.default_rng(2)
    )
    found = estimate.answer(Workload.from_codes([65], [[64, 64], [0, 31], [0, 63]]))
    truth = np.array([0.4, histogram[:32].sum() / histogram.sum(), 0.6])
    assert (np.abs(found.values - truth) < 5 * found.standard_error + 1e-9).all()
    assert (found.standard_error < 0.01).all()


def test_categories_are_asked_at_once():
    schema = as_schema(["color=nominal,red|green|blue|grey|pink"])
    assert len(Adaptive(epsilon=1.0).groups(schema)) == 1
    histogram = np.array([50_000, 20_000, 20_000, 0, 10_000])
    estimate = run_simulation(
        Adaptive(epsilon=1.0), schema, Population.of_histogram(histogram), np.random.default_rng(3)
    )
    found = estimate.answer(point_workload(schema))
    assert (np.abs(found.values - histogram / 1e5) < 5 * found.standard_error + 1e-9).all()


# Accuracy.


def mse(mechanism, histogram: np.ndarray, runs: int, workload: Workload) -> float:
    schema, people, truth = schema_of(histogram.size), Population.of_histogram(histogram), None
    truth, errors = true_answers(workload, histogram), []
    for k in range(runs):
        estimate = run_simulation(mechanism, schema, people, np.random.default_rng([k, 9]))
        errors.append(np.mean((estimate.answer(workload, errors=False).values - truth) ** 2))
    return float(np.mean(errors))


@pytest.mark.parametrize(("make", "most"), [(bell, 0.4), (heaps, 0.9)])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_less_error_than_the_paper(make, most, epsilon):
    histogram, workload = make(256, 200_000), random_workload((256,), 60, np.random.default_rng(1))
    ours, paper = (mse(m(epsilon), histogram, 12, workload) for m in (lambda e: Adaptive(epsilon=e), AHEAD.paper))
    assert ours < most * paper


@pytest.mark.parametrize(("make", "most"), [(bell, 0.3), (heaps, 1.2)])
def test_points_do_not_pay(make, most):
    """The sum of squared errors over all codes, where shrinkage could flatten heaps away."""
    histogram = make(256, 200_000)
    ours, paper = (mse(m, histogram, 8, point_workload((256,))) for m in (Adaptive(epsilon=1.0), AHEAD.paper(1.0)))
    assert ours < most * paper


def test_no_question_is_finer_than_an_estimate_can_bear():
    """Reports of nearly no noise could tell 4096 codes apart: 512 cells at a time, the borders shifted."""
    waves = asked(Adaptive(epsilon=8.0), bell(4096, 3_000_000))
    cells = [question.partition.lo.shape[0] for wave in waves for question in wave]
    assert 480 < max(cells) <= 514
    borders = {int(x) for question in waves[-1] for x in question.partition.lo[:, 0]}
    assert len(borders) > 1200, "so many places are told apart"


def test_more_waves_find_spikes():
    """One wave cannot know where people are: three have at most a third of its error on single codes."""
    rng, workload = np.random.default_rng(5), random_workload((1024,), 60, np.random.default_rng(1))
    f = np.full(1024, 0.2 / 1024)
    f[rng.choice(1024, 12, replace=False)] += 0.8 * rng.dirichlet(np.ones(12))
    histogram = rng.multinomial(500_000, f)
    one, three = (mse(Adaptive(epsilon=1.0, waves=w), histogram, 10, workload) for w in (1, 3))
    assert three < one / 3


# Errors.


@pytest.mark.parametrize(
    ("make", "epsilon", "coverage", "squares"),
    [
        (bell, 0.5, Recorded(0.998, 0.0008), Recorded(0.251, 0.021)),
        (heaps, 1.0, Recorded(0.976, 0.0032), Recorded(0.665, 0.037)),
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(make, epsilon, coverage, squares):
    """60 runs: at least 89 % inside on average over queries, and intervals at most twice as wide as needed.

    Errors a third too small would hold 81 % of the answers about heaps. Smooth people get wider intervals than they
    need, because reports cannot rule out heaps on scales that they do not resolve. So theory's 95 % and 1 are not
    met: what is recorded, over 120 runs, is how often 95 % intervals hold the truth, and squared errors in units of
    what is promised. A standard error 30 % larger or smaller moves the latter by 0.17 and more: 3 standard errors here
    for heaps, 4 for the bell.
    """
    histogram, inside, ratio, used = make(128, 100_000), [], [], []
    workload = random_workload((128,), 40, np.random.default_rng(1))
    truth, people = true_answers(workload, histogram), Population.of_histogram(histogram)
    for k in range(60):
        found = run_simulation(
            Adaptive(epsilon=epsilon), schema_of(128), people, np.random.default_rng([k, 11])
        ).answer(workload)
        low, high = found.interval(0.95)
        inside.append(np.mean((low <= truth) & (truth <= high)))
        ratio.append(np.mean((found.values - truth) ** 2 / found.standard_error**2))
        used.append(np.abs(found.values - truth) / found.half_width(0.95))
    assert np.mean(inside) > 0.89
    assert np.quantile(used, 0.95) > 0.5
    coverage.check(inside)
    squares.check(ratio)


def test_errors_are_those_of_the_joint_draws():
    histogram = heaps(64, 50_000)
    estimate = run_simulation(
        Adaptive(epsilon=1.0), schema_of(64), Population.of_histogram(histogram), np.random.default_rng(5)
    )
    assert isinstance(estimate, AdaptiveEstimate)
    workload = random_workload((64,), 10, np.random.default_rng(2))
    drawn, found = estimate.joint_errors(workload), estimate.answer(workload)
    np.testing.assert_allclose(np.sqrt(np.mean(drawn**2, axis=0)), found.standard_error)
    sums = estimate.linear(workload, np.array([[1.0, -2.0, *[0.0] * 8]]))
    assert sums.values[0] == pytest.approx(found.values[0] - 2 * found.values[1])
    assert sums.standard_error[0] == pytest.approx(np.sqrt(np.mean((drawn[:, 0] - 2 * drawn[:, 1]) ** 2)))


def test_without_reports_nothing_is_known():
    estimate = finish(Adaptive(epsilon=1.0), schema_of(32))
    found = estimate.answer(Workload.from_codes([32], [[0, 31], [0, 15]]))
    assert found.standard_error[0] == 0.0
    assert np.isinf(found.standard_error[1])
    assert estimate.joint_errors(point_workload((32,))) is None


@pytest.mark.parametrize("epsilon", [0.01, 16])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_billion_people_with_few_codes_are_answered(size, epsilon):
    """At epsilon 16 the prior's part in a precision is below the last bit of the reports'; at 0.01 they tell little."""
    people = np.arange(1, size + 1) * 10**9 // (size * (size + 1) // 2)
    schema, mechanism = schema_of(size), Adaptive(epsilon=epsilon, users=int(people.sum()))
    estimate = run_simulation(mechanism, schema, Population.of_histogram(people), np.random.default_rng(3))
    answers = estimate.answer(point_workload(schema))
    off = np.abs(answers.values - people / people.sum())
    assert (off < 5 * answers.standard_error).all()


def test_every_code_has_an_error_and_what_cells_resolve_is_held():
    """2,000 people at epsilon 0.5 resolve no single code, but quarters of the domain.

    No more is promised: a heap of 28 % on the first code is taken for part of a smooth crowd, 4.5 standard errors off.
    """
    histogram = heaps(64, 2_000)
    estimate = run_simulation(
        Adaptive(epsilon=0.5), schema_of(64), Population.of_histogram(histogram), np.random.default_rng(5)
    )
    found = estimate.answer(point_workload((64,)))
    assert (found.standard_error > 0).all()
    quarters = Workload.from_codes([64], [[[a, a + 15]] for a in (0, 16, 32, 48)])
    found = estimate.answer(quarters)
    assert (np.abs(found.values - true_answers(quarters, histogram)) < PASS * found.standard_error).all()
    assert found.standard_error.max() < 0.2, "nor is nothing known"


# Other methods' tallies.


def test_the_paper_s_tallies_can_be_read_again():
    schema, histogram = schema_of(256), bell(256, 200_000)
    workload = random_workload((256,), 60, np.random.default_rng(1))
    truth, people, errors = true_answers(workload, histogram), Population.of_histogram(histogram), []
    for k in range(10):
        published = run_simulation(AHEAD.paper(1.0), schema, people, np.random.default_rng([k, 13]))
        again = reread(AHEAD.paper(1.0), schema, published.provenance.history)
        errors.append([np.mean((e.answer(workload, errors=False).values - truth) ** 2) for e in (published, again)])
    before, after = np.mean(errors, axis=0)
    assert after < 0.6 * before


def test_tallies_of_part_of_the_waves_can_be_read_again():
    schema, people = schema_of(64), Population.of_histogram(bell(64, 50_000))
    published = run_simulation(AHEAD.paper(1.0), schema, people, np.random.default_rng(1))
    found = reread(AHEAD.paper(1.0), schema, published.provenance.history[:2])
    assert found.density.sum() == pytest.approx(1.0)
    assert reread(AHEAD.paper(1.0), schema, []).density == pytest.approx(1 / 64)


def test_tallies_of_other_trees_can_be_read_too_but_not_those_of_other_kinds():
    schema, people = schema_of(81), Population.of_histogram(bell(81, 50_000))
    mechanism = AHEAD.paper(1.0, fanout=3)
    published = run_simulation(mechanism, schema, people, np.random.default_rng(1))
    assert reread(mechanism, schema, published.provenance.history).density.sum() == pytest.approx(1.0)
    square_wave = SW(epsilon=1.0)
    published = run_simulation(square_wave, schema, people, np.random.default_rng(1))
    with pytest.raises(ValueError, match="expected questions about cells of one attribute through a linear oracle"):
        reread(square_wave, schema, published.provenance.history)
