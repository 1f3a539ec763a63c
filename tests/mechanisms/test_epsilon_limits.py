"""New things take an epsilon from 0.01 to 16, by one rule; what is on record with another one is read as ever."""

import json
from pathlib import Path

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.cli import main
from ahead_ldp.device.campaign import Campaign
from ahead_ldp.device.epsilon import new_epsilon
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms import make_mechanism, mechanism_from_record
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.research.targets import Case, forecast
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.campaigns.campaign import Terms, draft

KEPT = Path(__file__).parents[1] / "golden/epsilon"  # written at bfc5e58, which took any epsilon up to 64
RULE = r"expected 0\.01 <= epsilon <= 16, got "
SCHEMA = "x=codes,8"
TEXTS = {
    "title": "t",
    "purpose": "p",
    "controller": "c",
    "contact": "x@example.org",
    "minimum": 20,
    "created": "2026-11-15",
}
REQUEST = {**TEXTS, "schema": [SCHEMA], "method": "hio", "closing": {"kind": "manual"}, "retention_days": 30}


@pytest.mark.parametrize("epsilon", ["0.01", 0.01, 1, 16, 16.0, "16"])
def test_both_ends_are_taken(epsilon):
    assert float(new_epsilon(epsilon)) == float(epsilon)
    assert make_mechanism("flat", SCHEMA, epsilon).epsilon == epsilon


WAYS = {
    "simulate": lambda e: ahead_ldp.simulate(histogram=np.ones(8, int), schema=SCHEMA, epsilon=e),
    "collect": lambda e: ahead_ldp.collect([1, 2], SCHEMA, epsilon=e),
    "a method by name": lambda e: make_mechanism("flat", SCHEMA, e),
    "a method as it is": lambda e: make_mechanism(AHEAD.paper(epsilon=e), SCHEMA),
    "a simulation by a method as it is": lambda e: ahead_ldp.simulate(
        histogram=np.ones(8, int), schema=SCHEMA, method=AHEAD.paper(epsilon=e)
    ),
    "a plan": lambda e: forecast(Case(as_schema(SCHEMA), 100, e, "flat"), repeats=1),
    "a campaign": lambda e: draft({**REQUEST, "epsilon": str(e)}),
}


@pytest.mark.parametrize("epsilon", [0.009, 16.01, 20.0])
@pytest.mark.parametrize("way", WAYS)
def test_beyond_them_everything_new_is_refused_by_the_same_words(way, epsilon):
    with pytest.raises(ValueError, match=RULE + f"'?{epsilon:g}(.0)?'?$"):
        WAYS[way](epsilon)


@pytest.mark.parametrize("command", ["simulate", "start", "evaluate", "compare", "plan"])
def test_commands_refuse_it_too(command, capsys, tmp_path):
    data = tmp_path / "people.csv"
    data.write_text("x\n1\n2\n", "utf-8")
    words = {
        "simulate": ["collect", "--data", data, "--out", tmp_path / "run"],
        "start": ["start", tmp_path / "run", "--users", "100"],
        "evaluate": ["evaluate", "--data", data],
        "compare": ["compare", "--data", data],
        "plan": ["plan", "--users", "100"],
    }[command]
    assert main([str(w) for w in [*words, "--attribute", SCHEMA, "--epsilon", "20"]]) == 2
    assert "expected 0.01 <= epsilon <= 16, got '20'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_whole_record_of_a_new_campaign_is_refused_and_one_that_is_kept_is_read():
    record = json.loads((KEPT / "campaign-20.json").read_bytes())
    with pytest.raises(ValueError, match=RULE + "'20'"):
        draft(record)
    terms = Terms.of(Campaign.of(record))
    assert terms.campaign.epsilon == 20
    assert mechanism_from_record(record["method"]).epsilon == "20"
    assert terms.session().wave


@pytest.mark.parametrize("name", ["adaptive-20", "adaptive-0.001", "ahead-20", "fused-20"])
def test_a_saved_estimate_with_another_epsilon_answers_as_it_did(name):
    estimate = ahead_ldp.load(KEPT / f"{name}.json")
    kept = json.loads((KEPT / f"{name}.answers.json").read_bytes())
    answers = estimate.ask(*kept["queries"])
    np.testing.assert_allclose(answers.values, kept["values"], atol=1e-9)
    low, high = answers.interval()
    assert (low >= 0).all()
    assert (high <= 1).all()
    assert (high > low).all()


def test_a_session_goes_on_with_an_epsilon_that_is_on_record():
    mechanism = mechanism_from_record({**AHEAD.paper(epsilon="20").record()})
    people = Population.of_histogram(np.full(8, 50))
    estimate = run_simulation(mechanism, as_schema(SCHEMA), people, np.random.default_rng(1))
    assert estimate.ask("x in 0..3").values == pytest.approx([0.5], abs=0.1)
