"""Pages of questions beyond shares in a real browser: they load their parts, fit every screen, and axe is content."""

import pytest

from tests.service.browser.conftest import sign_in
from tests.service.browser.test_dashboard import axe, complete, fits

__all__ = ["axe"]  # a fixture

ATTRIBUTES = ("pay=integer,0,15", "team=nominal,north|south")


@pytest.fixture
def two(site):
    """Two finished campaigns of one kind; in the later one some moved up."""
    names = []
    for title, moved in (("Pay in 2025", 0), ("Pay in 2026", 6)):
        name = site.campaign(ATTRIBUTES, title=title, epsilon="8", method={"name": "hdg"}, users=500)
        people = [{"pay": i % 8 + (moved if i % 2 else 0), "team": "north" if i % 3 else "south"} for i in range(60)]
        wave = 1
        while site.remote().get(f"/campaigns/{name}/state")["state"] == "open":
            site.answers(name, wave, people)
            site.remote().post(f"/campaigns/{name}/waves/{wave}/close?wait=60")
            wave += 1
        names.append(name)
    return names


def test_pages_load_their_parts_fit_every_screen_and_axe_finds_nothing_serious(site, window, two, axe):
    view = window(1440)
    page = view.page()
    sign_in(page, site, "analyst")
    base = f"{site.url}/campaigns/{two[1]}"
    paths = {
        "spread": "/spread?first=pay&second=team",
        "change": f"/change?since={two[0]}&query=pay+%3E%3D+8",
        "groups": "/groups?by=team&what=mean&of=pay",
        "rounds": f"/rounds?with={two[0]}&query=pay+%3E%3D+8",
        "report": "/report",
    }
    for name, path in paths.items():
        complete(page, base + path)
        assert page.locator(".found .problem").count() == 0, name
        assert page.locator(".found table").count() >= (0 if name == "report" else 1), name
        fits(page, name, axe)
    complete(page, base + "/weights")
    page.fill("#margins", "team,north,0.5\nteam,south,0.5")
    page.fill("#queries", "pay >= 8")
    page.get_by_role("button", name="Ask").click()
    page.get_by_text("Of everybody").wait_for()
    fits(page, "weights", axe)
    assert not [line for line in view.console if "error" in line.lower()]
    page.goto(base + "/report/page?queries=pay+%3E%3D+8")
    assert page.locator("svg").count() == 3
    assert (
        page.locator("h1").evaluate("e => getComputedStyle(document.body).maxWidth") == "736px"
    )  # its own style holds
