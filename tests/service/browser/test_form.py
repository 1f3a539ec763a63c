"""The form of a new campaign in a real browser: days, numbers that can be read in two ways, and what cannot work."""

from tests.service.browser.conftest import sign_in
from tests.service.browser.test_dashboard import axe, fits  # noqa: F401 (a fixture)

TEXTS = {"title": "Births", "purpose": "To plan schools.", "controller": "Town", "contact": "t@x.example"}


def test_the_plan_says_what_is_wrong_while_somebody_types(site, window, axe):  # noqa: F811
    page = window(1440).page()
    sign_in(page, site)
    page.goto(f"{site.url}/new")
    plan = page.locator("#plan-text")
    plan.get_by_text("points off").wait_for()
    page.fill("#people", "52.000")
    plan.get_by_text("“52.000” can be read in two ways. Please write 52000 or 52.").wait_for()
    page.fill("#people", "50")
    plan.get_by_text("50 people are too few for this: 139 would do.").wait_for()
    page.fill("#people", "10,000")
    plan.get_by_text("With 10,000 people").wait_for()
    page.fill("#q1_step", "5")
    plan.get_by_text("Make 103 the largest answer, or take other steps.").wait_for()
    page.fill("#q1_to", "98")
    plan.get_by_text("points off").wait_for()
    assert page.locator(".off").text_content().endswith("points")
    assert page.locator(".sure").text_content() == "73 % sure"
    for field, text in TEXTS.items():
        page.fill(f"#{field}", text)
    page.select_option("#close", "both")
    page.fill("#days", "some")
    fits(page, "form", axe)
    page.get_by_role("button", name="Create as a draft").click()
    page.get_by_role("alert").get_by_text("Days: please write a number.").wait_for()
    assert page.input_value("#people") == "10,000"  # as it was typed
    page.fill("#days", "2")
    page.get_by_role("button", name="Create as a draft").click()
    page.get_by_role("heading", name="Births").wait_for()


def test_a_day_is_chosen_from_a_calendar(site, window):
    page = window(360).page()
    sign_in(page, site)
    page.goto(f"{site.url}/new")
    for field, text in {**TEXTS, "q1_question": "When were you born?", "q1_name": "born"}.items():
        page.fill(f"#{field}", text)
    page.select_option("#q1_kind", "day")
    assert page.input_value("#q1_example") == ""  # 42 is no day
    assert page.locator("#q1_unit").is_hidden()
    page.get_by_label("First day").fill("1950-01-01")  # as the browser's own field takes it
    page.get_by_label("Last day").fill("2009-12-31")
    page.get_by_label("Days in a step").fill("30")
    page.get_by_role("button", name="Create as a draft").click()
    page.get_by_text("When were you born? (1950-01-01 to 2009-12-31)").wait_for()


def test_what_was_typed_outlives_a_reload_the_way_back_and_the_visit(site, window):
    view = window(768)
    page = view.page()
    sign_in(page, site)
    page.goto(f"{site.url}/new")
    for field, text in TEXTS.items():
        page.fill(f"#{field}", text)
    page.click("#add-question")
    page.select_option("#q2_kind", "choice")
    for field, text in {"question": "How do you travel?", "name": "way", "choices": "foot\nbus\ncar"}.items():
        page.fill(f"#q2_{field}", text)
    page.check("#q2_optional")
    page.get_by_text("Advanced", exact=True).click()
    page.check("#review")

    def everything_is_there():
        page.locator("#restored").wait_for()
        assert page.input_value("#title") == "Births"
        assert page.input_value("#q2_choices") == "foot\nbus\ncar"
        assert page.locator("#q2_from").is_hidden()
        assert page.is_checked("#q2_optional")
        assert page.is_checked("#review")

    page.reload()
    everything_is_there()
    page.goto(f"{site.url}/")
    page.go_back()
    everything_is_there()
    view.context.clear_cookies()  # as after an hour without use
    page.get_by_role("button", name="Create as a draft").click()
    page.get_by_text("Afterwards you are back on your page.").wait_for()
    page.fill("#token", site.tokens["operator"])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{site.url}/new")
    everything_is_there()
    page.get_by_role("button", name="Create as a draft").click()
    page.get_by_role("heading", name="Births").wait_for()
    page.get_by_text("How do you travel?").wait_for()
    page.goto(f"{site.url}/new")
    page.locator("#plan-text").get_by_text("points off").wait_for()
    assert page.locator("#restored").is_hidden()  # it is kept now: the next one begins empty
    assert page.input_value("#title") == ""


def test_a_form_can_be_begun_anew_and_does_not_outlive_signing_out(site, window):
    page = window(360).page()
    sign_in(page, site)
    page.goto(f"{site.url}/new")
    page.fill("#title", "Births")
    page.reload()
    page.get_by_role("button", name="Begin anew").click()
    page.wait_for_function("document.querySelector('#title').value === ''")
    page.fill("#title", "Deaths")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{site.url}/login")
    assert page.evaluate("sessionStorage.length") == 0
