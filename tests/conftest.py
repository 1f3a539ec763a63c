"""Settings of every run: Hypothesis's examples, what is slow, what shares a process, where keys of waves are kept.

Hypothesis draws the same examples in every run; HYPOTHESIS_PROFILE=explore looks for new ones. A test is slow, and not
in `make check`, if it uses a program beside Python or if tests/slow.tsv has its seconds; `make rings` writes that file.
"""

import atexit
import os
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

if "AHEAD_KEYS" not in os.environ:  # keys of the tests' stores, whichever directory they work in
    os.environ["AHEAD_KEYS"] = tempfile.mkdtemp(prefix="ahead-keys-")
    atexit.register(shutil.rmtree, os.environ["AHEAD_KEYS"], ignore_errors=True)

SLOW = Path(__file__).with_name("slow.tsv")
BUDGET = 80.0  # seconds of all fast cases together, on idle cores: the quickest that fit into it are fast
OVERHEAD = 0.004  # seconds of a case beside its own
# What these start once for all their tests (Spark, a build, a server, Chromium) is started in one process only. The
# marks of xdist, which did this, are ignored from pytest 9.2 on (pytest-xdist#1386).
TOGETHER = (
    "tests/engines/test_spark.py",
    "tests/golden/",
    "tests/js/test_npm.py",
    "tests/service/browser/",
    "tests/test_site_built.py",
)
# Fixtures that need a program beside Python.
OUTSIDE = {"chromium", "cluster", "engine", "fragile", "judge", "npm", "postgres", "site", "small_disk", "systemd"}


def pytest_addoption(parser):
    parser.addoption("--record-slow", action="store_true", help="write tests/slow.tsv from this run")


def pytest_configure(config):
    if config.getoption("record_slow") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recording(), "recording")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what is slow, and begin with the files that take longest, so that no process waits for another at the end.

    A line without parameters speaks for every case of its test.
    """
    recorded, by_file = set(), defaultdict(float)
    for line in SLOW.read_text("utf-8").splitlines():
        seconds, name = line.split("\t")
        recorded.add(name)
        by_file[name.partition("::")[0]] += float(seconds)
    for item in items:
        name = item.nodeid
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        stores = {value for value in parameters if isinstance(value, str)}  # "postgres" is started by its parameter
        if OUTSIDE & {*item.fixturenames, *stores} or not recorded.isdisjoint({name, name.partition("[")[0]}):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: -by_file[item.nodeid.partition("::")[0]])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadgroup`: each test goes to whichever process is free, those of one group to the same."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Grouped(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return Grouped(config, log)


def group_of(nodeid: str) -> str:
    """What a test runs in one process with; most run alone."""
    return next((group for group in TOGETHER if nodeid.startswith(group)), nodeid)


class Recording:
    """The seconds of every case, summed over its set-up, call and tear-down."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self):
        SLOW.write_text("".join(slow_lines(self.seconds)), "utf-8")


def slow_lines(seconds: dict[str, float], budget: float = BUDGET) -> list[str]:
    """The slow cases with their seconds, the slowest first; a test whose cases are all slow is one line.

    Cases are fast from the quickest on, until they fill the budget.
    """
    cases: dict[str, list[str]] = defaultdict(list)
    fast, spent = set(), 0.0
    for name in sorted(seconds, key=seconds.__getitem__):
        cases[name.partition("[")[0]].append(name)
        spent += seconds[name] + OVERHEAD
        if spent <= budget:
            fast.add(name)
    found: list[tuple[float, str]] = []
    for test, names in cases.items():
        slow = [name for name in names if name not in fast]
        if slow and len(slow) == len(names):
            found.append((sum(seconds[name] for name in names), test))
        else:
            found += [(seconds[name], name) for name in slow]
    return [f"{time:.2f}\t{name}\n" for time, name in sorted(found, key=lambda line: (-line[0], line[1]))]
