"""What reports cost at every size: `python -m benchmarks.scale KIND N...`, a process for each size.

A line of JSON for each: CPU seconds (user and system), seconds by the clock, bytes, and the peak of memory in MB,
with the pages of mapped files (`memory`) and without them (`own_memory`).
`files` writes report files of 32 bytes of payload, counts them without and with a look for copies, and deletes them.
`store` takes reports of 32 bytes into a file store, 2,000 to a commit, and counts them. `ids` fills the store's index.
`device` draws reports. `campaign` and `campaign-postgres` are a campaign of one wave in a server: uploads of 10,000
reports, a closing that a command counts, the end of the retention; the memory is the server's. On PostgreSQL
the database's own CPU seconds and the bytes of its log stand beside them.
`python -m benchmarks.scale draw LINES PICTURE` draws such lines.
"""

from __future__ import annotations

import json
import os
import shlex
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
from benchmarks.resident import own_peak, peak
from tests.service.server.harness import Bench, bench_over
from tests.service.store.postgres_server import PostgresServer

CELLS = 256  # of OUE: 32 bytes
PER_COMMIT = 2_000
PER_UPLOAD = 10_000
TALLY = shlex.join([sys.executable, "-m", "ahead_ldp", "tally", "--no-dedup", "--verify", "--json"])
ROUNDED = 4
DATABASE = {
    "shared_buffers": "4GB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "30min",
}  # as docs/operations.md says


def costs(run: Callable[[], object]) -> dict[str, float]:
    """CPU and wall seconds of a call."""
    spent, start = time.process_time(), time.perf_counter()
    run()
    taken = {"cpu_s": time.process_time() - spent, "wall_s": time.perf_counter() - start}
    return {name: round(seconds, ROUNDED) for name, seconds in taken.items()}


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


def campaign(n: int, postgres: bool = False) -> dict[str, Any]:
    """A campaign of one wave in a server: uploads, a closing that a command counts, and the end of the retention."""
    folder = Path(tempfile.mkdtemp(prefix="ahead-scale-"))
    server = PostgresServer(**DATABASE) if postgres else None
    found = dict[str, Any]()
    try:
        place = str(folder / "store.db") if server is None else server.new_database()
        opened = open_store(place, keys=folder / "keys")
        counter = {"counter": TALLY, "counter_folder": str(folder / "counted"), "counter_reports": 1}
        with bench_over(opened, **counter) as service:
            name = service.opened(
                attributes=[f"x=integer,0,{CELLS - 1}"],
                epsilon="1",
                minimum=1,
                method={"name": "flat", "choices": {"oracle": "oue"}},
            )
            drawing, taken = _upload(service, name, n)
            found["draw"], found["upload"], found["memory_after_uploads"] = drawing, taken, peak()
            found["close"] = costs(lambda: _check(int(service.close(name, 1)["state"] == "done"), 1))
            _check(service.store.questions(name, 1)[0].n, n)
            found["memory_after_closing"] = peak()
            if server is None:
                found["bytes"] = sum(path.stat().st_size for path in folder.glob("store.db*"))
            else:
                found["bytes"] = int(server.ask("SELECT sum(pg_database_size(oid)) FROM pg_database")[0][0])
            service.clock.pass_(400 * 86_400)
            found["forget"] = costs(service.app.round)
            _check(sum(chunk.n for chunk in opened.reports(name, 1, "1")), 0)
            if server is not None:
                found["database"] = {"cpu_s": _cpu(server), "log_bytes": _log_bytes(server)}
        opened.close()
    finally:
        if server is not None:
            server.remove()
        shutil.rmtree(folder)
    return found


def _cpu(server: PostgresServer) -> float:
    """CPU seconds of all processes of a database since it started, also of those that have ended."""
    ticks, first = 0, True
    for pid in server.processes():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11 : 15 if first else 13]))  # the first has its ended children in two more
        first = False
    return round(ticks / os.sysconf("SC_CLK_TCK"), ROUNDED)


def _log_bytes(server: PostgresServer) -> int:
    """What a database has written to its write-ahead log."""
    return int(server.ask("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")[0][0])


def _upload(service: Bench, name: str, n: int) -> tuple[dict[str, float], dict[str, float]]:
    """Uploads one after the other; what drawing the reports took, and what taking them took."""
    ((_, sent),) = service.questions(name, 1).items()
    (asked,) = service.service.directory.session(name).wave.values()
    rng, spent = np.random.default_rng(1), [dict.fromkeys(("cpu_s", "wall_s"), 0.0) for _ in range(2)]
    for start in range(0, n, PER_UPLOAD):
        some, frames = min(PER_UPLOAD, n - start), list[bytes]()

        def draw(some: int = some, frames: list[bytes] = frames) -> None:
            payloads = asked.oracle.perturb(rng.poisson(40, some) % CELLS, rng)
            ids = np.frombuffer(rng.bytes(16 * some), np.uint8).reshape(some, 16)
            frames.append(np.concatenate([ids, payloads], axis=1).tobytes())

        def send(some: int = some, frames: list[bytes] = frames) -> None:
            _check(service.upload(name, sent.header.encode() + frames[0]).json()["accepted"], some)

        for total, step in zip(spent, (draw, send), strict=True):
            for what, seconds in costs(step).items():
                total[what] = round(total[what] + seconds, ROUNDED)
    return spent[0], spent[1]


def campaign_on_postgres(n: int) -> dict[str, Any]:
    """The same on PostgreSQL, whose own processes are not in the CPU seconds."""
    return campaign(n, postgres=True)


PANELS = {
    "files": {"files: write": "write", "files: count": "count", "files: count_dedup": "count, with a look for copies"},
    "a campaign in a server": {
        f"{kind}: {step}": f"{label}, {store}"
        for kind, store in (("campaign", "SQLite"), ("campaign-postgres", "PostgreSQL"))
        for step, label in (("upload", "take in"), ("close", "close"), ("forget", "forget"))
    },
}


def draw(lines: str, picture: str) -> None:
    """CPU seconds over the number of reports: a panel for files, one for a server, a line for each step."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "scale"
    from matplotlib import pyplot as plt

    steps: dict[str, list[tuple[int, float]]] = {}
    for line in Path(lines).read_text("utf-8").splitlines():
        found = json.loads(line)
        for name, value in found.items():
            if isinstance(value, dict) and value["cpu_s"] > 0:
                steps.setdefault(f"{found['kind']}: {name}", []).append((found["n"], value["cpu_s"]))
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.5), sharex=True, sharey=True)
    for axes, (title, shown) in zip(panels, PANELS.items(), strict=True):
        for i, (name, label) in enumerate(shown.items()):
            n, seconds = zip(*sorted(steps[name]), strict=True)
            line = "o--" if "postgres" in name else "o-"
            axes.loglog(n, seconds, line, color=f"C{i % 3}", markersize=4, label=label)
        axes.set_title(title)
        axes.set_xlabel("reports")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8, loc="upper left")
    panels[0].set_ylabel("CPU seconds")
    figure.savefig(picture, metadata={"Date": None}, bbox_inches="tight")


KINDS = {
    "files": files, "store": store, "ids": ids, "device": device,
    "campaign": campaign, "campaign-postgres": campaign_on_postgres,
}  # fmt: skip


def main(kind: str, *sizes: str) -> None:
    """A process for each size; in that process, the measurement."""
    if kind == "draw":
        draw(*sizes)
        return
    if len(sizes) == 1:
        n = int(float(sizes[0]))
        with own_peak() as own:
            found = KINDS[kind](n)
        print(json.dumps({"kind": kind, "n": n, **found, "memory": peak(), **own}), flush=True)
        return
    for size in sizes:
        subprocess.run([sys.executable, "-m", "benchmarks.scale", kind, size], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
