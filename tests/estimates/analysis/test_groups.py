"""Groups, weights and rounds: conditional answers, margins that are known, and a campaign that is repeated."""

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.estimates.analysis.series import _smoothed
from ahead_ldp.estimates.analysis.weights import _raked
from ahead_ldp.oracles import make_oracle
from tests.reference.reports import all_reports

SCHEMA = ["x=integer,0,31", "g=nominal,a|b|c"]


def crowd(n=60_000, seed=1):
    rng = np.random.default_rng(seed)
    g = rng.choice(3, n, p=[0.6, 0.399, 0.001])
    x = np.clip(rng.normal(12 + 6 * g, 4, n).round(), 0, 31).astype(int)
    return x, g


@pytest.fixture(scope="module")
def grouped():
    x, g = crowd()
    return ahead_ldp.simulate({"x": x, "g": np.array(["a", "b", "c"])[g]}, SCHEMA, epsilon=3, random_state=2), x, g


def test_groups_hold_the_truth_and_tell_groups_apart(grouped):
    estimate, x, g = grouped
    groups, parts = estimate.by("g"), [x[g == k] for k in range(3)]
    mean = groups.mean("x")
    cases = [
        (groups.share("x >= 15"), [np.mean(p >= 15) for p in parts]),
        (mean, [p.mean() for p in parts]),
        (groups.quantiles("x"), [np.median(p) for p in parts]),
    ]
    for findings, truth in cases:
        low, high = findings.interval()
        assert ((low <= truth) & (truth <= high)).all()
        assert high[0] < low[1]  # a is surely below b
    (low,), (high,) = groups.compare(mean, "a", "b").interval()
    assert 0 < low <= parts[1].mean() - parts[0].mean() <= high
    assert np.isclose(groups.compare(mean, "b", "a").value, -groups.compare(mean, "a", "b").value)


def test_a_group_that_may_be_empty_says_so(grouped):
    groups = grouped[0].by("g")
    assert groups.small().tolist() == [False, False, True]
    mean = groups.mean("x")
    low, high = mean.interval()
    assert (low[2], high[2]) == (0, 31)
    assert any("may be empty" in note and " c." in note for note in mean.notes())


def test_bins_are_groups_and_wrong_questions_are_refused(grouped):
    estimate = grouped[0]
    assert len(estimate.by("x", bins=4).share("g = a")) == 4
    for call, message in [
        (lambda: estimate.by("g").mean("g"), "order"),
        (lambda: estimate.by("x", bins=2).mean("x"), "another attribute"),
        (lambda: estimate.by("g").share("g = a"), "other attributes"),
        (lambda: estimate.by("g").quantiles("x", 1.5), "levels"),
        (lambda: estimate.by("g").compare(estimate.by("g").mean("x"), "a", "z"), "one of the groups"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


# Weights.


def test_weights_of_one_change_nothing(grouped):
    estimate = grouped[0]
    own = dict(zip("abc", np.maximum(estimate.marginal("g").values, 0), strict=True))
    same = estimate.calibrated({"g": own})
    assert np.allclose(same.weights, 1, atol=1e-6)
    plain = estimate.ask("x >= 15")
    assert same.ask("x >= 15").value == pytest.approx(float(plain.values[0]), abs=0.005)


def test_post_stratification_holds_the_truth(grouped):
    estimate, x, g = grouped
    margin = {"a": 0.3, "b": 0.7, "c": 0.0}
    found = estimate.calibrated({"g": margin}).ask("x >= 15")
    truth = sum(share * np.mean(x[g == k] >= 15) for k, share in enumerate(margin.values()))
    (low,), (high,) = found.interval()
    assert low <= truth <= high
    assert not low <= np.mean(x >= 15) <= high  # the weights matter, and it is seen
    assert found.kind() == "strict"


def test_a_stratum_that_reports_cannot_support_is_said(grouped):
    found = grouped[0].calibrated({"g": {"a": 0.5, "b": 0.25, "c": 0.25}}).ask("x >= 15")
    (low,), (high,) = found.interval()
    assert (low, high) == (0, 1)
    assert any("cannot support" in note for note in found.notes())
    assert any("largest weight" in note for note in found.notes())


def test_raking_meets_every_margin_and_says_what_it_assumes():
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.ones(6)).reshape(2, 3)
    targets = np.array([0.3, 0.7]), np.array([0.2, 0.5, 0.3])
    weighted = _raked(shares, targets) * shares
    assert np.allclose(weighted.sum(axis=1), targets[0])
    assert np.allclose(weighted.sum(axis=0), targets[1])
    odds = [m[0, 0] * m[1, 1] / (m[0, 1] * m[1, 0]) for m in (shares, weighted)]
    assert odds[0] == pytest.approx(odds[1])  # dependence stays
    columns = {"a": rng.choice(["x", "y"], 5000), "b": rng.choice(["u", "v"], 5000), "c": rng.integers(0, 8, 5000)}
    estimate = ahead_ldp.simulate(
        columns, ["a=nominal,x|y", "b=nominal,u|v", "c=integer,0,7"], epsilon=2, random_state=1
    )
    found = estimate.calibrated({"a": {"x": 1, "y": 1}, "b": {"u": 3, "v": 1}}).ask("c >= 4")
    assert found.kind() == "model"
    assert any("weights are right" in note for note in found.notes())
    (low,), (high,) = found.interval(0.999)
    assert low < 0.5 < high


@pytest.mark.parametrize(
    ("margins", "message"),
    [({}, "at least one margin"), ({"g": {"a": 1}}, "every code"), ({"g": {"a": -1, "b": 1, "c": 1}}, ">= 0")],
)
def test_wrong_margins_are_refused(grouped, margins, message):
    with pytest.raises(ValueError, match=message):
        grouped[0].calibrated(margins)


# Rounds.


@pytest.fixture(scope="module")
def rounds():
    made = {}
    for i, share in enumerate((0.2, 0.2, 0.5)):
        counts = np.array([(1 - share) * 20_000, share * 20_000]).astype(int)
        made[str(2020 + i)] = ahead_ldp.simulate(histogram=counts, schema="v=nominal,no|yes", epsilon=1, random_state=i)
    return ahead_ldp.Series(made)


def test_a_series_follows_a_share_and_finds_the_step(rounds):
    trend = rounds.trend("v = yes")
    low, high = trend.interval(simultaneous=True)
    assert ((low <= [0.2, 0.2, 0.5]) & (high >= [0.2, 0.2, 0.5])).all()
    assert [step["changed"] for step in rounds.changes("v = yes")] == [False, True]


def test_the_budget_of_a_person_adds_up(rounds):
    assert [row["spent"] for row in rounds.budget()] == [1.0, 2.0, 3.0]
    assert [row["people"] for row in rounds.budget()] == [20_000] * 3
    with pytest.raises(ValueError, match="at least two"):
        ahead_ldp.Series({"a": next(iter(rounds.rounds.values()))})


def test_smoothing_lends_strength_and_says_so(rounds):
    smooth = rounds.trend("v = yes", smooth=True)
    assert "steps of one size" in smooth.table()
    values, errors = _smoothed(np.full(5, 0.3), np.full(5, 0.02))
    assert np.allclose(values, 0.3)
    assert np.allclose(errors, 0.02 / np.sqrt(5), rtol=0.01)  # no step: all rounds have one share
    _, errors = _smoothed(np.array([0.1, 0.9, 0.1, 0.9]), np.full(4, 0.02))
    assert (errors > 0.015).all()  # large steps: each round for itself


@pytest.mark.parametrize("name", ["grr", "oue"])
def test_rounds_with_fresh_noise_cost_the_sum_of_their_epsilons(name):
    """All pairs of reports, for all pairs of values: the budget's total is what somebody can learn at most."""
    oracle = make_oracle(name, 0.7, 3)
    reports = all_reports(oracle)
    one = np.stack([oracle.log_prob(reports, value) for value in range(3)])
    two = (one[:, None, :, None] + one[None, :, None, :]).reshape(9, -1)  # values of two rounds, reports of both
    worst = np.ptp(two, axis=0).max()
    assert 2 * 0.7 * (1 - 1e-4) <= worst <= 2 * 0.7 + 1e-9
