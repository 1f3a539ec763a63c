"""Counting report files, measured in a process of its own.

Run as ``python -m benchmarks.batch_runner speed|count|dedup FOLDER CELLS ROUNDS``.
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


def main(what: str, folder: str, cells: int, rounds: int) -> dict[str, Any]:
    """The numbers that were asked for."""
    asked, files = question(cells), find_files([folder])
    questions = {asked.question: asked}

    def count(dedup: bool = False) -> None:
        count_files(files, questions, dedup=dedup, threads=THREADS)

    if what == "speed":
        runs = {"read_s": lambda: read_alone(files), "count_s": count, "dedup_s": lambda: count(dedup=True)}
        turns = [{name: wall_s(run) for name, run in runs.items()} for _ in range(1 + max(3, 2 * rounds))]
        return {"threads": THREADS} | {name: min(turn[name] for turn in turns[1:]) for name in runs}
    count(what == "dedup")
    return {"peak_mb": peak()}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
