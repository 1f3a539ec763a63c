"""Pictures of estimates and answers. Every function returns a matplotlib Figure and touches no global state."""

from ahead_ldp.plots.decompositions import plot_tree
from ahead_ldp.plots.densities import plot_estimate
from ahead_ldp.plots.intervals import plot_answers

__all__ = ["plot_answers", "plot_estimate", "plot_tree"]
