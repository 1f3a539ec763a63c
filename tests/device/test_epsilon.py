from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device.epsilon import LARGEST, epsilon_text, exact_epsilon, exp_bounds, parse_epsilon
from tests.device.exponential import taylor_bounds


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.7", "1", "1.1", "3.333", "8"])
def test_exp_bounds_lie_around_the_series(epsilon):
    low, high = exp_bounds(Fraction(epsilon))
    series_low, series_high = taylor_bounds(Fraction(epsilon), terms=90)
    assert low < series_low < series_high < high
    assert high / low - 1 < Fraction(1, 10**50)


def test_exp_bounds_hold_at_the_largest_epsilon():
    low, high = exp_bounds(Fraction(LARGEST))
    series_low, series_high = taylor_bounds(Fraction(LARGEST), terms=400)
    assert low < series_low < series_high < high


@given(st.integers(1, LARGEST * 10**6).map(lambda n: Fraction(n, 10**6)))
def test_text_round_trip(epsilon):
    assert parse_epsilon(epsilon_text(epsilon)) == epsilon


def test_a_float_means_what_python_prints():
    assert exact_epsilon(0.1) == exact_epsilon("0.1") == exact_epsilon(Fraction(1, 10)) == Fraction(1, 10)
    assert epsilon_text(1.0) == "1"
    assert epsilon_text(1e-7) == "0.0000001"
    assert epsilon_text(Decimal("2.50")) == "2.5"


BAD = [0, 0.0, -1, -0.5, float("nan"), float("inf"), -float("inf"), True, None, "", "one", "1/0", [1], 1j, 65]


@pytest.mark.parametrize("epsilon", BAD, ids=repr)
def test_what_is_no_epsilon_is_refused_by_name_and_value(epsilon):
    with pytest.raises(ValueError, match="epsilon") as caught:
        exact_epsilon(epsilon)
    assert repr(epsilon) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["1e0", " 1", "1 ", "+1", "-1", ".5", "1.", "1_0", "inf", "nan", "1/2", "٣", "0", "65", 1, 1.0, None],
)
def test_wire_form_is_a_plain_decimal(text):
    with pytest.raises(ValueError, match="epsilon"):
        parse_epsilon(text)


@pytest.mark.parametrize("text", ["01", "1.0", "1.10", "00.5"])
def test_wire_form_has_one_spelling(text):
    with pytest.raises(ValueError, match="zeros"):
        parse_epsilon(text)


def test_a_rational_without_a_short_decimal_has_no_wire_form():
    with pytest.raises(ValueError, match="decimal number"):
        epsilon_text(Fraction(1, 3))
