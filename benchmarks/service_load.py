"""A server process and the load on it: reports over real connections, and the CPU time that the server spent."""

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
from typing import Any

import numpy as np

from ahead_ldp.device.canonical import digest, parse_canonical
from ahead_ldp.device.frames import ID_LENGTH, Header
from ahead_ldp.device.tokens import NONCE_LENGTH, report_id, token_message
from benchmarks.measuring import ONE_THREAD, ROOT

_TICKS = os.sysconf("SC_CLK_TCK")
_ANSWER = b'{"accepted":1,"refused":[]}'
_ONE_ADDRESS = {"rate_per_s": 1e6, "rate_burst": 10**6}  # the limit is on, and all requests come from one address


@dataclass(frozen=True)
class Running:
    """A server in a process of its own, with one open campaign of one group."""

    url: str
    pid: int
    campaign: str
    question: str
    report_bytes: int

    def cpu(self) -> float:
        """CPU seconds of the server so far, user and system."""
        return cpu_of(self.pid)

    def resident_mb(self) -> float:
        """Memory of the server."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and its threads, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def running(cells: int, store: str | None = None, token: object = None) -> Iterator[Running]:
    """A server over a new store, until the block ends. ``token`` is a campaign's, for the tiers that have one."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"store": store or f"{folder}/bench.db", "keys": f"{folder}/keys"}
        flags = {"port": 0, **own, "closer_interval_s": 0, **_ONE_ADDRESS}
        words = [word for name, value in flags.items() for word in ("--set", f"{name}={value}")]
        with _process("-m", "ahead_ldp", "serve", "--init", *words) as process:
            assert process.stdout is not None
            operator = process.stdout.readline().strip()
            yield _opened(f"http://127.0.0.1:{_port(process)}", process.pid, operator, cells, token)


@contextmanager
def empty(like: Running) -> Iterator[Running]:
    """The same HTTP server with an application that does nothing: reads a body and answers as if it were counted."""
    with _process("-c", "from benchmarks.service_load import serve_empty; serve_empty()") as process:
        url = f"http://127.0.0.1:{_port(process)}"
        yield Running(url, process.pid, like.campaign, like.question, like.report_bytes)


@contextmanager
def _process(*words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **ONE_THREAD},
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("{") and (port := json.loads(line).get("port", 0)):
            return int(port)
    raise RuntimeError("the server did not start")


def serve_empty() -> None:
    """Run the empty application with the settings of the real server until the process is ended."""
    from ahead_ldp.service.campaigns import logs
    from ahead_ldp.service.edge.server import Server

    plain = [(b"content-type", b"application/json"), (b"content-length", str(len(_ANSWER)).encode())]
    start = {"type": "http.response.start", "status": 200, "headers": plain}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send(start)
        await send({"type": "http.response.body", "body": _ANSWER})

    logs.configure("info")
    Server(app, "127.0.0.1", 0).run()


def _opened(url: str, pid: int, operator: str, cells: int, token: object) -> Running:
    texts = {name: "benchmark" for name in ("title", "purpose", "controller", "contact")}
    draft = {
        **texts, "attributes": [f"x=integer,0,{cells - 1}"], "epsilon": "1", "minimum": 1,
        "method": {"name": "flat", "choices": {"oracle": "oue"}}, "closing": {"kind": "manual"},
        **({} if token is None else {"token": token}),
    }  # fmt: skip
    campaign = _post(url, "/v1/campaigns", operator, draft)["campaign"]
    _post(url, f"/v1/campaigns/{campaign}/open", operator, {})
    wave = parse_canonical(urllib.request.urlopen(f"{url}/v1/campaigns/{campaign}/waves/1").read())
    return Running(url, pid, campaign, digest(wave["questions"][0]), (cells + 7) // 8)


def _post(url: str, path: str, token: str, body: object) -> dict[str, str]:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    found: dict[str, str] = json.loads(urllib.request.urlopen(request).read())
    return found


def frames(server: Running, reports: int, rng: np.random.Generator, key: Any = None) -> list[bytes]:
    """New reports, whose bits do not matter; with a key each has a nonce and its signature."""
    size = server.report_bytes
    if key is None:
        return [rng.bytes(ID_LENGTH + size) for _ in range(reports)]
    nonces = [rng.bytes(NONCE_LENGTH) for _ in range(reports)]
    signed = (key(token_message(server.campaign, nonce)) for nonce in nonces)
    return [report_id(nonce) + rng.bytes(size) + nonce + next(signed) for nonce in nonces]


def uploads(server: Running, made: Sequence[bytes], batch: int) -> list[bytes]:
    """Whole HTTP requests of so many reports each."""
    header = Header(server.campaign, server.question).encode()
    path = f"POST /v1/campaigns/{server.campaign}/reports HTTP/1.1\r\nhost: x\r\n"
    path += "content-type: application/octet-stream\r\n"
    bodies = [header + b"".join(made[i : i + batch]) for i in range(0, len(made) - batch + 1, batch)]
    return [f"{path}content-length: {len(body)}\r\n\r\n".encode() + body for body in bodies]


async def send(server: Running, requests: Sequence[bytes], connections: int) -> int:
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


def load(server: Running, made: Sequence[bytes], batch: int, connections: int) -> Load:
    """Send new reports and measure."""
    requests = uploads(server, made, batch)
    before, started = server.cpu(), time.perf_counter()
    accepted = asyncio.run(send(server, requests, connections))
    took, spent = time.perf_counter() - started, server.cpu() - before
    assert accepted == len(requests) * batch
    return Load(accepted, 1e6 * spent / accepted, accepted / took, server.resident_mb())
