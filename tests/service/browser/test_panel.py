"""People who come back, and people with an invitation: a panel over two waves, and blind tokens in the browser."""

import json
import socket

import pytest

from ahead_ldp.service.edge.server import Server
from ahead_ldp.service.issuer import Office, make_app
from tests.service.browser.conftest import running, stored
from tests.service.browser.test_embedding import FETCH
from tests.service.browser.test_participant import answer, reports

SIZES = "rooms=integer,1,4"
PEOPLE = [{"rooms": 1 + i % 4} for i in range(20)]


def test_a_panel_member_is_told_when_to_come_back_and_answers_in_the_second_wave(site, window):
    name = site.campaign([SIZES], enrolment="panel", closing={"kind": "deadline", "seconds": 3600})
    first, second = some_of_both_groups(site, window, name)
    second.get_by_text("please come back after that").wait_for()
    assert second.locator("input").count() == 0
    with second.expect_download() as found:
        second.get_by_role("link", name="Add it to my calendar").click()
    entry = found.value.path().read_bytes().decode("utf-8")
    assert "SUMMARY:Travel to work" in entry
    told = dict(line.split(":", 1) for line in entry.replace("\r\n ", "").splitlines())
    assert set(told) == {  # what everybody who waits is told, and nothing of a group
        "BEGIN", "END", "VERSION", "PRODID", "UID", "DTSTAMP", "DTSTART", "DTEND", "SUMMARY", "URL",
    }  # fmt: skip
    assert told["URL"] == f"{site.url}/c/{name}"
    answer(first, "2")
    first.get_by_text("you need not come back").wait_for()
    site.answers(name, 1, PEOPLE)
    site.remote().post(f"/campaigns/{name}/waves/1/close?wait=60")
    second.get_by_role("button", name="Look again").click()
    answer(second, "3")
    second.get_by_text("Thank you.").wait_for()
    assert reports(site, name) == 1
    first.reload()
    first.get_by_text("Thank you.").wait_for()  # asked once: the second wave is not for them
    late = window().page()
    for _ in range(40):
        late.goto(f"{site.url}/c/{name}")
        late.locator("#consent, [role=status]:not(:has-text('Loading'))").first.wait_for()
        if late.get_by_text("no question for you").count():
            break
        late = window().page()
    late.get_by_text("The time for your question has passed").wait_for()


def some_of_both_groups(site, window, name):
    """Fresh profiles, until one is asked now and one must wait; a device draws its own group."""
    found = {}
    for _ in range(60):
        page = window().page()
        page.goto(f"{site.url}/c/{name}")
        page.locator("#consent, [role=status]:not(:has-text('Loading'))").first.wait_for()
        found.setdefault(page.locator("#consent").count(), page)
        if len(found) == 2:
            return found[1], found[0]
    raise AssertionError("expected both groups among 60 devices")


@pytest.fixture(params=["blind", "signed"])
def office(request, tmp_path):
    return Office.create(tmp_path / "office", request.param)


@pytest.fixture
def invited(tmp_path, office):
    """A service and an issuer on another origin that answers the service's pages."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    app = make_app(office, [f"http://127.0.0.1:{port}"])
    server = Server(app, "127.0.0.1", 0)
    thread = server.start_thread()
    issuer = f"http://127.0.0.1:{server.port}"
    with running(tmp_path, port=port, issuer=issuer) as site:
        yield site, issuer
    server.ask_to_stop()
    thread.join()


def enter(page, secret):
    page.get_by_label("Invitation code").fill(secret)
    page.get_by_role("button", name="Get the ticket").click()


def test_an_invited_person_answers_with_a_token_once(invited, office, window):
    site, issuer = invited
    name, secret = site.campaign(token=office.token_record), office.roster.enrol(1)[0]
    view = window()
    page = view.page()
    policy = page.goto(f"{site.url}/c/{name[:32]}#{secret}").headers["content-security-policy"]
    assert f"connect-src 'self' {issuer};" in policy  # one other host, and for this page only
    assert issuer not in page.request.get(f"{site.url}/login").headers["content-security-policy"]
    page.get_by_label("Invitation code").wait_for()
    assert page.get_by_label("Invitation code").input_value() == secret  # as a link of a mail merge brings it
    assert "#" not in page.evaluate("location.href")
    enter(page, "not-a-known-secret-at-all")
    page.get_by_text("This code is unknown, or it was used before.").wait_for()
    enter(page, secret)
    answer(page)
    page.get_by_text("Thank you. Your noisy answer was received.").wait_for()
    assert reports(site, name) == 1
    assert office.roster.count() == (1, 1)
    assert secret not in stored(page)
    assert not any(secret in url.partition("#")[0] for url in view.requests)  # what is behind the # is not sent
    assert all(url.startswith((site.url, issuer, "data:")) for url in view.requests)
    other = window().page()  # the same code on another device
    other.goto(f"{site.url}/c/{name}")
    enter(other, secret)
    other.get_by_text("This code is unknown, or it was used before.").wait_for()
    assert reports(site, name) == 1


def test_the_issuer_answers_the_pages_it_was_told_of(invited, office, elsewhere, window):
    _, issuer = invited
    elsewhere.pages["/"] = "<!doctype html><title>x</title>"
    page = window().page()
    page.goto(elsewhere.url)
    body = json.dumps({"secret": office.roster.enrol(1)[0], "message": "00"})
    request = {"method": "POST", "body": body, "headers": {"content-type": "application/json"}}
    assert page.evaluate(FETCH, [f"{issuer}/v1/signatures", request]) is None
    assert office.roster.count() == (1, 0)


def test_a_crash_between_issuer_and_device_costs_no_token(invited, office, window):
    """The issuer's answer is lost: the same code works again on the same device, because the same message is sent."""
    site, issuer = invited
    name, secret = site.campaign(token=office.token_record), office.roster.enrol(1)[0]
    page = window().page()
    page.goto(f"{site.url}/c/{name}")

    def lose(route):
        route.fetch()
        route.abort()

    page.route(f"{issuer}/**", lose)
    enter(page, secret)
    page.get_by_text("cannot be reached").wait_for()
    assert office.roster.count() == (1, 1)
    page.unroute(f"{issuer}/**")
    page.reload()
    enter(page, secret)
    answer(page)
    page.get_by_text("Thank you.").wait_for()
    assert reports(site, name) == 1


def test_another_campaign_than_the_link_says_is_refused(site, window):
    """The page knows the link, whatever the server puts into it."""
    asked, other = site.campaign(), site.campaign(title="For you alone")
    page = window().page()

    def swap(route):
        shown = route.fetch()
        route.fulfill(response=shown, body=shown.text().replace(asked, other))

    page.route("**/c/*", swap)
    page.goto(f"{site.url}/c/{asked[:32]}")
    page.get_by_text("the link belongs to another campaign").wait_for()
    page.goto(f"{site.url}/c/{other[:32]}")
    page.locator("#consent").wait_for()


def test_without_an_issuer_the_page_says_what_to_do(site, window, tmp_path):
    office = Office.create(tmp_path / "office", "blind")
    page = window().page()
    page.goto(f"{site.url}/c/{site.campaign(token=office.token_record)}")
    page.get_by_text("counts invited people only").wait_for()
    assert page.get_by_text("ahead respond").is_visible()
    assert page.locator("input").count() == 0
