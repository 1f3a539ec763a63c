"""The wave that every device reads: server CPU of a GET, beside an application that does nothing on the same server."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from benchmarks.measuring import Section, Sizes, at_most
from benchmarks.service_load import Running, empty, running

CONNECTIONS = 64
LARGE_MS = 5.0  # CPU of a GET of a large wave, at most
RATIO = 2.0  # of a GET at the usual number of cells to the empty application, at most


@dataclass(frozen=True)
class Reads:
    """What so many readers cost."""

    cpu_us: float  # of the server, a GET
    per_second: float
    body_bytes: int


def run(sizes: Sizes) -> Section:
    """A wave of the usual size beside the empty application, in turns; a large one; readers who have it already."""
    n = max(200, sizes.users // 10)
    with running(sizes.cells) as server, empty(server) as nothing:
        tag = read(server, 1).etag
        turns = [(reads(server, n), reads(server, n, tag), reads(nothing, n)) for _ in range(sizes.rounds)]
    ours, known, theirs = (min(some, key=lambda got: got.cpu_us) for some in zip(*turns, strict=True))
    cells = max(sizes.domains)
    with running(cells) as server:
        large = min((reads(server, max(20, n // 50)) for _ in range(sizes.rounds)), key=lambda got: got.cpu_us)
    named = {
        f"a wave of {sizes.cells:,} cells": ours,
        "the same, for a reader who has it": known,
        "an empty application": theirs,
        f"a wave of {cells:,} cells": large,
    }
    ratio = ours.cpu_us / max(theirs.cpu_us, 1e-9)
    return Section(
        "Reading a published wave",
        ("what", "server CPU", "per second", "body"),
        tuple(
            (name, f"{got.cpu_us:.1f} us", f"{got.per_second:,.0f}", f"{got.body_bytes:,} bytes")
            for name, got in named.items()
        ),
        (
            f"CPU of the server process a GET, user and system, over {CONNECTIONS} connections; the best of "
            f"{sizes.rounds} turns. A wave is read from the store once and then sent from memory; with If-None-Match "
            f"it is not sent at all.",
        ),
        (
            at_most(f"a GET of a wave of {sizes.cells:,} cells against an empty application", ratio, RATIO, " times"),
            at_most(f"server CPU of a GET of a wave of {cells:,} cells", large.cpu_us / 1000, LARGE_MS, "ms"),
        ),
        {name: {"cpu_us": got.cpu_us, "per_second": got.per_second} for name, got in named.items()},
    )


@dataclass(frozen=True)
class Answer:
    """The last answer of a connection."""

    etag: str
    body_bytes: int


def reads(server: Running, n: int, tag: str = "") -> Reads:
    """Read the wave n times, and measure."""
    read(server, 1)  # into memory
    before, started = server.cpu(), time.perf_counter()
    answer = read(server, n, tag)
    took, spent = time.perf_counter() - started, server.cpu() - before
    return Reads(1e6 * spent / n, n / took, answer.body_bytes)


def read(server: Running, n: int, tag: str = "") -> Answer:
    """Read the wave n times over some connections; the last answer."""
    return asyncio.run(_read(server, n, tag))


async def _read(server: Running, n: int, tag: str) -> Answer:
    known = f"if-none-match: {tag}\r\n" if tag else ""
    request = f"GET /v1/campaigns/{server.campaign}/waves/1 HTTP/1.1\r\nhost: x\r\n{known}\r\n".encode()
    host, port = server.url.removeprefix("http://").split(":")
    waiting, wanted, last = iter(range(n)), b"304" if tag else b"200", Answer("", 0)

    async def work() -> None:
        nonlocal last
        reader, writer = await asyncio.open_connection(host, int(port), limit=2**20)
        for _ in waiting:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert head.startswith(b"http/1.1 " + wanted), head
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            await reader.readexactly(length)
            last = Answer(head.partition(b"etag: ")[2].partition(b"\r\n")[0].decode(), length)
        writer.close()

    await asyncio.gather(*(work() for _ in range(min(CONNECTIONS, n))))
    return last
