"""Every benchmark runs and says what it measured; none is judged by a clock."""

import json
import sys
from math import isfinite

import pytest

from benchmarks import __main__ as command
from benchmarks import peers, peers_environment
from benchmarks.measuring import Section, Sizes, Target, at_least, at_most, in_own_process
from benchmarks.peers_environment import Unavailable
from benchmarks.registry import BENCHMARKS
from benchmarks.rendering import markdown, target_row, text

TINY = Sizes(
    users=200, cells=16, people=2000, queries=50, side=8, people_2d=1000, domains=(16, 64), attributes=(2, 3),
    grown=(10**3, 10**6), hashed=20, memory_mb=1, rounds=1, repeats=1, peers=False,
)  # fmt: skip


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_runs(name):
    section = BENCHMARKS[name](TINY)
    assert section.rows
    assert all(len(row) == len(section.head) for row in section.rows)
    assert section.targets
    assert all(isfinite(target.value) for target in section.targets)
    json.dumps(section.numbers)
    assert section.title in text(section)
    assert section.title in markdown(section)


WHATS = ("oue perturb", "oue count", "olh perturb", "olh count", "oue memory")
PEERS = {
    "pure-ldp": dict(zip(WHATS, (6.0, 0.3, 0.7, 80.0, 800.0), strict=True)),
    "multi-freq-ldpy": dict(zip(WHATS, (3.0, 0.2, 0.9, 90.0, 900.0), strict=True)),
    "NumPy": dict(zip(WHATS, (0.1, 0.01, 0.01, 0.5, 20.0), strict=True)),
    "numba": dict(zip(WHATS, (0.1, 0.002, 0.01, 0.25, 100.0), strict=True)),
}


def test_ratios_are_to_the_better_package_and_to_the_bandwidth():
    versions = {"pure-ldp": "1", "multi-freq-ldpy": "2"}
    section = peers.section(Sizes(), PEERS, versions, 12.8e9, None)
    found = {target.what: (pytest.approx(target.value), target.met) for target in section.targets}
    assert found == {
        "OUE perturbation against the better package": (30.0, True),
        "OLH counting with NumPy against the better package": (160.0, True),
        "OLH counting with numba against the better package": (320.0, False),
        "OUE memory with NumPy, share of the better package": (20 / 800, True),
        "OUE memory with numba, share of the better package": (100 / 800, False),
        "OUE counting with NumPy, share of the read bandwidth": (0.1, True),  # 10^5 reports of 128 bytes
        "OUE counting with numba, share of the read bandwidth": (0.5, True),
    }


def test_packages_that_cannot_be_installed_are_skipped_visibly(monkeypatch, tmp_path):
    def offline(*command):
        raise peers_environment.subprocess.CalledProcessError(1, command, stderr="noise\nno network\n")

    monkeypatch.setattr(peers_environment, "_run", offline)
    with pytest.raises(Unavailable, match="no network"):
        peers_environment.peers_python(tmp_path / "environment")
    ours = {name: numbers for name, numbers in PEERS.items() if name in {"NumPy", "numba"}}
    section = peers.section(Sizes(), ours, {}, 12.8e9, "no network")
    assert any("SKIPPED" in note and "no network" in note for note in section.notes)
    assert len(section.rows) == 2
    assert len(section.targets) == 2


def test_a_missed_target_is_marked():
    assert at_least("a", 1.0, 2.0).met is False
    assert at_most("a", 1.0, 2.0).met is True
    assert target_row(Target("a", 1.0, 2.0, True, "x"))[1:] == (">= 2x", "1x", "MISSED")


def test_the_command_writes_tables_and_numbers_but_not_the_page_of_a_partial_run(monkeypatch, tmp_path, capsys):
    section = Section("A title", ("what",), (("row",),), ("a note",), (at_most("speed", 1.0, 2.0, "s"),), {"a": 1})
    monkeypatch.setattr(command, "BENCHMARKS", {"one": lambda sizes: section, "two": lambda sizes: section})
    monkeypatch.setattr(command, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    assert command.main(["one", "--out", str(tmp_path / "out")]) == 0
    assert "A title" in capsys.readouterr().out
    found = json.loads((tmp_path / "out" / "benchmarks.json").read_text())
    assert found["sections"]["one"]["numbers"] == {"a": 1}
    assert "| speed | <= 2 s | 1 s | met |" in (tmp_path / "out" / "benchmarks.md").read_text()
    assert not (tmp_path / "page.md").exists()
    assert command.main(["--out", str(tmp_path / "out")]) == 0
    assert "make bench" in (tmp_path / "page.md").read_text()
    with pytest.raises(SystemExit) as stop:
        command.main(["three"])
    assert stop.value.code == 2


def test_memory_is_measured_in_a_process_of_its_own():
    few = in_own_process(sys.executable, "benchmarks.memory", 10_000, 1024, False)["peak_over_base_mb"]
    many = in_own_process(sys.executable, "benchmarks.memory", 200_000, 1024, False)["peak_over_base_mb"]
    assert many - few > 0.9 * 190_000 * 128 / 1e6  # the reports themselves


def test_sections_measured_apart_replace_those_of_their_title():
    old = Section("One", ("what",), (("old",),), ("a note",), (), {})
    kept = Section("Two", ("what",), (("kept",),), ("a note",), (), {})
    new = Section("One", ("what",), (("new",),), ("a note",), (), {})
    more = Section("Three", ("what",), (("more",),), ("a note",), (), {})
    page = command.merged(command.page({"one": old, "two": kept}), {"one": new, "three": more})
    assert [line for line in page.splitlines() if line.startswith("## ")] == ["## One", "## Two", "## Three"]
    assert "| old |" not in page
    assert page.count("Measured apart, on:") == 2
    assert page.startswith(command.PREFACE)
    assert command.merged(page, {"three": more}).count("| more |") == 1
