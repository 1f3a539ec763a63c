"""For researchers: evaluation, planning, data sets, and the experiments of the paper."""
