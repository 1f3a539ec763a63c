"""What reports cost at every size: `python -m benchmarks.scale files|store|ids|device N...`, a process for each size.

A line of JSON for each: CPU seconds (user and system), seconds by the clock, bytes, and the peak of memory in MB.
`files` writes report files of 32 bytes of payload, counts them without and with a look for copies, and deletes them.
`store` takes reports of 32 bytes into a file store, 2,000 to a commit, and counts them. `ids` fills the store's index.
`device` draws reports. `python -m benchmarks.scale draw LINES PICTURE` draws such lines.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.device.words import SystemWords
from ahead_ldp.engines.local import LOCAL
from ahead_ldp.oracles import make_oracle
from ahead_ldp.service.store import Batch, CampaignState, NewQuestion, NewWave, open_store, reports_digest
from ahead_ldp.service.store.known_ids import _Campaign
from benchmarks.batch_runner import question, write_reports
from benchmarks.resident import peak

CELLS = 256  # of OUE: 32 bytes
PER_COMMIT = 2_000
ROUNDED = 3


def costs(run: Callable[[], object]) -> dict[str, float]:
    """CPU and wall seconds of a call."""
    before, start = os.times(), time.perf_counter()
    run()
    after = os.times()
    cpu = after.user + after.system - before.user - before.system
    return {"cpu_s": round(cpu, ROUNDED), "wall_s": round(time.perf_counter() - start, ROUNDED)}


def files(n: int) -> dict[str, Any]:
    """The batch path: write, count, count with a look for copies, delete."""
    folder, asked = Path(tempfile.mkdtemp(prefix="ahead-scale-")), question(CELLS)
    questions, found = {asked.question: asked}, dict[str, Any]()
    try:
        found["write"] = costs(lambda: write_reports(folder, n, CELLS))
        found["bytes"] = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
        found["memory_after_writing"] = peak()
        listed = LOCAL.find(str(folder))
        LOCAL.count(listed[:1], questions)  # compiles, or loads what was compiled
        for name, dedup in (("count", False), ("count_dedup", True)):
            found[name] = costs(lambda dedup=dedup: _check(LOCAL.count(listed, questions, dedup=dedup).reports, n))
    finally:
        shutil.rmtree(folder)
    return found


def _check(got: int, wanted: int) -> None:
    if got != wanted:
        raise AssertionError(f"expected {wanted} reports, got {got}")


def store(n: int) -> dict[str, Any]:
    """A file store: uploads, then what closing reads: every chunk, and the digest over ids."""
    folder = Path(tempfile.mkdtemp(prefix="ahead-scale-"))
    found, rng = dict[str, Any](), np.random.default_rng(1)
    try:
        opened = open_store(str(folder / "store.db"), keys=folder / "keys")
        opened.create_campaign("c" * 64, b"{}", 1)
        wave = NewWave(1, (NewQuestion("1", "d" * 64, canonical_bytes({})),))
        opened.open_wave("c" * 64, wave, 1, CampaignState.DRAFT)

        def upload() -> None:
            for start in range(0, n, PER_COMMIT):
                some = min(PER_COMMIT, n - start)
                opened.add_reports([Batch("c" * 64, 1, "1", rng.bytes(16 * some), rng.bytes(CELLS // 8 * some))])

        found["upload"] = costs(upload)
        found["memory_after_uploads"] = peak()
        found["read"] = costs(lambda: reports_digest(chunk.ids for chunk in opened.reports("c" * 64, 1, "1")))
        opened.close()
        found["bytes"] = (folder / "store.db").stat().st_size
    finally:
        shutil.rmtree(folder)
    return found


def ids(n: int) -> dict[str, Any]:
    """The index of known ids alone."""
    index, rng = _Campaign(), np.random.default_rng(1)

    def fill() -> None:
        for start in range(0, n, PER_COMMIT):
            index.add(rng.bytes(16 * min(PER_COMMIT, n - start)), start)

    asked = [rng.bytes(16) for _ in range(PER_COMMIT)]
    return {"fill": costs(fill), "memory_after_filling": peak(), "ask_2000": costs(lambda: index.candidates(asked))}


def device(n: int) -> dict[str, Any]:
    """Drawing reports as a device does, one by one."""
    law, words = make_oracle("oue", 1.0, CELLS).law, SystemWords()
    return {"draw": costs(lambda: [law.draw(i % CELLS, words) for i in range(n)]), "bytes": law.payload_length + 16}


def draw(lines: str, picture: str) -> None:
    """CPU seconds over the number of reports, a line for each step."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "scale"
    from matplotlib import pyplot as plt

    steps: dict[str, list[tuple[int, float]]] = {}
    for line in Path(lines).read_text("utf-8").splitlines():
        found = json.loads(line)
        for name, value in found.items():
            if isinstance(value, dict) and name != "ask_2000" and value["cpu_s"] > 0:
                steps.setdefault(f"{found['kind']}: {name}", []).append((found["n"], value["cpu_s"]))
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for name, points in sorted(steps.items()):
        n, seconds = zip(*sorted(points), strict=True)
        axes.loglog(n, seconds, "o-", markersize=4, label=name)
    axes.set_xlabel("reports")
    axes.set_ylabel("CPU seconds")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(picture, metadata={"Date": None}, bbox_inches="tight")


KINDS = {"files": files, "store": store, "ids": ids, "device": device}


def main(kind: str, *sizes: str) -> None:
    """A process for each size; in that process, the measurement."""
    if kind == "draw":
        draw(*sizes)
        return
    if len(sizes) == 1:
        n = int(float(sizes[0]))
        print(json.dumps({"kind": kind, "n": n, **KINDS[kind](n), "memory": peak()}), flush=True)
        return
    for size in sizes:
        subprocess.run([sys.executable, "-m", "benchmarks.scale", kind, size], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
