"""Tables from wherever they are: arrays, mappings, data frames, CSV, Parquet and .npy files.

Frames and Parquet need the extra ``frames``; nothing of it is imported before it is used. CSV is always read
by the standard library, so that a file means the same whatever is installed.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Schema
from ahead_ldp.schema.arrays import Ints
from ahead_ldp.schema.coding import column_array, encode, object_array

Columns = dict[str, NDArray[Any]]

_ROWS_AT_ONCE = 2**16
_EXTRA = "pip install 'ahead-ldp[frames]'"


def read_columns(source: Any, columns: Sequence[str] | None = None, text: Collection[str] = ()) -> Columns:
    """The columns of a table by name, in the order asked for; all of them where ``columns`` is left out.

    ``source`` is a mapping of arrays, a pandas or Polars frame, an Arrow table, a structured array, a plain
    array of one record per row (then ``columns`` names its columns), or the path of a .csv, .parquet or .npy
    file. Nulls stay: NaN among numbers, NaT among dates, ``None`` among objects. A CSV column whose cells are
    all numbers or empty becomes numbers, unless it is named in ``text``; an empty cell is a null.
    """
    if isinstance(columns, str):
        raise ValueError(f"expected a list of column names, got the text {columns!r}")
    if isinstance(source, str | PathLike):
        return _read_file(Path(fspath(source)), columns, text)
    if isinstance(source, np.ndarray):
        return _from_array(source, columns)
    if isinstance(source, Mapping):
        return {name: column_array(name, source[name]) for name in _chosen(list(source), columns)}
    return _from_frame(source, columns)


def read_codes(source: Any, schema: Schema) -> Ints:
    """The codes (n, m) of the records of a table whose columns carry the names of the attributes."""
    return encode(schema, read_columns(source, schema.names, text=[a.name for a in schema.attributes if a.labels]))


def _chosen(names: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The columns asked for, all of which must be there."""
    if repeated := sorted({str(name) for name in names if names.count(name) > 1}):
        raise ValueError(f"expected columns of different names, got {', '.join(repeated)} more than once")
    if columns is None:
        return list(names)
    if unknown := [name for name in columns if name not in names]:
        raise ValueError(f"expected columns among {', '.join(map(str, names))}, got {', '.join(unknown)}")
    return list(columns)


def _from_array(array: NDArray[Any], columns: Sequence[str] | None) -> Columns:
    if array.dtype.names is not None:
        return {name: column_array(name, array[name]) for name in _chosen(array.dtype.names, columns)}
    if array.ndim not in (1, 2):
        raise ValueError(f"expected an array of one or two dimensions, got {array.ndim}")
    parts = [array] if array.ndim == 1 else list(array.T)
    if columns is None or len(columns) != len(parts):
        got = "none" if columns is None else len(columns)
        raise ValueError(f"expected a name for each of the {len(parts)} columns of the array, got {got}")
    return dict(zip(_chosen(columns, columns), parts, strict=True))


def _from_frame(source: Any, columns: Sequence[str] | None) -> Columns:
    try:
        import narwhals as nw
    except ImportError:
        raise ValueError(f"expected the extra frames for a {type(source).__name__}: {_EXTRA}") from None
    try:
        frame = nw.from_native(source)
    except TypeError:
        raise ValueError(f"expected a mapping, array, frame or path, got a {type(source).__name__}") from None
    table = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    return {name: _from_series(table[name]) for name in _chosen(table.columns, columns)}


def _from_series(series: Any) -> NDArray[Any]:
    import narwhals as nw

    if series.dtype.is_numeric() or series.dtype in (nw.Date, nw.Datetime):
        array: NDArray[Any] = series.to_numpy()
        return array
    return object_array(series.to_list())  # to_numpy fills the nulls of an Arrow dictionary with other categories


def _read_file(path: Path, columns: Sequence[str] | None, text: Collection[str]) -> Columns:
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet", ".npy"):
        raise ValueError(f"expected a file ending in .csv, .parquet or .npy, got {str(path)!r}")
    try:
        if suffix == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as lines:
                names, cells = _read_csv(lines, columns)
            return {name: c if name in text else _guessed(c) for name, c in zip(names, cells, strict=True)}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, error) from None
    return _read_npy(path, columns) if suffix == ".npy" else _read_parquet(path, columns)


def _unreadable(path: Path, error: Exception) -> ValueError:
    return ValueError(f"expected a readable file, got {str(path)!r}: {error}")


def _read_npy(path: Path, columns: Sequence[str] | None) -> Columns:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise _unreadable(path, error) from None
    return _from_array(array, columns)


def _read_parquet(path: Path, columns: Sequence[str] | None) -> Columns:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        return _read_parquet_by_polars(path, columns)
    try:
        with parquet.ParquetFile(path) as file:
            wanted = _chosen(file.schema_arrow.names, columns)
            table = file.read(columns=wanted)
    except (OSError, ArrowException) as error:
        raise _unreadable(path, error) from None
    return _from_frame(table, wanted)


def _read_parquet_by_polars(path: Path, columns: Sequence[str] | None) -> Columns:
    try:
        import polars as pl
    except ImportError:
        raise ValueError(f"expected the extra frames to read the Parquet file {str(path)!r}: {_EXTRA}") from None
    try:
        wanted = _chosen(pl.scan_parquet(path).collect_schema().names(), columns)
        table = pl.read_parquet(path, columns=wanted)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(path, error) from None
    return _from_frame(table, wanted)


def _read_csv(lines: Iterator[str], columns: Sequence[str] | None) -> tuple[list[str], list[NDArray[Any]]]:
    """The cells of the chosen columns as text; fixed-width blocks keep a long file small."""
    rows = csv.reader(lines, strict=True)
    header = next(rows, None)
    if not header:
        raise csv.Error("no header line")
    wanted = _chosen(header, columns)
    places = [header.index(name) for name in wanted]
    blocks: list[list[NDArray[Any]]] = [[np.empty(0, dtype="U1")] for _ in places]
    while block := [row for row in islice(rows, _ROWS_AT_ONCE)]:
        full = [row for row in block if row]
        if ragged := [row for row in full if len(row) != len(header)]:
            number = rows.line_num - len(block) + block.index(ragged[0]) + 1
            raise csv.Error(f"expected {len(header)} cells in line {number}, got {len(ragged[0])}")
        for into, place in zip(blocks, places, strict=True):
            into.append(np.array([row[place] for row in full], dtype=str))
    return wanted, [_nulls(np.concatenate(into)) for into in blocks]


def _nulls(cells: NDArray[Any]) -> NDArray[Any]:
    """Text with ``None`` for empty cells; as it is where none is empty."""
    empty = cells == ""
    if not empty.any():
        return cells
    array = cells.astype(object)
    array[empty] = None
    return array


def _guessed(cells: NDArray[Any]) -> NDArray[Any]:
    """Numbers where every cell is one or empty, else the text."""
    present = cells if cells.dtype != object else cells[cells != None]  # noqa: E711
    if not present.size:
        return cells
    for dtype in (np.int64, np.float64):
        try:
            numbers = present.astype(str).astype(dtype)
        except (ValueError, OverflowError):
            continue
        if present.size == cells.size:
            return numbers
        full = np.full(cells.size, np.nan)
        full[cells != None] = numbers  # noqa: E711
        return full
    return cells
