"""Rational bounds of the exponential by its own series: nothing of the package is used."""

from fractions import Fraction
from functools import cache


@cache
def taylor_bounds(x: Fraction, terms: int = 60) -> tuple[Fraction, Fraction]:
    """``(low, high)`` around exp(x) for x > 0: the series cut off, and with a geometric bound of the rest."""
    total, term = Fraction(0), Fraction(1)
    for k in range(terms):
        total += term
        term *= x / (k + 1)
    ratio = x / (terms + 1)  # every later term is at most this much of the one before
    assert x > 0
    assert ratio < 1
    return total, total + term / (1 - ratio)
