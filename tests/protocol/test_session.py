"""Sessions: a public chain of what was asked and told, and a replay that must repeat it byte by byte."""

from hashlib import sha256

import numpy as np
import pytest

from ahead_ldp.device import canonical_bytes, digest
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import Mechanism, Tallies, campaign_record
from ahead_ldp.protocol.session import NOTHING, ReplayMismatch, Session, environment, replay
from ahead_ldp.schema.workloads import prefix_workload
from tests.support import make_mechanism, schema_of

SCHEMA = schema_of(20)
every_mechanism = pytest.mark.parametrize("kind", MECHANISMS.values(), ids=MECHANISMS)


def told(session: Session, rng: np.random.Generator) -> Tallies:
    """What 400 people in every group say, most of them in the first cells."""
    tallies = {}
    for group, question in session.wave.items():
        people = rng.multinomial(400, (w := 0.5 ** np.arange(question.oracle.d)) / w.sum())
        tallies[group] = question.oracle.simulate(people, rng)
    return tallies


def complete(mechanism: Mechanism, seed: int = 1) -> tuple[Session, list[dict[str, bytes]], list[str]]:
    """A finished session, the questions it asked, and the links of its chain."""
    rng = np.random.default_rng(seed)
    session, stored = Session(mechanism, SCHEMA), []
    chain = [session.frozen]
    while session.is_open:
        stored.append({g: canonical_bytes(r) for g, r in session.question_records().items()})
        session.tell(told(session, rng))
        chain.append(session.frozen)
    return session, stored, chain


def values(session: Session) -> np.ndarray:
    return session.finish().answer(prefix_workload(SCHEMA), errors=False).values


@every_mechanism
def test_replay_repeats_questions_chain_and_estimate(kind):
    mechanism = make_mechanism(kind)
    session, stored, chain = complete(mechanism)
    again = replay(mechanism, SCHEMA, stored, session.history)
    assert again.frozen == session.frozen
    assert not again.is_open
    np.testing.assert_array_equal(values(again), values(session))
    assert session.campaign == digest(campaign_record(mechanism, SCHEMA))
    assert chain[0] == NOTHING
    assert len(set(chain)) == len(chain)


@every_mechanism
def test_replay_of_the_first_waves_stops_at_the_open_one(kind):
    mechanism = make_mechanism(kind)
    session, stored, chain = complete(mechanism)
    for waves in range(len(stored)):
        part = replay(mechanism, SCHEMA, stored[: waves + 1], session.history[:waves])
        assert part.is_open
        assert part.number == waves + 1
        assert part.frozen == chain[waves]
        assert {g: canonical_bytes(r) for g, r in part.question_records().items()} == stored[waves]
        assert np.isfinite(values(part)).all()
        assert part.is_open, "looking does not end it"


@every_mechanism
def test_a_changed_question_stops_the_replay(kind):
    mechanism = make_mechanism(kind)
    session, stored, _ = complete(mechanism)
    for wave, questions in enumerate(stored):
        for group, data in questions.items():
            for at in (0, len(data) // 2, len(data) - 1):
                changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
                bad = [dict(q) for q in stored]
                bad[wave][group] = changed
                with pytest.raises(ReplayMismatch, match=rf"wave {wave + 1}: .* group {group} .*NumPy"):
                    replay(mechanism, SCHEMA, bad, session.history)
    if stored:
        with pytest.raises(ReplayMismatch):
            replay(mechanism, SCHEMA, [{}, *stored[1:]], session.history)
        with pytest.raises(ReplayMismatch):
            replay(mechanism, SCHEMA, [{**stored[0], "another": b"{}"}, *stored[1:]], session.history)


@every_mechanism
def test_any_changed_tally_changes_every_link_after_it(kind):
    mechanism = make_mechanism(kind)
    session, stored, chain = complete(mechanism)
    for wave in range(len(stored)):
        other = Session(mechanism, SCHEMA)
        for before in session.history[:wave]:
            other.tell(before)
        assert other.frozen == chain[wave]
        changed = dict(session.history[wave])
        group = sorted(changed)[-1]
        counts = changed[group].counts.copy()
        counts[-1] += 1 if counts[-1] < changed[group].n else -1
        changed[group] = Tally(changed[group].n, counts)
        other.tell(changed)
        assert other.frozen != chain[wave + 1]
        rng = np.random.default_rng(2)
        while other.is_open:
            assert all(r["tallies"] == other.frozen for r in other.question_records().values())
            other.tell(told(other, rng))
            assert other.frozen not in chain


@every_mechanism
def test_an_estimate_of_the_first_waves_is_made_once_and_keeps_its_provenance(kind):
    mechanism, rng = make_mechanism(kind), np.random.default_rng(3)
    session = Session(mechanism, SCHEMA)
    while session.is_open:
        early, waves = session.finish(), session.history
        assert session.finish() is early
        link = session.frozen
        session.tell(told(session, rng))
        assert list(early.provenance.history) == waves, "the session goes on, the estimate stays"
        assert early.provenance.frozen == link
        assert session.finish() is not early
    assert session.finish() is session.estimate
    asked = [(question.attributes, tally.n) for question, tally in session.answered()]
    assert sum(n for _, n in asked) == session.provenance.people


@every_mechanism
def test_the_record_of_a_simulation_is_that_of_its_replay(kind):
    mechanism, rng = make_mechanism(kind), np.random.default_rng(4)
    people = Population.of_histogram(rng.integers(0, 50, SCHEMA.sizes))
    simulated = run_simulation(mechanism, SCHEMA, people, rng)
    again = Session.after(mechanism, SCHEMA, simulated.provenance.history)
    assert canonical_bytes(simulated.record()) == canonical_bytes(again.finish().record())


def test_campaigns_of_a_service_bind_the_questions():
    session = Session(Flat(epsilon=1), SCHEMA, campaign="ab" * 32)
    assert session.question_records()["1"]["campaign"] == "ab" * 32
    stored = [{"1": canonical_bytes(session.question_records()["1"])}]
    assert replay(Flat(epsilon=1), SCHEMA, stored, [], campaign="ab" * 32).is_open
    with pytest.raises(ReplayMismatch):
        replay(Flat(epsilon=1), SCHEMA, stored, [])
    with pytest.raises(ReplayMismatch):
        replay(Flat(epsilon="1.1"), SCHEMA, stored, [], campaign="ab" * 32)


def test_tallies_that_do_not_fit_leave_the_session_as_it_was():
    session = Session(Flat(epsilon=1, oracle="grr"), SCHEMA)
    for bad in ({}, {"2": Tally.empty(20)}, {"1": Tally.empty(19)}):
        with pytest.raises(ValueError, match="expected"):
            session.tell(bad)
        assert session.is_open
        assert session.frozen == NOTHING
        assert session.history == []
    session.tell({"1": Tally.empty(20)})
    assert not session.is_open
    assert session.question_records() == {}
    with pytest.raises(ValueError, match="expected an open wave, but the run has ended"):
        session.tell({"1": Tally.empty(20)})


def test_environment_names_what_floating_point_depends_on():
    assert np.__version__ in environment()
    assert "Python 3" in environment()


def test_the_record_of_an_estimate_holds_all_that_was_told():
    session, stored, chain = complete(Flat(epsilon=1))
    record = session.finish().provenance.record(np.array([0.25, 1.0]))
    assert {name: record[name] for name in ("type", "version", "campaign", "frozen", "answers", "environment")} == {
        "type": "estimate", "version": 1, "campaign": session.campaign, "frozen": chain[-1],
        "answers": ["0.25", "1.0"], "environment": environment(),
    }  # fmt: skip
    assert (record["schema"], record["method"]) == (SCHEMA.record(), session.mechanism.record())
    asked = [[sha256(question).hexdigest() for _, question in sorted(wave.items())] for wave in stored]
    assert [[told["tally"]["question"] for told in wave] for wave in record["waves"]] == asked


def test_waves_are_numbered_from_one():
    session, rng, numbers = Session(make_mechanism(MECHANISMS["ahead"]), SCHEMA), np.random.default_rng(1), []
    while session.is_open:
        numbers.append({record["wave"] for record in session.question_records().values()})
        session.tell(told(session, rng))
    assert numbers == [{k} for k in range(1, len(numbers) + 1)]
    assert len(numbers) > 2
