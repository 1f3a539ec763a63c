"""The front door: from data and a schema to an estimate in one call."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ahead_ldp.coding import encode
from ahead_ldp.collection import Person, Progress, run_collection
from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.device.epsilon import exact_epsilon
from ahead_ldp.estimates import Estimate, RandomState
from ahead_ldp.mechanisms import MECHANISMS, mechanism_class
from ahead_ldp.progress import Bar
from ahead_ldp.protocol import Mechanism
from ahead_ldp.schema import as_schema
from ahead_ldp.simulation import Population, run_simulation
from ahead_ldp.tables import read_columns

Epsilon = float | str | Fraction
Declared = Schema | Attribute | str | Sequence[Attribute | str]


def simulate(
    data: Any = None,
    schema: Declared = (),
    *,
    epsilon: Epsilon | None = None,
    method: str | Mechanism | None = None,
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
    if (data is None) == (histogram is None):
        raise ValueError(f"expected either data or a histogram, got {'none' if data is None else 'both'}")
    if histogram is not None:
        people = Population.of_histogram(np.asarray(histogram))
    else:
        people = Population.of_records(encode(declared, _columns(data, declared)), declared.sizes)
    known = people.n if users is None else users
    mechanism = make_mechanism(method, declared, epsilon, known, paper=paper, **choices)
    return run_simulation(mechanism, declared, people, np.random.default_rng(random_state))


def collect(
    data: Any,
    schema: Declared,
    *,
    epsilon: Epsilon | None = None,
    method: str | Mechanism | None = None,
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
    mechanism = make_mechanism(method, declared, epsilon, users or len(people), paper=paper, **choices)
    if callable(progress) or progress is False:
        return run_collection(mechanism, declared, people, progress or None).estimate
    with Bar("collecting") as bar:
        return run_collection(mechanism, declared, people, bar).estimate


def default_method(schema: Schema, paper: bool = False) -> str:
    """The method taken where none is named: "adaptive" for one attribute, "fused" for more.

    ``paper`` asks for the AHEAD paper's own: one tree for one or two attributes, pairs of attributes for more.
    """
    several = len(schema.attributes)
    published = ("ahead",) if several <= 2 else ("lle", "ahead")
    wanted = published if paper else ("adaptive" if several == 1 else "fused", *published)
    return next(name for name in wanted if name in MECHANISMS)


def make_mechanism(
    method: str | Mechanism | None,
    schema: Declared,
    epsilon: Epsilon | None = None,
    users: int | None = None,
    paper: bool = False,
    **choices: Any,
) -> Mechanism:
    """The method of this name with its choices, or the given one, if it takes these attributes.

    ``users``, the number of people expected, goes to methods that plan with it; ``paper`` takes the settings of the
    method's own paper where they differ from the default.
    """
    declared = as_schema(schema)
    if isinstance(method, Mechanism):
        return _given(method, declared, epsilon, {**choices, **({"paper": True} if paper else {})})
    name = default_method(declared, paper) if method is None else method
    cls = mechanism_class(name)
    _check_attributes(cls, declared)
    if epsilon is None:
        raise ValueError("expected epsilon > 0, got none")
    exact_epsilon(epsilon)
    fields = {f.name for f in dataclasses.fields(cls)} - {"epsilon"}
    if unknown := sorted(set(choices) - fields):
        known = ", ".join(sorted(fields)) or "none"
        raise ValueError(f"expected choices of the method {name} among {known}, got {', '.join(unknown)}")
    if users is not None and "users" in fields:
        choices.setdefault("users", users)
    make: Any = getattr(cls, "paper", None) if paper else None
    if make is None:
        return cls(epsilon=epsilon, **choices)
    return dataclasses.replace(make(epsilon=epsilon), **choices)


def _given(method: Mechanism, schema: Schema, epsilon: Epsilon | None, choices: dict[str, Any]) -> Mechanism:
    _check_attributes(type(method), schema)
    if choices:
        raise ValueError(f"expected no choices beside a method that has them, got {', '.join(sorted(choices))}")
    if epsilon is not None and exact_epsilon(epsilon) != exact_epsilon(method.epsilon):
        raise ValueError(f"expected epsilon to be the method's, {method.epsilon}, got {epsilon!r}")
    return method


def _check_attributes(cls: type[Mechanism], schema: Schema) -> None:
    most, count = cls.most_attributes, len(schema.attributes)
    if most is not None and count > most:
        at_most = f"at most {most} attribute{'s' if most > 1 else ''}"
        raise ValueError(f"expected {at_most} for the method {cls.name}, got {count}")


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
