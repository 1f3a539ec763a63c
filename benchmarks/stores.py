"""The embedded store alone: CPU per report of durable uploads, as the number of known ids grows."""

from __future__ import annotations

import os
import resource
import tempfile
import time
from pathlib import Path

from ahead_ldp.service.store import Batch, CampaignState, NewQuestion, NewWave, Outcome, SQLiteStore, reports_digest
from benchmarks.measuring import Section, Sizes, at_least, at_most
from benchmarks.rendering import seconds

CAMPAIGN, GROUP = "c" * 64, "group"
BATCH, COMMIT = 100, 2000  # reports of an upload, and of the uploads that share a commit
PAYLOAD = 128  # bytes: 1,024 cells of a unary encoding
SINGLES = 200


def run(sizes: Sizes) -> Section:
    """New reports, the same again, and one by one, at two numbers of known ids."""
    rows, numbers, targets = [], {}, []
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder) / "store.db", keys=Path(folder) / "keys")
        store.create_campaign(CAMPAIGN, b"{}", 0)
        store.open_wave(CAMPAIGN, NewWave(1, (NewQuestion(GROUP, "d" * 64, b"{}"),)), 0, CampaignState.DRAFT)
        start_mb, known = resident_mb(), 0
        for size, bound in ((sizes.users, 8.0), (sizes.people, 10.0)):
            found = fill(store, known, size, last=sizes.users)
            known = size
            found["grown_mb"] = resident_mb() - start_mb
            shown = (seconds(found[name]) for name in ("new_s", "again_s", "single_s"))
            rows.append((f"{size:,}", *shown, f"{found['per_s']:,.0f}", f"{found['grown_mb']:.0f} MB"))
            numbers[str(size)] = found
            targets.append(at_most(f"CPU of a new report at {size:,} ids", found["new_s"], bound * 1e-6, "s"))
        targets.append(at_least(f"durable reports a second at {size:,} ids", found["per_s"], 20_000))
        numbers["digest_s"] = digest_s(store)
        store.close()
    head = ("known ids", "new", "the same again", "commits of one", "new, a second", "memory grown")
    notes = (
        f"CPU time per report, user and system: SQLite, {PAYLOAD} bytes of payload, uploads of {BATCH}, {COMMIT:,}"
        f" reports a commit; the mean of the last {sizes.users:,} before the number of ids, checkpoints included.",
        f"The digest that binds a group to its {sizes.people:,} ids takes {seconds(numbers['digest_s'])} of CPU.",
        "Reports a second are by the wall clock and depend on how fast the disk syncs and on what else runs.",
    )
    return Section("The store", head, tuple(rows), notes, tuple(targets), numbers)


def fill(store: SQLiteStore, known: int, size: int, last: int) -> dict[str, float]:
    """Add reports until there are ``size``: seconds per report of the last ones, of the same again, of single ones."""
    used = wall = n = 0.0
    batches: list[Batch] = []
    while known < size:
        batches = uploads(max(1, min(COMMIT, size - known) // BATCH))
        start = time.perf_counter()
        spent_s = spent(store, batches, Outcome.NEW)
        known += sum(batch.n for batch in batches)
        if known > size - last:
            used, wall, n = used + spent_s, wall + time.perf_counter() - start, n + sum(batch.n for batch in batches)
    again = spent(store, batches, Outcome.KNOWN) / sum(batch.n for batch in batches)
    single = sum(spent(store, [upload(1)], Outcome.NEW) for _ in range(SINGLES)) / SINGLES
    return {"new_s": used / n, "again_s": again, "single_s": single, "per_s": n / wall}


def spent(store: SQLiteStore, batches: list[Batch], outcome: Outcome) -> float:
    """CPU seconds of one commit, which must end as expected."""
    start = cpu()
    found = store.add_reports(batches)
    used = cpu() - start
    assert all(set(outcomes) == {outcome} for outcomes in found)
    return used


def uploads(k: int) -> list[Batch]:
    return [upload(BATCH) for _ in range(k)]


def upload(n: int) -> Batch:
    return Batch(CAMPAIGN, 1, GROUP, os.urandom(16 * n), os.urandom(PAYLOAD * n))


def digest_s(store: SQLiteStore) -> float:
    """CPU seconds of the digest that binds a frozen group."""
    start = cpu()
    reports_digest(chunk.ids for chunk in store.reports(CAMPAIGN, 1, GROUP))
    return cpu() - start


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident_mb() -> float:
    """Memory of this process now, where the system tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
