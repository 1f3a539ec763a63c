"""The index of a file store: it may point at the wrong chunk, never past the right one."""

import os
import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.service.store import SQLiteStore, known_ids, open_store
from tests.service.store.support import (
    CAMPAIGN,
    GROUPS,
    KNOWN,
    NEW,
    OTHER,
    WITHDRAWN,
    batch,
    close,
    frames,
    open_campaign,
    report,
    stored,
)


@given(
    st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=20, unique=True), max_size=20),
    st.integers(0, 30),
    st.integers(6, 40),
)
def test_levels_find_what_was_added(parts, recent, size):
    """Against a dictionary; ids that are not in have no candidates but by accident of 64 bits."""
    kept = known_ids._RECENT, known_ids._SIZES
    known_ids._RECENT, known_ids._SIZES = recent, (size,)
    try:
        index, model = known_ids._Campaign(), {}
        for chunk, names in enumerate(parts, start=1):
            ids = [report(name)[0] for name in names]
            index.add(b"".join(ids), chunk)
            for report_id in ids:
                model.setdefault(report_id, []).append(chunk)
        asked = [report(name)[0] for name in range(301)]
        found = index.candidates(asked)
    finally:
        known_ids._RECENT, known_ids._SIZES = kept
    by_id = {}
    for chunk, ids in found.items():
        for report_id in ids:
            by_id.setdefault(report_id, []).append(chunk)
    assert {i: sorted(chunks) for i, chunks in by_id.items()} == model


def test_ids_that_fall_together_are_told_apart(tmp_path, monkeypatch):
    """Were the key known to an attacker, it would be slow, not wrong: here every id has the same one."""
    monkeypatch.setattr(known_ids, "_SECRET", np.zeros(2, np.uint64))
    monkeypatch.setattr(known_ids, "_RECENT", 7)
    monkeypatch.setattr(known_ids, "_SIZES", (20,))
    store = open_store(str(tmp_path / "store.db"))
    open_campaign(store)
    for k in range(12):
        assert store.add_reports([batch(range(5 * k, 5 * k + 5))]) == [bytes([NEW] * 5)]
        assert store.add_reports([batch(range(5 * k + 2))]) == [bytes([KNOWN] * (5 * k + 2))]
    assert store.add_reports([batch(range(30), change=1)]) == [bytes([KNOWN] * 30)]
    assert stored(store) == frames(range(60))
    store.close()


def test_a_process_that_stores_behind_our_back_is_noticed(tmp_path):
    first, second = (SQLiteStore(tmp_path / "store.db") for _ in range(2))
    open_campaign(first)
    first.add_reports([batch("ab")])
    assert second.add_reports([batch("abc")]) == [bytes([KNOWN, KNOWN, NEW])]
    second.withdraw(CAMPAIGN, report("a")[0], 150)
    second.void_group(CAMPAIGN, 1, GROUPS[1], 150)
    assert first.add_reports([batch("abc", change=1)]) == [bytes([WITHDRAWN, KNOWN, KNOWN])]
    open_campaign(second, OTHER)
    second.add_reports([batch("xy", campaign=OTHER)])
    assert first.add_reports([batch("xz", campaign=OTHER)]) == [bytes([KNOWN, NEW])]
    close(second)
    assert first.add_reports([batch("c", wave=2)]) == [bytes([KNOWN])]
    for store in (first, second):
        store.close()


@pytest.mark.parametrize("when", ["before the chunk", "at the commit"])
def test_what_was_rolled_back_is_not_known(tmp_path, monkeypatch, when):
    store = SQLiteStore(tmp_path / "store.db")
    open_campaign(store)
    store.add_reports([batch("a")])
    pages = store._connected().execute("PRAGMA page_count").fetchone()[0]
    if when == "before the chunk":
        monkeypatch.setattr("ahead_ldp.service.store.uploads._store", fail)
        with pytest.raises(sqlite3.IntegrityError):
            store.add_reports([batch("bc")])
        monkeypatch.undo()
    else:
        store._connected().execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(Exception, match="FULL"):
            store.add_reports([batch(range(5000))])
    assert store.add_reports([batch("abc")]) == [bytes([KNOWN, NEW, NEW])]
    assert store.add_reports([batch(range(5000))]) == [bytes(5000)]
    store.close()


def fail(*_):
    raise sqlite3.IntegrityError("a mistake of ours")


def test_memory_of_the_index_is_sixteen_bytes_an_id():
    index = known_ids._Campaign()
    for chunk in range(1, 60):
        index.add(os.urandom(16 * 2000), chunk)
    assert len(index._recent) <= known_ids._RECENT  # a few that are kept as they are
    sorted_in = 59 * 2000 - len(index._recent)
    assert sum(keys.nbytes + chunks.nbytes for keys, chunks in index._levels) == 16 * sorted_in


def test_large_levels_are_files_and_find_the_same(tmp_path, monkeypatch):
    """Levels beyond a limit leave memory; a store that was loaded anew answers as the one that filled them."""
    monkeypatch.setattr(known_ids, "_RECENT", 20)
    monkeypatch.setattr(known_ids, "_SIZES", (64, 256))
    monkeypatch.setattr(known_ids, "_IN_MEMORY", 128)
    monkeypatch.setattr(known_ids, "_BLOCK", 50)
    store = open_store(str(tmp_path / "store.db"))
    open_campaign(store)
    for k in range(0, 1000, 25):
        assert store.add_reports([batch(range(k, k + 25))]) == [bytes([NEW] * 25)]
    assert store.add_reports([batch(range(3))]) == [bytes([KNOWN] * 3)]  # takes in what the last one committed
    (index,) = store._known._campaigns.values()
    sizes = [level[0].size for level in index._levels]
    assert sum(sizes) + len(index._recent) == 1000
    assert sizes[-1] > 256
    assert not index._levels[-1][0].flags.owndata  # a file
    assert all((np.diff(level[0].astype(object)) >= 0).all() for level in index._levels)
    again = open_store(str(tmp_path / "store.db"))
    for opened in (store, again):
        assert opened.add_reports([batch(range(1000))]) == [bytes([KNOWN] * 1000)]
        assert [p.name for p in tmp_path.iterdir() if not p.name.startswith("store.db")] == []
    store.close()
    again.close()
