"""How far fakes could have moved the result: the bound that is shown beside the standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ahead_ldp.oracles import LinearOracle, Oracle, SupportOracle, Tally
from ahead_ldp.protocol.mechanism import Question

AskedWave = Sequence[tuple[Question, Tally]]  # the questions of a closed wave with their tallies
SHARES = (0.001, 0.01, 0.05)


def influence(oracle: Oracle) -> float | None:
    """How far one report can move one cell's raw estimate, times n; None where the estimate is not linear.

    A support oracle's report adds (1 - q)/(p - q) to the cells it supports and -q/(p - q) to the others; a report of
    signs adds at most 1/(2p - 1) either way.
    """
    if isinstance(oracle, SupportOracle):
        return float(max(1 - oracle.q, oracle.q) / (oracle.p - oracle.q))
    if isinstance(oracle, LinearOracle):
        return float(np.sqrt(oracle.moments.other))
    return None


def manipulation(waves: Sequence[AskedWave], tier: str) -> dict[str, Any]:
    """For some shares of fakes among all reports, the most that a single cell's raw estimate can be moved.

    ``spread``: fakes are in all groups by their shares, as tokens enforce. ``one_group``: all of them are in the
    group where it matters most, which an attacker can arrange where there are no tokens. A range moves by at most the
    sum over its cells; answers stay within [0, 1].
    """
    asked = [pair for wave in waves for pair in wave]
    largest, concentrated, people = 0.0, 0.0, sum(tally.n for _, tally in asked)
    for question, tally in asked:
        shift = influence(question.oracle)
        if shift is not None and tally.n:
            largest = max(largest, shift)
            concentrated = max(concentrated, shift * people / tally.n)
    bounds = [
        {
            "fakes": share,
            "spread": min(1.0, share * (largest + 1)),
            "one_group": min(1.0, share * (concentrated + 1)),
        }
        for share in SHARES
    ]
    return {"group_can_be_chosen": tier == "none", "largest_shift_of_a_cell": bounds if largest else []}
