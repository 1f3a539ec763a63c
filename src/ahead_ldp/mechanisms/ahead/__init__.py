"""AHEAD and its relatives: one adaptive tree, a tree for each pair, and the baselines without one."""
