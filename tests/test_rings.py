"""The rings themselves: what is slow is recorded for tests that exist, and every package has fast ones."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import OUTSIDE, SLOW, TOGETHER, slow_lines

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = sorted(
    path.parent.relative_to(ROOT / "src" / "ahead_ldp").as_posix()
    for path in (ROOT / "src" / "ahead_ldp").glob("*/**/__init__.py")
)


def recorded() -> set[str]:
    return {line.split("\t")[1] for line in SLOW.read_text("utf-8").splitlines()}


def functions_of(path: Path) -> list[ast.FunctionDef]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def fast_tests(package: str) -> list[str]:
    """Tests of a package, or of the one that it is part of, that are not slow in any case and need no program."""
    slow = {name.partition("[")[0] for name in recorded()}
    folder = ROOT / "tests" / package
    while not folder.exists():
        folder = folder.parent
    found = []
    for path in sorted(folder.rglob("test_*.py")):
        file = path.relative_to(ROOT).as_posix()
        for test in functions_of(path):
            arguments = {argument.arg for argument in test.args.args}
            if f"{file}::{test.name}" not in slow and not arguments & OUTSIDE:
                found.append(f"{file}::{test.name}")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_fast_tests(package):
    assert fast_tests(package), f"`make check` would not touch {package}: it needs a fast test"


def test_what_is_recorded_as_slow_is_there():
    """A few tests may have been renamed since: with more than a tenth, `make rings` is due."""
    there: dict[str, set[str]] = {}
    gone = []
    for name in sorted(recorded()):
        file, test = name.partition("[")[0].split("::")[:2]
        if file not in there:
            path = ROOT / file
            there[file] = {function.name for function in functions_of(path)} if path.exists() else set()
        if test not in there[file]:
            gone.append(name)
    assert len(gone) <= len(recorded()) / 10, f"`make rings` is due: {gone}"


def test_slow_cases_stand_for_their_test_where_all_are_slow():
    seconds = {"a.py::one[x]": 2.0, "a.py::one[y]": 0.5, "a.py::two[x]": 1.0, "a.py::two[y]": 0.1, "a.py::three": 0.2}
    assert slow_lines(seconds, 0.35) == ["2.50\ta.py::one\n", "1.00\ta.py::two[x]\n"]
    assert slow_lines(seconds, 0.15)[-1] == "0.20\ta.py::three\n"


def test_tests_that_share_what_they_start_run_in_one_process(tmp_path):
    """Each test says where it ran: one of three processes for a group, the other two for the rest."""
    (tmp_path / "tests" / "js").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    (tmp_path / "tests" / "slow.tsv").touch()
    body = "import os, pytest, time\n@pytest.mark.parametrize('i', range(6))\ndef test_it(i, record_property):\n"
    body += "    time.sleep(0.05)\n    record_property('process', os.getpid())\n"
    for file in ("js/test_npm.py", "test_alone.py"):
        (tmp_path / "tests" / file).write_text(body)
    words = ["-p", "xdist.plugin", "-n3", "--dist=loadgroup", "--junitxml=found.xml", "-c", os.devnull]
    command = [sys.executable, "-m", "pytest", *words, f"--rootdir={tmp_path}", "tests"]
    quick = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(command, cwd=tmp_path, env=quick, check=True, capture_output=True)
    ran: dict[str, set[str]] = {}
    for case in ElementTree.parse(tmp_path / "found.xml").iter("testcase"):
        ran.setdefault(case.attrib["classname"], set()).add(case.find("properties/property").attrib["value"])
    assert len(ran["tests.js.test_npm"]) == 1
    assert len(ran["tests.test_alone"]) >= 2


def test_what_runs_together_is_there():
    assert all((ROOT / path).exists() for path in TOGETHER)
