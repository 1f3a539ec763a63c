"""Which engine a command runs on."""

from __future__ import annotations

from ahead_ldp.engines.counting import Engine, Result
from ahead_ldp.engines.local import LOCAL
from ahead_ldp.engines.spark import SparkEngine


def engine_of(name: str) -> Engine:
    """The engine of this name; Spark is started here, or said to be missing."""
    if name not in ("local", "spark"):
        raise ValueError(f"expected --engine to be local or spark, got {name!r}")
    return LOCAL if name == "local" else SparkEngine()


def account(result: Result) -> list[str]:
    """What is not in the tallies, a line each."""
    said = []
    if result.duplicates:
        said.append(f"{result.duplicates:,} copies of reports left out, of which one counts")
    if result.conflicts:
        said.append(f"{result.conflicts:,} reports left out because others of the same id differ")
    return said + [f"set aside: {name} ({why})" for name, why in sorted(result.set_aside.items())]
