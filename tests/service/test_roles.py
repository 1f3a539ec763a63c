"""Who may use which door: every route of the API and every page stands in a table here, and is tried as everybody.

A new route without a line fails the first test. One whose guard says something else than its line fails the others.
"""

import re
from urllib.parse import urlencode

import pytest

from ahead_ldp.service.dashboard import make_pages
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.server.app import routers
from ahead_ldp.service.server.auth import Role
from ahead_ldp.service.server.openapi import UPLOAD_PATH
from ahead_ldp.service.server.sessions import sign_in, visitor_of
from tests.service.server.harness import bench, problem

ROLES = ("operator", "analyst", "monitor")
ANYBODY, ANALYST, OPERATOR = {"nobody", *ROLES}, {"analyst", "operator"}, {"operator"}
MONITOR = {"monitor", "operator"}

CAMPAIGN, WAVE = "/v1/campaigns/{campaign}", "/v1/campaigns/{campaign}/waves/{number}"
API = {
    ("GET", "/v1/openapi.json"): ANYBODY,
    ("GET", "/v1/health"): ANYBODY,
    ("GET", "/v1/ready"): ANYBODY,
    ("GET", CAMPAIGN): ANYBODY,
    ("GET", f"{CAMPAIGN}/state"): ANYBODY,
    ("GET", f"{CAMPAIGN}/chain"): ANYBODY,
    ("GET", WAVE): ANYBODY,
    ("POST", UPLOAD_PATH): ANYBODY,
    ("POST", f"{CAMPAIGN}/withdrawals"): ANYBODY,
    ("GET", "/metrics"): MONITOR,
    ("GET", "/v1/campaigns"): ANALYST,
    ("GET", f"{CAMPAIGN}/progress"): ANALYST,
    ("GET", f"{CAMPAIGN}/screens"): ANALYST,
    ("GET", f"{CAMPAIGN}/results"): ANALYST,
    ("POST", f"{CAMPAIGN}/queries"): ANALYST,
    ("GET", f"{CAMPAIGN}/tallies"): ANALYST,
    ("GET", f"{CAMPAIGN}/description"): ANALYST,
    ("POST", f"{CAMPAIGN}/pair"): ANALYST,
    ("POST", f"{CAMPAIGN}/difference"): ANALYST,
    ("POST", f"{CAMPAIGN}/groups"): ANALYST,
    ("POST", f"{CAMPAIGN}/weighted"): ANALYST,
    ("POST", f"{CAMPAIGN}/report"): ANALYST,
    ("POST", "/v1/series"): ANALYST,
    ("POST", "/v1/campaigns"): OPERATOR,
    ("POST", "/v1/campaigns/records"): OPERATOR,
    ("POST", f"{CAMPAIGN}/open"): OPERATOR,
    ("POST", f"{CAMPAIGN}/approve"): OPERATOR,
    ("POST", f"{CAMPAIGN}/finish"): OPERATOR,
    ("POST", f"{CAMPAIGN}/void"): OPERATOR,
    ("POST", f"{WAVE}/close"): OPERATOR,
    ("POST", f"{WAVE}/release"): OPERATOR,
    ("POST", f"{WAVE}/void"): OPERATOR,
    ("POST", f"{WAVE}/void-group"): OPERATOR,
    ("POST", f"{WAVE}/extend"): OPERATOR,
    ("GET", f"{WAVE}/reports"): OPERATOR,
    ("GET", "/v1/jobs/{number}"): OPERATOR,
    ("GET", "/v1/tokens"): OPERATOR,
    ("POST", "/v1/tokens"): OPERATOR,
    ("DELETE", "/v1/tokens/{name}"): OPERATOR,
    ("GET", "/v1/events"): OPERATOR,
}

# Who looks at pages has signed in. A monitor cannot; a link for others is a door of its own, tried in test_shares.
ONE, TRIED, LINKED = "/campaigns/{campaign}", "/rehearsals/{rehearsal}", "/shared/{campaign}/{secret}"
PAGES = {
    ("GET", "/c/{campaign}"): ANYBODY,
    ("GET", "/login"): ANYBODY,
    ("POST", "/login"): ANYBODY,
    ("GET", "/static"): ANYBODY,
    **{("GET", f"{LINKED}{path}"): ANYBODY for path in ("", "/attribute", "/download", "/report")},
    ("POST", "/logout"): ANALYST,
    ("GET", "/"): ANALYST,
    ("GET", "/new"): OPERATOR,
    ("POST", "/new"): OPERATOR,
    ("POST", "/new/plan"): OPERATOR,
    ("POST", "/new/rehearse"): OPERATOR,
    ("POST", f"{ONE}/rehearse"): OPERATOR,
    **{("GET", f"{TRIED}{path}"): ANALYST for path in ("", "/live", "/attribute", "/download", "/report")},
    ("POST", f"{TRIED}/ask"): ANALYST,
    **{("GET", f"{ONE}{path}"): ANALYST for path in ("", "/live", "/qr.svg", "/checks", "/results", "/attribute")},
    ("POST", f"{ONE}/do"): OPERATOR,
    ("POST", f"{ONE}/share"): OPERATOR,
    ("POST", f"{ONE}/ask"): ANALYST,
    ("GET", f"{ONE}/download"): ANALYST,
    **{("GET", f"{ONE}/{page}"): ANALYST for page in ("spread", "change", "groups", "rounds", "weights", "report")},
    **{("GET", f"{ONE}/{page}/of"): ANALYST for page in ("spread", "change", "groups", "rounds")},
    ("POST", f"{ONE}/weights"): ANALYST,
    ("GET", f"{ONE}/report/page"): ANALYST,
}
FORM = {"content-type": "application/x-www-form-urlencoded", "host": "survey.example"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with bench(tmp_path_factory.mktemp("roles")) as made:
        made.app.pages = make_pages(made.service)
        made.tokens = {role: made.service.add_token(role, f"a-{role}") for role in ROLES}
        made.open_campaign = made.opened()
        yield made


def doors(routes):
    """Method and path of every route; a folder of files is one that is read."""
    for route in routes:
        for method in getattr(route, "methods", None) or {"GET"}:
            if method != "HEAD":
                yield method, re.sub(r":\w+}", "}", route.path)


def test_every_route_has_a_line_and_every_line_a_route(service):
    app = service.app.control
    described = {(m.upper(), path) for path, found in app.openapi()["paths"].items() for m in found}
    hidden = set(doors(route for route in app.routes if hasattr(route, "path")))
    included = set(doors(route for router in routers(service.service) for route in router.routes))
    assert described | hidden | included == set(API)
    assert set(doors(service.app.pages.routes)) == set(PAGES)
    assert set(Role) == set(ROLES)


def filled(path, campaign):
    known = {"campaign": campaign, "number": "1", "name": "nobody", "rehearsal": "0" * 32, "secret": "A" * 32}
    return path.format(**known) + ("/participant.js" if path == "/static" else "")


def refused(answer):
    return answer.status_code in (401, 403)


@pytest.mark.parametrize("door", API, ids=" ".join)
def test_a_route_lets_in_whom_its_line_names(service, door):
    """A campaign that does not exist: whoever is let in changes nothing."""
    method, path = door
    for who in ("nobody", *ROLES):
        lines = {} if who == "nobody" else {"authorization": f"Bearer {service.tokens[who]}"}
        if path == UPLOAD_PATH:
            lines["content-type"] = "application/octet-stream"
        answer = service.client.request(method, filled(path, "0" * 64), headers=lines, json={})
        assert refused(answer) == (who not in API[door]), (who, answer.status_code)
        if refused(answer):
            assert problem(answer) == ("unauthorized" if who == "nobody" else "forbidden")


def visit(service, who):
    """The lines of somebody who has signed in, and their word for forms; nothing for who cannot."""
    name = None if who == "nobody" else sign_in(service.service, service.tokens[who])
    if name is None:
        return {}, ""
    return {"cookie": f"{COOKIE}={name}"}, visitor_of(service.service, name).csrf


@pytest.mark.parametrize("door", PAGES, ids=" ".join)
def test_a_page_is_shown_to_whom_its_line_names(service, door):
    method, path = door
    for who in ("nobody", *ROLES):
        lines, word = visit(service, who)
        assert bool(lines) == (who in ANALYST)  # a monitor cannot sign in
        answer = ask(service, method, path, lines, word)
        to_login = answer.headers.get("location", "").partition("?")[0] == "/login" and path not in (
            "/login",
            "/logout",
        )
        wrong = path == "/login" and method == "POST" and answer.status_code == 401  # no token was given
        shown = not (to_login or (refused(answer) and not wrong))
        if path != "/logout" or not lines:
            assert shown == (who in PAGES[door] or path == "/logout"), (who, answer.status_code)
        if not shown:
            assert answer.status_code == (403 if lines else 303)
        if method == "GET":
            head = service.client.request("HEAD", filled(path, "0" * 64), headers=lines)
            assert (head.status_code == 303) == to_login


def ask(service, method, path, lines, word, **more):
    if method == "GET":
        return service.client.get(filled(path, "0" * 64), headers=lines)
    form = urlencode({"csrf": word} if word else {}).encode()
    return service.client.post(filled(path, "0" * 64), content=form, headers={**lines, **FORM, **more})


@pytest.mark.parametrize("path", [path for method, path in PAGES if method == "POST" and path != "/login"])
def test_a_form_of_another_site_is_refused(service, path):
    """Without the word of the visit, with that of another, and with the right one from another site's page."""
    lines, word = visit(service, "operator")
    _, other = visit(service, "operator")
    for sent, more in (
        ("", {}),
        (other, {}),
        (word, {"sec-fetch-site": "cross-site"}),
        (word, {"sec-fetch-site": "same-site"}),
        (word, {"origin": "https://elsewhere.example"}),
        (word, {"origin": "null"}),
    ):
        assert ask(service, "POST", path, lines, sent, **more).status_code == 403, (sent, more)
    assert sees(service, lines)


def sees(service, lines):
    return service.client.get("/", headers=lines).status_code == 200


def test_signing_in_from_another_site_is_refused_and_never_takes_over_an_id_that_was_planted(service):
    body = urlencode({"token": service.tokens["analyst"]}).encode()
    for more in ({"sec-fetch-site": "cross-site"}, {"origin": "https://elsewhere.example"}):
        assert service.client.post("/login", content=body, headers={**FORM, **more}).status_code == 403
    planted = {"cookie": f"{COOKIE}=planted-by-somebody-else"}
    answer = service.client.post("/login", content=body, headers={**FORM, **planted})
    assert answer.status_code == 303
    assert "planted" not in answer.headers["set-cookie"]
    assert not sees(service, planted)
