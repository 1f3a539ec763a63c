"""Round marks and round bins."""

import numpy as np
import pytest

from ahead_ldp.schema.attributes import parse_attribute, real_edges
from ahead_ldp.schema.units import borders
from ahead_ldp.service.dashboard.axes import coarser, round_bins, ticks

MARKS = {
    "age=integer,18,99": ["20", "40", "60", "80"],
    "age=integer,18,49": ["20", "25", "30", "35", "40", "45"],
    "salary=integer,0,200000,80": ["0", "50,000", "100,000", "150,000", "200,000"],
    "x=real,0,1,10": ["0", "0.2", "0.4", "0.6", "0.8", "1"],
    "t=real,-5,5,100": ["-4", "-2", "0", "2", "4"],
    "born=date,1950-03-01,2010-12-31,60": ["1960", "1970", "1980", "1990", "2000", "2010"],
    "size=category,S|M|L": ["S", "M", "L"],
    "one=integer,7,8": ["7", "8"],
}


@pytest.mark.parametrize("text", MARKS)
def test_marks_are_round_and_stand_where_they_belong(text):
    a = parse_attribute(text)
    found = ticks(a)
    assert [said for _, said in found] == MARKS[text]
    assert all(0 <= place <= 1 for place, _ in found)
    if a.kind == "integer" and a.edges is None:
        for place, said in found:
            assert borders(a)[0] + place * a.ordered_size == pytest.approx(int(said.replace(",", "")))


@pytest.mark.parametrize(
    "text, most, numbers",
    [
        ("age=integer,18,97", 40, [18, *range(20, 99, 2)]),
        ("age=integer,18,97", 10, [18, *range(30, 98, 10), 98]),
        ("age=integer,18,97", 5, [18, 40, 60, 80, 98]),  # 18 and 19 make no bin of their own
        ("x=real,0,1,10", 5, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        ("pay=integer,0|25|50|75|100", 2, [0, 50, 101]),  # 100 is in the last bin
    ],
)
def test_bins_begin_at_round_numbers(text, most, numbers):
    a = parse_attribute(text)
    ends, _ = round_bins(a, most)
    np.testing.assert_allclose(borders(a)[ends], numbers)


@pytest.mark.parametrize("text", [*MARKS, "pay=real,0,64000,64", "odd=integer,0,1023,100", "w=time,00:00,23:59,24"])
def test_bins_tile_the_codes_and_become_fewer(text):
    a = parse_attribute(text)
    ends, _ = round_bins(a, 40)
    sizes = [ends.size - 1]
    for fewer, _ in coarser(a, sizes[0]):
        assert (fewer[0], fewer[-1]) == (0, a.ordered_size)
        assert (np.diff(fewer) > 0).all()
        sizes.append(fewer.size - 1)
    if not a.labels:
        assert sizes[0] <= 40
        assert sizes == sorted(sizes, reverse=True)


def test_edges_that_fit_no_round_step_still_make_bins():
    a = real_edges("x", [0.0, 0.37, 1.11, 2.7182, 3.3, 9.99])
    ends, step = round_bins(a, 3)
    assert (ends[0], ends[-1], step) == (0, 5, 0.0)
