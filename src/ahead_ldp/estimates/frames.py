"""Columns as data frames: in the library that somebody asked for, or in the one that their data came in."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.estimates.bands import Kind

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    Frame: TypeAlias = pandas.DataFrame | polars.DataFrame | pyarrow.Table | dict[str, NDArray[Any]]

Backend = Literal["pandas", "polars", "arrow", "dict"]
Columns = dict[str, NDArray[Any]]
BACKENDS = ("pandas", "polars", "arrow", "dict")


def backend_of(data: Any) -> Backend | None:
    """The library that data came in; None where they came in none, such as a list or a file."""
    package = type(data).__module__.partition(".")[0]
    names: dict[str, Backend] = {"pandas": "pandas", "polars": "polars", "pyarrow": "arrow", "duckdb": "arrow"}
    return names.get(package)


def frame(columns: Mapping[str, NDArray[Any]], backend: Backend | None = None) -> Frame:
    """Columns as a frame of pandas or Polars, whichever is installed, or as named; a dict without either.

    "arrow" is an Arrow table, "dict" a dict of arrays.
    """
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"expected backend to be one of {', '.join(BACKENDS)} or None, got {backend!r}")
    chosen = backend or next((name for name in ("pandas", "polars") if importlib.util.find_spec(name)), "dict")
    if chosen == "pandas":
        import pandas as pd

        return pd.DataFrame(dict(columns))
    if chosen == "polars":
        import polars as pl

        return pl.DataFrame({name: _for_polars(column) for name, column in columns.items()})
    if chosen == "arrow":
        import pyarrow as pa

        return pa.table({name: _for_arrow(column) for name, column in columns.items()})
    return dict(columns)


def _for_polars(column: NDArray[Any]) -> Any:
    if column.dtype.kind == "m":
        return column.astype("timedelta64[ms]")
    if column.dtype.kind == "M" and np.datetime_data(column.dtype)[0] == "s":
        return column.astype("datetime64[ms]")
    return column.tolist() if column.dtype == object else column


def _for_arrow(column: NDArray[Any]) -> Any:
    return column.tolist() if column.dtype == object else column


class Framed:
    """What has columns and can be a data frame."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def backend(self) -> Backend | None:
            """The library of frames, where none is named."""

        def columns(self, level: float = 0.95, kind: Kind | None = None) -> Columns:
            """The columns by name."""

    @overload
    def to_frame(self, backend: Literal["pandas"], level: float = 0.95, kind: Kind | None = None) -> pandas.DataFrame:
        """With pandas."""

    @overload
    def to_frame(self, backend: Literal["polars"], level: float = 0.95, kind: Kind | None = None) -> polars.DataFrame:
        """With Polars."""

    @overload
    def to_frame(self, backend: Literal["arrow"], level: float = 0.95, kind: Kind | None = None) -> pyarrow.Table:
        """As a table of Arrow."""

    @overload
    def to_frame(self, backend: Literal["dict"], level: float = 0.95, kind: Kind | None = None) -> Columns:
        """As plain arrays by name."""

    @overload
    def to_frame(self, backend: None = None, level: float = 0.95, kind: Kind | None = None) -> Frame:
        """In the library that the data came in, else in one that is installed."""

    def to_frame(self, backend: Backend | None = None, level: float = 0.95, kind: Kind | None = None) -> Frame:
        """The columns as a frame: in the library named, else in that of the data, else pandas, Polars or a dict."""
        return frame(self.columns(level, kind), backend or self.backend)
