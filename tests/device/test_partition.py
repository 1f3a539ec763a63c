from itertools import pairwise, product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Attribute, Axis, GridForm, TreeForm
from ahead_ldp.device.partition import partition_from_record


@st.composite
def axes(draw):
    found = []
    count = draw(st.integers(1, 3))
    for _ in range(count):
        missing = draw(st.booleans())
        found.append(Axis(draw(st.integers(1 + missing, 12 if count < 3 else 6)), draw(st.booleans()), missing))
    return tuple(found)


def all_codes(axes):
    return product(*(range(axis.size) for axis in axes))


@st.composite
def grids(draw):
    found = draw(axes())
    cuts = [sorted(draw(st.sets(st.integers(1, axis.size - 1)))) if axis.size > 1 else [] for axis in found]
    return found, GridForm(tuple(map(tuple, cuts)))


def children(axes, box, fanout):
    """The parts of a node, written down again: at once for nominal codes, the missing code alone, the rest equal."""
    sides = []
    for axis, (lo, hi) in zip(axes, box, strict=True):
        ordered = list(range(lo, hi))
        apart = []
        if axis.nominal:
            groups = [[code] for code in ordered]
        else:
            if axis.missing and len(ordered) > 1 and ordered[-1] == axis.size - 1:
                apart = [[ordered.pop()]]
            count = min(fanout, len(ordered))
            ends = [j * len(ordered) // count for j in range(count + 1)]
            groups = [ordered[a:b] for a, b in pairwise(ends)] + apart
        sides.append([(group[0], group[-1] + 1) for group in groups])
    return list(product(*sides))


@st.composite
def trees(draw):
    found, fanout = draw(axes()), draw(st.integers(2, 5))
    queue, flags = [tuple((0, axis.size) for axis in found)], ""
    leaves = []
    for box in queue:
        single = all(hi - lo == 1 for lo, hi in box)
        cut = not single and len(queue) < 60 and draw(st.integers(0, 3)) > 0
        flags += "01"[cut]
        if cut:
            queue += children(found, box, fanout)
        else:
            leaves.append(box)
    return found, TreeForm(fanout, flags), leaves


@given(grids())
def test_a_grid_tiles_its_domain(drawn):
    found, form = drawn
    columns = [list(pairwise([0, *cuts, axis.size])) for axis, cuts in zip(found, form.cuts, strict=True)]
    boxes = list(product(*columns))  # the last attribute fastest
    assert form.cells(found) == len(boxes)
    check_cells(found, form, boxes)
    assert partition_from_record(form.record()) == form


@given(trees())
def test_a_tree_tiles_its_domain(drawn):
    found, form, leaves = drawn
    assert form.cells(found) == len(leaves)
    assert list(form.leaves(found)) == leaves
    assert sum(prod(hi - lo for lo, hi in box) for box in leaves) == prod(axis.size for axis in found)
    check_cells(found, form, leaves)
    assert partition_from_record(form.record()) == form


def check_cells(found, form, boxes):
    holding = {}
    for i, box in enumerate(boxes):
        for codes in product(*(range(lo, hi) for lo, hi in box)):
            assert codes not in holding, "boxes overlap"
            holding[codes] = i
    assert list(all_codes(found)) == sorted(holding)
    for codes, i in holding.items():
        assert form.cell(found, codes) == i


@given(trees(), st.data())
def test_flags_that_describe_no_tree_are_refused(drawn, data):
    found, form, _ = drawn
    cut = data.draw(st.integers(0, len(form.flags) - 1))
    bad = data.draw(
        st.sampled_from(
            [form.flags[:cut], form.flags + "0", form.flags + "1", form.flags[:cut] + "2" + form.flags[cut + 1 :]]
        )
    )
    with pytest.raises(ValueError, match="expected one flag, 0 or 1"):
        TreeForm(form.fanout, bad).cells(found)


@given(trees(), st.data())
def test_a_flipped_flag_is_refused(drawn, data):
    """More or fewer nodes follow than there are flags, or a single code is cut."""
    found, form, _ = drawn
    i = data.draw(st.integers(0, len(form.flags) - 1))
    flipped = form.flags[:i] + "10"[int(form.flags[i])] + form.flags[i + 1 :]
    with pytest.raises(ValueError, match="expected"):
        TreeForm(form.fanout, flipped).cells(found)


def test_cutting_a_single_code_is_refused():
    with pytest.raises(ValueError, match="cut a single code"):
        TreeForm(2, "1100").cells([Axis(2)])
    with pytest.raises(ValueError, match="cut a single code"):
        TreeForm(2, "1").cells([Axis(1), Axis(1)])


def test_a_tree_that_would_fill_the_memory_is_refused_at_once():
    """Two bytes of flags ask for 65,536 ** 3 nodes."""
    with pytest.raises(ValueError, match="one flag"):
        TreeForm(2**16, "10").cells([Axis(2**16)] * 3)


@pytest.mark.parametrize(
    "axis, lo, hi, fanout, borders",
    [
        (Axis(8), 0, 8, 2, [0, 4, 8]),
        (Axis(7), 0, 7, 2, [0, 3, 7]),
        (Axis(7), 0, 7, 4, [0, 1, 3, 5, 7]),
        (Axis(7), 2, 4, 4, [2, 3, 4]),
        (Axis(7), 2, 3, 4, [2, 3]),
        (Axis(7, missing=True), 0, 7, 2, [0, 3, 6, 7]),
        (Axis(7, missing=True), 3, 6, 2, [3, 4, 6]),
        (Axis(7, missing=True), 6, 7, 2, [6, 7]),
        (Axis(2, missing=True), 0, 2, 2, [0, 1, 2]),
        (Axis(4, nominal=True), 0, 4, 2, [0, 1, 2, 3, 4]),
        (Axis(4, nominal=True, missing=True), 0, 4, 2, [0, 1, 2, 3, 4]),
    ],
)
def test_parts(axis, lo, hi, fanout, borders):
    assert axis.parts(lo, hi, fanout) == borders


@pytest.mark.parametrize(
    "cuts", [((0,),), ((5,),), ((6,),), ((-1,),), ((2, 2),), ((3, 2),), (), ((1,), (1,))], ids=repr
)
def test_cuts_that_are_no_partition_are_refused(cuts):
    with pytest.raises(ValueError, match="expected cuts"):
        GridForm(cuts).cells([Axis(5)])


BAD_RECORDS = [
    None,
    [],
    "grid",
    {},
    {"form": "boxes", "boxes": []},
    {"form": "grid"},
    {"form": "grid", "cuts": [[1]], "flags": ""},
    {"form": "grid", "cuts": {}},
    {"form": "grid", "cuts": [1]},
    {"form": "grid", "cuts": [[1.0]]},
    {"form": "grid", "cuts": [["1"]]},
    {"form": "grid", "cuts": [[True]]},
    {"form": "grid", "cuts": [[0]]},
    {"form": "tree", "flags": "0"},
    {"form": "tree", "fanout": 1, "flags": "0"},
    {"form": "tree", "fanout": 0, "flags": "0"},
    {"form": "tree", "fanout": 2.0, "flags": "0"},
    {"form": "tree", "fanout": True, "flags": "0"},
    {"form": "tree", "fanout": "2", "flags": "0"},
    {"form": "tree", "fanout": 2**16 + 1, "flags": "0"},
    {"form": "tree", "fanout": 2, "flags": ""},
    {"form": "tree", "fanout": 2, "flags": ["0"]},
    {"form": "tree", "fanout": 2, "flags": 0},
]


@pytest.mark.parametrize("record", BAD_RECORDS, ids=repr)
def test_bad_record_is_refused(record):
    with pytest.raises(ValueError, match="expected"):
        partition_from_record(record)


def test_axis_of_an_attribute():
    assert Axis.of(Attribute("x", "integer", 0, 4)) == Axis(5)
    assert Axis.of(Attribute("x", "integer", 0, 4, missing="cell")) == Axis(6, missing=True)
    assert Axis.of(Attribute("x", "nominal", labels=("a", "b"))) == Axis(2, nominal=True)
