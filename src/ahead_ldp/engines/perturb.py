"""Clients in bulk: whoever holds a table answers for its rows, each with one report, exactly as a device would.

Group, report id and noise of a row are a function of its key under the job's secret (``keyed``), so a repeated task
writes the same bytes. A row answers in the one wave that asks its group. On this machine every row
is looked at first, then the reports are written.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import tempfile
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.device.question import Policy, Question, check_question
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.engines.addresses import is_address
from ahead_ldp.engines.archive import read_campaign, read_questions
from ahead_ldp.engines.dedup import Spill
from ahead_ldp.engines.draws import draw_reports, place_row, row_secret
from ahead_ldp.engines.files import Asked
from ahead_ldp.engines.jobs import Job
from ahead_ldp.engines.layout import REPORTS
from ahead_ldp.engines.manifests import sha256_of
from ahead_ldp.engines.writer import ReportWriter
from ahead_ldp.oracles import oracle_of_law
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import Group
from ahead_ldp.schema.arrays import Bytes
from ahead_ldp.schema.coding import encode

_EXPECTED = "a campaign's directory"
Columns = dict[str, NDArray[Any]]
A = TypeVar("A")
B = TypeVar("B")
_MOST_ROWS = 10**7  # of a table, for which buckets are small
_ENOUGH = 200_000  # rows from which on processes are worth their start


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a table: a key for each, and the values by attribute."""

    keys: list[bytes]
    columns: Columns


@dataclass(frozen=True, slots=True)
class Plan:
    """An open wave as the holder answers it: everything a task needs but the secret.

    ``columns`` are the table's, in the order of the attributes; ``row_key`` is the one beside them that names a row.
    """

    schema: Schema
    campaign: str
    groups: tuple[Group, ...]
    wave: int
    questions: dict[str, Question]  # by group
    columns: tuple[str, ...]
    row_key: str

    @classmethod
    def read(
        cls,
        directory: str | Path,
        row_key: str,
        columns: Sequence[str] | None = None,
        max_epsilon: str | float | None = None,
    ) -> Plan:
        """The newest wave of a campaign's directory, each question checked as a device checks it."""
        root = Path(directory)
        mechanism, schema, campaign = read_campaign(root, _EXPECTED)
        waves = read_questions(root)
        if not waves:
            raise ValueError(f"expected questions in {str(root / 'questions')!r}, got none")
        policy = Policy(mechanism.epsilon if max_epsilon is None else max_epsilon, max_cells=2**31)
        try:
            questions = {g: check_question(data, schema, campaign, policy) for g, data in waves[-1].items()}
        except QuestionRefused as refusal:
            raise ValueError(f"the question is refused, nothing is answered: {refusal}") from None
        names = tuple(columns or schema.names)
        if len(names) != len(schema.names):
            raise ValueError(f"expected {len(schema.names)} columns, one per attribute, got {len(names)}")
        if row_key in names:
            raise ValueError(f"expected a row key beside the values, got {row_key!r}, which is one of them")
        return cls(schema, campaign, mechanism.groups(schema), len(waves), questions, names, row_key)

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse a table without a column that is needed."""
        missing = [name for name in (self.row_key, *self.columns) if name not in names]
        if missing:
            raise ValueError(f"expected columns {self.row_key}, {', '.join(self.columns)}; got none for {missing[0]}")

    def digests(self) -> dict[str, str]:
        """The digest of each group's question."""
        return {group: question.digest for group, question in self.questions.items()}

    def asked(self, group: str) -> Asked:
        """A group's question, for a writer of report files."""
        question = self.questions[group]
        return Asked(self.campaign, question.digest, self.wave, group, oracle_of_law(question.law))


def answer_rows(plan: Plan, key: bytes, rows: Rows) -> dict[str, tuple[Bytes, Bytes]]:
    """Ids (n, 16) and payloads of the rows whose group is asked in this wave, by group, in the order of the rows."""
    borders = list(accumulate(group.share for group in plan.groups))
    members: dict[str, list[int]] = {group: [] for group in plan.questions}
    ids: dict[str, list[bytes]] = {group: [] for group in plan.questions}
    for i, row_key in enumerate(rows.keys):
        number, report_id = place_row(key, plan.campaign, row_key, borders[-1])
        group = plan.groups[bisect_right(borders, number)].id
        if group in members:
            members[group].append(i)
            ids[group].append(report_id)
    codes = encode(plan.schema, rows.columns)
    answered = {}
    for group, question in plan.questions.items():
        mine = np.array(members[group], np.int64)
        secrets = [row_secret(key, b"noise", question.digest, rows.keys[i]) for i in members[group]]
        partition = Partition.of_form(question.partition, question.axes)
        cells = partition.locate(codes[mine][:, list(question.attributes)])
        named = np.frombuffer(b"".join(ids[group]), np.uint8).reshape(-1, 16)
        answered[group] = named, draw_reports(question.law, cells, secrets)
    return answered


def rows_of(plan: Plan, batch: Any) -> Rows:
    """The rows of an Arrow batch or table. Errors name a column and a rule, never a value."""
    plan.check_columns(batch.schema.names)
    named = zip(plan.schema.attributes, plan.columns, strict=True)
    columns = {attribute.name: _array(batch.column(name), attribute) for attribute, name in named}
    return Rows(_keys(batch.column(plan.row_key), plan.row_key), columns)


def check_rows(plan: Plan, rows: Rows) -> Bytes:
    """Refuse values that the schema does not know; fingerprints (n, 16) of the keys, to find one that comes twice."""
    encode(plan.schema, rows.columns)
    prints = b"".join(hashlib.blake2b(key, digest_size=16).digest() for key in rows.keys)
    return np.frombuffer(prints, np.uint8).reshape(-1, 16)


def _keys(column: Any, name: str) -> list[bytes]:
    import pyarrow as pa

    kind = column.type
    if column.null_count:
        raise ValueError(f"expected a key in every row, got {column.null_count} rows without {name}")
    if pa.types.is_integer(kind):
        return [b"%d" % value for value in column.to_pylist()]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [value.encode() for value in column.to_pylist()]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return list(column.to_pylist())
    raise ValueError(f"expected whole numbers, texts or bytes as keys in {name}, got {kind}")


def _array(column: Any, attribute: Attribute) -> NDArray[Any]:
    """A column as the coding takes it; texts, as a CSV file has them, become numbers where the attribute is one."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if attribute.kind in ("integer", "real") and pa.types.is_string(column.type):
        try:
            column = column.cast(pa.int64() if attribute.kind == "integer" else pa.float64())
        except pa.ArrowInvalid:  # its text holds the value
            raise ValueError(f"{attribute.name}: some values are not of kind {attribute.kind}") from None
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_date, pa.types.is_timestamp)
    if any(is_one(column.type) for is_one in numbers):
        return np.asarray(column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy())
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return values


def read_table(path: str | Path, plan: Plan, rows: int = 65_536) -> Iterator[Any]:
    """A table of this machine in Arrow batches: .parquet (a file, or a folder of them) or .csv."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    wanted = [plan.row_key, *plan.columns]
    for file in table_files(path):
        try:
            if file.suffix == ".csv":
                texts = dict.fromkeys(wanted, pa.string())  # as Spark reads them: a key means the same to both
                convert = pa.csv.ConvertOptions(include_columns=wanted, column_types=texts, strings_can_be_null=True)
                yield from (b for b in pa.csv.open_csv(file, convert_options=convert) if b.num_rows)
            else:
                with pa.parquet.ParquetFile(file) as opened:
                    there = [name for name in wanted if name in opened.schema_arrow.names]
                    yield from opened.iter_batches(batch_size=rows, columns=there)
        except pa.ArrowKeyError:
            raise ValueError(f"expected the columns {', '.join(wanted)} in {str(file)!r}, got others") from None
        except (OSError, pa.ArrowException) as error:  # its text may hold values
            what = f"a readable table with the columns {', '.join(wanted)}"
            raise ValueError(f"expected {what}, got {str(file)!r}: {type(error).__name__}") from None


def table_files(path: str | Path) -> list[Path]:
    """The files of a table, in order."""
    start = Path(path)
    files = sorted(start.rglob("*.parquet")) if start.is_dir() else [start]
    if not files or not files[0].exists():
        raise ValueError(f"expected a table, a .parquet or .csv file or a folder of .parquet files, got {str(path)!r}")
    if any(file.suffix not in (".parquet", ".csv") for file in files):
        raise ValueError(f"expected a file ending in .parquet or .csv, got {str(path)!r}")
    return files


@dataclass(frozen=True, slots=True)
class Answered:
    """What was done: the wave, reports by group, rows of the table, and whether the campaign has ended here."""

    wave: int
    reports: dict[str, int]
    rows: int
    ended: bool


def answer_table(
    directory: str | Path, table: str | Path, plan: Plan, job: Job, *, out: str | Path | None = None, processes: int = 1
) -> Answered:
    """Answer the open wave of a campaign's directory for the rows of a table; reports go to ``out`` or the directory.

    Nothing is written unless every row can answer and every key is there once.
    """
    if out is not None and is_address(str(out)):
        raise ValueError("expected a folder of this machine for the reports, got an address: only Spark writes there")
    rows = _check_table(table, plan)
    key = job.begin(plan.campaign, plan.columns, plan.wave, plan.digests(), fingerprint(table))
    reports = dict.fromkeys(plan.questions, 0)
    answer = partial(_answer, plan=plan, key=key)
    with ReportWriter(Path(out or Path(directory) / REPORTS), name=job.name) as writer:
        batches = read_table(table, plan)
        for answered in map_items(answer, batches, processes if rows > _ENOUGH else 1):
            for group, (ids, payloads) in answered.items():
                writer.add(plan.asked(group), ids, payloads)
                reports[group] += len(ids)
    ended = job.done(plan.campaign, plan.wave, [group.id for group in plan.groups])
    return Answered(plan.wave, reports, rows, ended)


def _answer(batch: Any, plan: Plan, key: bytes) -> dict[str, tuple[Bytes, Bytes]]:
    return answer_rows(plan, key, rows_of(plan, batch))


def _check_table(table: str | Path, plan: Plan) -> int:
    """How many rows there are, all of which can answer, with keys that differ."""
    rows = 0
    with tempfile.TemporaryDirectory(prefix="ahead-keys-") as folder:
        spill = Spill(Path(folder), _MOST_ROWS)
        for batch in read_table(table, plan):
            prints = check_rows(plan, rows_of(plan, batch))
            spill.add(0, np.arange(rows, rows + len(prints)), prints)
            rows += len(prints)
        copies = sum(len(again) for again in spill.resolve())
    if copies:
        raise ValueError(f"expected every key in {plan.row_key} once, got {copies} that stand there again")
    if not rows:
        raise ValueError(f"expected a table with rows, got none in {str(table)!r}")
    return rows


def fingerprint(table: str | Path) -> str:
    """A digest of all bytes of a table."""
    hashed = hashlib.sha256()
    for path in table_files(table):
        hashed.update(f"{path.name}:{sha256_of(str(path))}\n".encode())
    return hashed.hexdigest()


def map_items(function: Callable[[A], B], items: Iterable[A], processes: int = 1) -> Iterator[B]:
    """The results in order, from so many processes; a few items are under way at a time, however many there are.

    With more than one process the function must be importable, and items and results small enough to be sent.
    """
    if processes < 2:
        yield from map(function, items)
        return
    waiting: deque[Future[B]] = deque()
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
