"""The front door: from data and a schema to an estimate in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.engines.collection import Person, Progress, run_collection
from ahead_ldp.engines.progress import Bar
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.estimate import Estimate, RandomState
from ahead_ldp.mechanisms import Declared, Epsilon, make_mechanism
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.coding import encode
from ahead_ldp.schema.columns import read_columns


def simulate(
    data: Any = None,
    schema: Declared = (),
    *,
    epsilon: Epsilon | None = None,
    method: str | type[Mechanism] | Mechanism | None = None,
    histogram: Any = None,
    users: int | None = None,
    paper: bool = False,
    random_state: RandomState = None,
    **choices: Any,
) -> Estimate:
    """The estimate that a method would give if everybody in ``data`` took part, sampled from its exact law.

    ``data`` is an array, a mapping of columns, a pandas or Polars frame, an Arrow table, or the path of a .csv,
    .parquet or .npy file; or instead of it ``histogram``, counts over all combinations of codes, so that millions of
    people cost nothing. ``schema`` declares the attributes: a `Schema`, attributes, or texts such as
    ``"pay=real,0,500000,512"``. ``method``, ``users`` (as the method is told; left out, the true number), ``paper`` and
    ``choices`` are those of `make_mechanism`.
    """
    declared = as_schema(schema)
    people = population(data, declared, histogram)
    known = people.n if users is None else users
    mechanism = make_mechanism(method, declared, epsilon, known, paper=paper, **choices)
    return run_simulation(mechanism, declared, people, np.random.default_rng(random_state))


def population(data: Any, schema: Schema, histogram: Any = None) -> Population:
    """The people of some data, or of counts over all combinations of codes."""
    if (data is None) == (histogram is None):
        raise ValueError(f"expected either data or a histogram, got {'none' if data is None else 'both'}")
    if histogram is not None:
        return Population.of_histogram(np.asarray(histogram))
    return Population.of_records(encode(schema, _columns(data, schema)), schema.sizes)


def collect(
    data: Any,
    schema: Declared,
    *,
    epsilon: Epsilon | None = None,
    method: str | type[Mechanism] | Mechanism | None = None,
    users: int | None = None,
    paper: bool = False,
    progress: Progress | bool | None = None,
    **choices: Any,
) -> Estimate:
    """The estimate from real reports: every row answers as a device would, through the wire form.

    Groups and noise come from the operating system, so two collections differ and no seed is taken. ``progress`` is a
    function of what is done and what there is to do, or False for none; left out, a bar appears on standard error
    when it takes longer than two seconds. The rest is as for `simulate`.
    """
    declared = as_schema(schema)
    people = People.of(_columns(data, declared), declared)
    mechanism = make_mechanism(method, declared, epsilon, users or len(people) or None, paper=paper, **choices)
    if callable(progress) or progress is False:
        return run_collection(mechanism, declared, people, progress or None).finish()
    with Bar("collecting") as bar:
        return run_collection(mechanism, declared, people, bar).finish()


def _columns(data: Any, schema: Schema) -> dict[str, NDArray[Any]]:
    if isinstance(data, list | tuple):
        data = np.asarray(data) if len(schema.names) > 1 else {schema.names[0]: data}
    return read_columns(data, schema.names, text=[a.name for a in schema.attributes if a.labels])


@dataclass(frozen=True, slots=True, eq=False)
class People(Sequence[Person]):
    """The rows of a table, each as its owner's device holds it: plain values by name, ``None`` for a missing one."""

    columns: dict[str, list[object]]
    n: int

    @classmethod
    def of(cls, columns: dict[str, NDArray[Any]], schema: Schema) -> People:
        """Rows of columns that the schema can code; values that it refuses are named before anybody is asked."""
        n = len(encode(schema, columns))
        return cls({a.name: _plain(a, columns[a.name]) for a in schema.attributes}, n)

    def __len__(self) -> int:
        return self.n

    @overload
    def __getitem__(self, i: int) -> Person: ...
    @overload
    def __getitem__(self, i: slice) -> list[Person]: ...
    def __getitem__(self, i: int | slice) -> Person | list[Person]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(self.n))]
        return {name: column[i] for name, column in self.columns.items()}


def _plain(attribute: Attribute, column: NDArray[Any]) -> list[object]:
    """A column as values of the standard library, which is what a device knows."""
    if column.dtype.kind == "M":
        unit = "datetime64[D]" if attribute.kind == "date" else "datetime64[s]"
        return list(column.astype(unit).tolist())
    values = np.ma.asarray(column).tolist(None) if np.ma.isMaskedArray(column) else column.tolist()
    return [_value(attribute, v) for v in values]


def _value(attribute: Attribute, value: Any) -> object:
    if value is None or value != value:
        return None
    if attribute.kind == "integer" and isinstance(value, float):
        return int(value)  # whole, or `encode` had refused it
    if isinstance(value, np.datetime64):
        return _value(attribute, value.astype("datetime64[s]").item())
    return value
