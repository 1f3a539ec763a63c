"""AHEAD: the brute-force version, the paper's numbers, any domain and number of reports, errors that mean something."""

from itertools import combinations
from math import ceil, exp, floor, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import Axis, Schema
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.ahead.decomposition import levels, threshold
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.oracles import OUE, Tally
from ahead_ldp.partitions.covers import cover_weights
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.protocol.mechanism import Question, axes_of
from ahead_ldp.protocol.session import finish
from ahead_ldp.schema.attributes import as_schema, codes, nominal
from ahead_ldp.schema.workloads import Workload
from tests.mechanisms.populations import bumpy, cells_of, spread, whole
from tests.mechanisms.waves import any_people, boxes_of, drive
from tests.reference import brute_ahead as brute
from tests.support import SeededWords, examples, random_boxes, schema_of

PRESETS = {"paper": AHEAD.paper, "published": AHEAD.published, "literal": AHEAD.literal}


# The brute-force version.

SCHEMAS = {
    "16": (schema_of(16), 2),
    "64 by 4": (schema_of(64), 4),
    "13": (schema_of(13), 2),
    "27 by 4": (schema_of(27), 4),
    "8 x 8": (schema_of(8, 8), 2),
    "16 x 16 by 4": (schema_of(16, 16), 4),
    "11 x 3": (schema_of(11, 3), 2),
    "4 x 4 x 4": (schema_of(4, 4, 4), 2),
    "5 x 2 x 6 by 4": (schema_of(5, 2, 6), 4),
    "nominal, missing": (as_schema([nominal("a", ["x", "y", "z"]), codes("b", 9, missing="cell")]), 2),
}


def crowd(schema: Schema, people: int, rng: np.random.Generator) -> list[list[int]]:
    """Two crowds, so that some nodes are divided to the end and some never."""
    sizes = np.array(schema.sizes)
    centre = np.where(rng.random((people, 1)) < 0.6, 0.2, 0.85) * sizes
    return np.clip(centre + rng.normal(size=(people, sizes.size)) * sizes / 12, 0, sizes - 1).astype(int).tolist()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_it_is_the_brute_force_version_on_the_same_tallies(name, preset):
    schema, fanout = SCHEMAS[name]
    mechanism, axes = PRESETS[preset](3.0, fanout), axes_of(schema)
    seed = list(SCHEMAS).index(name)
    rng = np.random.default_rng(seed)
    people = brute.People(crowd(schema, 500, rng), brute.groups(axes, fanout), 3.0, SeededWords(seed))
    told = {}

    def ask(i: int, boxes: list[brute.Box]) -> tuple[int, list[int]]:
        n, ones = people.ask(i, boxes)
        told[i - 1] = n, dict(zip(boxes, ones, strict=True))
        return n, ones

    def tell(wave: int, _group: str, question: Question) -> Tally:
        n, ones = told[wave]
        assert set(boxes_of(question)) == set(ones)
        return Tally(n, np.array([ones[box] for box in boxes_of(question)]))

    root = brute.construct(axes, fanout, 3.0, ask, mechanism.tested, mechanism.stopped)
    estimate, waves, _ = drive(mechanism, schema, tell)
    assert len(waves) == len(told) == len(mechanism.groups(schema))
    tree, slow = estimate.tree, brute.frequencies(root)
    assert tree.leaves.size > 1
    for lo, hi, value in zip(tree.lo.tolist(), tree.hi.tolist(), estimate.values, strict=True):
        assert value == pytest.approx(slow[tuple(zip(lo, hi, strict=True))], abs=1e-12)
    boxes = random_boxes(schema.sizes, 60, rng, whole=True)
    fast = estimate.answer(Workload(schema.sizes, boxes, np.arange(60), 60)).values
    np.testing.assert_allclose(fast, [brute.answer(root, box.tolist()) for box in boxes], rtol=0, atol=1e-12)


def tally_of(oracle: OUE, n: int, estimates: list[float]) -> Tally:
    """Reports whose raw estimates are these, to a count."""
    return Tally(n, np.array([round(n * (f * (oracle.p - oracle.q) + oracle.q)) for f in estimates]))


def test_the_literal_algorithm_alone_tests_a_stopped_node_again():
    n, divided = 2000, {}
    for name, make in PRESETS.items():
        run = make(1.0).run(schema_of(16))
        first = next(run)["1"]
        second = run.send({"1": tally_of(first.oracle, n, [0.99, 0.01])})["2"]
        assert boxes_of(second) == [((8, 16),), ((0, 4),), ((4, 8),)]
        third = run.send({"2": tally_of(second.oracle, n, [0.4, 0.55, 0.05])})["3"]
        divided[name] = ((8, 12),) in boxes_of(third)
    assert divided == {"paper": False, "published": False, "literal": True}


def test_the_published_reading_alone_tests_after_norm_sub():
    n, divided = 2000, {}
    theta = float(threshold(OUE.make(1.0, 4).variance(n), 4))
    for name, make in PRESETS.items():
        run = make(1.0, 4).run(schema_of(16))
        first = next(run)["1"]
        second = run.send({"1": tally_of(first.oracle, n, [0.8, 0.4, 1.2 * theta, 0.0])})["2"]  # too much by far
        divided[name] = ((8, 12),) not in boxes_of(second)
    assert divided == {"paper": True, "published": False, "literal": True}


def test_empty_groups_are_the_brute_forces_too():
    schema, axes = schema_of(16), [Axis(16)]
    for empty in [{1}, {2}, {4}, {1, 2}, {1, 2, 3}, {2, 3, 4}, {1, 2, 3, 4}]:
        people, told = brute.People(crowd(schema, 400, np.random.default_rng(3)), 4, 3.0, SeededWords(8)), {}

        def ask(i, boxes, people=people, told=told, empty=empty):
            told[i - 1] = (0, [0] * len(boxes)) if i in empty else people.ask(i, boxes)
            return told[i - 1]

        root = brute.construct(axes, 2, 3.0, ask)

        def tell(wave, _group, question, told=told):
            n, ones = told[wave]
            places = sorted(range(len(ones)), key=lambda cell: boxes_of(question)[cell])  # one attribute: in order
            counts = np.zeros(len(ones), np.int64)
            counts[places] = ones
            return Tally(n, counts)

        estimate, *_ = drive(AHEAD.paper(3.0), schema, tell)
        boxes = random_boxes((16,), 40, np.random.default_rng(4), whole=True)
        fast = estimate.answer(Workload((16,), boxes, np.arange(40), 40))
        np.testing.assert_allclose(fast.values, [brute.answer(root, b.tolist()) for b in boxes], rtol=0, atol=1e-12)
        assert not np.isnan(fast.standard_error).any()


def test_it_is_the_brute_force_version_in_law():
    """Means and variances within 4.5 standard errors; a variance 30 % off lies at least 5.2 out."""
    counts, schema, repeats = [15, 1, 2, 12, 0, 1, 7, 12], schema_of(8), 1800
    boxes = np.array([[[0, 3]], [[1, 6]], [[2, 7]], [[4, 8]]], float)
    records = [[code] for code, count in enumerate(counts) for _ in range(count)]
    slow, fast = np.empty((repeats, 4)), np.empty((repeats, 4))
    people, rng = Population.of_histogram(np.array(counts)), np.random.default_rng(12)
    workload, words = Workload((8,), boxes, np.arange(4), 4), SeededWords(13)
    for r in range(repeats):
        root = brute.construct([Axis(8)], 2, 2.0, brute.People(records, 3, 2.0, words).ask)
        slow[r] = [brute.answer(root, box.tolist()) for box in boxes]
        fast[r] = run_simulation(AHEAD.paper(2.0), schema, people, rng).answer(workload, errors=False).values
    off = (slow.mean(axis=0) - fast.mean(axis=0)) / np.sqrt((slow.var(axis=0) + fast.var(axis=0)) / repeats)
    assert (np.abs(off) < 4.5).all(), off
    kurtosis = (((fast - fast.mean(axis=0)) / fast.std(axis=0)) ** 4).mean(axis=0)
    error = np.sqrt(2 * (kurtosis - 1) / repeats)
    assert (error < 0.3 / 5.2).all(), "no power"
    assert (np.abs(slow.var(axis=0) / fast.var(axis=0) - 1) < 4.5 * error).all()


# The paper's numbers.


@pytest.mark.parametrize(
    ("sizes", "people", "epsilon", "printed"),
    [
        ((256,), 2_260_668, 1.1, "0.006"),  # Loan, Fig. 11
        ((512,), 6_022_336, 1.1, "0.004"),  # Financial
        ((1024,), 537_577, 1.1, "0.013"),  # BlackFriday
        ((2048,), 148_654, 1.1, "0.026"),  # Salaries
        ((256, 256), 10**7, 1.1, "0.003"),  # Fig. 12
        ((1024, 1024), 10**7, 1.1, "0.004"),
        ((1024,), 10**6, 0.1, "0.11"),  # App. J.3
        ((1024,), 10**7, 1.0, "0.003"),
    ],
)
def test_theta_is_the_papers(sizes, people, epsilon, printed):
    """As printed, to its last digit, with one group for each level and k = 2^m children."""
    axes = [Axis(size) for size in sizes]
    c, children = levels(axes, 2), int(Tree.root(axes, 2).prospective_children[0])
    theta = float(threshold(OUE.make(epsilon, children).variance(people / c), children))
    assert f"{theta:.{len(printed) - 2}f}" == printed
    closed_form = sqrt((children + 1) * 4 * exp(epsilon) * c / (people * (exp(epsilon) - 1) ** 2))  # Eq. 4
    assert theta == pytest.approx(closed_form, rel=2e-6)


def test_fewer_groups_for_two_attributes_would_not_give_the_printed_theta():
    """Alg. 3 has c = log_B |D| with B = 4, the text log_B |D|^2: only the text's gives 0.003 and 0.004."""
    for size, printed in [(256, "0.003"), (1024, "0.004")]:
        halved = float(threshold(OUE.make(1.1, 4).variance(10**7 / (levels([Axis(size)], 2) / 2)), 4))
        assert f"{halved:.3f}" != printed


@pytest.mark.parametrize(("sizes", "children"), [((16,), 2), ((16, 16), 4), ((16, 1), 2), ((8, 8, 8), 8)])
def test_a_node_is_divided_if_its_estimate_is_above_theta(sizes, children):
    """At one count below theta it stops; at the next it is divided."""
    schema, n = schema_of(*sizes), 5000
    oracle = OUE.make(1.0, children)
    theta = float(threshold(oracle.variance(n), children))
    border = n * (theta * (oracle.p - oracle.q) + oracle.q)
    for count, divided in [(floor(border), False), (ceil(border), True)]:
        run = AHEAD.paper(1.0).run(schema)
        next(run)
        counts = np.array([count] + [round(n * oracle.q)] * (children - 1))
        question = run.send({"1": Tally(n, counts)})["2"]
        assert (question.partition.cells > children) == divided


def test_theta_counts_the_children_that_a_node_would_get():
    """2 x 16: after the first cut only one attribute is left to cut, so k = 2, not 4."""
    run = AHEAD.paper(1.0).run(schema_of(2, 16))
    n, oracle = 5000, OUE.make(1.0, 4)
    next(run)
    two, four = (float(threshold(oracle.variance(n), k)) for k in (2, 4))
    between = round(n * ((two + four) / 2 * (oracle.p - oracle.q) + oracle.q))
    question = run.send({"1": Tally(n, np.array([between, *[round(n * oracle.q)] * 3]))})["2"]
    assert question.partition.cells == 5


def test_the_example_query_uses_the_nodes_that_the_paper_names():
    """Sec. 4.5: [0,5] x [0,5] on 8 x 8 is f1 + f9 + f11 + f13 + f14 + f4 / 4."""
    flags = np.array([node in (0, 1, 2, 3) for node in range(17)])
    tree = Tree.from_flags([Axis(8), Axis(8)], 2, flags)
    named = {
        1: [(0, 3), (0, 3)],
        9: [(0, 1), (4, 5)],
        11: [(2, 3), (4, 5)],
        13: [(4, 5), (0, 1)],
        14: [(4, 5), (2, 3)],
        4: [(4, 7), (4, 7)],
    }
    for node, sides in named.items():
        assert list(zip(tree.lo[node].tolist(), (tree.hi[node] - 1).tolist(), strict=True)) == sides
    weights = cover_weights(tree, np.array([[[0, 6], [0, 6]]], float))[0]
    used = {int(node): float(weights[node]) for node in np.flatnonzero(weights)}
    assert used == {1: 1, 9: 1, 11: 1, 13: 1, 14: 1, 4: 0.25}


# Any domain, any number of reports.


@st.composite
def schemas(draw: st.DrawFn, most: int = 3, largest: int = 70) -> Schema:
    """Attributes of 1 to 70 codes: ordered, nominal, with a cell for missing values."""
    attributes, cells = [], 1
    for i in range(draw(st.integers(1, most))):
        size = draw(st.integers(1, min(largest, max(1, 6000 // cells))))
        cells *= size
        kind = draw(st.sampled_from(["ordered", "nominal", "missing"]))
        if kind == "nominal" and size <= 12:
            attributes.append(nominal(f"a{i}", [str(label) for label in range(size)]))
        elif kind == "missing" and size > 1:
            attributes.append(codes(f"a{i}", size - 1, missing="cell"))
        else:
            attributes.append(codes(f"a{i}", size))
    return as_schema(attributes)


def mechanisms(epsilon: float = 1.0) -> st.SearchStrategy[AHEAD]:
    return st.builds(
        AHEAD,
        epsilon=st.just(epsilon),
        oracle=st.sampled_from(["oue", "best"]),
        fanout=st.integers(2, 5),
        tested=st.sampled_from(["raw", "norm_sub"]),
        stopped=st.sampled_from(["final", "retested"]),
        scale=st.sampled_from([0.3, 1.0]),
        max_cells=st.sampled_from([1 << 10, 1 << 16]),
    )


@examples(40)
@given(schema=schemas(), mechanism=mechanisms(), seed=st.integers(0, 2**32))
def test_every_level_is_a_distribution_over_a_partition(schema, mechanism, seed):
    rng = np.random.default_rng(seed)
    estimate, waves, history = drive(mechanism, schema, any_people(rng))
    assert len(waves) == len(mechanism.groups(schema)) == levels(axes_of(schema), mechanism.fanout)
    for wave in waves:
        ((_, question),) = wave.items()
        times = np.zeros(schema.sizes, int)
        for box in boxes_of(question):
            times[tuple(slice(lo, hi) for lo, hi in box)] += 1
        assert (times == 1).all()
        assert question.partition.cells <= mechanism.max_cells
    for measurement in estimate.averaged.measurements:
        assert measurement.estimate.min() >= 0
        assert measurement.estimate.sum() == pytest.approx(1, abs=1e-9)
    for told in range(len(history) + 1):
        check_estimate(finish(mechanism, schema, history[:told]), schema, rng)
    np.testing.assert_array_equal(finish(mechanism, schema, history).values, estimate.values)


def check_estimate(estimate: TreeEstimate, schema: Schema, rng: np.random.Generator) -> None:
    assert not estimate.consistent
    everybody = estimate.answer(whole(schema.sizes))
    assert everybody.values[0] == pytest.approx(1, abs=1e-12)
    assert (everybody.standard_error[0], everybody.bias_not_included[0]) == (0.0, False)
    boxes = random_boxes(schema.sizes, 8, rng)
    found = estimate.answer(Workload(schema.sizes, boxes, np.arange(8), 8))
    assert np.isfinite(found.values).all()
    assert not np.isnan(found.standard_error).any()
    leaves = estimate.tree.leaves
    assert estimate.values.min() >= 0
    assert estimate.values[leaves].max() <= 1 + 1e-12


@examples(40)
@given(schema=schemas(most=2), seed=st.integers(0, 2**32), limit=st.integers(2, 60))
def test_questions_stay_within_max_cells(schema, seed, limit):
    mechanism = AHEAD(epsilon=4.0, scale=0.1, max_cells=limit)
    first = int(Tree.root(axes_of(schema), 2).prospective_children[0])
    rng = np.random.default_rng(seed)
    if first > limit:
        with pytest.raises(ValueError, match=rf"at most {limit} cells, got {first}: .* use method 'lle'"):
            next(mechanism.run(schema))
        return
    _, waves, _ = drive(mechanism, schema, any_people(rng, (5000,)))
    assert max((q.partition.cells for wave in waves for q in wave.values()), default=1) <= limit


def test_the_heaviest_nodes_are_divided_where_there_is_no_room_for_all():
    schema = schema_of(64)
    run = AHEAD(epsilon=4.0, fanout=4, max_cells=10).run(schema)
    oracle = next(run)["1"].oracle
    people = np.array([1000, 4000, 2000, 3000])
    question = run.send({"1": oracle.simulate(people, np.random.default_rng(0))})["2"]
    assert question.partition.cells == 10
    divided = {lo // 16 for ((lo, hi),) in boxes_of(question) if hi - lo == 4}
    assert divided == {1, 3}


def test_too_many_attributes_at_once_are_refused_with_the_numbers():
    with pytest.raises(ValueError, match=r"at most 65536 cells, got 131072: 17 attributes are cut at once; .*'lle'"):
        next(AHEAD.paper(1.0).run(schema_of(*[8] * 17)))
    next(AHEAD.paper(1.0).run(schema_of(*[8] * 8)))


@examples(15)
@given(sizes=st.lists(st.integers(1, 9), min_size=2, max_size=3), seed=st.integers(0, 2**32))
def test_an_attribute_with_its_full_range_changes_nothing(sizes, seed):
    schema, rng = schema_of(*sizes), np.random.default_rng(seed)
    estimate, *_ = drive(AHEAD.paper(2.0), schema, any_people(rng))
    check_full_ranges(estimate, schema, rng)


def check_full_ranges(estimate, schema: Schema, rng: np.random.Generator) -> None:
    """For every subset of the attributes: the others left out, or asked for with their full range."""
    names, sizes = schema.names, schema.sizes
    for count in range(1, len(names) + 1):
        for chosen in combinations(range(len(names)), count):
            ends = {i: sorted(rng.integers(0, sizes[i], 2).tolist()) for i in chosen}
            short = " and ".join(f"{names[i]} in {lo}..{hi}" for i, (lo, hi) in ends.items())
            full = [f"{names[i]} in 0..{sizes[i] - 1}" for i in range(len(names)) if i not in chosen]
            values = estimate.ask(short, " and ".join([short, *full])).values
            assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_a_group_without_reports_divides_and_stops_nothing():
    schema = schema_of(8)
    run = AHEAD.paper(2.0).run(schema)
    first = next(run)["1"]
    again = run.send({"1": Tally.empty(2)})["2"]
    assert boxes_of(again) == boxes_of(first)
    third = run.send({"2": again.oracle.simulate(np.array([900, 900]), np.random.default_rng(1))})["3"]
    assert third.partition.cells == 4


# Errors.


@pytest.mark.parametrize(
    ("sizes", "fanout", "parts"),
    [((16,), 2, 2), ((16,), 2, 4), ((16,), 2, 16), ((16,), 4, 4), ((8, 8), 2, 2), ((8, 8), 2, 8)],
)
def test_answers_are_unbiased_and_vary_as_theory_says(sizes, fanout, parts):
    """Cells of a grid, 2 million people, nothing clipped: Norm-Sub takes the same off all cells of a question.

    Over nearly independent cells the ratio of variances has a standard error of sqrt(2 / (repeats (cells - 1))), and a
    variance 30 % off lies outside; so does that of Norm-Sub taken as the identity, twice as large for 2 cells.
    """
    repeats = 500 if parts == 2 and len(sizes) == 1 else 250
    mechanism, workload = AHEAD.paper(1.0, fanout), cells_of(sizes, parts, len(sizes))
    off, claimed = spread(mechanism, sizes, workload, repeats, 2 * 10**6)
    assert (np.abs(off.mean(axis=0)) < 5 * off.std(axis=0) / sqrt(repeats)).all()
    people = Population.of_histogram(bumpy(sizes, 2 * 10**6, 7))
    estimate = run_simulation(mechanism, schema_of(*sizes), people, np.random.default_rng(0))
    found = estimate.answer(workload)
    assert not found.bias_not_included.any()
    assert not found.bias_error.any()
    bound = 4.5 * sqrt(2 / (repeats * (parts ** len(sizes) - 1)))
    assert bound < 0.3
    assert off.var(axis=0, ddof=1).sum() / claimed.sum() == pytest.approx(1, abs=bound)
