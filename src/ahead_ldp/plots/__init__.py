"""Pictures of estimates and answers. Every function returns a matplotlib Figure and touches no global state.

All of them take ``ax`` (draw there), ``size`` (in inches) and ``style`` (one of matplotlib's, by name or as settings).
"""

from ahead_ldp.plots.changes import plot_difference
from ahead_ldp.plots.decompositions import plot_tree
from ahead_ldp.plots.densities import plot_cdf, plot_estimate
from ahead_ldp.plots.findings import plot_findings
from ahead_ldp.plots.intervals import plot_answers
from ahead_ldp.plots.report import report_page

__all__ = [
    "plot_answers",
    "plot_cdf",
    "plot_difference",
    "plot_estimate",
    "plot_findings",
    "plot_tree",
    "report_page",
]
