"""Counting report files, measured in a process of its own.

Run as ``python -m benchmarks.batch_runner speed|count|dedup|spark FOLDER CELLS ROUNDS``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from ahead_ldp.device.partition import GridForm
from ahead_ldp.device.question import question_record
from ahead_ldp.engines.files import ROWS_AT_ONCE, Asked
from ahead_ldp.engines.local import count_files
from ahead_ldp.engines.manifests import ReportFile, find_files
from ahead_ldp.engines.spark import SparkEngine
from ahead_ldp.engines.writer import ReportWriter
from ahead_ldp.oracles import make_oracle
from ahead_ldp.oracles.bits import clear_padding
from benchmarks.resident import peak

_ROWS = 100_000
THREADS = os.cpu_count() or 1


def question(cells: int) -> Asked:
    """OUE on so many cells."""
    partition, law = GridForm((tuple(range(1, cells)),)), make_oracle("oue", 1.0, cells).law
    record = question_record(
        campaign="0" * 64,
        wave=1,
        group="1",
        tallies="0" * 64,
        epsilon="1",
        attributes=["x"],
        partition=partition,
        law=law,
    )
    return Asked.of(record)


def write_reports(folder: Path, n: int, cells: int) -> int:
    """Random reports; the bytes of their files. Counting takes the same time whatever the bits are."""
    asked, rng = question(cells), np.random.default_rng(1)
    width = asked.oracle.report_bytes
    with ReportWriter(folder) as writer:
        for start in range(0, n, _ROWS):
            rows = min(_ROWS, n - start)
            data = np.frombuffer(bytearray(rng.bytes(rows * (16 + width))), np.uint8).reshape(rows, -1)
            clear_padding(data, cells)
            writer.add(asked, data[:, :16], data[:, 16:])
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def read_alone(files: list[ReportFile]) -> None:
    """All batches of the columns that counting needs, on all threads."""
    import pyarrow.parquet as pq

    def one(file: ReportFile) -> None:
        with pq.ParquetFile(file.path) as opened:
            for _ in opened.iter_batches(batch_size=ROWS_AT_ONCE, columns=["payload", "question"]):
                pass

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(one, files))


def wall_s(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def tree_cpu_s(pid: int) -> float:
    """CPU seconds of a process and of all that it started, as far as the system tells."""
    parents, spent = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(entry.parent.name)] = int(fields[1])
        spent[int(entry.parent.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sum(spent.get(one, 0.0) for one in found)


def main(what: str, folder: str, cells: int, rounds: int) -> dict[str, Any]:
    """The numbers that were asked for."""
    asked, files = question(cells), find_files([folder])
    questions = {asked.question: asked}

    def count(dedup: bool = False) -> None:
        count_files(files, questions, dedup=dedup, threads=THREADS)

    if what == "speed":
        count(), read_alone(files)
        taken = [(wall_s(lambda: read_alone(files)), wall_s(count)) for _ in range(max(3, 2 * rounds))]
        spent = time.process_time()
        count()
        cpu_s = time.process_time() - spent
        read_s, count_s = min(r for r, _ in taken), min(c for _, c in taken)
        return {"read_s": read_s, "count_s": count_s, "count_cpu_s": cpu_s, "threads": THREADS}
    if what == "spark":
        engine = SparkEngine()
        found = engine.find(folder)
        first = wall_s(lambda: engine.count(found, questions, dedup=False))
        before = tree_cpu_s(os.getpid())
        again = wall_s(lambda: engine.count(found, questions, dedup=False))
        return {"first_s": first, "again_s": again, "again_cpu_s": tree_cpu_s(os.getpid()) - before}
    spent = time.process_time()
    taken_s = wall_s(lambda: count(what == "dedup"))
    return {"wall_s": taken_s, "cpu_s": time.process_time() - spent, "peak_mb": peak()}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
