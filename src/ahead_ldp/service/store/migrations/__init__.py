"""The tables, step by step: numbered SQL for each store, never edited once released."""

from __future__ import annotations

from importlib.resources import files

from ahead_ldp.service.store.interface import SchemaMismatch

SCHEMA_VERSION = 2


def steps(dialect: str) -> dict[int, str]:
    """The SQL of every step of a dialect (``sqlite`` or ``postgres``) by the version it leads to."""
    folder = files(__name__) / dialect
    found = {int(f.name[:4]): f.read_text("utf-8") for f in folder.iterdir() if f.name.endswith(".sql")}
    assert sorted(found) == list(range(1, SCHEMA_VERSION + 1))
    return dict(sorted(found.items()))


def missing(dialect: str, version: int, migrate: bool) -> dict[int, str]:
    """The steps from a version to this program's. Old tables are only touched when ``migrate`` says so."""
    if version > SCHEMA_VERSION:
        raise SchemaMismatch(f"the store has version {version}, this program knows {SCHEMA_VERSION}: use a newer one")
    if 0 < version < SCHEMA_VERSION and not migrate:
        raise SchemaMismatch(
            f"the store has version {version}, this program {SCHEMA_VERSION}: back up, then `ahead store migrate`"
        )
    return {number: sql for number, sql in steps(dialect).items() if number > version}
