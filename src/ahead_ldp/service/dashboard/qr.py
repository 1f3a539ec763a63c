"""QR codes of short texts: bytes, error correction M, versions 1 to 15 (ISO/IEC 18004). No other host is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

# Of each version: codewords of error correction in a block, and the data codewords of each block.
_BLOCKS: dict[int, tuple[int, tuple[int, ...]]] = {
    1: (10, (16,)), 2: (16, (28,)), 3: (26, (44,)), 4: (18, (32,) * 2), 5: (24, (43,) * 2), 6: (16, (27,) * 4),
    7: (18, (31,) * 4), 8: (22, (38,) * 2 + (39,) * 2), 9: (22, (36,) * 3 + (37,) * 2), 10: (26, (43,) * 4 + (44,)),
    11: (30, (50,) + (51,) * 4), 12: (22, (36,) * 6 + (37,) * 2), 13: (22, (37,) * 8 + (38,)),
    14: (24, (40,) * 4 + (41,) * 5), 15: (24, (41,) * 5 + (42,) * 5),
}  # fmt: skip
_CENTRES = {
    1: (), 2: (6, 18), 3: (6, 22), 4: (6, 26), 5: (6, 30), 6: (6, 34), 7: (6, 22, 38), 8: (6, 24, 42), 9: (6, 26, 46),
    10: (6, 28, 50), 11: (6, 30, 54), 12: (6, 32, 58), 13: (6, 34, 62), 14: (6, 26, 46, 66), 15: (6, 26, 48, 70),
}  # fmt: skip
_QUIET = 4  # modules around the code

Matrix = list[list[bool]]


def mask_bit(mask: int, row: int, column: int) -> bool:
    """Whether a mask turns a module."""
    i, j = row, column
    return [
        (i + j) % 2, i % 2, j % 3, (i + j) % 3, (i // 2 + j // 3) % 2, i * j % 2 + i * j % 3,
        (i * j % 2 + i * j % 3) % 2, ((i + j) % 2 + i * j % 3) % 2,
    ][mask] == 0  # fmt: skip


def _logarithms() -> tuple[list[int], list[int]]:
    powers, logs, x = [0] * 512, [0] * 256, 1
    for i in range(255):
        powers[i] = powers[i + 255] = x
        logs[x] = i
        x = x << 1 ^ (0x11D if x & 0x80 else 0)
    return powers, logs


_POWERS, _LOGS = _logarithms()


def multiply(a: int, b: int) -> int:
    """A product in the field of 256 elements."""
    return _POWERS[_LOGS[a] + _LOGS[b]] if a and b else 0


def correction(data: Sequence[int], count: int) -> list[int]:
    """The Reed-Solomon codewords of some data."""
    generator = [1]
    for i in range(count):
        shifted = [*generator, 0]
        for k, factor in enumerate(generator):
            shifted[k + 1] ^= multiply(factor, _POWERS[i])
        generator = shifted
    rest = [*data, *[0] * count]
    for i in range(len(data)):
        lead = rest[i]
        for k, factor in enumerate(generator):
            rest[i + k] ^= multiply(factor, lead)
    return rest[len(data) :]


def _codewords(text: bytes, version: int) -> list[int]:
    room = sum(_BLOCKS[version][1])
    length = 8 if version < 10 else 16
    bits = f"0100{len(text):0{length}b}" + "".join(f"{byte:08b}" for byte in text)
    bits += "0" * min(4, 8 * room - len(bits))
    bits += "0" * (-len(bits) % 8)
    data = [int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)]
    data += [(0xEC, 0x11)[i % 2] for i in range(room - len(data))]
    count, sizes = _BLOCKS[version]
    blocks, at = [], 0
    for size in sizes:
        blocks.append(data[at : at + size])
        at += size
    checks = [correction(block, count) for block in blocks]
    woven = [block[i] for i in range(max(sizes)) for block in blocks if i < len(block)]
    return woven + [check[i] for i in range(count) for check in checks]


def _version_for(text: bytes) -> int:
    for version, (_, sizes) in _BLOCKS.items():
        if 4 + (8 if version < 10 else 16) + 8 * len(text) <= 8 * sum(sizes):
            return version
    raise ValueError(f"expected a text of at most 412 bytes for a QR code, got {len(text)}")


@dataclass(slots=True)
class _Drawing:
    size: int
    dark: Matrix
    fixed: Matrix  # what no mask turns

    def put(self, row: int, column: int, dark: bool) -> None:
        """Set a module, if it is inside the picture."""
        if 0 <= row < self.size and 0 <= column < self.size:
            self.dark[row][column], self.fixed[row][column] = dark, True


def _frame(version: int) -> _Drawing:
    size = 17 + 4 * version
    made = _Drawing(size, [[False] * size for _ in range(size)], [[False] * size for _ in range(size)])
    for i in range(size):
        made.put(6, i, i % 2 == 0)
        made.put(i, 6, i % 2 == 0)
    for row, column in ((3, 3), (3, size - 4), (size - 4, 3)):
        for i in range(-4, 5):
            for j in range(-4, 5):
                made.put(row + i, column + j, max(abs(i), abs(j)) not in (2, 4))
    centres = _CENTRES[version]
    for row in centres:
        for column in centres:
            if (row, column) in ((6, 6), (6, centres[-1]), (centres[-1], 6)):
                continue
            for i in range(-2, 3):
                for j in range(-2, 3):
                    made.put(row + i, column + j, max(abs(i), abs(j)) != 1)
    if version >= 7:
        bits = version << 12 | _remainder(version << 12, 0x1F25)
        for i in range(18):
            made.put(i // 3, size - 11 + i % 3, bool(bits >> i & 1))
            made.put(size - 11 + i % 3, i // 3, bool(bits >> i & 1))
    _put_format(made, 0)
    return made


def _remainder(value: int, divisor: int) -> int:
    while value.bit_length() >= divisor.bit_length():
        value ^= divisor << value.bit_length() - divisor.bit_length()
    return value


def _put_format(made: _Drawing, mask: int) -> None:
    data = mask << 10  # M is 00
    bits, last = (data | _remainder(data, 0x537)) ^ 0x5412, made.size - 1
    near = [(i, 8) for i in (0, 1, 2, 3, 4, 5, 7, 8)] + [(8, j) for j in (7, 5, 4, 3, 2, 1, 0)]
    far = [(8, last - j) for j in range(8)] + [(last - 6 + i, 8) for i in range(7)]
    for i in range(15):
        for row, column in (near[i], far[i]):
            made.put(row, column, bool(bits >> i & 1))
    made.put(last - 7, 8, True)


def path_of(size: int) -> Iterator[tuple[int, int]]:
    """Where data stands: up and down in columns of two, from the right."""
    upward = True
    for right in (c for c in range(size - 1, 0, -2)):
        column = right if right > 6 else right - 1
        for row in range(size - 1, -1, -1) if upward else range(size):
            yield row, column
            yield row, column - 1
        upward = not upward


def matrix(text: str) -> Matrix:
    """The modules of a text's code, without the quiet zone."""
    data = text.encode()
    version = _version_for(data)
    bits = iter("".join(f"{word:08b}" for word in _codewords(data, version)))
    base = _frame(version)
    for row, column in path_of(base.size):
        if not base.fixed[row][column]:
            base.dark[row][column] = next(bits, "0") == "1"
    return min((_masked(base, mask) for mask in range(8)), key=_penalty)


def _masked(base: _Drawing, mask: int) -> Matrix:
    turned = [
        [bit != (mask_bit(mask, i, j) and not base.fixed[i][j]) for j, bit in enumerate(row)]
        for i, row in enumerate(base.dark)
    ]
    made = _Drawing(base.size, turned, [list(row) for row in base.fixed])
    _put_format(made, mask)
    return made.dark


def _penalty(dark: Matrix) -> int:
    size, total = len(dark), 0
    for line in (*dark, *map(list, zip(*dark, strict=True))):
        text = "".join("01"[bit] for bit in line)
        runs = text.replace("01", "0 1").replace("10", "1 0").split()
        total += sum(len(run) - 2 for run in runs if len(run) >= 5)
        for pattern in ("10111010000", "00001011101"):
            total += 40 * sum(text.startswith(pattern, i) for i in range(size - 10))
    for i in range(size - 1):
        for j in range(size - 1):
            total += 3 * (dark[i][j] == dark[i][j + 1] == dark[i + 1][j] == dark[i + 1][j + 1])
    share = 100 * sum(map(sum, dark)) / size**2
    return total + 10 * int(abs(share - 50) / 5)


def picture(text: str, label: str) -> Markup:
    """The code as SVG: dark on white, whatever the colours of the page are."""
    dark = matrix(text)
    side = len(dark) + 2 * _QUIET
    rows = [f"M{j + _QUIET} {i + _QUIET}h1v1h-1z" for i, row in enumerate(dark) for j, bit in enumerate(row) if bit]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="qr" viewBox="0 0 {side} {side}" role="img"'
    body = f'<rect width="{side}" height="{side}" fill="#fff"/><path d="{"".join(rows)}" fill="#000"/>'
    return Markup(f'{head} aria-label="{escape(label)}" shape-rendering="crispEdges">{body}</svg>')
