"""People from files: where the data lie, which file serves, and the population under the paper's buckets.

The paper prints no formula. ``floor((x - min) / (max - min) * (D - 1))``, with 0 for missing values and the bounds of
the whole column, gives the correlations of its Tables 4 and 5 to all printed digits on the first 1,000 rows. The last
bucket then holds the maximum alone. Such bounds are read from the data: for experiments, never for a collection.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.engines.simulation import Population, is_counted
from ahead_ldp.research.datasets.crowds import Crowd, small_type
from ahead_ldp.research.datasets.tables import DATASETS, Dataset, Source
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.columns import read_columns

VARIABLE = "AHEAD_DATA"
_CHECKOUT = Path(__file__).resolve().parents[4]


def paper_buckets(values: NDArray[Any], d: int) -> Ints:
    """Codes 0..d-1 of a column by the paper's rule."""
    x = np.nan_to_num(numbers(values), nan=0.0)
    low, high = float(x.min()), float(x.max())
    if not high > low:
        return np.zeros(x.size, np.int64)
    return np.floor((x - low) / (high - low) * (d - 1)).astype(np.int64)


def equal_slots(values: NDArray[Any], low: float, high: float, d: int) -> Ints:
    """Codes 0..d-1 of the values in low..high, d slots of one length; the others are dropped."""
    x = numbers(values)
    x = x[(x >= low) & (x <= high)]
    return np.minimum(np.floor((x - low) / (high - low) * d), d - 1).astype(np.int64)


def numbers(values: NDArray[Any]) -> Floats:
    """A column as numbers; what is none ("Not Provided", an empty cell) is NaN."""
    if values.dtype.kind in "iuf":
        return np.asarray(values, np.float64)
    parsed = np.full(values.size, np.nan)
    for i, value in enumerate(values.tolist()):
        try:
            parsed[i] = float(value)
        except (TypeError, ValueError):
            continue
    return parsed


class MissingData(ValueError):
    """A data set of which no file is in the data folder; says how to get it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """People of a real data set, and what the caption must say of them."""

    people: Population
    source: Source
    file: Path

    @property
    def note(self) -> str:
        """Empty for the paper's own data."""
        return f"stand-in: {self.source.stand_in}" if self.source.stand_in else ""


def data_folder() -> Path:
    """``AHEAD_DATA``, else ``../shared/data`` seen from here or from the source tree, else ``data`` here."""
    if given := os.environ.get(VARIABLE):
        return Path(given)
    near = [Path("../shared/data"), _CHECKOUT.parent / "shared" / "data"]
    return next((folder for folder in near if folder.is_dir()), Path("data"))


def dataset(name: str) -> Dataset:
    """The real data set of this name."""
    if name not in DATASETS:
        raise ValueError(f"expected a data set among {', '.join(DATASETS)}, got {name!r}")
    return DATASETS[name]


def find_source(wanted: Dataset, columns: Sequence[str], folder: Path | None = None) -> tuple[Source, Path]:
    """The best source in the folder that has these columns."""
    where = data_folder() if folder is None else folder
    for source in wanted.sources:
        path = where / source.file
        if set(columns) <= set(source.columns) and path.is_file():
            return source, path
    if unknown := [name for name in columns if name not in wanted.columns]:
        raise ValueError(
            f"expected columns of {wanted.name} among {', '.join(wanted.columns)}, got {', '.join(unknown)}"
        )
    files = " or ".join(s.file for s in wanted.sources if set(columns) <= set(s.columns))
    raise MissingData(f"{wanted.title} is not in {str(where)!r} ({files}); {wanted.obtain}")


def load(name: str, columns: Sequence[str], sizes: Sequence[int], rng: Generator, n: int | None = None) -> Sample:
    """People of a real data set, ``n`` of them drawn if given; stand-ins are drawn up to the paper's number.

    Drawn without replacement where the file has as many, else with.
    """
    known = dataset(name)
    source, path = find_source(known, columns)
    sizes = tuple(sizes)
    if len(sizes) != len(columns):
        raise ValueError(f"expected a size for each of {len(columns)} columns, got {len(sizes)}")
    if source.counts:
        return Sample(_from_counts(source, path, sizes, n, rng), source, path)
    rows = _codes(str(path), path.stat().st_mtime_ns, name, source.file, tuple(columns), sizes)
    wanted = n if n is not None else known.users if source.resampled else len(rows)
    return Sample(population_of(drawn(rows, wanted, rng), sizes), source, path)


@lru_cache(maxsize=4)
def _codes(path: str, _changed: int, name: str, file: str, columns: tuple[str, ...], sizes: tuple[int, ...]) -> Any:
    """The rows of a file in buckets, (n, m); read once."""
    known = dataset(name)
    source = next(s for s in known.sources if s.file == file)
    names = [source.columns[column] for column in columns]
    extra = [source.keep[0]] if source.keep else []
    table = read_columns(path, [*names, *(e for e in extra if e not in names)])
    values = np.stack([numbers(table[name]) for name in names], axis=1)
    if source.keep:
        values = values[numbers(table[source.keep[0]]) == source.keep[1]]
    values = values[~np.isnan(values).all(axis=1)]  # lines of totals at the end of a file
    if known.within:
        coded = [equal_slots(values[:, 0], *known.within, sizes[0])]
    else:
        coded = [paper_buckets(values[:, j], d) for j, d in enumerate(sizes)]
    return np.stack(coded, axis=1).astype(small_type(sizes))


def drawn(rows: NDArray[Any], n: int, rng: Generator) -> NDArray[Any]:
    """So many of the rows: all, or some without replacement, or with where there are not as many."""
    if n == len(rows):
        return rows
    chosen = rng.choice(len(rows), n, replace=False) if n < len(rows) else rng.integers(0, len(rows), n)
    return rows[chosen]


def population_of(rows: NDArray[Any], sizes: tuple[int, ...]) -> Population:
    """Counted by cell where that is smaller, which changes no law."""
    return Population.of_records(rows, sizes).counted() if is_counted(sizes, len(rows)) else Crowd.of(rows, sizes)


def _from_counts(source: Source, path: Path, sizes: tuple[int, ...], n: int | None, rng: Generator) -> Population:
    """A stored histogram, neighbouring bins added up; drawn to n people if given."""
    if len(sizes) == 1:
        fine = read_columns(path, [source.counts])[source.counts].astype(np.int64)
    else:
        table = read_columns(path)
        mine = table["dataset"] == source.counts
        fine = np.zeros((256, 256), np.int64)
        np.add.at(fine, (table["i"][mine].astype(int), table["j"][mine].astype(int)), table["count"][mine])
    if any(whole % d for whole, d in zip(fine.shape, sizes, strict=True)):
        raise ValueError(f"expected sizes that divide {fine.shape}, got {sizes}")
    for axis, d in enumerate(sizes):
        fine = np.add.reduceat(fine, np.arange(0, fine.shape[axis], fine.shape[axis] // d), axis=axis)
    if n is not None and n != fine.sum():
        fine = rng.multinomial(n, fine.reshape(-1) / fine.sum()).reshape(sizes)
    return Population.of_histogram(fine)
