"""The default over numbers of people and epsilons: errors over others', and a run that goes on where it was."""

import json

import numpy as np
import pytest

from tools import docs, grid
from tools.accuracy import errors, named
from tools.grid import Cell

METHODS = (grid.DEFAULT, *grid.RIVALS, grid.EVEN)


def cell(ours, *rivals, people=10**6, epsilon=1.0):  # of shape (kinds, repeats) each; the first rival is the paper's
    names = [f"kind {i}" for i in range(len(ours))]
    stacked = np.stack([np.asarray(r, float) for r in rivals], axis=1)
    return Cell(people, epsilon, names, np.asarray(ours, float), stacked[:, 0], stacked[:, 0], stacked)


def test_a_half_that_everybody_is_asked_about_has_the_deviation():
    """Against randomised response itself: its estimate over many runs."""
    people, epsilon = 2_000, 0.4
    p = np.exp(epsilon) / (1 + np.exp(epsilon))
    rng = np.random.default_rng(1)
    yes = rng.binomial(people // 2, p, 40_000) + rng.binomial(people // 2, 1 - p, 40_000)
    estimates = (yes / people - (1 - p)) / (2 * p - 1)
    assert grid.deviation(people, epsilon) == pytest.approx(estimates.std(), rel=0.02)


def test_the_best_rival_is_picked_for_each_kind():
    found = cell([[1, 1], [1, 1]], [[2, 2], [8, 8]], [[4, 4], [0.5, 0.5]])
    assert found.best.tolist() == [[2, 2], [0.5, 0.5]]
    assert found.against(found.best).ratio.tolist() == [0.5, 2.0]


def test_to_pick_the_best_of_rivals_who_are_level_gains_nothing():
    rng = np.random.default_rng(4)
    drawn = rng.gamma(4.0, 1 / 4.0, (11, 3_000, 6))
    found = cell(drawn[0], *drawn[1:])
    assert found.best.mean() == pytest.approx(1.0, abs=5 * 0.5 / np.sqrt(18_000))
    assert found.rivals.mean(axis=2).min(axis=1).mean() < 0.75  # what picking by the same runs would have said


def test_the_standard_error_is_that_of_the_mean_of_logarithms():
    rng = np.random.default_rng(2)
    kinds, repeats, runs = 6, 40, 400
    logs, told = [], []
    for _ in range(runs):
        ours, theirs = rng.gamma(4.0, 1 / 4.0, (2, kinds, repeats))
        against = cell(ours, theirs).against(theirs)
        logs.append(np.log(against.ratio).mean())
        mean, error = map(float, against.mean.split(" ± "))
        told.append(error / mean)
    assert np.mean(told) == pytest.approx(np.std(logs), rel=0.15)  # 400 runs tell a deviation to 4 %


def test_a_loss_is_told_from_chance():
    """Of 40 kinds that are level hardly any is above; one that is twice as high is found."""
    rng = np.random.default_rng(3)
    ours, theirs = rng.gamma(20.0, 1 / 20.0, (2, 40, 8))
    ours[7] *= 2
    against = cell(ours, theirs).against(theirs)
    assert (against.ratio > 1).sum() > 10
    assert against.surely_above(1.0, 40) == 1


def test_a_table_names_losses_and_counts_what_can_be_told():
    known = {}
    for people in (1_000, 10**6):
        for kind in ("gaussian", "slope"):
            for method in METHODS:
                worse = method == grid.DEFAULT and kind == "slope"
                row = np.array([2.0, 2.2]) if worse else np.array([1.0, 1.1])
                known[people, kind, method] = np.tile(row, (len(grid.EPSILONS), 1))
    text = grid.table(known)
    few = sum(grid.deviation(1_000, e) < grid.TOLD for e in grid.EPSILONS)
    assert 0 < few < len(grid.EPSILONS)
    settings = 2 * (few + len(grid.EPSILONS))
    assert f"deviation under 0.25; {settings} settings" in text
    assert f"higher in {settings // 2} ({settings // 2} of them beyond chance" in text
    assert text.count("slope 2 |") == 2 * len(grid.EPSILONS)


def test_losses_are_measured_again_with_fresh_noise(monkeypatch):
    monkeypatch.setattr(grid, "EPSILONS", (1.0,))
    known = {(10_000, "gaussian", m): np.full((1, 3), 1.0) for m in METHODS}
    known[10_000, "gaussian", grid.DEFAULT] = np.full((1, 3), 1.3)
    known[10_000, "gaussian", "hh:strong"] = np.full((1, 3), 0.9)
    assert [(loss.rival, loss.line) for loss in grid.losses(known)] == [(grid.PAPER, 1.0), ("hh:strong", grid.WORSE)]
    asked = []

    def errors(setting, makers, epsilons, repeats, kind="random"):
        asked.append((setting.name, setting.n, list(repeats)))
        return np.array([[[2.0, 2.2, 1.8], [1.0, 1.1, 0.9]]])

    monkeypatch.setattr(grid, "errors", errors)
    text = grid.measure_again(known, 3)
    assert asked == [("gaussian", 10_000, [3, 4, 5])] * 2
    assert "hh:strong | 1.44 | 2.00 ± 0.00 |" in text
    assert "Above 1.25: 1 as picked, 1 again, 1 beyond chance." in text


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(grid, "KINDS", ("gaussian", "age"))
    monkeypatch.setattr(grid, "RIVALS", ("ahead:paper",))
    monkeypatch.setattr(grid, "EPSILONS", (1.0,))
    out = tmp_path / "grid.jsonl"
    first = grid.measure(out, [100_000], 2)
    assert {kind for _, kind, _ in first} == {"gaussian"}, "there are fewer than 100,000 ages"
    whole = out.read_text("utf-8")
    lines = whole.splitlines(keepends=True)
    out.write_text("".join(lines[:-1]) + lines[-1][:20], "utf-8")  # stopped in the middle of the last line
    again = grid.measure(out, [100_000], 2)
    assert {key: row.tolist() for key, row in again.items()} == {key: row.tolist() for key, row in first.items()}
    assert [json.loads(line) for line in out.read_text("utf-8").splitlines()] == [json.loads(line) for line in lines]
    (setting,) = grid.kinds(100_000)
    direct = errors(setting, [named("ahead:paper")], (1.0,), range(2))[:, 0]
    assert first[100_000, "gaussian", "ahead:paper"].tolist() == direct.tolist()


def test_every_cell_stands_on_the_page():
    page = (docs.ROOT / "docs" / "accuracy.md").read_text("utf-8")
    part = page.split("<!-- table grid -->")[1].split("<!-- end table grid -->")[0]
    for people in grid.PEOPLE:
        for epsilon in grid.EPSILONS:
            assert f"| {people:,} | {epsilon:g} | {grid.deviation(people, epsilon):.2g} |" in part
