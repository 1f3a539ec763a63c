"""Report files in batch: beside the mere reading of the same files, without and with a look for copies, and Spark.

Reading and counting are measured by ``benchmarks.batch_runner``, in processes of its own. Spark runs on the cluster of
the tests: a master and two workers of one core, each on a host of its own; its driver also times the local engine.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.batch_runner import write_reports
from benchmarks.measuring import ONE_THREAD, Section, Sizes, Target, at_least, at_most, in_own_process
from benchmarks.rendering import seconds
from tests.engines.cluster import Cluster
from tests.hosts import NoHosts

_REPORTS = 100  # times the users of the other benchmarks
_NARROWER = (4, 2)  # shares of the reports, and of the cells, for the growth of the cost
_SPARK = 1000  # users from which on Spark is started


def run(sizes: Sizes) -> Section:
    """Wall time and memory of counting OUE reports of one bit per cell."""
    n, cells = _REPORTS * sizes.users, sizes.cells
    with tempfile.TemporaryDirectory(prefix="ahead-batch-") as folder:
        root = Path(folder)
        found: dict[str, Any] = {"bytes": write_reports(root / "all", n, cells)}
        found |= _measure("speed", root / "all", cells, sizes.rounds)
        for what in ("count", "dedup"):
            found[f"{what}_mb"] = _measure(what, root / "all", cells, 1)["peak_mb"]
        rows = [
            _row("reading alone, pyarrow", n, cells, found["read_s"]),
            _row("counting", n, cells, found["count_s"], found["count_mb"]),
            _row("counting, with a look for copies", n, cells, found["dedup_s"], found["dedup_mb"]),
        ]
        rows += [_row("counting", m, d, s) for (m, d), s in _growth(root, n, cells, sizes.rounds).items()]
        if sizes.users >= _SPARK:
            found["cluster"] = _on_cluster(root, cells, sizes.rounds)
        for engine, name in (("spark", "Spark, two workers"), ("local", "the local engine beside it")):
            for what, how in (("count", "counting"), ("dedup", "counting, with a look for copies")):
                if taken := found.get("cluster", {}).get(f"{engine}_{what}_s"):
                    rows.append(_row(f"{name}: {how}", n, cells, taken))
    head = ("what", "reports", "cells", "wall time", "a report", "peak memory")
    return Section("Report files in batch", head, tuple(rows), _notes(found), _targets(n, found), found)


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


def _on_cluster(root: Path, cells: int, rounds: int) -> dict[str, Any]:
    """Wall seconds of both engines on the same cores in one run; or why there is no cluster."""
    if find_spec("pyspark") is None:
        return {"missing": "pyspark is not installed"}
    (root / "cluster").mkdir()
    try:
        cluster = Cluster(root / "cluster", cores=1)
    except (NoHosts, ValueError) as reason:
        return {"missing": str(reason)}
    try:
        driver = cluster.driver("--time", root / "all", cells, rounds, **ONE_THREAD)
        said, errors = driver.communicate()
        if driver.returncode:
            raise RuntimeError(errors[-3000:])
        return dict(json.loads(said.splitlines()[-1]))
    finally:
        cluster.remove()


def _row(what: str, n: int, cells: int, wall_s: float, peak_mb: float | None = None) -> tuple[str, ...]:
    memory = "" if peak_mb is None else f"{peak_mb:.0f} MB"
    return what, f"{n:,}", f"{cells:,}", seconds(wall_s), seconds(wall_s / n), memory


def _targets(n: int, found: dict[str, Any]) -> tuple[Target, ...]:
    targets = [
        at_least("Counting report files, share of the rate of reading alone", found["read_s"] / found["count_s"], 0.8),
        at_most("Memory of counting report files", found["count_mb"], 500, "MB"),
        at_most(f"Looking for copies among {n:,} ids, beside counting", found["dedup_s"] - found["count_s"], 1.5, "s"),
        at_most("Memory with a look for copies", found["dedup_mb"], 500, "MB"),
    ]
    cluster = found.get("cluster", {})
    for what, how in (("count", "counting"), ("dedup", "with a look for copies")):
        if f"spark_{what}_s" in cluster:
            ratio = cluster[f"spark_{what}_s"] / cluster[f"local_{what}_s"]
            targets.append(at_most(f"Spark on two workers against the local engine, {how}", ratio, 3, "x"))
    return tuple(targets)


def _notes(found: dict[str, Any]) -> tuple[str, ...]:
    notes = [
        f"Wall time, best of the rounds, files in the page cache ({found['bytes'] / 1e9:.2f} GB), "
        f"{found['threads']} threads; reading alone is `pyarrow.parquet` over the same batches, in turns.",
        "Memory is the peak of the whole process, interpreter and libraries included.",
    ]
    cluster = found.get("cluster", {})
    if "missing" in cluster:
        notes.append(f"SKIPPED: Spark on a cluster; {cluster['missing']}.")
    elif cluster:
        notes.append(
            "The cluster is a master and two workers of one core, each on a host of its own (a network namespace). "
            "Both engines take turns on the same cores in one run. Spark's start, until its executors have counted a "
            f"first file, is left out: {seconds(cluster['start_s'])}."
        )
    return tuple(notes)
