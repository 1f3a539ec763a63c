"""Campaigns that an earlier program opened: every method in the middle of one, finished by this program."""

import base64
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.service.store import open_store, restore
from tests.golden.test_golden import differences, record_differences
from tests.service.server.harness import FakeClock, bench_over
from tests.service.store.conftest import postgres as postgres
from tools import golden

HERE = Path(__file__).parent
SETS = sorted(path.parent for path in HERE.glob("*/upgrades"))
STORES = ("sqlite", "postgres")
CASES = [(kept, method) for kept in SETS for method in golden.read_json(kept / "upgrades/campaigns.json.gz")]
every_case = pytest.mark.parametrize(("kept", "method"), CASES, ids=lambda x: getattr(x, "name", x))


@pytest.fixture(params=STORES)
def service(request, kept, tmp_path):
    """This program over what the earlier one left: its own file, or the same restored into PostgreSQL."""
    golden.unpack(kept / "upgrades/middle.tar.gz", tmp_path)
    url, keys = str(tmp_path / "store.db"), tmp_path / "keys"  # sets from before there were keys have none
    if request.param == "postgres":
        open_store(url, migrate=True, keys=keys).close()
        names = [case["campaign"] for case in golden.read_json(kept / "upgrades/campaigns.json.gz").values()]
        store, url = open_store(url, keys=keys), request.getfixturevalue("postgres").new_database()
        store.backup(str(tmp_path / "backup.db"))
        store.close()
        restore(tmp_path / "backup.db", url, now=1_800_000_000, keep=names, keys=keys)
    store = open_store(url, migrate=True, keys=keys)
    with bench_over(store, FakeClock()) as made:
        yield made
    store.close()


def case_of(kept, method):
    return golden.read_json(kept / "upgrades/campaigns.json.gz")[method]


def stored(service, campaign):
    """How many reports there are, counted or waiting."""
    chain = service.call("GET", f"/campaigns/{campaign}/chain", "public").json()
    counted = sum(g["tally"]["n"] for wave in chain["waves"] for g in wave["groups"] if g["tally"] is not None)
    return counted + sum(service.store.counts(campaign, chain["waves"][-1]["number"]).values()) * (
        chain["waves"][-1]["state"] != "closed"
    )


def bound(chain):
    """What devices and auditors rely on: every question and every tally, and the end of the chain."""
    waves = [[{k: g[k] for k in ("group", "question", "tally")} for g in wave["groups"]] for wave in chain["waves"]]
    return {"waves": waves, "frozen": chain["frozen"], "state": chain["state"]}


def test_every_method_of_its_time_is_kept():
    assert SETS
    assert {method for _, method in CASES} == set(MECHANISMS) - {"uni"}, (
        "a method has no campaign in the middle: write a set by `python -m tools.golden_upgrades`"
    )


@every_case
def test_a_campaign_in_the_middle_is_finished_with_the_same_questions(service, kept, method):
    case = case_of(kept, method)
    campaign = case["campaign"]
    assert stored(service, campaign) == case["sent"]
    for wave in case["rest"]:
        for body in wave["uploads"]:
            answer = service.upload(campaign, base64.b64decode(body))
            assert (answer.status_code, answer.json()["refused"]) == (200, [])
        assert service.close(campaign, wave["wave"])["state"] == "done"
    chain = service.call("GET", f"/campaigns/{campaign}/chain", "public").json()
    assert bound(chain) == bound(case["chain"])
    results = service.call("GET", f"/campaigns/{campaign}/results", "analyst").json()
    assert (results["people"], results["complete"]) == (case["results"]["people"], True)
    tallies = service.call("GET", f"/campaigns/{campaign}/tallies", "analyst").json()
    assert record_differences(tallies, case["tallies"]) == []
    shares = [[row["share"] for row in a["histogram"]] for a in results["attributes"]]
    expected = [[row["share"] for row in a["histogram"]] for a in case["results"]["attributes"]]
    assert differences(shares, expected) == []
    service.app.round()
    assert service.app.jobs.auditor.gone == set()


@every_case
def test_a_campaign_whose_method_is_gone_finishes_on_what_was_counted(service, kept, method, monkeypatch):
    """Nothing that was collected is lost, and everything that was counted is answered with intervals."""
    case = case_of(kept, method)
    campaign = case["campaign"]
    monkeypatch.setattr(MECHANISMS[method], "version", MECHANISMS[method].version + 1)
    first = case["rest"][0]["uploads"]
    late = sum(service.upload(campaign, base64.b64decode(body)).json()["accepted"] for body in first)
    assert late > 0
    service.call("POST", f"/campaigns/{campaign}/finish")
    service.app.round()
    assert service.state(campaign)["state"] == "finished"
    results = service.call("GET", f"/campaigns/{campaign}/results", "analyst").json()
    assert results["people"] == case["sent"] + late == stored(service, campaign)
    assert results["method"] == method
    rows = [row for attribute in results["attributes"] for row in attribute["histogram"]]
    assert all(0 <= row["low"] <= row["share"] <= row["high"] <= 1 for row in rows)
    asked = {"queries": ["age <= 7"], "quantiles": [{"attribute": "age", "levels": [0.5]}], "level": 0.999}
    answered = service.call("POST", f"/campaigns/{campaign}/queries", "analyst", json=asked).json()
    low, high = (answered["queries"][0][end] for end in ("low", "high"))
    assert low <= 0.744 <= high  # the people were drawn from a Poisson law of mean 6
    questions = [g["question"] for wave in case["chain"]["waves"] for g in wave["groups"]]
    chain = service.call("GET", f"/campaigns/{campaign}/chain", "public").json()
    assert [g["question"] for wave in chain["waves"] for g in wave["groups"]] == questions[: sum(
        len(wave["groups"]) for wave in chain["waves"])]  # fmt: skip


def test_the_kept_stores_are_of_the_program_that_wrote_them(tmp_path):
    """A set is never written anew: its tables stay those of its time, and are migrated when they are read."""
    for kept in SETS:
        golden.unpack(kept / "upgrades/middle.tar.gz", tmp_path / kept.name)
        with closing(sqlite3.connect(tmp_path / kept.name / "store.db")) as store:
            assert store.execute("SELECT value FROM meta WHERE name = 'version'").fetchone() == (VERSIONS[kept.name],)


VERSIONS = {"96f58dc": 2, "rivals": 4, "0.1.0": 4}
