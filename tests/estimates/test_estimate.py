"""What people ask of an estimate: held by exact laws on a known distribution, by simulation, and for every method."""

from dataclasses import dataclass

import numpy as np
import pytest

from ahead_ldp.engines.api import simulate
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.estimate import Answers, Estimate
from ahead_ldp.estimates.slices import slices
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.schema import attributes as declare
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.coding import encode
from ahead_ldp.schema.workloads import Workload

RNG_SEED = 20_210


@dataclass(frozen=True, eq=False)
class Known(Estimate):
    """Given shares with a given covariance: what the generic methods must return follows by hand."""

    schema: object
    shares: np.ndarray  # flat, last attribute fastest
    covariance: np.ndarray
    consistent: bool = True

    def weights(self, workload: Workload) -> np.ndarray:
        index = np.indices(workload.sizes).reshape(len(workload.sizes), -1).T
        inside = np.ones((len(workload.boxes), len(index)))
        for a in range(len(workload.sizes)):
            lo, hi = workload.boxes[:, a, :1], workload.boxes[:, a, 1:]
            inside *= np.clip(np.minimum(hi, index[:, a] + 1) - np.maximum(lo, index[:, a]), 0, 1)
        total = np.zeros((workload.n, len(index)))
        np.add.at(total, workload.owner, inside)
        return total

    def answer(self, workload: Workload, *, errors: bool = True) -> Answers:
        w = self.weights(workload)
        variance = np.maximum(np.einsum("ki,ij,kj->k", w, self.covariance, w), 0.0)
        error = np.sqrt(variance) if errors else np.full(workload.n, np.nan)
        return Answers(w @ self.shares, error, ((w > 0) & (w < 1)).any(axis=1))


def known(*specs: str, n: int = 1000, seed: int = RNG_SEED, consistent: bool = True) -> Known:
    schema = as_schema(specs)
    shares = np.random.default_rng(seed).dirichlet(np.full(int(np.prod(schema.sizes)), 2.0))
    return Known(schema, shares, (np.diag(shares) - np.outer(shares, shares)) / n, consistent)


def simulated(n: int = 50_000, method: str = "flat", spec: str = "a=real,0,160,16", **choices) -> Estimate:
    schema = as_schema(spec)
    rng = np.random.default_rng(RNG_SEED)
    population = Population.of_histogram(rng.multinomial(n, rng.dirichlet(np.full(schema.sizes[0], 2.0))))
    return run_simulation(MECHANISMS[method](epsilon=1.0, **choices), schema, population, rng)


# Exact laws on a known distribution.


def test_cdf_is_the_cumulative_sum_with_its_error():
    estimate = known("a=integer,10,19")
    found = estimate.cdf("a")
    f = np.cumsum(estimate.shares)
    np.testing.assert_allclose(found.values, f, atol=1e-12)
    np.testing.assert_allclose(found.standard_error, np.sqrt(np.maximum(f * (1 - f), 0) / 1000), atol=1e-9)
    assert found.labels["a"].tolist() == list(range(10, 20))
    assert estimate.cdf("a", [5, 9, 12, 99]).values.tolist() == pytest.approx([0, 0, f[2], 1])


def test_cdf_and_ask_agree_between_borders():
    estimate = known("a=real,0,160,16")
    points = [3.5, 20.0, 155.25]
    asked = estimate.ask(*(f"a <= {x}" for x in points))
    np.testing.assert_allclose(estimate.cdf("a", points).values, asked.values, atol=1e-12)
    assert estimate.cdf("a", points).bias_not_included.tolist() == [True, False, True]


def test_ask_passes_snap_on():
    estimate = known("a=real,0,160,16")
    assert estimate.ask("a in 12..28", snap="outward").values[0] == pytest.approx(estimate.shares[1:3].sum())
    assert estimate.ask("a in 12..28", snap="inward").values[0] == pytest.approx(0.0)


def test_quantiles_invert_the_curve():
    estimate = known("a=real,0,160,16")
    levels = [0.1, 0.5, 0.9]
    found = estimate.quantiles("a", levels)
    np.testing.assert_allclose(estimate.cdf("a", found.values).values, levels, atol=1e-9)
    np.testing.assert_allclose(found.share_error, np.sqrt(np.array([0.09, 0.25, 0.09]) / 1000), rtol=0.2)


def test_quantiles_on_a_large_domain_are_refined():
    class Even(Estimate):
        schema, consistent = as_schema("a=integer,0,999999999"), True

        def answer(self, workload, *, errors=True):
            share = (workload.boxes[:, 0, 1] - workload.boxes[:, 0, 0]) / workload.sizes[0]
            values = workload.add_up(share**2)  # F(x) = x^2
            return Answers(values, np.full(workload.n, 1e-3), np.zeros(workload.n, bool))

    assert Even().quantiles(levels=[0.25, 0.81]).values.tolist() == [500_000_000, 900_000_000]


def test_quantiles_and_mean_are_among_those_with_a_value():
    estimate = known("a=integer,0,9,missing=cell", n=500)
    shares, value = estimate.shares, np.append(np.arange(10), 0)
    present = shares[:10].sum()
    assert estimate.cdf("a").values[-1] == pytest.approx(present)
    assert estimate.quantiles("a", [1.0]).curve[-1] == pytest.approx(1.0)
    assert estimate.mean("a").number == pytest.approx(shares @ value / present)
    median = estimate.quantiles("a", [0.5])
    gradient = np.clip(np.interp(0.5, median.curve, median.places) - np.arange(11), 0, 1) - 0.5  # F(x) - F(end) / 2
    gradient[10] = 0
    expected = np.sqrt(gradient @ estimate.covariance @ gradient) / present
    assert median.share_error[0] == pytest.approx(expected, rel=1e-9)


def test_mean_is_a_linear_functional():
    estimate = known("a=real,0,160,16", "b=integer,0,2")
    centre = np.repeat(np.arange(5, 160, 10), 3)
    found = estimate.mean("a")
    assert found.number == pytest.approx(estimate.shares @ centre)
    assert found.standard_error == pytest.approx(np.sqrt(centre @ estimate.covariance @ centre), rel=1e-6)


@pytest.mark.parametrize("consistent", [True, False])
def test_mean_does_not_depend_on_how_it_is_summed(consistent):
    estimate = known("a=integer,5,40", consistent=consistent)
    assert estimate.mean().number == pytest.approx(estimate.shares @ np.arange(5, 41))
    values = np.arange(5, 41)
    assert estimate.mean().standard_error == pytest.approx(np.sqrt(values @ estimate.covariance @ values), rel=1e-6)
    found = estimate.mean()
    assert found.interval(0.9) == pytest.approx(
        (found.number - 1.645 * found.spread, found.number + 1.645 * found.spread), rel=1e-4
    )


def test_linear_beyond_the_limit_takes_neighbours_together():
    estimate = known("a=integer,0,255", n=100)
    values = np.arange(256)
    exact = np.sqrt(values @ estimate.covariance @ values)
    found = estimate.mean()
    assert found.number == pytest.approx(estimate.shares @ values)
    assert found.standard_error == pytest.approx(exact, rel=1e-3)


def test_unknown_errors_stay_unknown():
    class Endless(Known):
        def answer(self, workload, *, errors=True):
            found = super().answer(workload, errors=errors)
            return Answers(found.values, np.full(workload.n, np.inf), found.bias_not_included)

    estimate = known("a=integer,0,9")
    endless = Endless(estimate.schema, estimate.shares, estimate.covariance)
    assert endless.mean().standard_error == np.inf
    low, high = endless.quantiles().interval()
    assert (low == 0).all()
    assert (high == 9).all()


def test_histogram_bins():
    estimate = known("a=integer,0,9")
    p = estimate.shares
    assert estimate.histogram().values.tolist() == pytest.approx(p.tolist())
    found = estimate.histogram("a", 3)
    assert found.labels["a"].tolist() == ["0..2", "3..5", "6..9"]
    assert found.values.tolist() == pytest.approx([p[:3].sum(), p[3:6].sum(), p[6:].sum()])
    given = estimate.histogram("a", [2, 5, 9])
    assert given.labels["a"].tolist() == ["2..4", "5..9"]
    assert given.values.tolist() == pytest.approx([p[2:5].sum(), p[5:].sum()])
    real = known("a=real,0,160,16").histogram("a", [0, 40, 160])
    assert real.labels["a"].tolist() == ["[0, 40)", "[40, 160]"]
    assert real.values.sum() == pytest.approx(1)


def test_histogram_shows_those_without_a_value():
    found = known("a=nominal,x|y,missing=cell").histogram("a")
    assert found.labels["a"].tolist() == ["x", "y", "missing"]


def test_marginals():
    estimate = known("a=integer,0,3", "b=integer,0,2", "c=integer,0,4")
    table = estimate.shares.reshape(4, 3, 5)
    np.testing.assert_allclose(estimate.marginal("b").values, table.sum(axis=(0, 2)), atol=1e-12)
    both = estimate.marginal("c", "a")
    np.testing.assert_allclose(both.values, table.sum(axis=1).T, atol=1e-12)
    f = both.values
    np.testing.assert_allclose(both.standard_error, np.sqrt(f * (1 - f) / 1000), rtol=1e-6)
    frame = both.to_frame("pandas")
    row = frame[(frame["c"] == "3") & (frame["a"] == "1")]
    assert row["share"].item() == pytest.approx(table[1, :, 3].sum())


def test_long_frame_has_every_attribute():
    frame = known("a=integer,0,3", "b=nominal,x|y").to_frame(backend="pandas")
    assert frame["attribute"].tolist() == ["a"] * 4 + ["b"] * 2
    assert frame.groupby("attribute")["share"].sum().tolist() == pytest.approx([1, 1])


def test_an_improper_curve_gives_proper_quantiles_and_samples():
    shares = np.array([0.4, -0.1, 0.3, 0.5])
    estimate = Known(as_schema("a=integer,0,3"), shares, np.eye(4) * 1e-4, consistent=False)
    found = estimate.quantiles(levels=np.linspace(0, 1, 11))
    assert (np.diff(found.curve) >= 0).all()
    assert (found.curve[0], found.curve[-1]) == (0, 1)
    drawn = estimate.sample(4000, seed=1, backend="dict")["a"]
    assert (drawn != 1).all()
    assert "not consistent" in estimate.summary()


def test_a_summary_says_once_how_much_narrower_the_models_intervals_are():
    people = {name: np.random.default_rng(i).integers(0, 32, 3000) for i, name in enumerate("ab")}
    attributes = [f"{name}=integer,0,31" for name in people]
    estimate = simulate(people, attributes, epsilon=1, method="fused", seed=1)
    each = [estimate.quantiles(name).notes() for name in people]
    times = [float(note.split(" times")[0].split()[-1]) for notes in each for note in notes if "narrower" in note]
    assert len(times) == 2
    assert times[0] != times[1]
    (said,) = [line for line in estimate.summary().splitlines() if "narrower" in line]
    assert f"up to {max(times)} times" in said


def test_a_summary_explains_nominal_attributes_where_there_are_some():
    assert "the three most common categories" in known("a=integer,0,3", "b=nominal,x|y").summary()
    assert "categories" not in known("a=integer,0,3").summary()


@pytest.mark.parametrize(("queries", "rule"), [(64, "sup-t"), (65, "Bonferroni")])
def test_the_generic_joint_law_is_of_at_most_64_queries(queries, rule):
    estimate, lo = known("a=integer,0,79"), np.arange(queries)
    answers = estimate.answer_jointly(slices(estimate.schema, "a", lo, lo + 1))
    assert answers.critical(simultaneous=True)[1] == rule


# Samples.


def test_sample_has_the_joint_law():
    estimate = known("a=integer,0,3", "b=integer,0,2")
    n = 40_000
    codes = encode(estimate.schema, estimate.sample(n, seed=5, backend="dict"))
    counts = np.bincount(np.ravel_multi_index(tuple(codes.T), (4, 3)), minlength=12)
    chi2 = ((counts - n * estimate.shares) ** 2 / (n * estimate.shares)).sum()
    assert chi2 < 40  # 11 degrees of freedom: 1 in 10,000 is 36
    wrong = np.roll(estimate.shares, 1)
    assert ((counts - n * wrong) ** 2 / (n * wrong)).sum() > 1000


def test_a_trees_sample_has_the_law_of_its_cells():
    estimate = simulated(method="ahead", spec="a=integer,0,31")
    n = 60_000
    counts = np.bincount(estimate.sample(n, seed=6, backend="dict")["a"], minlength=32)
    generic = np.bincount(Estimate.sample_codes(estimate, n, np.random.default_rng(7))[:, 0], minlength=32)
    spread = np.sqrt(counts + generic + 1)
    assert np.abs((counts - generic) / spread).max() < 5
    assert isinstance(estimate, TreeEstimate)


def test_sample_is_repeatable_and_refuses_what_does_not_fit():
    estimate = known("a=integer,0,9")
    assert (
        estimate.sample(50, 1, backend="dict")["a"]
        == estimate.sample(50, np.random.default_rng(1), backend="dict")["a"]
    ).all()
    large = Known(as_schema(["a=integer,0,2999", "b=integer,0,2999"]), estimate.shares, estimate.covariance)
    with pytest.raises(ValueError, match=r"at most 4194304 combinations.*got 9000000.*fewer buckets"):
        large.sample(1)
    with pytest.raises(ValueError, match="n to be a whole number >= 0, got -1"):
        estimate.sample(-1)


# Trees: the exact functional, and its law in simulation.


@pytest.mark.parametrize("method", ["flat", "ahead"])
def test_a_trees_linear_is_the_generic_one(method):
    estimate = simulated(method=method)
    workload = slices(estimate.schema, "a", np.arange(16.0), np.arange(1, 17.0))
    weights = np.random.default_rng(1).normal(size=(5, 16))
    fast, slow = estimate.linear(workload, weights), Estimate.linear(estimate, workload, weights)
    np.testing.assert_allclose(fast.values, slow.values, atol=1e-12)
    np.testing.assert_allclose(fast.standard_error, slow.standard_error, rtol=1e-6)
    assert (fast.bias_not_included == slow.bias_not_included).all()


REPEATS = 1000
TOLERANCE = 4 * np.sqrt(2 / REPEATS)  # of a sample variance, in units of the true one
POWER = 0.3


@pytest.mark.parametrize("what", ["mean", "median"])
def test_standard_errors_have_the_right_size(what):
    schema = as_schema("a=real,0,8,8")
    counts = np.array([900, 1100, 1500, 2000, 1800, 1300, 900, 500]) * 20
    population, rng = Population.of_histogram(counts), np.random.default_rng(RNG_SEED)
    mechanism = Flat(epsilon=1.0, non_negative=False)
    centre = np.arange(8) + 0.5
    half = np.interp(0.5, np.cumsum([0, *counts]) / counts.sum(), np.arange(9))
    truth = counts @ centre / counts.sum() if what == "mean" else half
    z = np.empty(REPEATS)
    for i in range(REPEATS):
        estimate = run_simulation(mechanism, schema, population, rng)
        if what == "mean":
            found = estimate.mean()
            z[i] = (found.number - truth) / found.standard_error
        else:
            median = estimate.quantiles(levels=[0.5])
            z[i] = (median.values[0] - truth) / median.standard_error[0]
    ratio = (z**2).mean()
    assert abs(ratio - 1) < TOLERANCE
    assert abs(ratio / (1 + POWER) - 1) > TOLERANCE  # a variance 30 % too large would show, and one too small
    assert abs(ratio * (1 + POWER) - 1) > TOLERANCE


# Every method.


@pytest.mark.parametrize("name", sorted(MECHANISMS))
@pytest.mark.parametrize("m", [1, 2, 3])
def test_every_method_answers_everything(name, m):
    cls = MECHANISMS[name]
    if cls.most_attributes is not None and m > cls.most_attributes:
        pytest.skip(f"{name} takes at most {cls.most_attributes}")
    schema = as_schema(["a=integer,0,7", "b=real,0,1,8", "c=integer,10,13"][:m])
    rng = np.random.default_rng(1)
    records = np.stack([rng.binomial(size - 1, 0.4, 5000) for size in schema.sizes], axis=1)
    estimate = run_simulation(cls(epsilon=2.0), schema, Population.of_records(records, schema.sizes), rng)
    assert estimate.provenance is not None
    assert len(estimate.cdf("a")) == 8
    assert 0 <= estimate.quantiles("a", [0.5]).values[0] <= 7
    assert 0 <= estimate.mean("a").number <= 7
    assert estimate.marginal("a").values.shape == (8,)
    if m > 1:
        assert estimate.marginal("a", "b").values.shape == (8, 8)
    codes = encode(schema, estimate.sample(100, 1, backend="dict"))
    assert codes.shape == (100, m)
    assert name in estimate.summary()


# Mistakes.


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda e: e.cdf(), "expected an attribute among a, b, got none"),
        (lambda e: e.cdf("z"), "among a, b, got 'z'"),
        (lambda e: e.cdf("b"), "with an order, got the nominal b"),
        (lambda e: e.quantiles("a", [0.5, 1.2]), r"levels in \[0, 1\]"),
        (lambda e: e.quantiles("a", [np.nan]), r"levels in \[0, 1\]"),
        (lambda e: e.mean("b"), "nominal"),
        (lambda e: e.marginal("a", "a"), "different attributes"),
        (lambda e: e.marginal("a", "b", "a"), "one or two attributes"),
        (lambda e: e.histogram("a", 0), "bins >= 1"),
        (lambda e: e.histogram("a", [3, 1]), "rising borders"),
        (lambda e: e.save("nowhere"), "expected an estimate from a simulation"),
    ],
)
def test_mistakes_are_named(ask, message):
    with pytest.raises(ValueError, match=message):
        ask(known("a=integer,0,9", "b=nominal,x|y"))


def test_mean_of_categories_is_refused():
    with pytest.raises(ValueError, match="numeric attribute"):
        known("a=ordered,S|M|L").mean()


def test_declared_kinds_read_back():
    estimate = known("a=date,2021-01-01,2021-12-31")
    median = estimate.quantiles(levels=[0.5]).values[0]
    assert estimate.cdf(points=[str(median)]).values[0] >= 0.5
    assert declare.day_number(str(median)) == median.astype(int)
