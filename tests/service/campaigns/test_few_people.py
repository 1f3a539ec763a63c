"""Campaigns of few people over HTTP: planned when they are created, and finished by their own rule."""

import random
import re
from urllib.parse import urlencode

import numpy as np
import pytest

from ahead_ldp.device import tokens
from ahead_ldp.device.campaign import Campaign
from ahead_ldp.protocol.turnout import staffing
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.client.crowd import Crowd
from ahead_ldp.service.client.policy import OwnerPolicy
from ahead_ldp.service.dashboard import make_pages
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.server.sessions import sign_in, visitor_of
from tests.service.server.harness import TEXTS, bench, problem

DRAFT = {**TEXTS, "attributes": ["pay=real,0,100,64", "age=integer,18,81,64"], "epsilon": "2", "minimum": 100}
AT_ONCE = 200  # people who come between two looks of the closer


@pytest.fixture
def service(tmp_path):
    with bench(tmp_path) as made:
        yield made


def created(service, **changes):
    answer = service.call("POST", "/campaigns", json=DRAFT | changes)
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.mark.parametrize("turnout", [0.8, 1.3])
def test_5000_people_are_enough(service, turnout, monkeypatch):
    """Groups are drawn from a seed: one campaign in a hundred may wait for people, and the system might draw it."""
    draw = random.Random(19)
    monkeypatch.setattr(tokens, "draw_group", lambda groups: draw.choices(*zip(*groups, strict=True))[0])
    made = created(service, users=5000)
    name, plan = made["campaign"], made["plan"]
    assert plan["chance"] >= 0.99
    assert plan["left_out"] == "24 groups instead of 44"
    assert sum(wave["people"] for wave in plan["waves"]) == pytest.approx(5000)
    campaign = Campaign.from_bytes(service.call("GET", f"/campaigns/{name}", "public").content, name)
    assert campaign.record["method"]["choices"]["users"] == 5000
    assert campaign.record["closing"] == {"kind": "reports", "reports": plan["reports"]}
    assert plan["reports"] >= campaign.minimum == 100
    service.call("POST", f"/campaigns/{name}/open")
    rng = np.random.default_rng(3)
    pay = np.minimum(rng.gamma(3, 10, int(turnout * 5000)), 99.0)
    age = np.minimum(20 + pay / 2 + rng.gamma(4, 4, pay.size), 81).astype(int)
    people = [{"pay": p, "age": a} for p, a in zip(pay.tolist(), age.tolist(), strict=True)]
    crowd, first = Crowd.of_values(campaign, people, OwnerPolicy("2")), 0
    while (state := service.state(name))["state"] == "open":
        assert first < len(people), f"wave {state['wave']} waits for people who do not come"
        wave = service.call("GET", f"/campaigns/{name}/waves/{state['wave']}", "public").content
        for upload in crowd.uploads(wave, state["wave"], range(first, min(first + AT_ONCE, len(people)))):
            assert service.upload(name, upload.body).json()["accepted"] == len(upload.people)
        first += AT_ONCE
        service.app.round()
    assert service.state(name)["state"] == "finished"
    assert first >= 24 * plan["reports"]  # each group has its reports, and nobody answers twice
    asked = {"queries": ["pay in 0..30", "pay in 0..30 and age in 18..40"], "intervals": "model"}
    answered = service.call("POST", f"/campaigns/{name}/queries", "analyst", json=asked).json()["queries"]
    truth = [np.mean(pay < 30), np.mean((pay < 30) & (age <= 40))]
    for answer, share in zip(answered, truth, strict=True):
        assert abs(answer["share"] - share) < 5 * answer["standard_error"]
        assert answer["standard_error"] < 0.1  # usually 0.03; devices draw by chance, and it scatters by a sixth


def test_too_few_people_are_refused_with_what_would_do(service):
    answer = service.call("POST", "/campaigns", json=DRAFT | {"users": 250})
    assert answer.status_code == 422
    assert problem(answer) == "invalid_campaign"
    assert "What would do: 304 people, or at most 1 of the 2 attributes" in answer.text
    assert service.call("GET", "/campaigns").json() == []


def test_a_wave_that_cannot_close_is_refused(service):
    answer = service.call(
        "POST", "/campaigns", json=DRAFT | {"users": 5000, "closing": {"kind": "reports", "reports": 900}}
    )
    assert answer.status_code == 422
    assert "expected closing.reports to be at most" in answer.text


def test_the_minimum_is_kept_and_the_groups_are_fewer(service):
    plans = {minimum: created(service, users=5000, minimum=minimum)["plan"] for minimum in (20, 100, 400)}
    assert [plans[minimum]["minimum"] for minimum in plans] == [20, 100, 400]
    assert [plans[minimum]["groups"] for minimum in plans] == [44, 24, 7]
    assert all(plan["chance"] >= 0.99 for plan in plans.values())


def test_without_people_expected_the_rule_of_closing_is_asked_for(service):
    answer = service.call("POST", "/campaigns", json=DRAFT)
    assert answer.status_code == 422
    assert "expected users, the number of people who will come, or closing" in answer.text
    made = created(service, closing={"kind": "manual"})
    assert made["plan"] is None


def test_enough_answers_or_a_deadline_without_a_number_of_answers(service):
    """What is enough follows from the people expected, beside a deadline too."""
    plain = created(service, users=5000)
    both = created(service, users=5000, title="Both", closing={"kind": "both", "seconds": 3600})
    closing = [service.service.directory.terms(made["campaign"]).campaign.record["closing"] for made in (plain, both)]
    assert closing[1] == {"kind": "both", "seconds": 3600, "reports": closing[0]["reports"]}


FORM = {"title": "Pay", "purpose": "a test", "controller": "Example", "contact": "a@example.org", "epsilon": "2"}


def sent(service, path, **fields):
    """What the dashboard answers to an operator's form."""
    service.app.pages = make_pages(service.service)
    secret = sign_in(service.service, service.operator)
    headers = {"cookie": f"{COOKIE}={secret}", "content-type": "application/x-www-form-urlencoded"}
    form = FORM | fields | {"csrf": visitor_of(service.service, secret).csrf}
    return service.client.post(path, content=urlencode(form).encode(), headers=headers)


def test_the_dashboard_plans_and_refuses_by_the_same_rule(service):
    few = {"attributes": "pay=real,0,100,16", "minimum": "100"}
    plan = sent(service, "/new/plan", people="1000", **few).json()
    said = " ".join(plan["sentences"])
    assert re.search(r"every group still has its 100 answers with a chance of 99[.\d]* % or more", said)
    assert float(plan["error"]) > 0
    off, reach = (float(re.search(rf"{words} ([\d.]+) points", said)[1]) for words in ("at most", "reach about"))
    assert off == float(plan["error"]) < reach  # what is printed beside an answer is wider than its usual error
    enough, counted, further = re.search(
        r"has (\d+) answers\. In all that takes about (\d+) people\. Then answers are ([\d.]+) times as far off", said
    ).groups()
    assert int(counted) == pytest.approx(3 * int(enough), rel=0.05)  # three groups of one size, and two digits
    assert float(further) == pytest.approx((1000 / (3 * int(enough))) ** 0.5, abs=0.05)
    assert "In all that takes" not in " ".join(
        sent(service, "/new/plan", people="1000", close="me", **few).json()["sentences"]
    )
    rounds = int(re.search(r"in (\d+) rounds", said)[1])
    timed = sent(service, "/new/plan", people="1000", close="both", days="7", **few).json()["sentences"]
    assert f"takes at most {7 * rounds} days, 7 for each round." in " ".join(timed)
    for days in ("", "x", "nan", "-1", "inf"):
        assert "days" not in " ".join(
            sent(service, "/new/plan", people="1000", close="time", days=days, **few).json()["sentences"]
        )
    assert "139 would do" in sent(service, "/new/plan", people="120", **few).json()["wrong"]
    refused = sent(service, "/new", people="120", **few)
    assert refused.status_code == 422
    assert "139 would do" in refused.text
    made = sent(service, "/new", people="1000", **few)
    assert made.status_code == 303
    (row,) = service.store.campaigns()
    record = service.service.directory.terms(row.digest).campaign.record
    assert len(record["groups"]) == 3  # 16 codes have three scales, and 1,000 people one shift of each
    schema, mechanism = as_schema("pay=real,0,100,16"), service.service.directory.terms(row.digest).mechanism
    assert record["closing"] == {"kind": "reports", "reports": staffing(mechanism, schema, 1000, 100).reports}
    assert record["method"]["choices"]["users"] == 1000
