"""Of the reports of one id the first counts, exactly, within little memory."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.engines import dedup
from ahead_ldp.engines.dedup import Hashes, LeftOut, Spill
from ahead_ldp.engines.local import LOCAL, count_files
from ahead_ldp.engines.manifests import find_files
from tests.engines.examples import as_reports, asked_of, by_digest, naive_tally, some_reports, write
from tests.support import examples

ASKED = asked_of("grr", 5)


def count(root, *asked):
    return count_files(find_files([root]), by_digest(*asked))


def test_the_first_of_an_id_counts_whatever_the_others_say(tmp_path):
    ids, payloads = some_reports(ASKED, 50)
    payloads[:] = 1
    write(tmp_path, ASKED, ids, payloads, name="b")
    write(tmp_path, ASKED, ids[:10], payloads[:10], name="c")
    write(tmp_path, ASKED, ids[5:7], payloads[5:7] + 1, name="d")  # by name and place later than the first
    write(tmp_path, ASKED, ids[20:23], payloads[20:23] + 2, name="a")  # earlier
    found = count(tmp_path, ASKED)
    assert (found.duplicates, found.reports) == (15, 50)
    assert found.tallies[ASKED.question].counts.tolist() == [0, 47, 0, 3, 0]


def test_the_order_is_that_of_names_whatever_order_files_are_given_in(tmp_path):
    ids, payloads = some_reports(ASKED, 4)
    for name, value in (("a", 1), ("b", 2), ("c", 3)):
        payloads[:] = value
        write(tmp_path, ASKED, ids, payloads, name=name)
    files = find_files([tmp_path])
    for order in permutations(files):
        assert LOCAL.count(order, by_digest(ASKED)).tallies[ASKED.question].counts.tolist() == [0, 4, 0, 0, 0]


def test_one_id_under_two_questions_counts_for_the_first(tmp_path):
    other = asked_of("grr", 5, wave=2)
    ids, payloads = some_reports(ASKED, 20)
    write(tmp_path, ASKED, ids, payloads)
    write(tmp_path, other, ids[:3], payloads[:3], name="other")
    found = count(tmp_path, ASKED, other)
    assert (found.duplicates, found.reports) == (3, 20)
    assert found.tallies[other.question].n == 0


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup, "_AT_ONCE", at_once)
        patch.setattr(dedup, "IN_MEMORY", 3 * at_once)
        found = count(root, ASKED)
    order = np.argsort(files, kind="stable")
    assert found.tallies[ASKED.question] == naive_tally(ASKED, as_reports(ids[order], payloads[order]))
    assert found.reports + found.duplicates == len(rows)


def test_a_bucket_of_one_id_alone_is_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(dedup, "_AT_ONCE", 100)
    spill = Spill(tmp_path, 1000)
    spill.add(2, np.arange(500, 1000), np.zeros((500, 16), np.uint8))
    spill.add(2, np.arange(500), np.zeros((500, 16), np.uint8))  # another thread was faster
    (places,) = spill.resolve()
    assert sorted(places.tolist()) == [(2 << 32) + row for row in range(1, 1000)]
    assert not list(tmp_path.iterdir())


def test_ids_are_spread_over_buckets_whatever_they_are(tmp_path):
    """Ids in a row differ in their last byte alone; whoever chooses ids cannot fill one bucket."""
    spill = Spill(tmp_path, 4 * dedup._PER_BUCKET)
    assert spill.buckets == 4
    ids = np.zeros((4096, 16), np.uint8)
    ids[:, 14:] = np.arange(4096, dtype=">u2").view(np.uint8).reshape(-1, 2)
    spill.add(0, np.arange(4096), ids)
    sizes = [path.stat().st_size // 24 for path in Path(tmp_path).iterdir()]
    assert sum(sizes) == 4096
    assert max(sizes) < 1024 + 5 * np.sqrt(4096 * 3 / 16)


@pytest.mark.parametrize("rows", [1000, 5 * dedup.IN_MEMORY])
def test_hashes_that_come_again(tmp_path, rows):
    """In memory and in files: each is named once, in order, and nothing stays behind."""
    hashes, ids = Hashes(tmp_path, rows), np.random.default_rng(3).integers(0, 256, (1000, 16)).astype(np.uint8)
    for part in (ids[:600], ids[600:], ids[[5, 5, 700]], ids[:0]):
        hashes.add(part)
    assert hashes.again().tolist() == sorted(hashes.of(ids[[5, 700]]).tolist())
    assert not list(tmp_path.iterdir())


def test_ids_that_share_a_hash_are_told_apart(tmp_path, monkeypatch):
    """A hash says only whom to look at again."""
    monkeypatch.setattr(Hashes, "of", lambda self, ids: np.zeros(len(ids), np.uint64))
    ids, payloads = some_reports(ASKED, 30)
    write(tmp_path, ASKED, np.concatenate([ids, ids[:2]]), np.concatenate([payloads, payloads[:2]]))
    found = count(tmp_path, ASKED)
    assert (found.duplicates, found.tallies[ASKED.question]) == (2, ASKED.oracle.tally(payloads))


def test_a_file_that_changes_between_two_readings_is_named(tmp_path, monkeypatch):
    ids, payloads = some_reports(ASKED, 30)
    (path,) = write(tmp_path, ASKED, np.concatenate([ids, ids]), np.concatenate([payloads, payloads]))

    def change(hashes):
        table = pq.read_table(path)
        pq.write_table(table.slice(0, 31), path)
        return hashes.of(ids)

    monkeypatch.setattr(Hashes, "again", change)
    with pytest.raises(ValueError, match=r"changed while it was read \(31 rows\); count again"):
        count(tmp_path, ASKED)


def test_rows_left_out_by_place():
    left_out = LeftOut()
    left_out.mark(np.array([(3 << 32) + 9, (3 << 32) + 2, 5 << 32], np.uint64))
    left_out.mark(np.array([(3 << 32) + 20], np.uint64))
    assert left_out.files == [3, 5]
    assert np.flatnonzero(left_out.marked(3, np.arange(1, 21))).tolist() == [1, 8, 19]
    assert left_out.marked(3, np.arange(100, 103)).tolist() == [False] * 3
    assert left_out.marked(4, np.arange(3)).tolist() == [False] * 3
