"""Which answers of pairs some joint distribution could have: one linear program for each query."""

import numpy as np
from scipy.optimize import linprog

from ahead_ldp.estimates.solvers.max_entropy import attributes_of, block_map, feature_masks, least_squares_map
from ahead_ldp.mechanisms.ahead.pair_estimates import PairEstimate
from ahead_ldp.schema.arrays import Bools, Floats
from ahead_ldp.schema.workloads import Workload, by_restriction


def features(q: int) -> Floats:  # -> (2^q, q + pairs)
    """For each in/out cell which attributes are in, then which pairs are both in. Cell 2^q - 1 is all in."""
    masks = feature_masks(q)
    return (np.arange(1 << q)[:, None] & masks == masks).astype(float)


def fitted(blocks: Floats, variance: Floats) -> Floats:  # (n, pairs, 4), (pairs,) -> (n, pairs, 4)
    """The nearest answers (least squares) whose blocks sum to 1 and whose pairs agree on the attributes they share.

    What ``solve`` aims at. They may still be no distribution's; ``is_feasible`` tells.
    """
    q = attributes_of(blocks.shape[1])
    matrix, constant = block_map(q)
    target = (blocks - constant).reshape(len(blocks), -1) @ least_squares_map(q, variance)[0].T
    return (target @ matrix.reshape(-1, matrix.shape[2]).T).reshape(blocks.shape) + constant


def is_feasible(blocks: Floats, tolerance: float = 1e-9) -> Bools:  # (n, pairs, 4) -> (n,)
    """For which queries some joint distribution has all these answers (one linear program each)."""
    q = attributes_of(blocks.shape[1])
    matrix, constant = block_map(q)
    sums = np.vstack([np.ones(1 << q), matrix.reshape(-1, matrix.shape[2]) @ features(q).T])
    sums[1:] += constant.reshape(-1, 1)
    slack = np.eye(len(sums))  # minimise the total violation; feasible if none is needed
    cost = np.concatenate([np.zeros(1 << q), np.ones(2 * len(sums))])
    found = np.zeros(len(blocks), bool)
    for i, t in enumerate(blocks.reshape(len(blocks), -1)):
        result = linprog(cost, A_eq=np.hstack([sums, slack, -slack]), b_eq=np.concatenate([[1.0], t]), method="highs")
        found[i] = result.status == 0 and result.fun < tolerance
    return found


def infeasible_share(estimate: PairEstimate, workload: Workload) -> float:
    """The share of queries on three or more attributes whose pair answers no distribution could have.

    The answers are first brought to sum to 1 and to agree on attributes: levels of one tree need not add up.
    """
    found: list[bool] = []
    for attributes, boxes in by_restriction(estimate.schema.sizes, workload.boxes):
        if len(attributes) > 2:
            blocks = estimate._blocks(attributes, workload.boxes[boxes][:, attributes])
            found.extend(is_feasible(fitted(blocks, estimate._noise(attributes))).tolist())
    return 1 - float(np.mean(found)) if found else 0.0
