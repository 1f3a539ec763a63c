"""A wave that closes with enough reports or at its deadline, whichever comes first."""

import pytest

from ahead_ldp.service.campaigns.lifecycle import Close, Extend, Wait, due
from ahead_ldp.service.store.rows import WaveRow, WaveState

BOTH = {"kind": "both", "reports": 30, "seconds": 100}


def wave(extensions=0):
    return WaveRow("c", 1, WaveState.OPEN, "", 1000, 1100, None, extensions)


@pytest.mark.parametrize(
    "counts, now, extensions, expected",
    [
        ({"a": 30, "b": 31}, 1001, 0, Close()),  # enough, long before the deadline
        ({"a": 29, "b": 31}, 1001, 0, Wait()),
        ({"a": 29, "b": 20}, 1100, 0, Close()),  # the deadline, and every group is large enough to be counted
        ({"a": 29, "b": 19}, 1100, 0, Extend(1200)),
        ({"a": 29, "b": 19}, 1200, 1, Close(("b",))),
    ],
)
def test_what_comes_first_closes_the_wave(counts, now, extensions, expected):
    assert due(BOTH, 20, wave(extensions), counts, now) == expected
