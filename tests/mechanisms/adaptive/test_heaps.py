"""Heaps on a smooth density: none where people lie smoothly, each one found where it is, and what they gain."""

from dataclasses import replace

import numpy as np
import pytest

from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData, CellEstimates, from_zero
from ahead_ldp.mechanisms.adaptive.heaps import with_heaps
from ahead_ldp.mechanisms.adaptive.log_linear import LogLinear, Model, fit
from ahead_ldp.mechanisms.adaptive.score_tests import Residuals
from ahead_ldp.mechanisms.adaptive.smooth_density import _basis, smooth_density

D = 128
SMOOTH = np.exp(-0.5 * ((np.arange(D) + 0.5 - 50) / 20) ** 2)
SMOOTH /= SMOOTH.sum()


def heaped(places: dict[int, float]) -> np.ndarray:
    """The bell with a share of all people on some codes."""
    f = (1 - sum(places.values())) * SMOOTH
    for code, share in places.items():
        f[code] += share
    return f


def estimates(f: np.ndarray, precision: float, seed: int) -> list[CellEstimates]:
    """Three partitions of cells of up to eight codes and one of single codes, with normal noise."""
    rng, found = np.random.default_rng(seed), []
    for inner in (range(8, D, 8), range(3, D, 8), range(6, D, 8), range(1, D)):
        borders = np.array([0, *inner, D])
        exact = np.diff(from_zero(f)[borders])
        noise = rng.standard_normal(exact.size) / np.sqrt(precision)
        found.append(CellEstimates(borders, exact + noise, np.full(exact.size, precision)))
    return found


def model_of(given: list[CellEstimates]) -> tuple[Model, LogLinear]:
    """Cosines of the codes for the places of these estimates, and the smooth law."""
    data = CellData.of(given, 1.0)
    width, places = np.diff(data.borders), replace(data, borders=np.arange(data.borders.size))
    middle = np.add.reduceat((np.arange(D) + 0.5) / D, data.borders[:-1]) / width
    model = Model(places, _basis(middle, 40), width)
    return model, fit(model.start(width / D).settled())


def law_of(given: list[CellEstimates]) -> tuple[list[tuple[int, int]], LogLinear]:
    """The codes of the heaps, first and last, and the law with them."""
    heaps, law = with_heaps(*model_of(given))
    borders = CellData.of(given, 1.0).borders
    return [(int(borders[h]), int(borders[h + 1]) - 1) for h in heaps], law


def test_smooth_people_have_none():
    """128 places, 20 data sets: a threshold of 4 standard deviations is passed by chance with probability 0.08."""
    assert [seed for seed in range(20) if law_of(estimates(SMOOTH, 1e5, seed))[0]] == []


@pytest.mark.parametrize("places", [{40: 0.1}, {0: 0.3}, {20: 0.05, 60: 0.08, 100: 0.05}])
def test_each_heap_is_found_where_it_is(places):
    found, law = law_of(estimates(heaped(places), 1e5, 1))
    assert set(found) == {(code, code) for code in places}, "single codes were asked about"
    for code, share in places.items():
        # two cells of about eight codes and one of a single code know it: the least of their variances is 1e-5
        assert abs(law.frequencies[code] - heaped(places)[code]) < 4 * np.sqrt(1e-5), share


def test_a_heap_that_was_not_located_fills_its_cell():
    given = estimates(heaped({43: 0.2}), 1e6, 2)[:2]
    assert law_of(given)[0] == [(43, 47)], "borders at 40, 43 and 48"
    lifted = smooth_density(D, given).frequencies
    assert lifted[43:48].min() > 2 * max(lifted[42], lifted[48])


def test_heaps_are_what_a_smooth_density_lacks():
    f = heaped({20: 0.05, 60: 0.08, 100: 0.05})
    wrong = []
    for seed in range(5):
        given = estimates(f, 3e4, seed)
        plain = model_of(given)[1].frequencies
        assert plain.size == D
        found = plain, smooth_density(D, given).frequencies
        wrong.append([((np.cumsum(x) - np.cumsum(f)) ** 2).mean() for x in found])
    before, after = np.mean(wrong, axis=0)
    assert after < before / 3


def test_a_heap_pays_for_its_place():
    """The evidence of the law is less than that of the fit by log(places) for every heap."""
    given = estimates(heaped({40: 0.1}), 1e5, 1)
    model, smooth = model_of(given)
    heaps, law = with_heaps(model, smooth)
    same = fit(replace(model, basis=law.basis, own=heaps.size).start(law.frequencies).settled())
    assert law.log_evidence == pytest.approx(same.log_evidence - np.log(model.data.borders.size), abs=0.5)


def test_scores_are_those_of_a_dense_computation():
    model, law = model_of(estimates(heaped({40: 0.02}), 1e5, 3)[:2])
    data, share = model.data, law.frequencies
    place = np.arange(share.size)
    inside = ((data.first[:, None] <= place) & (place < data.last[:, None])).astype(float)
    effect = (inside - (inside @ share)[:, None]) * data.root[:, None]
    taken = (data.jacobian(law.basis, share) @ law.spread).T @ effect
    information = (effect**2).sum(axis=0) - (taken**2).sum(axis=0)
    pull = effect.T @ data.residual(share)
    score, more = Residuals.of(data, law).of_places()
    np.testing.assert_allclose(score, pull / np.sqrt(information), rtol=1e-6)
    np.testing.assert_allclose(more, pull / information, rtol=1e-6)
