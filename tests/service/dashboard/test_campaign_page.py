"""The page of one campaign: what is said and offered while a round is counted, and what a late or second click does."""

import json
import re
from html import unescape
from urllib.parse import urlencode

import pytest

from ahead_ldp.service.campaigns.lifecycle import SCREENS
from ahead_ldp.service.dashboard import campaigns, make_pages
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.server.sessions import sign_in, visitor_of
from ahead_ldp.service.store.rows import WaveState
from tests.service.server.harness import ages, bench


@pytest.fixture
def service(tmp_path, monkeypatch):
    monkeypatch.setattr(campaigns, "_WAIT_S", 0.0)  # rounds are counted by hand here
    with bench(tmp_path) as made:
        made.app.pages = make_pages(made.service)
        made.visit = sign_in(made.service, made.operator)
        yield made


FORM = {"content-type": "application/x-www-form-urlencoded"}


def look(service, path):
    answer = service.client.get(path, headers={"cookie": f"{COOKIE}={service.visit}"})
    assert answer.status_code == 200, answer.text
    return unescape(answer.text)


def act(service, campaign, action, **form):
    headers = {"cookie": f"{COOKIE}={service.visit}", "content-type": "application/x-www-form-urlencoded"}
    word = visitor_of(service.service, service.visit).csrf
    body = urlencode({"action": action, "csrf": word, **form}).encode()
    return service.client.post(f"/campaigns/{campaign}/do", content=body, headers=headers)


def stopped(service, **more):
    """A campaign whose first round takes no more answers: somebody is about to count it."""
    name = service.opened(method={"name": "hh"}, minimum=1, users=500, **more)
    service.answer(name, 1, ages(40))
    service.service.store.set_wave_state(name, 1, WaveState.OPEN, WaveState.HELD, 2_000, "counting 0123")
    return name


def offered(page):
    return set(re.findall(r'name="action" value="(\w+)"', page))


def test_a_round_that_is_being_counted_is_not_on_hold(service):
    name = stopped(service)
    page = look(service, f"/campaigns/{name}")
    assert "They are being counted." in page
    assert "Wait a moment." in page
    assert "on hold" not in page + look(service, "/")
    assert "made-up answers" not in page
    assert offered(page) == {"void"}  # nothing that would throw good answers away
    live = json.loads(look(service, f"/campaigns/{name}/live"))
    assert live["standing"]["state"] == "counting"
    progress = service.call("GET", f"/campaigns/{name}/progress").json()
    assert (progress["counting"], progress["held"]) == (True, False)
    assert act(service, name, "close", wave="1").status_code == 303  # it is closed, as wanted
    refused = act(service, name, "void_wave", wave="1")
    assert (refused.status_code, "being counted" in refused.text) == (409, True)
    assert service.wave_state(name, 1) == "held"


def test_a_round_that_waits_for_an_operator_is_on_hold(service):
    name = stopped(service)
    found = {"screens": [{"screen": "group_balance", "z": 9.0}], "hold": True, "hold_z": 6.0}
    service.service.store.put_document(name, 1, SCREENS, json.dumps(found).encode())
    page = look(service, f"/campaigns/{name}")
    assert "This round is on hold" in page
    assert ">on hold<" in look(service, "/")
    progress = service.call("GET", f"/campaigns/{name}/progress").json()
    assert (progress["counting"], progress["held"]) == (False, True)
    assert offered(page) == {"release", "void_wave", "void"}
    assert f'href="/campaigns/{name}/checks">Look at the checks<' in page
    assert act(service, name, "release", wave="1").status_code == 303
    service.app.round()
    assert service.wave_state(name, 1) == "closed"


def test_what_was_confirmed_about_a_round_that_is_over_is_not_done_to_the_next(service):
    """By a second click, or in a page that stood open while the round closed."""
    name = service.opened(method={"name": "ahead"}, minimum=1, users=500)
    service.answer(name, 1, ages(60))
    assert 'name="wave" value="1"' in look(service, f"/campaigns/{name}")
    assert act(service, name, "close", wave="1").status_code == 303
    service.app.round()
    service.answer(name, 2, ages(60, seed=2))
    for action in ("close", "extend", "finish", "release", "void_wave", "void_group"):
        late = act(service, name, action, wave="1", hours="24")
        assert late.status_code == 409, action
        assert "gone on to another round" in late.text
    assert service.wave_state(name, 2) == "open"
    assert act(service, name, "close", wave="2").status_code == 303
    service.app.round()
    assert service.wave_state(name, 2) == "closed"


def test_closing_is_put_forward_only_when_there_is_enough(service):
    name = service.opened(method={"name": "ahead"}, minimum=20, users=500, closing={"kind": "manual"})
    button = r'<summary class="button ([a-z]*)\s*">Close the round'
    assert re.search(button, look(service, f"/campaigns/{name}"))[1] == "plain"
    service.answer(name, 1, ages(60))
    assert re.search(button, look(service, f"/campaigns/{name}"))[1] == ""


def test_a_campaign_that_was_given_up_promises_no_results(service):
    draft, name = service.create(title="Never opened"), service.opened(title="Opened")
    for campaign in (draft, name):
        assert act(service, campaign, "void").status_code == 303
        for page in ("results", "spread", "change", "groups", "weights", "report"):
            shown = look(service, f"/campaigns/{campaign}/{page}")
            assert "The campaign was given up. There are no results." in shown, page
            assert "after the first" not in shown
    assert "The answers were deleted." in look(service, f"/campaigns/{name}")
    assert "The answers were deleted." not in look(service, f"/campaigns/{draft}")  # there were none


def test_the_login_leads_on_to_the_page_that_was_wanted_and_nowhere_else(service):
    name = service.opened()
    wanted = f"/campaigns/{name}/change?query=age%3E5"
    asked = service.client.get(wanted)
    assert asked.status_code == 303
    login = service.client.get(asked.headers["location"])
    to = unescape(re.search(r'name="to" value="([^"]*)"', login.text)[1])
    assert to == wanted
    assert "signed in here, or no more" in login.text
    post = service.client.post(f"/campaigns/{name}/do", content=b"")
    assert post.headers["location"] == f"/login?to=/campaigns/{name}"
    assert service.client.get("/").headers["location"] == "/login"

    def after(to):
        body = urlencode({"token": service.operator, "to": to}).encode()
        return service.client.post("/login", content=body, headers=FORM).headers["location"]

    assert after(wanted) == wanted
    for foreign in (
        "",
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "/new\r\nx: y",
        "/campaigns/@",
        "/c/x",
    ):
        assert after(foreign) == "/", foreign
    wrong = service.client.post("/login", content=urlencode({"token": "x", "to": wanted}).encode(), headers=FORM)
    assert wanted.replace("&", "&amp;") in wrong.text
