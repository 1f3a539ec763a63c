"""The local engine: exact, whatever the files, the threads and the damage."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from ahead_ldp.engines.local import count_files
from ahead_ldp.engines.manifests import find_files
from ahead_ldp.oracles import Tally
from tests.engines.examples import SIZES, as_reports, asked_of, by_digest, naive_tally, some_reports, write

ASKED = asked_of()
IDS, PAYLOADS = some_reports(ASKED, 900)


def count(root, **options):
    return count_files(find_files([root]), by_digest(ASKED), **options)


@pytest.mark.parametrize("dedup", [False, True])
@pytest.mark.parametrize("name", SIZES)
def test_tallies_are_those_of_counting_by_hand(tmp_path, name, dedup):
    asked = asked_of(name, SIZES[name])
    ids, payloads = some_reports(asked, 400)
    write(tmp_path, asked, ids, payloads, rows_per_file=150)
    found = count_files(find_files([tmp_path]), by_digest(asked), dedup=dedup, threads=3)
    assert found.tallies == {asked.question: naive_tally(asked, as_reports(ids, payloads))}
    assert found.reports == 400


def test_a_question_without_reports_is_empty(tmp_path):
    write(tmp_path, ASKED, IDS, PAYLOADS)
    other = asked_of("grr", 5, group="2")
    found = count_files(find_files([tmp_path]), by_digest(ASKED, other)).tallies
    assert found[other.question] == Tally.empty(5)


def test_a_file_without_rows(tmp_path):
    write(tmp_path, ASKED, IDS[:0], PAYLOADS[:0])
    write(tmp_path, ASKED, IDS, PAYLOADS, name="more")
    assert count(tmp_path).tallies[ASKED.question] == ASKED.oracle.tally(PAYLOADS)


def truncate(path, listed):
    path.write_bytes(path.read_bytes()[:-100])


def flip_payload(path, listed):
    data = bytearray(path.read_bytes())
    at = bytes(data).index(PAYLOADS[500].tobytes() + PAYLOADS[501].tobytes() + PAYLOADS[502].tobytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def lose_rows(path, listed):
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 100), path)


def remove(path, listed):
    path.unlink()


def unlisted(path, listed):
    path.rename(path.with_name("part-x.parquet"))


DAMAGE = {
    "truncated": (truncate, "not a readable Parquet file"),
    "flipped": (flip_payload, "a page cannot be read"),
    "too few rows": (lose_rows, "it has 100 rows, its manifest says 300"),
    "gone": (remove, "in the manifest, but not there"),
    "unlisted": (unlisted, "not in the manifest"),
}


@pytest.mark.parametrize(("damage", "says"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_named_or_set_aside_whole(tmp_path, damage, says):
    paths = write(tmp_path, ASKED, IDS, PAYLOADS, rows_per_file=300)
    damage(paths[1], paths)
    with pytest.raises(ValueError, match=rf"--quarantine: .*\({says}"):
        count(tmp_path)
    found = count(tmp_path, quarantine=True)
    kept = np.concatenate([PAYLOADS[:300], PAYLOADS[600:]])
    assert found.tallies[ASKED.question] == ASKED.oracle.tally(kept)
    assert any(says in why for why in found.set_aside.values())
    assert {name.rpartition("/")[2] for name in found.set_aside} <= {"part-00001.parquet", "part-x.parquet"}


def test_changed_bytes_that_pages_do_not_show_are_found_by_the_digest(tmp_path):
    (path,) = write(tmp_path, ASKED, IDS, PAYLOADS)
    pq.write_table(pq.read_table(path), path, compression="snappy")  # the same rows, other bytes
    assert count(tmp_path).reports == 900
    with pytest.raises(ValueError, match="its bytes are not those of its manifest"):
        count(tmp_path, verify=True)


@pytest.mark.parametrize("dedup", [False, True])
def test_a_report_that_no_device_makes_spoils_its_file(tmp_path, dedup):
    bad = PAYLOADS.copy()
    bad[450, -1] |= 0x80  # padding
    write(tmp_path, ASKED, IDS, bad, rows_per_file=300)
    with pytest.raises(ValueError, match="1 of 300 reports could not have been made by a device"):
        count(tmp_path, dedup=dedup)
    found = count(tmp_path, dedup=dedup, quarantine=True)
    assert found.tallies[ASKED.question] == ASKED.oracle.tally(np.concatenate([PAYLOADS[:300], PAYLOADS[600:]]))


def test_a_file_set_aside_has_no_say_about_copies(tmp_path):
    """Its reports are also in a whole file, where they count."""
    bad = PAYLOADS[:300].copy()
    bad[7, -1] |= 0x80
    write(tmp_path, ASKED, IDS[:300], bad, name="a")
    write(tmp_path, ASKED, IDS[:300], PAYLOADS[:300], name="b")
    found = count(tmp_path, quarantine=True)
    assert found.tallies[ASKED.question] == ASKED.oracle.tally(PAYLOADS[:300])
    assert found.duplicates == 0


def test_a_column_of_another_question_is_damage(tmp_path):
    (path,) = write(tmp_path, ASKED, IDS, PAYLOADS)
    table = pq.read_table(path)
    words = table.column("question").cast("string").to_pylist()
    words[5] = "f" * 64
    import pyarrow as pa

    changed = table.set_column(2, table.schema.field(2), pa.chunked_array([pa.array(words).dictionary_encode()]))
    pq.write_table(changed, path)
    with pytest.raises(ValueError, match="its column question is not the question of its metadata"):
        count(tmp_path)


def test_progress_counts_rows(tmp_path):
    write(tmp_path, ASKED, IDS, PAYLOADS, rows_per_file=300)
    seen = []
    count(tmp_path, progress=lambda *now: seen.append(now))
    assert seen == [(300, 900), (600, 900), (900, 900)]
