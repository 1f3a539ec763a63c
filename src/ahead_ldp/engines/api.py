"""The front door: from data and a schema to an estimate in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.engines.collection import Person, Progress, run_collection
from ahead_ldp.engines.progress import Bar
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.estimate import Estimate, Seed
from ahead_ldp.estimates.frames import backend_of
from ahead_ldp.estimates.showing import generator, seeded
from ahead_ldp.mechanisms import Declared, Epsilon, make_mechanism
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.schema.arrays import Ints
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.coding import ColumnRefused, declared_range, encode
from ahead_ldp.schema.columns import Columns, declared_columns
from ahead_ldp.schema.fitting import clipped

_STREAM = 0x61686561  # unit: which of the streams of a number is ours, "ahea" in ASCII
_WAYS_OUT = {
    "outside": "; declare a wider range than {range}",
    "missing": "; declare missing=cell, which gives them a cell of their own, or leave these rows out",
    "categories": "; declare every category (now {range}), or leave these rows out",
    "finite": "; replace them by a number or by a missing value",
    "kind": "; convert the column, or declare another kind",
}
_MOST_CODES = 2**20  # of an attribute for the default, which took 4.8 GB with a million and 2.7 GB with half of it
_CLIP = ", or count them at its ends with clip=True"


@seeded
def simulate(
    data: Any = None,
    schema: Declared = (),
    *,
    epsilon: Epsilon | None = None,
    method: str | type[Mechanism] | Mechanism | None = None,
    histogram: Any = None,
    users: int | None = None,
    paper: bool = False,
    clip: bool = False,
    seed: Seed = None,
    **choices: Any,
) -> Estimate:
    """The estimate that a method would give if everybody in ``data`` took part, sampled from its exact law.

    ``data`` is an array, a list, a mapping of columns, a pandas or Polars frame or Series, an Arrow table, whatever
    else `read_columns` takes, or the path of a .csv, .parquet or .npy file; or instead of it ``histogram``, counts over
    all combinations of codes, so that millions of people cost nothing. ``schema`` declares the attributes: a `Schema`,
    attributes, or texts such as ``"pay=real,0,500000,512"``. ``clip`` counts values beyond the declared range at its
    nearer end; ``estimate.clipped`` says how many. ``method``, ``users`` (as the method is told; left out, the true
    number), ``paper`` and ``choices`` are those of `make_mechanism`. The same ``seed`` gives the same estimate.
    """
    declared = as_schema(schema)
    _check_codes(declared, method)
    people, moved = _people(data, declared, histogram, clip)
    known = people.n if users is None else users
    mechanism = make_mechanism(method, declared, epsilon, known, paper=paper, **choices)
    estimate = run_simulation(mechanism, declared, people, _own_generator(seed))
    return estimate.came_from(backend_of(data), moved)


def _check_codes(schema: Schema, method: object) -> None:
    """Refuse what the default would fill all memory with, such as whole numbers up to a billion without buckets."""
    for a in schema.attributes if method is None else ():
        if a.size > _MOST_CODES:
            raise ValueError(
                f"expected at most {_MOST_CODES:,} codes of an attribute where no method is named, got {a.size:,} of"
                f" {a.name}: declare a number of buckets, such as 512, or name a method for long ranges, such as ahead"
            )


def _own_generator(seed: Seed) -> Generator:
    """A generator that has nothing to do with ``default_rng`` of the same number.

    People are often made with that one. Then their values and their groups would be made of the same random numbers:
    whoever has a large value would be in the last groups.
    """
    if isinstance(seed, int | np.integer) and seed >= 0:
        return np.random.default_rng(SeedSequence(int(seed), spawn_key=(_STREAM,)))
    return generator(seed)


def population(data: Any, schema: Schema, histogram: Any = None) -> Population:
    """The people of some data, or of counts over all combinations of codes."""
    return _people(data, schema, histogram)[0]


def _people(data: Any, schema: Schema, histogram: Any, clip: bool | None = None) -> tuple[Population, dict[str, int]]:
    """People, and how many of their values were moved to an end of the range; None: the caller has no such choice."""
    if (data is None) == (histogram is None):
        raise ValueError(f"expected either data or a histogram, got {'none' if data is None else 'both'}")
    if histogram is not None:
        return Population.of_histogram(np.asarray(histogram)), {}
    columns, moved = _columns(data, schema, bool(clip))
    return Population.of_records(codes_of(schema, columns, clips=clip is not None), schema.sizes), moved


def collect(
    data: Any,
    schema: Declared,
    *,
    epsilon: Epsilon | None = None,
    method: str | type[Mechanism] | Mechanism | None = None,
    users: int | None = None,
    paper: bool = False,
    clip: bool = False,
    progress: Progress | bool | None = None,
    **choices: Any,
) -> Estimate:
    """The estimate from real reports: every row answers as a device would, through the wire form.

    Groups and noise come from the operating system, so two collections differ and no seed is taken. ``progress`` is a
    function of what is done and what there is to do, or False for none; left out, a bar appears on standard error
    when it takes longer than two seconds. The rest is as for `simulate`.
    """
    declared = as_schema(schema)
    _check_codes(declared, method)
    columns, moved = _columns(data, declared, clip)
    people = People.of(columns, declared, clips=True)
    known = (len(people) or None) if users is None else users
    mechanism = make_mechanism(method, declared, epsilon, known, paper=paper, **choices)
    if callable(progress) or progress is False:
        estimate = run_collection(mechanism, declared, people, progress or None).finish()
    else:
        with Bar("collecting") as bar:
            estimate = run_collection(mechanism, declared, people, bar).finish()
    return estimate.came_from(backend_of(data), moved)


def _columns(data: Any, schema: Schema, clip: bool) -> tuple[Columns, dict[str, int]]:
    """The declared columns, and how many values of each were moved to an end of the range."""
    columns, moved = declared_columns(data, schema), dict[str, int]()
    for a in schema.attributes if clip else ():
        columns[a.name], moved[a.name] = clipped(a, columns[a.name])
    return columns, moved


def codes_of(schema: Schema, columns: Columns, clips: bool) -> Ints:
    """Codes of columns; a refusal says what can be done, ``clip`` included where the caller has it."""
    try:
        return encode(schema, columns)
    except ColumnRefused as error:
        way = next(text for word, text in _WAYS_OUT.items() if word in error.rule)
        way = way.format(range=declared_range(error.attribute)) + _CLIP * (clips and "outside" in error.rule)
        raise ValueError(f"{error}{way}") from None


@dataclass(frozen=True, slots=True, eq=False)
class People(Sequence[Person]):
    """The rows of a table, each as its owner's device holds it: plain values by name, ``None`` for a missing one."""

    columns: dict[str, list[object]]
    n: int

    @classmethod
    def of(cls, columns: dict[str, NDArray[Any]], schema: Schema, clips: bool = False) -> People:
        """Rows of columns that the schema can code; what it refuses is named before anybody is asked (`_codes`)."""
        n = len(codes_of(schema, columns, clips))
        if not n:
            raise ValueError("expected a population of at least one person, got none")
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
