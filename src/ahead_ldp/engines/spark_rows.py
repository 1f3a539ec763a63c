"""Reports that lie in a table: rows through Spark SQL, for lake formats and views that are no report files.

It is slower than counting files, because rows go from the JVM through Arrow to Python before they are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ahead_ldp.engines.counting import Counted, complete, count_shard, merge
from ahead_ldp.engines.files import Asked, Questions
from ahead_ldp.engines.spark_session import java_error
from ahead_ldp.oracles import Tally
from ahead_ldp.schema.arrays import Bytes

_PARTS = "question int, rows long, invalid long, n long, counts binary"
_FOREIGN = -1


def count_frame(frame: Any, questions: Questions, first: Sequence[str] = ()) -> dict[str, Tally]:
    """The tallies of a Spark data frame with the columns report_id, payload and question (its digest).

    Of several rows with one id the first counts, in the order of the columns named by ``first``. Without them every id
    must be there once. A row that no device could have made, or of another question, stops it.
    """
    asked = list(questions.values())
    try:
        parts = _first_rows(frame, first).mapInArrow(partial(_count_partition, asked=asked), _PARTS).collect()
    except Exception as error:
        raise ValueError(f"Spark could not count the reports: {java_error(error)}") from error
    found = merge((row["question"], _counted(row)) for row in parts)
    foreign = found.pop(_FOREIGN, None)
    if foreign is not None:
        raise ValueError(f"expected reports of the questions that were asked, got {foreign.rows:,} of others")
    for number, counted in found.items():
        if problem := counted.problem(None):
            raise ValueError(f"expected reports of devices for the question {asked[number].question}, got: {problem}")
    return complete(questions, {asked[number].question: counted.tally for number, counted in found.items()})


def _first_rows(frame: Any, first: Sequence[str]) -> Any:
    """One row of each id, with the payload and the question."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if not first:
        copies = frame.count() - frame.select("report_id").distinct().count()
        if copies:
            raise ValueError(
                f"expected every report_id once, got {copies:,} again; name in `first` which of them counts"
            )
        return frame.select("payload", "question")
    place = F.row_number().over(Window.partitionBy("report_id").orderBy(*first))
    return frame.withColumn("_place", place).where("_place = 1").select("payload", "question")


def _count_partition(batches: Iterator[Any], asked: Sequence[Asked]) -> Iterator[Any]:
    """Count some rows, an Arrow batch at a time: for each question what was found, as one row."""
    import pyarrow as pa

    numbers = {one.question: i for i, one in enumerate(asked)}
    odd: dict[int, Counted] = {}  # rows that cannot be counted at all
    counted = count_shard((*run, None) for batch in batches for run in _runs(batch, asked, numbers, odd))
    names = [column.split()[0] for column in _PARTS.split(", ")]
    rows = [
        (number, one.rows, one.invalid, one.tally.n, one.tally.counts.tobytes())
        for part in (counted, odd)
        for number, one in part.items()
    ]
    kinds = [pa.int32(), pa.int64(), pa.int64(), pa.int64(), pa.binary()]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    yield pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)


def _runs(
    batch: Any, asked: Sequence[Asked], numbers: dict[str, int], odd: dict[int, Counted]
) -> Iterator[tuple[int, Asked, Bytes]]:
    """Stretches of rows of one question."""
    question = np.array([numbers.get(text, _FOREIGN) for text in batch.column("question").to_pylist()])
    for a, b in pairwise([0, *(np.flatnonzero(np.diff(question)) + 1).tolist(), batch.num_rows]):
        if a == b:
            continue
        number = int(question[a])
        one = asked[number] if number >= 0 else None
        payloads = _rows_of(batch.column("payload").slice(a, b - a), one.oracle.report_bytes) if one else None
        if one is None or payloads is None:
            empty = Tally.empty(one.oracle.outcomes if one else 0)
            odd[number] = odd.get(number, Counted(0, 0, empty)) + Counted(b - a, b - a, empty)
            continue
        yield number, one, payloads


def _rows_of(payload: Any, width: int) -> Bytes | None:
    """Binary values of one length as an array, without a copy; ``None`` where one is missing or of another length."""
    offsets = np.frombuffer(payload.buffers()[1], np.int32)[payload.offset : payload.offset + len(payload) + 1]
    if payload.null_count or (np.diff(offsets) != width).any():
        return None
    data = np.frombuffer(payload.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    return data.reshape(len(payload), width)


def _counted(row: Any) -> Counted:
    return Counted(row["rows"], row["invalid"], Tally(row["n"], np.frombuffer(row["counts"], np.int64)))
