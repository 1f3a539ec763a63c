"""A person in a real browser: answers once, reloads, opens two tabs, loses the network, meets hostile questions."""

import pytest

from ahead_ldp.device.canonical import canonical_bytes, parse_canonical
from tests.service.browser.conftest import stored

VALUE = "73"


def agree(page):
    """Consent, and then that what is asked is what the page offers: a new thing at first, the same thing later on."""
    page.locator("#consent").check()
    page.get_by_role("button", name="Continue").click()
    page.locator("#field-0").wait_for()
    page.get_by_role("button", name="Continue").click()


def answer(page, value=VALUE):
    agree(page)
    page.locator("input[data-number]").fill(value)
    send(page)


def send(page):
    """Answer, and say that what the page repeats is right."""
    page.get_by_role("button", name="Answer", exact=True).click()
    page.get_by_role("button", name="Yes, answer").click()


def reports(site, name):
    return site.remote().get(f"/campaigns/{name}/progress")["reports"]


def test_a_person_answers_once_and_can_withdraw(site, window):
    name, view = site.campaign(), window()
    page = view.page()
    page.goto(f"{site.url}/c/{name}")
    page.get_by_text("The town of Sampletown").wait_for()
    assert page.get_by_role("button", name="Continue").is_disabled()  # consent comes first
    assert page.locator("input[data-number]").count() == 0
    assert page.get_by_text("kept until 30 days after the survey ends").is_visible()
    assert page.get_by_text("a random number that tells that somebody took part").is_visible()
    assert page.locator("#field-0").count() == 0  # nothing is mapped before consent
    answer(page)
    page.get_by_text("Thank you. Your noisy answer was received.").wait_for()
    assert reports(site, name) == 1
    assert page.get_by_text("Exactly what was sent").is_visible()
    page.get_by_text("In all ε 1 of 20 in a lifetime; 19 is left.").wait_for()
    assert page.get_by_text("ε 1 to The town of Sampletown, “Travel to work”").is_visible()
    page.reload()
    page.get_by_text("Thank you. Your noisy answer was received.").wait_for()
    assert page.locator("#consent").count() == 0
    page.get_by_role("button", name="Withdraw my answer").click()
    page.get_by_text("Your answer was withdrawn.").wait_for()
    assert reports(site, name) == 0
    assert all(url.startswith((site.url, "data:")) for url in view.requests), view.requests
    assert not [line for line in view.console if "error" in line.lower()], view.console


def test_whoever_loads_the_page_again_before_answering_has_given_nothing_away(site, window):
    """The report is promised before the value is asked, and the page said of it: given away, and not again."""
    name, page = site.campaign(), window().page()
    page.goto(f"{site.url}/c/{name}")
    agree(page)
    page.locator("input[data-number]").fill(VALUE)
    page.get_by_role("button", name="Answer", exact=True).click()
    page.get_by_role("button", name="Yes, answer").wait_for()
    page.reload()
    page.locator("#consent").check()
    assert page.get_by_text("given away so far").count() == 0
    page.get_by_role("button", name="Continue").click()
    page.locator("input[data-number]").fill(VALUE)
    send(page)
    page.get_by_text("Thank you. Your noisy answer was received.").wait_for()
    page.get_by_text("ε 1 to The town of Sampletown, “Travel to work”").wait_for()
    assert reports(site, name) == 1


def test_the_value_is_nowhere(site, window):
    """Not in an address, not in what is kept, not on the console, before or after; and not left in the page."""
    name, view = site.campaign(["age=integer,10000,99999,64"]), window()
    page, value = view.page(), "31337"
    page.goto(f"{site.url}/c/{name}")
    answer(page, value)
    page.get_by_text("Thank you.").wait_for()
    assert not any(value in url for url in view.requests)
    assert value not in stored(page)
    assert value not in "".join(view.console)
    assert value not in page.content()
    body = [value in r for r in (stored(page), page.locator("ahead-participant").inner_text())]
    assert body == [False, False]


def test_two_tabs_cannot_answer_twice(site, window):
    name, view = site.campaign(), window()
    one, two = view.page(), view.page()
    for page in (one, two):
        page.goto(f"{site.url}/c/{name}")
        page.locator("#consent").check()
        page.get_by_role("button", name="Continue").click()
        page.locator("#field-0").wait_for()
    for page in (one, two):
        page.get_by_role("button", name="Continue").click()
        page.locator("input[data-number]").fill(VALUE)
    send(one)
    one.get_by_text("Thank you.").wait_for()
    send(two)
    two.get_by_text("Thank you.").wait_for()
    assert reports(site, name) == 1
    shown = [page.locator("code").last.inner_text() for page in (one, two)]
    assert shown[0] == shown[1]  # one receipt


def test_finding_10_a_renamed_attribute_is_the_same_thing(site, window):
    """What looks like a thing that was asked is offered as that; saying so, or being unsure, gets no second report."""
    page = window().page()
    page.goto(f"{site.url}/c/{site.campaign()}")
    answer(page)
    page.get_by_text("Thank you.").wait_for()
    for change in ("age_2", "Age (years)"):
        name = site.campaign([f"{change}=integer,18,99"])
        page.goto(f"{site.url}/c/{name}")
        page.locator("#consent").check()
        page.get_by_role("button", name="Continue").click()
        assert page.locator("#field-0 option:checked").inner_text() == "age"
        page.get_by_role("button", name="Continue").click()
        page.get_by_text("answered about “age” before").wait_for()
        assert page.locator("input[data-number]").count() == 0
        assert reports(site, name) == 0
    name = site.campaign(["rooms=integer,1,4"])
    page.goto(f"{site.url}/c/{name}")
    page.locator("#consent").check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("Please check “rooms”").wait_for()  # nothing looks like it, so nothing is chosen for the person
    page.locator("#field-0").select_option("unsure")
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("This device does not answer").wait_for()
    name = site.campaign(["rooms=integer,1,4"], title="Again")
    page.goto(f"{site.url}/c/{name}")
    page.locator("#consent").check()
    page.get_by_role("button", name="Continue").click()
    page.locator("#field-0").select_option("new")
    page.get_by_label("My own name for it").fill("rooms of mine")
    page.get_by_role("button", name="Continue").click()
    page.locator("input[data-number]").fill("2")
    send(page)
    page.get_by_text("“rooms of mine”: ε 1, and not again").wait_for()
    assert reports(site, name) == 1


def test_names_of_one_campaign_that_look_alike_are_one_thing(site, window):
    page = window().page()
    page.goto(f"{site.url}/c/{site.campaign(['age=integer,18,33', 'age_0=integer,18,33'], method={'name': 'hdg'})}")
    page.locator("#consent").check()
    page.get_by_role("button", name="Continue").click()
    assert page.locator("#field-1 option:checked").inner_text() == "the same as “age” above"
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Answer").wait_for()
    assert "age_0" in stored(page)
    kept = page.evaluate(
        """async () => {
          const opened = indexedDB.open("ahead-ldp");
          const database = await new Promise((ok) => { opened.onsuccess = () => ok(opened.result); });
          const found = database.transaction("book").objectStore("book").get("book");
          const book = await new Promise((ok) => { found.onsuccess = () => ok(found.result); });
          const [mapping, report] = [book.mappings, book.reports].map((part) => Object.values(part)[0]);
          return [mapping, book.charges.map((charge) => charge.field), report.state];
        }"""
    )
    assert kept == [[["age", "age"], ["age_0", "age"]], ["age"], "reserved"]  # promised before a value is asked for


def test_a_lost_network_keeps_the_same_bytes(site, window):
    name, view = site.campaign(), window()
    page, bodies = view.page(), []
    page.goto(f"{site.url}/c/{name}")

    def lose(route):
        bodies.append(route.request.post_data_buffer)
        route.abort()

    page.route("**/reports", lose)
    answer(page)
    page.get_by_text("kept on this device").wait_for()
    page.get_by_text("Exactly what will be sent").wait_for()
    assert page.get_by_text("Exactly what was sent").count() == 0
    assert reports(site, name) == 0
    page.get_by_role("button", name="Send now").click()
    page.wait_for_timeout(300)
    page.unroute("**/reports")

    def keep(route):
        bodies.append(route.request.post_data_buffer)
        route.continue_()

    page.route("**/reports", keep)
    page.reload()
    page.get_by_role("button", name="Send now").click()
    page.get_by_text("Thank you.").wait_for()
    assert len(bodies) >= 3
    assert len(set(bodies)) == 1
    assert reports(site, name) == 1


HOSTILE = {
    "another price": lambda q: {**q, "epsilon": "0.5"},
    "another campaign": lambda q: {**q, "campaign": "0" * 64},
    "a coin that always shows the truth": lambda q: {**q, "oracle": {**q["oracle"], "q_num": "1"}},
    "cells that are not a partition": lambda q: {**q, "partition": {"form": "grid", "cuts": [[3, 3]]}},
    "another wave": lambda q: {**q, "wave": 2},
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_question_is_refused_before_the_value(site, window, how):
    name, view = site.campaign(method={"name": "ahead", "choices": {"oracle": "oue"}}), window()
    page = view.page()

    def spoil(route):
        record = parse_canonical(route.fetch().body())
        record["questions"] = [HOSTILE[how](q) for q in record["questions"]]
        route.fulfill(status=200, content_type="application/json", body=canonical_bytes(record))

    page.route("**/waves/1", spoil)
    page.goto(f"{site.url}/c/{name}")
    page.get_by_text("This device does not answer").wait_for()
    assert page.locator("input").count() == 0
    assert not any("/reports" in url for url in view.requests)


def test_a_changed_campaign_is_refused(site, window):
    name, view = site.campaign(), window()
    page = view.page()

    def spoil(route):
        record = parse_canonical(route.fetch().body())
        route.fulfill(status=200, body=canonical_bytes({**record, "minimum": 11}))

    page.route(f"**/v1/campaigns/{name}", spoil)
    page.goto(f"{site.url}/c/{name}")
    page.get_by_text("This device does not answer").wait_for()


def test_an_insecure_page_refuses(site, window):
    """Without a secure context there is no generator to trust and no ledger: the page says so and asks nothing."""
    name, view = site.campaign(), window()
    page = view.page()
    page.add_init_script("Object.defineProperty(globalThis, 'isSecureContext', { value: false })")
    page.goto(f"{site.url}/c/{name}")
    page.get_by_text("not a secure context").wait_for()
    assert page.locator("input").count() == 0


CONTROLS = {
    "pay=real,0,100,16": ("input[data-number]", "12.5"),
    "born=date,1950-01-01,2010-12-31,12": ("input[type=date]", "1990-05-17"),
    "wakes=time,00:00,23:59,24": ("input[type=time]", "06:30"),
    "size=category,S|M|L": ("label:has-text('M') input[type=radio]", None),
}


@pytest.mark.parametrize("attribute", CONTROLS)
def test_each_kind_has_its_control(site, window, attribute):
    name, (selector, value) = site.campaign([attribute]), CONTROLS[attribute]
    page = window().page()
    page.goto(f"{site.url}/c/{name}")
    agree(page)
    page.get_by_role("button", name="Answer").click()
    page.get_by_text("Please answer").wait_for()  # nothing was entered: said, and nothing is sent
    assert reports(site, name) == 0
    page.locator(selector).first.check() if value is None else page.locator(selector).fill(value)
    send(page)
    page.get_by_text("Thank you.").wait_for()
    assert reports(site, name) == 1


def test_names_cannot_inject(site, window):
    bad = "<img src=x onerror=alert(1)>"
    name, view = (
        site.campaign(["<i>age</i>=integer,0,9"], title=f"T {bad}", purpose=bad, texts={"consent": bad}),
        window(),
    )
    page = view.page()
    page.goto(f"{site.url}/c/{name}")
    page.get_by_role("heading", name="T <img").wait_for()
    page.get_by_text("<i>age</i>").wait_for()
    assert page.locator("ahead-participant img").count() == page.locator("ahead-participant i").count() == 0
    assert not any(url.endswith("/x") for url in view.requests)


def test_a_closed_campaign_and_a_waiting_panel_say_so(site, window):
    name = site.campaign()
    site.remote().post(f"/campaigns/{name}/void")
    page = window().page()
    page.goto(f"{site.url}/c/{name}")
    page.get_by_text("This survey is over.").wait_for()
    page.goto(f"{site.url}/c/{'0' * 64}")
    page.get_by_text("does not know this survey").wait_for()


def test_what_is_refused_is_said_in_plain_words(site, window):
    page = window().page()
    page.goto(f"{site.url}/c/{site.campaign()}")
    answer(page)
    page.get_by_text("Thank you.").wait_for()
    page.goto(f"{site.url}/c/{site.campaign(title='The same thing again')}")
    page.get_by_text("ε 1 to The town of Sampletown").wait_for()
    agree(page)
    page.get_by_text("answered about “age” before, in another survey").wait_for()
    for change, said in (
        ({"epsilon": "9"}, "asks for more than this page gives away"),
        ({"minimum": 5}, "groups of fewer than 10 people"),
    ):
        page.goto(f"{site.url}/c/{site.campaign(**change)}")
        page.get_by_text(said).wait_for()
        assert page.get_by_text("Your value was not asked for").is_visible()
        assert page.locator("input").count() == 0


def test_the_keyboard_is_enough_and_the_focus_follows(site, window):
    name = site.campaign()
    page = window().page()
    page.goto(f"{site.url}/c/{name}")
    page.locator("#consent").wait_for()
    for key in ("Tab", "Space", "Tab", "Enter"):
        page.keyboard.press(key)
    page.locator("#field-0").wait_for()
    for key in ("Tab", "Tab", "Tab", "Enter"):  # the list, the name, the button
        page.keyboard.press(key)
    page.locator("input[data-number]").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.type("50")
    page.keyboard.press("Enter")
    page.get_by_text("Is this right?").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Thank you.").wait_for()
    focused = "document.querySelector('ahead-participant').shadowRoot.activeElement?.className"
    assert page.evaluate(focused) == "card"
    assert reports(site, name) == 1
