"""The grain of a method: what decides about a question is rounded to it, so that all machines ask the same question.

A question follows from estimates, and the last bits of an estimate differ from machine to machine. Rounded numbers
agree, but for chances that docs/derivations/grain.md works out (A12). The grain is far below the noise of what is
rounded. It is part of each method's version: another grain would be another question.
"""

AHEAD_FREQUENCY = 2.0**30  # steps of a frequency that is compared with theta (A12)
ADAPTIVE_SHARE = 2.0**20  # steps of the share of people below a code (A12)
FUSED_SHARE = 2**30  # steps of the share of people below a code, where columns of grids are cut (A12)
FUSED_MISFIT = 2.0**10  # steps of a standard error, where a pair is found to be rough (A12)
FUSED_CHANCE = 2.0**10  # steps of the chance that a pair depends, where late groups are dealt (A12)
GRIDS_COLUMNS = 2**30  # steps of the number of columns of a grid, before it is made whole (A12)
FANOUT_COST = 2**30  # steps of the noise that a fan-out leaves, over that of a fan-out of 2 (A12)
PRIVNUD_NOISE = 2**30  # steps of a node's noise without children, over that with them (A12)
PRIPL_RESIDUE = 2**30  # steps of what a fit leaves or gains, over the largest of these (A12)
PRIPL_MASS = 2**40  # steps of the share of a code, where columns of grids are cut and joined (A12)
SPATIAL_SHARE = 2.0**30  # steps of the share of people before a border, where a median is looked for (A12)
SPATIAL_HEIGHT = 2**30  # steps of a height or a share that a height is chosen by (A12)
WAVELET_ORDERS = 2**30  # steps of the number of orders, before it is made whole (A12)
