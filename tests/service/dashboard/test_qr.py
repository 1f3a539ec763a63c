"""QR codes: known values of the standard, and codes read back by a decoder that shares only masks and path."""

import pytest

from ahead_ldp.service.dashboard import qr
from ahead_ldp.service.dashboard.qr import correction, mask_bit, matrix, multiply, path_of, picture

BLOCKS = {1: (10, 1), 2: (16, 1), 3: (26, 1), 4: (18, 2), 5: (24, 2), 6: (16, 4), 7: (18, 4), 8: (22, 4), 9: (22, 5),
          10: (26, 5), 11: (30, 5), 12: (22, 8), 13: (22, 9), 14: (24, 9), 15: (24, 10)}  # fmt: skip
TOTAL = {1: 26, 2: 44, 3: 70, 4: 100, 5: 134, 6: 172, 7: 196, 8: 242, 9: 292, 10: 346, 11: 404, 12: 466, 13: 532,
         14: 581, 15: 655}  # fmt: skip


def test_error_correction_of_the_standards_example():
    data = [32, 91, 11, 120, 209, 114, 220, 77, 67, 64, 236, 17, 236, 17, 236, 17]
    assert correction(data, 10) == [196, 35, 39, 119, 235, 215, 231, 226, 93, 23]


def is_fixed(version, size, i, j):
    """Whether a module is part of the frame: found by the rules, not by our drawing."""
    if (i < 9 and j < 9) or (i < 9 and j >= size - 8) or (i >= size - 8 and j < 9) or 6 in (i, j):
        return True
    if version >= 7 and ((i < 6 and size - 11 <= j < size - 8) or (j < 6 and size - 11 <= i < size - 8)):
        return True
    centres = qr._CENTRES[version]
    corners = {(6, 6), (6, centres[-1]), (centres[-1], 6)} if centres else set()
    around = [(r, c) for r in centres for c in centres if (r, c) not in corners]
    return any(abs(i - r) <= 2 and abs(j - c) <= 2 for r, c in around)


def decoded(dark):
    """The text of a code; an AssertionError where a check fails."""
    size = len(dark)
    version = (size - 17) // 4
    places = [(8, j) for j in (0, 1, 2, 3, 4, 5, 7, 8)] + [(i, 8) for i in (7, 5, 4, 3, 2, 1, 0)]
    bits = int("".join("01"[dark[i][j]] for i, j in places), 2) ^ 0b101010000010010
    assert bits >> 13 == 0  # M
    mask = bits >> 10 & 7
    assert dark[size - 8][8]
    again = [(size - 1 - i, 8) for i in range(7)] + [(8, size - 8 + j) for j in range(8)]
    assert int("".join("01"[dark[i][j]] for i, j in again), 2) ^ 0b101010000010010 == bits
    read = [dark[i][j] != mask_bit(mask, i, j) for i, j in path_of(size) if not is_fixed(version, size, i, j)]
    words = [int("".join("01"[b] for b in read[k : k + 8]), 2) for k in range(0, 8 * TOTAL[version], 8)]
    count, blocks = BLOCKS[version]
    data_words = TOTAL[version] - count * blocks
    short, longer = data_words // blocks, data_words % blocks
    sizes = [short + (b >= blocks - longer) for b in range(blocks)]
    parts, at = [[] for _ in sizes], 0
    for i in range(max(sizes)):
        for b, length in enumerate(sizes):
            if i < length:
                parts[b].append(words[at])
                at += 1
    checks = [[words[at + i * blocks + b] for i in range(count)] for b in range(blocks)]
    for part, check in zip(parts, checks, strict=True):
        root = 1
        for _ in range(count):  # every root of the generator is one of the codeword
            value = 0
            for word in (*part, *check):
                value = multiply(value, root) ^ word
            assert value == 0
            root = multiply(root, 2)
    text = "".join(f"{word:08b}" for part in parts for word in part)
    assert text[:4] == "0100"
    length = 8 if version < 10 else 16
    n = int(text[4 : 4 + length], 2)
    start = 4 + length
    return bytes(int(text[start + 8 * i : start + 8 * i + 8], 2) for i in range(n)).decode()


@pytest.mark.parametrize("length", [1, 14, 15, 60, 90, 110, 122, 123, 180, 181, 213, 300, 412])
def test_codes_read_back(length):
    text = ("https://survey.example.org/c/" + "0123456789abcdef" * 30)[:length]
    assert decoded(matrix(text)) == text


def test_other_letters_read_back():
    assert decoded(matrix("https://例え.example/ü")) == "https://例え.example/ü"


def test_known_bits():
    seven = matrix("x" * 122)
    assert len(seven) == 45  # version 7, whose information the standard prints
    info = [seven[i // 3][45 - 11 + i % 3] for i in range(18)]
    assert int("".join("01"[b] for b in reversed(info)), 2) == 0b000111110010010100
    finder = ["1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111"]
    assert ["".join("01"[b] for b in row[:7]) for row in seven[:7]] == finder


def test_too_long_is_refused_and_labels_are_escaped():
    with pytest.raises(ValueError, match="at most 412"):
        matrix("x" * 413)
    assert "<b>" not in picture("x", "<b>")
