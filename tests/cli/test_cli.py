"""The command: what it prints, where, and with which exit code."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from ahead_ldp.cli import main
from ahead_ldp.cli.app import commands
from ahead_ldp.estimates.answers import STRICT_NOTE
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.mechanisms.ahead.uniform import Uniform
from tools import docs

COUNTS = np.array([40, 30, 20, 10, 5, 5, 3, 2]) * 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow(Uniform):
    """Uni for one attribute alone."""

    name: ClassVar[str] = "narrow"
    most_attributes: ClassVar[int | None] = 1


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A directory with the same people as records, codes and counts; two attributes in some."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(MECHANISMS, "narrow", Narrow)
    codes = np.repeat(np.arange(8), COUNTS)
    both = np.stack([codes, codes[::-1] // 2], axis=1)
    np.save("codes.npy", codes)
    np.save("both.npy", both)
    np.save("counts.npy", COUNTS)
    np.save("bad_counts.npy", -COUNTS)
    joint = np.zeros((8, 4), np.int64)
    np.add.at(joint, tuple(both.T), 1)
    np.save("joint.npy", joint)
    Path("counts.csv").write_text("count\n" + "".join(f"{c}\n" for c in COUNTS))
    Path("joint.csv").write_text("\n".join(",".join(map(str, row)) for row in joint) + "\n")
    cells = [f"{a},{b},{joint[a, b]}\n" for a, b in np.argwhere(joint)]
    Path("cells.csv").write_text("pay,age,count\n" + "".join(cells))
    Path("people.csv").write_text("pay,age,name\n" + "".join(f"{10 * a}.5,{b},n{a}\n" for a, b in both))
    Path("codes.csv").write_text("pay\n" + "".join(f"{a}\n" for a in codes))
    Path("queries.csv").write_text("0,3\n4,7\n")
    Path("outside.csv").write_text("lo,hi\n0,3\n4,8\n")
    Path("text.csv").write_text("lo,hi\n0,three\n")
    Path("gaps.csv").write_text("pay,age\n5,1\n,2\n")
    Path("thousands.csv").write_text('pay\n"52,000"\n"31,000"\n')
    Path("schema.toml").write_text('[[attribute]]\nname = "pay"\nkind = "real"\nlo = 0\nhi = 80\nbuckets = 8\n')
    Path("bad.npy").write_bytes(b"no array")
    return tmp_path


def run(capsys, *words):
    """Exit code, standard output, standard error."""
    code = main([str(word) for word in words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def parsed(capsys, *words):
    code, out, err = run(capsys, *words, "--json")
    assert code == 0, err
    return json.loads(out)


EVALUATE = ["evaluate", "--epsilon", "1", "--repeats", "2", "--method", "ahead"]
CODES = ["--data", "codes.npy", "--codes", "--buckets", "8"]
COLLECT = ["collect", "--data", "people.csv", "--epsilon", "2", "--out", "run"]
PLAN = ["plan", "--epsilon", "1", "--users", "1000"]

BAD = {
    "no such command": (["guess"], "No such command 'guess'"),
    "no such option": ([*PLAN, "--x"], "No such option"),
    "missing option": (["evaluate", "--histogram", "x.npy"], "--epsilon"),
    "plan: no attribute": (PLAN, "--attribute or --schema"),
    "plan: both": ([*PLAN, "--attribute", "x=codes,4", "--schema", "schema.toml"], "got both"),
    "plan: bad attribute": ([*PLAN, "--attribute", "x=number,4"], "'x=number,4'"),
    "plan: bad epsilon": (["plan", "--epsilon", "0", "--users", "9", "--attribute", "x=codes,4"], "epsilon"),
    "plan: negative users": (["plan", "--epsilon", "1", "--users", "-5", "--attribute", "x=codes,4"], "users >= 1"),
    "plan: users are no number": (["plan", "--epsilon", "1", "--users", "many", "--attribute", "x=codes,4"], "--users"),
    "plan: no such method": ([*PLAN, "--attribute", "x=codes,4", "--method", "best"], "method to be one of"),
    "plan: too many attributes": (
        [*PLAN, "--attribute", "x=codes,4", "--attribute", "y=codes,4", "--method", "narrow"],
        "at most 1 attribute for the method narrow, got 2",
    ),
    "plan: paper and strong": ([*PLAN, "--attribute", "x=codes,4", "--paper", "--strong"], "--paper or --strong"),
    "plan: no such schema": ([*PLAN, "--schema", "none.toml"], "none.toml"),
    "evaluate: nothing": (EVALUATE, "--data or --histogram, got neither"),
    "evaluate: both": ([*EVALUATE, *CODES, "--histogram", "counts.npy"], "--data or --histogram, got both"),
    "evaluate: no such file": ([*EVALUATE, "--data", "none.csv", "--buckets", "8"], "none.csv"),
    "evaluate: unreadable": ([*EVALUATE, "--data", "bad.npy", "--buckets", "8"], "bad.npy"),
    "evaluate: unreadable counts": ([*EVALUATE, "--histogram", "bad.npy"], "bad.npy"),
    "evaluate: no such format": ([*EVALUATE, "--data", "schema.toml", "--buckets", "8"], ".parquet"),
    "evaluate: no such histogram": ([*EVALUATE, "--histogram", "none.npy"], "none.npy"),
    "evaluate: negative counts": ([*EVALUATE, "--histogram", "bad_counts.npy"], "counts >= 0"),
    "evaluate: another shape": ([*EVALUATE, "--histogram", "counts.npy", "--buckets", "9"], "shape (9,), got (8,)"),
    "evaluate: codes of counts": ([*EVALUATE, "--histogram", "counts.npy", "--codes"], "--codes"),
    "evaluate: no buckets": ([*EVALUATE, "--data", "people.csv"], "--buckets"),
    "evaluate: bad buckets": ([*EVALUATE, "--data", "codes.npy", "--buckets", "eight"], "'eight'"),
    "evaluate: no buckets at all": ([*EVALUATE, "--data", "codes.npy", "--buckets", "0"], "--buckets >= 1"),
    "evaluate: buckets of others": ([*EVALUATE, "--data", "codes.npy", "--buckets", "8,8"], "for --buckets, got 2"),
    "evaluate: declared twice": ([*EVALUATE, *CODES, "--schema", "schema.toml"], "got both"),
    "evaluate: codes too large": ([*EVALUATE, "--data", "codes.npy", "--codes", "--buckets", "7"], "a1: "),
    "evaluate: no such column": (
        [*EVALUATE, "--data", "people.csv", "--columns", "pay,height", "--buckets", "8"],
        "expected columns among pay, age, name, got height",
    ),
    "evaluate: column twice": (
        [*EVALUATE, "--data", "people.csv", "--columns", "pay,pay", "--buckets", "8"],
        "pay,pay",
    ),
    "evaluate: a value missing": (
        [*EVALUATE, "--data", "gaps.csv", "--attribute", "pay=real,0,80,8"],
        "pay: 1 value missing, which its declaration refuses; declare missing=cell, which gives them a cell",
    ),
    "evaluate: numbers as people write them": (
        [*EVALUATE, "--data", "thousands.csv", "--attribute", "pay=real,0,80000,8"],
        "pay: 2 values not of kind real; convert the column",
    ),
    "evaluate: words": ([*EVALUATE, "--data", "people.csv", "--columns", "name", "--buckets", "8"], "column name"),
    "evaluate: bad epsilon in a list": (
        ["evaluate", "--epsilon", "1,zero,2", *CODES],
        "expected epsilon to be a finite number > 0, got 'zero'",
    ),
    "evaluate: negative epsilon in a list": (["evaluate", "--epsilon", "1,-2", *CODES], "epsilon"),
    "evaluate: empty epsilon in a list": (["evaluate", "--epsilon", "1,,2", *CODES], "'1,,2'"),
    "evaluate: epsilon twice": (["evaluate", "--epsilon", "1,1.0", *CODES], "different entries"),
    "evaluate: no such method in a list": (["evaluate", "--epsilon", "1", "--method", "uni,best", *CODES], "'best'"),
    "evaluate: too many attributes": (
        ["evaluate", "--epsilon", "1", "--method", "uni,narrow", "--data", "both.npy", "--codes", "--buckets", "8,4"],
        "at most 1 attribute for the method narrow, got 2",
    ),
    "evaluate: repeats": (["evaluate", "--epsilon", "1", "--repeats", "0", *CODES], "--repeats >= 1, got 0"),
    "evaluate: seed": (["evaluate", "--epsilon", "1", "--seed", "-1", *CODES], "--seed >= 0, got -1"),
    "evaluate: no queries": ([*EVALUATE, *CODES, "--random", "0"], "--random >= 1, got 0"),
    "evaluate: queries twice": ([*EVALUATE, *CODES, "--random", "9", "--queries", "queries.csv"], "got both"),
    "evaluate: no such queries": ([*EVALUATE, *CODES, "--queries", "none.csv"], "none.csv"),
    "evaluate: queries outside": ([*EVALUATE, *CODES, "--queries", "outside.csv"], "attribute 0 of query 1"),
    "evaluate: queries in words": ([*EVALUATE, *CODES, "--queries", "text.csv"], "text.csv"),
    "evaluate: queries of others": (
        [*EVALUATE, "--data", "both.npy", "--codes", "--buckets", "8", "--queries", "queries.csv"],
        "(queries, 4)",
    ),
    "collect: bounds not declared": ([*COLLECT, "--buckets", "8", "--columns", "pay"], "never read from private data"),
    "collect: outside": (
        [*COLLECT, "--attribute", "pay=real,0,50,8"],
        "values outside the declared range; declare a wider range than 0.0..50.0",
    ),
    "audit: no server": (
        ["audit", f"http://127.0.0.1:9/v1/campaigns/{'0' * 64}"],
        "the server cannot be reached: ",  # and not that something differs
    ),
    "collect: no such column": ([*COLLECT, "--attribute", "height=real,0,50,8"], "got height"),
    "collect: names and attributes": ([*COLLECT, "--schema", "schema.toml", "--columns", "pay,age"], "--columns"),
    "collect: not empty": ([*COLLECT[:-1], ".", "--schema", "schema.toml"], "new or empty directory"),
    "collect: no users": ([*COLLECT, "--schema", "schema.toml", "--users", "0"], "users >= 1"),
    "collect: too many attributes": (
        [*COLLECT, "--attribute", "pay=real,0,80,8", "--attribute", "age=codes,4", "--method", "narrow"],
        "at most 1 attribute",
    ),
    "query: no run": (["query", "none", "pay in 1..2"], "none"),
    "query: no query": (["query", "none"], "QUERY"),
    "plot: no run": (["plot", "none", "--out", "a.png"], "none"),
    "campaign: no server": (
        ["campaign", "list", "--server", "http://127.0.0.1:9"],
        "the server at http://127.0.0.1:9 cannot be reached (Connection refused)",
    ),
    "plot: no such format": (["plot", "none", "--out", "a.gif"], ".png, .svg, .pdf"),
}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("as_json", [False, True], ids=["table", "json"])
def test_bad_input_is_one_line_and_exit_2(capsys, words, message, as_json):
    code, out, err = run(capsys, *words, *["--json"] * as_json)
    assert (code, out) == (2, "")
    line = err.splitlines()[-1]  # notes may stand before it
    assert line.startswith("error: ")
    assert message in line
    assert sum(text.startswith("error") for text in err.splitlines()) == 1
    assert not Path("run").exists()


def test_bad_input_of_a_process_has_no_traceback(tmp_path):
    words = [sys.executable, "-m", "ahead_ldp", "plan", "--epsilon", "-1", "--users", "5", "--attribute", "x=codes,4"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: expected 0.01 <= epsilon <= 16, got")
    assert done.stderr.count("\n") == 1


def test_a_terminal_without_unicode_is_served(files):
    words = [sys.executable, "-m", "ahead_ldp", *EVALUATE, *CODES]
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(words, capture_output=True, env=env, cwd=files, check=False)
    assert done.returncode == 0, done.stderr
    assert b"e-0" in done.stdout
    assert done.stdout.isascii()


def test_help_loads_nothing_heavy():
    code = "import sys; from ahead_ldp.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    heavy = {"numpy", "scipy", "rich", "matplotlib", "pandas", "polars", "numba", "ahead_ldp.schema.attributes"}
    for words in (["--help"], ["evaluate", "--help"], []):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        assert "Usage: ahead" in done.stdout
        assert not heavy & set(done.stderr.split()), words


@pytest.mark.parametrize("page", [p for p in docs.pages() if docs.GENERATED.search(p.read_text("utf-8"))], ids=str)
def test_generated_help_is_current(page):
    text = page.read_text("utf-8")
    assert docs.regenerated(text) == text, "run make docs"


def test_every_command_has_its_help_in_the_docs(capsys):
    listed = run(capsys, "--help")[1]
    names = set(commands())
    assert all(re.search(rf"^  {name}  +[A-Z].*\.$", listed, re.MULTILINE) for name in names)  # none is cut off
    text = (docs.ROOT / "docs" / "cli.md").read_text("utf-8")
    documented = [m["command"].removesuffix(" --help") for m in docs.GENERATED.finditer(text)]
    assert re.findall(r"^#{3,4} (ahead.*)$", text, re.MULTILINE) == documented  # each is found by its heading
    assert names == {name.split()[1] for name in documented if name != "ahead"}
    for name in names:
        inside = re.findall(
            r"^  ([a-z-]+)  ", run(capsys, name, "--help")[1].partition("\nCommands:\n")[2], re.MULTILINE
        )
        assert {f"ahead {name} {one}" for one in inside} == {d for d in documented if d.startswith(f"ahead {name} ")}


@pytest.mark.parametrize("name", ["campaign", "issue", "store"])
def test_a_group_alone_shows_its_help(capsys, name):
    code, listed, err = run(capsys, name)
    assert (code, listed, err) == run(capsys, name, "--help")
    assert (code, err) == (0, "")
    inside = listed.partition("Commands:\n")[2].splitlines()
    assert len(inside) > 3
    assert all(re.match(r"  \w+  +[A-Z].*[^.]\.$", line) for line in inside)  # none is cut off


def test_a_stale_block_is_written_anew():
    stale = "a\n<!-- generated: ahead methods --help -->\n```text\nold\n```\nb\n"
    new = docs.regenerated(stale)
    assert "Usage: ahead methods" in new
    assert "old" not in new
    assert new.endswith("```\nb\n")


def test_methods_lists_the_registry(capsys):
    found = {m["method"]: m for m in parsed(capsys, "methods")["methods"]}
    assert set(found) == set(MECHANISMS)
    assert (found["uni"]["waves"], found["flat"]["waves"], found["ahead"]["waves"]) == (0, 1, 8)
    assert all(m["source"] and m["idea"] for m in found.values())
    assert "paper" in found["ahead"]["settings"]
    code, out, _ = run(capsys, "methods")
    assert code == 0
    assert all(name in out for name in MECHANISMS)
    assert max(map(len, out.splitlines())) <= 80


def test_plan_says_what_will_be_asked(capsys):
    words = ["plan", "--attribute", "x=codes,256", "--epsilon", "1.1", "--users", "2260668", "--paper"]
    found = parsed(capsys, *words)
    assert (found["method"], found["settings"], found["waves"], found["fanout"]) == ("ahead", "paper", 8, 2)
    assert found["theta"] == pytest.approx([0.0056, 0.0056], abs=5e-5)
    assert [p["shape"] for p in found["predicted"]] == ["uniform", "zipf", "bumps", "heaped"]
    assert found["warnings"] == []
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "0.0056" in out
    assert "simulated" in out
    assert max(map(len, out.splitlines())) <= 80


def test_plan_warns_of_small_groups_and_they_are_no_error(capsys):
    code, out, err = run(capsys, "plan", "--attribute", "x=codes,256", "--epsilon", "1", "--users", "1", "--json")
    assert code == 0
    assert "every group reaches 100 reports with a chance of 0 %" in err
    assert "a campaign would be refused: expected enough people" in json.loads(out)["warnings"][0]


@pytest.mark.usefixtures("files")
def test_evaluate_gives_the_documented_fields(capsys):
    found = parsed(capsys, "evaluate", *CODES, "--epsilon", "0.5,1", "--method", "ahead,uni", "--repeats", "3")
    assert set(found) == {"data", "results"}
    assert [(r["method"], r["epsilon"]) for r in found["results"]] == [
        ("ahead", 0.5), ("ahead", 1.0), ("uni", 0.5), ("uni", 1.0)
    ]  # fmt: skip
    for result in found["results"]:
        keys = "method settings epsilon mse wasserstein ks seconds peak_memory_bytes repeats seed"
        assert set(result) == set(keys.split())
        low, high = result["mse"]["ci95"]
        assert low <= result["mse"]["mean"] <= high
        assert set(result["seconds"]) == {"build", "queries"}
        assert (result["repeats"], result["seed"]) == (3, 0)
        assert result["peak_memory_bytes"] > 0
    assert found["data"]["people"] == COUNTS.sum()
    assert found["data"]["bounds"] == "codes"
    assert found["data"]["queries"] == {"source": "random", "count": 200}


def errors(capsys, *words):
    return {(r["method"], r["epsilon"]): r["mse"] for r in parsed(capsys, *words)["results"]}


@pytest.mark.usefixtures("files")
def test_a_cell_runs_again_alone(capsys):
    together = errors(capsys, "evaluate", *CODES, "--epsilon", "0.5,1", "--method", "flat,ahead", "--repeats", "2")
    alone = errors(capsys, "evaluate", *CODES, "--epsilon", "1", "--method", "ahead", "--repeats", "2")
    assert alone["ahead", 1.0] == together["ahead", 1.0]
    other = errors(capsys, "evaluate", *CODES, "--epsilon", "1", "--method", "ahead", "--repeats", "2", "--seed", "1")
    assert other["ahead", 1.0] != alone["ahead", 1.0]


SAME = {
    "codes.csv": ["--data", "codes.csv", "--codes", "--buckets", "8"],
    "columns": ["--data", "both.npy", "--columns", "pay,age", "--codes", "--buckets", "8,4"],
    "declared": ["--data", "people.csv", "--schema", "schema.toml"],
    "counts.npy": ["--histogram", "counts.npy", "--buckets", "8"],
    "counts.csv": ["--histogram", "counts.csv"],
    "joint.npy": ["--histogram", "joint.npy"],
    "joint.csv": ["--histogram", "joint.csv"],
    "cells.csv": ["--histogram", "cells.csv", "--columns", "pay,age"],
}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("source", SAME.values(), ids=SAME)
def test_the_same_people_give_the_same_error_from_every_kind_of_file(capsys, source):
    one = source[1] in ("codes.csv", "people.csv", "counts.npy", "counts.csv")
    reference = CODES if one else ["--data", "both.npy", "--codes", "--buckets", "8,4"]
    assert errors(capsys, *EVALUATE, *source) == errors(capsys, *EVALUATE, *reference)


@pytest.mark.usefixtures("files")
def test_parquet_is_read(capsys):
    pandas = pytest.importorskip("pandas")
    pandas.read_csv("people.csv").to_parquet("people.parquet")
    declared = ["--attribute", "pay=real,0,80,8", "--attribute", "age=codes,4"]
    found = [errors(capsys, *EVALUATE, "--data", f"people.{kind}", *declared) for kind in ("csv", "parquet")]
    assert found[0] == found[1]


@pytest.mark.usefixtures("files")
def test_bounds_from_the_data_are_labelled(capsys):
    code, out, err = run(capsys, *EVALUATE, "--data", "people.csv", "--columns", "pay", "--buckets", "4", "--json")
    assert code == 0
    assert "not private" in err
    found = json.loads(out)["data"]
    assert found["bounds"] == "from the data, not private"
    assert found["attributes"] == [{"name": "pay", "kind": "real", "codes": 4}]


@pytest.mark.usefixtures("files")
def test_queries_of_a_file_are_asked(capsys):
    found = parsed(capsys, "evaluate", *CODES, "--epsilon", "1", "--method", "uni", "--queries", "queries.csv")
    truth = COUNTS[:4].sum() / COUNTS.sum()
    assert found["data"]["queries"] == {"source": "queries.csv", "count": 2}
    assert found["results"][0]["mse"]["mean"] == pytest.approx((truth - 0.5) ** 2, rel=1e-12)
    np.save("queries.npy", np.array([[[0, 3]], [[4, 7]]]))
    again = parsed(capsys, "evaluate", *CODES, "--epsilon", "1", "--method", "uni", "--queries", "queries.npy")
    assert again["results"][0]["mse"] == found["results"][0]["mse"]


@pytest.mark.usefixtures("files")
def test_evaluate_prints_errors_with_their_uncertainty(capsys):
    code, out, _ = run(capsys, *EVALUATE, *CODES)
    assert code == 0
    assert "e-0" in out
    assert "±" in out
    assert max(map(len, out.splitlines())) <= 80
    once = run(capsys, "evaluate", *CODES, "--epsilon", "1", "--repeats", "1", "--method", "ahead")[1]
    assert "±" not in once.splitlines()[-1]


def test_two_people_are_enough(capsys, tmp_path):
    np.save(tmp_path / "few.npy", np.array([0, 255]))
    found = parsed(
        capsys, *EVALUATE, "--data", tmp_path / "few.npy", "--codes", "--buckets", "256", "--method", "ahead,flat,uni"
    )
    assert all(r["mse"]["mean"] >= 0 for r in found["results"])


@pytest.fixture
def collected(files, capsys):
    code, out, err = run(capsys, *COLLECT, "--schema", "schema.toml", "--json")
    assert code == 0, err
    assert json.loads(out)["people"] == COUNTS.sum()
    return files / "run"


@pytest.mark.usefixtures("collected")
def test_a_collected_run_answers(capsys):
    found = parsed(capsys, "query", "run", "pay in 0..20", "pay >= 60", "--recount")
    assert (found["method"], found["epsilon"], found["people"]) == ("adaptive", 2.0, COUNTS.sum())
    truth = np.array([COUNTS[:2].sum(), COUNTS[6:].sum()]) / COUNTS.sum()
    for result, true in zip(found["results"], truth, strict=True):
        assert abs(result["share"] - true) < 6 * result["standard_error"] + 0.1  # noise, and an undivided cell
        assert result["ci95"][0] <= result["share"] <= result["ci95"][1]
    code, out, _ = run(capsys, "query", "run", "pay in 0..20")
    assert code == 0
    assert "95 % interval" in out
    assert STRICT_NOTE in out


@pytest.mark.usefixtures("collected")
def test_the_models_intervals_are_given_by_name_and_say_what_they_assume(capsys):
    asked = ("query", "run", "pay in 0..20", "pay >= 60")
    strict, model = parsed(capsys, *asked), parsed(capsys, *asked, "--intervals", "model")
    assert (strict["intervals"], model["intervals"]) == ("strict", "model")
    assert STRICT_NOTE in strict["notes"]
    assert any(note.startswith("Intervals of the model: they hold if") for note in model["notes"])
    for ours, theirs in zip(strict["results"], model["results"], strict=True):
        assert ours["share"] == theirs["share"]
        assert ours["ci95"] != theirs["ci95"]
    assert "std. error" in run(capsys, *asked, "--intervals", "model")[1]
    assert "std. error" not in run(capsys, *asked)[1]
    code, _, err = run(capsys, *asked, "--intervals", "narrow")
    assert code == 2
    assert "expected --intervals to be strict or model, got 'narrow'" in err


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("age in 1..2", "expected an attribute among pay, got 'age'"),
        ("pay in 5..1", "lo <= hi"),
        ("pay in 90..99", "declared for pay"),
        ("pay about 7", "conditions are"),
    ],
)
def test_a_bad_query_is_refused(capsys, query, message):
    code, out, err = run(capsys, "query", "run", query)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("collected")
def test_a_run_that_does_not_replay_is_refused(capsys):
    path = next(Path("run/tallies/1").iterdir())
    path.write_bytes(path.read_bytes().replace(b'"n":', b'"n":1'))
    for words in (["query", "run", "pay in 0..20"], ["plot", "run", "--out", "a.png"]):
        code, out, err = run(capsys, *words)
        assert (code, out) == (2, "")
        assert err.startswith("error: the stored run does not replay, nothing is answered")
    assert not Path("a.png").exists()


@pytest.mark.usefixtures("collected")
def test_a_run_whose_method_is_gone_is_refused_with_the_ways_out(capsys, monkeypatch):
    own = parsed(capsys, "query", "run", "pay in 0..20")
    gone = MECHANISMS["adaptive"].version
    monkeypatch.setattr(MECHANISMS["adaptive"], "version", gone + 1)
    code, out, err = run(capsys, "query", "run", "pay in 0..20")
    assert (code, out) == (2, "")
    known = rf"the method adaptive among [\d, ]+, got {gone}|the estimate of adaptive {gone} among [\d, ]+, got \d+"
    assert re.search(f"nothing is answered: expected a version of ({known}); use the program that made it, or", err)
    assert err.endswith("by --reading stored\n")
    found = parsed(capsys, "query", "run", "pay in 0..20", "--reading", "stored", "--recount")
    assert (found["method"], found["people"]) == ("recorded", own["people"])
    low, high = found["results"][0]["ci95"]
    assert low <= COUNTS[:2].sum() / COUNTS.sum() <= high
    code, _, err = run(capsys, "query", "run", "pay in 0..20", "--reading", "best")
    assert (code, err) == (2, "error: expected a number, newest or stored for --reading, got 'best'\n")


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plot_draws(capsys, suffix):
    pytest.importorskip("matplotlib")
    code, _, err = run(capsys, "plot", "run", "--out", f"out/a.{suffix}")
    assert code == 0, err
    start = Path(f"out/a.{suffix}").read_bytes()[:5]
    assert start == {"png": b"\x89PNG\r", "svg": b"<?xml", "pdf": b"%PDF-"}[suffix]


@pytest.mark.usefixtures("collected")
def test_plot_of_an_unknown_attribute_is_refused(capsys):
    pytest.importorskip("matplotlib")
    code, out, err = run(capsys, "plot", "run", "--out", "a.png", "--columns", "age")
    assert (code, out) == (2, "")
    assert "'age'" in err


def test_collect_of_a_few_people(capsys, tmp_path):
    np.save(tmp_path / "few.npy", np.array([0, 9, 200]))
    words = ["collect", "--data", tmp_path / "few.npy", "--codes", "--buckets", "256", "--epsilon", "1"]
    assert parsed(capsys, *words, "--out", tmp_path / "run")["people"] == 3
    found = parsed(capsys, "query", tmp_path / "run", "a1 in 0..9", "--recount")
    assert found["people"] == 3
