"""The sync completes before the acknowledgement.

Shown three ways: what the disk of a SQLite store is certain to hold at every acknowledgement, rebuilt from SQLite's own
writes and syncs and opened; the order of system calls of a whole process, where strace is at hand; and
PostgreSQL's own position of the flushed log. Stores that sync late, never, or acknowledge early fail each of them.
"""

import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import psycopg
import pytest

from ahead_ldp.service.store import PostgresStore, SQLiteStore, StoreError, open_store, sqlite
from tests.service.store.mutants import CheckpointSyncedSQLite, EarlyStore, UnsyncedPostgres, UnsyncedSQLite
from tests.service.store.recording import NoVfs, RecordingVfs, on_recorded_disk
from tests.service.store.support import CAMPAIGN, batch, close, frames, open_campaign, report, stored
from tests.service.store.worker import names

UPLOADS = 60


@pytest.fixture
def vfs():
    try:
        made = RecordingVfs()
    except NoVfs as reason:
        pytest.skip(str(reason))
    yield made
    made.remove()


def lost_at_power_loss(vfs, kind, folder, monkeypatch, behind=0):
    """Acknowledged reports that are not on the disk, at the worst of many moments at which the power may go.

    A file that cannot be opened any more has lost everything. Checkpoints are made frequent; withdrawals and a close
    are among the uploads.
    """
    monkeypatch.setattr(sqlite, "CHECKPOINT_BYTES", 10 * sqlite.PAGE_BYTES)
    rng = random.Random(7)
    whole = on_recorded_disk(kind)(folder / "store.db")
    open_campaign(whole)
    store = EarlyStore(whole, behind) if behind else whole
    acknowledged, worst = set(), 0
    for k in range(UPLOADS):
        store.add_reports([batch(names("upload", k))])
        acknowledged |= set(names("upload", k))
        if k % 7 == 3:
            assert whole.withdraw(CAMPAIGN, report(f"upload {k - 2} 0")[0], 150) in ("removed", "buried")
            acknowledged.discard(f"upload {k - 2} 0")
        for share in (0.0, 0.5):
            image = vfs.disk.after_power_loss(rng, share)
            worst = max(worst, missing(image, folder / f"after {k} {share}", frames(acknowledged)))
    if not behind:
        close(whole, last=True)
        image = vfs.disk.after_power_loss(rng, 0.0)
        worst = max(worst, missing(image, folder / "after the close", frames(acknowledged), "closed"))
    whole.close()
    return worst


def missing(image, folder, wanted, state="open"):
    folder.mkdir()
    for name, content in image.items():
        (folder / name).write_bytes(content)
    try:
        with closing(SQLiteStore(folder / "store.db")) as store:
            found = stored(store)
            moved = [wave.state for wave in store.waves(CAMPAIGN)] != [state]
    except (StoreError, sqlite3.Error):  # nothing can be read
        return len(wanted)
    finally:
        shutil.rmtree(folder)
    return len(wanted ^ found) + moved  # what was withdrawn must not come back either


def test_what_sqlite_acknowledges_survives_a_power_loss(vfs, tmp_path, monkeypatch):
    assert lost_at_power_loss(vfs, SQLiteStore, tmp_path, monkeypatch) == 0
    assert vfs.disk.syncs > UPLOADS


@pytest.mark.parametrize("mutant", [UnsyncedSQLite, CheckpointSyncedSQLite], ids=lambda kind: kind.__name__)
def test_a_store_that_does_not_sync_every_commit_is_found(vfs, tmp_path, monkeypatch, mutant):
    assert lost_at_power_loss(vfs, mutant, tmp_path, monkeypatch) > 0


def test_a_store_that_acknowledges_before_the_commit_is_found(vfs, tmp_path, monkeypatch):
    assert lost_at_power_loss(vfs, SQLiteStore, tmp_path, monkeypatch, behind=1) > 0


# The system calls of a process: each acknowledgement has a new write to the log before it, and a sync in between.


def unsynced_acknowledgements(folder, mutant):
    """How many of the acknowledgements of a worker came before the sync of what they acknowledge."""
    url, log = f"sqlite:{folder / 'store.db'}", folder / "calls"
    store = open_store(url)
    open_campaign(store)
    store.close()
    traced = "trace=write,pwrite64,fsync,fdatasync"
    command = ["strace", "-f", "-y", "-s", "1", "-e", traced, "-o", str(log)]
    worker = [sys.executable, "-m", "tests.service.store.worker", url, mutant, "traced"]
    with subprocess.Popen([*command, *worker], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        lines = [process.stdout.readline() for _ in range(10)]
        process.send_signal(signal.SIGTERM)
    if not all(lines):
        pytest.skip("processes cannot be traced here")
    return late(log.read_text())


def late(calls):
    """Acknowledgements (writes to descriptor 1) that follow no log write, or a log write that no sync follows."""
    found, dirty, written = 0, False, False
    for line in calls.splitlines():
        if re.search(r"pwrite64\(\d+<[^>]*-wal>", line):
            dirty = written = True
        elif re.search(r"f(data)?sync\(\d+<[^>]*-wal>\)\s+= 0", line):
            dirty = False
        elif re.search(r"\bwrite\(1<", line):
            found += dirty or not written
            written = False
    return found


needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


@needs_strace
def test_the_sync_of_sqlite_returns_before_the_acknowledgement(tmp_path):
    assert unsynced_acknowledgements(tmp_path, "whole") == 0


@needs_strace
@pytest.mark.parametrize("mutant", ["early", "unsynced"])
def test_system_calls_show_mutants(tmp_path, mutant):
    assert unsynced_acknowledgements(tmp_path, mutant) > 0


# PostgreSQL: the log is flushed up to the commit when the call returns.


def unflushed_uploads(postgres, kind):
    """How many uploads returned before PostgreSQL had flushed its log as far as it had written then."""
    url = postgres.new_database()
    store = kind(url)
    open_campaign(store)
    found = 0
    with psycopg.connect(url, autocommit=True) as watcher:
        for k in range(30):
            store.add_reports([batch(names("upload", k))])
            # The end of the log is this commit, but for what PostgreSQL itself notes now and then.
            found += watcher.execute("SELECT pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn()").fetchone()[0]
    store.close()
    return found


def test_postgres_has_flushed_what_it_acknowledges(quiet):
    assert unflushed_uploads(quiet, PostgresStore) <= 5  # of 30


def test_a_postgres_store_that_does_not_wait_is_found(quiet):
    assert unflushed_uploads(quiet, UnsyncedPostgres) >= 25  # of 30


@pytest.fixture
def quiet(postgres):
    """A PostgreSQL whose background writer sleeps, so that only commits flush the log."""
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        connection.execute("SELECT pg_reload_conf()")
    yield postgres
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM RESET wal_writer_delay")
        connection.execute("SELECT pg_reload_conf()")
