"""What people read before they consent is plain English, and so is what analysts read first."""

import re
from pathlib import Path

import pytest

from tests.reading import flesch, syllables

ROOT = Path(__file__).resolve().parent.parent
ENGLISH = (ROOT / "js" / "src" / "languages" / "en.ts").read_text("utf-8")
TEMPLATES = ROOT / "src" / "ahead_ldp" / "service" / "dashboard" / "templates"
LEAST = 60
JARGON = [
    r"digest", r"\bwaves?\b", r"1-2\.again", r"\bscreens?\b", "below zero together", "walk-in", r"\bvoid\b",
    r"\btiers?\b", "zipf", "bumps", "heaped", "density assumed",
]  # fmt: skip


@pytest.mark.parametrize(
    "word, count",
    [("answer", 2), ("noise", 1), ("people", 2), ("deleted", 3), ("question", 2), ("survey", 2), ("table", 2),
     ("likely", 2), ("asked", 1), ("device", 2), ("quiet", 2), ("social", 2), ("radio", 3), ("closed", 1)],
)  # fmt: skip
def test_syllables(word, count):
    assert syllables(word) == count


def test_flesch_tells_plain_from_heavy():
    assert flesch("The cat sat on the mat. It was warm.") > 100
    heavy = "The utilisation of probabilistic perturbation methodologies necessitates mathematical sophistication."
    assert flesch(heavy) < 0


def texts():
    """Every sentence of the English file, with something in place of what is filled in."""
    body = ENGLISH[ENGLISH.index("const texts") :].split("refused: {")
    source = body[0] + body[1].split("} as")[1]
    found = re.findall(r"\"((?:[^\"\\]|\\.)*)\"|`([^`]*)`", source)
    filled = [re.sub(r"\$\{[^}]*\}", "two", a or b) for a, b in found]
    return [text for text in filled if text.count(" ") >= 4]


def test_the_participants_texts_are_plain():
    listed = texts()
    assert len(listed) > 30
    assert flesch(". ".join(text.strip(". ") for text in listed) + ".") >= LEAST
    long = {text: flesch(text) for text in listed if text.count(" ") >= 25}
    assert len(long) >= 5
    assert min(long.values()) >= LEAST, min(long, key=long.get)


def test_no_jargon_on_the_participants_page():
    words = "\n".join(re.findall(r"[\"`]([^\"`]*)[\"`]", ENGLISH.split("refused: {")[0]))
    assert [word for word in JARGON if re.search(word, words, re.I)] == []
