"""The trial of a newcomer, in a real browser: sign in, a campaign by forms, a rehearsal, and numbers that are true."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ahead_ldp.service.campaigns.campaign import draft
from ahead_ldp.service.dashboard.pages import rehearsal_pages
from ahead_ldp.service.rehearsal.rehearsal import Rehearsal
from ahead_ldp.service.server import embedded
from tests.service.browser.conftest import sign_in
from tests.service.browser.test_dashboard import axe, fits, loaded  # noqa: F401 (a fixture)

FORM = {
    "title": "Pay of our members",
    "purpose": "To know what our members earn.",
    "controller": "Example Association",
    "contact": "privacy@example.org",
    "people": "2000",
    "q1_question": "What do you earn in a year, before tax?",
    "q1_name": "salary",
    "q1_from": "0",
    "q1_to": "100000",
    "q1_step": "5000",
    "q1_unit": "euro a year",
    "q1_example": "52000",
}
NUMBER = r"([\d.]+)"


def check(share, low, high, truth, further):
    """Whether the interval holds the truth, which is at most so many widths away: the noise is the system's."""
    assert low <= share <= high
    assert low - further * (high - low) <= truth <= high + further * (high - low)
    return low <= truth <= high


def table_rows(page, region):
    rows = page.locator(f'[aria-label="{region}"] tbody tr').all()
    return [[float(x) for x in re.findall(NUMBER, " ".join(row.locator("td").all_inner_texts()))] for row in rows]


def test_from_signing_in_to_a_true_answer(site, window, axe):  # noqa: F811
    view = window(1440)
    page = view.page()
    sign_in(page, site)
    page.get_by_role("link", name="Create the first one").click()
    for field, value in FORM.items():
        page.fill(f"#{field}", value)
    view.context.set_default_timeout(120_000)  # a busy machine may take its time to rehearse
    with view.context.expect_page() as opened:  # the form stays
        page.get_by_role("button", name="Try it with made-up people").click()
    tried = opened.value
    tried.locator("#said, .lead").first.wait_for()
    assert "This is a rehearsal." in tried.inner_text(".rehearsal")
    tried.locator(".lead").first.wait_for(timeout=120_000)
    loaded(tried)
    assert "This is a rehearsal." in tried.inner_text(".rehearsal")
    assert "2,000 made-up people" in tried.inner_text(".rehearsal")
    links = set(tried.locator("main a").evaluate_all("links => links.map(link => link.href)"))
    assert {link: tried.request.get(link).status for link in links} == dict.fromkeys(links, 200)
    assert tried.locator("h1").inner_text() == "Rehearsal: Pay of our members"
    assert tried.title().startswith("Results: Rehearsal: Pay of our members")
    said = tried.locator(".summary").first.inner_text()
    lead = rf"For about {NUMBER} % \({NUMBER} to {NUMBER} %\) of the people, the answer is .* euro a year\."
    share, low, high = map(float, re.search(lead, said).groups())
    truth = float(re.search(rf"In truth it is {NUMBER} % of them", said)[1])
    # Its level is that of one among some 200 ranges: 3.7 standard errors, and 7.4 with half a width on either side.
    check(share, low, high, truth, further=0.5)
    rows = table_rows(tried, "Shares of salary")
    assert len(rows) >= 4
    held = [check(*row, further=1.0) for row in rows]  # 1.96 standard errors, and 5.9 with a width on either side
    assert sum(held) > len(held) / 2
    assert sum(row[3] for row in rows) == pytest.approx(100, abs=1)
    assert tried.locator(".chart .truth").count() >= len(rows)
    tried.fill("#query", "salary > 50k")
    tried.get_by_role("button", name="Ask").click()
    tried.locator("#answer", has_text="In truth").wait_for()
    answer = tried.inner_text("#answer")
    share = float(re.match(NUMBER, answer)[1])
    low, high = map(float, re.search(rf"95 % interval: {NUMBER} to {NUMBER} %", answer).groups())
    check(share, low, high, float(re.search(rf"In truth {NUMBER} %", answer)[1]), further=1.0)
    fits(tried, "rehearsal", axe)
    assert all(url.startswith((site.url, "data:")) for url in view.requests)
    page.get_by_role("button", name="Create as a draft").click()  # the campaign itself is untouched by all that
    page.get_by_role("heading", name="Pay of our members").wait_for()
    assert page.locator(".state.draft").count() == 1
    assert page.locator(".rehearsal").count() == 0
    assert page.get_by_role("button", name="Answer it with made-up people").is_visible()
    (row,) = site.server.service.store.campaigns()
    assert b"rehearsal" not in row.record


def test_the_page_that_the_command_shows(window):
    texts = {"title": "Ages", "purpose": "a test", "controller": "Example", "contact": "a@example.org"}
    more = {"schema": ["age=integer,18,81", "town=nominal,A|B|C"], "epsilon": "3", "minimum": 20, "users": 800}
    with Rehearsal(draft({**texts, **more, "created": "2026-11-16"}), embedded.stage, seed=2) as tried:
        run_apart(tried.run)
        pages, path = rehearsal_pages(tried)
        with embedded.stage(tried.store) as server:
            server.app.pages = pages
            page = window(768).page()
            page.goto(f"{server.url}{path}")  # without signing in: nobody is in there
            loaded(page)
            assert page.get_by_text("This is a rehearsal.").is_visible()
            page.fill("#query", "age between 30 and 50 and town in {A, B}")
            page.get_by_role("button", name="Ask").click()
            page.locator("#answer", has_text="In truth").wait_for()
            codes = tried.truth.codes
            truth = np.mean((codes[:, 0] >= 12) & (codes[:, 0] <= 32) & (codes[:, 1] < 2))
            assert f"In truth {100 * truth:.2f} %" in page.inner_text("#answer")
            page.goto(f"{server.url}/rehearsals/{'0' * 32}")
            page.get_by_text("this rehearsal is gone").wait_for()
            page.goto(f"{server.url}/")
            page.get_by_text("There is nothing here.").wait_for()


def run_apart(run):
    """In a thread of its own: the browser's driver has an event loop in this one."""
    with ThreadPoolExecutor(1) as apart:
        apart.submit(run).result()
