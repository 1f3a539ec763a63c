"""Counts a folder on the cluster that the environment names: `python -m tests.engines.cluster_job FOLDER MARKS`.

Below MARKS tasks leave a mark when they begin. One of them is slow the first time it runs: a straggler. What was found
is printed as JSON. `--time FOLDER CELLS TURNS` times both engines for `make bench`, and nothing is made slow.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from ahead_ldp.engines import spark
from ahead_ldp.engines.counting import Result
from ahead_ldp.engines.local import LOCAL
from benchmarks.batch_runner import question

SLOW_S, TASK_S, CELLS = 6.0, 0.3, 64


def troubled(units: Any, marks: str, count: Callable[[Any], Any]) -> Any:
    """Count, a little later; the first task that begins is slow."""
    Path(marks, f"began-{os.getpid()}-{time.monotonic_ns()}").touch()
    try:
        os.close(os.open(Path(marks, "slow"), os.O_CREAT | os.O_EXCL))
        time.sleep(SLOW_S)
    except FileExistsError:
        time.sleep(TASK_S)
    return count(units)


class Troubled(spark.SparkEngine):
    """Real counting, with a straggler among the tasks."""

    marks = ""

    def _map(self, function: Any, units: Sequence[Any]) -> list[Any]:
        return super()._map(partial(troubled, marks=self.marks, count=function), units)


def session() -> Any:
    """On the cluster that the environment names, with small executors and speculation."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.appName("cluster").master(os.environ["AHEAD_SPARK_MASTER"])
    settings = {
        "spark.driver.host": os.environ["AHEAD_SPARK_DRIVER"],
        "spark.driver.bindAddress": os.environ["AHEAD_SPARK_DRIVER"],
        "spark.ui.enabled": "false",
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.multiplier": "2",
        "spark.speculation.quantile": "0.5",
        "spark.network.timeout": "20s",
        "spark.network.timeoutInterval": "5s",
        "spark.executor.heartbeatInterval": "2s",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "2",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def as_record(found: Result) -> dict[str, Any]:
    """Its numbers."""
    (tally,) = found.tallies.values()
    return {"n": tally.n, "counts": tally.counts.tolist(), "duplicates": found.duplicates, "files": len(found.files)}


def main(folder: str, marks: str) -> None:
    """Count, and print."""
    spark.ROWS_PER_TASK = 500  # more tasks than cores
    asked = question(CELLS)
    engine = Troubled(session())
    engine.marks = marks
    print(json.dumps(as_record(engine.count(engine.find(folder), {asked.question: asked}))))


def timed(folder: str, cells: int, turns: int) -> None:
    """Seconds of both engines, in turns after one to warm up, without and with a look for copies; Spark's start."""
    start, asked = time.perf_counter(), question(cells)
    engine, questions = spark.SparkEngine(session()), {asked.question: asked}
    engine.count(engine.find(folder)[:1], questions)
    taken = {"start_s": time.perf_counter() - start}
    for turn in range(1 + turns):
        for name, one in (("spark", engine), ("local", LOCAL)):
            files = one.find(folder)
            for key, dedup in ((f"{name}_count_s", False), (f"{name}_dedup_s", True)):
                start = time.perf_counter()
                one.count(files, questions, dedup=dedup)
                if turn:
                    taken[key] = min(taken.get(key, inf), time.perf_counter() - start)
    print(json.dumps(taken))


if __name__ == "__main__":
    if sys.argv[1] == "--time":
        timed(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main(*sys.argv[1:])
