"""Formulas in the code and on the pages that derive them: each label stands in both."""

import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MECHANISMS = ROOT / "src" / "ahead_ldp" / "mechanisms"
STRICT = MECHANISMS.parent / "estimates" / "strict"
ANALYSIS = MECHANISMS.parent / "estimates" / "analysis"
LIMIT = ROOT / "tools" / "limit"
LETTERS = "AFSQL"  # adaptive, fused, strict intervals, analyses, the limit
LABEL = re.compile(rf"\b[{LETTERS}]\d{{1,2}}\b")


def labels_on_pages(folder: Path = ROOT / "docs" / "derivations") -> list[str]:
    """A formula begins a paragraph with its label in bold."""
    texts = [page.read_text("utf-8") for page in sorted(folder.glob("*.md"))]
    return [label for text in texts for label in re.findall(rf"^\*\*([{LETTERS}]\d{{1,2}})\.\*\*", text, re.MULTILINE)]


def comments(source: str) -> dict[int, str]:
    """The comments of a module by their lines."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def cited(source: str) -> set[str]:
    return {label for comment in comments(source).values() for label in LABEL.findall(comment)}


def test_every_label_in_the_code_is_derived_and_every_derivation_is_in_the_code():
    folders = MECHANISMS / "adaptive", MECHANISMS / "fused", STRICT, ANALYSIS, LIMIT
    files = [path for folder in folders for path in folder.glob("*.py")]
    in_code = set.union(*(cited(path.read_text("utf-8")) for path in [*files, MECHANISMS / "grain.py"]))
    pages = labels_on_pages()
    assert sorted(in_code - set(pages)) == [], "cited, and on no page"
    assert sorted(set(pages) - in_code) == [], "on a page, and cited nowhere"


def test_labels_are_numbered_in_order_without_gaps():
    pages = labels_on_pages()
    for letter in LETTERS:
        numbers = sorted(int(label[1:]) for label in pages if label[0] == letter)
        assert numbers
        assert numbers == list(range(1, len(numbers) + 1))


def test_labels_are_found_in_comments_alone():
    source = 'x = "A1"  # A2: so\n# and (choice F3)\ny = "F44"  # S12, not SS2\n'
    assert cited(source) == {"A2", "F3", "S12"}
