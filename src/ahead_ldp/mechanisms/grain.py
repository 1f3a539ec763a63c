"""The grain of a method: what decides about a question is rounded to it, so that all machines ask the same question.

A question follows from estimates, and the last bits of an estimate differ from machine to machine. Rounded numbers
agree, but for chances that docs/derivations/grain.md works out (A12). The grain is far below the noise of what is
rounded. It is part of each method's version: another grain would be another question.
"""

AHEAD_FREQUENCY = 2.0**30  # steps of a frequency that is compared with theta (A12)
ADAPTIVE_SHARE = 2.0**20  # steps of the share of people below a code (A12)
FUSED_SHARE = 2**30  # steps of the share of people below a code, where columns of grids are cut (A12)
FUSED_MISFIT = 2.0**10  # steps of a standard error, where a pair is found to be rough (A12)
