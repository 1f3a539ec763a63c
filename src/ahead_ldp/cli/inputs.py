"""What the options name: schemas, records, histograms, queries. Everything refused is a ValueError of one line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.cli import printing
from ahead_ldp.cli.options import Declared, Source
from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.device.epsilon import epsilon_text, new_epsilon
from ahead_ldp.engines import archive, campaigns, layout
from ahead_ldp.engines import runs as stored
from ahead_ldp.engines.api import codes_of
from ahead_ldp.estimates.answers import Kind
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms import Reading, UnknownVersion
from ahead_ldp.protocol.session import ReplayMismatch
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.attributes import as_schema, load_schema, real
from ahead_ldp.schema.attributes import codes as coded
from ahead_ldp.schema.columns import Columns, declared_columns, read_columns
from ahead_ldp.schema.workloads import Workload


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """A table under a schema, and where the schema's bounds are from: "declared", "codes" or "data"."""

    schema: Schema
    columns: Columns
    bounds: str

    @property
    def codes(self) -> Ints:
        """One row of codes per person."""
        return codes_of(self.schema, self.columns, clips=False)


@contextmanager
def replaying(what: str, wanted: str, way_out: str = "--reading stored") -> Iterator[None]:
    """A refusal in one line, with the ways out, where this program does not ask the stored questions."""
    try:
        yield
    except (ReplayMismatch, UnknownVersion) as error:
        raise ValueError(
            f"the stored {what} does not replay, nothing is {wanted}: {error}; use the program that made it, or take "
            f"the stored questions as they are, without their method, by {way_out}"
        ) from error


def reading(text: str | None) -> Reading:
    """How tallies are to be read: by the version that they name, or by another."""
    if text is None:
        return None
    if text == "newest":
        return "newest"
    if text == "stored":
        return "stored"
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"expected a number, newest or stored for --reading, got {text!r}")
    return int(text)


def read_estimate(path: Path) -> Estimate:
    """The estimate of a collected run, of a campaign in batch so far, or of a file."""
    if not path.is_dir():
        return archive.load(path)
    with replaying("run", "answered"):
        if (path / layout.ESTIMATE).exists():
            return stored.read_run(path)
        return campaigns.read_estimate(path)[0]


def about(directory: Path, estimate: Estimate) -> dict[str, Any]:
    """Where an estimate comes from."""
    origin = estimate.provenance
    assert origin is not None
    numbers = {"epsilon": float(origin.epsilon), "people": origin.people}
    return {"run": str(directory), "method": origin.method, **numbers}


def summary(estimate: Estimate, last: str, kind: Kind | None = None) -> Iterator[str]:
    """What an estimate says in short, worked out when it is printed, and a last line."""
    yield estimate.summary(kind=kind)
    yield last


def split(text: str, option: str) -> list[str]:
    """The entries of a list with commas, in order, each once."""
    entries = [entry.strip() for entry in text.split(",")]
    if not all(entries) or len(set(entries)) != len(entries):
        raise ValueError(f"expected different entries, with commas between them, for {option}, got {text!r}")
    return entries


def names_of(columns: str | None) -> list[str] | None:
    """The names of --columns, if they were given."""
    return None if columns is None else split(columns, "--columns")


def epsilon(text: str | float) -> str:
    """The privacy parameter of something new, as it travels."""
    return epsilon_text(new_epsilon(text))


def epsilons(text: str) -> list[str]:
    """Different privacy parameters, as they travel."""
    return split(",".join(epsilon(entry) for entry in split(text, "--epsilon")), "--epsilon")


def declared_schema(declared: Declared) -> Schema | None:
    """The schema that was declared by text or by a file, if any."""
    if declared.attribute and declared.schema:
        raise ValueError("expected --attribute or --schema, got both")
    if declared.schema is not None:
        return load_schema(declared.schema)
    return as_schema(declared.attribute) if declared.attribute else None


def read_records(path: Path, source: Source, declared: Schema | None) -> Records:
    """The records of a file under the declared schema, as codes, or with bounds from the data themselves."""
    names = names_of(source.columns)
    if declared is not None:
        if source.codes or source.buckets:
            raise ValueError("expected --attribute or --schema, or else --buckets; got both")
        return Records(declared, _declared_columns(path, names, declared), "declared")
    columns = read_columns(path, names or _array_names(path))
    counts = bucket_counts(source.buckets, len(columns))
    if source.codes:
        return Records(_coded(columns, counts), columns, "codes")
    schema = Schema(tuple(_between(name, columns[name], d) for name, d in zip(columns, counts, strict=True)))
    printing.note("note: bounds were read from the data, which is not private: for experiments only")
    return Records(schema, columns, "data")


def _coded(names: Iterable[str], sizes: Iterable[int]) -> Schema:
    return Schema(tuple(coded(name, d) for name, d in zip(names, sizes, strict=True)))


def _declared_columns(path: Path, names: list[str] | None, declared: Schema) -> Columns:
    if names is not None and len(names) != len(declared.names):
        raise ValueError(f"expected {len(declared.names)} names in --columns, one per attribute, got {len(names)}")
    return declared_columns(path, declared, names)


def _array_names(path: Path) -> list[str] | None:
    """Names for the columns of a plain .npy array: a1, a2, ...; other files have their own."""
    if path.suffix.lower() != ".npy":
        return None
    array = load_array(path)
    if array.dtype.names is not None:
        return None
    return [f"a{i + 1}" for i in range(1 if array.ndim == 1 else array.shape[-1])]


def _between(name: str, column: NDArray[Any], buckets: int) -> Attribute:
    if column.dtype.kind not in "iuf":
        raise ValueError(f"expected numbers in the column {name} to find its bounds: declare it with --attribute")
    present = column[np.isfinite(column)]
    if not present.size:
        raise ValueError(f"expected numbers in the column {name} to find its bounds, got none")
    lo, hi = float(present.min()), float(present.max())
    return real(name, lo, hi if hi > lo else lo + 1.0, buckets)


def whole_numbers(entries: list[str], option: str) -> list[int]:
    """Numbers, none below 1."""
    text = ",".join(entries)
    try:
        numbers = [int(entry) for entry in entries]
    except ValueError:
        raise ValueError(f"expected whole numbers for {option}, got {text!r}") from None
    if min(numbers) < 1:
        raise ValueError(f"expected {option} >= 1, got {text!r}")
    return numbers


def bucket_counts(text: str | None, columns: int) -> list[int]:
    """The codes of each column, from one number for all or one for each."""
    if text is None:
        raise ValueError("expected --buckets where no attribute is declared by --attribute or --schema")
    counts = whole_numbers(text.split(","), "--buckets")
    if len(counts) not in (1, columns):
        raise ValueError(f"expected one number of buckets, or {columns}, for --buckets, got {len(counts)}")
    return counts * columns if len(counts) == 1 else counts


def read_histogram(path: Path, source: Source, declared: Schema | None) -> tuple[Schema, Ints]:
    """Counts over all combinations of codes, and their schema; without a declared one, plain codes."""
    names = names_of(source.columns)
    array = load_array(path) if path.suffix.lower() == ".npy" else _csv_histogram(path, source.buckets)
    if array.dtype.kind not in "iuf" or array.ndim == 0 or not np.isfinite(array).all():
        raise ValueError(f"expected a histogram of counts in {str(path)!r}, got {array.dtype} of shape {array.shape}")
    counts = np.rint(array).astype(np.int64)
    if (counts < 0).any() or (counts != array).any() or not counts.any():
        raise ValueError(f"expected whole counts >= 0, not all 0, in the histogram {str(path)!r}")
    if declared is None:
        names = names or [f"a{i + 1}" for i in range(counts.ndim)]
        if len(names) != counts.ndim:
            raise ValueError(f"expected {counts.ndim} names in --columns, one per axis, got {len(names)}")
        declared = _coded(names, counts.shape)
    wanted = declared.sizes if source.buckets is None else tuple(bucket_counts(source.buckets, counts.ndim))
    if not counts.shape == declared.sizes == wanted:
        raise ValueError(f"expected a histogram of shape {wanted}, got {counts.shape} in {str(path)!r}")
    return declared, counts


def _csv_histogram(path: Path, buckets: str | None) -> NDArray[Any]:
    """One column or row of counts; a matrix of two attributes; or codes and a last column named count."""
    head, cells = _numbers(path)
    if head is None or head[-1] != "count" or len(head) == 1:
        return cells.reshape(-1) if 1 in cells.shape else cells
    codes = cells[:, :-1].astype(np.int64)
    if (codes != cells[:, :-1]).any() or (codes < 0).any():
        raise ValueError(f"expected whole codes >= 0 before the count in {str(path)!r}")
    largest = (codes.max(axis=0) + 1).tolist()
    sizes = tuple(largest if buckets is None else bucket_counts(buckets, codes.shape[1]))
    if any(needed > size for needed, size in zip(largest, sizes, strict=True)):
        raise ValueError(f"expected codes below {sizes} in {str(path)!r}")
    histogram = np.zeros(sizes)
    np.add.at(histogram, tuple(codes.T), cells[:, -1])
    return histogram


def read_queries(path: Path, schema: Schema) -> Workload:
    """Closed ranges of codes: lo and hi of every attribute in each row, with or without a header line."""
    if path.suffix.lower() == ".npy":
        return Workload.from_codes(schema, load_array(path))
    return Workload.from_codes(schema, _numbers(path)[1])


def load_array(path: Path) -> NDArray[Any]:
    """The array of a .npy file."""
    try:
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"expected a readable .npy file, got {str(path)!r}: {error}") from None
    return array


def _numbers(path: Path) -> tuple[list[str] | None, Floats]:
    """The header of a .csv file of numbers, if it has one, and its rows."""
    if path.suffix.lower() != ".csv":
        raise ValueError(f"expected a file ending in .csv or .npy, got {str(path)!r}")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"expected a readable file, got {str(path)!r}: {error}") from None
    head = rows.pop(0) if rows and not all(map(_is_number, rows[0])) else None
    if not rows or len(set(map(len, rows))) > 1 or not all(_is_number(cell) for row in rows for cell in row):
        raise ValueError(f"expected rows of the same number of numbers in {str(path)!r}")
    return head, np.array(rows, dtype=np.float64)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
