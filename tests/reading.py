"""Flesch's reading ease (1948) of English texts: 60 and above is plain English, which children of 12 or 13 read.

Syllables are counted as groups of vowels, without a silent e at the end; the words in ``tests/test_reading.py`` say how
well that does.
"""

import re

_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")


def syllables(word: str) -> int:
    """The syllables of an English word."""
    word = re.sub(r"ely$", "ly", re.sub(r"'\w+$", "", word.lower()))
    count = len(re.findall(r"[aeiouy]+", word))
    if word.endswith("e") and not re.search(r"[^aeiouy]le$|[aeiouy]e$", word):
        count -= 1
    if re.search(r"[^aeioutd]ed$", word):
        count -= 1
    return max(count + len(re.findall(r"(?<![tsc])i[ao](?!us)|iet", word)), 1)


def flesch(text: str) -> float:
    """206.835 - 1.015 words per sentence - 84.6 syllables per word."""
    sentences = [s for s in re.split(r"[.!?:;]\s|[.!?:;]$|\n", text) if _WORD.search(s)]
    words = _WORD.findall(text)
    return 206.835 - 1.015 * len(words) / len(sentences) - 84.6 * sum(map(syllables, words)) / len(words)
