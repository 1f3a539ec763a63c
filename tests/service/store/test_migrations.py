"""Tables of other versions are refused, or brought up with everything in them."""

import contextlib
import sqlite3

import psycopg
import pytest

from ahead_ldp.service.store import SCHEMA_VERSION, SchemaMismatch, open_store
from ahead_ldp.service.store.migrations import steps
from tests.service.store.support import CAMPAIGN, KNOWN, batch, frames, open_campaign, stored

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
        run = connection.execute if dialect(url) == "postgres" else connection.executescript
        run(steps(dialect(url))[1])
        connection.execute("UPDATE meta SET value = 1 WHERE name = 'version'")
        empty = "CAST('' AS BYTEA)" if dialect(url) == "postgres" else "X''"
        columns = "(digest, record, state, created_at)"
        connection.execute(f"INSERT INTO campaigns {columns} VALUES ('old', {empty}, 'draft', 7)")


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
    broken = steps(dialect(url)) | {2: "CREATE TABLE half (x INTEGER); CREATE TABLE half (x INTEGER)"}
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
