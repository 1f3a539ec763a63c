"""Odd input into every field of the dashboard: an answer in words, never a server that failed."""

import re
from html import unescape
from urllib.parse import urlencode

import pytest

from ahead_ldp.service.dashboard import make_pages
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.server.sessions import sign_in, visitor_of
from tests.service.server.harness import bench

ODD = [
    "",
    "52.000",
    "52,000",
    "52 000",
    "1e5",
    "1e400",
    "\U0001f600",
    "9" * 400,
    "-1",
    "nan",
    "a\u202eb",
    "<b>x</b>",
    "\x00",
]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with bench(tmp_path_factory.mktemp("odd")) as made:
        made.app.pages = make_pages(made.service)
        made.visit = sign_in(made.service, made.operator)
        options = {"attributes": ["age=integer,0,15", "town=nominal,A|B"], "method": {"name": "hdg"}, "minimum": 1}
        made.counted = made.opened(title="Counted", users=500, **options)
        made.run(made.counted, [{"age": i % 16, "town": "A" if i % 3 else "B"} for i in range(300)])
        made.open = made.opened(title="Open", users=500, **options)
        yield made


def post(service, path, **form):
    headers = {"cookie": f"{COOKIE}={service.visit}", "content-type": "application/x-www-form-urlencoded"}
    body = urlencode({**form, "csrf": visitor_of(service.service, service.visit).csrf}).encode()
    return service.client.post(path, content=body, headers=headers)


def told(answer):
    """The words of a page, all of them fit for one; what somebody typed stays in its field."""
    assert answer.status_code < 500, answer.text
    assert "<b>x</b>" not in answer.text
    words = unescape(re.sub(r"<[^>]+>", " ", re.sub(r"(?s)<(script|style|svg|textarea).*?</\1>", " ", answer.text)))
    assert "9" * 310 not in words
    return " ".join(words.split())


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_forms_of_a_campaign(service, odd):
    hours = post(service, f"/campaigns/{service.open}/do", action="extend", hours=odd)
    days = post(service, f"/campaigns/{service.counted}/share", days=odd)
    for name, answer in (("Hours from now", hours), ("Days", days)):
        if answer.status_code in (200, 303):
            assert odd in ("52,000", "52 000", "1e5")  # 52,000 hours, which are six years
        else:
            assert answer.status_code == 422
            assert re.search(
                rf"Please look at this again\. {name}: .*(please write|can be read|too large)", told(answer), re.I
            )
    assert post(service, f"/campaigns/{service.open}/do", action=odd).status_code in (400, 409)


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_signing_in(service, odd):
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = service.client.post("/login", content=urlencode({"token": odd}).encode(), headers=headers)
    assert answer.status_code == 401
    assert "not known here" in told(answer)


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_questions_about_results(service, odd):
    base = f"/campaigns/{service.counted}"
    for query in (odd, f"age > {odd}", f"town = {odd}", f"{odd} = A", f"age > 3 vs {odd}"):
        answer = post(service, f"{base}/ask", query=query)
        told(answer)
        found = answer.json()
        assert len(found.get("wrong", "")) < 400, query
        assert "conditions are NAME" not in found.get("wrong", ""), query
    assert post(service, f"{base}/ask", drag=odd).status_code == 422


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_questions_beyond_shares(service, odd):
    base, cookie = f"/campaigns/{service.counted}", {"cookie": f"{COOKIE}={service.visit}"}
    asked = {
        "groups/of": {"by": "town", "what": "mean", "of": "age", "bins": odd},
        "groups/of?": {"by": odd, "what": odd, "of": odd, "query": odd, "first": odd, "second": odd},
        "groups": {"by": odd, "bins": odd},
        "change": {"since": odd},
        "change/of": {"since": odd, "query": odd},
        "rounds": {"with": odd, "query": odd},
        "rounds/of": {"query": odd},
        "spread/of": {"kind": odd, "first": odd, "second": odd},
        "report/page": {"title": odd, "queries": odd, "by": odd, "since": odd},
        "results": {"across": odd, "up": odd},
        "attribute": {"name": odd, "piece": odd},
        "download": {"attribute": odd, "format": odd},
    }
    for path, fields in asked.items():
        told(service.client.get(f"{base}/{path.rstrip('?')}?{urlencode(fields)}", headers=cookie))
    told(post(service, f"{base}/weights", margins=f"town,A,{odd}\ntown,B,1", queries="age > 3"))
    told(post(service, f"{base}/weights", margins="town,A,1\ntown,B,1", queries=odd))
