"""Whatever a value is, a device that has promised a report makes one."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Attribute, ValueRefused


class Hostile:
    """An object of which everything that can be asked raises, and not what a reader expects."""

    def __getattribute__(self, name):
        raise ZeroDivisionError("a value's own affair")

    def fail(self, *_):
        raise ZeroDivisionError("a value's own affair")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __index__ = __float__ = __int__ = fail
    __hash__ = __str__ = __repr__ = __len__ = __iter__ = __sub__ = __add__ = fail


class HostileInteger(int):
    __lt__ = __le__ = __gt__ = __ge__ = __sub__ = __add__ = __eq__ = __index__ = Hostile.fail
    __hash__ = None


class HostileFloat(float):
    __lt__ = __le__ = __gt__ = __ge__ = __sub__ = __add__ = __eq__ = __float__ = Hostile.fail
    __hash__ = None


class HostileText(str):
    __slots__ = ()
    __eq__ = __str__ = Hostile.fail
    __hash__ = None


class HostileDay(dt.date):
    toordinal = Hostile.fail


class HostileZone(dt.tzinfo):
    utcoffset = dst = tzname = fromutc = Hostile.fail


def odd_values():
    day = dt.datetime(2026, 1, 1)
    return [
        *(10**400, -(10**400), 10**5000, float("inf"), float("nan"), Decimal("1e999999"), Decimal("sNaN")),
        *(Fraction(10**400, 3), 1j, True, None, "", "x", "9" * 5000, b"1", [], {}, (), set(), object()),
        *(Hostile(), HostileInteger(7), HostileInteger(10**400), HostileFloat(7.0), HostileText("S"), HostileText("x")),
        *(HostileDay(2026, 1, 1), day.replace(tzinfo=HostileZone()), dt.datetime.max, dt.date.min, dt.time.max),
        *(pd.NA, pd.NaT, pd.Timestamp.max, pd.Timedelta(1), pd.Series([1, 2]), pd.Interval(0, 1), range(3)),
        *(np.int8(3), np.float64(7.5), np.longdouble("1e300"), np.array([1, 2]), np.array(7), np.datetime64("NaT")),
        *(np.str_("S"), np.bool_(True), np.void(b"abc"), np.ma.masked, int, Ellipsis, NotImplemented, memoryview(b"a")),
    ]


ODD_ATTRIBUTES = [
    Attribute("whole", "integer", 0, 15),
    Attribute("edges", "integer", 0, 15, (3, 9), missing="cell"),
    Attribute("real", "real", 0, 1, (0.5,)),
    Attribute("date", "date", 0, 20000),
    Attribute("time", "time", 0, 86399, (3600,)),
    Attribute("moment", "datetime", 0, 2**31, (2**30,), missing="cell"),
    Attribute("size", "ordered", labels=("S", "M"), missing="value", missing_value="M"),
    Attribute("town", "nominal", labels=("S", "x")),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("attribute", ODD_ATTRIBUTES, ids=lambda a: a.name)
def test_finding_11_no_value_raises_anything_but_a_refusal(attribute):
    for place, value in enumerate(odd_values()):
        try:
            code = attribute.code(value)
        except ValueRefused:
            code = attribute.stand_in(value, attribute.size - 1)
        assert type(code) is int, place
        assert 0 <= code < attribute.size, place


def test_finding_11_integers_of_any_size_lie_beyond_the_ends():
    whole, real = ODD_ATTRIBUTES[0], ODD_ATTRIBUTES[2]
    for attribute in (whole, real):
        for value, end in ((10**400, attribute.ordered_size - 1), (-(10**400), 0)):
            with pytest.raises(ValueRefused):
                attribute.code(value)
            assert attribute.stand_in(value, 99) == end


def test_a_number_or_text_of_another_class_is_what_it_is():
    """A subclass is read as the plain thing that it holds, by none of its own methods."""
    assert ODD_ATTRIBUTES[0].code(HostileInteger(7)) == 7
    assert ODD_ATTRIBUTES[6].code(HostileText("M")) == 1
    assert ODD_ATTRIBUTES[6].code(np.str_("M")) == 1


VALUES = st.one_of(
    *(st.integers(), st.floats(), st.text(), st.binary(), st.decimals(), st.fractions(), st.complex_numbers()),
    *(st.dates(), st.times(), st.datetimes(timezones=st.timezones()), st.timedeltas(), st.booleans(), st.none()),
    *(st.lists(st.integers()), st.integers(10**300, 10**500)),
)


@pytest.mark.filterwarnings("ignore")
@given(st.sampled_from(ODD_ATTRIBUTES), VALUES)
def test_finding_11_fuzz_every_value_has_a_code_or_a_stand_in(attribute, value):
    try:
        assert 0 <= attribute.code(value) < attribute.size
    except ValueRefused:
        assert 0 <= attribute.stand_in(value, 0) < attribute.size
