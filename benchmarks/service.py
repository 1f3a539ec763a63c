"""The collection service under load: server CPU per report, durable reports per second, counting a wave."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ahead_ldp.device.canonical import digest, parse_canonical
from ahead_ldp.device.frames import ID_LENGTH, Header
from ahead_ldp.oracles import make_oracle
from ahead_ldp.server.screens import screen_group
from benchmarks.measuring import ONE_THREAD, Section, Sizes, at_least, at_most, cpu_s
from benchmarks.rendering import seconds

CONNECTIONS = 32
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Running:
    """A server in a process of its own, with one open campaign of one group."""

    url: str
    pid: int
    campaign: str
    question: str
    report_bytes: int

    def cpu(self) -> float:
        """CPU seconds of the server so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident_mb(self) -> float:
        """Memory of the server."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def running(cells: int, store: str | None = None, **settings: object) -> Iterator[Running]:
    """A server over a new store, until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        flags = {"port": 0, "store": store or f"{folder}/bench.db", "closer_interval_s": 0, **settings}
        words = [word for name, value in flags.items() for word in ("--set", f"{name}={value}")]
        process = subprocess.Popen(
            [sys.executable, "-m", "ahead_ldp", "serve", "--init", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD},
        )
        try:
            yield _opened(process, cells)
        finally:
            process.terminate()
            process.communicate(timeout=60)


def _opened(process: subprocess.Popen[str], cells: int) -> Running:
    assert process.stdout is not None
    assert process.stderr is not None
    token = process.stdout.readline().strip()
    port = 0
    while not port:
        line = process.stderr.readline()
        if not line:
            raise RuntimeError("the server did not start")
        if line.startswith("{"):
            port = json.loads(line).get("port", 0)
    url = f"http://127.0.0.1:{port}"
    texts = {name: "benchmark" for name in ("title", "purpose", "controller", "contact")}
    draft = {
        **texts, "attributes": [f"x=integer,0,{cells - 1}"], "epsilon": "1", "minimum": 1,
        "method": {"name": "flat", "choices": {"oracle": "oue"}}, "closing": {"kind": "manual"},
    }  # fmt: skip
    campaign = _post(url, "/v1/campaigns", token, draft)["campaign"]
    _post(url, f"/v1/campaigns/{campaign}/open", token, {})
    wave = parse_canonical(urllib.request.urlopen(f"{url}/v1/campaigns/{campaign}/waves/1").read())
    return Running(url, process.pid, campaign, digest(wave["questions"][0]), (cells + 7) // 8)


def _post(url: str, path: str, token: str, body: object) -> dict[str, str]:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    found: dict[str, str] = json.loads(urllib.request.urlopen(request).read())
    return found


def uploads(server: Running, reports: int, batch: int, rng: np.random.Generator) -> list[bytes]:
    """Whole HTTP requests of new reports; their bits do not matter."""
    size = ID_LENGTH + server.report_bytes
    header = Header(server.campaign, server.question).encode()
    path = f"POST /v1/campaigns/{server.campaign}/reports HTTP/1.1\r\nhost: x\r\n"
    path += "content-type: application/octet-stream\r\n"
    made = []
    for _ in range(reports // batch):
        body = header + rng.bytes(batch * size)
        made.append(f"{path}content-length: {len(body)}\r\n\r\n".encode() + body)
    return made


async def send(server: Running, requests: Sequence[bytes], connections: int = CONNECTIONS) -> int:
    """Send all requests over some connections, each waiting for its answer; how many reports were accepted."""
    waiting, accepted = iter(requests), 0
    host, port = server.url.removeprefix("http://").split(":")

    async def work() -> None:
        nonlocal accepted
        reader, writer = await asyncio.open_connection(host, int(port))
        for request in waiting:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            body = await reader.readexactly(length)
            assert head.startswith(b"HTTP/1.1 200"), head + body
            accepted += json.loads(body)["accepted"]
        writer.close()

    await asyncio.gather(*(work() for _ in range(connections)))
    return accepted


@dataclass(frozen=True)
class Load:
    """What one load cost."""

    reports: int
    cpu_us: float  # of the server, per report
    per_second: float
    resident_mb: float


def load(server: Running, reports: int, batch: int, seed: int, connections: int = CONNECTIONS) -> Load:
    """Send new reports and measure."""
    requests = uploads(server, reports, batch, np.random.default_rng(seed))
    before, started = server.cpu(), time.perf_counter()
    accepted = asyncio.run(send(server, requests, connections))
    took, spent = time.perf_counter() - started, server.cpu() - before
    assert accepted == len(requests) * batch
    return Load(accepted, 1e6 * spent / accepted, accepted / took, server.resident_mb())


def run(sizes: Sizes) -> Section:
    """Uploads in batches of 100 and alone; counting and screening one wave."""
    rows, targets, numbers = [], [], {}
    n = max(200, sizes.users)
    plan = [("batches of 100", n, 100, 12.0), ("one per request", max(50, n // 10), 1, 70.0)]
    with running(sizes.cells) as server:
        load(server, 100, 1, 0)  # the first ones load what is loaded on use
        for seed, (name, reports, batch, bound) in enumerate(plan, start=1):
            found = load(server, reports, batch, seed, 8 if batch > 1 else 64)
            numbers[name] = {"cpu_us": found.cpu_us, "per_second": found.per_second, "resident_mb": found.resident_mb}
            rows.append((name, f"{reports:,}", f"{found.cpu_us:.1f} us", f"{found.per_second:,.0f}"))
            targets.append(at_most(f"server CPU per report, {name}", found.cpu_us, bound, "us"))
            if batch > 1:
                targets.append(at_least("durable reports per second in batches", found.per_second, 20_000, "/s"))
    counted, screened = _count(sizes)
    rows.append(("count a wave", f"{sizes.people:,}", seconds(counted), ""))
    rows.append(("screen a wave", f"{sizes.people:,}", seconds(screened), ""))
    numbers["wave"] = {"count_s": counted, "screen_s": screened}
    targets.append(at_most(f"counting {sizes.people:,} reports of {sizes.cells} cells", counted, 2.0, "s"))
    note = (
        f"SQLite, synced before every answer; OUE on {sizes.cells} cells, tier none; CPU of the server process, HTTP "
        f"included. The wave is counted and screened in memory, screens look at 50,000 reports for pairs."
    )
    head = ("what", "reports", "CPU", "per second, wall")
    return Section("The collection service", head, tuple(rows), (note,), tuple(targets), numbers)


def _count(sizes: Sizes) -> tuple[float, float]:
    rng = np.random.default_rng(1)
    oracle = make_oracle("oue", "1", sizes.cells)
    part = oracle.perturb(rng.integers(0, sizes.cells, min(sizes.people, 50_000)), rng)
    parts = [part] * max(1, sizes.people // len(part))
    tally = oracle.tally(part)
    for _ in parts[1:]:
        tally += oracle.tally(part)
    counted = cpu_s(lambda: [oracle.tally(rows) for rows in parts], 1)
    return counted, cpu_s(lambda: screen_group(oracle, tally, lambda: parts, rng), 1)
