"""Pictures: what is drawn is what was estimated, in the user's units, and nothing global is touched."""

import dataclasses
import pickle
import subprocess
import sys
from functools import partial
from io import BytesIO
from itertools import combinations

import numpy as np
import pytest
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch
from matplotlib.text import Text

import ahead_ldp
from ahead_ldp import plot_answers, plot_estimate, plot_tree, simulate
from ahead_ldp.estimates.answers import BIAS_NOTE, STRICT_NOTE
from ahead_ldp.plots import style
from ahead_ldp.plots.style import new_figure
from ahead_ldp.research import targets
from ahead_ldp.research.figures.tradeoffs import plot_tradeoff
from ahead_ldp.schema.attributes import as_schema, nominal

COUNTS = np.random.default_rng(1).multinomial(40_000, np.random.default_rng(2).dirichlet(np.full(32, 2.0)))
SPEC = "pay=integer,0,63999,32"


def estimate(spec=SPEC, counts=COUNTS, **choices):
    return simulate(histogram=counts, schema=spec, epsilon=2, seed=1, **choices)


def steps(figure, label):
    return next(p for p in figure.axes[0].patches if isinstance(p, StepPatch) and p.get_label().startswith(label))


def drawn_text(figure) -> str:
    return "\n".join(t.get_text() for t in figure.findobj(lambda artist: hasattr(artist, "get_text")))


def test_density_is_the_histogram_in_the_users_units(tmp_path):
    e = estimate(method="flat")
    figure = e.plot(truth=COUNTS)
    assert isinstance(figure, Figure)
    found = steps(figure, "estimate").get_data()
    np.testing.assert_allclose(found.values, 100 * e.histogram().values)
    np.testing.assert_allclose(found.edges, np.arange(0, 64_001, 2000))
    low, high = e.histogram().interval()
    band = steps(figure, "95 %").get_data()
    np.testing.assert_allclose(band.values, 100 * high)
    np.testing.assert_allclose(band.baseline, 100 * low)
    np.testing.assert_allclose(steps(figure, "truth").get_data().values, 100 * COUNTS / COUNTS.sum())
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("pay", "people, % per 2,000")
    assert "flat, ε = 2, 40,000 people" in drawn_text(figure)
    for suffix in ("png", "svg", "pdf"):
        figure.savefig(tmp_path / f"picture.{suffix}")


OFTEN = ["Never", "Less than once a month", "Once or twice a month", "Once or twice a week", "Every day or almost"]
LONG = [f"{word}, which somebody wrote as a whole sentence into a survey about many things" for word in OFTEN]
PAY = ["$0-$10k", "$10k-$20k", "over $20k"]


def answered(labels):
    schema = as_schema([nominal("answer", labels), nominal("pay", PAY)])
    people = {"answer": np.repeat(labels, 300), "pay": np.tile(PAY, 100 * len(labels))}
    return [simulate(people, schema, epsilon=2, method="flat", seed=seed) for seed in (1, 2)]


NAMED = {
    "bars": lambda first, _: first.plot("answer"),
    "heat map": lambda first, _: first.plot("answer", "pay"),
    "heat map, the other way": lambda first, _: first.plot("pay", "answer"),
    "answers": lambda first, _: first.marginal("answer").plot(),
    "groups": lambda first, _: first.by("answer").share("pay = over $20k").plot(),
    "changes": lambda first, second: ahead_ldp.plot_difference(second.since(first), "answer"),
}


@pytest.mark.parametrize("labels", [PAY, OFTEN, LONG], ids=["short", "some words", "sentences"])
@pytest.mark.parametrize("kind", NAMED)
def test_names_stand_beside_one_another_and_leave_room(kind, labels):
    """Upright they cover nothing; turned they are parallel. A layout that fails warns, which is an error."""
    figure = NAMED[kind](*answered(labels))
    figure.savefig(BytesIO())
    axes = figure.axes[0]
    assert axes.get_window_extent().width > 0.35 * figure.bbox.width
    for axis in (axes.xaxis, axes.yaxis):
        named = [label for label in axis.get_ticklabels() if label.get_text()[:1].isalpha() or "$" in label.get_text()]
        boxes = [label.get_window_extent() for label in named]
        for box in boxes:
            assert box.x0 >= -1
            assert box.x1 <= figure.bbox.width + 1
        if named and not named[0].get_rotation():
            assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_a_price_is_no_formula():
    first, second = answered(PAY)
    for make in NAMED.values():
        figure = make(first, second)
        named = [text for text in figure.findobj(Text) if "$" in text.get_text() and text.get_visible()]
        assert named
        assert not any(text.get_parse_math() for text in named)


def test_unequal_buckets_are_drawn_by_density():
    e = estimate("pay=real,0|10|20|40", np.array([100, 100, 200]), method="flat")
    found = steps(plot_estimate(e), "estimate").get_data()
    shares = e.histogram().values
    np.testing.assert_allclose(found.values, 100 * shares * [1, 1, 0.5])


def test_the_models_band_is_drawn_by_name_with_its_mark_and_its_assumption():
    e = estimate(counts=COUNTS // 40, method="hdg")
    model, strict = e.plot(kind="model"), e.plot()
    assert "95 % interval*" in drawn_text(model)
    assert BIAS_NOTE in drawn_text(model).replace("\n", " ")
    assert "Intervals of the model: they hold if people lie evenly" in drawn_text(model)
    assert "*" not in drawn_text(strict)
    assert STRICT_NOTE in drawn_text(strict)
    for figure, kind in ((model, "model"), (strict, "strict")):
        np.testing.assert_allclose(steps(figure, "95 %").get_data().values, 100 * e.histogram().interval(kind=kind)[1])


def test_many_buckets_have_a_fine_line_and_few_strict_intervals():
    counts = np.random.default_rng(5).multinomial(30_000, np.full(500, 1 / 500))
    e = estimate("x=integer,0,499", counts, method="ahead")
    figure = e.plot()
    band, line = steps(figure, "95 %").get_data(), steps(figure, "finer").get_data()
    assert (band.values.size, line.values.size) == (46, 256)  # eleven values each
    assert set(np.diff(band.edges)) == {11.0, 5.0}
    inside = steps(figure, "estimate").get_data().values  # of the same stretches as the intervals
    assert ((band.baseline <= inside) & (inside <= band.values)).all()
    high = e.histogram(bins=[*range(0, 500, 11), 499]).interval()[1]
    typical = np.median(np.diff(line.edges))
    np.testing.assert_allclose(band.values, 100 * high * typical / np.diff(band.edges))
    assert steps(e.plot(kind="model"), "95 %").get_data().values.size == 256


def test_legend_covers_no_data():
    figure = estimate().plot(truth=COUNTS)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    legend = axes.get_legend().get_window_extent()
    assert legend.y0 >= axes.get_window_extent().y1 - 1
    assert legend.x1 <= figure.bbox.x1


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        ("day=date,2020-01-01,2020-12-31", 366),
        ("at=time,00:00,23:59:59,24", 24),
        ("seen=datetime,2020-01-01T00:00,2020-01-02T23:59:59,48", 48),
        ("size=ordered,S|M|L", 3),
        ("size=nominal,S|M|L,missing=cell", 4),
        ("x=paper,0,10,11", 11),
        ("x=integer,0,999", 1000),
    ],
)
def test_every_kind_is_drawn(spec, size, tmp_path):
    counts = np.random.default_rng(1).integers(1, 500, size)
    e = estimate(spec, counts, method="ahead")
    e.plot(truth=counts).savefig(tmp_path / "one.png")
    plot_tree(e).savefig(tmp_path / "two.png")


def test_two_attributes_are_a_heat_map(tmp_path):
    counts = np.random.default_rng(3).integers(0, 300, (8, 16))
    e = estimate(["a=integer,0,7", "b=real,0,1,16"], counts)
    figure = e.plot(truth=counts)
    meshes = [c for axes in figure.axes for c in axes.collections if isinstance(c, QuadMesh)]
    np.testing.assert_allclose(
        np.asarray(meshes[0].get_array()).reshape(16, 8), 100 * np.maximum(e.marginal("a", "b").values.T, 0)
    )
    np.testing.assert_allclose(np.asarray(meshes[1].get_array()).reshape(16, 8), 100 * counts.T / counts.sum())
    assert meshes[0].norm.vmax == meshes[1].norm.vmax
    figure.savefig(tmp_path / "heat.png")
    assert e.plot("b").axes[0].get_xlabel() == "b"


def test_tree_shows_every_node_over_its_interval(tmp_path):
    e = estimate(method="ahead")
    figure = plot_tree(e, truth=COUNTS)
    bars = next(c for c in figure.axes[1].collections if isinstance(c, PolyCollection))
    corners = np.stack([path.vertices[:4] for path in bars.get_paths()])
    np.testing.assert_allclose(corners[:, 0, 0], e.tree.lo[:, 0] * 2000)
    np.testing.assert_allclose(corners[:, 1, 0], e.tree.hi[:, 0] * 2000)
    np.testing.assert_allclose(corners[:, 0, 1], e.tree.level)
    leaves = ~e.tree.is_split
    assert (corners[leaves, 2, 1] == e.tree.height + 1).all()
    figure.savefig(tmp_path / "tree.png")


def test_leaves_of_two_attributes_tile_the_heat_map():
    counts = np.random.default_rng(3).integers(0, 300, (16, 16))
    e = estimate(["a=integer,0,15", "b=real,0,16,16"], counts, method="ahead")
    figure = plot_tree(e)
    boxes = next(c for c in figure.axes[0].collections if isinstance(c, PolyCollection))
    corners = np.stack([path.vertices[:4] for path in boxes.get_paths()])
    area = (np.ptp(corners[..., 0], axis=1) * np.ptp(corners[..., 1], axis=1)).sum()
    assert len(corners) == e.tree.leaves.size
    assert area == pytest.approx(256)
    assert f"the {len(corners)} leaves" in drawn_text(figure)


@pytest.mark.parametrize(("kind", "rule"), [(None, "at once"), ("model", "at once (sup-t)")])
def test_answers_are_rows_with_intervals(kind, rule):
    answers = estimate(method="ahead").ask("pay in 0..9999", "pay in 1234..50000")
    figure = plot_answers(answers, truth=[0.1, 0.9], kind=kind)
    labels = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    marks = answers.bias_not_included & (kind == "model")
    assert labels == [name + "*" * bool(mark) for name, mark in zip(answers.labels["query"], marks, strict=True)]
    points = figure.axes[0].containers[0].lines[0]
    np.testing.assert_allclose(points.get_xdata(), 100 * answers.values)
    for drawn, simultaneous in zip(figure.axes[0].containers, (False, True), strict=True):
        ends = np.array([bar[:, 0] for bar in drawn.lines[2][0].get_segments()])
        np.testing.assert_allclose(ends, 100 * np.stack(answers.interval(0.95, simultaneous, kind), axis=1))
    assert f"with 95 % probability all 2 intervals hold {rule}" in drawn_text(figure)


def test_given_axes_are_drawn_on():
    figure = style.new_figure()
    left, right = figure.subplots(1, 2)
    assert plot_estimate(estimate(), ax=left) is figure
    assert plot_answers(estimate().ask("pay >= 100"), ax=right) is figure
    assert len(figure.axes) == 2
    assert left.patches


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot_estimate(estimate(), truth=[1, 2]), r"truth .* of shape \(32,\), got shape \(2,\)"),
        (lambda: plot_estimate(estimate(), truth=-COUNTS), "counts or shares >= 0"),
        (lambda: plot_estimate(estimate(), "nothing"), "among pay, got 'nothing'"),
        (lambda: plot_tree(estimate(method="uni")), "a tree over one or two attributes, got UniformEstimate"),
        (lambda: plot_answers(estimate().ask("pay >= 3"), truth=[1, 2]), "truth for 1 answers, got 2"),
    ],
)
def test_mistakes_are_named(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_three_attributes_need_a_choice():
    e = estimate(["a=integer,0,3", "b=integer,0,3", "c=integer,0,3"], np.ones((4, 4, 4), int) * 50, method="flat")
    with pytest.raises(ValueError, match="one or two attributes among a, b, c, got 3"):
        e.plot()
    e.plot("a", "c")


def test_pyplot_is_not_loaded(tmp_path):
    code = (
        "import sys, ahead_ldp\n"
        "e = ahead_ldp.simulate(histogram=[5, 6, 7, 8], schema='a=integer,0,3', epsilon=1)\n"
        "assert 'matplotlib' not in sys.modules\n"
        "e.plot().savefig(sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "picture.png")], check=True)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"ahead-ldp\[plot\]"):
        estimate().plot()


# Size, style and axes, of every kind of picture.


@pytest.fixture(scope="module")
def drawn():
    """A function for every kind of picture."""
    rng = np.random.default_rng(1)
    ages = np.minimum(rng.geometric(0.3, 3000) - 1, 15)
    one = ahead_ldp.simulate(ages, "age=codes,16", epsilon=2, method="ahead", seed=1)
    two = ahead_ldp.simulate(
        np.stack([ages, ages // 2], 1), ["a=codes,16", "b=codes,8"], epsilon=2, method="ahead", seed=1
    )
    compared = ahead_ldp.compare(ages, "age=codes,16", epsilon=1, methods=["flat", "uni"], repeats=2, queries=5)
    case = targets.Case(one.schema, 1000, 1.0, "flat")
    curves = {
        people: [
            targets.Forecast(dataclasses.replace(case, users=people, epsilon=e), "flat", {}, {"zipf": 0.1 / e})
            for e in (1.0, 2.0)
        ]
        for people in (1000, 5000)
    }
    answers = one.ask("age in 0..3", "age in 4..9")
    return {
        "density": partial(ahead_ldp.plot_estimate, one),
        "cdf": partial(ahead_ldp.plot_cdf, one),
        "heat map": partial(ahead_ldp.plot_estimate, two),
        "tree": partial(ahead_ldp.plot_tree, one),
        "leaves": partial(ahead_ldp.plot_tree, two),
        "answers": partial(ahead_ldp.plot_answers, answers),
        "comparison": compared.plot,
        "plan curve": partial(plot_tradeoff, curves, 0.05),
    }


KINDS = ["density", "cdf", "heat map", "tree", "leaves", "answers", "comparison", "plan curve"]


@pytest.mark.parametrize("kind", KINDS)
def test_size_style_and_axes_can_be_given(drawn, kind):
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw = drawn[kind]
    small = draw(size=(4.0, 3.0), style={"axes.facecolor": "#ffeedd"})
    assert small.get_size_inches().tolist() == [4.0, 3.0]
    assert matplotlib.colors.to_hex(small.axes[0].get_facecolor()) == "#ffeedd"
    assert dict(matplotlib.rcParams) == before
    figure = new_figure(9, 4)
    axes = figure.subplots(1, 2)
    assert draw(ax=axes[1]) is figure
    assert not axes[0].has_data()
    assert axes[1].has_data() or axes[1].collections
    with pytest.raises(ValueError, match="expected ax or size, got both"):
        draw(ax=axes[1], size=(4, 3))
    with pytest.raises(ValueError, match="expected size to be a width and a height in inches, got"):
        draw(size=(4, 0))
    with pytest.raises(ValueError, match=r"expected style to be one of matplotlib's, got 'nice'"):
        draw(style="nice")


def test_a_notebook_shows_a_picture_without_pyplot(drawn):
    assert drawn["density"]()._repr_png_().startswith(b"\x89PNG")
    pickle.loads(pickle.dumps(drawn["answers"]()))


def test_the_curve_is_the_cdf(drawn):
    line = drawn["cdf"]().axes[0].lines[0]
    estimate = drawn["cdf"].args[0]
    np.testing.assert_allclose(line.get_ydata()[1:], 100 * estimate.cdf(errors=False).values)
    assert line.get_xdata().tolist() == list(range(17))
    bands = drawn["cdf"]().axes[0].collections
    assert [band.get_label() for band in bands] == ["simultaneous", "95 % interval"]


def test_the_plan_curve_has_plain_numbers(drawn):
    figure = drawn["plan curve"]()
    figure.draw_without_rendering()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels(which="both")]
    assert {"5", "10"} <= set(labels) <= {"", "1", "2", "5", "10", "20", "50", "100"}


def test_a_comparison_has_a_row_for_each_method_and_says_the_verdict(drawn):
    ax = drawn["comparison"]().axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["flat (least error)", "uni (worse)"]
    comparison = drawn["comparison"].__self__
    assert ">uni</td>" in comparison._repr_html_()
    assert "flat" in comparison.table().splitlines()[3]
    assert comparison.others[0].ratio == pytest.approx(
        np.mean(comparison.errors["uni"]) / np.mean(comparison.errors["flat"])
    )


def test_categories_that_fell_are_left_of_zero():
    counts = np.array([6000, 3000, 1000])
    before, after = (
        simulate(histogram=c, schema="team=nominal,a|b|c", epsilon=4, seed=i)
        for i, c in enumerate((counts, counts[::-1]))
    )
    ax = ahead_ldp.plot_difference(ahead_ldp.difference(before, after)).axes[0]
    assert ax.get_xlim()[0] < -45
    assert ax.get_xlim()[1] > 45
    assert ax.get_xlabel() == "change, points of %"


def test_a_caterpillar_plot_of_dates_has_dates_below():
    rng = np.random.default_rng(6)
    people = {
        "when": np.datetime64("2024-03-01") + rng.integers(0, 100, 4000),
        "team": np.array(["a", "b"])[rng.integers(0, 2, 4000)],
    }
    e = simulate(people, ["when=date,2024-01-01,2024-12-30,73", "team=nominal,a|b"], epsilon=6, seed=7)
    figure = ahead_ldp.plot_findings(e.by("team").mean("when"), kind="model")
    figure.canvas.draw()
    low, high = figure.axes[0].get_xlim()
    assert np.datetime64("2024-01-01").astype(int) < low < high < np.datetime64("2024-12-30").astype(int)
    ticks = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert all(not tick.isdigit() or int(tick) <= 31 for tick in ticks)  # days and months, not days since 1970
    assert figure.axes[0].get_xlabel() == "when"
