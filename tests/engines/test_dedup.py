"""Copies and conflicts, exactly, within little memory."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.engines import dedup
from ahead_ldp.engines.dedup import Fingerprints, LeftOut, Spill
from ahead_ldp.engines.local import count_files
from ahead_ldp.engines.manifests import find_files
from tests.engines.examples import as_reports, asked_of, by_digest, naive_tally, some_reports, write
from tests.support import examples

ASKED = asked_of("grr", 5)


def count(root, *asked):
    return count_files(find_files([root]), by_digest(*asked))


def test_equal_copies_count_once_and_conflicting_ones_not_at_all(tmp_path):
    ids, payloads = some_reports(ASKED, 50)
    payloads[:] = 1
    write(tmp_path, ASKED, ids, payloads)
    write(tmp_path, ASKED, ids[:10], payloads[:10], name="again")
    write(tmp_path, ASKED, ids[5:7], payloads[5:7] + 1, name="other")
    found = count(tmp_path, ASKED)
    assert (found.duplicates, found.conflicts) == (8, 6)
    assert found.tallies[ASKED.question].counts.tolist() == [0, 48, 0, 0, 0]


def test_one_id_under_two_questions_is_a_conflict(tmp_path):
    other = asked_of("grr", 5, wave=2)
    ids, payloads = some_reports(ASKED, 20)
    write(tmp_path, ASKED, ids, payloads)
    write(tmp_path, other, ids[:3], payloads[:3], name="other")
    found = count(tmp_path, ASKED, other)
    assert (found.duplicates, found.conflicts, found.reports) == (0, 6, 17)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 3)), max_size=40), st.integers(1, 7))
@examples(60)
def test_any_mixture_is_counted_as_by_hand(tmp_path_factory, rows, at_once):
    """Few ids, payloads and files, and buckets that are read in small parts."""
    root = tmp_path_factory.mktemp("reports")
    ids = np.array([[i] * 16 for i, _, _ in rows], np.uint8).reshape(-1, 16)
    payloads = np.array([[p] for _, p, _ in rows], np.uint8).reshape(-1, 1)
    files = np.array([f for _, _, f in rows], np.int64)
    for file in range(4):
        write(root, ASKED, ids[files == file], payloads[files == file], name=f"f{file}")
    before = dedup._AT_ONCE
    dedup._AT_ONCE = at_once
    try:
        found = count(root, ASKED)
    finally:
        dedup._AT_ONCE = before
    assert found.tallies[ASKED.question] == naive_tally(ASKED, as_reports(ids, payloads))
    assert found.reports + found.duplicates + found.conflicts == len(rows)


@pytest.mark.parametrize("same", [True, False])
def test_a_bucket_of_one_id_alone_is_read_in_parts(tmp_path, monkeypatch, same):
    monkeypatch.setattr(dedup, "_AT_ONCE", 100)
    spill = Spill(tmp_path, 1000)
    ids, payloads = np.zeros((1000, 16), np.uint8), np.zeros((1000, 3), np.uint8)
    payloads[-1, 0] = not same
    spill.add(2, 0, ids, payloads, "a" * 64)
    ((places, copies, conflicts),) = spill.resolve()
    assert (copies, conflicts) == ((999, 0) if same else (0, 1000))
    assert np.unique(places).size == (999 if same else 1000)
    assert not list(tmp_path.iterdir())


def test_ids_are_spread_over_buckets_whatever_they_are(tmp_path):
    """Ids in a row differ in their last byte alone; whoever chooses ids cannot fill one bucket."""
    spill = Spill(tmp_path, 4 * dedup._PER_BUCKET)
    assert spill.buckets == 4
    ids = np.zeros((4096, 16), np.uint8)
    ids[:, 14:] = np.arange(4096, dtype=">u2").view(np.uint8).reshape(-1, 2)
    spill.add(0, 0, ids, ids, "a" * 64)
    sizes = [path.stat().st_size // 40 for path in Path(tmp_path).iterdir()]
    assert sum(sizes) == 4096
    assert max(sizes) < 1024 + 5 * np.sqrt(4096 * 3 / 16)


def test_fingerprints_differ_in_every_bit_and_length():
    prints = Fingerprints()
    rows = np.zeros((100, 12), np.uint8)
    rows[np.arange(96), np.arange(96) // 8] = 1 << np.arange(96) % 8
    found = {tuple(x) for x in prints.of(rows).tolist()}
    assert len(found) == 97  # one bit each, and four times none
    assert {tuple(x) for x in prints.of(rows[:, :11]).tolist()}.isdisjoint(found)
    assert (prints.of(rows) == prints.of(rows)).all()
    assert (Fingerprints().of(rows) != prints.of(rows)).any()


def test_rows_left_out_by_place():
    left_out = LeftOut()
    left_out.mark(np.array([(3 << 32) + 9, (3 << 32) + 2, 5 << 32], np.uint64))
    left_out.mark(np.array([(3 << 32) + 20], np.uint64))
    assert left_out.files == [3, 5]
    assert left_out.keep(0, 0, 5) is None
    assert np.flatnonzero(~left_out.keep(3, 1, 20)).tolist() == [1, 8, 19]
    assert left_out.keep(3, 100, 3).tolist() == [True] * 3
    assert left_out.marked(4, np.arange(3)).tolist() == [False] * 3
