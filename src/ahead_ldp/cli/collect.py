"""`ahead collect`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ahead_ldp.api import People
from ahead_ldp.cli import inputs, printing
from ahead_ldp.device.epsilon import epsilon_text
from ahead_ldp.engines.progress import Bar
from ahead_ldp.engines.runs import collect_run
from ahead_ldp.research.evaluation import check_runs, choose


def run(
    data: Path,
    source: Mapping[str, Any],
    declared: Mapping[str, Any],
    epsilon: str,
    method: str | None,
    users: int | None,
    settings: str,
    out: Path,
    parquet: bool,
    as_json: bool,
) -> None:
    """Collect, write, and print where."""
    schema = inputs.declared_schema(**declared)
    if schema is None and not source["codes"]:
        raise ValueError("expected declared bounds, by --attribute or --schema: they are never read from private data")
    epsilon = epsilon_text(epsilon)
    records = inputs.read_records(data, declared=schema, **source)
    people = People.of(records.columns, records.schema)
    expected = len(people) if users is None else users
    mechanism, applied = choose(method, records.schema, epsilon, expected, settings)
    check_runs(mechanism, records.schema)
    with Bar("collecting") as bar:
        estimate = collect_run(mechanism, records.schema, people, out, bar, parquet=parquet)
    if as_json:
        found = {"method": mechanism.name, "settings": applied, "epsilon": float(epsilon), "people": len(people)}
        printing.print_json({"run": str(out), **found, "waves": len(list((out / "questions").glob("*")))})
        return
    print(estimate.summary())
    print(f"written: {out}")
