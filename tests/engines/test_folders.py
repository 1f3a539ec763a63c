"""One form of folder: whatever wrote it, `query`, `plot`, `estimate`, `tally` and `audit` read it."""

import json
from pathlib import Path

import numpy as np
import pytest

from ahead_ldp.cli import main


def assert_everything_reads(folder, query, people, capsys):
    """Every command that reads a folder reads this one, and all count the same people."""
    told = {}
    for name, words in {
        "query": [query],
        "plot": ["--out", str(folder.parent / "picture.svg")],
        "estimate": [],
        "tally": [],
        "audit": [],
    }.items():
        assert main([name, str(folder), *words, "--json"]) == 0, name
        told[name] = json.loads(capsys.readouterr().out)
    assert told["query"]["people"] == told["estimate"]["people"] == told["tally"]["reports"] == people
    assert told["audit"]["matched"]
    assert [check["check"] for check in told["audit"]["checks"]] == ["campaign", "questions", "reports", "estimate"]


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ages = np.minimum(np.random.default_rng(1).poisson(6, 200), 15)
    rows = [f"{i},{age}" for i, age in enumerate(ages.tolist())]
    Path("people.csv").write_text("\n".join(["name,age", *rows]) + "\n")
    return tmp_path


OPTIONS = ["--attribute", "age=integer,0,15", "--epsilon", "2", "--users", "200", "--method", "hio"]


@pytest.mark.parametrize("form", [[], ["--parquet"]], ids=["wire", "parquet"])
def test_what_collect_writes(table, form, capsys):
    assert main(["collect", "--data", "people.csv", *OPTIONS, "--out", "run", *form]) == 0
    capsys.readouterr()
    assert_everything_reads(table / "run", "age in 3..7", 200, capsys)


def test_what_start_and_advance_write(table, capsys):
    assert main(["start", "run", *OPTIONS]) == 0
    assert main(["perturb", "run", "--data", "people.csv", "--row-key", "name"]) == 0
    assert main(["advance", "run"]) == 0
    capsys.readouterr()
    assert_everything_reads(table / "run", "age in 3..7", 200, capsys)


def test_a_folder_whose_waves_are_not_all_closed_is_read_so_far(table, capsys):
    assert main(["start", "run", *OPTIONS[:-1], "ahead"]) == 0
    assert main(["perturb", "run", "--data", "people.csv", "--row-key", "name"]) == 0
    assert main(["advance", "run"]) == 0
    capsys.readouterr()
    assert main(["query", "run", "age in 3..7"]) == 0
    assert "not all waves are closed" in capsys.readouterr().out
    assert main(["audit", "run"]) == 0
    assert "not all waves are closed" in capsys.readouterr().out


def test_an_audit_of_a_folder_finds_a_report_that_was_changed(table, capsys):
    assert main(["collect", "--data", "people.csv", *OPTIONS, "--out", "run"]) == 0
    report = next((table / "run" / "reports").rglob("*.bin"))
    report.write_bytes(report.read_bytes()[:65])
    capsys.readouterr()
    assert main(["audit", "run", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert not told["matched"]
    assert "do not count up to the stored tally" in told["checks"][-1]["detail"]


def test_a_report_that_is_there_twice_counts_once(table, capsys):
    assert main(["collect", "--data", "people.csv", *OPTIONS, "--out", "run"]) == 0
    report = next((table / "run" / "reports").rglob("*.bin"))
    (report.parent / "again.bin").write_bytes(report.read_bytes())
    capsys.readouterr()
    assert main(["tally", "run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["reports"] == 200
    assert told["duplicates"] > 0
