"""Tables of forecasts: of today's methods, as a simulation would have it, and silent where they do not reach."""

import json
from dataclasses import replace
from itertools import pairwise
from math import log, sqrt

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.cli import main
from ahead_ldp.mechanisms import make_mechanism
from ahead_ldp.mechanisms.adaptive.adaptive import Adaptive, Adaptive2
from ahead_ldp.research import forecasts, planner, references, targets
from ahead_ldp.research.forecasts import NotTabled, look_up
from ahead_ldp.research.references import IndependentPeople, reference_population, reference_shares
from ahead_ldp.research.targets import Case, forecast
from ahead_ldp.research.widths import KINDS
from ahead_ldp.schema.attributes import as_schema, codes
from ahead_ldp.schema.workloads import random_workload, true_answers
from tools import forecasts as tool

TABLES = {table.about["name"]: table for table in forecasts.tables()}
PARTS = {part.name: part for part in tool.PARTS}


def default(schema, users, epsilon):
    declared = as_schema(schema)
    return make_mechanism(None, declared, epsilon, users), declared, users


# That they are of today.


def test_tables_are_of_the_versions_that_are_run_today():
    """A method that asks or reads otherwise is simulated until `python -m tools.forecasts` has been run anew."""
    assert TABLES.keys() == {part.name for part in tool.PARTS if part.ships}
    for name, table in TABLES.items():
        cls = ahead_ldp.mechanisms.class_of(PARTS[name].method)
        assert table.versions == (cls.version, cls.estimate_version), "run python -m tools.forecasts"
        assert table.about["shapes"] == list(references.SHAPES)
        assert table.about["points"] == PARTS[name].points
        assert table.nodes.shape == (len(forecasts.SIZES), 4, *map(len, table.axes))


def test_a_table_of_another_version_is_not_read(monkeypatch):
    mechanism, schema, users = default("x=codes,64", 50_000, 1.0)
    assert look_up(mechanism, schema, users).mse["zipf"] > 0
    old = Adaptive2(epsilon=1.0, users=users)
    with pytest.raises(NotTabled, match="no table of the method adaptive with these settings"):
        look_up(old, schema, users)
    monkeypatch.setattr(Adaptive, "estimate_version", 99)
    with pytest.raises(NotTabled, match="the table of adaptive was made with an earlier version"):
        look_up(mechanism, schema, users)


# That they agree with simulations. A squared error of one run scatters by its mean and more, a width by a tenth.

LIMIT = log(1.15)  # of a logarithm, beyond three standard errors of the simulation
WIDTH_SCATTER = 0.1  # tests/research/test_planner.py: a mean over a few intervals, 5 to 10 %
ELSEWHERE = {  # sizes, people and epsilon that no table was made from
    "adaptive": [([100], 100_000, 1.0), ([16], 20_000, 0.5), ([500], 1_000_000, 0.2), ([1024], 5_000, 2.0)],
    "pairs": [([82, 64], 100_000, 1.0), ([16, 16], 20_000, 0.5), ([300, 20], 400_000, 2.0), ([40, 9], 10**6, 0.3)],
    "fused": [
        ([64, 64, 64, 64, 64], 1_000_000, 1.0),
        ([16, 16, 16], 20_000, 0.5),
        ([300, 20, 7], 400_000, 2.0),
        ([40, 9, 9, 5], 1_000_000, 0.3),
        ([24, 24, 24, 24], 100_000, 1.0),
        ([10, 10, 10, 10, 10, 10], 200_000, 1.0),
    ],
}
REPEATS = {"adaptive": 16, "pairs": 16, "fused": 16}  # so many that a table that is 30 % off is found
OTHER_SEED = 77


@pytest.fixture(scope="module", params=sorted(TABLES))
def simulated(request):
    """What simulations with other seeds find: of a part, its collections with what was found."""
    part, found = PARTS[request.param], []
    for sizes, users, epsilon in ELSEWHERE[part.name]:
        schema = as_schema([codes(f"x{a}", size) for a, size in enumerate(sizes)])
        c, shapes = tool.Collection(schema, users, epsilon), references.SHAPES
        found.append((c, tool.simulated(part.mechanism(c), c, REPEATS[part.name], shapes, OTHER_SEED)))
    return TABLES[part.name], found


def distances(table, found):
    """By size, a logarithm of what was simulated over what the table says, for each collection and shape."""
    off = {size: [] for size in ("root", "error", *KINDS)}
    for c, by_shape in found:
        outlook = table.expect(c.schema, c.users, c.epsilon)
        for shape, seen in by_shape.items():
            off["root"].append(log(np.mean(seen["mse"]) / outlook.mse[shape]) / 2)
            off["error"].append(log(seen["error"] / outlook.error[shape]))
            for kind in KINDS:
                off[kind].append(log(seen[kind] / outlook.half[shape][kind]))
    return {size: np.reshape(values, (len(found), -1)) for size, values in off.items()}


# Of the root for even people, beside the noise. The estimate says that they lie evenly, so the error is that of who was
# drawn, once for all repetitions. It is Watson's U^2, whose variance is 1/360 and whose mean is 1/12.
EVEN_SCATTER = sqrt(0.4) / 2


def worst(table, found):
    """How far the means over collections, and over everything, are beyond what chance allows; 1: just within."""
    beyond = {}
    for size, off in distances(table, found).items():
        one, ends = WIDTH_SCATTER, []
        if size in ("root", "error"):
            one = table.about["scatter"] / (2 * sqrt(len(found[0][1]["zipf"]["mse"])))
            even, off = off[:, 0], off[:, 1:]  # uniform is the first
            ends = [(even.mean(), sqrt((one**2 + EVEN_SCATTER**2) / even.size))]
        ends += [(off.mean(), one / sqrt(off.size)), *((row.mean(), one / sqrt(row.size)) for row in off)]
        beyond[size] = max(abs(mean) / (LIMIT + 3 * se) for mean, se in ends)
    return beyond


def test_what_a_table_says_is_what_a_simulation_finds(simulated):
    found = worst(*simulated)
    assert max(found.values()) <= 1, found


@pytest.mark.parametrize("factor", [1.3, 1 / 1.3])
def test_a_table_that_is_30_percent_off_would_be_found(simulated, factor):
    table, found = simulated
    steps = np.full(len(forecasts.SIZES), log(factor) / forecasts.STEP)
    steps[0] *= 2  # the mean squared error
    moved = np.rint(steps).astype(int).reshape(-1, *[1] * (table.nodes.ndim - 1))
    assert min(worst(replace(table, nodes=table.nodes + moved), found).values()) > 1


def test_more_people_or_epsilon_never_expect_less():
    """A search for a target leaps along these. Nodes are fitted, so up to a hundredth is let pass."""
    for sizes in ([30], [200], [1024]):
        schema = as_schema([codes(f"x{a}", size) for a, size in enumerate(sizes)])
        cases = [[Case(schema, 2_000 * 2**k, 1.0) for k in range(12)]]
        cases += [[Case(schema, 50_000, float(f"{0.1 * 1.5**k:.3g}")) for k in range(10)]]
        for meaning in ("error", "range"):
            for row in cases:
                errors = [forecast(case, meaning=meaning) for case in row]
                assert {f.source for f in errors} == {"table"}
                assert all(b.error < 1.01 * a.error for a, b in pairwise(errors))


def test_more_people_never_expect_less_of_several_attributes():
    for attributes, size in ((3, 8), (3, 128), (5, 32), (8, 32), (10, 100)):
        schema = as_schema([codes(f"x{k}", size) for k in range(attributes)])
        cases = [Case(schema, 15_000 * 2**k, 1.0) for k in range(8)]
        for meaning in ("error", "range"):
            errors = [forecast(case, meaning=meaning) for case in cases]
            assert {f.source for f in errors} == {"table"}
            assert all(b.error < 1.01 * a.error for a, b in pairwise(errors))


# Where they do not reach.


@pytest.mark.parametrize(
    ("schema", "users", "epsilon", "said"),
    [
        ("x=codes,64", 20, 1.0, "people from 300 to 30,000,000, got 20"),
        ("x=codes,64", 10_000, 0.02, "epsilon from 0.05 to 6, got 0.02"),
        ("x=codes,64", 1_000, 0.05, "standard deviation of a share from .* to 1, got 1.26"),
        ("x=codes,5000", 10_000, 1.0, "codes from 5 to 4,096, got 5,000"),
        ("x=codes,4", 10_000, 1.0, "codes from 5 to 4,096, got 4"),
        ([f"x{k}=codes,9" for k in range(11)], 100_000, 1.0, "attributes from 3 to 10, got 11"),
        (["x=codes,9", "y=codes,9", "z=codes,9"], 1_000, 1.0, "people from 1,200 to 2,000,000, got 1,000"),
        (
            [f"x{k}=codes,9" for k in range(4)],
            1_500,
            4.0,
            "people for every attribute and pair from 200 to .*, got 150",
        ),
        (["x=codes,9", "y=codes,9", "z=codes,9"], 10_000, 0.2, "standard deviation of a share from .* to 0.06, got"),
        (["x=codes,9", "y=codes,9"], 500, 1.0, "people for every attribute and pair from 200 to .*, got 166.7"),
        (["x=codes,3", "y=codes,4"], 10_000, 1.0, "codes, in the geometric mean from 4 to 1,024, got 3.46"),
        ("x=nominal,a|b|c", 10_000, 1.0, "at most 0% of attributes are nominal"),
    ],
)
def test_outside_of_what_was_simulated_the_reason_is_said(schema, users, epsilon, said):
    with pytest.raises(NotTabled, match=said):
        look_up(*default(schema, users, epsilon))


def test_other_choices_are_not_in_the_tables():
    schema = as_schema("x=codes,64")
    for mechanism in (Adaptive(epsilon=1.0, scales=3, users=9_000), make_mechanism("flat", schema, 1.0, 9_000)):
        with pytest.raises(NotTabled, match="no table of the method"):
            look_up(mechanism, schema, 9_000)
    usual = Adaptive(epsilon=1.0, users=9_000)
    assert look_up(replace(usual, group_people=300), schema, 9_000) == look_up(usual, schema, 9_000)
    with pytest.raises(NotTabled, match="no table of the method"):
        look_up(replace(usual, group_people=3_000), schema, 9_000)  # makes fewer groups


def test_a_plan_says_where_its_numbers_are_from(monkeypatch, capsys):
    words = ["plan", "--attribute", "x=codes,16", "--epsilon", "1", "--users", "9000", "--json"]
    assert main([*words, "--simulate", "--method", "flat"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["source"], shown["simulated"], shown["predicted"][0]["repeats"]) == ("simulation", "asked for", 5)
    assert main([*words, "--method", "flat"]) == 0
    out, err = capsys.readouterr()
    assert "note: simulated, since there is no table of the method flat" in err
    assert json.loads(out)["source"] == "simulation"

    def refuse(*_):
        raise AssertionError("nothing is simulated where a table has it")

    monkeypatch.setattr(planner, "run_simulation", refuse)
    monkeypatch.setattr(targets, "run_simulation", refuse)
    assert main(words) == 0
    out, err = capsys.readouterr()
    shown = json.loads(out)
    assert (shown["source"], shown["simulated"], shown["predicted"][0]["repeats"], err) == ("table", "", 0, "")
    assert shown["groups"]
    assert main([*words[:-1]]) == 0
    assert capsys.readouterr().out.count("from a table") == 2
    assert main([*words[:3], "--epsilon", "1", "--target", "2%"]) == 0
    assert "(from a table: " in capsys.readouterr().out


def test_the_library_reads_and_simulates():
    found = ahead_ldp.plan("age=codes,16", epsilon=1, users=9_000)
    assert found.source == "table"
    low, high = found.predictions[0].mse.ci95
    assert low < found.predictions[0].mse.mean < high
    assert ahead_ldp.plan("age=codes,16", epsilon=1, users=9_000, method="flat", simulate=True).source == "simulation"


# More attributes, over the table of two.


@pytest.mark.parametrize("attributes", [3, 4, 6, 10])
@pytest.mark.parametrize("users", [8_000 * 55, 40_000])
def test_comparable_people_give_two_attributes_groups_of_the_same_size(attributes, users):
    """Those of the trees and those of the pairs: that is why the table of two says nearly everything."""
    sizes = []
    for m, n in ((attributes, users), (2, round(forecasts.comparable(attributes, users)))):
        mechanism, schema, _ = default([f"x{k}=codes,64" for k in range(m)], n, 1.0)
        shares = {group.id: group.share for group in mechanism.groups(schema)}
        people = {name: n * share / sum(shares.values()) for name, share in shares.items()}
        sizes.append({name: p for name, p in people.items() if name.startswith(("1.", "1-2."))})
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-3)


def test_what_more_attributes_add_is_over_the_table_of_two():
    two, more = TABLES["pairs"], TABLES["fused"]
    at = forecasts.coordinates((30, 40, 50), 100_000, 1.0)
    own = replace(more, base=None).logarithms(at)
    np.testing.assert_allclose(more.logarithms(at), two.logarithms(at) + own)
    assert more.base is two


@pytest.mark.parametrize("size", [4, 7, 49, 100, 253])
def test_every_number_is_one_whatever_the_sizes(size):
    """Shares that are added up come to a little more than 1, of which no root of a variance may be drawn."""
    outlook = look_up(*default([f"x{k}=codes,{size}" for k in range(3)] + ["y=nominal,a|b|c|d|e|f"], 100_000, 1.0))
    for shape in references.SHAPES:
        assert 0 < outlook.mse[shape] < outlook.error[shape] < 1
        assert all(0 < outlook.half[shape][kind] < 1 for kind in KINDS)


def test_who_was_drawn_beyond_pairs_is_told_by_enumeration():
    """Of three attributes: the product of the variances of belonging to each side, over the people."""
    sizes, users = (4, 5, 3), 10_000
    people = IndependentPeople(reference_shares("bumps", sizes), users)
    workload = random_workload(sizes, 400, np.random.default_rng(1))
    low, high = workload.boxes.astype(int).transpose(2, 1, 0)
    below = [np.append(0, np.cumsum(share)) for share in people.margins]
    sides = np.array([b[hi] - b[lo] for b, lo, hi in zip(below, low, high, strict=True)])
    variance = np.prod(sides * (1 - sides), axis=0) / users
    drawn = tool._who_was_drawn(people, workload)
    some = variance > 1e-12
    assert np.abs(drawn[~some]).max(initial=0) < 1e-6
    assert np.mean(drawn[some] ** 2 / variance[some]) == pytest.approx(1, abs=5 * sqrt(2 / some.sum()))
    two = IndependentPeople(people.margins[:2], users)
    assert np.abs(tool._who_was_drawn(two, random_workload(sizes[:2], 50, np.random.default_rng(1)))).max() < 1e-9


# Between nodes, and how nodes are fitted.


def test_between_nodes_everything_is_linear():
    rng = np.random.default_rng(3)
    axes = (np.array([0.0]), np.array([1.0, 2, 5]), np.array([-3.0, 0, 1, 4]))
    slopes = np.array([7.0, -2.0, 0.5])
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3) @ slopes
    for _ in range(50):
        at = np.array([0.0, rng.uniform(1, 5), rng.uniform(-3, 4)])
        weights, places = forecasts.corners(axes, at)
        assert weights.sum() == pytest.approx(1)
        assert weights.min() >= 0
        assert weights @ grid[places] == pytest.approx(at @ slopes)


STIFF = [0.5, 2.0, 0.3]  # along two axes, and against twist


def test_a_fit_knows_what_each_value_misses_when_it_is_left_out():
    rng = np.random.default_rng(4)
    axes = (np.array([0.0, 1, 2, 3]), np.array([0.0, 2, 3]))
    points = rng.uniform(0, 3, (25, 2))
    values = np.sin(points[:, 0]) + points[:, 1] + rng.normal(0, 0.1, 25)
    values[3] = np.nan
    smooth = tool.Smooth.of(axes, points)
    missed = smooth.fit(values, STIFF).missed
    assert np.isnan(missed[3])
    for left_out in (0, 7, 24):
        others = np.where(np.arange(25) == left_out, np.nan, values)
        nodes = smooth.fit(others, STIFF).nodes
        assert missed[left_out] == pytest.approx(values[left_out] - smooth.basis[left_out] @ nodes, abs=1e-6)
    straight = points @ np.array([2.0, -1.0])
    nodes = smooth.fit(straight, smooth.best(straight)).nodes
    np.testing.assert_allclose(smooth.basis @ nodes, straight, atol=1e-3)


# People known by their shares.


def test_people_known_by_their_shares_are_those_of_the_reference():
    sizes, users = (6, 5), 400_000
    shares = reference_shares("zipf", sizes)
    people = IndependentPeople(shares, users)
    workload = random_workload(sizes, 30, np.random.default_rng(1))
    counted = reference_population("zipf", sizes, users, np.random.default_rng(2))
    np.testing.assert_allclose(people.truth(workload), true_answers(workload, counted.histogram), atol=5 / sqrt(users))


def test_their_answers_have_the_shares_of_the_cells():
    mechanism, schema, users = default(["x=codes,12", "y=codes,9"], 60_000, 4.0)
    people, rng = IndependentPeople(reference_shares("heaped", schema.sizes), users), np.random.default_rng(5)
    groups, wave = people.divide(mechanism, schema, rng), next(mechanism.run(schema))
    assert sum(groups.values()) == users
    tallies = people.answers(wave, groups, rng)
    for group, question in wave.items():
        own = [people.margins[a] for a in question.attributes]
        below = [np.append(0, np.cumsum(share)) for share in own]
        lo, hi = question.partition.lo, question.partition.hi
        shares = np.prod([b[hi[:, a]] - b[lo[:, a]] for a, b in enumerate(below)], axis=0)
        sd = np.sqrt(question.oracle.variance(groups[group], shares) + shares * (1 - shares) / groups[group])
        assert (np.abs(question.oracle.estimate(tallies[group]) - shares) < 5 * sd).all()


@pytest.mark.parametrize("schema", ["x=codes,100", ["x=codes,9", "y=codes,8"], "x=nominal,a|b|c"])
def test_the_quick_layout_is_that_of_a_whole_run(schema):
    """The same groups in the same waves; the cells follow from noisy answers, so they are about as many."""
    given = default(schema, 40_000, 1.0)
    quick, whole = planner.lay_out(*given, quick=True), planner.lay_out(*given)
    assert [(g.id, g.wave, g.people) for g in quick.groups] == [(g.id, g.wave, g.people) for g in whole.groups]
    cells = np.array([[g.cells for g in found.groups] for found in (quick, whole)])
    assert (cells[0] <= 2 * cells[1]).all()
    assert (cells[1] <= 2 * cells[0]).all()
