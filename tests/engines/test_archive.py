"""An estimate is saved as what it is a function of, and comes back only if it is the same."""

import json

import numpy as np
import pytest

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.engines.archive import load
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.protocol.session import ReplayMismatch, Session
from ahead_ldp.schema.attributes import as_schema

SCHEMA = as_schema("pay=real,0,100,16")


def simulated(name="ahead"):
    rng = np.random.default_rng(1)
    population = Population.of_histogram(rng.integers(0, 400, 16))
    return run_simulation(MECHANISMS[name](epsilon=1.5), SCHEMA, population, rng)


@pytest.fixture
def saved(tmp_path):
    simulated().save(tmp_path / "estimate.json")
    return tmp_path / "estimate.json"


def change(path, edit):
    record = json.loads(path.read_bytes())
    edit(record)
    path.write_bytes(canonical_bytes(record) + b"\n")


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_method_comes_back(name, tmp_path):
    estimate = simulated(name)
    estimate.save(tmp_path / "e.json")
    again = load(tmp_path / "e.json")
    asked = "pay in 12..57"
    assert again.ask(asked).values[0] == pytest.approx(estimate.ask(asked).values[0], abs=1e-9)
    assert again.provenance.people == estimate.provenance.people
    again.save(tmp_path / "f.json")
    assert (tmp_path / "e.json").read_bytes() == (tmp_path / "f.json").read_bytes()


def test_a_campaign_that_stopped_early_comes_back(tmp_path):
    session = Session(MECHANISMS["ahead"](epsilon=1.0), SCHEMA, campaign="ab" * 32)
    rng = np.random.default_rng(2)
    for _ in range(2):
        session.tell({g: q.oracle.simulate(np.full(q.oracle.d, 500), rng) for g, q in session.wave.items()})
    estimate = session.finish()
    estimate.save(tmp_path / "e.json")
    assert session.is_open
    np.testing.assert_allclose(load(tmp_path / "e.json").fingerprint(), estimate.fingerprint(), atol=1e-9)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda r: r["waves"][0][0]["tally"]["counts"].__setitem__(0, 7), "question|chain"),
        (lambda r: r["waves"][-1][0]["tally"].__setitem__("n", 12345), "chain"),
        (lambda r: r["waves"].pop(), "chain"),
        (lambda r: r["method"].__setitem__("epsilon", "3"), "question"),
        (lambda r: r["answers"].__setitem__(3, "0.5"), "answers are not the saved ones: made by Python"),
        (lambda r: r["answers"].pop(), "answers are not the saved ones"),
        (lambda r: r.__setitem__("frozen", "0" * 64), "chain"),
    ],
)
def test_a_change_is_found(saved, edit, message):
    change(saved, edit)
    with pytest.raises(ReplayMismatch, match=message):
        load(saved)


def test_other_files_are_refused(saved, tmp_path):
    with pytest.raises(ValueError, match="readable file"):
        load(tmp_path / "none.json")
    change(saved, lambda r: r.__setitem__("extra", 1))
    with pytest.raises(ValueError, match="unknown fields, got extra"):
        load(saved)
    saved.write_bytes(b"{}x")
    with pytest.raises(ValueError, match=f"canonical record: .*, in '{saved}'"):
        load(saved)


def test_answers_may_differ_by_an_ulp(saved):
    change(saved, lambda r: r["answers"].__setitem__(3, repr(float(r["answers"][3]) + 1e-12)))
    load(saved)
