"""Answering from a table that Spark reads: every task writes the reports of its own rows, the same bytes each time.

Tasks write under hidden names and give a part its name when it is whole, so a killed one leaves nothing that counts.
What the tasks wrote is entered into the manifest at the end.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from functools import partial
from typing import Any

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.engines.addresses import place
from ahead_ldp.engines.files import ROWS_PER_GROUP, arrow
from ahead_ldp.engines.jobs import Job
from ahead_ldp.engines.layout import report_folder
from ahead_ldp.engines.manifests import Entry, manifest_name, manifest_record, parse_manifest
from ahead_ldp.engines.perturb import Answered, Plan, answer_rows, check_rows, rows_of
from ahead_ldp.engines.writer import parquet_writer, report_table, rows_in_a_file

_WRITTEN = "name string, rows long, sha256 string, group string"


def answer_frame(frame: Any, plan: Plan, job: Job, out: str, table: str) -> Answered:
    """Answer the open wave for the rows of a Spark frame, which must give the same rows whenever it is computed.

    ``out`` is a folder that the driver and all executors can write: shared, or an address that Arrow knows (s3://,
    hdfs://, gs://). ``table`` is a digest of what the frame is read from.
    """
    rows = _check_frame(frame, plan)
    key = job.begin(plan.campaign, plan.columns, plan.wave, plan.digests(), table)
    system, root = place(out)
    _clear(system, root, plan, job.name)
    wanted = frame.select(plan.row_key, *plan.columns)
    task = partial(_answer_partition, plan=plan, key=key, out=out, name=job.name)
    written = _run(wanted.mapInArrow(task, _WRITTEN).collect)
    entries = [Entry(row["name"], row["rows"], row["sha256"]) for row in written]
    _enter(system, root, job.name, plan.campaign, entries)
    reports = {g: sum(row["rows"] for row in written if row["group"] == g) for g in plan.questions}
    ended = job.done(plan.campaign, plan.wave, [group.id for group in plan.groups])
    return Answered(plan.wave, reports, rows, ended)


def read_frame(session: Any, path: str) -> tuple[Any, str]:
    """A table that Spark reads (Parquet, or CSV with a header), and a digest of its files' names, sizes and times."""
    text = path.rstrip("/").endswith(".csv")  # all columns are texts: a key means the same to both engines
    frame = _run(lambda: session.read.csv(path, header=True) if text else session.read.parquet(path))
    hashed = hashlib.sha256()
    jvm = session._jvm.org.apache.hadoop.fs
    for name in sorted(frame.inputFiles()):
        place = jvm.Path(name)
        status = place.getFileSystem(session._jsc.hadoopConfiguration()).getFileStatus(place)
        hashed.update(f"{name}:{status.getLen()}:{status.getModificationTime()}\n".encode())
    return frame, hashed.hexdigest()


def _check_frame(frame: Any, plan: Plan) -> int:
    plan.check_columns(frame.columns)
    wanted = frame.select(plan.row_key, *plan.columns)
    checked = wanted.mapInArrow(partial(_check_partition, plan=plan), "print binary, refused string")
    checked = checked.groupBy("print", "refused").count().groupBy("refused", "count").count()
    kinds = _run(checked.toDF("refused", "times", "keys").collect)
    refused = sorted(row["refused"] for row in kinds if row["refused"])
    if refused:
        raise ValueError(refused[0])
    if copies := sum((row["times"] - 1) * row["keys"] for row in kinds):
        raise ValueError(f"expected every key in {plan.row_key} once, got {copies} that stand there again")
    if not kinds:
        raise ValueError("expected a table with rows, got none")
    return sum(row["times"] * row["keys"] for row in kinds)


def _check_partition(batches: Iterator[Any], plan: Plan) -> Iterator[Any]:
    import pyarrow as pa

    schema = pa.schema([("print", pa.binary()), ("refused", pa.string())])
    for batch in batches:
        try:
            prints = [row.tobytes() for row in check_rows(plan, rows_of(plan, batch))]
            columns = {"print": prints, "refused": [None] * len(prints)}
        except ValueError as error:  # it names a column and a rule, never a value
            columns = {"print": [b""], "refused": [str(error)]}
        yield pa.RecordBatch.from_pydict(columns, schema=schema)


def _answer_partition(batches: Iterator[Any], plan: Plan, key: bytes, out: str, name: str) -> Iterator[Any]:
    """Write the reports of one partition; one row for each file."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    parts = {g: _Parts(plan, g, out, f"{name}-{context.partitionId():05d}", context) for g in plan.questions}
    for batch in batches:
        for group, (ids, payloads) in answer_rows(plan, key, rows_of(plan, batch)).items():
            parts[group].add(report_table(plan.asked(group), ids, payloads))
    written = [entry for one in parts.values() for entry in one.finish()]
    kinds = [("name", pa.string()), ("rows", pa.int64()), ("sha256", pa.string()), ("group", pa.string())]
    yield pa.RecordBatch.from_pylist(written, schema=pa.schema(kinds))


class _Parts:
    """The files of one group that one task writes; at most one of them is in memory."""

    def __init__(self, plan: Plan, group: str, out: str, name: str, context: Any) -> None:
        self.group, self.stem = group, f"{report_folder(plan.wave, group)}/part-{name}"
        self.system, self.root = place(out)
        self.most, self.attempt = rows_in_a_file(plan.asked(group)), context.taskAttemptId()
        self.waiting: list[Any] = []
        self.written: list[dict[str, Any]] = []

    def add(self, table: Any) -> None:
        """Take reports in, and write every part that they fill."""
        self.waiting.append(table)
        while sum(one.num_rows for one in self.waiting) >= self.most:
            whole = arrow().concat_tables(self.waiting)
            self.waiting = [whole.slice(self.most)]
            self._put(whole.slice(0, self.most))

    def finish(self) -> list[dict[str, Any]]:
        """Write the rest; what all parts are."""
        if any(one.num_rows for one in self.waiting):
            self._put(arrow().concat_tables(self.waiting))
        return self.written

    def _put(self, table: Any) -> None:
        data, name = _parquet(table.combine_chunks()), f"{self.stem}-{len(self.written):03d}.parquet"
        _put(self.system, self.root, name, data, self.attempt)
        sha256 = hashlib.sha256(data).hexdigest()
        self.written.append({"name": name, "rows": table.num_rows, "sha256": sha256, "group": self.group})


def _parquet(table: Any) -> bytes:
    sink = io.BytesIO()
    with parquet_writer(sink, table.schema) as writer:
        writer.write_table(table, row_group_size=ROWS_PER_GROUP)
    return sink.getvalue()


def _put(system: Any, root: str, name: str, data: bytes, attempt: int) -> None:
    folder, _, file = f"{root}/{name}".rpartition("/")
    system.create_dir(folder, recursive=True)
    hidden = f"{folder}/.{file}-{attempt}.unfinished"
    with system.open_output_stream(hidden) as stream:
        stream.write(data)
    system.move(hidden, f"{root}/{name}")


def _clear(system: Any, root: str, plan: Plan, name: str) -> None:
    """Remove what a run that crashed has left of this wave: nothing of it is in a manifest."""
    import pyarrow.fs

    for group in plan.questions:
        selector = pyarrow.fs.FileSelector(f"{root}/{report_folder(plan.wave, group)}", allow_not_found=True)
        for info in system.get_file_info(selector):
            if info.base_name.startswith((f"part-{name}-", f".part-{name}-")):
                system.delete_file(info.path)


def _enter(system: Any, root: str, name: str, campaign: str, entries: list[Entry]) -> None:
    import pyarrow.fs

    path = f"{root}/{manifest_name(name)}"
    known: list[Entry] = []
    if system.get_file_info(path).type == pyarrow.fs.FileType.File:
        with system.open_input_stream(path) as stream:
            known = parse_manifest(stream.read(), path)[1]
    system.create_dir(root, recursive=True)
    all_entries = {entry.name: entry for entry in (*known, *entries)}
    with system.open_output_stream(path) as stream:
        stream.write(canonical_bytes(manifest_record(campaign, all_entries.values())) + b"\n")


def _run(job: Any) -> Any:
    try:
        return job()
    except Exception as error:  # its text may hold values of the table, and stays where it was raised
        condition = getattr(error, "getCondition", lambda: None)()
        raise ValueError(f"Spark could not read the table: {condition or type(error).__name__}") from None
