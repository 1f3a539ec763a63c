"""What a text may hold: one definition in a table that ships, the same in every Python and in TypeScript.

The table lists what is refused, so it does not grow with Unicode: a character that is assigned next year is a character
like any other today. tests/vectors/texts.json holds both languages to the same answer for every code point.
"""

from __future__ import annotations

import re

# First and last of every range that does not print: controls, spaces but for U+0020, format characters (those that
# change the direction of a text among them), surrogates, private use, noncharacters, and what Unicode reserves for
# characters without a shape. js/src/text.ts has the same table.
UNPRINTABLE = (
    *((0x0000, 0x001F), (0x007F, 0x00A0), (0x00AD, 0x00AD), (0x0600, 0x0605), (0x061C, 0x061C), (0x06DD, 0x06DD)),
    *((0x070F, 0x070F), (0x0890, 0x0891), (0x08E2, 0x08E2), (0x1680, 0x1680), (0x180E, 0x180E), (0x2000, 0x200F)),
    *((0x2028, 0x202F), (0x205F, 0x206F), (0x3000, 0x3000), (0xD800, 0xF8FF), (0xFDD0, 0xFDEF), (0xFEFF, 0xFEFF)),
    *((0xFFF0, 0xFFFB), (0xFFFE, 0xFFFF), (0x110BD, 0x110BD), (0x110CD, 0x110CD), (0x13430, 0x1343F)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE00FF), (0xE01F0, 0xE0FFF), (0xF0000, 0x10FFFF)),
    *((plane << 16 | 0xFFFE, plane << 16 | 0xFFFF) for plane in range(1, 15)),
)
_UNPRINTABLE = re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in UNPRINTABLE) + "]")
LONGEST_NAME = 200
LONGEST_TEXT = 10_000


def is_printable(text: str) -> bool:
    """Whether every character of a text can be seen, or is U+0020."""
    return _UNPRINTABLE.search(text) is None


def check_name(name: object, what: str) -> str:
    """The name itself if it is short and printable, without spaces around; else a ``ValueError``."""
    if (
        not isinstance(name, str)
        or not 1 <= len(name) <= LONGEST_NAME
        or not is_printable(name)
        or name != name.strip(" ")
    ):
        rule = f"1 to {LONGEST_NAME} printable characters without spaces around"
        raise ValueError(f"expected {what} to be {rule}, got {name!r}")
    return name


def check_text(value: object, name: str) -> str:
    """The value itself if it is a text for people: not empty, not endless, printable but for the ends of lines."""
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_TEXT:
        raise ValueError(f"expected {name} to be a text of 1 to {LONGEST_TEXT} characters")
    if not is_printable(value.replace("\n", "")):
        raise ValueError(f"expected {name} without control characters")
    return value
