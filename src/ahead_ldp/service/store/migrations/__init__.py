"""The tables, step by step: numbered SQL for each store, never edited once released."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import Any

from ahead_ldp.service.store.interface import SchemaMismatch

SCHEMA_VERSION = 4


def steps(dialect: str) -> dict[int, str]:
    """The SQL of every step of a dialect (``sqlite`` or ``postgres``) by the version it leads to."""
    folder = files(__name__) / dialect
    texts = {int(f.name[:4]): f.read_text("utf-8") for f in folder.iterdir() if f.name.endswith(".sql")}
    if sorted(texts) != list(range(1, SCHEMA_VERSION + 1)):
        raise RuntimeError(f"expected a step of {dialect} up to {SCHEMA_VERSION}, got {sorted(texts)}")
    return dict(sorted(texts.items()))


def version(execute: Callable[[str], Iterable[tuple[Any, ...]]], names_of_tables: str) -> int:
    """The version of the tables, whose names a query gives; 0 if there are none."""
    names = {name for (name,) in execute(names_of_tables)}
    if not names:
        return 0
    if "meta" not in names:
        raise SchemaMismatch("expected a store, found a database of something else")
    ((number,),) = execute("SELECT value FROM meta WHERE name = 'version'")
    return int(number)


def missing(dialect: str, version: int, migrate: bool) -> dict[int, str]:
    """The steps from a version to this program's. Old tables are only touched when ``migrate`` says so."""
    if version > SCHEMA_VERSION:
        raise SchemaMismatch(f"the store has version {version}, this program knows {SCHEMA_VERSION}: use a newer one")
    if 0 < version < SCHEMA_VERSION and not migrate:
        raise SchemaMismatch(
            f"the store has version {version}, this program {SCHEMA_VERSION}: back up, then `ahead store migrate`"
        )
    return {number: sql for number, sql in steps(dialect).items() if number > version}
