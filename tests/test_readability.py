"""Tutorials and how-to guides are plain English: Flesch's reading ease, and no long sentence. So are methods' pages."""

from statistics import median

import pytest

from tools import docs, readability

PAGES = readability.taught()
METHODS = sorted((docs.ROOT / "docs" / "methods").rglob("*.md"))
MOST_WORDS = 35


def name(page):
    return page.relative_to(docs.ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_page_is_hard_and_no_sentence_long(page):
    measured = readability.reading(page.read_text("utf-8"))
    assert measured.ease >= 40
    long = [s for s in measured.sentences if len(readability.words(s)) > MOST_WORDS]
    assert long == []


@pytest.mark.parametrize("page", METHODS, ids=name)
def test_the_page_of_a_method_has_no_long_sentence(page):
    long = [s for s in readability.reading(page.read_text("utf-8")).sentences if len(readability.words(s)) > MOST_WORDS]
    assert long == []


def test_the_median_page_is_plain():
    assert len(PAGES) >= 8
    assert median(readability.reading(page.read_text("utf-8")).ease for page in PAGES) >= 50


@pytest.mark.parametrize(
    ("word", "count"),
    [("cat", 1), ("table", 2), ("make", 1), ("noise", 1), ("closed", 1), ("counted", 2), ("privacy", 3), ("2,000", 1)],
)
def test_syllables(word, count):
    assert readability.syllables(word) == count


def test_only_running_text_is_measured():
    prose = "# Extraordinarily\n\nOne `x.y` is [here](there.md). It works!\n"
    text = prose + "\n| a | b |\n\n```text\ncode code\n```\n- An item\n"
    assert readability.reading(text).sentences == ("One code is here.", "It works!", "An item")


def test_hard_text_is_found_hard():
    easy = "The dog ran. It saw a cat. The cat sat."
    hard = "Institutional considerations necessitate multidimensional characterisation of heterogeneous populations."
    assert readability.reading(easy).ease > 100
    assert readability.reading(hard).ease < 0
