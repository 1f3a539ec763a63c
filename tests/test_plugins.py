"""Methods and oracles of other packages: found by their entry points, loaded on use, and no harm when broken."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.cli import main
from ahead_ldp.device.laws import LAWS
from ahead_ldp.mechanisms import MECHANISMS, UnknownVersion, known_method, mechanism_from_record
from ahead_ldp.oracles import ORACLES, Oracle, linear_oracle
from ahead_ldp.oracles.grr import GRR
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.research.evaluation import choose
from ahead_ldp.research.experiments.plan import split_method
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.registry import BrokenPlugin, Registry
from tests.testing.toys import Halves, Toy

HERE = Path(__file__).resolve().parent
HALVES = "tests.testing.toys:Halves"
KIND: type = Mechanism


def install(folder: Path, package: str, points: dict[str, dict[str, str]]) -> None:
    """What an installer leaves of a package: its metadata, with entry points by group."""
    info = folder / f"{package}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1.0\n")
    lines = [f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in named.items()) for group, named in points.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def installed(tmp_path, monkeypatch):
    site = tmp_path / "site"
    points = {"halves": HALVES, "gone": "no_such_module:Method", "odd": "json:dumps", "renamed": HALVES}
    install(site, "foreign", {"test.methods": points, "test.oracles": {"toy": "tests.testing.toys:Toy"}})
    monkeypatch.syspath_prepend(site)
    return site


@pytest.mark.usefixtures("installed")
def test_entry_points_are_found_and_loaded_on_use():
    registry = Registry("method", {"ahead": "ahead_ldp.mechanisms.ahead.ahead:AHEAD"}, "test.methods", KIND)
    assert list(registry) == ["ahead", "halves", "gone", "odd", "renamed"]
    assert registry.find("halves") is Halves
    for name, message in {
        "gone": "the method 'gone' of foreign 0.1.0 cannot be loaded from no_such_module:Method: ModuleNotFoundError",
        "odd": "the method 'odd' of foreign 0.1.0 at json:dumps to be a subclass of Mechanism",
        "renamed": f"expected {HALVES} to have the name of its entry point, 'renamed', got 'halves'",
    }.items():
        with pytest.raises(BrokenPlugin, match=message):
            registry.find(name)
    working, broken = registry.working()
    assert list(working) == ["ahead", "halves"]
    assert list(broken) == ["gone", "odd", "renamed"]


@pytest.mark.usefixtures("installed")
def test_a_name_of_ours_cannot_be_taken():
    registry = Registry("method", {"halves": "ahead_ldp.mechanisms.ahead.flat:Flat"}, "test.methods", KIND)
    with pytest.warns(UserWarning, match="'halves' of foreign 0.1.0 is left out: the name is taken"):
        assert len(registry) == 4
    assert registry["halves"].name == "flat"


def test_nothing_is_searched_for_a_name_of_ours():
    registry = Registry("method", {"flat": "ahead_ldp.mechanisms.ahead.flat:Flat"}, "test.methods", KIND)
    assert registry["flat"].name == "flat"
    assert not registry._searched


@pytest.fixture
def clean():
    """What a test registers is gone after it."""
    yield
    MECHANISMS.pop("halves", None)
    ORACLES.pop("toy", None)
    LAWS.pop("toy", None)
    linear_oracle.cache_clear()


@pytest.mark.usefixtures("clean")
def test_a_class_works_where_an_instance_does():
    people = np.random.default_rng(1).integers(0, 8, 5000)
    by_class = ahead_ldp.simulate(people, "x=codes,8", epsilon=1, method=Halves, seed=1)
    by_instance = ahead_ldp.simulate(people, "x=codes,8", method=Halves(epsilon=1), seed=1)
    assert by_class.ask("x in 0..3").values == by_instance.ask("x in 0..3").values
    assert choose(Halves, as_schema("x=codes,8"), "1", 5000)[0] == Halves(epsilon="1")
    with pytest.raises(ValueError, match="expected at most 1 attribute for the method halves, got 2"):
        ahead_ldp.simulate(np.zeros((5, 2), int), ["x=codes,8", "y=codes,8"], epsilon=1, method=Halves)
    with pytest.raises(ValueError, match="expected method to be a name, a class of Mechanism or an instance, got 7"):
        ahead_ldp.simulate(people, "x=codes,8", epsilon=1, method=7)


@pytest.mark.usefixtures("clean")
def test_a_path_names_a_class_and_registers_it():
    assert known_method("hio") == "hio"
    record = Halves(epsilon="1").record()
    with pytest.raises(UnknownVersion, match="got 'halves': install the package that brings it"):
        mechanism_from_record(record)
    assert known_method(HALVES) == known_method(HALVES) == "halves"
    assert mechanism_from_record(record) == Halves(epsilon="1")
    assert split_method("hio:strong") == ("hio", "strong")
    assert split_method(HALVES) == (HALVES, "default")
    assert split_method(f"{HALVES}:paper") == (HALVES, "paper")
    with pytest.raises(BrokenPlugin, match=r"cannot be loaded from tests\.testing\.toys:Thirds: AttributeError"):
        known_method("tests.testing.toys:Thirds")
    with pytest.raises(BrokenPlugin, match="to be a subclass of Mechanism"):
        known_method("tests.testing.toys:Toy")


def test_a_stored_or_received_name_imports_nothing():
    """A record or a request may say anything: only what is registered is looked at."""
    record = {**Halves(epsilon="1").record(), "name": HALVES}
    with pytest.raises(UnknownVersion, match="expected method to be one of"):
        mechanism_from_record(record)
    with pytest.raises(ValueError, match="expected method to be one of"):
        ahead_ldp.make_mechanism(HALVES, "x=codes,8", epsilon=1)


@pytest.mark.usefixtures("clean")
def test_an_oracle_brings_its_law():
    assert "toy" not in LAWS
    ORACLES["toy"] = Toy
    people = np.random.default_rng(1).integers(0, 4, 300)
    estimate = ahead_ldp.collect(people, "x=codes,4", epsilon=4, method="flat", oracle="toy", progress=False)
    assert {q.oracle.name for q, _ in estimate.provenance.answered} == {"toy"}
    assert abs(estimate.ask("x in 0..1").values[0] - (people <= 1).mean()) < 0.3
    assert issubclass(ORACLES["toy"], Oracle)
    assert ORACLES["grr"] is GRR


@pytest.mark.usefixtures("clean")
def test_commands_take_a_path(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("people.npy", np.random.default_rng(1).integers(0, 8, 900))
    data = ["--data", "people.npy", "--codes", "--buckets", "8", "--epsilon", "2"]
    assert main(["evaluate", *data, "--method", f"flat,{HALVES}", "--repeats", "2", "--random", "5", "--json"]) == 0
    assert [r["method"] for r in json.loads(capsys.readouterr().out)["results"]] == ["flat", "halves"]
    assert main(["collect", *data, "--method", HALVES, "--out", "run"]) == 0
    assert main(["query", "run", "a1 in 0..3"]) == 0
    capsys.readouterr()
    del MECHANISMS["halves"]  # as in another process, where nobody has said where it is
    assert main(["query", "run", "a1 in 0..3"]) == 2
    assert "install the package that brings it" in capsys.readouterr().err
    assert main(["query", "run", "a1 in 0..3", "--reading", "stored"]) == 0
    assert main(["evaluate", *data, "--method", "nowhere:Half"]) == 2
    assert "cannot be loaded from nowhere:Half: ModuleNotFoundError" in capsys.readouterr().err


# A package that `ahead new-method` wrote.

PROGRAM = """if True:
    import sys
    from ahead_ldp.cli import main
    print("exit", main(["methods"]), file=sys.stderr)
"""


def test_the_package_that_is_written_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new-method", "clipped"]) == 0
    project = tomllib.loads(Path("clipped/pyproject.toml").read_text("utf-8"))["project"]
    install(tmp_path / "site", project["name"].replace("-", "_"), project["entry-points"])
    install(tmp_path / "site", "broken", {"ahead_ldp.mechanisms": {"broken": "no_such_module:Method"}})
    paths = [tmp_path / "clipped" / "src", tmp_path / "site", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    there = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "COLUMNS": "200"}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "tests"]
    done = subprocess.run(words, cwd="clipped", env=there, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "15 passed" in done.stdout
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=there, capture_output=True, text=True, check=False)
    assert "exit 0" in done.stderr, done.stderr
    assert "left out: the method 'broken' of broken 0.1.0 cannot be loaded" in done.stderr
    assert "clipped" in done.stdout
    assert "adaptive" in done.stdout


@pytest.mark.parametrize("name", ["Half", "1half", "class", "ahead", "a-b", ""])
def test_names_that_are_none_are_refused(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new-method", "--", name]) == 2
    assert "NAME" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_left_alone(capsys, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["new-method", "half", "--out", str(tmp_path)]) == 2
    assert "new or empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "way_out"),
    [
        ("hio:strong", "method=HIO.strong(epsilon)"),
        ("hio:paper", "method='hio', paper=True"),
        ("sw:best", "method='sw'"),
        (HALVES, "a method of your own is given as its class"),
    ],
)
def test_what_only_a_command_takes_is_refused_with_the_way_out(given, way_out):
    with pytest.raises(ValueError, match="expected method to be one of ahead, ") as refused:
        ahead_ldp.simulate(histogram=np.ones(8, int), schema="x=integer,0,7", epsilon=1, method=given)
    assert str(refused.value).endswith(f", got {given!r}: {way_out}")
