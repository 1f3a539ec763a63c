"""A mechanism of stored questions: it asks what was asked, and its answers need nothing but questions and tallies."""

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.mechanisms.recorded.recorded import Recorded
from ahead_ldp.mechanisms.recorded.recorded_estimates import RecordedEstimate
from ahead_ldp.protocol.session import Session, finish
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import Workload, prefix_workload, random_workload, true_answers

ASKING = sorted(set(MECHANISMS) - {"uni"})  # it asks nobody
ONE, TWO = ["pay=integer,0,63"], ["pay=integer,0,63", "age=integer,0,31"]
PEOPLE, HEAP = 20_000, 40


@pytest.fixture(scope="module")
def crowd():
    """Lumpy people: a third of them are paid exactly the same, and age follows pay."""
    rng = np.random.default_rng(4)
    pay = np.minimum(rng.poisson(20, PEOPLE), 63)
    pay[rng.random(PEOPLE) < 0.3] = HEAP
    age = np.clip((0.5 * pay + rng.normal(10, 6, PEOPLE)).astype(int), 0, 31)
    return {"pay": pay, "age": age}


def simulated(crowd, name, texts, epsilon=1.0, seed=1):
    data = {text.partition("=")[0]: crowd[text.partition("=")[0]] for text in texts}
    return ahead_ldp.simulate(data, texts, method=name, epsilon=epsilon, seed=seed)


def recorded(provenance, waves=None):
    """The session of stored questions behind an estimate, told what its method was told."""
    schema, mechanism = provenance.schema, provenance.mechanism
    stored = [{g: canonical_bytes(r) for g, r in after.question_records().items()} for after in provenance.waves]
    groups = [(g.id, g.share) for g in mechanism.groups(schema)]
    session = Session(Recorded.of(mechanism.record(), schema, groups, stored, provenance.campaign), schema)
    session.provenance = type(session.provenance)(session.mechanism, schema, provenance.campaign)
    for tallies in provenance.history[:waves]:
        session.tell(tallies)
    return session


def histogram(crowd, texts):
    shape = [64, 32][: len(texts)]
    counts = np.zeros(shape)
    np.add.at(counts, tuple(crowd[text.partition("=")[0]] for text in texts), 1)
    return counts


@pytest.mark.parametrize("name", ASKING)
def test_it_asks_what_was_asked_and_ends_the_same_chain(crowd, name):
    own = simulated(crowd, name, ONE if MECHANISMS[name].most_attributes == 1 else TWO).provenance
    again = recorded(own)
    assert again.frozen == own.frozen
    for a, b in zip(again.provenance.waves, own.waves, strict=True):
        assert a.question_records() == b.question_records()
    assert again.mechanism.record() == own.mechanism.record()
    assert again.mechanism.groups(own.schema) == own.mechanism.groups(own.schema)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("name", ASKING)
def test_its_intervals_hold_on_lumpy_data(crowd, name, epsilon):
    """Of every kind of query: the heap and its neighbours, ranges from the left, random boxes. SW has its own EM."""
    texts = ONE if MECHANISMS[name].most_attributes == 1 else TWO
    truth, held = histogram(crowd, texts), []
    for seed in range(3):
        estimate = recorded(simulated(crowd, name, texts, epsilon, seed).provenance).estimate
        sizes = estimate.schema.sizes
        rest = [[0, size - 1] for size in sizes[1:]]
        heap = Workload.from_codes(sizes, [[[code, code], *rest] for code in range(HEAP - 1, HEAP + 2)])
        for workload in (random_workload(sizes, 60, np.random.default_rng(seed)), heap):
            low, high = estimate.answer(workload).interval()
            true = true_answers(workload, truth)
            held.append((low <= true + 1e-9) & (true <= high + 1e-9))
    share = np.concatenate(held).mean()
    assert share >= (0.85 if name == "sw" else 0.93), share


@pytest.mark.parametrize("epsilon", [1, 1.5])
@pytest.mark.parametrize(("method", "size"), [("dht", 1024), ("wavelet", 1024), ("wavelet", 1000)])
def test_signs_of_intervals_are_read_by_the_transform_that_they_belong_to(method, size, epsilon):
    """Of every order, and of the low ones alone, which do not come down to single codes; at 1.5 one order has cells."""
    people = {"pay": np.random.default_rng(8).integers(0, size, 10_000)}
    choices = {"users": 10_000} if method == "wavelet" else {}
    own = ahead_ldp.simulate(people, [f"pay=integer,0,{size - 1}"], method=method, epsilon=epsilon, seed=1, **choices)
    read = recorded(own.provenance).estimate
    for queries in (["pay <= 100"], ["pay in 200..700", "pay >= 900"]):
        ours, theirs = own.ask(*queries), read.ask(*queries)
        np.testing.assert_allclose(theirs.values, ours.values, atol=1e-12)
        np.testing.assert_allclose(theirs.standard_error, ours.standard_error, rtol=1e-9)


def test_an_error_without_the_cut_cells_would_not_hold(crowd):
    """The test above can fail: answers that take cells as even are wrong where the people are not."""
    truth, held, whole = histogram(crowd, ONE), [], []
    for seed in range(5):
        estimate = recorded(simulated(crowd, "hdg", ONE, 2.0, seed).provenance).estimate
        workload = Workload.from_codes((64,), [[[code, code]] for code in range(HEAP - 3, HEAP + 4)])
        answers, true = estimate.answer(workload), true_answers(workload, truth)
        held.append(np.abs(answers.values - true) <= 1.96 * answers.standard_error)
        low, high = answers.interval()
        whole.append((low <= true) & (true <= high))
    assert np.mean(held) < 0.8 < 0.95 <= np.mean(whole)


def test_what_is_known_is_known(crowd):
    """Everybody, nobody, and answers within [0, 1] whose parts need not add up, which they say."""
    estimate = recorded(simulated(crowd, "adaptive", ONE).provenance).estimate
    whole = estimate.answer(Workload.from_codes((64,), [[[0, 63]]]))
    assert (whole.values[0], whole.spread[0]) == (1.0, 0.0)
    nothing = estimate.answer(Workload((64,), np.array([[[5.0, 5.0]]]), np.array([0]), 1))
    assert (nothing.values[0], nothing.spread[0]) == (0.0, 0.0)
    curve = estimate.answer(prefix_workload((64,)))
    assert ((curve.values >= 0) & (curve.values <= 1)).all()
    assert not estimate.consistent
    assert not curve.bias_not_included.any()
    alone = estimate.answer(prefix_workload((64,)), errors=False)
    np.testing.assert_array_equal(alone.values, curve.values)


def test_everything_that_people_ask_is_answered(crowd):
    estimate = recorded(simulated(crowd, "fused", TWO).provenance).estimate
    assert "median" in estimate.summary()
    median, mean = estimate.quantiles("pay", [0.5]), estimate.mean("pay")
    low, high = median.interval()
    assert low[0] <= np.median(crowd["pay"]) <= high[0]
    assert abs(mean.number - crowd["pay"].mean()) < 2 * np.hypot(mean.standard_error, mean.bias_error)
    first, second = estimate.ask("pay in 10..30 and age >= 12", "age <= 9").records()
    both = float(((crowd["pay"] >= 10) & (crowd["pay"] <= 30) & (crowd["age"] >= 12)).mean())
    assert first["low"] <= both <= first["high"]
    assert second["high"] < 0.5
    assert estimate.histogram("age", 8).values.shape == (8,)


def test_attributes_that_were_never_asked_together_reach_to_the_frechet_bounds(crowd):
    """Pay and age depend on each other, and nobody was asked about both: the interval says so and still holds."""
    parts = [simulated(crowd, "flat", [text], 4.0).provenance.waves[0] for text in TWO]
    told = [((i,), p.wave["1"].partition, p.wave["1"].oracle, p.tallies["1"]) for i, p in enumerate(parts)]
    schema = as_schema(TWO)
    estimate = RecordedEstimate.of(schema, told)
    workload = random_workload(schema.sizes, 100, np.random.default_rng(3))
    answers, true = estimate.answer(workload), true_answers(workload, histogram(crowd, TWO))
    low, high = answers.interval()
    assert ((low <= true) & (true <= high)).mean() >= 0.95
    assert (np.abs(answers.values - true) > 1.96 * answers.standard_error).mean() > 0.1  # noise alone does not tell


def test_what_nobody_was_asked_about_has_no_interval(crowd):
    session = recorded(simulated(crowd, "fused", TWO).provenance, waves=0)
    estimate = finish(session.mechanism, session.schema)
    answers = estimate.ask("pay in 10..20")
    assert answers.bias_not_included.all()
    assert [float(end[0]) for end in answers.interval()] == [0.0, 1.0]


def test_a_prefix_of_the_waves_is_read_too(crowd):
    own = simulated(crowd, "ahead", ONE)
    session = recorded(own.provenance, waves=2)
    assert session.is_open
    estimate = session.finish()
    assert estimate.provenance.people == sum(t.n for wave in own.provenance.history[:2] for t in wave.values())
    low, high = estimate.ask(f"pay = {HEAP}").interval()
    assert low[0] <= 0.3 <= high[0]
