"""Pictures of estimates, as the commands draw them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ahead_ldp.estimates.answers import Kind
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.plots import plot_estimate, plot_tree
from ahead_ldp.schema.arrays import Ints

FORMATS = (".png", ".svg", ".pdf")


def check_format(path: Path, option: str) -> None:
    """Refuse a file that cannot be drawn."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"expected {option} to end in {', '.join(FORMATS)}, got {str(path)!r}")


def picture(estimate: Estimate, *names: str, truth: Ints | None = None, kind: Kind | None = None) -> Any:
    """The tree of an estimate that has one, unless attributes are named; else what is known about them."""
    if isinstance(estimate, TreeEstimate) and len(estimate.schema.attributes) <= 2 and not names:
        return plot_tree(estimate, truth=truth, kind=kind)
    return plot_estimate(estimate, *names, truth=truth, kind=kind)


def save(figure: Any, path: Path, dpi: int = 150) -> None:
    """Write the picture, and the folder that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi)
