"""The contract of every registered mechanism. A new one is tested by registering it."""

import dataclasses
from collections.abc import Sequence
from math import sqrt

import numpy as np
import pytest

from ahead_ldp.device import Policy, Schema, canonical_bytes, check_question, digest
from ahead_ldp.device.epsilon import exact_epsilon
from ahead_ldp.engines.collection import run_collection
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms import MECHANISMS, mechanism_from_record
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import Mechanism, Tallies, Wave
from ahead_ldp.protocol.session import Session, finish
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import Workload, point_workload, random_workload, true_answers
from tests.support import PASS, make_mechanism, schema_of, takes

every_mechanism = pytest.mark.parametrize("kind", MECHANISMS.values(), ids=MECHANISMS)

# Domains of every kind: one code, no power of anything, unequal attributes, categories, missing values.
SCHEMAS = {
    "one code": schema_of(1),
    "two codes": schema_of(2),
    "prime": schema_of(37),
    "power": schema_of(64),
    "ones": schema_of(1, 1),
    "one beside many": schema_of(1, 9),
    "unequal": schema_of(3, 17),
    "square": schema_of(8, 8),
    "three": schema_of(4, 2, 5),
    "nominal": as_schema(["color=nominal,red|green|blue|grey|pink"]),
    "missing": as_schema(["x=codes,12,missing=cell"]),
    "mixed": as_schema(["x=codes,7,missing=cell", "color=nominal,red|green|blue", "size=category,S|M|L"]),
}


def cases() -> list:
    return [
        pytest.param(kind, schema, id=f"{kind.name} {name}")
        for kind in MECHANISMS.values()
        for name, schema in SCHEMAS.items()
        if takes(kind, schema)
    ]


every_case = pytest.mark.parametrize(("kind", "schema"), cases())


def play(
    mechanism: Mechanism, schema: Schema, people: int, seed: int = 1
) -> tuple[list[Wave], list[Tallies], Estimate]:
    """A whole run, with so many people of a skewed population."""
    rng = np.random.default_rng(seed)
    weight = 0.8 ** np.arange(np.prod(schema.sizes)).reshape(schema.sizes)
    counts = rng.multinomial(people, (weight / weight.sum()).reshape(-1)).reshape(schema.sizes)
    groups = mechanism.groups(schema)
    parts = Population.of_histogram(counts).divide(groups, rng) if people and groups else {}
    waves: list[Wave] = []
    history: list[Tallies] = []
    run = mechanism.run(schema)
    try:
        wave = next(run)
        while True:
            told = {
                g: q.oracle.simulate(parts[g].cells(q), rng) if parts else Tally.empty(q.oracle.outcomes)
                for g, q in wave.items()
            }
            waves.append(wave)
            history.append(told)
            wave = run.send(told)
    except StopIteration as stop:
        return waves, history, stop.value


def check_estimate(estimate: Estimate, schema: Schema) -> None:
    """Answers are finite, the whole domain is 1 and nothing is 0, whatever is known."""
    assert estimate.schema == schema
    rng = np.random.default_rng(3)
    workload = random_workload(schema, 15, rng)
    answers = estimate.answer(workload)
    assert np.isfinite(answers.values).all()
    assert (answers.standard_error >= 0).all(), "NaN or negative"
    assert answers.bias_not_included.shape == (15,)
    whole = Workload.from_codes(schema.sizes, [[[0, size - 1] for size in schema.sizes]])
    assert estimate.answer(whole).values == pytest.approx(1.0, abs=1e-6)
    nothing = Workload(schema.sizes, np.zeros((1, len(schema.sizes), 2)), np.array([0]), 1)
    assert estimate.answer(nothing).values == pytest.approx(0.0, abs=1e-9)
    if estimate.consistent:
        points = estimate.answer(point_workload(schema), errors=False).values
        assert points.min() >= -1e-9
        assert points.sum() == pytest.approx(1.0, abs=1e-6)
        np.testing.assert_allclose(answers.values, true_answers(workload, added(points, schema.sizes)), atol=1e-6)
    without = estimate.answer(workload, errors=False)
    np.testing.assert_allclose(without.values, answers.values, atol=1e-12)


def added(points: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    return np.maximum(points, 0.0).reshape(sizes)


# Records.


@every_mechanism
@pytest.mark.parametrize("epsilon", [1, 0.5, "1.1", 2.25])
def test_record_round_trip_and_digest(kind, epsilon):
    mechanism = make_mechanism(kind, epsilon)
    record = mechanism.record()
    again = mechanism_from_record(record)
    assert type(again) is kind
    assert again.record() == record
    assert digest(again.record()) == digest(record)
    assert exact_epsilon(again.epsilon) == exact_epsilon(epsilon)
    assert set(record["choices"]) == {f.name for f in dataclasses.fields(kind)} - {"epsilon"}
    other = make_mechanism(kind, "7.5")
    assert digest(other.record()) != digest(record)
    for name in record["choices"]:
        changed = {**record, "choices": {k: v for k, v in record["choices"].items() if k != name}}
        with pytest.raises(ValueError, match=f"expected .*{name}"):
            mechanism_from_record(changed)
    with pytest.raises(ValueError, match="expected"):
        mechanism_from_record({**record, "version": kind.version + 1})


@every_mechanism
@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), None], ids=repr)
def test_epsilon_that_is_none_is_refused(kind, epsilon):
    with pytest.raises(ValueError, match=rf"expected .*epsilon.*got {epsilon!r}"):
        make_mechanism(kind, epsilon)


@every_mechanism
def test_nothing_of_a_mechanism_can_be_changed(kind):
    with pytest.raises(dataclasses.FrozenInstanceError):
        make_mechanism(kind).epsilon = 2


@every_mechanism
def test_more_attributes_than_a_method_is_for_are_refused(kind):
    schema = schema_of(*[3] * ((kind.most_attributes or 3) + 1))
    run = make_mechanism(kind).run(schema)
    if takes(kind, schema):
        assert kind.name == "uni" or next(run)
        return
    with pytest.raises(ValueError, match=r"expected .*attribute"):
        next(run)


# Questions.


@every_case
def test_questions_are_private_and_every_group_answers_once(kind, schema):
    for epsilon in ("0.5", "2"):
        mechanism = make_mechanism(kind, epsilon)
        groups = mechanism.groups(schema)
        waves, _, _ = play(mechanism, schema, 3000)
        asked = [group for wave in waves for group in wave]
        assert sorted(asked) == sorted(g.id for g in groups)
        assert len(set(asked)) == len(asked)
        assert all(wave for wave in waves), "a wave without a question"
        assert all(type(g.share) is int and g.share > 0 for g in groups)
        for wave in waves:
            for question in wave.values():
                assert question.oracle.law.is_private(exact_epsilon(epsilon))
                assert question.partition.cells == question.oracle.d >= 2
                assert len(set(question.attributes)) == len(question.attributes) > 0
        if np.prod(schema.sizes) == 1:
            assert not groups, "a domain of one code costs no question"


@every_case
def test_devices_accept_every_question(kind, schema):
    session = Session(make_mechanism(kind, "1.5"), schema)
    _, history, _ = play(session.mechanism, schema, 3000)
    for told in history:
        for group, record in session.question_records().items():
            question = check_question(canonical_bytes(record), schema, session.campaign, Policy("1.5", 2**20))
            mine = session.wave[group]
            assert question.law == mine.oracle.law
            codes = np.array([size - 1 for size in schema.sizes])
            asked = list(mine.attributes)
            cell = question.partition.cell(question.axes, codes[asked].tolist())
            assert cell == mine.partition.locate(codes[None, asked])[0]
        session.tell(told)
    assert not session.is_open


@every_case
def test_a_run_is_a_function_of_its_tallies(kind, schema):
    mechanism = make_mechanism(kind)
    _, history, estimate = play(mechanism, schema, 2000)
    questions, values = [], []
    for _ in range(2):
        session = Session(make_mechanism(kind), schema)
        asked = []
        for told in history:
            asked.append({g: canonical_bytes(r) for g, r in session.question_records().items()})
            session.tell(told)
        questions.append(asked)
        values.append(session.finish().answer(point_workload(schema)))
    assert questions[0] == questions[1]
    for one in values:
        other = estimate.answer(point_workload(schema))
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.standard_error, other.standard_error)


# Estimates.


@every_case
def test_there_is_an_estimate_after_every_wave_and_with_nobody(kind, schema):
    mechanism = make_mechanism(kind)
    _, history, complete = play(mechanism, schema, 2000)
    for waves in range(len(history) + 1):
        check_estimate(finish(mechanism, schema, history[:waves]), schema)
    check_estimate(complete, schema)
    check_estimate(play(mechanism, schema, 0)[2], schema)


@every_case
def test_any_group_may_be_empty_and_one_person_is_enough(kind, schema):
    mechanism = make_mechanism(kind)
    check_estimate(play(mechanism, schema, 1)[2], schema)
    _, history, _ = play(mechanism, schema, 600)
    for group in [g for told in history for g in told][:6]:
        run, rng = mechanism.run(schema), np.random.default_rng(5)
        try:
            wave = next(run)
            while True:
                wave = run.send(
                    {
                        g: Tally.empty(q.oracle.outcomes)
                        if g == group
                        else q.oracle.simulate(rng.multinomial(100, np.full(q.oracle.d, 1 / q.oracle.d)), rng)
                        for g, q in wave.items()
                    }
                )
        except StopIteration as stop:
            check_estimate(stop.value, schema)


@every_mechanism
def test_all_sizes_of_a_domain(kind):
    """1 to 70 codes: no size is special, no code is lost. At epsilon 8 everybody in the last code is found there."""
    rng = np.random.default_rng(6)
    for size in [*range(1, 20), 31, 32, 33, 63, 64, 65, 70]:
        schema = schema_of(size)
        histogram = np.zeros(size, np.int64)
        histogram[-1] = 20_000
        mechanism = make_mechanism(kind, 8, users=20_000)
        estimate = run_simulation(mechanism, schema, Population.of_histogram(histogram), rng)
        last = estimate.answer(Workload.from_codes([size], [[size - 1, size - 1]])).values[0]
        assert np.isfinite(last)
        if kind.name != "uni":
            assert last > 0.8


@every_mechanism
@pytest.mark.parametrize("seed", [1, 2])
def test_much_information_gives_the_truth(kind, seed):
    """10^7 people at epsilon 6, 12 random ranges: off by less than 2 points (all but Uni, which asks nothing)."""
    rng = np.random.default_rng(seed)
    sizes = (16, 16) if takes(kind, schema_of(16, 16)) else (40,)
    histogram = rng.multinomial(10**7, rng.dirichlet(np.ones(np.prod(sizes)))).reshape(sizes)
    workload = random_workload(sizes, 12, rng)
    mechanism = make_mechanism(kind, 6, users=10**7)
    found = run_simulation(mechanism, schema_of(*sizes), Population.of_histogram(histogram), rng).answer(workload)
    off = np.abs(found.values - true_answers(workload, histogram))
    assert off.max() < 0.02 or kind.name == "uni"


# Simulation and collection.

TIMES = 40


@every_mechanism
def test_simulation_and_collection_have_one_law(kind):
    """The mean of 40 collections of 300 people against 200 simulations, and their spreads.

    Collections draw from the operating system, so the bounds leave two false alarms in 10^6 runs: means within 5.5
    standard errors, the ratio of variances, F(39, 199), in (1/4, 3). A variance ten times off never passes.
    """
    schema, histogram = schema_of(6), np.array([120, 10, 50, 0, 20, 100])
    people = [{"x0": int(code)} for code in np.repeat(np.arange(6), histogram)]
    workload = Workload.from_codes([6], [[0, 1], [2, 4]])
    mechanism, rng = make_mechanism(kind, users=300), np.random.default_rng(7)
    population = Population.of_histogram(histogram)
    simulated = np.stack(
        [
            run_simulation(mechanism, schema, population, rng).answer(workload, errors=False).values
            for _ in range(5 * TIMES)
        ]
    )
    collected = np.stack(
        [run_collection(mechanism, schema, people).estimate.answer(workload, errors=False).values for _ in range(TIMES)]
    )
    spread = simulated.std(axis=0)
    if kind.name == "uni":
        assert (spread < 1e-12).all()
        np.testing.assert_allclose(collected[0], simulated[0])
        return
    off = np.abs(simulated.mean(axis=0) - collected.mean(axis=0)) / (spread * sqrt(1 / TIMES + 0.2 / TIMES))
    assert (off < PASS + 0.5).all()
    ratio = collected.var(axis=0) / simulated.var(axis=0)
    assert (ratio > 1 / 4).all()
    assert (ratio < 3).all()
