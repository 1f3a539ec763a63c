"""`ahead query`, and how a stored run is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ahead_ldp.answers import BIAS_NOTE, INCONSISTENT_NOTE
from ahead_ldp.cli import printing
from ahead_ldp.estimates import Estimate
from ahead_ldp.runs import read_run
from ahead_ldp.sessions import ReplayMismatch


def run(directory: Path, queries: Sequence[str], recount: bool, as_json: bool) -> None:
    """Answer and print."""
    estimate = read(directory, recount)
    answers = estimate.ask(*queries)
    columns = answers.columns()
    low, high = columns["low"].tolist(), columns["high"].tolist()
    rows = list(zip(queries, answers.values.tolist(), answers.standard_error.tolist(), low, high, strict=True))
    marks = answers.bias_not_included.tolist()
    p = estimate.provenance
    assert p is not None
    if as_json:
        results = [
            {"query": query, "share": share, "standard_error": error, "ci95": [lo, hi], "bias_not_included": mark}
            for (query, share, error, lo, hi), mark in zip(rows, marks, strict=True)
        ]
        head = {"run": str(directory), "method": p.method, "epsilon": float(p.epsilon), "people": p.people}
        printing.print_json({**head, "consistent": answers.consistent, "results": results})
        return
    shown = [
        [query, _percent(share) + "*" * mark, _percent(error), f"{_percent(lo)} to {_percent(hi)}"]
        for (query, share, error, lo, hi), mark in zip(rows, marks, strict=True)
    ]
    title = f"{p.method}, epsilon {p.epsilon}, {p.people:,} people"
    printing.print_table(title, ["query", "share", "std. error", "95 % interval"], shown)
    for text in [BIAS_NOTE] * any(marks) + [INCONSISTENT_NOTE] * (not answers.consistent):
        print(text)


def read(directory: Path, recount: bool = False) -> Estimate:
    """The estimate of a stored run, or a refusal in one line."""
    try:
        return read_run(directory, recount=recount)
    except ReplayMismatch as error:
        raise ValueError(f"the stored run does not replay, nothing is answered: {error}") from error


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
