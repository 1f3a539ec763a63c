"""Range queries over private values: AHEAD and its peers under local differential privacy.

Names are loaded when they are used, so that ``import ahead_ldp`` is light and ``ahead_ldp.device`` runs where NumPy
is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ahead_ldp import drawing

if TYPE_CHECKING:
    from ahead_ldp.answers import Answers
    from ahead_ldp.device.codes import Attribute, Schema
    from ahead_ldp.estimates import Estimate
    from ahead_ldp.figures import plot_answers, plot_estimate, plot_tree
    from ahead_ldp.front import collect, make_mechanism, simulate
    from ahead_ldp.mechanisms import MECHANISMS
    from ahead_ldp.protocol import Mechanism
    from ahead_ldp.quantiles import Mean, Quantiles
    from ahead_ldp.queries import Query
    from ahead_ldp.saved import load
    from ahead_ldp.schema import as_schema, load_schema
    from ahead_ldp.workloads import Workload

__all__ = [
    "MECHANISMS", "Answers", "Attribute", "Estimate", "Mean", "Mechanism", "Quantiles", "Query", "Schema", "Workload",
    "as_schema", "collect", "load", "load_schema", "make_mechanism", "plot_answers", "plot_estimate", "plot_tree",
    "simulate",
]  # fmt: skip

_HOMES = {
    "answers": ("Answers",),
    "device.codes": ("Attribute", "Schema"),
    "estimates": ("Estimate",),
    "figures": ("plot_answers", "plot_estimate", "plot_tree"),
    "front": ("collect", "make_mechanism", "simulate"),
    "mechanisms": ("MECHANISMS",),
    "protocol": ("Mechanism",),
    "quantiles": ("Mean", "Quantiles"),
    "queries": ("Query",),
    "saved": ("load",),
    "schema": ("as_schema", "load_schema"),
    "workloads": ("Workload",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

drawing.register(lambda: import_module("ahead_ldp.figures"))


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"ahead_ldp.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
