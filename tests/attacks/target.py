"""The service under attack: a real process with its own settings, raw sockets to it, and what it costs it."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

WAIT_S = 30.0
CAMPAIGN = {
    "title": "t", "purpose": "p", "controller": "c", "contact": "x", "attributes": ["x=integer,0,4"], "epsilon": "1",
    "minimum": 1, "method": {"name": "flat", "choices": {"oracle": "oue"}}, "closing": {"kind": "manual"},
}  # fmt: skip


@dataclass
class Target:
    """A running `ahead serve`, with one open campaign of one question whose reports have one byte."""

    pid: int
    port: int
    token: str
    campaign: str = ""
    question: str = ""

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), WAIT_S)

    def ask(self, method: str, path: str, body: object = None, token: str | None = None, **headers: str) -> bytes:
        """A request of somebody who behaves; of the operator, unless another token is given."""
        lines = {
            "authorization": f"Bearer {self.token if token is None else token}",
            "content-type": "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, lines | headers, method=method)
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return answer.read()

    def open_campaign(self) -> None:
        self.campaign = json.loads(self.ask("POST", "/v1/campaigns", CAMPAIGN))["campaign"]
        self.ask("POST", f"/v1/campaigns/{self.campaign}/open", {})
        wave = json.loads(self.ask("GET", f"/v1/campaigns/{self.campaign}/waves/1"))
        text = json.dumps(wave["questions"][0], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        self.question = hashlib.sha256(text.encode()).hexdigest()

    def batch(self, n: int = 1) -> bytes:
        """A batch of reports, by docs/wire.md: version, campaign, question, then ids and payloads."""
        head = b"\1" + bytes.fromhex(self.campaign) + bytes.fromhex(self.question)
        return head + b"".join(os.urandom(16) + b"\1" for _ in range(n))

    def upload(self, body: bytes, *lines: str) -> bytes:
        """A whole request that uploads a body."""
        head = [
            f"POST /v1/campaigns/{self.campaign}/reports HTTP/1.1",
            "host: x",
            *lines,
            f"content-length: {len(body)}",
        ]
        return "\r\n".join(head).encode() + b"\r\n\r\n" + body

    def counts_an_upload(self) -> bool:
        """Whether somebody new can send a report now."""
        with self.connect() as connection:
            connection.sendall(self.upload(self.batch()))
            return b'{"accepted":1,"refused":[]}' in read_answer(connection)

    def resident_mb(self) -> float:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def forget_peak(self) -> None:
        """From now on ``peak_mb`` is the most since now."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def peak_mb(self) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(dict(line.split(":") for line in lines)["VmHWM"].split()[0]) / 1e3

    def written_bytes(self) -> int:
        """Bytes that the process has written to files and sockets so far."""
        lines = Path(f"/proc/{self.pid}/io").read_text().splitlines()
        return int(dict(line.split(": ") for line in lines)["write_bytes"])


def read_answer(connection: socket.socket) -> bytes:
    """One answer with its body; what there is, if the server ends the connection before."""
    data = b""
    while True:
        head, end, body = data.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0):
            return data
        try:
            more = connection.recv(65_536)
        except ConnectionResetError:
            return data
        if not more:
            return data
        data += more


def read_all(connection: socket.socket) -> bytes:
    """Everything until the server ends the connection; ``TimeoutError`` if it does not."""
    data = b""
    try:
        while more := connection.recv(65_536):
            data += more
    except ConnectionResetError:
        pass
    return data


def ended(connection: socket.socket) -> bool:
    """Whether the server has ended a connection, now."""
    connection.setblocking(False)
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def attacked(folder: Path, **settings: object) -> Iterator[Target]:
    """`ahead serve` over a new store, with the defaults but for these settings."""
    given = {"port": 0, "store": folder / "attacked.db", "closer_interval_s": 0, **settings}
    words = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "ahead_ldp", "serve", "--init", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            token, port = process.stdout.readline().strip(), 0
            while not port:
                line = process.stderr.readline()
                assert line, "the server did not start"
                port = json.loads(line).get("port", 0) if line.startswith("{") else 0
            target = Target(process.pid, port, token)
            target.open_campaign()
            yield target
        finally:
            process.kill()
            process.communicate()
