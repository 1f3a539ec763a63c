"""Questions beyond shares over HTTP: the same numbers as the library's, in turn, and mistakes as problems."""

import threading
import time
from functools import partial

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.estimates.findings import Each
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.campaigns.turns import Turns
from ahead_ldp.service.server.headers import INERT_POLICY
from tests.service.server.harness import bench, problem

ATTRIBUTES = ["pay=integer,0,15", "team=nominal,north|south"]
NOWHERE = "0" * 64


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A bench with two finished campaigns of one kind: in the second, half of the people moved up."""
    with bench(tmp_path_factory.mktemp("analyses")) as made:
        made.names = []
        for title, moved in (("Pay 2025", 0), ("Pay 2026", 8)):
            rng = np.random.default_rng(4)
            people = []
            for i in range(500):
                pay = int(min(rng.poisson(4), 7)) + (moved if i % 2 else 0)
                people.append({"pay": pay, "team": "north" if i % 3 else "south"})
            options = {"attributes": ATTRIBUTES, "epsilon": "8", "method": {"name": "hdg"}, "minimum": 1, "users": 1000}
            made.names.append(made.opened(title=title, **options))
            made.run(made.names[-1], people)
        yield made


def post(asked, path, body, status=200):
    answer = asked.call("POST", path, "analyst", json=body)
    assert answer.status_code == status, answer.text
    return answer.json() if status == 200 else problem(answer)


def estimates(asked):
    return [asked.service.directory.estimate(name) for name in asked.names]


def test_a_description_is_the_librarys(asked):
    answer = asked.call("GET", f"/campaigns/{asked.names[0]}/description?level=0.9", "analyst").json()
    estimate = estimates(asked)[0]
    assert answer["results"]["pay"]["gini"] == estimate.gini("pay").records(0.9)[0]
    assert set(answer["results"]["pay"]) == {"std", "gini", "top", "bottom", "poor"}
    assert (answer["people"], answer["level"], answer["intervals"]) == (500, 0.9, "strict")
    wrong = asked.call("GET", f"/campaigns/{asked.names[0]}/description?attribute=team", "analyst")
    assert problem(wrong) == "invalid_query"


def test_a_difference_is_this_campaign_less_the_earlier_one(asked):
    before, after = asked.names
    body = {"since": before, "queries": ["pay >= 8"]}
    answer = post(asked, f"/campaigns/{after}/difference", body)
    change = ahead_ldp.difference(*estimates(asked))
    assert answer["results"] == change.ask("pay >= 8").records()
    assert answer["results"][0]["low"] > 0
    assert [t["attribute"] for t in answer["tests"] if t["rejected"]] == ["pay"]
    assert answer["means"]["pay"] == change.mean("pay").records()[0]
    back = post(asked, f"/campaigns/{before}/difference", {"since": after, "about": "people", "attributes": ["pay"]})
    assert back["means"]["pay"]["value"] == pytest.approx(-answer["means"]["pay"]["value"])
    itself = post(asked, f"/campaigns/{after}/difference", {"since": after})
    assert not any(t["rejected"] for t in itself["tests"])
    assert itself["means"]["pay"]["value"] == 0


def test_groups_and_pairs(asked):
    name, estimate = asked.names[0], estimates(asked)[0]
    body = {"by": "team", "shares": ["pay >= 4"], "means": ["pay"], "compare": ["south", "north"]}
    answer = post(asked, f"/campaigns/{name}/groups", body)
    assert answer["results"]["mean of pay"] == estimate.by("team").mean("pay").records()
    assert set(answer["results"]) == set(answer["compared"]) == {"share of pay >= 4", "mean of pay"}
    means = [row["value"] for row in answer["results"]["mean of pay"]]
    assert answer["compared"]["mean of pay"]["value"] == pytest.approx(means[0] - means[1])
    assert post(asked, f"/campaigns/{name}/groups", {**body, "compare": ["south"]}, 422) == "invalid_query"
    medians = post(asked, f"/campaigns/{name}/groups", {"by": "team", "medians": ["pay"], "intervals": "model"})
    assert set(medians["results"]) == {"median of pay"}
    assert [group["team"] for group in answer["groups"]] == ["north", "south"]
    tied = post(asked, f"/campaigns/{name}/pair", {"first": "pay", "second": "team"})
    assert tied["intervals"] == "strict"
    assert set(tied["results"]) == {"mutual_information"}
    assert post(asked, f"/campaigns/{name}/pair", {"first": "pay", "second": "pay"}, 422) == "invalid_query"


def test_weights_name_their_strata(asked):
    name, estimate = asked.names[0], estimates(asked)[0]
    margins = {"team": {"north": 0.5, "south": 0.5}}
    answer = post(asked, f"/campaigns/{name}/weighted", {"margins": margins, "queries": ["pay >= 4"]})
    weighted = estimate.calibrated(margins)
    assert [w["team"] for w in answer["weights"]] == ["north", "south"]
    assert [w["weight"] for w in answer["weights"]] == weighted.weights.tolist()
    assert answer["results"] == weighted.ask("pay >= 4").records()
    two = {**margins, "pay": {"0..7": 0.9, "8..15": 0.1}}
    answer = post(asked, f"/campaigns/{name}/weighted", {"margins": two, "queries": ["pay >= 4"]})
    assert answer["intervals"] == "model"
    assert [(w["team"], w["pay"]) for w in answer["weights"]][:2] == [("north", "0..7"), ("north", "8..15")]
    for wrong in ({"team": {"north": 1}}, {"team": {"north": -1, "south": 1}}, {"zz": {"a": 1}}):
        body = {"margins": wrong, "queries": ["pay >= 4"]}
        assert post(asked, f"/campaigns/{name}/weighted", body, 422) == "invalid_query"


def test_a_series_adds_up_what_a_person_spends(asked):
    answer = post(asked, "/series", {"campaigns": asked.names, "query": "pay >= 8"})
    assert [(row["round"], row["spent"]) for row in answer["budget"]] == [("Pay 2025", 8), ("Pay 2026", 16)]
    assert answer["changes"][0]["changed"]
    assert [row["round"] for row in answer["trend"]] == ["Pay 2025", "Pay 2026"]
    draft = asked.create(title="Pay 2027", attributes=ATTRIBUTES, epsilon="0.5")
    planned = post(asked, "/series", {"campaigns": [*asked.names, draft]})
    assert "trend" not in planned
    assert [(row["people"], row["spent"]) for row in planned["budget"]] == [(500, 8), (500, 16), (0, 16.5)]
    twice = {"campaigns": [asked.names[0]] * 2, "query": "pay >= 8"}
    assert post(asked, "/series", twice, 422) == "invalid_query"


def test_a_report_is_a_page_on_which_nothing_runs(asked):
    body = {"queries": ["pay >= 8"], "since": asked.names[0], "by": "team", "title": "<b>"}
    answer = asked.call("POST", f"/campaigns/{asked.names[1]}/report", "analyst", json=body)
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"] == INERT_POLICY
    assert "script" not in INERT_POLICY
    assert "pay changed" in answer.text
    assert "&lt;b&gt;" in answer.text


def test_a_report_can_be_a_pdf(asked):
    route, body = f"/campaigns/{asked.names[1]}/report", {"queries": ["pay >= 8"], "format": "pdf", "title": "Pay"}
    answer = asked.call("POST", route, "analyst", json=body)
    assert answer.headers["content-type"] == "application/pdf"
    estimate = asked.service.directory.estimate(asked.names[1])
    assert answer.content == ahead_ldp.report_pdf(estimate, "pay >= 8", title="Pay", kind="strict")
    assert problem(asked.call("POST", route, "analyst", json={**body, "format": "doc"})) == "invalid_request"


def test_before_a_wave_is_closed_there_is_nothing(asked):
    fresh = asked.opened(title="Fresh")
    assert problem(asked.call("GET", f"/campaigns/{fresh}/description", "analyst")) == "no_results"
    assert post(asked, f"/campaigns/{asked.names[0]}/difference", {"since": fresh}, 409) == "no_results"
    assert post(asked, f"/campaigns/{asked.names[0]}/difference", {"since": NOWHERE}, 404) == "not_found"
    assert post(asked, "/series", {"campaigns": [asked.names[0], fresh], "query": "pay >= 8"}, 409) == "no_results"


@pytest.mark.parametrize(
    "path, body",
    [
        ("results", None),
        ("description", None),
        ("queries", {"queries": ["pay >= 8"]}),
        ("queries", {"histograms": [{"attribute": "pay", "bins": 4096}]}),
        ("pair", {"first": "pay", "second": "team"}),
        ("difference", {"since": ""}),
        ("groups", {"by": "team", "means": ["pay"]}),
        ("weighted", {"margins": {"team": {"north": 1, "south": 1}}, "queries": ["pay >= 8"]}),
        ("report", {}),
    ],
)
def test_every_question_that_takes_seconds_waits_for_its_turn(asked, path, body, monkeypatch):
    """A thousand ranges, or bins, are seconds of a processor; many at once held up the uploads."""
    if path == "difference":
        body = {"since": asked.names[0]}
    turns = Turns(1)
    monkeypatch.setattr(asked.service, "turns", turns)
    where = f"/campaigns/{asked.names[1]}/{path}"
    with turns.one():
        answer = asked.call("GET" if body is None else "POST", where, "analyst", json=body)
        assert (answer.status_code, problem(answer)) == (429, "busy")
    assert asked.call("GET" if body is None else "POST", where, "analyst", json=body).status_code == 200


def test_a_question_of_many_numbers_lets_a_short_one_in_between_two_of_them():
    """A mean of 200 groups held the turn for 34 seconds, whoever else asked."""
    turns, order, asked = Turns(3), [], threading.Event()

    def short():
        with turns.one():
            order.append("short")

    def ends(i, level):
        if i == 2 and not asked.is_set():
            thread.start()
            while len(turns._line) < 2:
                time.sleep(0.001)
            asked.set()
        order.append((i, level))
        return float(i), float(i) + 1

    thread = threading.Thread(target=short)
    each = Each([partial(ends, i) for i in range(5)])
    with turns.one():
        low, high = each.interval(0.9)
    thread.join()
    assert [said for said in order if said == "short" or said[0] in (2, 3)][1] == "short"
    assert (low.tolist(), high.tolist()) == ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    assert len(order) == 6  # no number is worked out twice
    assert not turns._line


def test_every_number_of_many_groups_is_a_turn(asked, monkeypatch):
    given = []
    monkeypatch.setattr(Turns, "_give_way", lambda turns, me: given.append(me))
    body = {"by": "team", "means": ["pay"]}
    assert asked.call("POST", f"/campaigns/{asked.names[1]}/groups", "analyst", json=body).status_code == 200
    assert len(given) >= 2 * 2  # two teams, each for itself and all at once


def test_questions_take_turns_and_the_queue_is_short():
    turns, order = Turns(2), []

    def second():
        with turns.one():
            order.append("second")

    thread = threading.Thread(target=second)
    with turns.one():
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    alone = Turns(1)
    with alone.one(), pytest.raises(Problem) as refused, alone.one():
        order.append("never")
    assert refused.value.kind == "busy"
    with alone.one():
        order.append("third")
    assert order == ["first", "second", "third"]
