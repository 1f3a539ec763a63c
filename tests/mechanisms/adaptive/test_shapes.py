"""Few reports: the mean over shapes and even people, checked by hand, at both ends of what reports can tell."""

from dataclasses import replace

import numpy as np
import pytest

from ahead_ldp.device.partition import Axis
from ahead_ldp.engines.simulation import Population
from ahead_ldp.mechanisms.adaptive.adaptive import Adaptive, Adaptive2, Adaptive3
from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData, CellEstimates, CellReports
from ahead_ldp.mechanisms.adaptive.density import DECIDED, POSTERIOR, AdaptiveDensity, Weighing
from ahead_ldp.mechanisms.adaptive.draws import draw_curves
from ahead_ldp.mechanisms.adaptive.shapes import bank, far, weigh
from ahead_ldp.oracles import named_oracle
from ahead_ldp.research.evaluation import Task, run_trial
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import random_workload
from tests.reference.shapes import log_likelihoods
from tests.support import Recorded

SIZE = 256
AXIS = Axis(SIZE)


def cells_of(curve, cuts, precision):
    """Estimates that say exactly what a curve has in cells between these cuts of 128 places."""
    borders = np.array([0, *cuts, 128])
    shares = np.diff(curve[borders])
    return CellEstimates(borders * (SIZE // 128), shares, np.full(shares.size, precision))


def asked(shares, n, epsilon, cuts, rng):
    """What n people whose codes have these shares say about cells."""
    borders = np.array([0, *cuts, shares.size])
    oracle = named_oracle("best", epsilon, borders.size - 1)
    people = rng.multinomial(n, np.add.reduceat(shares, borders[:-1]))
    return CellReports(borders, oracle.estimate(oracle.simulate(people, rng)), n, oracle)


def reports_of(shares, people, epsilon, seed):
    """Twelve groups asked about four or five cells, shifted."""
    rng, step = np.random.default_rng(seed), shares.size // 4
    shifts = (np.arange(12) * 0.618 % 1 * step).astype(int)
    return [asked(shares, people // 12, epsilon, [c for c in range(s, shares.size, step) if c], rng) for s in shifts]


def test_shapes_are_distributions_of_many_kinds():
    curves = bank()
    assert np.all(np.diff(curves, axis=1) >= 0)
    np.testing.assert_allclose(curves[:, [0, -1]], np.broadcast_to([0.0, 1.0], (len(curves), 2)), atol=1e-12)
    assert np.unique(np.round(curves, 6), axis=0).shape == curves.shape
    median = np.array([np.searchsorted(curve, 0.5) for curve in curves]) / 128
    low, middle, high = np.mean(median < 0.25), np.mean((median > 0.4) & (median < 0.6)), np.mean(median > 0.75)
    assert min(low, high) > 0.08
    assert middle > 0.2
    assert abs(low - high) < 0.05


def test_weights_are_the_likelihood():
    curve = bank()[17]
    data = CellData.of([cells_of(curve, [20, 90], 40.0), cells_of(curve, [64], 25.0)], 1.0)
    found = weigh(data, SIZE)
    log = np.zeros(len(bank()))
    for cuts, precision in (([0, 20, 90, 128], 40.0), ([0, 64, 128], 25.0)):
        log -= 0.5 * precision * (np.diff(bank()[:, cuts]) - np.diff(curve[cuts])) ** 2 @ np.ones(len(cuts) - 1)
    weights = np.exp(log)
    np.testing.assert_allclose(found.weights, weights / weights.sum(), rtol=1e-9)
    assert found.log_evidence() == pytest.approx(np.log(weights.mean()), abs=1e-9)
    assert found.log_evidence(0.05) == pytest.approx(np.log(weights[far() >= 0.05].mean()), abs=1e-9)
    assert found.left == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


@pytest.mark.parametrize(("precision", "total"), [(0.0, 1.0), (3.0, 0.8), (300.0, 1.0), (1e5, 0.8)])
def test_shapes_that_are_left_out_early_would_weigh_nothing(precision, total):
    """Wide and narrow cells, some of a group that nobody answered; with ``total`` < 1 people without a value."""
    rng, given = np.random.default_rng(int(precision)), []
    for count in (3, 5, 12, 40, 100):
        borders = np.unique([0, *rng.integers(1, SIZE, count), SIZE, *([SIZE + 1] if total < 1 else [])])
        seen = total * np.diff(bank()[2000][np.minimum(borders, SIZE) // 2])
        seen[-1] += 1 - total
        noise = rng.normal(size=seen.size) / np.sqrt(max(precision, 1.0))
        known = np.full(seen.size, precision if count != 12 else 0.0)
        given.append(CellEstimates(borders, seen + noise, known))
    found, log = weigh(CellData.of(given, 1.0), SIZE, total), log_likelihoods(given, SIZE, total)
    wanted = np.exp(log - log.max())
    np.testing.assert_allclose(found.weights, wanted / wanted.sum(), rtol=1e-9, atol=1e-17)
    assert (found.weights == 0).any() == (precision >= 300)
    pooled = CellData.of(given, 1.0).within / 2  # what estimates of the same cell differ by counts for no shape
    assert found.log_evidence() - pooled == pytest.approx(np.logaddexp.reduce(log) - np.log(log.size), abs=1e-6)


def test_all_shapes_are_left_without_a_word_and_one_when_everything_is_said():
    curve = bank()[1234]
    nothing = weigh(CellData.of([cells_of(curve, [64], 1e-9)], 1.0), SIZE)
    assert nothing.left == pytest.approx(len(bank()), rel=1e-6)
    np.testing.assert_allclose(nothing.below(128), bank().mean(axis=0), atol=1e-6)
    everything = weigh(CellData.of([cells_of(curve, range(8, 128, 8), 1e9)], 1.0), SIZE)
    assert everything.left == pytest.approx(1.0)
    np.testing.assert_allclose(everything.below(128), curve, atol=1e-9)
    np.testing.assert_allclose(everything.drawn(128, np.array([0.1, 0.9])), np.stack([curve, curve], axis=1), atol=1e-9)


def test_people_without_a_value_are_beside_the_shapes():
    curve, present = bank()[300], 0.7
    borders = np.array([0, 64, 160, SIZE, SIZE + 1])
    shares = np.append(present * np.diff(curve[borders[:-1] // 2]), 1 - present)
    data = CellData.of([CellEstimates(borders, shares, np.full(4, 1e7))], 1.0)
    assert int(weigh(data, SIZE, present).weights.argmax()) == 300


def test_far_from_even():
    below = bank()[77]
    assert far()[77] == pytest.approx(np.sqrt(np.mean((below - np.arange(129) / 128) ** 2)), abs=1e-12)
    assert 0.1 < np.mean(far() < DECIDED.apart) < 0.5


@pytest.mark.parametrize("rule", [POSTERIOR, DECIDED], ids=["posterior", "decided"])
@pytest.mark.parametrize(("name", "people", "most"), [("even", 9_600, 0.5), ("bell", 38_400, 1.25)])
def test_even_people_gain_and_a_bell_loses_little(name, people, most, rule):
    """Over 24 runs: half of the error where people lie evenly and reports tell little; with four times as many reports
    a bell has lost at most a quarter."""
    x = (np.arange(SIZE) + 0.5) / SIZE
    shares = {"even": np.ones(SIZE), "bell": np.exp(-0.5 * ((x - 0.5) / 0.114) ** 2)}[name]
    shares /= shares.sum()
    errors = []
    for seed in range(24):
        reports = reports_of(shares, people, 0.1, seed)
        made = [AdaptiveDensity.of(AXIS, reports, weighing=w).frequencies for w in (None, rule)]
        errors.append([np.mean((np.cumsum(f) - np.cumsum(shares)) ** 2) for f in made])
    without, with_shapes = np.mean(errors, axis=0)
    assert with_shapes < most * without


@pytest.mark.parametrize("slope", [0.3, 0.0])
def test_a_slight_slope_counts_where_reports_can_tell_it(slope):
    """Over 24 runs, beside a rule that takes no account of how much reports tell: from 0.85 to 1.15 of the mean is
    within 0.05 of even, and four standard deviations of 48,000 reports. Even people still have next to no error."""
    shares = 1 + slope * ((np.arange(SIZE) + 0.5) / SIZE - 0.5)
    shares /= shares.sum()
    blind, errors = replace(DECIDED, noises=np.inf), []
    for seed in range(24):
        reports = reports_of(shares, 48_000, 1.0, seed)
        made = [AdaptiveDensity.of(AXIS, reports, weighing=w).frequencies for w in (blind, DECIDED)]
        errors.append([np.mean((np.cumsum(f) - np.cumsum(shares)) ** 2) for f in made])
    without, with_noise = np.mean(errors, axis=0)
    noise = max(float(report.oracle.variance(1)) for report in reports) / 48_000
    assert with_noise < (0.9 * without if slope else 1e-3 * noise)


def test_much_said_leaves_the_estimate_as_it_was():
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.ones(16)).repeat(SIZE // 16) / (SIZE // 16)
    reports = [asked(shares, 10**6, 2.0, range(s, SIZE, 16), rng) for s in (4, 8, 12)]
    old, new = (AdaptiveDensity.of(AXIS, reports, weighing=w) for w in (None, replace(DECIDED, many=None)))
    np.testing.assert_allclose(new.frequencies, old.frequencies, atol=1e-12)
    assert sum(fit.weight for fit in new.fits[2:]) < 1e-12


def test_draws_stand_for_the_shapes():
    shares = np.full(SIZE, 1 / SIZE)
    fitted = AdaptiveDensity.of(AXIS, reports_of(shares, 9_600, 0.1, 3), weighing=POSTERIOR)
    (shapes,) = (fit for fit in fitted.fits if fit.shapes is not None)
    alone = replace(fitted, fits=(replace(shapes, weight=1.0, chance=1.0),))
    drawn = draw_curves(alone)
    assert np.all(np.diff(drawn, axis=0) > -1e-9)
    curves = shapes.shapes.drawn(SIZE, (np.arange(20_000) + 0.5) / 20_000)
    tolerance = 5 * curves.std(axis=1) / np.sqrt(drawn.shape[1]) + 1e-6
    assert np.all(np.abs(drawn.mean(axis=1) - shapes.below) < tolerance)
    np.testing.assert_allclose(drawn.std(axis=1)[64:192], curves.std(axis=1)[64:192], rtol=0.15)


@pytest.mark.parametrize(("users", "epsilon", "cells"), [(1_000, 0.5, 3), (100_000, 0.1, 3), (1_000_000, 1.0, 4)])
def test_few_people_are_asked_about_three_cells_first(users, epsilon, cells):
    schema = as_schema(["x=integer,0,255"])
    for declared in (users, 0.7 * users, 1.3 * users):
        wave = next(Adaptive(epsilon=epsilon, users=int(declared)).run(schema))
        assert wave["1a"].partition.cells == cells
    assert next(Adaptive2(epsilon=epsilon, users=users).run(schema))["1a"].partition.cells == 4
    assert next(Adaptive(epsilon=epsilon).run(schema))["1a"].partition.cells == 4


def test_the_chance_of_even_people_follows_the_rule():
    rule = Weighing(odds=3.0, told=0.1, power=2, sharpness=2.0, apart=0.05, noises=4.0)
    assert (rule.counts_from(0.1), rule.counts_from(0.005)) == (0.05, 0.02)
    for gain, sd, odds in (
        (0.0, 0.05, 3.0),
        (1.5, 0.05, 3.0 / np.exp(3.0)),
        (0.0, 0.2, 12.0),
        (-1.0, 0.2, 12.0 * np.exp(2.0)),
    ):
        chance = rule.chance(gain, sd)
        assert chance / (1 - chance) == pytest.approx(odds, rel=1e-9)


def test_a_smooth_density_of_many_coefficients_counts_for_a_half():
    used = {0.0: 1.0, 20.0: 1.0, 24.0: 0.8, 30.0: 0.5, 300.0: 0.5}
    assert [DECIDED.believed(k) for k in used] == pytest.approx(list(used.values()))
    assert [POSTERIOR.believed(k) for k in used] == [1.0] * 5


def test_steps_that_a_smooth_density_follows_with_many_coefficients_gain(monkeypatch):
    """Seven steps, a million people, epsilon 4: errors over those without the rule, recorded over 72 other seeds."""
    steps = np.array([1, 6, 2, 9, 4, 0.5, 3])[np.arange(SIZE) * 7 // SIZE]
    people = Population.of_histogram(np.rint(1_000_000 * steps / steps.sum()).astype(np.int64))
    schema = as_schema(["x=integer,0,255"])
    task = Task.of(schema, people, random_workload(schema, 200, np.random.default_rng(10)))

    def errors() -> list[float]:
        runs = [run_trial(task, Adaptive(epsilon=4, users=people.n), np.random.default_rng([9, k])) for k in range(12)]
        return [run.mse for run in runs]

    now = errors()
    monkeypatch.setattr(Adaptive, "weighing", replace(DECIDED, many=None))
    Recorded(0.690, 0.0153).check_ratio(now, errors())


def test_a_decision_for_even_people_does_not_narrow_the_draws():
    """The answer is decided upon; the draws behind errors are those of the posterior."""
    shares = np.full(SIZE, 1 / SIZE)
    reports = reports_of(shares, 38_400, 0.1, 3)
    decided, posterior = (AdaptiveDensity.of(AXIS, reports, weighing=rule) for rule in (DECIDED, POSTERIOR))
    assert decided.fits[-1].weight > 0.9 > posterior.fits[-1].weight
    np.testing.assert_array_equal(draw_curves(decided), draw_curves(posterior))
    assert sum(fit.weight for fit in decided.fits) == pytest.approx(1.0, abs=1e-12)
    assert sum(fit.drawn for fit in decided.fits) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("users", "epsilon"), [(800, 0.2), (2_000, 0.05)])
def test_hardly_anything_told_is_answered_with_even_people(users, epsilon):
    """Half of all are in one place; still at most 1.05 times the error of even people, over ten runs."""
    rng, size = np.random.default_rng(8), 64
    for kind in (np.full(size, 1.0), np.append(np.full(size // 2, 2.0), np.full(size // 2, 1.0))):
        shares, errors = kind / kind.sum(), []
        for _ in range(10):
            reports = [
                asked(shares, users // 4, epsilon, cuts, rng) for cuts in ([22, 43], [11, 32, 53], [32], [16, 48])
            ]
            made = AdaptiveDensity.of(Axis(size), reports, weighing=DECIDED).frequencies
            errors.append(np.mean((np.cumsum(made) - np.cumsum(shares)) ** 2))
        assert np.mean(errors) < 1.05 * np.mean((np.linspace(1 / size, 1, size) - np.cumsum(shares)) ** 2) + 1e-5


def test_both_readings_ask_the_same():
    schema = as_schema(["x=integer,0,255"])
    both = [cls(epsilon=0.2, users=10_000) for cls in (Adaptive3, Adaptive)]
    assert [c.record()["version"] for c in both] == [3, 3]
    assert both[0].groups(schema) == both[1].groups(schema)
    runs = [next(c.run(schema)) for c in both]
    assert {g: q.partition.lo.tobytes() for g, q in runs[0].items()} == {
        g: q.partition.lo.tobytes() for g, q in runs[1].items()
    }
