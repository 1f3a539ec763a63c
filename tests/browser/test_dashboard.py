"""Operators and analysts in a real browser: a whole campaign, a dragged range, and what must not be possible."""

import gzip
import re
import urllib.error
import urllib.request

import numpy as np
import pytest

from ahead_ldp.dashboard.login import COOKIE, Visitor
from ahead_ldp.dashboard.rendering import HERE
from tests.browser.conftest import SHOTS, ages, sign_in
from tests.js.test_npm import JS
from tests.needs import needed

MOST_KB = 80


def test_an_operator_runs_a_campaign_through_all_waves(site, window):
    page = window(1440).page()
    sign_in(page, site)
    page.get_by_text("There is no campaign yet.").wait_for()
    page.get_by_role("link", name="Create the first one").click()
    page.locator("#plan-text").get_by_text("points").wait_for()  # the plan comes before anybody is asked
    fields = {"title": "Ages", "purpose": "To plan.", "controller": "Town", "contact": "t@x.example", "minimum": "10"}
    for field, value in fields.items():
        page.fill(f"#{field}", value)
    page.select_option("#method", "hh")
    page.get_by_role("button", name="Create as a draft").click()
    page.get_by_role("heading", name="Ages").wait_for()
    page.get_by_text("Open", exact=True).click()
    page.get_by_role("button", name="Yes, open").click()
    page.get_by_role("heading", name="Wave 1").wait_for()
    name = page.url.rsplit("/", 1)[1]
    assert page.locator("code", has_text=f"/c/{name}").is_visible()
    site.fill(name, ages(4000).tolist())
    page.goto(page.url)
    page.locator(".state.finished").first.wait_for()
    page.get_by_role("link", name="Results").click()
    page.get_by_text("From 4,000 reports").wait_for()
    assert page.locator(".chart").count() >= 2


def test_progress_is_live(site, window):
    name = site.campaign(method={"name": "hh"})
    page = window(768).page()
    sign_in(page, site)
    page.goto(f"{site.url}/campaigns/{name}")
    assert page.locator("#reports").inner_text() == "0"
    other = window().page()
    other.goto(f"{site.url}/c/{name}")
    other.locator("#consent").check()
    other.get_by_role("button", name="Continue").click()
    other.locator("input[type=number]").fill("50")
    other.get_by_role("button", name="Answer").click()
    other.get_by_text("Thank you.").wait_for()
    page.locator("#reports", has_text="1").wait_for()  # without a reload


def drag(page, chart, start, end):
    box = chart.bounding_box()
    for i, (x, y) in enumerate((start, end)):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        page.mouse.down() if i == 0 else page.mouse.up()


@pytest.fixture
def filled(site):
    rng = np.random.default_rng(3)
    x = np.clip(rng.normal(32, 9, 6000), 0, 63).astype(int)
    y = np.clip(0.7 * x + rng.normal(8, 6, 6000), 0, 63).astype(int)
    name = site.campaign(["age=integer,18,81", "pay=real,0,64000,64"], method={"name": "hdg"}, epsilon="3", users=6000)
    site.fill(name, np.stack([x, y], axis=1).tolist())
    return name


def test_an_analyst_drags_a_range_and_gets_the_number_of_the_cli(site, window, filled, capsys):
    page = window(1440).page()
    sign_in(page, site, "analyst")
    page.goto(f"{site.url}/campaigns/{filled}/results")
    chart = page.locator('.chart[data-attribute="age"]:not([data-down])').first
    chart.scroll_into_view_if_needed()
    drag(page, chart, (0.3, 0.5), (0.6, 0.5))
    page.locator("#answer", has_text="%").wait_for()
    query = page.input_value("#query")
    shown = page.inner_text("#answer")
    said = site.remote("analyst").post(f"/campaigns/{filled}/queries", {"queries": [query]})["queries"][0]
    assert shown.startswith(f"{100 * said['share']:.2f} %")
    assert f"{100 * said['low']:.2f} to {100 * said['high']:.2f} %" in shown
    assert query in page.inner_text("#command")
    heat = page.locator(".chart[data-down]")
    heat.scroll_into_view_if_needed()
    drag(page, heat, (0.3, 0.3), (0.5, 0.6))
    page.locator("#answer", has_text="%").wait_for()
    page.wait_for_timeout(300)
    assert " and " in page.input_value("#query")
    page.fill("#query", "age in 1..2..3")
    page.get_by_role("button", name="Ask").click()
    page.locator("#answer", has_text="expected").wait_for()
    assert page.locator("#history li").count() == 2


@pytest.mark.parametrize("form", ["csv", "parquet", "svg", "png"])
def test_downloads(site, window, filled, form):
    page = window(1440).page()
    sign_in(page, site, "analyst")
    page.goto(f"{site.url}/campaigns/{filled}/results")
    with page.expect_download() as found:
        page.get_by_role("link", name=form.upper()).first.click()
    data = found.value.path().read_bytes()
    starts = {"csv": b"age", "parquet": b"PAR1", "svg": b"<?xml", "png": b"\x89PNG"}
    assert data.startswith(starts[form])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1440])
def test_pages_fit_every_screen_and_axe_finds_nothing_serious(site, window, filled, width, scheme):
    axe = needed((JS / "node_modules" / "axe-core" / "axe.min.js").exists(), "axe-core", "npm ci in js/")
    source = (JS / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8") if axe else ""
    fresh = site.campaign(title="Another one")
    page = window(width, scheme).page()
    sign_in(page, site)
    paths = {
        "campaigns": "/", "new": "/new", "campaign": f"/campaigns/{fresh}", "results": f"/campaigns/{filled}/results",
        "participant": f"/c/{fresh}", "empty": f"/campaigns/{fresh}/results", "error": "/nothing",
    }  # fmt: skip
    for name, path in paths.items():
        page.goto(site.url + path)
        page.wait_for_load_state("networkidle")
        page.evaluate(source)
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
        serious = [f"{v['id']}: {v['help']}" for v in found if v["impact"] in ("serious", "critical")]
        assert not serious, (name, serious)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{name} is {wide} pixels too wide"
        if name in ("results", "campaign", "participant") and SHOTS.exists() and width != 768:
            page.screenshot(path=SHOTS / f"{name}-{width}-{scheme}.png", full_page=True)


def test_first_loads_are_small_and_stay_at_home(site, window, filled):
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in (HERE / "static").iterdir()}
    view = window(1440)
    page = view.page()
    sign_in(page, site)
    for path in ("/", "/new", f"/campaigns/{filled}", f"/campaigns/{filled}/results", f"/c/{filled}"):
        view.requests.clear()
        answer = page.goto(site.url + path)
        page.wait_for_load_state("networkidle")
        loaded = sum(sizes.get(url.rsplit("/", 1)[1], 0) for url in view.requests) + len(gzip.compress(answer.body()))
        assert loaded <= MOST_KB * 1000, (path, loaded)
        assert all(url.startswith((site.url, "data:")) for url in view.requests)
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy  # nobody frames our pages
        assert answer.headers["cache-control"] == "no-store"


# What must not be possible, without a browser's help.


def call(site, path, body=None, **headers):
    request = urllib.request.Request(site.url + path, data=body, headers=headers)
    try:
        with urllib.request.build_opener(NoRedirect).open(request) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def test_forms_need_their_word_and_our_own_pages(site):
    name = site.campaign()
    token = site.tokens["operator"]
    word, cookie = Visitor(token, True).csrf, f"{COOKIE}={token}"
    path = f"/campaigns/{name}/do"
    for body, headers in (
        (b"action=void", {}),
        (b"action=void&csrf=" + b"0" * 64, {}),
        (f"action=void&csrf={word}".encode(), {"Origin": "https://elsewhere.example"}),
        (f"action=void&csrf={word}".encode(), {"Sec-Fetch-Site": "cross-site"}),
    ):
        assert call(site, path, body, Cookie=cookie, **headers)[0] == 403
    assert site.remote().get(f"/campaigns/{name}/state")["state"] == "open"
    assert call(site, path, f"action=void&csrf={word}".encode(), Cookie=cookie)[0] == 303
    assert site.remote().get(f"/campaigns/{name}/state")["state"] == "void"


def test_tokens_that_are_wrong_expired_or_of_another_role(site):
    name = site.campaign()
    for cookie in ("", f"{COOKIE}=ahead_nothing", f"{COOKIE}=%01"):
        status, headers, _ = call(site, f"/campaigns/{name}", Cookie=cookie)
        assert (status, headers["location"]) == (303, "/login")
    analyst = site.tokens["analyst"]
    word = Visitor(analyst, False).csrf
    assert call(site, "/new", Cookie=f"{COOKIE}={analyst}")[0] == 403
    assert (
        call(site, f"/campaigns/{name}/do", f"action=void&csrf={word}".encode(), Cookie=f"{COOKIE}={analyst}")[0] == 403
    )
    token = site.server.service.add_token("operator", "short", 1)
    site.server.service.clock = lambda: 2**40
    assert call(site, "/", Cookie=f"{COOKIE}={token}")[0] == 303
    status, _, body = call(site, "/login", b"token=ahead_secretsecret")
    assert status == 401
    assert "secretsecret" not in body


def test_the_cookie_is_out_of_reach(site):
    status, headers, _ = call(site, "/login", f"token={site.tokens['analyst']}".encode())
    assert status == 303
    assert re.search(r"HttpOnly", headers["set-cookie"], re.I)
    assert re.search(r"SameSite=strict", headers["set-cookie"], re.I)


def test_names_cannot_inject(site):
    bad = "<script>alert(1)</script>"
    name = site.campaign(["<i>age</i>=integer,0,9"], title=bad, purpose=bad)
    for path in ("/", f"/campaigns/{name}", f"/campaigns/{name}/results"):
        page = call(site, path, Cookie=f"{COOKIE}={site.tokens['operator']}")[2]
        assert bad not in page
        assert "<i>age" not in page
        assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    "path", ["/campaigns/zz", f"/campaigns/{'0' * 64}", f"/campaigns/{'0' * 64}/results", "/c/<b>"]
)
def test_what_does_not_exist_is_said_plainly(site, path):
    status, _, page = call(site, path.replace("<", "%3C"), Cookie=f"{COOKIE}={site.tokens['operator']}")
    assert status in (400, 404)
    assert "Traceback" not in page
    assert "<b>" not in page
