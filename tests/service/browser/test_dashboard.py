"""Operators and analysts in a real browser: a whole campaign, a dragged range, and what must not be possible."""

import gzip
import json
import os
import re
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

from ahead_ldp.service.campaigns import lifecycle
from ahead_ldp.service.campaigns.closing import Closer
from ahead_ldp.service.campaigns.counting import GroupCount
from ahead_ldp.service.dashboard.login import COOKIE
from ahead_ldp.service.dashboard.rendering import HERE
from ahead_ldp.service.screening.screens import WaveScreens
from ahead_ldp.service.server.sessions import sign_in as open_visit
from ahead_ldp.service.server.sessions import visitor_of
from ahead_ldp.service.store.rows import WaveState
from tests.js.test_npm import JS
from tests.needs import needed
from tests.service.browser.conftest import SHOTS, ages, sign_in, slowness
from tests.service.browser.test_participant import agree, send

MOST_KB = 120


def test_an_operator_runs_a_campaign_through_all_waves(site, window):
    page = window(1440).page()
    sign_in(page, site)
    page.get_by_text("There is no campaign yet.").wait_for()
    page.get_by_role("link", name="Create the first one").click()
    page.locator("#plan-text").get_by_text("points off").wait_for()  # the plan comes before anybody is asked
    page.get_by_text("Advanced", exact=True).click()
    fields = {"title": "Ages", "purpose": "To plan.", "controller": "Town", "contact": "t@x.example", "minimum": "10"}
    for field, value in fields.items():
        page.fill(f"#{field}", value)
    page.select_option("#method", "hh")
    page.get_by_role("button", name="Create as a draft").click()
    page.get_by_role("heading", name="Ages").wait_for()
    assert page.locator("#link").count() == 0  # people would find a closed door
    page.get_by_text("Open", exact=True).click()
    page.get_by_role("button", name="Yes, open").click()
    page.get_by_role("heading", name="Round 1").wait_for()
    name = page.url.rsplit("/", 1)[1]
    assert page.locator("code", has_text=re.compile(f"/c/{name[:32]}$")).is_visible()
    site.fill(name, ages(4000).tolist())
    page.goto(page.url)
    page.locator(".state.finished").first.wait_for()
    page.get_by_role("link", name="Results").click()
    page.get_by_text("From 4,000 noisy answers").wait_for()
    page.locator(".chart").nth(1).wait_for()  # the curve comes after the distribution
    page.get_by_role("heading", name="How old are you?").wait_for()
    said = page.locator(".summary p", has_text="For about").inner_text()
    pattern = r"For about ([\d.]+) % \(([\d.]+) to ([\d.]+) %\) .* is (\d+) to (\d+) years"
    share, low, high, first, last = map(float, re.search(pattern, said).groups())
    truth = 100 * np.mean([first <= age + 18 <= last for age in ages(4000).ravel()])
    assert low <= truth <= high
    assert low <= share <= high


def test_the_link_that_the_server_prints_fills_in_the_token(site, window):
    """Also where somebody has the page of signing in already, which such a link does not load again."""
    page = window(768).page()
    page.goto(f"{site.url}/login")
    page.get_by_role("button", name="Sign in").wait_for()
    page.goto(f"{site.url}/login#{site.tokens['operator']}")
    page.wait_for_function("document.querySelector('#token').value !== ''")
    assert page.url == f"{site.url}/login"  # the token does not stay in the address
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{site.url}/")
    page.get_by_role("button", name="Sign out").click()
    page.goto("about:blank")
    page.goto(f"{site.url}/login#{site.tokens['analyst']}")
    assert page.input_value("#token") == site.tokens["analyst"]


def test_progress_is_live(site, window):
    name = site.campaign(method={"name": "hh"})
    page = window(768).page()
    sign_in(page, site)
    page.goto(f"{site.url}/campaigns/{name}")
    page.locator("#progress summary").click()
    assert page.locator("#reports").inner_text() == "0"
    other = window().page()
    other.goto(f"{site.url}/c/{name}")
    agree(other)
    other.locator("input[data-number]").fill("50")
    send(other)
    other.get_by_text("Thank you.").wait_for()
    page.locator("#reports", has_text="1").wait_for()  # without a reload


def test_the_page_of_a_campaign_goes_on_by_itself_when_a_round_is_held(site, window):
    name, store = site.campaign(method={"name": "hh"}), site.server.service.store
    page = window(768).page()
    sign_in(page, site)
    page.goto(f"{site.url}/campaigns/{name}")
    page.locator("#state", has_text="open").wait_for()
    store.put_document(name, 1, lifecycle.SCREENS, json.dumps({"screens": [], "hold": True, "hold_z": 6.0}).encode())
    store.set_wave_state(name, 1, WaveState.OPEN, WaveState.HELD, 2_000_000_000, "counting 0123")
    page.locator("#state", has_text="on hold").wait_for()  # without a reload by hand
    page.get_by_text("Count the round", exact=True).wait_for()
    assert page.get_by_text("Close the round", exact=True).count() == 0


def test_a_second_click_sends_nothing(site, window):
    name = site.campaign(method={"name": "hh"})
    view = window(768)
    page = view.page()
    sign_in(page, site)
    page.goto(f"{site.url}/campaigns/{name}")
    page.get_by_text("Give the campaign up", exact=True).click()
    sent = []
    page.on("request", lambda request: sent.append(request.method) if request.url.endswith("/do") else None)
    page.get_by_role("button", name="Yes, give the campaign up").dblclick()
    page.locator("#state", has_text="given up").wait_for()
    assert sent == ["POST"]


def complete(page, path):
    """Open a page and wait for the parts that it loads by itself."""
    page.goto(path)
    loaded(page)


def loaded(page):
    for _ in range(600):
        if not page.locator(".part").count():
            return
        page.wait_for_timeout(100)
    raise AssertionError("a part of the page was not loaded")


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
    complete(page, f"{site.url}/campaigns/{filled}/results")
    assert "picked by looking has a wider interval" in page.inner_text("#asking")
    chart = page.locator('.chart[data-attribute="age"]:not([data-down])').first
    chart.scroll_into_view_if_needed()
    drag(page, chart, (0.3, 0.5), (0.6, 0.5))
    page.locator("#answer", has_text="%").wait_for()
    query = page.input_value("#query")
    shown = page.inner_text("#answer")
    said = site.remote("analyst").post(f"/campaigns/{filled}/queries", {"queries": [query]})["queries"][0]
    assert shown.startswith(f"{100 * said['share']:.2f} %")
    low, high = (float(x) / 100 for x in re.search(r"interval: ([\d.]+) to ([\d.]+) %\)", shown).groups())
    assert high - low > said["high"] - said["low"]  # picked by looking: its level is higher
    assert "it holds for all ranges that could have been dragged" in page.inner_text("#remarks")
    assert query in page.inner_text("#command")
    page.get_by_role("button", name="Ask").click()  # typed, it has its own interval as well
    page.locator("#answer", has_text="picked it by looking").wait_for()
    shown = page.inner_text("#answer")
    assert f"{100 * said['low']:.2f} to {100 * said['high']:.2f} %" in shown
    assert f"{100 * low:.2f} to {100 * high:.2f} % if you picked" in shown
    assert "could have been dragged" not in page.inner_text("#remarks")
    heat = page.locator(".chart[data-down]")
    heat.scroll_into_view_if_needed()
    drag(page, heat, (0.3, 0.3), (0.5, 0.6))
    page.locator("#answer", has_text="%").wait_for()
    page.wait_for_timeout(300)
    assert " and " in page.input_value("#query")
    page.fill("#query", "age in 1..2..3")
    page.get_by_role("button", name="Ask").click()
    page.locator("#answer", has_text="could not be read").wait_for()
    assert page.locator("#history li").count() == 3


def test_more_attributes_are_loaded_when_they_are_opened_and_can_be_dragged_over(site, window):
    rng = np.random.default_rng(5)
    name = site.campaign([f"a{i}=integer,0,31" for i in range(3)], method={"name": "hdg"}, epsilon="3", users=900)
    site.fill(name, rng.binomial(31, 0.5, (900, 3)).tolist())
    page = window(1440).page()
    sign_in(page, site, "analyst")
    page.goto(f"{site.url}/campaigns/{name}/results")
    assert page.locator('.chart[data-attribute="a2"]').count() == 0
    loaded(page)
    page.locator("details.lazy summary", has_text="a2").click()
    page.locator('.chart[data-attribute="a2"]').first.wait_for()
    loaded(page)
    chart = page.locator('.chart[data-attribute="a2"]').first
    chart.scroll_into_view_if_needed()
    drag(page, chart, (0.4, 0.5), (0.6, 0.5))
    page.locator("#answer", has_text="%").wait_for()
    assert page.input_value("#query").startswith("a2 in ")
    page.select_option("#across", "a2")
    page.select_option("#up", "a0")
    page.get_by_role("button", name="Show").click()
    page.locator('.chart[data-attribute="a2"][data-down="a0"]').wait_for()


def test_downloads(site, window, filled):
    page = window(1440).page()
    sign_in(page, site, "analyst")
    page.goto(f"{site.url}/campaigns/{filled}/results")
    for form, start in {"csv": b"from,below,share", "parquet": b"PAR1", "svg": b"<?xml", "png": b"\x89PNG"}.items():
        with page.expect_download() as found:
            page.get_by_role("link", name=form.upper()).first.click()
        assert found.value.path().read_bytes().startswith(start)
        assert found.value.suggested_filename == f"age.{form}"
    with page.expect_download() as found:
        page.locator("#together ~ .downloads").get_by_role("link", name="CSV").click()
    assert found.value.suggested_filename == "age-pay.csv"
    assert found.value.path().read_bytes().startswith(b"age_from,age_below,pay_from,pay_below,share,low,high")


SCREENS = [(360, "light"), (360, "dark"), (768, "light"), (768, "dark"), (1440, "light"), (1440, "dark")]
EXAMINED = [(360, "light"), (1440, "dark")]  # both layouts, both palettes
KEPT = {
    "results": (360, 1440), "campaign": (360, 1440), "new": (360, 1440), "participant": (360, 1440),
    "participant-field": (360,), "participant-value": (360,), "participant-sent": (360,),
}  # fmt: skip


def fits(page, name, axe):
    """The page as it stands fits every screen, and axe finds nothing serious.

    With AHEAD_SCREENSHOTS set, the pictures of the docs are made anew; the noise in them differs each time.
    """
    for width, scheme in SCREENS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{name} is {wide} pixels too wide at {width}"
        if (width, scheme) in EXAMINED:
            page.evaluate(axe)
            found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
            serious = [f"{v['id']}: {v['help']}" for v in found if v["impact"] in ("serious", "critical")]
            assert not serious, (name, width, serious)
        if width in KEPT.get(name, ()) and os.environ.get("AHEAD_SCREENSHOTS"):
            page.screenshot(path=SHOTS / f"{name}-{width}-{scheme}.png", full_page=True)


@pytest.fixture(scope="session")
def axe():
    path = JS / "node_modules" / "axe-core" / "axe.min.js"
    needed(path.exists(), "axe-core", "npm ci in js/")
    return path.read_text("utf-8")


def test_the_dashboard_fits_every_screen_and_axe_finds_nothing_serious(site, window, filled, axe):
    method = {"name": "hh"}
    fresh = site.campaign(title="Ages in Sampletown", method=method, closing={"kind": "reports", "reports": 60})
    site.answers(fresh, 1, [{"age": age} for age in range(20, 65)])
    draft = site.campaign(title="A draft", opened=False)
    page = window(1440).page()
    page.goto(f"{site.url}/login")
    fits(page, "login", axe)
    sign_in(page, site)
    paths = {
        "campaigns": "/", "new": "/new", "campaign": f"/campaigns/{fresh}", "results": f"/campaigns/{filled}/results",
        "checks": f"/campaigns/{filled}/checks",
        "finished": f"/campaigns/{filled}", "draft": f"/campaigns/{draft}", "empty": f"/campaigns/{fresh}/results",
        "error": "/nothing",
    }  # fmt: skip
    for name, path in paths.items():
        complete(page, site.url + path)
        if name == "new":
            page.locator("#plan-text").get_by_text("points off").wait_for()
        if name == "results":
            page.fill("#query", "age in 30..49 and pay in 16000..32000")
            page.get_by_role("button", name="Ask").click()
            page.locator("#answer", has_text="%").wait_for()
        fits(page, name, axe)


def test_the_form_fits_every_screen_and_axe_finds_nothing_serious(site, window, axe):
    name = site.campaign(texts={"consent": "Answers are deleted 30 days after the end."})
    page = window().page()
    page.goto(f"{site.url}/c/{name}")
    page.locator("#consent").check()
    fits(page, "participant", axe)
    page.get_by_role("button", name="Continue").click()
    page.locator("#field-0").wait_for()
    fits(page, "participant-field", axe)
    page.get_by_role("button", name="Continue").click()
    assert page.locator("input[type=range]").input_value() == "18"  # it stood at 50, and suggested that
    page.locator("input[data-number]").fill("42")
    fits(page, "participant-value", axe)
    page.get_by_role("button", name="Answer", exact=True).click()
    page.get_by_text("Is this right?").wait_for()
    fits(page, "participant-confirm", axe)
    page.get_by_role("button", name="Yes, answer").click()
    page.get_by_text("Thank you.").wait_for()
    fits(page, "participant-sent", axe)
    page.goto(f"{site.url}/c/{'0' * 64}")
    page.get_by_text("This device does not answer").wait_for()
    fits(page, "refused", axe)


def a_million(monkeypatch, people, seed=7):
    """Rounds are counted as if all these people had sent reports, by the exact law of their tally."""
    rng, first, sizes = np.random.default_rng(seed), 0, {}

    def counted(self, terms, session, number, lease):
        nonlocal first
        sizes.clear()
        made, digests = [], {q.group: q.digest for q in self.store.questions(terms.digest, number)}
        for group, question in session.wave.items():
            n = round(dict(terms.campaign.groups)[group] * len(people) / sum(s for _, s in terms.campaign.groups))
            own = people[first : first + n][:, list(question.attributes)]
            first, sizes[group] = first + n, n
            cells = np.bincount(question.partition.locate(own), minlength=question.partition.cells)
            made.append(GroupCount(group, digests[group], question.oracle.simulate(cells, rng), "0" * 64))
        return made

    monkeypatch.setattr(Closer, "_counted", counted)
    monkeypatch.setattr("ahead_ldp.service.store.waves.counts", lambda *_: sizes)  # what closing compares with
    monkeypatch.setattr("ahead_ldp.service.campaigns.closing.screen_wave", lambda *_: WaveScreens((), 6.0))


def test_results_of_a_million_people_are_interactive_within_a_second(site, window, monkeypatch):
    rng = np.random.default_rng(3)
    pay = np.minimum(rng.lognormal(2.2, 0.5, 1_000_000), 39).astype(int)
    age = np.clip(rng.normal(24, 12, 1_000_000) + pay / 4, 0, 51).astype(int)
    attributes = ["pay=integer," + "|".join(str(5000 * i) for i in range(41)), "age=integer,18,69"]
    name = site.campaign(attributes, method=None, users=1_000_000)
    a_million(monkeypatch, np.stack([pay, age], axis=1))
    while site.remote().get(f"/campaigns/{name}/state")["state"] == "open":
        wave = site.remote().get(f"/campaigns/{name}/progress")["wave"]
        site.answers(name, wave, [{"pay": 5000 * i, "age": 30} for i in range(10)])
        done = site.remote().post(f"/campaigns/{name}/waves/{wave}/close?wait=60")
        assert done["state"] == "done", done["problem"]
    view = window(1440)
    page = view.page()
    sign_in(page, site)
    told = view.context.new_cdp_session(page)
    told.send("Performance.enable")
    for parts in (6 + 3, 0):  # whoever comes first waits for the intervals, part by part, and may ask meanwhile
        before = time.process_time()  # the server is in this process
        page.goto(f"{site.url}/campaigns/{name}/results", wait_until="commit")
        page.locator("#ask button").wait_for()
        took = time.process_time() - before
        spent = {m["name"]: m["value"] for m in told.send("Performance.getMetrics")["metrics"]}
        assert took + spent["TaskDuration"] / slowness() < 1
        assert page.locator(".part").count() <= parts
        loaded(page)
    answers = int(re.search(r"From ([\d,]+) noisy answers", page.inner_text("main"))[1].replace(",", ""))
    assert answers == pytest.approx(1_000_000, rel=0.01)
    page.fill("#query", "pay >= 50k")
    page.get_by_role("button", name="Ask").click()
    page.locator("#answer strong", has_text="%").wait_for()
    share = float(page.locator("#answer strong").inner_text().removesuffix(" %"))
    assert share == pytest.approx(100 * np.mean(pay >= 10), abs=1)


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


def visit(site, role):
    """Somebody who has signed in: the word of their forms, and their cookie."""
    service = site.server.service
    name = open_visit(service, site.tokens[role])
    return visitor_of(service, name).csrf, f"{COOKIE}={name}"


def test_forms_need_their_word_and_our_own_pages(site):
    name = site.campaign()
    word, cookie = visit(site, "operator")
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
        assert (status, headers["location"]) == (303, f"/login?to=/campaigns/{name}")
    word, cookie = visit(site, "analyst")
    assert call(site, "/new", Cookie=cookie)[0] == 403
    assert call(site, f"/campaigns/{name}/do", f"action=void&csrf={word}".encode(), Cookie=cookie)[0] == 403
    for token in site.tokens.values():  # a token is no id of a visit
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
        page = call(site, path, Cookie=visit(site, "operator")[1])[2]
        assert bad not in page
        assert "<i>age" not in page
        assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    "path", ["/campaigns/zz", f"/campaigns/{'0' * 64}", f"/campaigns/{'0' * 64}/results", "/c/<b>"]
)
def test_what_does_not_exist_is_said_plainly(site, path):
    status, _, page = call(site, path.replace("<", "%3C"), Cookie=visit(site, "operator")[1])
    assert status in (400, 404)
    assert "Traceback" not in page
    assert "<b>" not in page
