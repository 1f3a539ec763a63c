"""Tables of other versions are refused, or brought up with everything in them."""

import contextlib
import hashlib
import sqlite3
from pathlib import Path

import psycopg
import pytest

from ahead_ldp.service.store import SCHEMA_VERSION, SchemaMismatch, StoreUnavailable, open_store, reports_digest
from ahead_ldp.service.store.migrations import steps
from tests.service.store.support import (
    CAMPAIGN,
    GROUPS,
    KNOWN,
    NEW,
    WITHDRAWN,
    batch,
    close,
    frames,
    new_wave,
    open_campaign,
    report,
    stored,
)

SQLITE_ONLY, POSTGRES_ONLY = {"withdrawn"}, {"seen"}


@contextlib.contextmanager
def connected(url):
    """A plain connection to a store's database."""
    if url.startswith("postgresql"):
        connection = psycopg.connect(url)
    else:
        connection = sqlite3.connect(url.removeprefix("sqlite:"))
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


def dialect(url):
    return "postgres" if url.startswith("postgresql") else "sqlite"


def make_version_1(url):
    """A populated store as version 1 made it."""
    with connected(url) as connection:
        make_tables(url, connection, 1)
        insert(url, connection, "campaigns", digest="old", record=b"", state="draft", created_at=7)


def make_tables(url, connection, version):
    run = connection.execute if dialect(url) == "postgres" else connection.executescript
    for number in range(1, version + 1):
        run(steps(dialect(url))[number])
    connection.execute(f"UPDATE meta SET value = {version} WHERE name = 'version'")


def insert(url, connection, table, **values):
    mark = "%s" if dialect(url) == "postgres" else "?"
    sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join([mark] * len(values))})"
    connection.execute(sql, list(values.values()))


def frame_hash(name):
    """What version 2 kept of a report for ever."""
    return hashlib.sha256(b"".join(report(name))).digest()


def make_version_2(url):
    """A campaign as version 2 kept it: wave 1 counted, one group of it void, wave 2 open; d was withdrawn."""
    digest = hashlib.sha256(b"over ids and hashes").hexdigest()
    with connected(url) as connection:
        make_tables(url, connection, 2)
        insert(url, connection, "campaigns", key=1, digest=CAMPAIGN, record=b"", state="open", created_at=7)
        for number, state in ((1, "closed"), (2, "open")):
            insert(url, connection, "waves", key=number, campaign=1, number=number, state=state, note="", opened_at=8,
                   extensions=0)  # fmt: skip
        states = {1: "counted", 2: "void", 3: "open", 4: "open"}
        for key, state in states.items():
            question = new_wave((key + 1) // 2).questions[(key + 1) % 2]
            counted = {} if key > 2 else {"n": 2 * (key == 1), "tally": b"tally", "reports_digest": digest}
            insert(url, connection, "questions", key=key, wave=(key + 1) // 2, name=question.group,
                   digest=question.digest, record=question.record, state=state, **counted)  # fmt: skip
        for seq, (question, names) in enumerate(((1, "a"), (1, "b"), (2, "v"), (3, "xy")), start=1):
            ids, payloads = (b"".join(part) for part in zip(*map(report, names), strict=True))
            hashes, n = b"".join(map(frame_hash, names)), len(names) * (question != 2)
            insert(url, connection, "chunks", seq=seq, question=question, n=n, ids=ids, hashes=hashes,
                   payloads=payloads if n else b"")  # fmt: skip
            for name in names if dialect(url) == "postgres" else ():
                insert(url, connection, "seen", campaign=1, id=report(name)[0], hash=frame_hash(name), chunk=seq)
        if dialect(url) == "postgres":
            insert(url, connection, "seen", campaign=1, id=report("d")[0], hash=frame_hash("d"), chunk=0)
            connection.execute("SELECT setval(pg_get_serial_sequence('chunks', 'seq'), 4)")
        else:
            insert(url, connection, "withdrawn", campaign=1, id=report("d")[0])


def test_version_3_keeps_every_report_and_forgets_every_hash(url):
    make_version_2(url)
    store = open_store(url, migrate=True)
    assert stored(store) == frames("ab")
    assert stored(store, wave=2) == frames("xy")
    ids = [report(name)[0] for name in "ab"]
    found = {(q.wave, q.group): q.reports_digest for q in store.questions(CAMPAIGN)}
    assert found == {(1, GROUPS[0]): reports_digest(ids), (1, GROUPS[1]): reports_digest([]),
                     (2, GROUPS[0]): None, (2, GROUPS[1]): None}  # fmt: skip
    outcomes = store.add_reports([batch("abvdxyn", wave=2, change=1)])
    assert outcomes == [bytes([KNOWN, KNOWN, KNOWN, WITHDRAWN, KNOWN, KNOWN, NEW])]
    assert store.missing_keys() == []
    assert close(store, wave=2, last=True)
    store.close()


def test_version_3_leaves_no_payload_and_no_hash_in_the_file(tmp_path):
    url = f"sqlite:{tmp_path / 'store.db'}"
    make_version_2(url)
    kept = [part for name in "abvxy" for part in (report(name)[1], frame_hash(name)) if name != "v"]
    assert all(needle in (tmp_path / "store.db").read_bytes() for needle in kept)
    open_store(url, migrate=True).close()
    for path in tmp_path.iterdir():
        assert not any(needle in path.read_bytes() for needle in [*kept, frame_hash("v")]), path.name


def test_version_3_leaves_no_payload_and_no_hash_in_the_tables(postgres):
    """The old tables are dropped, not updated: their files are removed."""
    url = postgres.new_database()
    make_version_2(url)
    with connected(url) as connection:
        sql = "SELECT pg_relation_filepath(oid) FROM pg_class WHERE relname IN ('chunks', 'seen')"
        old = [Path(postgres.data, path) for (path,) in connection.execute(sql)]
    assert all(path.exists() for path in old)
    open_store(url, migrate=True).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")  # removes the files of dropped tables
        sql = "SELECT 1 FROM information_schema.columns WHERE table_schema = 'public' AND column_name LIKE 'hash%'"
        assert connection.execute(sql).fetchall() == []
    assert not any(path.exists() and path.stat().st_size for path in old)


def test_a_migration_without_a_place_for_keys_changes_nothing(url, tmp_path):
    make_version_2(url)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreUnavailable, match="key directory"):
        open_store(url, migrate=True, keys=tmp_path / "file" / "keys")
    with pytest.raises(SchemaMismatch, match=f"version 2, this program {SCHEMA_VERSION}"):
        open_store(url)
    open_store(url, migrate=True).close()


def test_an_older_store_is_refused_until_it_is_migrated(url):
    make_version_1(url)
    with pytest.raises(SchemaMismatch, match=f"version 1, this program {SCHEMA_VERSION}"):
        open_store(url)
    store = open_store(url, migrate=True)
    assert [(c.digest, c.created_at) for c in store.campaigns()] == [("old", 7)]
    store.put_document(CAMPAIGN, 1, "screens", b"new in version 2")
    open_campaign(store)
    store.add_reports([batch("abc")])
    store.close()
    again = open_store(url)
    assert stored(again) == frames("abc")
    assert again.add_reports([batch("a")]) == [bytes([KNOWN])]
    again.close()


def test_a_newer_store_is_refused(url):
    open_store(url).close()
    with connected(url) as connection:
        connection.execute(f"UPDATE meta SET value = {SCHEMA_VERSION + 1} WHERE name = 'version'")
    for migrate in (False, True):
        with pytest.raises(SchemaMismatch, match="newer"):
            open_store(url, migrate=migrate)


def test_a_database_of_something_else_is_refused(url):
    with connected(url) as connection:
        connection.execute("CREATE TABLE something (x INTEGER)")
    with pytest.raises(SchemaMismatch, match="something else"):
        open_store(url, migrate=True)


def test_a_step_that_fails_leaves_the_old_version(url, monkeypatch):
    make_version_1(url)
    broken = steps(dialect(url)) | {2: "CREATE TABLE half (x INTEGER);\nCREATE TABLE half (x INTEGER)"}
    monkeypatch.setattr("ahead_ldp.service.store.migrations.steps", lambda _: broken)
    with pytest.raises((sqlite3.OperationalError, psycopg.Error)):
        open_store(url, migrate=True)
    monkeypatch.undo()
    open_store(url, migrate=True).close()


def test_both_stores_have_the_same_tables(tmp_path, postgres):
    urls = (f"sqlite:{tmp_path / 'store.db'}", postgres.new_database())
    for url in urls:
        open_store(url).close()
    with connected(urls[0]) as connection:
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        names = {name for (name,) in connection.execute(sql)}
        sqlite_tables = {n: [row[1] for row in connection.execute(f"PRAGMA table_info({n})")] for n in names}
    with connected(urls[1]) as connection:
        sql = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        postgres_tables = {}
        for table, column in connection.execute(f"{sql} ORDER BY ordinal_position"):
            postgres_tables.setdefault(table, []).append(column)
    assert set(sqlite_tables) - set(postgres_tables) == SQLITE_ONLY
    assert set(postgres_tables) - set(sqlite_tables) == POSTGRES_ONLY
    for table in set(sqlite_tables) & set(postgres_tables):
        assert sqlite_tables[table] == postgres_tables[table]
