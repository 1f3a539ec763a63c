"""All reports of an oracle on few cells, and the moments of what one of them says."""

from fractions import Fraction
from itertools import product
from math import log

import numpy as np

from ahead_ldp.device.laws import HaarLaw, HRRLaw, OLHLaw
from ahead_ldp.oracles import LinearOracle, Oracle
from ahead_ldp.testing.oracles import all_reports
from tests.device.closed_form import CLOSED_FORMS, COEFFICIENTS, hrr_order

__all__ = ["all_reports", "exact_probability", "openings", "public_log_prob", "report_moments"]

PRIME = 2**31 - 1


def openings(oracle: Oracle) -> list[bytes]:
    """What a report carries that does not depend on the value: for OLH a sample of hashes."""
    if not isinstance(oracle.law, OLHLaw):
        return [b""]
    few = COEFFICIENTS[-2:] if oracle.report_bytes > 13 else COEFFICIENTS
    return [b"".join(x.to_bytes(4, "big") for x in triple) for triple in few]


def public_log_prob(oracle: Oracle) -> float:
    """ln of the probability of that part; for HRR of the row, which stands in every report."""
    if isinstance(oracle.law, OLHLaw):
        return -3 * log(PRIME)
    return -log(hrr_order(oracle.law)) if isinstance(oracle.law, HRRLaw | HaarLaw) else 0.0


def exact_probability(oracle: Oracle, code: int, report: np.ndarray) -> Fraction:
    """From the randomiser's definition and its integers; for OLH given the hash."""
    given = CLOSED_FORMS[oracle.name](oracle.law, code, report.tobytes())
    return given / hrr_order(oracle.law) if isinstance(oracle.law, HRRLaw | HaarLaw) else given


def report_moments(oracle: LinearOracle, code: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the estimate from one person's report, by adding up over all reports."""
    if isinstance(oracle.law, OLHLaw):
        vectors, weights = _hashed(oracle, code)
    else:
        reports = all_reports(oracle)
        vectors = np.stack([oracle.estimate(oracle.tally(r[None])) for r in reports])
        weights = np.array([float(exact_probability(oracle, code, r)) for r in reports])
    mean = weights @ vectors
    return mean, (vectors * weights[:, None]).T @ vectors - np.outer(mean, mean)


def _hashed(oracle: LinearOracle, code: int) -> tuple[np.ndarray, np.ndarray]:
    """OLH on at most three cells, where hash values are independent: over all hash values and answers."""
    law = oracle.law
    assert isinstance(law, OLHLaw)
    assert law.cells <= 3
    borders = [-(-y * PRIME // law.g) for y in range(law.g + 1)]
    inside = [(borders[y + 1] - borders[y]) / PRIME for y in range(law.g)]
    keep = law.keep / 2**law.bits
    vectors, weights = [], []
    for hashed in product(range(law.g), repeat=law.cells):
        for y in range(law.g):
            weight = keep if y == hashed[code] else (1 - keep) / (law.g - 1)
            for h in hashed:
                weight *= inside[h]
            support = np.array([h == y for h in hashed], float)
            vectors.append((support - oracle.q) / (oracle.p - oracle.q))  # type: ignore[attr-defined]
            weights.append(weight)
    return np.stack(vectors), np.array(weights)
