"""Report files counted in batch: beside the mere reading of the same files, with and without a look for copies.

The measuring is done by ``benchmarks.batch_runner``, in processes of its own.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.batch_runner import write_reports
from benchmarks.measuring import Section, Sizes, Target, at_least, at_most, in_own_process
from benchmarks.rendering import seconds

_REPORTS = 100  # times the users of the other benchmarks
_NARROWER = (4, 2)  # shares of the reports, and of the cells, for the growth of the cost
_SPARK = 1000  # users from which on Spark is started


def run(sizes: Sizes) -> Section:
    """Wall time and memory of counting OUE reports of one bit per cell."""
    n, cells, rows = _REPORTS * sizes.users, sizes.cells, []
    with tempfile.TemporaryDirectory(prefix="ahead-batch-") as folder:
        root = Path(folder)
        size = write_reports(root / "all", n, cells)
        speed = _measure("speed", root / "all", cells, sizes.rounds)
        found = {"read_s": speed["read_s"], "count_s": speed["count_s"], "bytes": size}
        for what in ("count", "dedup"):
            found[what] = _measure(what, root / "all", cells, 1)
        rows += [_row("reading alone, pyarrow", n, cells, speed["read_s"], None)]
        rows += [_row("counting", n, cells, speed["count_s"], found["count"]["peak_mb"])]
        rows += [
            _row("counting, with a look for copies", n, cells, found["dedup"]["wall_s"], found["dedup"]["peak_mb"])
        ]
        grown = _growth(root, n, cells, sizes.rounds)
        rows += [_row("counting", m, d, s, None) for (m, d), s in grown.items()]
        if sizes.users >= _SPARK:
            found["spark"] = _measure("spark", root / "all", cells, 1)
            rows += [_row("Spark on this machine, first", n, cells, found["spark"]["first_s"], None)]
            rows += [_row("Spark on this machine, again", n, cells, found["spark"]["again_s"], None)]
    head = ("what", "reports", "cells", "wall time", "a report", "peak memory")
    return Section("Report files in batch", head, tuple(rows), _notes(speed, found), _targets(speed, found), found)


def _growth(root: Path, n: int, cells: int, rounds: int) -> dict[tuple[int, int], float]:
    """Wall seconds for fewer reports, and for fewer cells."""
    found = {}
    for share in _NARROWER:
        for m, d in ((n // share, cells), (n // 4, cells // share)):
            if (m, d) not in found:
                write_reports(root / f"{m}-{d}", m, d)
                found[m, d] = _measure("speed", root / f"{m}-{d}", d, rounds)["count_s"]
    return found


def _measure(what: str, folder: Path, cells: int, rounds: int) -> dict[str, Any]:
    return in_own_process(sys.executable, "benchmarks.batch_runner", what, folder, cells, rounds)


def _row(what: str, n: int, cells: int, wall_s: float, peak_mb: float | None) -> tuple[str, ...]:
    memory = "" if peak_mb is None else f"{peak_mb:.0f} MB"
    return what, f"{n:,}", f"{cells:,}", seconds(wall_s), seconds(wall_s / n), memory


def _targets(speed: dict[str, Any], found: dict[str, Any]) -> tuple[Target, ...]:
    return (
        at_least("Counting report files, share of the rate of reading alone", speed["read_s"] / speed["count_s"], 0.8),
        at_most("Memory of counting report files", found["count"]["peak_mb"], 500, "MB"),
        at_most("Memory with a look for copies", found["dedup"]["peak_mb"], 500, "MB"),
    )


def _notes(speed: dict[str, Any], found: dict[str, Any]) -> tuple[str, ...]:
    notes = [
        f"Wall time, best of the rounds, files in the page cache ({found['bytes'] / 1e9:.2f} GB), "
        f"{speed['threads']} threads; reading alone is `pyarrow.parquet` over the same batches, in turns.",
        "Memory is the peak of the whole process, interpreter and libraries included.",
    ]
    if "spark" in found:
        over, cpu_s = found["spark"]["again_s"] / found["count_s"], found["spark"]["again_cpu_s"]
        notes.append(
            f"Spark in local mode takes {over:.1f} times as long as the local engine, without a look for copies; "
            f"in CPU time, of JVM and Python workers, {cpu_s:.1f} s instead of {speed['count_cpu_s']:.1f} s."
        )
    return tuple(notes)
