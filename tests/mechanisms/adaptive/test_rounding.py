"""People who round: the period that is found, none where nobody rounds, scores, and what it gains."""

import numpy as np
import pytest

from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData, CellEstimates, from_zero
from ahead_ldp.mechanisms.adaptive.log_linear import LogLinear, Model, fit
from ahead_ldp.mechanisms.adaptive.rounding import Comb, comb_scores, rounded
from ahead_ldp.mechanisms.adaptive.score_tests import Residuals
from ahead_ldp.mechanisms.adaptive.smooth_density import _basis, smooth_density

D = 400
BELL = np.exp(-0.5 * ((np.arange(D) + 0.5 - 170) / 70) ** 2)
BELL /= BELL.sum()


def rounding(comb: Comb, share: float) -> np.ndarray:
    """The bell, some of whose people round."""
    heaps = np.zeros(D)
    heaps[comb.codes(D)] = BELL[comb.codes(D)]
    return (1 - share) * BELL + share * heaps / heaps.sum()


def estimates(f: np.ndarray, sd: float, seed: int) -> list[CellEstimates]:
    """Cells of 8, 16 and 32 codes, each in four places, with normal noise."""
    rng, found = np.random.default_rng(seed), []
    for width in (8, 16, 32):
        for k in range(4):
            borders = np.unique([0, *range((k * width) // 4 or width, D, width), D])
            exact = np.diff(from_zero(f)[borders])
            found.append(
                CellEstimates(borders, exact + sd * rng.standard_normal(exact.size), np.full(exact.size, sd**-2.0))
            )
    return found


def smooth_law(given: list[CellEstimates]) -> tuple[CellData, LogLinear]:
    """The law of the bell's own coordinate: places are codes."""
    data = CellData.of(given, 1.0)
    model = Model(data, _basis((np.arange(D) + 0.5) / D, 40), np.ones(D))
    return data, fit(model.start(np.full(D, 1 / D)).settled())


def column_of(law: LogLinear) -> list[int]:
    return np.flatnonzero(law.basis[:, -1]).tolist()


def test_a_comb_is_every_code_that_holds_a_multiple():
    assert Comb(25.0, 0.0).codes(101).tolist() == [0, 25, 50, 75, 100]
    assert Comb(7.5, 3.2).codes(30).tolist() == [3, 10, 18, 25]
    assert Comb(5.0, 4.9).codes(5).tolist() == [4]


@pytest.mark.parametrize("comb", [Comb(25.0, 0.0), Comb(20.0, 7.0), Comb(40.0, 0.0)])
def test_round_codes_are_found_where_they_are(comb):
    """Every code of them, not of a half or a third of the distance; and as many people as round."""
    f = rounding(comb, 0.4)
    law = rounded(*smooth_law(estimates(f, 0.004, 1)))
    assert law is not None
    assert column_of(law) == comb.codes(D).tolist()
    assert law.frequencies[comb.codes(D)].sum() == pytest.approx(f[comb.codes(D)].sum(), abs=0.03)


def test_heaps_need_not_be_whole_codes_apart():
    comb = Comb(13.37, 5.2)
    law = rounded(*smooth_law(estimates(rounding(comb, 0.4), 0.003, 2)))
    assert law is not None
    wanted, found = comb.codes(D), np.array(column_of(law))
    assert abs(found.size - wanted.size) <= 1
    assert np.abs(found[:, None] - wanted).min(axis=1).max() <= 2, "codes off at most"


def test_it_shares_the_prior_of_the_smooth_law():
    data, law = smooth_law(estimates(rounding(Comb(25.0, 0.0), 0.4), 0.004, 1))
    likely, less = rounded(data, law), rounded(data, law, log_prior=-2.0)
    assert likely is not None
    assert less is not None
    assert less.log_evidence == pytest.approx(likely.log_evidence - 2.0)


def test_nobody_rounds_by_chance():
    """40 data sets of smooth people, two noises: a score of 5 is passed by chance once in some thousand."""
    for sd in (0.004, 0.02):
        assert [seed for seed in range(20) if rounded(*smooth_law(estimates(BELL, sd, seed))) is not None] == []


def test_small_and_huge_domains_are_left_alone():
    law = LogLinear(1.0, 0.0, np.zeros((8, 1)), np.zeros(1), np.eye(1), np.full(8, 1 / 8))
    data = CellData.of([CellEstimates(np.array([0, 4, 8]), np.array([0.9, 0.1]), np.full(2, 1e4))], 1.0)
    assert rounded(data, law) is None


def test_scores_are_those_of_a_dense_computation():
    data, law = smooth_law(estimates(rounding(Comb(25.0, 0.0), 0.1), 0.01, 3))
    combs = [Comb(25.0, 0.0), Comb(25.0, 9.0), Comb(11.3, 2.0)]
    x, borders = law.frequencies, data.borders
    columns = np.stack([np.isin(np.arange(D), comb.codes(D)).astype(float) for comb in combs], axis=1)
    effect = data.jacobian(columns, x)
    smooth = data.jacobian(law.basis, x) @ law.spread
    information = (effect**2).sum(axis=0) - ((smooth.T @ effect) ** 2).sum(axis=0)
    pull = effect.T @ data.residual(x)
    score, height = comb_scores(Residuals.of(data, law), combs)
    assert borders[-1] == D
    np.testing.assert_allclose(score, pull / np.sqrt(information), rtol=1e-9)
    np.testing.assert_allclose(height, pull / information, rtol=1e-9)


def test_rounding_is_what_a_smooth_density_lacks():
    """Ranges of people who round to 25 codes: less than half of the error of the smooth law."""
    f, wrong = rounding(Comb(25.0, 0.0), 0.4), []
    for seed in range(5):
        given = estimates(f, 0.006, seed)
        found = smooth_law(given)[1].frequencies, smooth_density(D, given).frequencies
        wrong.append([np.mean(np.cumsum(x - f) ** 2) for x in found])
    before, after = np.mean(wrong, axis=0)
    assert after < before / 2
