"""Pictures of estimates and answers. Every function returns a matplotlib Figure and touches no global state."""

from ahead_ldp.figures.decompositions import plot_tree
from ahead_ldp.figures.densities import plot_estimate
from ahead_ldp.figures.intervals import plot_answers
from ahead_ldp.figures.tradeoffs import plot_tradeoff

__all__ = ["plot_answers", "plot_estimate", "plot_tradeoff", "plot_tree"]
