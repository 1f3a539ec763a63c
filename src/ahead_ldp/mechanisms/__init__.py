"""The methods: a folder per family with everything that only it uses, and this registry.

A new method is one file in a family's folder and one line below. The contract tests then run over it. Other packages
bring theirs by an entry point of the group ``ahead_ldp.mechanisms`` (docs/tutorials/own-method.md).

A method that asks something else, or makes something else of the same tallies, is a new version of it (decision 015):
its class takes the name, and the class that it replaces goes to ``EARLIER``, where recorded campaigns find it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.device.epsilon import exact_epsilon, new_epsilon
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.registry import Registry

Epsilon = float | str | Fraction | Decimal | np.floating[Any] | np.integer[Any]
Declared = Schema | Attribute | str | Sequence[Attribute | str]
Reading = int | Literal["newest", "stored"] | None  # how tallies are read: see ``mechanism_from_record``

_HERE = "ahead_ldp.mechanisms"
MECHANISMS: Registry[Mechanism] = Registry(
    "method",
    {
        "ahead": f"{_HERE}.ahead.ahead:AHEAD",
        "lle": f"{_HERE}.ahead.lle:LLE",
        "uni": f"{_HERE}.ahead.uniform:Uniform",
        "flat": f"{_HERE}.ahead.flat:Flat",
        "hio": f"{_HERE}.hierarchy.hio:HIO",
        "hh": f"{_HERE}.hierarchy.hh:HH",
        "dht": f"{_HERE}.hierarchy.dht:DHT",
        "sw": f"{_HERE}.square_wave.sw:SW",
        "calm": f"{_HERE}.grids.calm:CALM",
        "tdg": f"{_HERE}.grids.hdg:TDG",
        "hdg": f"{_HERE}.grids.hdg:HDG",
        "privnud": f"{_HERE}.piecewise.privnud:PrivNUD",
        "pripl": f"{_HERE}.piecewise.pripl:PriPL",
        "wavelet": f"{_HERE}.wavelet.wavelet:Wavelet",
        "quadtree": f"{_HERE}.spatial.quadtree:Quadtree",
        "kdtree": f"{_HERE}.spatial.kdtree:KDTree",
        "fused": f"{_HERE}.fused.fused:Fused",
        "adaptive": f"{_HERE}.adaptive.adaptive:Adaptive",
    },
    group="ahead_ldp.mechanisms",
    kind=Mechanism,
)


# "name/version of the questions/version of the estimate" -> a class that a newer one has replaced. It stays runnable as
# long as somebody may hold a campaign of it; its golden campaigns are replayed with all others.
EARLIER: Registry[Mechanism] = Registry(
    "version",
    {
        "adaptive/1/1": f"{_HERE}.adaptive.adaptive:Adaptive1",
        "adaptive/2/1": f"{_HERE}.adaptive.adaptive:Adaptive2",
        "adaptive/3/1": f"{_HERE}.adaptive.adaptive:Adaptive3",
        "fused/1/1": f"{_HERE}.fused.fused:Fused1",
        "fused/2/1": f"{_HERE}.fused.fused:Fused2",
    },
)


class UnknownVersion(ValueError):
    """A record names a version of a method that this program does not have."""


def versions(name: str) -> dict[tuple[int, int], type[Mechanism]]:
    """Every class of a method that can be run, by the version of its questions and that of its estimate."""
    if name not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        raise UnknownVersion(f"expected method to be one of {known}, got {name!r}: install the package that brings it")
    kept = [MECHANISMS.find(name), *(EARLIER[key] for key in EARLIER if key.partition("/")[0] == name)]
    return {(cls.version, cls.estimate_version): cls for cls in reversed(kept)}


def mechanism_from_record(record: object, reading: Reading = None) -> Mechanism:
    """The mechanism behind its canonical form, in the versions that it names.

    ``reading`` asks for another version of the estimate, by its number, or for the newest. ("stored" is a reading
    without any method, which needs the questions as well: ``recorded.Recorded``.)
    """
    named = dict(record) if isinstance(record, dict) else {}
    known, version = versions(str(named.get("name"))), named.get("version")
    readings = {read: cls for (asked, read), cls in known.items() if asked == version}
    if not readings:
        there = ", ".join(str(asked) for asked in sorted({asked for asked, _ in known}))
        raise UnknownVersion(f"expected a version of the method {named['name']} among {there}, got {version!r}")
    if "estimate_version" in named and (type(named["estimate_version"]) is not int or named["estimate_version"] < 2):
        raise ValueError("expected estimate_version to be an integer above 1, or not named")
    own = named.pop("estimate_version", 1)
    wanted = own if reading is None else max(readings) if reading == "newest" else reading
    if wanted not in readings:
        there = ", ".join(map(str, sorted(readings)))
        raise UnknownVersion(
            f"expected a version of the estimate of {named['name']} {version} among {there}, got {wanted!r}"
        )
    return readings[wanted].from_record(named if wanted == 1 else {**named, "estimate_version": wanted})


def default_method(schema: Schema, paper: bool = False) -> str:
    """The method taken where none is named: "adaptive" for one attribute, "fused" for more.

    ``paper`` asks for the AHEAD paper's own: one tree for one or two attributes, pairs of attributes for more.
    """
    several = len(schema.attributes)
    if paper:
        return "ahead" if several <= 2 else "lle"
    return "adaptive" if several == 1 else "fused"


def make_mechanism(
    method: str | type[Mechanism] | Mechanism | None,
    schema: Declared,
    epsilon: Epsilon | None = None,
    users: int | None = None,
    paper: bool = False,
    **choices: Any,
) -> Mechanism:
    """The method of this name or class with its choices, or the given one, if it takes these attributes and epsilon.

    It is for something new: what is on record comes back by `mechanism_from_record`, with any epsilon.

    ``epsilon`` is a decimal number in every record: a float, of Python or NumPy, means the decimal number that it
    prints, so ``numpy.float32(0.1)`` is 0.1. ``users``, the number of people expected, goes to methods that plan with
    it; ``paper`` takes the settings of the method's own paper where they differ from the default.
    """
    declared = as_schema(schema)
    if users is not None and (isinstance(users, bool) or not hasattr(users, "__index__") or users < 1):
        raise ValueError(f"expected users, the number of people, to be a whole number >= 1, got {users!r}")
    number = plain_epsilon(epsilon)
    if isinstance(method, Mechanism):
        return _given(method, declared, number, {**choices, **({"paper": True} if paper else {})})
    cls = class_of(default_method(declared, paper) if method is None else method)
    _check_attributes(cls, declared)
    if number is None:
        raise ValueError("expected epsilon > 0, got none")
    new_epsilon(number)
    fields = {f.name for f in dataclasses.fields(cls)} - {"epsilon"}
    if unknown := sorted(set(choices) - fields):
        known = ", ".join(sorted(fields)) or "none"
        raise ValueError(f"expected choices of the method {cls.name} among {known}, got {', '.join(unknown)}")
    if users is not None and "users" in fields:
        choices.setdefault("users", users)
    make: Any = getattr(cls, "paper", None) if paper else None
    if make is None:
        return cls(epsilon=number, **choices)
    return dataclasses.replace(make(epsilon=number), **choices)


def class_of(method: str | type[Mechanism]) -> type[Mechanism]:
    """The class of a method: of its registered name, or the class itself."""
    given: object = method  # callers without types may pass anything
    if isinstance(given, str):
        if ":" in given:
            known = ", ".join(MECHANISMS)
            raise ValueError(f"expected method to be one of {known}, got {given!r}: {_after_a_colon(given)}")
        return MECHANISMS.find(given)
    if isinstance(given, type) and issubclass(given, Mechanism):
        return given
    raise ValueError(f"expected method to be a name, a class of Mechanism or an instance, got {method!r}")


def _after_a_colon(text: str) -> str:
    """The way out for a text that a command would take. Here no text imports a module: it may come from a request."""
    name, _, rest = text.partition(":")
    if name not in MECHANISMS:
        return "a method of your own is given as its class"
    if rest == "paper":
        return f"method={name!r}, paper=True"
    cls = MECHANISMS[name]
    return (
        f"method={cls.__name__}.strong(epsilon)" if rest == "strong" and hasattr(cls, "strong") else f"method={name!r}"
    )


def known_method(text: str) -> str:
    """The registered name behind a caller's text: a name, or ``package.module:Class``, which is then registered."""
    return MECHANISMS.register(text) if ":" in text and text not in MECHANISMS else text


def plain_epsilon(epsilon: Epsilon | None) -> float | str | Fraction | None:
    """Epsilon in the types that records are written from; a NumPy number is the decimal number that it prints."""
    if isinstance(epsilon, np.floating | np.integer):
        return float(str(epsilon))
    if isinstance(epsilon, Decimal):
        return Fraction(epsilon) if epsilon.is_finite() else float(epsilon)
    return epsilon


def _given(
    method: Mechanism, schema: Schema, epsilon: float | str | Fraction | None, choices: dict[str, Any]
) -> Mechanism:
    _check_attributes(type(method), schema)
    if choices:
        raise ValueError(f"expected no choices beside a method that has them, got {', '.join(sorted(choices))}")
    new_epsilon(method.epsilon)
    if epsilon is not None and exact_epsilon(epsilon) != exact_epsilon(method.epsilon):
        raise ValueError(f"expected epsilon to be the method's, {method.epsilon}, got {epsilon!r}")
    return method


def _check_attributes(cls: type[Mechanism], schema: Schema) -> None:
    most, count = cls.most_attributes, len(schema.attributes)
    if most is not None and count > most:
        at_most = f"at most {most} attribute{'s' if most > 1 else ''}"
        raise ValueError(f"expected {at_most} for the method {cls.name}, got {count}")
