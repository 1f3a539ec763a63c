"""The paper's complexity table, measured: each setting in a process of its own, so that its memory is its own.

Beside the plan's cells: seconds and bytes differ from run to run, so they are in a table of their own and never in the
results. ``python -m ahead_ldp.research.experiments.complexity SETTING`` is what such a process runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import log
from typing import Any

import numpy as np

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.protocol.session import Session
from ahead_ldp.research.experiments.measuring import prepare
from ahead_ldp.research.experiments.paper import Sizes
from ahead_ldp.research.experiments.plan import Cell, Data

EPSILON = 1.1
STATED = {  # App. E, Table 3: server time, server space, communication
    ("AHEAD", 1): ("N |D| log_|D| 2", "|D|", "|D|"),
    ("CALM", 1): ("N |D|", "|D|", "|D|"),
    ("HIO", 1): ("N |D| log_|D| 5", "|D|", "log |D|"),
    ("DHT", 1): ("N + |D|^3", "|D|^2", "log |D|"),
    ("AHEAD", 2): ("N |D|^2 log_|D| 2", "|D|^2", "|D|^2"),
    ("HDG", 2): ("N", "N^1/2", "log |D|"),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One method on people of one shape: how many, and how many codes each of the attributes has."""

    method: str
    attributes: int
    side: int
    n: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What the server did and what travelled: bytes of a report, and of the question that a device is sent."""

    setting: Setting
    count_s: float  # tallying all reports
    estimate_s: float  # from tallies to 200 answers
    memory_bytes: int  # most held at once by Python and NumPy, beyond people, reports and program
    report_bytes: int  # the longest
    question_bytes: int  # the longest


def settings(sizes: Sizes) -> list[Setting]:
    """Every method of the table at a base size, with ten times the people, and with a larger domain."""
    quick = sizes.name == "quick"
    listed = []
    for method, attributes in [("AHEAD", 1), ("DHT", 1)] if quick else STATED:
        small, large = (256, 1024) if attributes == 1 else (64, 256)
        n = 10_000 if quick else 20_000
        listed += [Setting(method, attributes, small, n)]
        listed += [] if quick else [Setting(method, attributes, small, 10 * n), Setting(method, attributes, large, n)]
    return listed


def measure_apart(setting: Setting) -> Cost:
    """Measure in a fresh process."""
    command = [sys.executable, "-m", "ahead_ldp.research.experiments.complexity", json.dumps(asdict(setting))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring {setting} failed: {done.stderr.strip()[-500:]}")
    return Cost(setting, **json.loads(done.stdout))


def measure_here(setting: Setting) -> dict[str, Any]:
    """Ask everybody, count real reports, estimate and answer: once for the time, and once traced for the memory."""
    _serve(setting)  # loops are compiled, files are read
    timed = _serve(setting)
    tracemalloc.start()
    traced = _serve(setting)
    tracemalloc.stop()
    return {**timed, "memory_bytes": traced["memory_bytes"]}


def _serve(setting: Setting) -> dict[str, Any]:
    data = Data("gaussian", (setting.side,) * setting.attributes, setting.n, r=0.8 if setting.attributes > 1 else None)
    cell = Cell(data, setting.method, EPSILON, 1)
    task, _ = prepare(data, 200, cell.seed)
    rng = np.random.default_rng(0)
    people = task.people.divide(cell.mechanism.groups(data.schema), rng)
    meter = _Meter()
    session = Session(cell.mechanism, data.schema)
    report_size, question_size, tallies = 0, 0, {}
    while session.is_open:
        for group, record in session.question_records().items():
            question = session.wave[group]
            cells = np.repeat(np.arange(question.partition.cells), people[group].cells(question))
            reports = question.oracle.perturb(rng.permutation(cells), rng)
            with meter("count", reports.nbytes + cells.nbytes):
                tallies[group] = question.oracle.tally(reports)
            report_size = max(report_size, question.oracle.report_bytes)
            question_size = max(question_size, len(canonical_bytes(record)))
            del cells, reports
        with meter("estimate"):
            session.tell({group: tallies.pop(group) for group in list(tallies)})
    with meter("estimate"):
        session.finish().answer(task.workload, errors=False)
    sizes = {"memory_bytes": meter.most, "report_bytes": report_size, "question_bytes": question_size}
    return {"count_s": meter.seconds["count"], "estimate_s": meter.seconds["estimate"], **sizes}


class _Meter:
    """Adds up the seconds of the server's steps; and, while memory is traced, the most that they held at once.

    What clients and reports take is left out.
    """

    def __init__(self) -> None:
        self.seconds = {"count": 0.0, "estimate": 0.0}
        self.most, self.before = 0, tracemalloc.get_traced_memory()[0]

    @contextmanager
    def __call__(self, what: str, others: int = 0) -> Iterator[None]:
        """A step, while this many bytes are others'."""
        if tracemalloc.is_tracing():
            tracemalloc.reset_peak()
        begun = time.perf_counter()
        yield
        self.seconds[what] += time.perf_counter() - begun
        self.most = max(self.most, tracemalloc.get_traced_memory()[1] - self.before - others)


def growth(costs: list[Cost], what: str, name: str) -> dict[tuple[str, int], float]:
    """The exponent with which something grows in "n" or "side", by method and number of attributes."""
    exponents = {}
    for method, attributes in {(c.setting.method, c.setting.attributes) for c in costs}:
        mine = [c for c in costs if (c.setting.method, c.setting.attributes) == (method, attributes)]
        base = mine[0]
        for other in mine[1:]:
            ratio = getattr(other.setting, name) / getattr(base.setting, name)
            first, second = _amount(base, what), _amount(other, what)
            if ratio > 1 and first > 0 and second > 0:
                exponents[method, attributes] = log(second / first) / log(ratio)
    return exponents


def _amount(cost: Cost, what: str) -> float:
    return cost.count_s + cost.estimate_s if what == "seconds" else float(getattr(cost, what))


if __name__ == "__main__":
    print(json.dumps(measure_here(Setting(**json.loads(sys.argv[1])))))
