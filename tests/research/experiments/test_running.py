"""Cells rerun alone, runs resume to the same bytes, a missing data set marks its panel, the whole of --quick works."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ahead_ldp.cli import main
from ahead_ldp.engines.simulation import run_simulation
from ahead_ldp.research.experiments import journal, running
from ahead_ldp.research.experiments.complexity import Setting, growth, measure_apart, measure_here, settings
from ahead_ldp.research.experiments.journal import Outcome
from ahead_ldp.research.experiments.measuring import draw_queries, prepare, run_cell
from ahead_ldp.research.experiments.paper import FIGURES, FULL, QUICK, make_plan
from ahead_ldp.research.experiments.plan import Cell, Data, all_cells, rng_of
from ahead_ldp.research.experiments.results import Measured, count, write_tables
from ahead_ldp.research.experiments.running import Problems, estimate, run_cells, seconds
from ahead_ldp.research.experiments.unprocessed import UnprocessedAHEAD
from ahead_ldp.research.figures import reproduction

ZIPF = Data("zipf", (64,), 20_000)
TABLES = ("results.csv", "summary.csv", "leaves.csv")


def cell(**change):
    given = {"data": ZIPF, "method": "AHEAD", "epsilon": 1.0, "repeats": 3, "queries": 30}
    return Cell(**{**given, **change})


def errors(outcome):
    return [row["mse"] for row in outcome.rows]


# Cells.


def test_a_cell_reruns_alone_and_is_a_prefix_of_a_longer_one():
    first = run_cell(cell())
    prepare.cache_clear()
    assert errors(run_cell(cell())) == errors(first)
    assert errors(run_cell(cell(repeats=5)))[:3] == errors(first)
    assert len(set(errors(first))) == 3


@pytest.mark.parametrize(
    "other",
    [
        cell(method="HIO"),
        cell(epsilon=0.5),
        cell(data=Data("zipf", (64,), 20_001)),
        cell(data=Data("zipf", (32,), 20_000)),
        cell(method="unprocessed"),
        cell(method="unprocessed", theta=0.1),
        cell(seed=1),
        cell(queries=31),
        cell(task="leaves"),
        cell(data=Data("gaussian", (64,), 20_000, skew=0.5)),
        cell(data=Data("gaussian", (8, 8), 20_000, r=0.5)),
    ],
    ids=lambda c: c.id,
)
def test_other_cells_have_other_names_keys_and_noise(other):
    assert other.id != cell().id
    assert other.key != cell().key
    if other.task == "mse":
        assert errors(run_cell(other)) != errors(run_cell(cell()))


def test_the_number_of_repetitions_and_the_method_are_in_the_key(monkeypatch):
    assert cell(repeats=4).key != cell().key
    before = cell(method="default").key
    monkeypatch.setattr("ahead_ldp.research.evaluation.default_method", lambda *_: "flat")
    assert cell(method="default").key != before  # a better default is run again, not read from an old journal


def test_queries_are_the_same_places_on_every_domain():
    coarse, fine = (draw_queries((d, d), 50, 0).boxes[..., 0] / d for d in (64, 1024))
    assert np.abs(coarse - fine).max() < 1 / 64
    long = draw_queries((16,), 20_000, 0).boxes[:, 0]
    assert (long[:, 0] < long[:, 1]).all()
    ends = np.concatenate([long[:, 0], long[:, 1] - 1])
    counts = np.bincount(ends.astype(int), minlength=16)
    assert np.abs(counts - 2500).max() < 5 * np.sqrt(2500)


def test_leaves_are_where_the_people_are():
    rows = run_cell(cell(task="leaves", epsilon=2.0)).rows
    assert len(rows) == 64
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    leaves = [row["leaves"] for row in rows]
    assert sum(leaves) == pytest.approx(round(sum(leaves) * 3) / 3)  # whole leaves in each of three runs
    assert leaves[0] > 4 * leaves[-1]


def test_unprocessed_keeps_raw_means():
    task, _ = prepare(ZIPF, 10, 0)
    mechanism = UnprocessedAHEAD(epsilon="1", scale=0.7)
    found = run_simulation(mechanism, ZIPF.schema, task.people, np.random.default_rng(0))
    history = found.provenance.history
    assert (found.values < 0).any()  # no Norm-Sub
    session_leaves = found.averaged.measurements
    first = session_leaves[0]
    raw = first.oracle.estimate(next(iter(history[0].values())))
    np.testing.assert_allclose(found.values[first.nodes], raw)  # both halves are divided later, so never asked again
    assert found.values[0] == 1.0


# The journal.


def test_an_unfinished_line_is_skipped_and_healed(tmp_path):
    path = tmp_path / "journal.jsonl"
    one, two = (Outcome(f"c{i}", f"k{i}", ({"mse": 0.5},), "", {"run_cpu_s": 1.0}) for i in range(2))
    journal.append(path, one)
    with path.open("ab") as file:
        file.write(json.dumps(two.record()).encode()[:25])
    assert set(journal.read(path)) == {"k0"}
    journal.heal(path)
    journal.append(path, two)
    assert journal.read(path) == {"k0": one, "k1": two}


def tables(folder, cells):
    write_tables(folder, cells, Measured.of(cells, journal.read(folder / "j.jsonl")))
    return [(folder / name).read_bytes() for name in TABLES]


def test_resumed_runs_and_other_numbers_of_jobs_give_the_same_bytes(tmp_path):
    """Straight through with one job; and cut off in the middle of a line, then on with two."""
    figures = make_plan(QUICK, ["fig15", "fig11"])
    cells = [c for c in all_cells(figures) if c.data.name in ("zipf", "cauchy")]
    cells += [cell(task="leaves")]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    seen = []
    assert run_cells(cells, whole / "j.jsonl", 1, lambda done, total: seen.append((done, total))) == Problems()
    assert seen[-1][0] == pytest.approx(seen[-1][1])
    lines = (whole / "j.jsonl").read_bytes().splitlines(keepends=True)
    (cut / "j.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]) + lines[-1][:30])
    run_cells(cells, cut / "j.jsonl", 2)
    assert tables(cut, cells) == tables(whole, cells)
    again = (cut / "j.jsonl").read_bytes()
    run_cells(cells, cut / "j.jsonl", 1)
    assert (cut / "j.jsonl").read_bytes() == again  # nothing is run twice
    here = {cell.key: run_cell(cell) for cell in cells[:2]}
    assert [here[c.key].rows for c in cells[:2]] == [journal.read(whole / "j.jsonl")[c.key].rows for c in cells[:2]]


def test_a_cell_that_fails_is_told_and_stops_nothing(tmp_path):
    wide = cell(data=Data("gaussian", (1024, 1024), 1000, r=0.5), method="CALM")
    problems = run_cells([wide, cell()], tmp_path / "j.jsonl", 1)
    assert "at most 65536 cells" in problems.failed[wide.id]
    assert set(journal.read(tmp_path / "j.jsonl")) == {cell().key}


def test_a_failed_cell_is_told_by_the_exit_code(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "ahead_ldp.research.figures.reproduction.run_cells", lambda *_: Problems(failed={"a": "no memory"})
    )
    assert main(["reproduce", "fig11", "--quick", "--jobs", "1", "--out", str(tmp_path)]) == 2
    assert "got 1 that failed" in capsys.readouterr().err
    assert (tmp_path / "report.html").exists()


def test_a_killed_run_goes_on(tmp_path):
    words = ["reproduce", "fig15", "--quick", "--jobs", "1", "--out"]
    assert main([*words, str(tmp_path / "whole")]) == 0
    out = tmp_path / "killed"
    run = subprocess.Popen(
        [sys.executable, "-m", "ahead_ldp", *words, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while run.poll() is None and not (out / "journal.jsonl").exists():
        time.sleep(0.01)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert main([*words, str(out)]) == 0
    for name in (*TABLES, "findings.csv", "figures/fig15.svg"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


# The command.


def test_a_missing_data_set_marks_its_panels(tmp_path, monkeypatch, capsys):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("AHEAD_DATA", str(tmp_path / "empty"))
    out = tmp_path / "out"
    assert main(["reproduce", "fig11", "--quick", "--jobs", "1", "--out", str(out), "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert len(found["missing"]) == 4
    assert {f["outcome"] for f in found["findings"]} == {"undecided"}
    page = (out / "report.html").read_text("utf-8")
    assert "Salaries is not in" in page
    assert "kaggle.com/kaggle/sf-salaries" in page
    assert (out / "results.csv").read_text() == "cell,repetition,mse\n"


def test_quick_makes_everything(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["reproduce", "all", "--quick", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "failed" not in printed.err
    assert "of processor time" in printed.err  # the estimate comes first
    assert "report.html" in printed.out
    for name in FIGURES:
        for kind in ("svg", "pdf"):
            assert (out / "figures" / f"{name}.{kind}").stat().st_size > 5000
    page = (out / "report.html").read_text("utf-8")
    assert page.count("<svg") == len(FIGURES)
    assert "http" not in page.replace("http://www.w3.org/", "")  # nothing is loaded from elsewhere
    assert all(f"ahead reproduce {name} --quick" in page for name in FIGURES)
    ids = [part.split('"')[0] for part in page.split('id="')[1:]]
    assert len(ids) == len(set(ids))
    links = [part.split('"')[0] for part in page.split('<a href="#')[1:]]
    assert set(links) <= set(ids)  # every entry of the contents, and every finding, leads somewhere
    assert set(links) >= {"findings", *FIGURES, "table3", "cost", "contents"}
    assert page.count("<section ") == len(FIGURES) + 3
    assert "differs</span>" not in page  # quick sizes decide nothing
    assert "agrees</span>" not in page
    assert "quick sizes do not decide; on these results it agrees" in page
    planned = [c for c in all_cells(make_plan(QUICK)) if c.task == "mse"]
    assert len((out / "results.csv").read_text().splitlines()) <= 1 + QUICK.repeats * len(planned)
    assert (out / "complexity.csv").read_text().count("\n") == 1 + len(settings(QUICK))
    assert (out / "costs.csv").read_text().splitlines()[-1].startswith("all,")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reproduce", "fig99", "--out", "x"], "figures among all, fig5"),
        (["reproduce", "--jobs", "0", "--out", "x"], "--jobs >= 1"),
        (["reproduce"], "--out"),
    ],
)
def test_mistakes_are_one_line(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert message in capsys.readouterr().err
    assert not Path("x").exists()


def test_the_plan_is_printed_without_running(tmp_path, capsys):
    out = tmp_path / "none"
    assert main(["reproduce", "--plan", "--out", str(out), "--json"]) == 0
    printed = capsys.readouterr()
    assert not out.exists()
    rows = {row["figure"]: row for row in json.loads(printed.out)["figures"]}
    assert rows["fig14"]["settings"] == 2 * 9 * 8
    assert rows["fig15"]["settings"] == 2 * 8 * 7
    assert rows["fig16"]["settings"] == (10 + 11) * 3 * 8
    assert 4 * rows["all"]["cells"] < rows["all"]["runs"] < 20 * rows["all"]["cells"]


def test_the_estimate_holds_what_is_done_beside_the_cells(monkeypatch):
    """Drawing is a third of --quick: without it the estimate was a fifth of the time."""
    for module in (running, reproduction):
        monkeypatch.setattr(module, "speed", lambda: 1.0)
    cells = all_cells(make_plan(QUICK))
    cpu, wall = reproduction.estimate(QUICK, [], cells, 2)
    alone, same = reproduction.estimate(QUICK, [], [], 2)
    assert alone == same  # nothing to share
    assert 60 < cpu < 90  # measured: 68 s of processor time
    assert alone + estimate(cells) / 2 < wall < cpu
    assert reproduction.estimate(QUICK, ["fig11"], [], 1)[0] < alone / 5


# Counting and cost.


def test_counts_are_of_different_settings():
    figures = make_plan(FULL)
    counts = count(figures)
    assert counts[-1].cells == len(all_cells(figures)) < sum(c.cells for c in counts[:-1])
    assert sum(c.runs for c in counts[:-1]) == counts[-1].runs
    alone = count(make_plan(FULL, ["fig6"]))[0]
    assert (alone.settings, alone.one_or_two, alone.methods) == (4 * 8, 4 * 8, 5)


def test_estimates_grow_with_the_work():
    small, large = cell(), cell(repeats=30)
    assert 5 < seconds(large) / seconds(small) < 15
    assert estimate([large]) > 0
    full = sum(seconds(c) for c in all_cells(make_plan(FULL)))
    assert full < 90 * 60


def test_complexity_is_of_real_reports_and_its_own_process():
    setting = Setting("DHT", 1, 64, 2000)
    here, apart = measure_here(setting), measure_apart(setting)
    assert here["report_bytes"] == apart.report_bytes > 0
    assert here["question_bytes"] == apart.question_bytes > 0
    assert apart.count_s > 0
    assert 1000 < apart.memory_bytes < 5e6  # a few arrays of 64 codes, not the program
    assert measure_here(Setting("DHT", 1, 4096, 2000))["memory_bytes"] > 3 * here["memory_bytes"]


def test_growth_is_the_exponent():
    from ahead_ldp.research.experiments.complexity import Cost

    costs = [
        Cost(Setting("AHEAD", 1, side, n), 1e-6 * n * side, 0.0, side, 1, side**2)
        for side, n in [(256, 1000), (256, 10_000), (1024, 1000)]
    ]
    assert growth(costs, "seconds", "n")["AHEAD", 1] == pytest.approx(1.0)
    assert growth(costs, "seconds", "side")["AHEAD", 1] == pytest.approx(1.0)
    assert growth(costs, "question_bytes", "side")["AHEAD", 1] == pytest.approx(2.0)


def test_streams_differ_by_purpose():
    assert rng_of(0, "people").random() != rng_of(0, "queries").random()
    assert rng_of(0, "people", 1).random() != rng_of(0, "people").random()
