"""The leaderboard: pages that hold what the file says, a run that goes on where it was, ratios that are right."""

import csv
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from ahead_ldp.mechanisms import MECHANISMS, default_method
from ahead_ldp.research.distances import METRICS
from ahead_ldp.research.evaluation import choose, run_trial, trial_rng
from tools import docs, leaderboard, splits
from tools.leaderboard import Row

ROWS = leaderboard.read(leaderboard.RESULTS)


def row(method, people="gaussian", mean=1.0, std=0.0, **more):
    errors = {metric: (mean, std) for metric in METRICS}
    made = Row("1", people, "tuning", method, "default", "1", errors, 5, f"{method} {people}")
    return replace(made, **more)


# What is published.


@pytest.mark.parametrize("page", leaderboard.pages(), ids=lambda page: page.stem)
def test_pages_hold_what_the_file_says(page):
    text = page.read_text("utf-8")
    assert leaderboard.page_of(text, ROWS) == text, "run python -m tools.leaderboard --write"


def test_every_metric_has_its_page():
    marked = [m["name"] for page in leaderboard.pages() for m in leaderboard.MARKS.finditer(page.read_text("utf-8"))]
    assert sorted(marked) == sorted([*METRICS, "summary", "scope"])


def test_every_registered_method_has_its_line_or_a_reason():
    measured = {r.method for r in ROWS}
    classes = {name for name, cls in MECHANISMS.working()[0].items() if cls.__module__.startswith("ahead_ldp.")}
    assert measured == classes - set(leaderboard.LEFT_OUT), "run python -m tools.leaderboard --write"


def test_everything_is_measured_on_the_same_places():
    for part in leaderboard.PEOPLE:
        mine = [r for r in ROWS if r.part == part]
        places = {entry: {r.place for r in mine if r.entry == entry} for entry in {r.entry for r in mine}}
        whole = {(part, name, e) for name in leaderboard.PEOPLE[part] for e in leaderboard.EPSILONS}
        assert {entry: whole - there for entry, there in places.items() if there != whole} == {}


def test_people_say_on_which_list_they_stand():
    for part, names in leaderboard.PEOPLE.items():
        found = [(which, setting.name) for which, setting in leaderboard.people(part)]
        assert [name for _, name in found] == list(names)
        assert {which for which, _ in found} == set(splits.SPLITS)
        held = {r.people: r.split for r in ROWS if r.part == part}
        assert held == {name: which for which, name in found}


def test_the_default_is_what_a_user_gets_who_names_no_method():
    for part, (name, _) in leaderboard.DEFAULTS.items():
        assert default_method(next(leaderboard.people(part))[1].schema) == name


@pytest.mark.parametrize(
    ("method", "part", "people", "epsilon"),
    [
        ("hio", "1", "gaussian", "1"),
        ("adaptive", "1", "gaussian", "2"),
        ("adaptive", "1", "zipf 1.1", "2"),
        ("fused", "2", "gaussian r 0.8", "1"),
    ],
)
def test_a_published_number_comes_out_again(method, part, people, epsilon):
    """A row, measured anew from what the file says of it. A new numeric of the method makes the row stale."""
    ((_, setting),) = [pair for pair in leaderboard.people(part) if pair[1].name == people]
    published = next(r for r in ROWS if r.place == (part, people, epsilon) and r.entry == (method, "default"))
    task = leaderboard.task_of(setting)
    mechanism = choose(method, setting.schema, epsilon, task.people.n)[0]
    assert leaderboard.key_of(part, setting, mechanism, leaderboard.REPEATS) == published.key
    errors = leaderboard.errors_of(task, mechanism, epsilon, leaderboard.REPEATS)
    for metric in METRICS:
        assert errors[metric] == pytest.approx(published.errors[metric], rel=1e-3)


# How it is measured.


def test_errors_are_those_of_the_trials():
    ((_, setting),) = [pair for pair in leaderboard.people("1") if pair[1].name == "gaussian"]
    task = leaderboard.task_of(setting)
    mechanism = choose("flat", setting.schema, "1", task.people.n)[0]
    trials = [run_trial(task, mechanism, trial_rng(leaderboard.SEED, "flat", "1", k), task.curves) for k in range(3)]
    errors = leaderboard.errors_of(task, mechanism, "1", 3)
    for metric in METRICS:
        values = [trial.error(metric) for trial in trials]
        assert errors[metric] == pytest.approx((np.mean(values), np.std(values, ddof=1)))


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard, "PEOPLE", {"1": ("gaussian",), "2": ()})
    out, calls = tmp_path / "out.csv", []
    measured = leaderboard.errors_of

    def counted(task, mechanism, *rest):
        calls.append(mechanism.name)
        return measured(task, mechanism, *rest)

    monkeypatch.setattr(leaderboard, "errors_of", counted)
    first = leaderboard.measure(out, ["1"], ["tuning"], ["1"], ["ahead", "uni"], 2)
    assert calls == ["ahead", "uni"]
    whole = out.read_bytes()
    lines = whole.splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])  # stopped in the middle of the last row
    again = leaderboard.measure(out, ["1"], ["tuning"], ["1"], ["ahead", "uni", "flat"], 2)
    assert calls == ["ahead", "uni", "uni", "flat"]
    assert [r.texts() for r in again[:2]] == [r.texts() for r in first]
    assert out.read_bytes().startswith(whole)


def test_settings_that_are_the_same_stand_once():
    ((_, setting),) = [pair for pair in leaderboard.people("1") if pair[1].name == "gaussian"]
    found = leaderboard.entries(leaderboard.task_of(setting), "1", ["ahead", "sw", "hio", "fused"])
    assert {("ahead", "default"), ("sw", "default"), ("sw", "paper"), ("hio", "strong")} <= set(found)
    assert ("sw", "strong") not in found  # the default is the strong one
    assert ("ahead", "paper") not in found


def test_another_choice_people_or_number_of_repetitions_is_another_row():
    (_, setting), (_, other) = list(leaderboard.people("1"))[:2]
    make = lambda name: choose(name, setting.schema, "1", 1000)[0]  # noqa: E731
    keys = {
        leaderboard.key_of("1", setting, make("hh"), 5), leaderboard.key_of("1", setting, make("hio"), 5),
        leaderboard.key_of("1", other, make("hh"), 5), leaderboard.key_of("1", setting, make("hh"), 6),
    }  # fmt: skip
    assert len(keys) == 4


# Tables.


def test_ratios_are_geometric_means_over_people():
    rows = [row("ahead", "a", 4.0), row("ahead", "b", 1.0), row("hh", "a", 1.0), row("hh", "b", 1.0)]
    table = leaderboard.ranked(rows, "mse").splitlines()
    assert table[2:] == ["| `hh` | 0.50 | 1.00 (b) |", "| `ahead` | 1.00 | 1.00 (a) |"]


def test_the_interval_of_a_ratio_is_that_of_its_logarithm():
    """Repetitions drawn from a law: the interval holds the ratio of the true means about as often as it says."""
    rng, held = np.random.default_rng(1), 0
    for _ in range(400):
        pairs = []
        for people in "abcdefgh":
            two = []
            for method, true in (("hh", 2.0), ("ahead", 1.0)):
                drawn = true * rng.gamma(20.0, 1 / 20.0, 5)
                two.append(row(method, people, float(drawn.mean()), float(drawn.std(ddof=1))))
            pairs.append(tuple(two))
        mean = leaderboard.Mean.of(pairs, "mse")
        held += mean.ratio / mean.factor <= 2.0 <= mean.ratio * mean.factor
    assert 0.90 <= held / 400 <= 0.98


def test_the_order_follows_the_report_list():
    both = [("tuning", "a", 0.1, 1.0), ("report", "b", 3.0, 2.0)]
    rows = [row("ahead", p, 1.0, split=which) for which, p, _, _ in both]
    rows += [row("hh", p, x, split=which) for which, p, x, _ in both]
    rows += [row("hio", p, y, split=which) for which, p, _, y in both]
    order = [line.split("`")[1] for line in leaderboard.ranked(rows, "mse").splitlines()[2:]]
    assert order == ["ahead", "hio", "hh"]


def test_the_second_table_has_the_least_error_of_each_kind_of_people():
    rows = [row("ahead", mean=3e-5), row("adaptive", mean=2e-5), row("sw", mean=1e-5, settings="paper")]
    line = leaderboard.by_people(rows, "mse").splitlines()[2]
    assert line == "| gaussian | tuning | 1.00 ± 0.00 | `sw`, paper | 2.00 ± 0.00 | 3.00 ± 0.00 |"


def test_a_part_is_not_published():
    words = [sys.executable, "-m", "tools.leaderboard", "--list", "tuning", "--write"]
    done = subprocess.run(words, cwd=docs.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "got a part" in done.stderr or "AHEAD_DATA" in done.stderr


def test_the_file_is_a_plain_table():
    with leaderboard.RESULTS.open(encoding="utf-8") as file:
        names = next(csv.reader(file))
    assert names == leaderboard.FIELDS
