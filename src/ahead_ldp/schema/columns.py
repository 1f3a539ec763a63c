"""Tables from wherever they are: arrays, mappings, data frames, results of SQL, CSV, Parquet and .npy files.

Frames and Parquet need the extra ``frames``; nothing of it is imported before it is used. CSV is always read
by the standard library, so that a file means the same whatever is installed.
"""

from __future__ import annotations

import csv
import importlib.util
import re
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
from ahead_ldp.schema.fitting import fitted

Columns = dict[str, NDArray[Any]]

_ROWS_AT_ONCE = 2**16
_EXTRA = "pip install 'ahead-ldp[frames]'"


def read_columns(
    source: Any, columns: Sequence[str] | None = None, text: Collection[str] = (), local: Collection[str] = ()
) -> Columns:
    """The columns of a table by name, in the order asked for; all of them where ``columns`` is left out.

    ``source`` is a mapping of columns; a frame of pandas or Polars, eager or lazy, or one Series; an Arrow table; a
    DuckDB relation; any other object with ``__arrow_c_stream__`` or ``__dataframe__``; a cursor or result of SQL; a
    list of rows; a structured array, or a plain array of one record per row; or the path of a .csv, .parquet or .npy
    file. Rows without names, plain arrays and a Series take theirs from ``columns``.

    Nulls stay: NaN among numbers, NaT among dates, ``None`` among objects. A CSV column whose cells are all numbers or
    empty becomes numbers, unless it is named in ``text``; an empty cell is a null. Moments with a zone are given in
    UTC, and those of the columns in ``local`` as the clock in their zone shows.
    """
    if isinstance(columns, str):
        raise ValueError(f"expected a list of column names, got the text {columns!r}")
    if isinstance(source, str | PathLike):
        return _read_file(Path(fspath(source)), columns, text)
    if isinstance(source, np.ndarray):
        return _from_array(source, columns)
    if isinstance(source, Mapping):
        return {name: _column(name, source[name], name in local) for name in _chosen(list(source), columns)}
    if isinstance(source, list | tuple):
        return _from_rows(source, columns)
    if hasattr(source, "fetchall") and (hasattr(source, "description") or hasattr(source, "keys")):
        return _from_sql(source, columns)
    return _from_frame(source, columns, local)


def declared_columns(source: Any, schema: Schema, names: Sequence[str] | None = None) -> Columns:
    """The columns of a table that a schema declares, by attribute, each as its kind takes it (`fitting.fitted`).

    ``names`` are those of the columns, where they differ from the attributes'.
    """
    wanted = list(names or schema.names)
    by_column = dict(zip(wanted, schema.attributes, strict=True))
    text = [name for name, a in by_column.items() if a.labels]
    local = [name for name, a in by_column.items() if a.kind in ("date", "time")]
    columns = read_columns(source, wanted, text, local)
    return {a.name: fitted(a, columns[name]) for name, a in by_column.items()}


def read_codes(source: Any, schema: Schema) -> Ints:
    """The codes (n, m) of the records of a table whose columns carry the names of the attributes."""
    return encode(schema, declared_columns(source, schema))


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


def _from_rows(rows: Sequence[Any], columns: Sequence[str] | None) -> Columns:
    """A list of rows, or the values of a single column."""
    if rows and all(isinstance(row, Mapping) for row in rows):
        names = _chosen(list(dict.fromkeys(name for row in rows for name in row)), columns)
        return {name: object_array([row.get(name) for row in rows]) for name in names}
    if any(isinstance(row, list | tuple | np.ndarray) for row in rows):
        widths = {len(row) if isinstance(row, list | tuple | np.ndarray) else 1 for row in rows}
        if len(widths) > 1:
            raise ValueError(f"expected rows of one length, got lengths {', '.join(map(str, sorted(widths)))}")
        named = _named(columns, widths.pop())
        return {name: object_array([row[i] for row in rows]) for i, name in enumerate(named)}
    return {_named(columns, 1)[0]: object_array(rows)}


def _named(columns: Sequence[str] | None, count: int) -> list[str]:
    if columns is None or len(columns) != count:
        got = "none" if columns is None else ", ".join(columns)
        rule = f"expected a name for each of the {count} columns without names, got {got}"
        raise ValueError(f"{rule}; give a frame or a mapping with one named column for each attribute")
    return _chosen(list(columns), list(columns))


def _from_sql(result: Any, columns: Sequence[str] | None) -> Columns:
    """What a query gave: a cursor of the Python database interface, or a result of SQLAlchemy."""
    names = [d[0] for d in result.description] if getattr(result, "description", None) else list(result.keys())
    wanted, rows = _chosen(names, columns), result.fetchall()
    return {name: object_array([row[names.index(name)] for row in rows]) for name in wanted}


def _column(name: str, values: Any, local: bool) -> NDArray[Any]:
    """One column of a mapping: a Series of any kind, an array or a list."""
    if not isinstance(values, list | tuple | np.ndarray) and importlib.util.find_spec("narwhals"):
        import narwhals as nw

        series = nw.from_native(values, series_only=True, pass_through=True)
        if isinstance(series, nw.Series):
            return _from_series(series, local)
    return column_array(name, values)


def _from_frame(source: Any, columns: Sequence[str] | None, local: Collection[str] = ()) -> Columns:
    try:
        import narwhals as nw
    except ImportError:
        raise ValueError(f"expected the extra frames for a {type(source).__name__}: {_EXTRA}") from None
    frame: Any = nw.from_native(_with_text_names(source), allow_series=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame | nw.Series):
        frame = nw.from_native(_by_protocol(source), eager_only=True)
    if isinstance(frame, nw.Series):
        own = getattr(frame, "name", None)
        name = _named(columns or (None if own is None else [str(own)]), 1)[0]
        return {name: _from_series(frame, name in local)}
    table = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    return {name: _from_series(table[name], name in local) for name in _chosen(table.columns, columns)}


def _with_text_names(source: Any) -> Any:
    """A frame of pandas whose columns are named by numbers, as those of an array are, with the numbers as text."""
    names = list(getattr(source, "columns", ())) if type(source).__module__.startswith("pandas.") else []
    texts = _chosen([str(name) for name in names], None)
    if texts == names:
        return source
    named = source.copy(deep=False)
    named.columns = texts
    return named


def _by_protocol(source: Any) -> Any:
    """The frame of an object that offers its columns to others, as an Arrow table."""
    forms = "a mapping, array, frame, Series, list of rows, SQL result or path"
    if not any(hasattr(source, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__")):
        raise ValueError(f"expected data as {forms}, got a {type(source).__name__}")
    try:
        import pyarrow as pa
        from pyarrow.interchange import from_dataframe
    except ImportError:
        raise ValueError(f"expected the extra frames for a {type(source).__name__}: {_EXTRA}") from None
    try:
        if hasattr(source, "__arrow_c_array__"):
            return pa.table(pa.record_batch(source))
        return pa.table(source) if hasattr(source, "__arrow_c_stream__") else from_dataframe(source)
    except (pa.ArrowException, TypeError, NotImplementedError) as error:
        raise ValueError(f"expected data as {forms}, got a {type(source).__name__}: {error}") from None


def _from_series(series: Any, local: bool = False) -> NDArray[Any]:
    import narwhals as nw

    kind = series.dtype
    if kind == nw.Datetime and kind.time_zone is not None:
        series = (series if local else series.dt.convert_time_zone("UTC")).dt.replace_time_zone(None)
    plain = kind.is_numeric() and kind != nw.Decimal
    if plain or kind in (nw.Date, nw.Datetime, nw.Duration) or (kind == nw.Boolean and not series.is_null().any()):
        return series.to_numpy()
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
    if len(header) == 1 and header[0] not in (columns or header) and (mark := re.search("[;\t]", header[0])):
        raise csv.Error(f"expected commas between the columns, got {mark[0]!r}; save it with commas, numbers like 0.5")
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
