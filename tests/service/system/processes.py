"""Real processes: `ahead serve`, a client that sends without pause, and a balancer in front of several servers."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from tests.hosts import Hosts
from tests.service.server.asgi import Answer

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
_START_S = 120


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """`ahead serve` over a store, on one port for all its lives; its log is kept. ``at`` is a host of its own."""

    def __init__(self, store: str, init: bool = True, at: tuple[Hosts, int] | None = None, **settings: object) -> None:
        self.token, self.log = "", list[str]()
        self.host = "127.0.0.1" if at is None else at[0].address(at[1])
        self.port = free_port() if at is None else 8440
        self._inside = [] if at is None else ["ip", "netns", "exec", at[0].names[at[1] - 1]]
        self.settings = {
            "host": self.host,
            "port": self.port,
            "store": store,
            "closer_interval_s": 0.05,
            "lease_s": 1,
            "rate_per_s": 0,
            **settings,
        }
        self._process: subprocess.Popen[str] | None = None
        self.start(init)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """Its process now."""
        assert self._process is not None
        return self._process.pid

    def start(self, init: bool = False) -> None:
        """Start, and return when it answers."""
        words = [word for name, value in self.settings.items() for word in ("--set", f"{name}={value}")]
        command = [*self._inside, sys.executable, "-m", "ahead_ldp", "serve", *(["--init"] if init else []), *words]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **ONE_THREAD}
        )
        self._process = process
        assert process.stdout is not None
        if init:
            self.token = process.stdout.readline().strip()
        listening = threading.Event()
        threading.Thread(target=self._read, args=(process, listening), daemon=True).start()
        assert listening.wait(_START_S), self.log[-20:]
        assert process.poll() is None, self.log[-20:]

    def _read(self, process: subprocess.Popen[str], listening: threading.Event) -> None:
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                self.log.append(line)
                if '"listening"' in line:
                    listening.set()
        listening.set()

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, nothing is said."""
        self._end(signal.SIGKILL)

    def stop(self) -> int | None:
        """As an operator does; the exit code."""
        if self._process is not None and self._process.poll() is None:
            self._end(signal.SIGTERM)
        return None if self._process is None else self._process.returncode

    def _end(self, how: signal.Signals) -> None:
        process = self._process
        assert process is not None
        os.kill(process.pid, how)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def request(url: str, method: str, path: str, token: str = "", **options: Any) -> Answer:
    """One request on a connection of its own."""
    split = urlsplit(url)
    headers = dict(options.get("headers", {}))
    if token:
        headers.setdefault("authorization", f"Bearer {token}")
    body = options.get("content")
    if "json" in options:
        body = json.dumps(options["json"]).encode()
        headers["content-type"] = "application/json"
    kind = http.client.HTTPSConnection if split.scheme == "https" else http.client.HTTPConnection
    connection = kind(split.hostname or "", split.port, timeout=60)
    try:
        connection.request(method, "/v1" + path, body, headers)
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


class Load:
    """The client process of load.py: what it was told about every upload, until it is asked to stop.

    Behind a proxy its own answers mean "later" too; a server must not give them.
    """

    def __init__(self, url: str, campaigns: list[str], seed: int, threads: int = 4, proxied: bool = False) -> None:
        later = "429,502,503,504" if proxied else "429,503"
        command = [sys.executable, "-m", "tests.service.system.load", url, str(seed), str(threads), later, *campaigns]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.told: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout:
            for line in self._process.stdout:
                self.told.append(json.loads(line))

    def wait_for(self, more: int) -> None:
        """Return when so many more uploads were answered."""
        wanted = len(self.told) + more
        deadline = time.monotonic() + 60
        while len(self.told) < wanted and self._process.poll() is None:
            assert time.monotonic() < deadline, "no uploads are answered"
            time.sleep(0.001)

    def stop(self) -> list[dict[str, Any]]:
        """Let every upload that was begun come to its end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(120)
        self._reader.join()
        assert code == 0
        return self.told

    def kill(self) -> None:
        """For a test that failed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join()


async def balance(backends: list[int]) -> asyncio.Server:
    """A load balancer on a free port: each connection goes to the next server in turn."""
    turn = iter(range(10**9))

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to, back = await asyncio.open_connection("127.0.0.1", backends[next(turn) % len(backends)])
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, back), pump(to, writer))

    return await asyncio.start_server(connected, "127.0.0.1", 0)
