"""Dependence learned from all pairs: shares by hand, shrinkage where there is none, none where there is some."""

from itertools import combinations

import numpy as np
import pytest

from ahead_ldp.engines.simulation import Population
from ahead_ldp.estimates.solvers.proportional_fitting import fit_margins
from ahead_ldp.mechanisms.fused.fused import Fused, Fused2
from ahead_ldp.mechanisms.fused.grid_reports import GridReport
from ahead_ldp.mechanisms.fused.interactions import Basis, fit_interaction
from ahead_ldp.mechanisms.fused.pooled_dependence import (
    AskedPair,
    Widths,
    chances_of_dependence,
    fit_interactions,
    frequencies,
)
from ahead_ldp.protocol.session import Session
from tests.support import Recorded, schema_of

BINS = 16
MASS = np.full(BINS, 1 / BINS)
BASIS = Basis.of(MASS, 4)


def table(r):
    """Of a normal copula's first coefficient, nearly: the product of the margins, tilted."""
    score = BASIS.functions[:, 0]
    bent = np.exp(r / (1 - r**2) * np.outer(score, score))
    for _ in range(200):
        bent /= bent.sum(axis=1, keepdims=True) * BINS
        bent /= bent.sum(axis=0, keepdims=True) * BINS
    return bent


def asked(r, sd, rng):
    """A pair that was asked about a grid of 8 x 8 cells."""
    starts = np.arange(0, BINS, 2)
    truth = table(r).reshape(8, 2, 8, 2).sum(axis=(1, 3))
    report = GridReport(starts, starts, truth + sd * rng.normal(size=truth.shape), sd**2)
    return AskedPair(MASS, MASS, (BASIS, BASIS), [report])


def test_frequencies_are_those_of_em_by_hand():
    evidence = np.array([[0.0, 2.0], [0.0, -1.0], [0.5, 0.5]])
    share = np.array([0.5, 0.5])
    for _ in range(30):
        chance = np.exp(evidence) * share
        chance /= chance.sum(axis=1, keepdims=True)
        share = (chance.sum(axis=0) + 0.5) / 4
    np.testing.assert_allclose(frequencies(evidence), chance, rtol=1e-12)
    np.testing.assert_allclose(frequencies(np.zeros((5, 4))), 0.25)


def test_widths_are_the_posterior_laws_and_their_evidence():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(5, 5))
    precision, right, priors = root @ root.T, rng.normal(size=5), rng.uniform(0.1, 2.0, (3, 5))
    found = Widths.of(precision, right, priors)
    for k, prior in enumerate(priors):
        covariance = np.linalg.inv(precision + np.diag(1 / prior))
        np.testing.assert_allclose(found.covariances[k], covariance, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.means[k], covariance @ right, rtol=1e-9)
        evidence = (right @ covariance @ right + np.log(np.linalg.det(covariance) / prior.prod())) / 2
        assert found.log_evidence[k] == pytest.approx(evidence, rel=1e-9)


def test_pairs_without_dependence_shrink_the_more_of_them_there_are():
    """Twenty independent pairs: less than a half of the error of the fit of one pair alone, in the mean."""
    rng = np.random.default_rng(4)
    pairs = [asked(0.0, 0.01, rng) for _ in range(20)]
    even = np.outer(MASS, MASS)
    alone = np.mean([((fit_interaction(*pair).table - even) ** 2).sum() for pair in pairs])
    together = np.mean([((fit.table - even) ** 2).sum() for fit in fit_interactions(pairs)])
    assert together < 0.5 * alone


def test_dependence_that_is_seen_is_not_shrunk():
    """One tied pair among nineteen independent ones, and twenty tied ones: not worse than alone by a tenth."""
    rng = np.random.default_rng(5)
    for rs in ([0.7] + [0.0] * 19, [0.5] * 20):
        pairs = [asked(r, 0.004, rng) for r in rs]
        tied = [k for k, r in enumerate(rs) if r]
        fits = fit_interactions(pairs)
        together = np.mean([((fits[k].table - table(rs[k])) ** 2).sum() for k in tied])
        alone = np.mean([((fit_interaction(*pairs[k]).table - table(rs[k])) ** 2).sum() for k in tied])
        assert together < 1.1 * alone


def test_shrinking_does_not_make_a_pair_surer():
    """Coefficients of independent pairs are within their errors as often as a normal law is, or more often."""
    rng = np.random.default_rng(6)
    fits = fit_interactions([asked(0.0, 0.01, rng) for _ in range(30)])
    first = np.array([fit.coefficients[0] / np.sqrt(fit.covariance[0, 0]) for fit in fits])
    assert np.mean(first**2) < 1 + 5 * np.sqrt(2 / 30)


def told_finely(truth, sd, rng):
    """A pair that was asked about grids of 4 x 4, 8 x 8 and 16 x 16 cells."""
    reports = []
    for step in (4, 2, 1):
        starts = np.arange(0, BINS, step)
        exact = GridReport(starts, starts, np.zeros((starts.size,) * 2), sd**2)
        values = exact.sums(truth)
        reports.append(GridReport(starts, starts, values + sd * rng.normal(size=values.shape), sd**2))
    return AskedPair(MASS, MASS, (BASIS, BASIS), reports)


def squares(fits, truths):
    """The squares of errors of quarters of both attributes: where all is even, single cells add up to noise."""
    off = [(fit.table - t).reshape(4, 4, 4, 4).sum(axis=(1, 3)) for fit, t in zip(fits, truths, strict=True)]
    return np.mean(np.square(off), axis=(1, 2))


@pytest.mark.parametrize(("r", "beside"), [(0.0, Recorded(0.103, 0.0125)), (0.6, Recorded(0.378, 0.0128))])
def test_without_rough_dependence_single_cells_are_not_believed(r, beside):
    """However sure the reports are, so that many coefficients are determined.

    Errors over those of version 2, recorded over 200 other pairs.
    """
    rng, truth = np.random.default_rng(8), table(r)
    pairs = [told_finely(truth, 1e-3, rng) for _ in range(12)]
    new = squares([fit_interactions([pair])[0] for pair in pairs], [truth] * 12)
    old = squares([fit_interaction(*pair) for pair in pairs], [truth] * 12)
    beside.check_ratio(new, old)


def test_rough_dependence_leaves_single_cells_as_free_as_before():
    """Errors over those of version 2, recorded over 120 other pairs."""
    rng = np.random.default_rng(9)
    truths = [fit_margins(np.where(rng.random((BINS, BINS)) < 0.2, 1.0, 0.01), MASS, MASS) for _ in range(12)]
    pairs = [told_finely(truth, 3e-4, rng) for truth in truths]
    new = squares([fit_interactions([pair])[0] for pair in pairs], truths)
    old = squares([fit_interaction(*pair) for pair in pairs], truths)
    Recorded(0.878, 0.089).check_ratio(new, old)


def test_nobody_told_and_nothing_to_tell():
    nothing = AskedPair(MASS, MASS, (BASIS, BASIS), [])
    (fit,) = fit_interactions([nothing])
    np.testing.assert_allclose(fit.table, np.outer(MASS, MASS))
    assert fit.report is None
    np.testing.assert_allclose(chances_of_dependence([nothing]), 0.5)
    assert fit_interactions([]) == []


def test_chances_tell_tied_pairs_from_others():
    rng = np.random.default_rng(7)
    rs = [0.6, 0.0, 0.0, -0.6, 0.0, 0.0]
    chance = chances_of_dependence([asked(r, 0.003, rng) for r in rs])
    assert (chance[[0, 3]] > 0.99).all()
    assert (chance[[1, 2, 4, 5]] < 0.5).all()


def people_in_pairs(attributes, n, seed):
    """Neighbours by twos have a correlation of 0.8."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, attributes // 2)).repeat(2, axis=1)
    x = np.sqrt(0.8) * common + np.sqrt(0.2) * rng.normal(size=(n, attributes))
    return Population.of_records(np.clip((x + 4) * 4, 0, 31).astype(int), (32,) * attributes)


def late_questions(mechanism, people, seed=1):
    """Which attributes every late group of a pair is asked about."""
    schema, rng = schema_of(*people.sizes), np.random.default_rng(seed)
    parts = people.divide(mechanism.groups(schema), rng)
    session = Session(mechanism, schema)
    found = {}
    while session.is_open:
        wave = session.wave
        found |= {g: q.attributes for g, q in wave.items() if g.endswith((".again", ".fine"))}
        session.tell({g: q.oracle.simulate(parts[g].cells(q), rng) for g, q in wave.items()})
    return found


def test_untied_pairs_leave_their_late_groups_to_tied_ones():
    """Of six attributes three pairs are tied, and twelve are not."""
    people = people_in_pairs(6, 300_000, 2)
    tied = {(0, 1), (2, 3), (4, 5)}
    asked_about = late_questions(Fused(epsilon=2.0, users=300_000), people)
    own = {group: (int(group[0]) - 1, int(group[2]) - 1) for group in asked_about}
    assert all(attributes == own[g] for g, attributes in asked_about.items() if own[g] in tied)
    moved = [g for g, attributes in asked_about.items() if attributes != own[g]]
    assert len(moved) >= 12  # of 24
    assert {asked_about[g] for g in moved} >= tied
    assert np.mean([asked_about[g] in tied for g in moved]) > 0.7  # noise may pass for dependence in a few
    before = late_questions(Fused2(epsilon=2.0, users=300_000), people)
    assert all(attributes == own[g] for g, attributes in before.items())


@pytest.mark.parametrize("attributes", [2, 4])
def test_few_pairs_all_keep_their_groups(attributes):
    people = people_in_pairs(attributes, 50_000, 3)
    found = late_questions(Fused(epsilon=2.0, users=50_000), people)
    assert set(found.values()) == set(combinations(range(attributes), 2))
    assert all(pair == (int(g[0]) - 1, int(g[2]) - 1) for g, pair in found.items())
