"""A disk that is full, read-only or locked, a database that is gone: one clear error, and nothing is damaged."""

import shutil
import sqlite3
import subprocess
import sys
import traceback

import psycopg
import pytest

from ahead_ldp.service.store import Batch, SQLiteStore, StoreUnavailable, open_store, sqlite
from tests.service.store.postgres_server import NoPostgres, PostgresServer
from tests.service.store.support import CAMPAIGN, GROUPS, batch, frames, open_campaign, report, stored


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def file_store(path):
    opened = SQLiteStore(path)
    open_campaign(opened)
    yield opened
    opened.close()


def check_whole(path):
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_a_full_file_refuses_and_recovers(file_store, path):
    file_store.add_reports([batch(range(50))])
    pages = file_store._connected().execute("PRAGMA page_count").fetchone()[0]
    file_store._connected().execute(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(StoreUnavailable, match="SQLITE_FULL"):
        file_store.add_reports([batch(range(50, 2000))])
    assert stored(file_store) == frames(range(50))
    assert file_store.add_reports([batch(range(50, 2000))]) == [bytes(1950)]  # the limit went with its connection
    assert stored(file_store) == frames(range(2000))
    file_store.close()
    check_whole(path)


def test_a_full_disk_in_the_middle_of_a_withdrawal_changes_nothing(file_store):
    for name in range(300):  # a chunk each: their rows stay
        file_store.add_reports([batch([name])])
    pages = file_store._connected().execute("PRAGMA page_count").fetchone()[0]
    file_store._connected().execute(f"PRAGMA max_page_count = {pages}")
    withdrawn = []

    def withdraw_many():  # the list of withdrawn ids needs a page sooner or later
        for name in range(300):
            file_store.withdraw(CAMPAIGN, report(name)[0], 150)
            withdrawn.append(name)

    with pytest.raises(StoreUnavailable):
        withdraw_many()
    assert withdrawn
    assert stored(file_store) == frames(set(range(300)) - set(withdrawn))


def test_a_limit_on_file_size_refuses_and_leaves_a_whole_store(path):
    """As a full disk does it: a write in the middle of a commit fails."""
    script = f"""
import resource, signal
from ahead_ldp.service.store import StoreUnavailable, open_store
from tests.service.store.support import batch, open_campaign
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = open_store({str(path)!r})
open_campaign(store)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
for k in range(1000):
    try:
        store.add_reports([batch(range(100 * k, 100 * k + 100))])
    except StoreUnavailable as error:
        print(k, error)
        break
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert store.add_reports([batch(range(100 * k, 100 * k + 100))]) == [bytes(100)]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    k = int(done.stdout.split()[0])
    assert 0 < k < 999
    store = open_store(str(path))
    assert stored(store) == frames(range(100 * k + 100))
    store.close()
    check_whole(path)


def test_a_real_disk_that_fills_up_and_turns_read_only(tmp_path):
    unshare = ["unshare", "--mount", "--map-root-user"]
    mount = f"mount -t tmpfs -o size=1500k none {tmp_path}"
    if shutil.which("unshare") is None or subprocess.run([*unshare, "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("a file system cannot be mounted here")
    command = f"{mount} && exec {sys.executable} -m tests.service.store.full_disk {tmp_path}"
    done = subprocess.run([*unshare, "sh", "-c", command], capture_output=True, text=True)
    assert done.stdout == "whole\n", done.stderr


class ReadOnly(SQLiteStore):
    """A store on a disk that was remounted read-only."""

    def _connect(self):
        return sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)


def test_a_read_only_file_can_be_read(file_store, path):
    file_store.add_reports([batch("abc")])
    file_store.close()
    store = ReadOnly(path)
    store.ping()
    assert stored(store) == frames("abc")
    for call in (store.check_writable, lambda: store.add_reports([batch("d")])):
        with pytest.raises(StoreUnavailable, match="SQLITE_READONLY"):
            call()
    store.close()


def test_a_lock_held_too_long_is_unavailable(file_store, path, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_S", 0.05)
    file_store._drop_writer()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="SQLITE_BUSY"):
        file_store.add_reports([batch("a")])
    other.execute("COMMIT")
    other.close()
    assert file_store.add_reports([batch("a")]) == [bytes(1)]


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to look like one" * 100, None], ids=["text", "no"]
)
def test_what_cannot_be_opened_is_unavailable(tmp_path, content):
    path = tmp_path / ("store.db" if content else "no/folder/store.db")
    if content:
        path.write_bytes(content)
    with pytest.raises(StoreUnavailable):
        open_store(str(path))


def test_messages_hold_nothing_of_a_report(file_store):
    file_store._connected().execute("PRAGMA max_page_count = 1")
    with pytest.raises(StoreUnavailable) as error:
        file_store.add_reports([batch(range(2000))])
    for part in report(0):
        assert part.hex() not in str(error.value)
        assert repr(part) not in str(error.value)


def test_a_read_only_postgres_can_be_read(postgres):
    url = postgres.new_database()
    store = open_store(url)
    open_campaign(store)
    store.add_reports([batch("abc")])
    store.close()
    set_read_only(url, "on")
    store = open_store(url)
    store.ping()
    assert stored(store) == frames("abc")
    for call in (store.check_writable, lambda: store.add_reports([batch("d")])):
        with pytest.raises(StoreUnavailable, match="25006"):
            call()
    store.close()
    set_read_only(url, "off")
    store = open_store(url)
    assert store.add_reports([batch("d")]) == [bytes(1)]
    store.close()


def set_read_only(url, value):
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {value}")


@pytest.fixture
def small_disk():
    """A PostgreSQL that may write no file beyond 20 MB: its tables fill up, its log (segments of 16 MB) does not."""
    try:
        server = PostgresServer(file_limit=20 * 2**20)
    except NoPostgres as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


def test_a_full_disk_of_postgres_refuses_and_recovers(small_disk):
    store = open_store(small_disk.new_database())
    open_campaign(store)
    names = []

    def upload_much():
        for k in range(40):
            ids, _ = zip(*(report(f"{k} {i}") for i in range(10)), strict=True)
            payloads = k.to_bytes(2, "big") * 500_000
            store.add_reports([Batch(CAMPAIGN, 1, GROUPS[0], b"".join(ids), payloads)])
            names.extend(f"{k} {i}" for i in range(10))

    with pytest.raises(StoreUnavailable, match="PostgreSQL"):
        upload_much()
    assert 0 < len(names) < 400
    assert store.counts(CAMPAIGN, 1)[GROUPS[0]] == len(names)
    # What needs no more room there still goes in.
    assert store.add_reports([batch(["after"], GROUPS[1])]) == [bytes(1)]
    found = b"".join(chunk.ids for chunk in store.reports(CAMPAIGN, 1, GROUPS[0]))
    assert found == b"".join(report(name)[0] for name in names)
    store.close()


@pytest.mark.parametrize(
    ("where", "said"),
    [("s%zzcret@127.0.0.1", "expected a URL like postgresql:"), ("secret@127.0.0.1:1", "connection to server at")],
)
def test_why_a_database_cannot_be_opened_is_said_and_its_password_is_not(where, said):
    with pytest.raises(StoreUnavailable, match=said) as refused:
        open_store(f"postgresql://ahead:{where}/ahead")
    assert "cret" not in "".join(traceback.format_exception(refused.value))
