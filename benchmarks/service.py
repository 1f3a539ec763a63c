"""The collection service under load: server CPU per report, durable reports per second, memory, counting a wave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ahead_ldp.oracles import make_oracle
from ahead_ldp.service.screening.screens import screen_group
from ahead_ldp.service.server.tokens import verify
from benchmarks.measuring import Section, Sizes, Target, at_least, at_most, cpu_s
from benchmarks.rendering import seconds
from benchmarks.service_load import Load, Running, cpu_of, empty, frames, load, running
from tests.service.store.postgres_server import NoPostgres, PostgresServer

BATCH, BATCH_CONNECTIONS = 100, 8
CONNECTIONS = (64, 256)  # of people who send one report each
BITS = 2048  # of an issuer's key


@dataclass
class Found:
    """What was measured so far."""

    rows: list[tuple[str, ...]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, key: str, ids: int, got: Load, bound: float | None = None) -> None:
        """One load; with a bound it is a promise."""
        shown = (f"{got.cpu_us:.1f} us", f"{got.per_second:,.0f}", f"{got.resident_mb:.0f} MB")
        self.rows.append((name, f"{ids:,}" if ids else "", *shown))
        self.numbers[key] = {"cpu_us": got.cpu_us, "per_second": got.per_second, "mb": got.resident_mb}
        if bound is not None:
            where = f" at {ids:,} ids" if ids else ""
            self.targets.append(at_most(f"server CPU per report, {name}{where}", got.cpu_us, bound, "us"))


def run(sizes: Sizes) -> Section:
    """Uploads in batches and alone as the store fills up, beside an empty application; tokens; PostgreSQL; a wave."""
    found, rng = Found(), np.random.default_rng(1)
    filling(found, sizes, rng)
    tokens(found, sizes, rng)
    postgres(found, sizes, rng)
    wave(found, sizes, rng)
    found.notes.insert(
        0,
        f"CPU of the server process per report, user and system: HTTP, dedup and commit, each answer after the sync. "
        f"SQLite and tier none unless the row says so; OUE on {sizes.cells} cells. Batches are {BATCH} reports on "
        f"{BATCH_CONNECTIONS} connections; the last {sizes.users:,} before the number of ids. "
        f"Single uploads are the best of {sizes.rounds} turns with the empty application.",
    )
    head = ("what", "known ids", "CPU", "per second, wall", "memory")
    return Section(
        "The collection service", head, tuple(found.rows), tuple(found.notes), tuple(found.targets), found.numbers
    )


def filling(found: Found, sizes: Sizes, rng: np.random.Generator) -> None:
    """Batches at two numbers of known ids, single uploads after both, and what memory grew by."""
    with running(sizes.cells) as server:
        load(server, frames(server, 100, rng), 1, 10)  # the first ones load what is loaded on use
        known, memory = 0, {}
        for size, bound in ((sizes.users, 7.0), (sizes.people, 7.0)):
            got = fill(server, known, size, sizes.users, rng)
            known, memory[size] = size, got.resident_mb
            found.add(f"batches of {BATCH}", f"batches at {size}", size, got, bound)
            if size == sizes.users:
                found.targets.append(at_least("durable reports per second in batches", got.per_second, 80_000, "/s"))
            singles(found, server, size, sizes, rng)
    grown = 1e6 * (memory[sizes.people] - memory[sizes.users]) / (sizes.people - sizes.users)
    found.numbers["bytes_per_report"] = grown
    found.targets.append(at_most("memory of the server per further report", grown, 64.0, "bytes"))
    found.notes.append(f"Memory grew by {grown:.0f} bytes a further report; the index of known ids takes 16.")


def fill(server: Running, known: int, size: int, last: int, rng: np.random.Generator) -> Load:
    """Send until there are so many reports; what the last ones cost."""
    got = None
    while known < size:
        n = min(last, size - known)
        got = load(server, frames(server, n, rng), BATCH, BATCH_CONNECTIONS)
        known += n
    assert got is not None
    return got


def singles(found: Found, server: Running, ids: int, sizes: Sizes, rng: np.random.Generator) -> None:
    """One report a request beside an application that does nothing, in turns."""
    n = max(50, sizes.users // 10)
    with empty(server) as nothing:
        for connections in CONNECTIONS:
            few = min(connections, n // 2)
            turns = [[load(at, frames(at, n, rng), 1, few) for at in (server, nothing)] for _ in range(sizes.rounds)]
            ours, theirs = (min(loads, key=lambda got: got.cpu_us) for loads in zip(*turns, strict=True))
            name = f"one per request, {connections} connections"
            found.add(name, f"single at {ids}, {connections}", ids, ours, max(60.0, 2.5 * theirs.cpu_us))
            found.add(f"an empty application, {connections} connections", f"empty at {ids}, {connections}", 0, theirs)
            ratio = ours.cpu_us / max(theirs.cpu_us, 1e-9)
            found.numbers[f"ratio at {ids}, {connections}"] = ratio
            found.notes.append(f"{name}, {ids:,} ids: {ratio:.2f} times the empty application on the same HTTP server.")


def tokens(found: Found, sizes: Sizes, rng: np.random.Generator) -> None:
    """The same with a signature to check in every report; and that check alone."""
    n = max(200, sizes.users // 50)
    sign, n_, e = issuer()
    for tier in ("signed", "blind"):
        token = {"tier": tier, "version": 2, "n": f"{n_:0{BITS // 4}x}", "e": e}
        with running(sizes.cells, token=token) as server:
            load(server, frames(server, 10, rng, sign), 1, 2)
            found.add(
                f"tier {tier}, batches of {BATCH}", f"{tier}, batches", 0,
                load(server, frames(server, n, rng, sign), BATCH, 2),
            )  # fmt: skip
            found.add(
                f"tier {tier}, one per request, 64 connections", f"{tier}, single", 0,
                load(server, frames(server, n, rng, sign), 1, 64),
            )  # fmt: skip
    nonces = [rng.bytes(32) for _ in range(100)]
    signatures = [sign(nonce) for nonce in nonces]
    assert all(verify((n_, e), nonces, signatures))
    alone = cpu_s(partial(verify, (n_, e), nonces, signatures), 3) / len(nonces)
    found.numbers["signature_us"] = 1e6 * alone
    found.rows.append(("check a signature", "", seconds(alone), "", ""))
    found.notes.append(
        f"Tiers signed and blind differ in how a token is issued; the server checks one RSA signature of {BITS} bits a "
        f"report in both."
    )


def issuer() -> tuple[Callable[[bytes], bytes], int, int]:
    """What signs a nonce, and the public key."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    private = rsa.generate_private_key(65_537, BITS)
    pss = padding.PSS(mgf=padding.MGF1(hashes.SHA384()), salt_length=0)
    public = private.public_key().public_numbers()
    return lambda nonce: private.sign(nonce, pss, hashes.SHA384()), public.n, public.e


def postgres(found: Found, sizes: Sizes, rng: np.random.Generator) -> None:
    """Batches and single uploads with PostgreSQL, where one can be started; what the database itself spent."""
    try:
        database = PostgresServer()
    except NoPostgres as reason:
        found.notes.append(f"PostgreSQL SKIPPED: {reason}.")
        return
    try:
        with running(sizes.cells, database.new_database()) as server:
            load(server, frames(server, 100, rng), 1, 10)
            plan = {
                f"batches of {BATCH}": (sizes.users, BATCH, BATCH_CONNECTIONS),
                "one per request, 64 connections": (sizes.users // 10, 1, 64),
            }
            for name, (n, batch, connections) in plan.items():
                before = database_cpu(database)
                got = load(server, frames(server, max(200, n), rng), batch, connections)
                theirs = 1e6 * (database_cpu(database) - before) / got.reports
                found.add(f"PostgreSQL, {name}", f"postgres, {name}", 0, got)
                found.numbers[f"postgres, {name}"]["database_us"] = theirs
                found.notes.append(f"PostgreSQL, {name}: the database spent {theirs:.1f} us a report beside it.")
    finally:
        database.remove()


def database_cpu(database: PostgresServer) -> float:
    """CPU seconds of all processes of a PostgreSQL that live now."""
    return sum(map(cpu_of, database.processes()))


def wave(found: Found, sizes: Sizes, rng: np.random.Generator) -> None:
    """Counting and screening one wave in memory."""
    oracle = make_oracle("oue", "1", sizes.cells)
    part = oracle.perturb(rng.integers(0, sizes.cells, min(sizes.people, 50_000)), rng)
    parts = [part] * max(1, sizes.people // len(part))
    tally = oracle.tally(part)
    for _ in parts[1:]:
        tally += oracle.tally(part)
    counted = cpu_s(lambda: [oracle.tally(rows) for rows in parts], 1)
    screened = cpu_s(lambda: screen_group(oracle, tally, lambda: parts, rng), 1)
    found.rows.append(("count a wave", f"{sizes.people:,}", seconds(counted), "", ""))
    found.rows.append(("screen a wave", f"{sizes.people:,}", seconds(screened), "", ""))
    found.numbers["wave"] = {"count_s": counted, "screen_s": screened}
    found.targets.append(at_most(f"counting {sizes.people:,} reports of {sizes.cells} cells", counted, 2.0, "s"))
    found.notes.append("The wave is counted and screened in memory; screens look at 50,000 reports for pairs.")
