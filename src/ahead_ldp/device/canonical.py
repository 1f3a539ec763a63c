"""Canonical records: one byte string for one meaning, the same in every language.

A record is made of dictionaries with lower-case ASCII keys, lists, strings, booleans, ``None`` and integers
below 2**53 in magnitude, in at most 32 levels. Anything else, above all a float, is refused: numbers that are not small
integers travel as declared decimal strings.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

Record = dict[str, Any]

DEEPEST = 32  # levels, the record's own included: far above every record, far below every language's own limit
_LARGEST = 2**53 - 1
_KEY = re.compile(r"[a-z][a-z0-9_]*")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def canonical_bytes(record: Mapping[str, Any]) -> bytes:
    """The canonical UTF-8 JSON of a record: sorted keys, no spaces, no floats."""
    _check(record, "record", 1)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def parse_canonical(data: bytes) -> Record:
    """The record behind canonical bytes; any other spelling of the same record is refused."""
    try:
        record = json.loads(data.decode("utf-8"), object_pairs_hook=_no_repeats, parse_float=_no_float)
        if not isinstance(record, dict):
            raise ValueError("expected an object")
        same = canonical_bytes(record) == data
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected a canonical record: {_reason(error)}") from None
    if not same:
        raise ValueError("expected a canonical record: keys sorted, no spaces, shortest escapes")
    return record


def digest(record: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical bytes, in hexadecimal."""
    return hashlib.sha256(canonical_bytes(record)).hexdigest()


def check_digest(text: object, argument: str) -> str:
    """The text itself if it is a SHA-256 digest in lower-case hexadecimal."""
    if not isinstance(text, str) or not _DIGEST.fullmatch(text):
        raise ValueError(f"expected {argument} to be 64 lower-case hexadecimal digits")
    return text


def expect(holds: bool, rule: str) -> None:
    """Raise a ``ValueError`` that names the rule, unless it holds."""
    if not holds:
        raise ValueError(f"expected {rule}")


def fields(record: object, names: str, argument: str) -> Record:
    """The record itself if it has exactly these fields; unknown and missing ones are named."""
    if not isinstance(record, dict):
        raise ValueError(f"expected {argument} to be a record, got {type(record).__name__}")
    wanted = set(names.split())
    if unknown := sorted(set(record) - wanted):
        raise ValueError(f"expected {argument} without unknown fields, got {', '.join(unknown)}")
    if missing := sorted(wanted - set(record)):
        raise ValueError(f"expected {argument} to have the field {', '.join(missing)}")
    return record


def integer(value: object, argument: str, low: int, high: int = _LARGEST) -> int:
    """The value itself if it is an integer in ``low .. high`` (a boolean is none)."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"expected {argument} to be an integer in {low}..{high}")
    return value


def _check(value: object, where: str, level: int) -> None:
    if level > DEEPEST and isinstance(value, Mapping | list | tuple):
        raise ValueError(f"expected at most {DEEPEST} levels in the record")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str) or not _KEY.fullmatch(key):
                raise ValueError(f"expected keys of lower-case ASCII letters in {where}, got {key!r}")
            _check(inner, f"{where}.{key}", level + 1)
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            _check(inner, f"{where}[{i}]", level + 1)
    elif isinstance(value, str):
        if any("\ud800" <= c <= "\udfff" for c in value):
            raise ValueError(f"expected text without lone surrogates in {where}")
    elif value is None or type(value) is bool:
        return
    elif type(value) is not int:
        raise ValueError(f"expected no {type(value).__name__} in {where}: use an integer or a decimal string")
    elif abs(value) > _LARGEST:
        raise ValueError(f"expected integers below 2**53 in {where}: use a decimal string")


def _no_repeats(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key stands twice")
    return record


def _no_float(text: str) -> NoReturn:
    raise ValueError("a number with a fraction or an exponent")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "not UTF-8 JSON"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
