"""`ahead plot`."""

from __future__ import annotations

from pathlib import Path

from ahead_ldp.cli import inputs, printing
from ahead_ldp.cli.query import read
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.plots import plot_estimate, plot_tree

FORMATS = (".png", ".svg", ".pdf")


def run(directory: Path, out: Path, columns: str | None, as_json: bool) -> None:
    """Draw, write, and print where."""
    if out.suffix.lower() not in FORMATS:
        raise ValueError(f"expected --out to end in {', '.join(FORMATS)}, got {str(out)!r}")
    names = [] if columns is None else inputs.split(columns, "--columns")
    estimate = read(directory)
    has_tree = isinstance(estimate, TreeEstimate) and len(estimate.schema.attributes) <= 2
    figure = plot_tree(estimate) if has_tree and not names else plot_estimate(estimate, *names)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=150)
    if as_json:
        printing.print_json({"run": str(directory), "picture": str(out)})
    else:
        print(f"written: {out}")
