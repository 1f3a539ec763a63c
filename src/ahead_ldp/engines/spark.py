"""The Spark engine: the same two functions, scheduled by Spark over Arrow batches, on any path that Spark reads.

Partial counts stay apart by file until all parts of a file have come together and its rows match the manifest; only
then are they added to the tally of their question, in a tree. Tasks that fail, are repeated or speculated count once,
because Spark takes one result of each; counting itself is a function of the rows.
Reports that came twice are found by their ids, which are shuffled; payloads never are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ahead_ldp.engines.counting import Care, Counted, Engine, Result, complete, count_shard, merge, refuse
from ahead_ldp.engines.dedup import LeftOut, packed_rows
from ahead_ldp.engines.files import Asked, Questions
from ahead_ldp.engines.manifests import PATTERN, ReportFile, with_entries
from ahead_ldp.engines.spark_session import java_error, on_tables, spark_session
from ahead_ldp.oracles import Tally
from ahead_ldp.schema.arrays import Bools, Bytes

_ROWS = "report_id binary, payload binary, question string"
_PARTS = "file int, question int, rows long, invalid long, n long, counts binary"
_SUMS = "question int, problem string, n long, counts binary, files binary"
_SETTLED = _SUMS + ", branch int"
_BRANCHES = 32  # of the tree, below its root
_FOREIGN, _PROBLEM = -1, -2
_BITS = "file int, copies long, bits binary"


class SparkEngine(Engine):
    """Spark, through a session of the caller's or one that is started."""

    def __init__(self, session: Any = None) -> None:
        self.session = spark_session(session)

    def find(self, root: str, below: str = "") -> list[ReportFile]:
        """See ``Engine``. The folder is any that Hadoop's file systems know."""
        jvm = self.session._jvm
        path = jvm.org.apache.hadoop.fs.Path
        start = path(f"{root.rstrip('/')}/{below}" if below else root)
        system = start.getFileSystem(self.session._jsc.hadoopConfiguration())
        if not system.exists(start):
            return []
        start = system.makeQualified(start)
        folder, manifests = start, {}
        is_folder = system.getFileStatus(start).isDirectory()
        for _ in range(3 if is_folder else 4):  # the folder itself, and the two above it
            for status in system.globStatus(path(folder, PATTERN)) or []:
                stream = system.open(status.getPath())
                manifests[status.getPath().getName()] = bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
                stream.close()
            if manifests or folder.getParent() is None:
                break
            folder = folder.getParent()
        top = folder if manifests else start if is_folder else start.getParent()
        base, names, listed = _address(top), [], system.listFiles(start, True)
        while listed.hasNext():
            name = _address(listed.next().getPath()).removeprefix(base + "/")
            if name.endswith(".parquet") and not any(part.startswith(("_", ".")) for part in name.split("/")):
                names.append(name)
        return with_entries(base, names, manifests, _address(start).removeprefix(base).strip("/") or ".")

    def count_with(self, care: Care, files: Sequence[ReportFile], questions: Questions) -> Result:
        """See ``Engine``."""
        damaged = [(file.name, file.problem) for file in files if file.problem]
        refuse([], damaged, care.quarantine)
        numbered = {i: file for i, file in enumerate(files) if not file.problem}
        if care.verify:
            damaged += self._changed(numbered)
        tallies, foreign, broken = self._tally(numbered, questions)
        damaged += broken
        refuse(foreign, damaged, care.quarantine)
        bad = {name for name, _ in damaged}
        if broken or bad & {file.name for file in numbered.values()}:
            numbered = {i: file for i, file in numbered.items() if file.name not in bad}
            tallies, _, _ = self._tally(numbered, questions)
        duplicates = 0
        if care.dedup and numbered:
            left_out, duplicates = find_copies(_read(self.session, numbered))
            if duplicates:
                tallies = self._without(numbered, questions, tallies, left_out)
        kept = tuple(numbered.values())
        return Result(complete(questions, tallies), kept, dict(damaged), duplicates)

    def _tally(
        self, files: dict[int, ReportFile], questions: Questions, only: LeftOut | None = None
    ) -> tuple[dict[str, Tally], list[tuple[str, str]], list[tuple[str, str]]]:
        """Tallies by question, and the files that are of something else or damaged, with why."""
        if not files:
            return {}, [], []
        asked = list(questions.values())
        rows = {} if only else {i: file.entry.rows for i, file in files.items() if file.entry}
        frame = _numbered_questions(_read(self.session, files), list(questions), only is not None)
        parts = frame.mapInArrow(partial(_count_partition, asked=asked, only=only), _PARTS)
        settled = parts.groupBy("file").applyInArrow(on_tables(partial(_settle, promised=rows)), _SETTLED)
        sums = settled.groupBy("question", "branch").applyInArrow(on_tables(_add_up), _SUMS)
        rows_of_sums = _collect(sums)
        tallies, foreign, damaged, seen = [], [], [], set()
        for row in rows_of_sums:
            ids = np.frombuffer(row["files"], np.int32).tolist()
            seen.update(ids)
            if row["question"] == _FOREIGN:
                foreign += [(files[i].name, row["problem"]) for i in ids]
            elif row["question"] == _PROBLEM:
                damaged += [(files[i].name, row["problem"]) for i in ids]
            else:
                counts = np.frombuffer(row["counts"], np.int64).copy()
                tallies.append((asked[row["question"]].question, Tally(row["n"], counts)))
        unseen = [file for i, file in files.items() if i not in seen and i in rows and rows[i]]
        damaged += [(file.name, f"0 of {file.entry.rows:,} rows can be read") for file in unseen if file.entry]
        return merge(tallies), foreign, damaged

    def _without(
        self, files: dict[int, ReportFile], questions: Questions, tallies: dict[str, Tally], left_out: LeftOut
    ) -> dict[str, Tally]:
        """The tallies less those of the rows to leave out, which are read again; their files alone."""
        some = {i: files[i] for i in left_out.files}
        less, _, _ = self._tally(some, questions, left_out)
        return {key: tally - less[key] if key in less else tally for key, tally in tallies.items()}

    def _changed(self, files: dict[int, ReportFile]) -> list[tuple[str, str]]:
        """Files whose bytes are not those of their manifest."""
        from pyspark.sql import functions as F

        listed = [file for file in files.values() if file.entry]
        names = {path: file for file in listed for path in _spellings(file.path)}
        if not names:
            return []
        loaded = self.session.read.format("binaryFile").load([file.path for file in listed])
        hashed = _collect(loaded.select("path", F.sha2("content", 256).alias("sha256")))
        changed = [file for row in hashed if (file := names[row["path"]]).entry and file.entry.sha256 != row["sha256"]]
        return [(file.name, "its bytes are not those of its manifest") for file in changed]


def _address(path: Any) -> str:
    """A path in one spelling, whichever way Hadoop came by it."""
    return re.sub("^file:/+", "file:///", str(path.toUri().toString())).rstrip("/")


def _read(session: Any, files: dict[int, ReportFile]) -> Any:
    """All rows of the files: payload, question, report_id, and the number of the file and of the row in it."""
    from pyspark.sql import functions as F

    listed = all(file.entry for file in files.values())
    reader = session.read.schema(_ROWS).option("recursiveFileLookup", "true")
    reader = reader.option("ignoreCorruptFiles", str(listed).lower())  # the manifest tells what they hid
    frame = reader.parquet(*(file.path for file in files.values()))
    frame = frame.select("*", F.col("_metadata.file_path").alias("path"), F.col("_metadata.row_index").alias("row"))
    numbers = session.createDataFrame(
        [(path, i) for i, file in files.items() for path in _spellings(file.path)], "path string, file int"
    )
    return frame.join(F.broadcast(numbers), "path").drop("path")


def _spellings(path: str) -> tuple[str, ...]:
    """A file's address in the forms that Spark may tell: local files go by file:/ and by file:///."""
    plain = re.sub("^file:/+", "/", path)
    return (path,) if "://" in path and plain == path else (plain, f"file:{plain}", f"file://{plain}")


def _numbered_questions(frame: Any, questions: Sequence[str], places: bool) -> Any:
    from pyspark.sql import functions as F

    known = F.create_map(*(F.lit(x) for i, question in enumerate(questions) for x in (question, i)))
    number = F.coalesce(F.try_element_at(known, F.col("question")), F.lit(_FOREIGN))
    return frame.select("payload", number.alias("question"), "file", *(["row"] if places else []))


def _collect(frame: Any) -> list[Any]:
    try:
        return list(frame.collect())
    except Exception as error:
        raise ValueError(f"Spark could not count the reports: {java_error(error)}") from error


def _count_partition(batches: Iterator[Any], asked: Sequence[Asked], only: LeftOut | None) -> Iterator[Any]:
    """Count a shard, an Arrow batch at a time: for each file and question what was found, as one row."""
    import pyarrow as pa

    odd: dict[tuple[int, int], Counted] = {}  # rows that cannot be counted at all
    counted = count_shard(run for batch in batches for run in _runs(batch, asked, only, odd))
    rows = [
        (*key, one.rows, one.invalid, one.tally.n, one.tally.counts.tobytes())
        for part in (counted, odd)
        for key, one in part.items()
    ]
    yield pa.RecordBatch.from_pylist(
        [dict(zip(_names(_PARTS), row, strict=True)) for row in rows], schema=_arrow_schema(_PARTS)
    )


def _runs(
    batch: Any, asked: Sequence[Asked], only: LeftOut | None, odd: dict[tuple[int, int], Counted]
) -> Iterator[tuple[tuple[int, int], Asked, Bytes, Bools | None]]:
    """Stretches of rows of one file and one question, as ``count_shard`` takes them."""
    file, question = batch.column("file").to_numpy(), batch.column("question").to_numpy()
    borders = np.flatnonzero((np.diff(file) != 0) | (np.diff(question) != 0)) + 1
    for a, b in pairwise([0, *borders.tolist(), batch.num_rows]):
        if a == b:
            continue
        key, payload = (int(file[a]), int(question[a])), batch.column("payload").slice(a, b - a)
        one = asked[key[1]] if key[1] >= 0 else None
        width = one.oracle.report_bytes if one else 0
        payloads = _rows_of(payload, width) if one else None
        if one is None or payloads is None:
            empty = Tally.empty(one.oracle.outcomes if one else 0)
            odd[key] = odd.get(key, Counted(0, 0, empty)) + Counted(b - a, b - a, empty)
            continue
        yield key, one, payloads, only.marked(key[0], batch.column("row").to_numpy()[a:b]) if only else None


def _rows_of(payload: Any, width: int) -> Bytes | None:
    """Binary values of one length as an array, without a copy; ``None`` where one is missing or of another length."""
    offsets = np.frombuffer(payload.buffers()[1], np.int32)[payload.offset : payload.offset + len(payload) + 1]
    if payload.null_count or (np.diff(offsets) != width).any():
        return None
    data = np.frombuffer(payload.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    return data.reshape(len(payload), width)


def _settle(table: Any, promised: dict[int, int]) -> Any:
    """All parts of one file: its tally, if it is whole and of one question, else what is wrong with it."""
    import pyarrow as pa

    rows = table.to_pylist()
    file, questions = rows[0]["file"], {row["question"] for row in rows}
    total = sum((_counted(row) for row in rows[1:]), _counted(rows[0])) if len(questions) == 1 else None
    question, problem = max(questions), total.problem(promised.get(file)) if total else "it answers several questions"
    if _FOREIGN in questions:
        question, problem = _FOREIGN, "of another campaign, wave, oracle or version: its question is not asked here"
    elif problem:
        question = _PROBLEM
    good = total is not None and not problem
    n, counts = (total.tally.n, total.tally.counts.tobytes()) if good and total else (0, b"")
    ids = np.array([file], np.int32).tobytes()
    row = {"question": question, "problem": problem, "n": n, "counts": counts, "files": ids, "branch": file % _BRANCHES}
    return pa.Table.from_pylist([row], schema=_arrow_schema(_SETTLED))


def _counted(row: dict[str, Any]) -> Counted:
    return Counted(row["rows"], row["invalid"], Tally(row["n"], np.frombuffer(row["counts"], np.int64)))


def _add_up(table: Any) -> Any:
    """One branch of the tree: the tallies of one question of many files; problems stay as they are."""
    import pyarrow as pa

    rows = table.to_pylist()
    if rows[0]["question"] < 0:
        return table.drop_columns(["branch"])
    total = merge(("", Tally(row["n"], np.frombuffer(row["counts"], np.int64))) for row in rows)[""]
    ids = b"".join(row["files"] for row in rows)
    row = {"question": rows[0]["question"], "problem": None, "n": total.n, "counts": total.counts.tobytes()}
    return pa.Table.from_pylist([{**row, "files": ids}], schema=_arrow_schema(_SUMS))


def _names(columns: str) -> list[str]:
    return [column.split()[0] for column in columns.split(", ")]


def _arrow_schema(columns: str) -> Any:
    """The Arrow form of one of the schemas above."""
    import pyarrow as pa

    kinds = {"int": pa.int32(), "long": pa.int64(), "string": pa.string(), "binary": pa.binary()}
    return pa.schema([(name, kinds[kind]) for name, kind in (column.split() for column in columns.split(", "))])


def find_copies(frame: Any) -> tuple[LeftOut, int]:
    """What to leave out of rows (report_id, file, row) so that the first of each id is left, and how many they are.

    The driver holds one bit per report, for the files that have something to leave out.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    place = F.struct("file", "row")
    same = Window.partitionBy("report_id")
    slim = frame.select("report_id", "file", "row")
    compared = slim.select("file", "row", (F.min(place).over(same) == place).alias("first"))
    dropped = compared.where("NOT first").select("file", "row")
    bits, copies = {}, 0
    for row in dropped.groupBy("file").applyInArrow(on_tables(_pack), _BITS).collect():
        bits[row["file"]] = np.frombuffer(row["bits"], np.uint8)
        copies += row["copies"]
    return LeftOut(bits), copies


def _pack(table: Any) -> Any:
    """The rows of one file to leave out, as bits."""
    import pyarrow as pa

    rows, file = table.column("row").to_numpy(), table.column("file")[0].as_py()
    row = {"file": file, "copies": len(rows), "bits": packed_rows(rows).tobytes()}
    return pa.Table.from_pylist([row], schema=_arrow_schema(_BITS))
