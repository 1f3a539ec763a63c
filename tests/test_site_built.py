"""The site as it is built: no warning, no dead link; in Chromium it is readable narrow, dark and without script."""

import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.service.browser.conftest import chromium
from tests.service.browser.test_dashboard import axe
from tools import site as site_tool

__all__ = ["axe", "chromium"]  # fixtures

PAGES = [
    "index", "tutorials/index", "tutorials/first-campaign", "guides/index", "guides/choose-epsilon", "campaigns",
    "reference/api", "reference/http", "reference/errors", "cli", "explanation/promise", "explanation/epsilon",
    "explanation/ahead", "explanation/report", "intervals", "leaderboard/README", "leaderboard/mse", "accuracy",
    "project/changelog", "search",
]  # fmt: skip
EPSILON = "explanation/epsilon"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site; Sphinx's warnings are errors."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    assert site_tool.build(folder) == ""
    return folder


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """No line for each file."""


@pytest.fixture(scope="module")
def served(site):
    """The address of the site on this machine, as `make docs-serve` shows it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def visit(chromium, served):
    """Open a page of the site in a fresh profile; nothing is loaded from another host, and no script fails."""
    contexts, elsewhere = [], []

    def opened(name, width=1440, scheme="light", script=True):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
        )
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda r: None if r.url.startswith((served, "data:")) else elsewhere.append(r.url))
        page.on("pageerror", lambda error: elsewhere.append(str(error)))
        page.goto(f"{served}/{name}.html")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert elsewhere == []


def test_it_has_no_dead_link_and_is_small(site):
    assert list(site_tool.faults(site)) == []
    assert site_tool.site_bytes(site) < site_tool.MOST_BYTES


def test_a_warning_fails_the_build(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "conf.py").write_text("extensions = ['myst_parser']\n")
    (tmp_path / "docs" / "index.md").write_text("# Title\n\n[there](nowhere.md)\n")
    monkeypatch.setattr(site_tool.docs, "ROOT", tmp_path)
    assert "nowhere.md" in site_tool.build(tmp_path / "site")


@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_every_screen_and_axe_finds_nothing(visit, axe, name):
    for width, scheme in ((360, "dark"), (1440, "light"), (1440, "dark")):
        page = visit(name, width, scheme)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{wide} pixels too wide at {width}"
        page.evaluate(axe)
        rules = "{ runOnly: ['wcag2a', 'wcag2aa'], resultTypes: ['violations'] }"
        found = page.evaluate(f"axe.run(document, {rules})")["violations"]
        told = [(v["id"], v["help"], v["nodes"][0]["html"][:200]) for v in found]
        assert told == [], (width, scheme)


def test_pages_work_without_script(visit):
    page = visit("index", script=False)
    page.get_by_role("link", name="Your first campaign").first.click()
    assert page.get_by_role("heading", level=1).inner_text().startswith("Your first campaign")
    page = visit(EPSILON, script=False)
    assert page.get_by_role("img", name=re.compile("epsilon 0.5, 1 and 2")).is_visible()
    assert page.locator("#epsilon-figure input").count() == 0
    page = visit("index", 360, script=False)  # the navigation of a narrow screen is a switch of the style sheet
    page.locator("label.nav-overlay-icon").first.click()
    page.locator(".sidebar-drawer").get_by_role("link", name="How-to guides").click()
    assert page.get_by_role("heading", level=1).inner_text().startswith("How-to guides")


def test_the_figure_about_epsilon_is_moved_by_the_keyboard(visit):
    page = visit(EPSILON)
    sliders = page.locator("#epsilon-figure").get_by_role("slider")
    assert sliders.count() == 2
    said = page.locator("#epsilon-figure p")
    before, picture = said.inner_text(), page.locator("#epsilon-figure svg").inner_html()
    sliders.first.focus()
    page.keyboard.press("ArrowRight")
    assert said.inner_text() != before
    assert page.locator("#epsilon-figure svg").inner_html() != picture
    assert sliders.first.get_attribute("aria-valuetext") == "epsilon 1.1"
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    assert sliders.nth(1).get_attribute("aria-valuetext") == "100 people"


def test_a_page_prints_in_black_on_white_and_whole(visit):
    page = visit("tutorials/first-campaign", scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator(".skip-to-content").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    code = page.locator("pre").filter(has_text="ahead campaign query").first
    assert code.evaluate("e => e.scrollWidth <= e.clientWidth")  # no line is cut
    assert page.locator("table").first.evaluate("e => getComputedStyle(e).breakInside") == "auto"


def test_the_search_finds_pages(visit):
    page = visit("index")
    page.get_by_role("textbox", name="Search").first.fill("withdraw")
    page.keyboard.press("Enter")
    page.locator("#search-results li a").nth(2).wait_for()  # they come one by one


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("GDPR", "Data retention"),
        ("delete", "Data retention"),
        ("erase", "Data retention"),
        ("anonymous", "What local differential privacy promises"),
        ("phone", "In the browser"),
        ("confidence interval", "How to read an interval"),
        ("median", "Beyond shares"),
        ("small groups", "Beyond shares"),
        ("epsilon", "Choose epsilon"),
        ("Docker", "Deploy"),
        ("Excel", "Compare methods"),
    ],
)
def test_the_search_leads_newcomers_to_pages_for_them(visit, words, page):
    opened = visit("search")
    opened.goto(f"{opened.url}?q={words.replace(' ', '+')}")
    opened.locator(".search-summary", has_text="finished").wait_for()
    found = opened.locator("#search-results ul.search > li > a")
    assert page in [found.nth(i).inner_text() for i in range(min(3, found.count()))]


def test_the_tree_grows_in_the_picture_and_rests_where_motion_is_not_wanted(visit):
    page = visit("explanation/ahead")
    source = page.locator("img[src*='tree-grows']").first.get_attribute("src")
    address = page.evaluate("name => new URL(name, document.baseURI).href", source)
    shown = "[...document.querySelectorAll('.step')].map(e => getComputedStyle(e).opacity).filter(o => o > 0.5).length"
    for motion, moving in (("no-preference", True), ("reduce", False)):
        page.emulate_media(reduced_motion=motion)
        page.goto(address)
        animated = page.evaluate("getComputedStyle(document.querySelector('.step')).animationName")
        assert (animated != "none") == moving
        assert page.evaluate(shown) == 1


@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize("chosen", ["light", "dark"])
def test_pictures_follow_the_page_where_dark_or_light_was_chosen_by_hand(visit, system, chosen):
    page = visit("explanation/promise", scheme=system)
    page.evaluate("chosen => { document.body.dataset.theme = chosen; }", chosen)
    picture = page.locator("a.picture img").first
    picture.scroll_into_view_if_needed()
    shot = picture.screenshot()
    page.emulate_media(color_scheme=chosen)  # the system agrees now
    assert shot == picture.screenshot()


def test_a_drawing_scrolls_on_a_phone_and_opens(visit):
    page = visit("explanation/report", 360)
    link = page.locator("a.picture").first
    assert link.evaluate("e => e.scrollWidth") > 500
    link.click()
    assert page.url.endswith("report-life.svg")
