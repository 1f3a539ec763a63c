"""Range queries over private values: AHEAD and its peers under local differential privacy.

Names are loaded when they are used, so that ``import ahead_ldp`` is light and ``ahead_ldp.device`` runs where NumPy
is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ahead_ldp.device.codes import Attribute, Schema
    from ahead_ldp.engines.api import collect, simulate
    from ahead_ldp.engines.archive import load
    from ahead_ldp.estimates.analysis.differences import Difference, difference
    from ahead_ldp.estimates.analysis.series import Series
    from ahead_ldp.estimates.answers import Answer, Answers
    from ahead_ldp.estimates.estimate import Estimate
    from ahead_ldp.estimates.findings import Findings
    from ahead_ldp.estimates.quantiles import Mean, Quantiles
    from ahead_ldp.mechanisms import MECHANISMS, make_mechanism
    from ahead_ldp.plots import (
        plot_answers,
        plot_cdf,
        plot_difference,
        plot_estimate,
        plot_findings,
        plot_tree,
        report_page,
        report_pdf,
    )
    from ahead_ldp.protocol.mechanism import Mechanism
    from ahead_ldp.research.comparison import Comparison, compare
    from ahead_ldp.research.planner import Plan
    from ahead_ldp.research.planning import plan
    from ahead_ldp.schema.attributes import as_schema, load_schema
    from ahead_ldp.schema.inferring import Draft, infer
    from ahead_ldp.schema.queries import Beyond, Either, Query
    from ahead_ldp.schema.workloads import Workload

__all__ = [
    "MECHANISMS", "Answer", "Answers", "Attribute", "Beyond", "Comparison", "Difference", "Draft", "Either",
    "Estimate", "Findings", "Mean", "Mechanism", "Plan", "Quantiles", "Query", "Schema", "Series", "Workload",
    "__version__", "as_schema", "collect", "compare", "difference", "infer", "load", "load_schema", "make_mechanism",
    "plan", "plot_answers", "plot_cdf", "plot_difference", "plot_estimate", "plot_findings", "plot_tree",
    "report_page", "report_pdf", "simulate",
]  # fmt: skip

_HOMES = {
    "engines.api": ("collect", "simulate"),
    "device.codes": ("Attribute", "Schema"),
    "estimates.analysis.differences": ("Difference", "difference"),
    "estimates.analysis.series": ("Series",),
    "estimates.answers": ("Answer", "Answers"),
    "estimates.estimate": ("Estimate",),
    "estimates.findings": ("Findings",),
    "estimates.quantiles": ("Mean", "Quantiles"),
    "mechanisms": ("MECHANISMS", "make_mechanism"),
    "plots": (
        "plot_answers",
        "plot_cdf",
        "plot_difference",
        "plot_estimate",
        "plot_findings",
        "plot_tree",
        "report_page",
        "report_pdf",
    ),
    "engines.archive": ("load",),
    "protocol.mechanism": ("Mechanism",),
    "research.comparison": ("Comparison", "compare"),
    "research.planner": ("Plan",),
    "research.planning": ("plan",),
    "schema.attributes": ("as_schema", "load_schema"),
    "schema.inferring": ("Draft", "infer"),
    "schema.queries": ("Beyond", "Either", "Query"),
    "schema.workloads": ("Workload",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    __version__: str
else:  # unknown to type checkers, so that they find a name that is not there

    def __getattr__(name):
        if name == "__version__":
            return import_module("importlib.metadata").version("ahead-ldp")  # on use: it takes longer than the rest
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"ahead_ldp.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
