"""Reading ease of the pages that teach, by Rudolf Flesch's formula (1948), and their longest sentences.

`python -m tools.readability` prints one line for each page. Code, tables, headings and the targets of links are left
out. Syllables are counted by groups of vowels, without a dictionary, so the figures are close to those of other
programs and not the same.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tools import docs

VOWELS = re.compile(r"[aeiouy]+")
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*|\d[\d,.]*")
ITEM = re.compile(r"^\s*(?:[-*>]|\d+\.)\s+")
END = re.compile(r"(?<=[.!?])[)\"'”]*\s+(?=[\"'“(]*(?:[A-Z0-9]|code\b))")


@dataclass(frozen=True, slots=True)
class Reading:
    """What was measured of one page."""

    sentences: tuple[str, ...]
    ease: float

    @property
    def longest(self) -> str:
        """The sentence with most words."""
        return max(self.sentences, key=lambda s: len(words(s)), default="")


def words(text: str) -> list[str]:
    """The words of a text; a number is one."""
    return WORD.findall(text)


def syllables(word: str) -> int:
    """Groups of vowels; a silent e at the end, and -ed and -es after most consonants, are none."""
    word = word.lower().strip("'’-")
    if not word or word[0].isdigit():
        return 1
    count = len(VOWELS.findall(word))
    silent_e = re.search(r"[^aeiouy]e$", word) and not re.search(r"[^aeiouy]le$", word)
    if silent_e or re.search(r"[^aeioutd]ed$|[^aeiouscxzgh]es$", word):
        count -= 1
    return max(count, 1)


def paragraphs(text: str) -> list[str]:
    """The running text of a page: without code, tables, headings, comments, HTML and targets of links."""
    found: list[list[str]] = [[]]
    for _, line in docs.prose(re.sub(r"<!-- made: (\w+) -->.*?<!-- end: \1 -->", "", text, flags=re.DOTALL)):
        if not line.strip() or line.lstrip().startswith(("|", "#", "<", "!")):
            found.append([])
            continue
        if ITEM.match(line):
            found.append([])
        found[-1].append(ITEM.sub("", line))
    return [_plain(" ".join(lines)) for lines in found if lines]


def _plain(text: str) -> str:
    text = docs.LINK.sub(lambda m: m[0][m[0].index("[") + 1 : m[0].rindex("](")], text)
    text = re.sub(r"`[^`]*`", "code", text)  # a name of the program is read as one short word
    return re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", text)


def reading(text: str) -> Reading:
    """The sentences of a page and its reading ease: 206.835 - 1.015 words/sentence - 84.6 syllables/word."""
    sentences = tuple(s for p in paragraphs(text) for s in END.split(p) if words(s))
    if not sentences:
        raise ValueError("expected a page with running text, got none")
    said = [word for sentence in sentences for word in words(sentence)]
    ease = 206.835 - 1.015 * len(said) / len(sentences) - 84.6 * sum(map(syllables, said)) / len(said)
    return Reading(sentences, ease)


def taught(root: Path = docs.ROOT) -> list[Path]:
    """The tutorials and the how-to guides: the pages that their sections' toctrees name."""
    found = []
    for section in ("tutorials", "guides"):
        index = root / "docs" / section / "index.md"
        found += [(index.parent / f"{name}.md").resolve() for name in docs.toctree(index.read_text("utf-8"))]
    return found


def main() -> None:
    """Print the ease and the longest sentence of every page that teaches."""
    for page in taught():
        measured = reading(page.read_text("utf-8"))
        longest = measured.longest
        print(f"{measured.ease:5.1f}  {len(words(longest)):3d} words  {page.relative_to(docs.ROOT)}: {longest[:70]}")


if __name__ == "__main__":
    main()
