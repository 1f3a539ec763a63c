"""Epsilon as an exact rational, and rational bounds of its exponential."""

from __future__ import annotations

import re
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

_DECIMAL = re.compile(r"[0-9]{1,12}(\.[0-9]{1,30})?")
_PLAIN = Context(prec=28)
_DIGITS = 60
LARGEST = 64  # that is read: above this the word "private" has lost its meaning, and 64-bit words their resolution
LEAST_NEW, MOST_NEW = Fraction(1, 100), Fraction(16)  # of whatever is begun today (docs/limitations.md)


def exact_epsilon(epsilon: float | int | str | Fraction) -> Fraction:
    """The privacy parameter as a rational: a float means the decimal number that Python prints for it."""
    value = _rational(epsilon)
    if not 0 < value <= LARGEST:
        raise ValueError(f"expected 0 < epsilon <= {LARGEST}, got {epsilon!r}")
    return value


def new_epsilon(epsilon: float | int | str | Fraction) -> Fraction:
    """The privacy parameter of a new campaign, simulation or plan, which has narrower limits than one on record."""
    value = _rational(epsilon)
    if not LEAST_NEW <= value <= MOST_NEW:
        raise ValueError(f"expected {float(LEAST_NEW):g} <= epsilon <= {float(MOST_NEW):g}, got {epsilon!r}")
    return value


def parse_epsilon(text: object) -> Fraction:
    """Epsilon from its wire form, a plain decimal string such as ``"1.1"``."""
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise ValueError("expected epsilon to be a plain decimal string")
    if epsilon_text(text) != text:
        raise ValueError("expected epsilon without zeros that say nothing")
    return exact_epsilon(text)


def epsilon_text(epsilon: float | int | str | Fraction) -> str:
    """The wire form of epsilon; a rational that is no short decimal has none and is refused."""
    value = exact_epsilon(epsilon)
    text = format(_PLAIN.divide(Decimal(value.numerator), Decimal(value.denominator)), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    if not _DECIMAL.fullmatch(text) or Fraction(text) != value:
        raise ValueError(f"expected epsilon to be a decimal number of at most 28 digits, got {epsilon!r}")
    return text


def _rational(epsilon: float | int | str | Fraction) -> Fraction:
    try:
        if isinstance(epsilon, bool):
            raise TypeError
        if hasattr(epsilon, "dtype"):  # a NumPy number: it means the decimal number that it prints, as a float does
            return Fraction(str(epsilon))
        return Fraction(repr(float(epsilon))) if isinstance(epsilon, float) else Fraction(epsilon)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise ValueError(f"expected epsilon to be a finite number > 0, got {epsilon!r}") from None


@lru_cache(maxsize=4096)
def exp_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals ``(low, high)`` with low < exp(x) < high, less than 1e-50 apart in ratio."""
    context = Context(prec=_DIGITS)
    quotient = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    middle = Fraction(context.exp(quotient))
    # The division errs by 10**-60 of x, which is at most LARGEST; exp is correctly rounded to 60 digits.
    slack = Fraction(1, 10 ** (_DIGITS - 4))
    return middle * (1 - slack), middle * (1 + slack)
