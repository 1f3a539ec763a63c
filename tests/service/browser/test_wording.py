"""Questions in the campaign's words, in the person's language, with a number repeated before the one draw."""

import pytest

from tests.service.browser.conftest import stored
from tests.service.browser.test_participant import agree, reports, send

SALARY = {
    "attribute": "salary",
    "question": "What do you earn in a year, before tax?",
    "unit": "euro a year",
    "help": "Count bonuses.\nLeave out gifts.",
    "example": "52000",
    "outside": "nearest",
}
PAY = "salary=integer,0,200000,80"


def opened(page, site, name, go="Continue"):
    page.goto(f"{site.url}/c/{name}")
    page.locator("#consent").check()
    page.get_by_role("button", name=go, exact=True).click()
    page.locator("#field-0").wait_for()
    page.get_by_role("button", name=go, exact=True).click()
    page.locator("#value-0").wait_for()


def test_the_question_is_asked_as_it_was_written_and_a_german_number_is_read_as_one(site, window):
    name, view = site.campaign([PAY], wording=[SALARY]), window(locale="de-DE")
    page = view.page()
    page.goto(f"{site.url}/c/{name}")
    page.get_by_text("Was Sie gefragt werden").wait_for()
    page.get_by_text(SALARY["question"]).wait_for()
    assert page.locator("#unread").inner_text().startswith("Diese Übersetzung")
    assert page.get_by_text("2,7-mal so wahrscheinlich").is_visible()
    opened(page, site, name, "Weiter")
    assert page.locator("label[for=value-0]").inner_text() == SALARY["question"]
    for text in (
        "euro a year",
        "Leave out gifts.",
        "Zum Beispiel: 52.000",  # as people write numbers where they are
        "von 0 bis 200.000",
        "der nähere der beiden",
    ):
        assert page.get_by_text(text).first.is_visible()
    page.locator("#value-0").fill("52.000")
    page.get_by_role("button", name="Antworten").click()
    assert page.locator(".repeated").inner_text() == "52.000 euro a year (52 Tausend)"
    assert reports(site, name) == 0
    assert '"state":"reserved"' in stored(page).replace("\\", "").replace(" ", "")  # promised; drawn after the yes
    page.get_by_role("button", name="Ändern").click()
    page.locator("#value-0").fill("312.345")  # above the range: counts as the nearer end, and says so
    page.get_by_role("button", name="Antworten").click()
    assert page.locator(".repeated").inner_text() == "200.000 euro a year (200 Tausend)"
    page.get_by_role("button", name="Ja, antworten").click()
    page.get_by_text("Danke. Ihre verrauschte Antwort ist angekommen.").wait_for()
    assert reports(site, name) == 1
    for where in (stored(page), page.content(), "".join(view.console), "".join(view.requests)):
        assert "312.345" not in where
        assert "312345" not in where


def test_names_stand_below_their_questions_and_each_text_runs_in_its_own_direction(site, window):
    """Whoever maps "salary" has not read the question yet. A full stop stands at the left end of an Arabic sentence."""
    purpose = "لمعرفة الرواتب."
    name = site.campaign([PAY, "town=nominal,A|B"], wording=[SALARY], purpose=purpose)
    page = window().page()
    page.goto(f"{site.url}/c/{name}")
    side = """(dd, end) => {
      const range = document.createRange();
      range.setStart(dd.firstChild, end - 1);
      range.setEnd(dd.firstChild, end);
      return range.getBoundingClientRect().left - dd.getBoundingClientRect().left;
    }"""
    said = page.locator("dd", has_text=purpose)
    width = said.evaluate("dd => dd.getBoundingClientRect().width")
    last, first = (said.evaluate(f"dd => ({side})(dd, {end})") for end in (len(purpose), 1))
    assert last < first
    assert first > width / 2  # the sentence begins at the right
    page.locator("#consent").check()
    page.get_by_role("button", name="Continue").click()
    page.locator("#field-0").wait_for()
    asked = page.locator(".asked").all_inner_texts()
    assert asked == [SALARY["question"]]  # the other attribute has no words
    assert page.locator(".asked + label[for=field-0]").count() == 1


def test_what_can_be_read_in_two_ways_is_asked_back(site, window):
    name = site.campaign([PAY], wording=[{**SALARY, "unit": "euro"}])
    page = window().page()
    opened(page, site, name)
    page.locator("#value-0").fill("52.000")
    page.get_by_role("button", name="Answer", exact=True).click()
    page.get_by_text("This can be read in two ways").wait_for()
    assert page.get_by_role("button", name="Yes, answer").count() == 0
    page.get_by_label("52,000 (52 thousand)").check()
    page.get_by_role("button", name="Answer", exact=True).click()
    assert page.locator(".repeated").inner_text() == "52,000 euro (52 thousand)"
    page.get_by_role("button", name="Change it").click()
    for text, said in {"many": "Please write a number.", "5.5": "Please write a whole number."}.items():
        page.locator("#value-0").fill(text)
        page.get_by_role("button", name="Answer", exact=True).click()
        page.get_by_text(said).wait_for()
    page.locator("#value-0").fill("7")
    send(page)
    page.get_by_text("Thank you.").wait_for()


def test_choices_have_texts_and_the_label_is_what_counts(site, window):
    words = {"attribute": "size", "question": "How large is your firm?", "choices": ["1 to 9", "10 to 99", "more"]}
    name = site.campaign(["size=category,S|M|L"], wording=[words], method=None)
    page = window().page()
    page.goto(f"{site.url}/c/{name}")
    agree(page)
    page.get_by_label("10 to 99").check()
    page.get_by_role("button", name="Answer", exact=True).click()
    assert page.locator(".repeated").inner_text() == "10 to 99"
    page.get_by_role("button", name="Yes, answer").click()
    page.get_by_text("Thank you.").wait_for()
    sent = int(page.locator("code").first.inner_text(), 16)  # this noisy answer is one choice, and is said as one
    page.get_by_text(f"Your noisy answer says: “{words['choices'][sent]}”. Noise may have picked it.").wait_for()


def test_why_only_some_of_several_are_asked(site, window):
    three = [PAY, "age=integer,18,33", "rooms=integer,1,8"]
    page = window().page()
    page.goto(f"{site.url}/c/{site.campaign(three, method={'name': 'hdg'}, wording=[SALARY])}")
    page.get_by_text("This survey has 3 questions. You get only").wait_for()
    page.get_by_text("picked by chance").wait_for()


def test_words_and_languages_cannot_inject(site, window):
    bad = "<img src=x onerror=alert(1)>"
    words = {"attribute": "size", "question": bad, "unit": "", "help": bad, "choices": [f"{bad} {i}" for i in range(3)]}
    name = site.campaign(["size=category,S|M|L"], wording=[{k: v for k, v in words.items() if v}])
    view = window()
    page = view.page()
    page.add_init_script(
        "Object.defineProperty(navigator, 'languages', { get: () => ['__proto__', '<b>', 'constructor'] })"
    )
    page.goto(f"{site.url}/c/{name}")
    page.get_by_text(bad).first.wait_for()
    agree(page)
    page.get_by_label(f"{bad} 1").check()
    page.get_by_role("button", name="Answer", exact=True).click()
    assert page.locator(".repeated").inner_text() == f"{bad} 1"
    assert page.locator("img").count() == 0
    assert not [url for url in view.requests if not url.startswith((site.url, "data:"))]


@pytest.mark.parametrize("locale, said", [("fr-FR", "Qui demande"), ("es-MX", "Quién pregunta"), ("zh-CN", "谁在提问")])
def test_the_browser_chooses_the_language_and_the_person_can_change_it(site, window, locale, said):
    page = window(locale=locale).page()
    page.goto(f"{site.url}/c/{site.campaign()}")
    page.get_by_text(said, exact=True).wait_for()
    page.locator("#language").select_option("en")
    page.get_by_text("Who asks").wait_for()
    assert page.locator("#unread").count() == 0
