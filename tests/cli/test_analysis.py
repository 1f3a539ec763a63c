"""Questions beyond shares on the command line: from saved estimates, collected runs and campaigns in batch."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.cli import main
from ahead_ldp.cli.inputs import read_estimate

SCHEMA = ["pay=integer,0,31", "team=nominal,north|south"]


def crowd(raised=0.0):
    rng = np.random.default_rng(1)
    team = rng.choice(["north", "south"], 20_000, p=[0.7, 0.3])
    pay = np.clip(rng.normal(np.where(team == "north", 10, 16), 4), 0, 31).astype(int)
    return {"pay": np.where(rng.random(pay.size) < raised, np.minimum(pay + 12, 31), pay), "team": team}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("saved")
    for i, raised in enumerate((0.0, 0.15)):
        ahead_ldp.simulate(crowd(raised), SCHEMA, epsilon=4, seed=i).save(root / f"{i}.json")
    (root / "margins.json").write_text('{"team": {"north": 1, "south": 1}}', "utf-8")
    return root


@pytest.fixture
def run(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)

    def parsed(*words):
        assert main([*words, "--json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return parsed


def test_describe(run, capsys):
    found = run("describe", "0.json")["results"]["pay"]
    assert set(found) == {"std", "gini", "top", "bottom", "poor"}
    truth = float(np.std(crowd()["pay"]))
    assert found["std"]["low"] <= truth <= found["std"]["high"]
    assert main(["describe", "0.json", "--attribute", "pay", "--intervals", "model"]) == 0
    printed = capsys.readouterr().out
    assert "they hold if" in printed
    assert printed.endswith(".\n")  # no empty line at the end


def test_describe_two_together(run, capsys):
    found = run("describe", "0.json", "--attribute", "pay", "--with", "team")
    assert set(found["results"]) == {"mutual_information"}
    assert 0 <= found["results"]["mutual_information"]["low"] <= found["results"]["mutual_information"]["value"]
    assert main(["describe", "0.json", "--attribute", "pay", "--with", "team", "--intervals", "model"]) == 2
    assert "expected strict intervals" in capsys.readouterr().err


def test_difference(run, folder):
    found = run("difference", "0.json", "1.json", "pay >= 20", "--attribute", "pay", "--plot", "change.svg")
    assert found["tests"] == [found["tests"][0]]
    assert found["tests"][0]["rejected"]
    assert found["results"][0]["low"] > 0
    assert (folder / "change.svg").read_text("utf-8").count("<svg") == 1
    same = run("difference", "0.json", "0.json", "pay >= 20", "--about", "people")
    assert same["results"][0]["share"] == 0
    assert not any(test["rejected"] for test in same["tests"])


def test_groups(run, folder):
    found = run("groups", "0.json", "pay >= 12", "--by", "team", "--mean", "pay", "--plot", "groups.svg")
    means = found["results"]["mean of pay"]
    assert [row["team"] for row in means] == ["north", "south"]
    assert means[0]["high"] < means[1]["low"]
    assert (folder / "groups.svg").stat().st_size > 1000


def test_weigh(run):
    found = run("weigh", "0.json", "pay >= 12", "--margins", "margins.json")
    people = crowd()
    truth = np.mean([np.mean(people["pay"][people["team"] == t] >= 12) for t in ("north", "south")])
    assert found["results"][0]["low"] <= truth <= found["results"][0]["high"]
    assert found["intervals"] == "strict"


def test_series(run):
    found = run("series", "0.json", "1.json", "--query", "pay >= 20")
    assert [row["spent"] for row in found["budget"]] == [4, 8]
    assert found["changes"][0]["changed"]
    smooth = run("series", "0.json", "1.json", "--query", "pay >= 20", "--smooth")
    assert smooth["trend"][0]["value"] != found["trend"][0]["value"]


def test_series_says_by_how_much(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(["series", "0.json", "1.json", "--query", "pay >= 20"]) == 0
    rounds = ahead_ldp.Series({name: ahead_ldp.load(name) for name in ("0.json", "1.json")})
    (step,) = rounds.changes("pay >= 20")
    said = [f"{100 * step[name]:.2f} %" for name in ("change", "low", "high")]
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"0.json to 1.json: changed by {said[0]} ({said[1]} to {said[2]})"


def test_a_saved_estimate_is_queried_and_drawn(run, folder, capsys):
    found = run("query", "0.json", "pay >= 20", "team = south")
    answers = ahead_ldp.load("0.json").ask("pay >= 20", "team = south")
    assert [row["share"] for row in found["results"]] == answers.share.tolist()
    assert [row["ci95"][0] for row in found["results"]] == answers.low.tolist()
    assert run("query", "0.json", "pay >= 20", "--reading", "newest")["results"][0]["share"] == answers.share[0]
    run("plot", "0.json", "--out", "pay.svg", "--columns", "pay")
    assert (folder / "pay.svg").stat().st_size > 1000


def test_report(run, folder):
    run("report", "1.json", "pay >= 20", "--before", "0.json", "--by", "team", "--title", "<Pay>", "--out", "page.html")
    page = (folder / "page.html").read_text("utf-8")
    assert page.count("<svg") == 6  # two attributes, queries, groups, two changes
    assert "&lt;Pay&gt;" in page
    assert "Gini" in page
    assert "pay changed" in page
    for elsewhere in ("<script", "<link", "<img", "@import", "url(http"):
        assert elsewhere not in page


def test_report_as_a_pdf(run, folder):
    run("report", "1.json", "pay >= 20", "--title", "Löhne", "--out", "pages/page.PDF", "--intervals", "model")
    file = (folder / "pages" / "page.PDF").read_bytes()
    assert file[:5] == b"%PDF-"
    assert file == ahead_ldp.report_pdf(read_estimate(folder / "1.json"), "pay >= 20", title="Löhne", kind="model")


def test_runs_and_campaigns_in_batch_are_read(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = crowd()
    with open("people.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "pay"])
        writer.writerows(enumerate(people["pay"][:800].tolist()))
    declared = ["--epsilon", "4", "--attribute", "pay=integer,0,31", "--method", "sw"]
    assert main(["collect", "--data", "people.csv", "--out", "run", *declared]) == 0
    assert main(["start", "batch", "--users", "800", *declared]) == 0
    assert main(["perturb", "batch", "--data", "people.csv", "--row-key", "id"]) == 0
    assert main(["advance", "batch"]) == 0
    capsys.readouterr()
    assert main(["difference", "run", "batch", "--about", "people", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["tests"]) == 1
    change = ahead_ldp.difference(*(read_estimate(Path(name)) for name in ("run", "batch")), sampled=False)
    assert not change.test("pay", 1 - 1e-6).rejected  # the same people, asked twice: a false alarm in a million


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["describe", "0.json", "--attribute", "team"], "numeric attribute"),
        (["difference", "0.json", "1.json", "--about", "us"], "--about"),
        (["groups", "0.json", "--mean", "pay"], "--by"),
        (["groups", "0.json", "--by", "team"], "--mean or --median"),
        (["weigh", "0.json", "pay >= 12", "--margins", "none.json"], "JSON file"),
        (["report", "0.json", "--out", "page.doc"], "expected --out to end in .html or .pdf, got 'page.doc'"),
        (["difference", "0.json", "1.json", "--attribute", "age"], "age"),
        (["series", "0.json"], "two rounds"),
        (["series", "0.json", "1.json", "0.json"], "every round once, got '0.json' twice"),
        (["describe", "0.json", "--with", "pay"], "--attribute with --with"),
        (["query", "0.json", "pay >= 12", "--recount"], "a directory with reports for --recount"),
        (["query", "margins.json", "pay >= 12"], "expected a canonical record"),
    ],
)
def test_a_mistake_is_one_line(folder, capsys, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    assert main(words) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
