"""Groups, weights and rounds: conditional answers, margins that are known, and a campaign that is repeated."""

import numpy as np
import pandas as pd
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
    """Of group c there are 60 people, half a standard error: in most runs, as in this one, it may be empty."""
    x, g = crowd()
    return ahead_ldp.simulate({"x": x, "g": np.array(["a", "b", "c"])[g]}, SCHEMA, epsilon=3, seed=4), x, g


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
    for kind in ("strict", "model"):
        gap = groups.compare(groups.quantiles("x"), "a", "b")
        (low,), (high,) = gap.interval(kind=kind)
        assert low <= np.median(parts[1]) - np.median(parts[0]) <= high
        assert (low, gap.value, high) == (int(low), int(gap.value), int(high))


def test_a_group_that_may_be_empty_says_so(grouped):
    groups = grouped[0].by("g")
    assert groups.small().tolist() == [False, False, True]
    mean = groups.mean("x")
    low, high = mean.interval()
    assert (low[2], high[2]) == (0, 31)
    assert any("may be empty" in note and " c." in note for note in mean.notes())


def test_a_note_names_some_of_many_groups(grouped):
    note = grouped[0].by("x").share("g = c").notes()[-1]
    empty = int(grouped[0].by("x").small().sum())
    assert empty > 12
    assert note.count(", ") == 12  # one of them ends a clause
    assert note.endswith(f" and {empty - 12} more.")


def test_bins_are_groups_and_wrong_questions_are_refused(grouped):
    estimate = grouped[0]
    assert len(estimate.by("x", bins=4).share("g = a")) == 4
    for call, message in [
        (lambda: estimate.by("g").mean("g"), "order"),
        (lambda: estimate.by("x", bins=2).mean("x"), "another attribute"),
        (lambda: estimate.by("g").share("g = a"), "other attributes"),
        (lambda: estimate.by("g").quantiles("x", 1.5), "levels"),
        (lambda: estimate.by("g").compare(estimate.by("g").mean("x"), "a", "z"), "one of the groups"),
        (lambda: estimate.by("g").compare(estimate.by("g").mean("x"), "a", "a"), "two different groups"),
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
    estimate, x, g = grouped
    found = estimate.calibrated({"g": {"a": 0.5, "b": 0.25, "c": 0.25}}).ask("x >= 15")
    (low,), (high,) = found.interval()
    known = 0.5 * np.mean(x[g == 0] >= 15) + 0.25 * np.mean(x[g == 1] >= 15)
    assert 0 < low <= known  # nobody of c
    assert known + 0.25 <= high < 1  # everybody of c
    assert any("Of 25.00 % of everybody nothing is known" in note for note in found.notes())
    everything = estimate.calibrated({"g": {"a": 0, "b": 0, "c": 1}}).ask("x >= 15")
    assert [float(end[0]) for end in everything.interval()] == [0, 1]
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
    estimate = ahead_ldp.simulate(columns, ["a=nominal,x|y", "b=nominal,u|v", "c=integer,0,7"], epsilon=2, seed=1)
    found = estimate.calibrated({"a": {"x": 1, "y": 1}, "b": {"u": 3, "v": 1}}).ask("c >= 4")
    assert found.kind() == "model"
    assert any("pairs alone" in note for note in found.notes())
    assert any("needs one margin" in note for note in found.notes())
    (low,), (high,) = found.interval(0.999)
    assert low < 0.5 < high


def test_the_errors_of_raked_weights_are_counted():
    """What the shares of the strata are off by moves the weights: the linear part is the derivative."""
    columns = {"a": ["x", "y"] * 500, "b": ["u", "v", "w", "v"] * 250}
    estimate = ahead_ldp.simulate(columns, ["a=nominal,x|y", "b=nominal,u|v|w"], epsilon=2, seed=1)
    made = estimate.calibrated({"a": {"x": 1, "y": 2}, "b": {"u": 3, "v": 1, "w": 2}})
    shares, shape = np.random.default_rng(3).dirichlet(np.full(6, 5.0)), (2, 3)
    object.__setattr__(made, "shares", shares)
    ratio = np.random.default_rng(4).random(6)
    inside, fitted = shares * ratio, made._fitted(ratio)

    def weighted(strata):
        return float(_raked(strata.reshape(shape), made.targets).reshape(-1) @ inside)

    for g in range(6):
        step = 1e-5 * np.eye(6)[g]
        slope = (weighted(shares + step) - weighted(shares - step)) / 2e-5
        assert slope == pytest.approx(-made.weights[g] * fitted[g], abs=1e-4)
    assert not np.allclose(fitted, ratio, atol=0.05)
    one = estimate.calibrated({"b": {"u": 3, "v": 1, "w": 2}})
    assert np.allclose(one._fitted(np.array([0.1, 0.5, 0.9])), [0.1, 0.5, 0.9])


@pytest.mark.parametrize(
    ("margins", "message"),
    [
        ({}, "at least one margin"),
        ({"g": {"a": 1}}, "each once, got none for 'b'"),
        ({"x": {"0..15": 1, "10..31": 1}}, "each once, got '10' twice"),
        ({"g": {"a": -1, "b": 1, "c": 1}}, ">= 0"),
        ({"g": {"a": 0.5, "b": 0.3, "c": 0.1}}, "shares that sum to 1, or counts, in the margin of g, got the sum 0.9"),
        ({"g": {"a": "half", "b": 0.5, "c": 0}}, "shares or counts"),
        ({"g": {"a": None, "b": 1, "c": 1}}, "shares or counts"),
        ({"g": {"a": float("nan"), "b": 1, "c": 1}}, "shares or counts"),
        ({"g": {"a": True, "b": 1, "c": 1}}, "shares or counts"),
        ({"g": [0.5, 0.3, 0.2]}, "for each category in the margin of g"),
    ],
)
def test_wrong_margins_are_refused(grouped, margins, message):
    with pytest.raises(ValueError, match=message):
        grouped[0].calibrated(margins)


def test_a_wanted_group_of_which_the_estimate_has_nobody_is_named():
    histogram = np.array([5000, 5000, 0])
    schema = "g=nominal,a|b|c"
    estimate = ahead_ldp.simulate(histogram=histogram, schema=schema, epsilon=6, seed=1, method="flat")
    with pytest.raises(ValueError, match="margin of g, got an estimate with nobody in 'c'"):
        estimate.calibrated({"g": {"a": 1, "b": 1, "c": 1}}).ask("g = a")


def test_a_margin_may_be_a_series_as_value_counts_gives(grouped):
    estimate, census = grouped[0], pd.Series(["a"] * 5 + ["b"] * 3 + ["c"] * 2, dtype="category")
    expected = estimate.calibrated({"g": {"a": 5, "b": 3, "c": 2}}).weights
    for known in (census.value_counts(), census.value_counts(normalize=True)):
        np.testing.assert_allclose(estimate.calibrated({"g": known}).weights, expected)
    with pytest.raises(ValueError, match="every category of g once in its margin, got 4 of 3"):
        estimate.calibrated({"g": pd.concat([census.value_counts(), pd.Series({"a": 1})])})
    with pytest.raises(ValueError, match="shares or counts"):
        estimate.calibrated({"g": pd.DataFrame({"a": [1], "b": [1], "c": [1]})})


def test_percentages_and_rounded_shares_are_what_they_mean(grouped):
    estimate = grouped[0]
    expected = estimate.calibrated({"g": {"a": 1, "b": 1, "c": 2}}).weights
    for margin in (
        {"a": 25, "b": 25, "c": 50},
        {"a": 24.9, "b": 24.9, "c": 49.8},
        {"a": 0.249, "b": 0.249, "c": 0.498},
    ):
        np.testing.assert_allclose(estimate.calibrated({"g": margin}).weights, expected)


# Rounds.


@pytest.fixture(scope="module")
def rounds():
    made = {}
    for i, share in enumerate((0.2, 0.2, 0.5)):
        counts = np.array([(1 - share) * 20_000, share * 20_000]).astype(int)
        made[str(2020 + i)] = ahead_ldp.simulate(histogram=counts, schema="v=nominal,no|yes", epsilon=1, seed=i)
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
    with pytest.raises(ValueError, match="estimates by the names of their rounds, got a list"):
        ahead_ldp.Series(list(rounds.rounds.values()))


def test_smoothing_lends_strength_and_says_so(rounds):
    smooth = rounds.trend("v = yes", smooth=True)
    assert "steps of one size" in smooth.table()
    values, errors = _smoothed(np.full(5, 0.3), np.full(5, 0.02))
    assert np.allclose(values, 0.3)
    assert (errors > 0.02 / np.sqrt(5)).all()  # as if all rounds were known to have one share
    assert (errors < 0.7 * 0.02).all()
    _, errors = _smoothed(np.array([0.1, 0.9, 0.1, 0.9]), np.full(4, 0.02))
    assert (errors > 0.015).all()  # large steps: each round for itself
    values, errors = _smoothed(np.full(3, 0.2), np.zeros(3))  # rounds of which everything is known
    assert np.allclose(values, 0.2)
    assert (errors < 1e-5).all()


@pytest.mark.parametrize("size", [0.0, 1.0, 3.0])
def test_smoothed_shares_hold_walks(size):
    """Steps of any size, in errors of a round: how large they are is not known either, and that is counted."""
    rng, held = np.random.default_rng(8), []
    for _ in range(60):
        walk = 0.4 + np.cumsum(np.append(0.0, rng.normal(0, 0.02 * size, 5)))
        values, errors = _smoothed(walk + rng.normal(0, 0.02, 6), np.full(6, 0.02))
        held.append(np.mean(np.abs(values - walk) <= 1.96 * errors))
    assert np.mean(held) >= 0.93 - 2 * 0.013  # two standard errors, as rounds of a walk go together


@pytest.mark.parametrize("name", ["grr", "oue"])
def test_rounds_with_fresh_noise_cost_the_sum_of_their_epsilons(name):
    """All pairs of reports, for all pairs of values: the budget's total is what somebody can learn at most."""
    oracle = make_oracle(name, 0.7, 3)
    reports = all_reports(oracle)
    one = np.stack([oracle.log_prob(reports, value) for value in range(3)])
    two = (one[:, None, :, None] + one[None, :, None, :]).reshape(9, -1)  # values of two rounds, reports of both
    worst = np.ptp(two, axis=0).max()
    assert 2 * 0.7 * (1 - 1e-4) <= worst <= 2 * 0.7 + 1e-9
