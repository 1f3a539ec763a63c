"""Report files: what is in them, who can read them, what is written when, and which of them are refused."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ahead_ldp.engines import writer as writing
from ahead_ldp.engines.files import Asked, read_batches
from ahead_ldp.engines.local import count_files
from ahead_ldp.engines.manifests import find_files, some_files
from ahead_ldp.engines.writer import ReportWriter
from tests.engines.examples import CAMPAIGN, asked_of, by_digest, question, some_reports, write

ASKED = asked_of()
IDS, PAYLOADS = some_reports(ASKED, 100)


def test_a_file_says_what_it_answers(tmp_path):
    (path,) = write(tmp_path, ASKED, IDS, PAYLOADS)
    assert path.relative_to(tmp_path).as_posix() == "wave=1/group=1/part-00000.parquet"
    with pq.ParquetFile(path) as file:
        told = {k.decode(): v.decode() for k, v in file.schema_arrow.metadata.items() if k.startswith(b"ahead.")}
        assert told["ahead.campaign"] == CAMPAIGN
        assert told["ahead.question"] == ASKED.question
        assert (told["ahead.version"], told["ahead.wave"], told["ahead.group"]) == ("1", "1", "1")
        assert json.loads(told["ahead.oracle"])["name"] == "oue"
        columns = file.metadata.row_group(0)
        for i in range(columns.num_columns):
            assert columns.column(i).compression == "UNCOMPRESSED"
        assert "RLE_DICTIONARY" in columns.column(2).encodings
        table = file.read()
    assert table.column("report_id").to_pylist() == [i.tobytes() for i in IDS]
    assert table.column("payload").to_pylist() == [p.tobytes() for p in PAYLOADS]
    assert set(table.column("question").to_pylist()) == {ASKED.question}


def test_the_manifest_names_rows_and_bytes(tmp_path):
    paths = write(tmp_path, ASKED, IDS, PAYLOADS, rows_per_file=60)
    found = json.loads((tmp_path / "_manifest.json").read_text())
    assert found["campaign"] == CAMPAIGN
    assert [(x["name"], x["rows"]) for x in found["files"]] == [
        ("wave=1/group=1/part-00000.parquet", 60),
        ("wave=1/group=1/part-00001.parquet", 40),
    ]
    assert [x["sha256"] for x in found["files"]] == [hashlib.sha256(p.read_bytes()).hexdigest() for p in paths]


def test_row_groups_have_a_hundred_thousand_rows(tmp_path):
    asked = asked_of("grr", 4)
    ids, payloads = some_reports(asked, 250_000)
    (path,) = write(tmp_path, asked, ids, payloads)
    with pq.ParquetFile(path) as file:
        groups = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        assert groups == [100_000, 100_000, 50_000]
        batches = list(read_batches(file, asked))
    assert [b.start for b in batches] == [0, 50_000, 100_000, 150_000, 200_000]
    np.testing.assert_array_equal(np.concatenate([b.payloads for b in batches]), payloads)


def test_others_read_the_folder(tmp_path):
    write(tmp_path, ASKED, IDS, PAYLOADS, rows_per_file=60)
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for frame in (
        pandas.read_parquet(tmp_path),
        polars.read_parquet(tmp_path / "**/*.parquet", hive_partitioning=True),
    ):
        assert set(frame.columns) >= {"report_id", "payload", "question", "wave", "group"}
        assert [bytes(x) for x in frame["payload"]] == [p.tobytes() for p in PAYLOADS]
        assert set(frame["question"]) == {ASKED.question}


def test_small_additions_and_several_questions(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_BUFFERED", 200)
    other = asked_of("grr", 9, group="b")
    more_ids, more = some_reports(other, 30, seed=2)
    with ReportWriter(tmp_path) as writer:
        for i in range(10):
            writer.add(ASKED, IDS[10 * i : 10 * i + 10], PAYLOADS[10 * i : 10 * i + 10])
            writer.add(question("grr", 9, group="b"), more_ids[3 * i : 3 * i + 3], more[3 * i : 3 * i + 3])
    found = count_files(find_files([tmp_path]), by_digest(ASKED, other)).tallies
    assert found == {
        ASKED.question: ASKED.oracle.tally(PAYLOADS),
        other.question: other.oracle.tally(more),
    }


def test_arrays_may_be_changed_after_they_were_added(tmp_path):
    ids, payloads = IDS.copy(), PAYLOADS.copy()
    with ReportWriter(tmp_path) as writer:
        writer.add(ASKED, ids, payloads)
        ids[:], payloads[:] = 0, 0
    assert count_files(find_files([tmp_path]), by_digest(ASKED)).tallies[ASKED.question] == ASKED.oracle.tally(PAYLOADS)


def test_nothing_is_visible_before_the_end_nor_after_an_error(tmp_path):
    def crash():
        with ReportWriter(tmp_path, rows_per_file=30) as writer:
            writer.add(ASKED, IDS, PAYLOADS)
            writer._parts[ASKED.question].flush()
            assert list(tmp_path.rglob("*.parquet")) == []
            raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        crash()
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_a_writer_goes_on_after_its_own_files_and_removes_what_a_crash_left(tmp_path):
    (first,) = write(tmp_path, ASKED, IDS[:40], PAYLOADS[:40], name="a")
    left = first.with_name("part-a-00001.parquet")
    left.write_bytes(first.read_bytes())  # named, but not yet in the manifest when it crashed
    (second,) = write(tmp_path, ASKED, IDS[40:], PAYLOADS[40:], name="a")
    assert second == left
    write(tmp_path, ASKED, IDS[:3], PAYLOADS[:3], name="b")
    found = count_files(find_files([tmp_path]), by_digest(ASKED))
    assert found.tallies[ASKED.question] == ASKED.oracle.tally(PAYLOADS)
    assert found.duplicates == 3


def test_a_writer_refuses_what_does_not_fit(tmp_path):
    writer = ReportWriter(tmp_path)
    with pytest.raises(ValueError, match=r"payloads of shape \(n, 3\)"):
        writer.add(ASKED, IDS, PAYLOADS[:, :2])
    with pytest.raises(ValueError, match="an id for each of the 100 payloads, got 99"):
        writer.add(ASKED, IDS[:99], PAYLOADS)
    writer.add(ASKED, IDS, PAYLOADS)
    with pytest.raises(ValueError, match="one campaign"):
        writer.add(asked_of(campaign="d" * 64), IDS, PAYLOADS)
    writer.close()
    with pytest.raises(ValueError, match="its manifest is of another"):
        write(tmp_path, asked_of(campaign="d" * 64), IDS, PAYLOADS)


OTHERS = {
    "campaign": (asked_of(campaign="d" * 64), "another campaign: 'dddd"),
    "wave": (asked_of(wave=2), "another wave: '2', expected 1"),
    "group": (asked_of(group="2"), "another group: '2', expected 1"),
    "oracle": (asked_of("sue"), "another oracle: .*sue"),
    "epsilon": (asked_of(epsilon="2"), "another oracle"),
    "question": (Asked(CAMPAIGN, "e" * 64, 1, "1", ASKED.oracle), "another question: 'eeee"),
}


@pytest.mark.parametrize(("other", "says"), OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("quarantine", [False, True])
def test_a_file_of_something_else_is_refused_by_name(tmp_path, other, says, quarantine):
    write(tmp_path / "a", ASKED, IDS, PAYLOADS)
    ids, payloads = some_reports(other, 5)
    (path,) = write(tmp_path / "b", other, ids, payloads)
    name = path.relative_to(tmp_path / "b").as_posix()
    with pytest.raises(ValueError, match=rf"move away {name} \(of {says}"):
        count_files(find_files([tmp_path / "a", tmp_path / "b"]), by_digest(ASKED), quarantine=quarantine)


def test_a_file_of_another_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("ahead_ldp.engines.files.VERSION", "2")
    write(tmp_path, ASKED, IDS, PAYLOADS)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="another version: '2', expected 1"):
        count_files(find_files([tmp_path]), by_digest(ASKED))


def test_a_table_that_is_no_report_file_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a.parquet \(no report file: .*ReportWriter"):
        count_files(find_files([tmp_path]), by_digest(ASKED))


def test_a_wrong_schema_is_refused(tmp_path):
    (path,) = write(tmp_path, ASKED, IDS, PAYLOADS)
    table = pq.read_table(path)
    changed = pa.table({"payload": table.column("payload")}).replace_schema_metadata(ASKED.metadata())
    (tmp_path / "_manifest.json").unlink()
    pq.write_table(changed, path)
    with pytest.raises(ValueError, match=r"wrong schema: expected report_id: fixed_size_binary\[16\]"):
        count_files(find_files([tmp_path]), by_digest(ASKED))


def test_an_empty_folder_and_a_missing_one(tmp_path):
    with pytest.raises(ValueError, match="got none: put the reports there first"):
        some_files([tmp_path], find_files([tmp_path]))
    with pytest.raises(ValueError, match="no such file or directory"):
        find_files([tmp_path / "none"])
