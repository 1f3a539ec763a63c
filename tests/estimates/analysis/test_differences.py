"""Differences of two estimates: 0 with itself, right with other buckets, and tests of "no change" with their power."""

from dataclasses import replace

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.estimates.analysis.difference_intervals import added
from ahead_ldp.estimates.analysis.differences import _who_was_drawn
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.slices import proper
from ahead_ldp.estimates.strict.bounds import Bounds
from ahead_ldp.mechanisms import make_mechanism
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import Workload
from tools.questions import lumpy

LINE = "x=integer,0,63"


def people(seed, moved=0.0):
    rng = np.random.default_rng(seed)
    x = lumpy(rng, 20_000)
    return np.where(rng.random(x.size) < moved, np.minimum(x + 20, 63), x)


def estimate(x, seed, epsilon=2.0, schema=LINE):
    return ahead_ldp.simulate(x, schema, epsilon=epsilon, seed=seed)


@pytest.fixture(scope="module")
def both():
    return estimate(people(1), 11), estimate(people(2, 0.1), 12)


def test_the_difference_with_itself_is_zero(both, tmp_path):
    both[0].save(tmp_path / "e.json")
    for again in (both[0], ahead_ldp.load(tmp_path / "e.json")):
        change = ahead_ldp.difference(both[0], again)
        for answers in (change.ask("x <= 20", "x in 30..40"), change.cdf("x"), change.histogram("x")):
            assert not answers.values.any()
            assert not np.stack(answers.interval(simultaneous=True)).any()
        assert change.mean().value == 0
        assert not np.stack(change.quantiles("x").interval()).any()
        for found in (change.mean(), change.quantiles("x"), change.cdf("x")):
            assert not np.stack(found.interval(kind="model")).any()
        assert not change.test("x").rejected


def test_differences_hold_the_truth(both):
    change = ahead_ldp.difference(*both, sampled=False)
    x, y = people(1), people(2, 0.1)
    cuts = [12, 20, 36]
    truth = np.array([np.mean(y <= c) - np.mean(x <= c) for c in cuts])
    low, high = change.cdf("x", cuts).interval(simultaneous=True)
    assert ((low <= truth) & (truth <= high)).all()
    (low,), (high,) = change.mean("x").interval()
    assert 0 < low <= y.mean() - x.mean() <= high
    low, high = change.quantiles("x").interval()
    truth = np.quantile(y, [0.25, 0.5, 0.75]) - np.quantile(x, [0.25, 0.5, 0.75])
    assert ((low <= truth) & (truth <= high)).all()
    low, high = change.quantiles("x").interval(kind="model")
    assert ((low == np.floor(low)) & (high == np.floor(high))).all()  # as quantiles of whole numbers are
    assert ((low <= truth) & (truth <= high)).all()
    one, two = (e.ask("x <= 20").interval() for e in both)
    low, high = change.ask("x <= 20").interval()
    assert high - low < 0.85 * (one[1] - one[0] + two[1] - two[0])  # errors add up in squares


def test_buckets_may_differ(both):
    coarse = estimate(people(2, 0.1), 13, schema="x=integer,0,63,16")
    change = ahead_ldp.difference(both[0], coarse)
    truth = np.mean(people(2, 0.1) <= 31) - np.mean(people(1) <= 31)
    low, high = change.ask("x <= 31").interval(0.999)
    assert low <= truth <= high < 0
    assert set(change.cdf("x").labels["x"]) <= set(range(3, 64, 4))
    assert change.histogram("x", bins=[0, 16, 32, 63]).labels["x"].tolist() == ["0..15", "16..31", "32..63"]


def test_ranges_that_were_declared_anew_share_few_borders():
    """From -3..70 to -5..80: no border inside both; a curve at none of its points would see nothing."""
    first = estimate(people(1) / 1.0, 11, 4.0, "x=real,-3,70,64")
    same, moved = (estimate(people(2, part) / 1.0, 12, 4.0, "x=real,-5,80,64") for part in (0.0, 0.1))
    change = ahead_ldp.difference(first, moved, sampled=False)
    curve, bins = change.cdf("x", 12), change.histogram("x", 6)
    assert len(curve) >= 8
    truth = [np.mean(people(2, 0.1) <= x) - np.mean(people(1) <= x) for x in curve.labels["x"]]
    low, high = curve.interval(0.999, simultaneous=True)
    assert (low <= truth).all()
    assert (truth <= high).all()
    assert 4 <= len(bins) <= 6  # a heap may end two of them
    assert bins.labels["x"][0].startswith("[-3, ")
    assert bins.labels["x"][-1].endswith(", 70]")
    assert ahead_ldp.difference(first, moved).test("x").rejected
    assert not ahead_ldp.difference(first, same).test("x").rejected


def test_one_border_of_both_is_not_enough():
    """From 16..90 to 18..99, in ten buckets each: only 82 ends a bucket in both."""
    rng = np.random.default_rng(5)
    ages = [np.clip(rng.normal(45, 12, 20_000), low, high).astype(int) for low, high in ((16, 90), (18, 99))]
    schemas = ["x=integer,16,90,10", "x=integer,18,99,10"]
    change = ahead_ldp.difference(*map(estimate, ages, (1, 2), (2.0, 2.0), schemas))
    assert {33, 41, 49, 58} <= set(change.cdf("x").labels["x"].tolist())
    assert change.histogram("x").labels["x"].tolist()[0] == "18..33"  # few are below 25
    assert change.histogram("x", bins=1).labels["x"].tolist() == ["18..90"]


def test_every_code_is_a_bin_where_there_are_few():
    """A scale from 1 to 5, as surveys have it: borders that both have are the ends of bins, the outer ones included."""
    rng = np.random.default_rng(6)
    first, second = (estimate(rng.integers(1, 6, 3000), seed, schema="x=integer,1,5") for seed in (1, 2))
    change = ahead_ldp.difference(first, second)
    assert change.histogram("x").labels["x"].tolist() == ["1", "2", "3", "4", "5"]
    assert len(change.histogram("x", bins=2)) == 2
    assert change.histogram("x", bins=1).values == pytest.approx([0], abs=1e-9)
    part = ahead_ldp.difference(first, estimate(rng.integers(3, 9, 3000), 3, schema="x=integer,3,8"))
    assert part.histogram("x").labels["x"].tolist() == ["3", "4", "5"]
    with pytest.raises(ValueError, match="bins >= 1"):
        change.histogram("x", bins=0)


def test_no_change_is_seldom_rejected_and_a_tenth_that_moved_is_seen():
    false, seen = 0, 0
    for seed in range(6):
        first = estimate(people(100 + seed), 3 * seed)
        false += ahead_ldp.difference(first, estimate(people(200 + seed), 3 * seed + 1)).test("x").rejected
        seen += ahead_ldp.difference(first, estimate(people(300 + seed, 0.1), 3 * seed + 2)).test("x").rejected
    assert false <= 1  # two of six at 5 % have the probability 3 %
    assert seen >= 5


def test_the_verdict_is_a_sentence(both):
    test = ahead_ldp.difference(*both).test("x")
    assert test.rejected
    assert "x changed, with 95 % confidence: another share of people is at or below" in test.text()
    assert "No change" in ahead_ldp.difference(both[0], both[0]).test("x").text()
    assert repr(test) == f"<ChangeTest: {test.text()}>"
    assert repr(ahead_ldp.difference(*both)) == "<Difference of x, about everybody>"
    where = {"x": np.array([40_000.0, 0.25, 1e6])}
    moved = Answers(np.zeros(3), np.zeros(3), np.zeros(3, bool), where)
    assert "at or below 40,000, 0.25, 1,000,000." in replace(test, answers=moved, where=np.ones(3, bool)).text()


def test_people_who_are_a_sample_have_wider_intervals(both):
    own, all_of_them = (ahead_ldp.difference(*both, sampled=s).ask("x <= 20") for s in (False, True))
    for kind in ("strict", "model"):
        (low, high), (least, most) = own.interval(kind=kind), all_of_them.interval(kind=kind)
        assert most - least > high - low


def test_who_was_drawn_is_in_the_errors_of_means_and_quantiles():
    """With next to no noise, the model's errors are those of two samples: the textbook's."""
    rng = np.random.default_rng(7)
    crowds = [np.clip(rng.normal(32, 8, 2000), 0, 63).astype(int) for _ in range(2)]
    made = [ahead_ldp.simulate(x, LINE, epsilon=16, method="flat", seed=i) for i, x in enumerate(crowds)]
    own, drawn = (ahead_ldp.difference(*made, sampled=sampled) for sampled in (False, True))
    of_mean = np.sqrt(sum(x.var() / x.size for x in crowds))
    assert np.sqrt(drawn.mean("x").error ** 2 - own.mean("x").error ** 2) == pytest.approx(of_mean, rel=0.02)
    of_median = np.sqrt(2 * 0.25 / 2000) * 8 * np.sqrt(2 * np.pi)  # over the density at the median
    assert drawn.quantiles("x", 0.5).error == pytest.approx(of_median, rel=0.3)


def test_categories_that_both_know_are_compared():
    rng = np.random.default_rng(3)
    first = estimate(rng.choice(["a", "b", "c"], 20_000), 1, schema="g=nominal,a|b|c")
    second = estimate(rng.choice(["a", "b", "d"], 20_000), 2, schema="g=nominal,d|a|b")
    change = ahead_ldp.difference(first, second)
    assert change.histogram("g").labels["g"].tolist() == ["a", "b"]
    low, high = change.histogram("g").interval()
    assert (low <= 0).all()
    assert (high >= 0).all()


def test_attributes_that_both_have_of_one_kind_are_named():
    rng = np.random.default_rng(4)
    columns = {"x": rng.integers(0, 8, 2000), "y": rng.integers(0, 8, 2000), "z": rng.integers(0, 8, 2000)}
    one = estimate(columns, 1, schema=["x=integer,0,7", "y=integer,0,7", "z=integer,0,7"])
    other = estimate(columns, 2, schema=["z=integer,0,7,missing=cell", "y=integer,0,9", "x=real,0,8,8"])
    change = ahead_ldp.difference(one, other)
    assert change.shared == ["y"]
    assert change.test("y").attribute == "y"
    with pytest.raises(ValueError, match="same kind in both estimates, got integer and integer with missing values"):
        change.test("z")
    with pytest.raises(ValueError, match=r"that both estimates have \(none\), got 'x'"):
        ahead_ldp.difference(one, estimate({"w": columns["x"]}, 3, schema=["w=integer,0,7"])).test("x")


def test_what_cannot_be_compared_is_refused(both):
    part = ahead_ldp.simulate(people(1), LINE, epsilon=2.0, seed=11)
    assert ahead_ldp.difference(both[0], part).same
    with pytest.raises(ValueError, match="same kind"):
        ahead_ldp.difference(both[0], estimate(people(1) / 1.0, 5, schema="x=real,0,64,16")).mean("x")
    with pytest.raises(ValueError, match="at least one level"):
        ahead_ldp.difference(*both).quantiles("x", [])
    with pytest.raises(ValueError, match="expected two estimates, got a str"):
        ahead_ldp.difference(both[0], "2025.json")
    apart = ahead_ldp.difference(both[0], estimate(people(1) + 100, 5, schema="x=integer,100,163"))
    for ask in (apart.cdf, apart.histogram, apart.test):
        with pytest.raises(ValueError, match=r"borders of x .* ranges apart: 0\.\.63 and 100\.\.163"):
            ask("x")
    with pytest.raises(ValueError, match="inside the ranges of both estimates, got none"):
        ahead_ldp.difference(both[0], estimate(people(1) + 63, 5, schema="x=integer,63,126")).cdf("x")


def test_estimates_that_share_reports_are_refused(both):
    """After the first wave, and after all: what the first wave said is in both."""
    early = replace(both[0])
    early.attach(both[0].provenance.waves[0])
    with pytest.raises(ValueError, match="share some"):
        ahead_ldp.difference(early, both[0])
    with pytest.raises(ValueError, match="know their reports"):
        ahead_ldp.difference(replace(both[0]), both[1])


def test_campaigns_that_happen_to_count_the_same_are_two():
    """Few people and few answers often give the same counts; that says nothing about who was asked."""
    schema = as_schema("g=nominal,a|b")
    mechanism = make_mechanism("flat", schema, 4)

    def found(campaign):
        session = Session(mechanism, schema, campaign)
        session.tell({group: Tally(60, np.array([20, 40])) for group in session.wave})
        return session.estimate

    change = ahead_ldp.difference(found("1" * 64), found("2" * 64))
    assert not change.same
    low, high = change.histogram("g").interval()
    assert (low < -0.1).all()
    assert (high > 0.1).all()


def test_before_anybody_answered_nothing_is_known_of_a_change():
    """Two campaigns without a closed wave have no reports in common, and none at all."""
    schema = as_schema("x=integer,0,9")
    mechanism = make_mechanism("flat", schema, 4)
    before, after = (Session(mechanism, schema, campaign * 64).finish() for campaign in "12")
    low, high = ahead_ldp.difference(before, after).histogram("x", 2).interval()
    assert low.tolist() == [-1, -1]
    assert high.tolist() == [1, 1]
    same = ahead_ldp.difference(before, before).histogram("x", 2)
    assert not same.standard_error.any(), "whatever it is, it did not change"


def test_who_was_drawn_has_the_covariance_of_a_sample(both):
    """The people of a sample, drawn again and again: their shares vary together as the covariance says."""
    workload = Workload.from_queries(both[0].schema, ["x <= 12", "x <= 30", "x in 20..40", "x >= 50"])
    density = proper(both[0].marginal("x").values)
    drawn = np.random.default_rng(5).multinomial(20_000, density, size=4000) / 20_000
    held = np.stack([drawn[:, int(lo) : int(hi)].sum(axis=1) for lo, hi in workload.boxes[:, 0]], axis=1)
    expected, found = np.cov(held.T), _who_was_drawn(both[0], workload)
    near = 5 * 1.5 * np.diag(expected).max() / np.sqrt(4000)  # five standard errors
    assert np.abs(found - expected).max() < near
    apart = expected - np.diag(np.diag(expected))
    assert np.abs(apart).max() > near  # queries that were taken as independent would be seen


def test_the_models_test_knows_that_points_of_a_curve_move_together(both):
    """Bonferroni's constant for 24 points is 3.08; the joint law of a curve needs less, and more than one point."""
    for sampled in (True, False):
        answers = ahead_ldp.difference(*both, sampled=sampled).cdf("x")
        constant, rule = answers.critical(0.95, simultaneous=True)
        assert rule == "sup-t"
        assert 2.1 < constant < 3.0
        draws = answers.joint()
        np.testing.assert_allclose(draws.std(axis=0), answers.spread, rtol=0.2)


def test_draws_of_two_estimates_are_independent():
    """Both come from one seed. In the same order their difference would be next to nothing."""
    counts = np.bincount(people(1) // 8, minlength=8)
    flat = [ahead_ldp.simulate(histogram=counts, schema="x=integer,0,7", epsilon=1, method="flat", seed=i)
            for i in (1, 2)]  # fmt: skip
    queries = ["x <= 2", "x <= 5"]
    alone = [e.joint_errors(Workload.from_queries(e.schema, queries)) for e in flat]
    assert np.corrcoef(alone[0][:, 0], alone[1][:, 0])[0, 1] > 0.9
    together = ahead_ldp.difference(*flat, sampled=False).ask(*queries).joint()
    expected = np.hypot(alone[0].std(axis=0), alone[1].std(axis=0))
    np.testing.assert_allclose(together.std(axis=0), expected, rtol=0.12)  # five standard errors of 1000 draws


def test_errors_of_two_runs_add_up_in_squares():
    def bound(centre, error, direction):
        return Bounds(np.array([centre]), np.array([error]), np.ones(1), (((0,), np.array(direction)),))

    total = added(bound(0.2, 0.03, [1.0, 1.0]), bound(-0.1, 0.04, [2.0]))
    assert total.at(2.0)[0] == pytest.approx(0.1 + 2 * 0.05)
    assert np.linalg.norm(total.directions[0][1]) == pytest.approx(0.05)
    assert total.most[0] == 2
