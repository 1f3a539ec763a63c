"""`ahead query`, and how a stored run is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ahead_ldp.cli import printing
from ahead_ldp.engines.runs import read_run
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.protocol.session import ReplayMismatch


def run(directory: Path, queries: Sequence[str], recount: bool, as_json: bool) -> None:
    """Answer and print."""
    estimate = read(directory, recount)
    answers = estimate.ask(*queries)
    columns = {name: column.tolist() for name, column in answers.columns().items()}
    rule = answers.critical(simultaneous=True)[1]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    p = estimate.provenance
    assert p is not None
    if as_json:
        head = {"run": str(directory), "method": p.method, "epsilon": float(p.epsilon), "people": p.people}
        about = {"consistent": answers.consistent, "simultaneous": rule}
        printing.print_json({**head, **about, "results": [_record(row) for row in rows]})
        return
    names = ["query", "share", "std. error", "95 % interval", "simultaneous"]
    shown = [
        [
            row["query"],
            _percent(row["share"]) + "*" * row["bias_not_included"],
            _percent(spread),
            f"{_percent(row['low'])} to {_percent(row['high'])}",
            f"{_percent(row['simultaneous_low'])} to {_percent(row['simultaneous_high'])}",
        ]
        for row, spread in zip(rows, answers.spread.tolist(), strict=True)
    ]
    width = len(names) if len(rows) > 1 else len(names) - 1  # one interval is pointwise and simultaneous
    title = f"{p.method}, epsilon {p.epsilon}, {p.people:,} people"
    printing.print_table(title, names[:width], [row[:width] for row in shown])
    for text in answers.notes():
        print(text)


def _record(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: row[name] for name in ("query", "share", "standard_error", "bias_error")}
    intervals = {
        "ci95": [row["low"], row["high"]],
        "ci95_simultaneous": [row["simultaneous_low"], row["simultaneous_high"]],
    }
    return {**kept, **intervals, "bias_not_included": row["bias_not_included"]}


def read(directory: Path, recount: bool = False) -> Estimate:
    """The estimate of a stored run, or a refusal in one line."""
    try:
        return read_run(directory, recount=recount)
    except ReplayMismatch as error:
        raise ValueError(f"the stored run does not replay, nothing is answered: {error}") from error


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
