"""The collection service as its store fills up: server CPU per report and memory from 10^5 to 10^6 ids, and tokens."""

from __future__ import annotations

import numpy as np

from ahead_ldp.device.tokens import NONCE_LENGTH
from ahead_ldp.server.tokens import verify
from benchmarks.measuring import Section, Sizes, at_most, cpu_s
from benchmarks.service import Load, Running, load, running

BATCH, CONNECTIONS = 100, 8
BITS = 2048  # of an issuer's key
SIGNATURES = 100


def run(sizes: Sizes) -> Section:
    """Batches at two numbers of known ids, single uploads at the larger one, memory at both, one signature."""
    rows, targets, numbers = [], [], {}
    with running(sizes.cells) as server:
        load(server, BATCH, 1, 0)  # the first ones load what is loaded on use
        known, memory = 0, {}
        for size, bound in ((sizes.users, 12.0), (sizes.people, 16.0)):
            found = fill(server, known, size, sizes.users)
            known, memory[size] = size, found.resident_mb
            rows.append(row(f"batches of {BATCH}", size, found))
            numbers[str(size)] = {"cpu_us": found.cpu_us, "per_second": found.per_second, "mb": found.resident_mb}
            targets.append(at_most(f"server CPU per report in batches at {size:,} ids", found.cpu_us, bound, "us"))
        single = load(server, max(50, sizes.users // 10), 1, 7, 64)
        rows.append(row("one per request", known, single))
        numbers["single"] = {"cpu_us": single.cpu_us, "per_second": single.per_second}
        targets.append(at_most(f"server CPU per report alone at {known:,} ids", single.cpu_us, 70.0, "us"))
    grown = 1e6 * (memory[sizes.people] - memory[sizes.users]) / (sizes.people - sizes.users)
    numbers["bytes_per_report"] = grown
    targets.append(at_most("memory of the server per further report", grown, 64.0, "bytes"))
    numbers["signature_us"] = signature_us()
    rows.append(("check a signature", "", f"{numbers['signature_us']:.1f} us", "", ""))
    notes = (
        f"SQLite, synced before every answer; OUE on {sizes.cells} cells; the last {sizes.users:,} reports before the "
        f"number of ids. CPU of the server process, HTTP, dedup and commit included.",
        f"Memory grew by {grown:.0f} bytes a further report; the index of known ids takes 16.",
        f"Tiers signed and blind check one RSA signature of {BITS} bits a report, which comes on top.",
    )
    head = ("what", "known ids", "CPU", "per second, wall", "memory")
    return Section("The collection service as it fills up", head, tuple(rows), notes, tuple(targets), numbers)


def row(name: str, ids: int, found: Load) -> tuple[str, ...]:
    return (name, f"{ids:,}", f"{found.cpu_us:.1f} us", f"{found.per_second:,.0f}", f"{found.resident_mb:.0f} MB")


def fill(server: Running, known: int, size: int, last: int) -> Load:
    """Send until there are so many reports; what the last ones cost."""
    found = None
    while known < size:
        n = min(last, size - known)
        found = load(server, n, BATCH, 1 + known, CONNECTIONS)
        known += n
    assert found is not None
    return found


def signature_us() -> float:
    """CPU microseconds of one check of an issuer's signature."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    private = rsa.generate_private_key(65_537, BITS)
    pss = padding.PSS(mgf=padding.MGF1(hashes.SHA384()), salt_length=0)
    rng = np.random.default_rng(1)
    nonces = [rng.bytes(NONCE_LENGTH) for _ in range(SIGNATURES)]
    signatures = [private.sign(nonce, pss, hashes.SHA384()) for nonce in nonces]
    public = private.public_key().public_numbers()
    assert all(verify((public.n, public.e), nonces, signatures))
    return 1e6 * cpu_s(lambda: verify((public.n, public.e), nonces, signatures), 3) / SIGNATURES
