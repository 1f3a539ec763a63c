"""The participant's form in somebody else's page: open to the sites that are named, for what a device needs."""

from pathlib import Path

import pytest

from tests.service.browser.conftest import running
from tests.service.browser.test_participant import answer, reports

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "embed" / "index.html"


@pytest.fixture
def open_site(tmp_path, elsewhere):
    with running(tmp_path, allowed_origins=f"https://example.org, {elsewhere.url}") as made:
        yield made


def put_example(elsewhere, site, name):
    page = EXAMPLE.read_text("utf-8").replace("COLLECTOR", site.url).replace("CAMPAIGN", name)
    elsewhere.pages["/"] = page


def test_a_named_site_embeds_the_form(open_site, elsewhere, window):
    site, view = open_site, window()
    name = site.campaign()
    put_example(elsewhere, site, name)
    page = view.page()
    page.goto(elsewhere.url)
    page.get_by_text("programs can see what you enter").wait_for()  # it says where it stands
    answer(page)
    page.get_by_text("Thank you. Your noisy answer was received.").wait_for()
    page.get_by_text("The form says: acknowledged").wait_for()
    assert reports(site, name) == 1
    page.get_by_role("button", name="Withdraw my answer").click()
    page.get_by_text("Your answer was withdrawn.").wait_for()
    assert reports(site, name) == 0
    assert not [line for line in view.console if "error" in line.lower()], view.console


FETCH = """async ([url, options]) => {
  try { const answer = await fetch(url, options); return [answer.status, await answer.text()]; } catch { return null; }
}"""


def test_everything_else_stays_closed_to_a_named_site(open_site, elsewhere, window):
    site = open_site
    name = site.campaign()
    elsewhere.pages["/"] = "<!doctype html><title>x</title>"
    page = window().page()
    page.goto(elsewhere.url)
    path = f"{site.url}/v1/campaigns/{name}"
    for public in ("", "/state", "/waves/1", "/chain"):
        assert page.evaluate(FETCH, [path + public, {}])[0] == 200, public
    for closed in (
        f"{path}/progress",
        f"{path}/results",
        f"{site.url}/v1/campaigns",
        f"{site.url}/login",
        f"{site.url}/c/{name}",
    ):
        assert page.evaluate(FETCH, [closed, {}]) is None, closed
    bearer = {"headers": {"authorization": f"Bearer {site.tokens['operator']}"}}
    assert page.evaluate(FETCH, [f"{path}/state", bearer]) is None  # no other header is let through
    assert page.evaluate(FETCH, [f"{path}/state", {"credentials": "include"}]) is None
    assert page.evaluate(FETCH, [f"{path}/void", {"method": "POST", **bearer}]) is None
    assert site.remote().get(f"/campaigns/{name}/state")["state"] == "open"


def test_a_site_that_is_not_named_gets_nothing(site, elsewhere, window):
    """The browser refuses the script; and a form that the site serves itself cannot read the campaign."""
    name = site.campaign()
    put_example(elsewhere, site, name)
    view = window()
    page = view.page()
    page.goto(elsewhere.url)
    assert not page.evaluate("customElements.get('ahead-participant') !== undefined")
    assert any("CORS" in line for line in view.console)
    for path in ("", "/state", "/waves/1"):
        assert page.evaluate(FETCH, [f"{site.url}/v1/campaigns/{name}{path}", {}]) is None
    assert reports(site, name) == 0
