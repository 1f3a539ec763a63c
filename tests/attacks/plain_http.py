"""A server to attack, and a plain way to talk to it: a socket, bytes out, bytes in. No client of ours."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_WAIT_S = 60


class Running:
    """`ahead serve` in a process of its own, over a SQLite file in a folder; its operator's token; what it logged."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder, self.settings, self.token = folder, settings, ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Run until it listens."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        own = {"port": self.port, "store": self.folder / "store.db", "keys": self.folder / "keys"}
        own["rate_per_s"] = 0  # who attacks has many addresses
        words = [word for name, value in {**own, **self.settings}.items() for word in ("--set", f"{name}={value}")]
        first = () if self.token else ("--init",)
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ahead_ldp", "serve", *first, *words],
                stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ,
            )  # fmt: skip
        if first:
            assert self._process.stdout is not None
            self.token = self._process.stdout.readline().strip()
        until = time.monotonic() + _WAIT_S
        while True:
            try:
                assert self.ask("GET", "/v1/health")[0] == 200
                return
            except OSError:
                assert self._process.poll() is None, (self.folder / "server.log").read_text()
                assert time.monotonic() < until
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_WAIT_S)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def memory(self) -> bytes:
        """Everything that the process can write to in its memory now."""
        assert self._process is not None
        parts = []
        with open(f"/proc/{self._process.pid}/mem", "rb", buffering=0) as memory:
            for line in Path(f"/proc/{self._process.pid}/maps").read_text().splitlines():
                place, rights, *_ = line.split()
                first, last = (int(end, 16) for end in place.split("-"))
                if rights.startswith("rw"):
                    memory.seek(first)
                    with contextlib.suppress(OSError):
                        parts.append(memory.read(last - first))
        return b"".join(parts)

    def __enter__(self) -> Running:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def connect(self) -> socket.socket:
        """A connection to it."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=_WAIT_S)

    def ask(self, method: str, path: str, body: bytes = b"", kind: str = "", token: str = "") -> tuple[int, bytes]:
        """Status and body of one request, on a connection of its own."""
        head = [f"{method} {path} HTTP/1.1", "Host: attacked", "Connection: close", f"Content-Length: {len(body)}"]
        head += [f"Content-Type: {kind}"] * bool(kind) + [f"Authorization: Bearer {token}"] * bool(token)
        with self.connect() as connection:
            connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
        top, _, rest = answer.partition(b"\r\n\r\n")
        return int(top.split()[1]), rest

    def upload(self, campaign: str, data: bytes) -> tuple[int, bytes]:
        """The answer to a batch of reports."""
        return self.ask("POST", f"/v1/campaigns/{campaign}/reports", data, "application/octet-stream")

    def operate(self, method: str, path: str, record: Any = None) -> Any:
        """What the operator is told."""
        body = b"" if record is None else json.dumps(record).encode()
        status, answer = self.ask(method, f"/v1{path}", body, "application/json", self.token)
        assert status < 300, (status, answer)
        return json.loads(answer)

    def opened(self, **draft: Any) -> str:
        """A campaign with its first wave open."""
        texts = {"title": "t", "purpose": "p", "controller": "c", "contact": "a", "created": "2026-01-01"}
        plain = {"minimum": 5, "closing": {"kind": "manual"}, "retention_days": 0, **draft}
        campaign = self.operate("POST", "/campaigns", {**texts, **plain})["campaign"]
        self.operate("POST", f"/campaigns/{campaign}/open")
        return str(campaign)

    def questions(self, campaign: str, wave: int = 1) -> list[dict[str, Any]]:
        """The questions of a wave, as everybody gets them."""
        found = json.loads(self.ask("GET", f"/v1/campaigns/{campaign}/waves/{wave}")[1])["questions"]
        return list(found)

    def finish(self, campaign: str) -> None:
        """Count the open wave and end the campaign."""
        assert self.operate("POST", f"/campaigns/{campaign}/finish?wait=60")["state"] == "done"

    def wait_for(self, event: str, campaign: str) -> None:
        """Return when the audit chain has an event."""
        until = time.monotonic() + _WAIT_S
        while {"event": event, "campaign": campaign} not in [e["event"] for e in self.operate("GET", "/events")]:
            assert time.monotonic() < until
            time.sleep(0.05)


def header(campaign: str, question: bytes) -> bytes:
    """The first 65 bytes of a batch."""
    return b"\1" + bytes.fromhex(campaign) + question
