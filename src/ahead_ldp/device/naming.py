"""Which of the owner's fields a campaign may mean: names that look alike, whatever was added to them.

This only sorts what the owner is offered. Which field an attribute is, the owner says.
"""

from __future__ import annotations

from collections.abc import Iterable

_ALIKE = 2  # half of the pairs of letters: 2 * common * _ALIKE >= all


def similar_fields(name: str, known: Iterable[str]) -> list[str]:
    """Those of the known fields that look like a name, the most similar first.

    Letters count, in either case; digits, spaces and ASCII punctuation do not, so ``age_2`` looks like ``age``. Names
    are alike if one holds the other, or if they have half of their pairs of letters in common.
    """
    wanted, scores = _letters(name), []
    for place, field in enumerate(known):
        letters = _letters(field)
        common, total = _common(wanted, letters)
        holds = bool(wanted and letters) and (wanted in letters or letters in wanted)
        if field == name or holds or (common and 2 * common * _ALIKE >= total):
            scores.append((field != name, not holds, -1000 * 2 * common // max(total, 1), place, field))
    return [field for *_, field in sorted(scores)]


def _letters(name: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in name if not c.isascii() or c.isalpha())


def _common(a: str, b: str) -> tuple[int, int]:
    """Pairs of neighbouring letters that two words share, and how many they have together."""
    pairs = [{word[i : i + 2] for i in range(len(word) - 1)} for word in (a, b)]
    return len(pairs[0] & pairs[1]), len(pairs[0]) + len(pairs[1])
