"""The report as a page and as a PDF: the same contents, text that is text, fonts with every letter, the same bytes."""

import re
import sys
from html import unescape

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.plots.fonts import fonts_for
from ahead_ldp.plots.printed import Printed
from tests.plots.pdf import pdf_text
from tests.service.browser.conftest import chromium

__all__ = ["chromium"]  # a fixture

SCHEMA = ["pay=integer,0,31", "joined=date,2024-01-01,2024-12-30,73", "team=nominal,nord|südost|Łódź"]
ASKED = {"title": "Löhne <2026>, $50–$100", "by": "team", "headings": {"pay": "Was verdienen Sie? (€)"}}


def made(seed, moved=0):
    rng = np.random.default_rng(1)
    team = rng.integers(0, 3, 3000)
    pay = np.clip(rng.normal(10 + 4 * team, 3) + moved, 0, 31).astype(int)
    joined = np.datetime64("2024-01-01") + rng.integers(0, 365, team.size)
    people = {"pay": pay, "joined": joined, "team": np.array(["nord", "südost", "Łódź"])[team]}
    return ahead_ldp.simulate(people, SCHEMA, epsilon=6, method="hdg", seed=seed)


@pytest.fixture(scope="module")
def estimates():
    return made(10), made(11, moved=6)


@pytest.fixture(scope="module")
def page(estimates):
    return ahead_ldp.report_page(estimates[1], "pay >= 20", "team = Łódź", before=estimates[0], kind="model", **ASKED)


@pytest.fixture(scope="module")
def printed(estimates):
    return ahead_ldp.report_pdf(estimates[1], "pay >= 20", "team = Łódź", before=estimates[0], kind="model", **ASKED)


def words(text):
    return set(re.findall(r"[\w.,%+−€Łó]+", text))


def test_both_say_the_same(page, printed):
    body = re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL).partition("<body>")[2]
    said = unescape(re.sub(r"<[^>]+>", " ", body))
    text = pdf_text(printed)
    for sentence in ("A quarter of the people is at or below", "Was verdienen Sie? (€)", "Łódź", ASKED["title"]):
        assert sentence in said
        assert sentence in text.replace("\n", " ")
    assert words(said) - words(text) == set()
    extra = words(text) - words(said)
    assert all(re.fullmatch(r"\d+", word) for word in extra), extra  # numbers of pages


def test_numbers_are_those_of_the_estimate(page, estimates):
    before, after = estimates
    change = ahead_ldp.difference(before, after).ask("pay >= 20", "team = Łódź")
    rows = re.findall(r'<tr><th scope="row">(.*?)</th><td>(.*?)</td>', page)
    assert (
        dict(rows[:2]).items()
        == {
            "pay &gt;= 20": f"{100 * after.ask('pay >= 20').values[0]:.2f} %",
            "team = Łódź": f"{100 * after.ask('team = Łódź').values[0]:.2f} %",
        }.items()
    )
    assert ("pay &gt;= 20", f"+{100 * change.values[0]:.1f}") in rows
    assert "pay changed, with 95 % confidence: another share of people is at or below" in page
    assert page.count("<svg ") == 3 + 1 + 2 + 3  # attributes, queries, means in groups, changes
    assert page.count('role="img" aria-label="') == page.count("<svg ")


def test_numbers_stand_on_one_line(chromium, estimates):
    """Also beside a long query: an interval that is broken leaves a sign of percent alone on a line."""
    asked = "pay >= 20 and joined in 2024-03-01..2024-09-30 and team in {nord, südost}"
    window = chromium.new_page(viewport={"width": 1000, "height": 800})
    window.set_content(ahead_ldp.report_page(estimates[0], "pay >= 20", asked, kind="model"))
    lines = """cells => cells.map(cell => {
        const text = document.createRange(); text.selectNodeContents(cell)
        return new Set([...text.getClientRects()].map(box => Math.round(box.top))).size})"""
    assert set(window.eval_on_selector_all("td", lines)) == {1}
    assert window.evaluate("document.documentElement.scrollWidth <= innerWidth")
    window.close()


def test_a_note_stands_once(page):
    notes = re.findall(r'<p class="notes">(.*?)</p>', page)
    assert notes
    assert len(set(notes)) == len(notes)


def test_a_pdf_is_pages_with_a_title_and_no_date(printed):
    assert printed[:5] == b"%PDF-"
    assert b"/CreationDate" not in printed
    assert b"/Lang" in printed
    assert b"/Outlines" in printed
    pages = len(re.findall(rb"/Type /Page\b", printed))
    assert 3 <= pages <= 5
    assert f"{pages} / " in pdf_text(printed)
    for elsewhere in (b"/URI", b"/JavaScript", b"/EmbeddedFile", b"http"):
        assert elsewhere not in printed


def test_short_contents_are_one_page_and_the_same_bytes():
    ages = np.random.default_rng(3).integers(18, 80, 3000)
    estimate = ahead_ldp.simulate(ages, "age=integer,18,99", epsilon=2, seed=4)
    files = [ahead_ldp.report_pdf(estimate, title="Age", kind="model") for _ in range(2)]
    assert files[0] == files[1]
    assert len(re.findall(rb"/Type /Page\b", files[0])) == 1


def test_people_without_a_value_are_told():
    counts = np.append(np.full(16, 500), 2000)
    schema = "pay=integer,0,15,missing=cell"
    estimate = ahead_ldp.simulate(histogram=counts, schema=schema, epsilon=6, seed=4, method="flat")
    share = 100 * estimate.ask("pay missing").values[0]
    page = ahead_ldp.report_page(estimate)
    assert 18 < share < 22
    assert f"{share:.2f} % of the people gave no value (" in page
    assert ": what follows is about the others. A quarter" in page


def test_letters_that_no_font_has_are_boxes_and_are_told():
    rng = np.random.default_rng(5)
    schema = "team=nominal,a|\ua000"
    people = np.array(["a", "\ua000"])[rng.integers(0, 2, 500)]
    estimate = ahead_ldp.simulate({"team": people}, [schema], epsilon=4, seed=6)
    fonts = fonts_for("aŁóé\ua000")
    if not fonts.missing:
        pytest.skip("this machine has a font with every letter")
    assert fonts.missing == "\ua000"
    assert "Boxes in pictures stand for letters, 1 in all" in ahead_ldp.report_page(estimate, kind="model")
    text = pdf_text(ahead_ldp.report_pdf(estimate, "team = \ua000", kind="model"))
    assert "Boxes stand for letters, 1 in all" in text
    assert "\ua000" in text  # it can still be copied


def test_the_first_font_is_matplotlibs_and_has_the_letters_of_european_languages():
    fonts = fonts_for("äöüßéèêçñ¿¡œŁódźčšžățőΩλЖя€ε≥−")
    assert (len(fonts.families), fonts.missing) == (1, "")


def test_headings_stay_with_what_follows_and_tables_repeat_their_head():
    file = Printed("T", fonts_for(""))
    for i in range(40):
        file.paragraph(f"line {i}")
    file.heading("Last", 2)
    file.picture('<svg width="70" height="70" viewBox="0 0 70 70" xmlns="http://www.w3.org/2000/svg"/>', 0.6, "seen")
    file.table(("name", "share"), [(f"n{i}", "1 %") for i in range(60)])
    text = pdf_text(file.bytes()).split("\n")
    assert text.count("name") >= 2
    assert text[text.index("Last") + 1] == "seen"


def test_without_the_extra_the_error_says_what_to_install(monkeypatch, estimates):
    monkeypatch.setitem(sys.modules, "fpdf", None)
    with pytest.raises(ImportError, match=r"pip install 'ahead-ldp\[pdf\]'"):
        ahead_ldp.report_pdf(estimates[0])
