"""Reports that came twice, found by Spark: ids and hashes are shuffled, payloads never."""

from __future__ import annotations

from typing import Any

import numpy as np

from ahead_ldp.engines.dedup import LeftOut, packed_rows
from ahead_ldp.engines.spark_session import on_tables

_BITS = "file int, copies long, conflicts long, bits binary"


def find_copies(frame: Any) -> tuple[LeftOut, int, int]:
    """What to leave out of rows (report_id, payload, question, file, row), and how many are copies or in conflict.

    The driver holds one bit per report, for the files that have something to leave out.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    place = F.struct("file", "row")
    slim = frame.select(
        "report_id", F.sha2(F.concat(F.encode("question", "UTF-8"), "payload"), 256).alias("hash"), "file", "row"
    )
    same = Window.partitionBy("report_id")
    told = slim.select(
        "file",
        "row",
        (F.min("hash").over(same) != F.max("hash").over(same)).alias("conflict"),
        (F.min(place).over(same) == place).alias("first"),
    )
    dropped = told.where("conflict OR NOT first").select("file", "row", "conflict")
    bits, copies, conflicts = {}, 0, 0
    for row in dropped.groupBy("file").applyInArrow(on_tables(_pack), _BITS).collect():
        bits[row["file"]] = np.frombuffer(row["bits"], np.uint8)
        copies, conflicts = copies + row["copies"], conflicts + row["conflicts"]
    return LeftOut(bits), copies, conflicts


def _pack(table: Any) -> Any:
    """The rows of one file to leave out, as bits."""
    import pyarrow as pa

    rows, conflict = table.column("row").to_numpy(), table.column("conflict").to_numpy()
    file, differing = table.column("file")[0].as_py(), int(conflict.sum())
    types = [pa.int32(), pa.int64(), pa.int64(), pa.binary()]
    values = [file, len(rows) - differing, differing, packed_rows(rows).tobytes()]
    arrays = [pa.array([value], kind) for value, kind in zip(values, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=["file", "copies", "conflicts", "bits"])
