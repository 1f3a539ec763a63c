"""How things are measured: CPU time, the best of several, each comparison side by side in one run."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import numpy as np

from ahead_ldp.oracles import bits, olh

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Sizes:
    """How large the measured problems are."""

    users: int = 100_000  # whose reports are made and counted
    cells: int = 1024
    people: int = 1_000_000  # of a simulated population
    queries: int = 1_000_000  # answered in one call
    side: int = 1024  # codes of each of two attributes
    people_2d: int = 10_000_000
    domains: tuple[int, ...] = (256, 1024, 4096, 16384, 65536)
    attributes: tuple[int, ...] = (2, 3, 4, 5, 8)
    grown: tuple[int, ...] = (10**5, 10**7, 10**9, 10**11)  # people, which make a tree larger
    hashed: int = 2000  # users whose hashed reports the other packages count; the time is proportional to them
    memory_mb: int = 128  # read to measure the bandwidth
    rounds: int = 3  # of all that is compared, taken in turns
    repeats: int = 9
    peers: bool = True


QUICK = Sizes(
    users=20_000, queries=100_000, side=256, people_2d=10**6, domains=(256, 4096), attributes=(2, 3),
    grown=(10**5, 10**9), hashed=300, rounds=1, repeats=3,
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """What was promised about one number, and the number."""

    what: str
    value: float
    bound: float
    at_least: bool
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the promise is kept."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound


def at_least(what: str, value: float, bound: float, unit: str = "") -> Target:
    return Target(what, value, bound, True, unit)


def at_most(what: str, value: float, bound: float, unit: str = "") -> Target:
    return Target(what, value, bound, False, unit)


@dataclass(frozen=True)
class Section:
    """One benchmark's result: a table, what is to be known about it, and the promises it speaks of."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


def cpu_s(run: Callable[[], object], repeats: int) -> float:
    """CPU seconds of one call, the best of several after one that is not counted."""
    return fresh_cpu_s(lambda: None, lambda _: run(), repeats)


def fresh_cpu_s(make: Callable[[], T], run: Callable[[T], object], repeats: int) -> float:
    """CPU seconds of one call on something new, the best of several after one that is not counted."""
    best = np.inf
    for i in range(repeats + 1):
        given = make()
        time.sleep(0.2)  # threads of the making's linear algebra, which wait in a loop, go to sleep
        start = time.process_time()
        run(given)
        spent = time.process_time() - start
        best = min(best, spent) if i else best
    return best


def child_cpu_s(command: list[str], repeats: int) -> float:
    """CPU seconds of a process from start to end, the best of several."""
    best = np.inf
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **ONE_THREAD})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return best


def in_own_process(python: Path | str, module: str, *arguments: object) -> dict[str, Any]:
    """The JSON object that a module of this package prints, run by an interpreter of its own."""
    command = [str(python), "-W", "ignore", "-m", module, *map(str, arguments)]
    done = subprocess.run(
        command, check=True, cwd=ROOT, env={**os.environ, **ONE_THREAD}, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def read_bandwidth(megabytes: int, repeats: int) -> float:
    """Bytes per second that one core reads from memory: the faster of a sum and a maximum over a large array."""
    words = np.ones(megabytes * 10**6 // 8, np.uint64)
    return words.nbytes / min(cpu_s(words.sum, repeats), cpu_s(words.max, repeats))


@contextmanager
def compiled(fast: bool) -> Iterator[None]:
    """Counting with the extra ``fast`` (numba), or with NumPy alone."""
    with mock.patch.object(bits, "HAS_NUMBA", fast), mock.patch.object(olh, "HAS_NUMBA", fast):
        yield


def paths() -> dict[str, bool]:
    """The ways to count that are installed: name -> whether it is compiled."""
    return {"NumPy": False, "numba": True} if bits.HAS_NUMBA else {"NumPy": False}


def machine() -> str:
    """Processor, interpreter and NumPy, and how busy the machine was."""
    cpu = platform.processor() or platform.machine()
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        names = [x.partition(":")[2].strip() for x in listed.read_text().splitlines() if x.startswith("model name")]
        cpu = names[0] if names else cpu
    load = f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else ""
    version = ".".join(map(str, sys.version_info[:3]))
    return f"{cpu}; Python {version}, NumPy {np.__version__}{load}"
