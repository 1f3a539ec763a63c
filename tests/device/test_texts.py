"""What prints is a table of ours: the same whatever Unicode this Python knows."""

import hashlib
import itertools
import json
import unicodedata
from pathlib import Path

import pytest

from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.texts import UNPRINTABLE, check_name, check_text, is_printable

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "texts.json").read_text("utf-8"))["cases"]


def test_every_code_point_is_as_the_vectors_say():
    printable = [is_printable(chr(code)) for code in range(0x110000)]
    assert sum(printable) == VECTORS[0]["printable"]
    bits = "".join("1" if one else "0" for one in printable)
    assert hashlib.sha256(bits.encode()).hexdigest() == VECTORS[0]["sha256"]


@pytest.mark.parametrize("case", VECTORS[1:], ids=[case["name"] for case in VECTORS[1:]])
def test_names_and_texts(case):
    for check, refused in ((check_name, case["name_refused"]), (check_text, case["text_refused"])):
        if refused:
            with pytest.raises(ValueError, match="expected it"):
                check(case["text"], "it")
        else:
            assert check(case["text"], "it") == case["text"]


def test_finding_18_a_character_that_this_unicode_does_not_know_is_one():
    """U+1FAE8 is newer than Python 3.11's tables, U+107C0 than all of today's: no version of anything decides."""
    for character in ("\U0001fae8", "\U000107c0"):
        assert is_printable(character)
        assert Attribute(f"mood {character}", "nominal", labels=(character, "other")).code(character) == 0


def test_what_any_python_called_printable_still_is():
    """Names of recorded campaigns stay names. The other way round only unassigned characters are new."""
    for code in range(0x110000):
        character = chr(code)
        if character.isprintable():
            assert is_printable(character), hex(code)
        elif is_printable(character):
            assert unicodedata.category(character) == "Cn", hex(code)


def test_ranges_are_in_order_and_apart():
    ranges = sorted(UNPRINTABLE)
    assert all(low <= high for low, high in ranges)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(ranges))
