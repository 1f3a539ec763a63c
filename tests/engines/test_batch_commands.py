"""The commands: a whole campaign in batch from the shell, and one line for everything that is wrong."""

import json
from pathlib import Path

import pytest

from ahead_ldp.cli import main

START = [
    "start",
    "campaign",
    "--attribute",
    "pay=integer,0,15",
    "--epsilon",
    "2",
    "--users",
    "600",
    "--method",
    "ahead",
]
PERTURB = ["perturb", "campaign", "--data", "people.csv", "--row-key", "person"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"p{i},{i % 5}\n" for i in range(600))
    Path("people.csv").write_text("person,pay\n" + rows)
    return tmp_path


def run(capsys, *words):
    code = main([str(word) for word in words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def parsed(capsys, *words):
    code, out, err = run(capsys, *words, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_campaign_from_the_first_question_to_an_answer(here, capsys):
    started = parsed(capsys, *START)
    assert started["method"] == "ahead"
    assert started["asked"] == ["1"]
    answered, closed = 0, {"last": False}
    while not closed["last"]:
        made = parsed(capsys, *PERTURB)
        answered += sum(made["reports"].values())
        assert Path("people.csv.ahead-job/job.json").exists()
        tally = parsed(capsys, "tally", "campaign/reports")
        assert tally["reports"] == answered
        assert sum(t["n"] for t in tally["tallies"]) == answered
        closed = parsed(capsys, "advance", "campaign")
        assert closed["wave"] == made["wave"]
    assert answered == 600
    assert parsed(capsys, "estimate", "campaign")["finished"] is True
    found = parsed(capsys, "query", "campaign", "pay in 0..4", "--recount")
    assert abs(found["results"][0]["share"] - 1) < 0.4


def test_what_people_read(here, capsys):
    assert "questions of wave 1" in run(capsys, *START)[1]
    assert "rows answered" in run(capsys, *PERTURB)[1]
    assert "reports in 1 file\n" in run(capsys, "tally", "campaign")[1]
    assert "questions of wave 2" in run(capsys, "advance", "campaign")[1]
    code, out, _ = run(capsys, "estimate", "campaign", "--out", "so-far.json")
    assert (code, Path("so-far.json").exists()) == (0, True)
    assert "after 1 wave; there are more to come" in out
    assert "destroyed" in run(capsys, *PERTURB, "--end")[1]
    assert "has ended here" in run(capsys, *PERTURB)[2]


def test_collect_keeps_report_files(here, capsys):
    out = run(capsys, "collect", "--data", "people.csv", "--attribute", "pay=integer,0,15", "--epsilon", "2",
              "--out", "run", "--parquet")  # fmt: skip
    assert out[0] == 0, out[2]
    assert parsed(capsys, "tally", "run")["reports"] == 600
    assert run(capsys, "query", "run", "pay in 0..4", "--recount")[0] == 0


def damaged(capsys):
    run(capsys, *START)
    run(capsys, *PERTURB)
    path = next(Path("campaign/reports").rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-20])


def test_damaged_files_are_named_and_set_aside_if_asked(here, capsys):
    damaged(capsys)
    code, out, err = run(capsys, "advance", "campaign")
    assert (code, out) == (2, "")
    assert "part-holder-" in err
    assert "--quarantine" in err
    assert len(err.splitlines()) == 1
    assert "set aside: wave=1" in run(capsys, "tally", "campaign", "--quarantine")[1]
    assert parsed(capsys, "advance", "campaign", "--quarantine")["reports"] == 0


BAD = {
    "no campaign": (["advance", "."], "a campaign's directory, as `ahead start` makes it"),
    "no reports": (["advance", "campaign"], "put the reports of wave 1 there"),
    "nothing to count": (["tally", "campaign"], "put the reports there first"),
    "no such path": (["tally", "campaign/none"], "no such file or directory"),
    "not in a campaign": (["tally", "/"], "--campaign"),
    "no such engine": (["tally", "campaign", "--engine", "ray"], "--engine to be local or spark, got 'ray'"),
    "no table": (["perturb", "campaign"], "by --data"),
    "no such table": (["perturb", "campaign", "--data", "none.csv", "--row-key", "person"], "'none.csv'"),
    "no row key": (["perturb", "campaign", "--data", "people.csv"], "by --row-key"),
    "no such column": (["perturb", "campaign", "--data", "people.csv", "--row-key", "name"], "name"),
    "limit": ([*PERTURB, "--max-epsilon", "1"], "the question is refused"),
    "a key far away": (["perturb", "campaign", "--data", "s3://b/t", "--row-key", "person"], "by --job"),
    "a directory in use": (START, "new or empty directory"),
    "no attribute": (["start", "other", "--epsilon", "1", "--users", "9"], "--attribute or --schema"),
    "no people": (["start", "other", "--epsilon", "1", "--users", "0", "--attribute", "x=codes,4"], "users >= 1"),
    "both": ([*START, "--paper", "--strong"], "--paper or --strong"),
    "end of nothing": ([*PERTURB, "--end"], "a campaign that this job has answered"),
}


@pytest.mark.parametrize(("words", "says"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line(here, capsys, words, says):
    run(capsys, *START)
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1


def test_without_java_spark_says_what_to_do(here, capsys, monkeypatch):
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: None))
    monkeypatch.setenv("JAVA_HOME", str(here))
    run(capsys, *START)
    code, _, err = run(capsys, "tally", "campaign", "--engine", "spark")
    assert code == 2
    assert "apt install openjdk-17-jre-headless" in err
