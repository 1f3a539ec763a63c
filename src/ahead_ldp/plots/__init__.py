"""Pictures of estimates and answers. A ``plot_`` function returns a matplotlib Figure and touches no global state.

All of these take ``ax`` (draw there), ``size`` (in inches) and ``style`` (one of matplotlib's, by name or as settings).
The ``chart_`` functions return Altair charts, which a notebook shows with the numbers under the pointer.
"""

from ahead_ldp.plots.changes import plot_difference
from ahead_ldp.plots.decompositions import plot_tree
from ahead_ldp.plots.densities import plot_cdf, plot_estimate
from ahead_ldp.plots.findings import plot_findings
from ahead_ldp.plots.interactive import chart_answers, chart_cdf, chart_estimate
from ahead_ldp.plots.intervals import plot_answers
from ahead_ldp.plots.report import report_page, report_pdf

__all__ = [
    "chart_answers",
    "chart_cdf",
    "chart_estimate",
    "plot_answers",
    "plot_cdf",
    "plot_difference",
    "plot_estimate",
    "plot_findings",
    "plot_tree",
    "report_page",
    "report_pdf",
]
