"""The probability of a payload given a value, written down from each randomiser's definition.

Nothing here is shared with the package except the integers that fix a law. A law that is registered needs its
line in ``CLOSED_FORMS`` and small examples in ``SMALL``.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb

from ahead_ldp.device.laws import GRRLaw, HaarLaw, HRRLaw, Law, OLHLaw, OUELaw, SSLaw, SUELaw, SWLaw

P = 2**31 - 1


def two_levels(law: Law, near: bool, inside: int, outside: int) -> Fraction:
    p = Fraction(law.keep, 2**law.bits)  # type: ignore[attr-defined]
    return p / inside if near else (1 - p) / outside


def bits_of(payload: bytes, cells: int) -> list[int]:
    return [payload[i // 8] >> (i % 8) & 1 for i in range(cells)]


def grr(law: GRRLaw, code: int, payload: bytes) -> Fraction:
    return two_levels(law, int.from_bytes(payload, "big") == code, 1, law.cells - 1)


def unary(p: Fraction, q: Fraction, law: Law, code: int, payload: bytes) -> Fraction:
    probability = Fraction(1)
    for i, bit in enumerate(bits_of(payload, law.cells)):
        one = p if i == code else q
        probability *= one if bit else 1 - one
    return probability


def oue(law: OUELaw, code: int, payload: bytes) -> Fraction:
    return unary(Fraction(1, 2), Fraction(law.q_num, 2**law.bits), law, code, payload)


def sue(law: SUELaw, code: int, payload: bytes) -> Fraction:
    p = Fraction(law.p_num, 2**law.bits)
    return unary(p, 1 - p, law, code, payload)


def olh(law: OLHLaw, code: int, payload: bytes) -> Fraction:
    """Given the coefficients."""
    a, b, c = (int.from_bytes(payload[i : i + 4], "big") for i in (0, 4, 8))
    place = Fraction((a * code**2 + b * code + c) % P, P)
    hashed = next(h for h in range(law.g) if Fraction(h, law.g) <= place < Fraction(h + 1, law.g))
    return two_levels(law, int.from_bytes(payload[12:], "big") == hashed, 1, law.g - 1)


def ss(law: SSLaw, code: int, payload: bytes) -> Fraction:
    others = law.cells - 1
    own = bits_of(payload, law.cells)[code] == 1
    return two_levels(law, own, comb(others, law.w - 1), comb(others, law.w))


def hadamard(order: int) -> list[list[int]]:
    """Sylvester's matrix: [[H, H], [H, -H]]."""
    if order == 1:
        return [[1]]
    half = hadamard(order // 2)
    return [row + row for row in half] + [row + [-x for x in row] for row in half]


def hrr_order(law: HRRLaw | HaarLaw) -> int:
    """How many rows a report may name: one for each cell or, of Haar, for each pair of cells; a power of two."""
    order, each = 1, 2 if isinstance(law, HaarLaw) else 1
    while order * each < law.cells:
        order *= 2
    return order


def hrr(law: HRRLaw, code: int, payload: bytes) -> Fraction:
    """Given the row."""
    row, negative = divmod(int.from_bytes(payload, "big"), 2)
    return two_levels(law, hadamard(hrr_order(law))[row][code] == 1 - 2 * negative, 1, 1)


def haar(law: HaarLaw, code: int, payload: bytes) -> Fraction:
    """Given the row, which is an odd one of the matrix on all cells."""
    row, negative = divmod(int.from_bytes(payload, "big"), 2)
    return two_levels(law, hadamard(2 * hrr_order(law))[2 * row + 1][code] == 1 - 2 * negative, 1, 1)


def sw(law: SWLaw, code: int, payload: bytes) -> Fraction:
    outcome = int.from_bytes(payload, "big") - law.b  # on the value's own scale
    return two_levels(law, abs(outcome - code) <= law.b, 2 * law.b + 1, law.cells - 1)


CLOSED_FORMS: dict[str, Callable[..., Fraction]] = {
    "grr": grr,
    "oue": oue,
    "sue": sue,
    "olh": olh,
    "ss": ss,
    "hrr": hrr,
    "sw": sw,
    "haar": haar,
}

# Small words, with rejection (5 does not divide 2**4) and without it; a law that draws nothing but its coin too.
SMALL: dict[str, list[Law]] = {
    "grr": [GRRLaw(2, 5, 21), GRRLaw(3, 4, 11), GRRLaw(4, 4, 9), GRRLaw(6, 4, 5), GRRLaw(5, 3, 1)],
    "oue": [OUELaw(2, 5, 7), OUELaw(3, 4, 3), OUELaw(4, 3, 1)],
    "sue": [SUELaw(2, 5, 20), SUELaw(3, 4, 13), SUELaw(4, 3, 7)],
    "olh": [OLHLaw(4, 4, 9, 3), OLHLaw(5, 5, 20, 4), OLHLaw(3, 3, 5, 2)],
    "ss": [SSLaw(5, 2, 3, 2), SSLaw(5, 3, 5, 1), SSLaw(4, 2, 3, 2), SSLaw(5, 2, 3, 3), SSLaw(3, 2, 3, 2)],
    "hrr": [HRRLaw(2, 5, 23), HRRLaw(5, 4, 11), HRRLaw(8, 3, 5)],
    "sw": [SWLaw(4, 4, 11, 1), SWLaw(5, 4, 9, 2), SWLaw(3, 3, 5, 0), SWLaw(2, 4, 13, 1)],
    "haar": [HaarLaw(2, 5, 23), HaarLaw(3, 4, 9), HaarLaw(5, 4, 11), HaarLaw(8, 3, 5)],
}

COEFFICIENTS = [
    (0, 0, 0),
    (0, 1, 0),
    (1, 0, P - 1),
    (P - 1, 1234567890, 7),
    (314159265, 271828182, 141421356),
]


def wide_words(law: Law) -> Sequence[tuple[int, ...]]:
    """The 32-bit words that come before the small ones. Reports carry what they choose: coefficients or a row.

    They are independent of the value, so privacy is that of the rest, given them.
    """
    if isinstance(law, OLHLaw):
        return COEFFICIENTS
    if isinstance(law, HRRLaw | HaarLaw) and hrr_order(law) > 1:
        return [(row,) for row in range(hrr_order(law))]
    return [()]
