"""Heaps on a smooth density: none where people lie smoothly, each one found where it is, and what they gain."""

import numpy as np
import pytest

from ahead_ldp.inference.cell_estimates import CellData, CellEstimates, from_zero
from ahead_ldp.inference.heaps import with_heaps
from ahead_ldp.inference.log_linear import fit
from ahead_ldp.inference.smooth_density import _basis, smooth_density

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


def law_of(given: list[CellEstimates]):
    data = CellData.of(given, 1.0)
    smooth = fit(data, _basis((np.arange(D) + 0.5) / D, 40))
    return data, with_heaps(data, smooth)


def test_smooth_people_have_none():
    """128 places, 20 data sets: a threshold of 4 standard deviations is passed by chance with probability 0.08."""
    assert [seed for seed in range(20) if law_of(estimates(SMOOTH, 1e5, seed))[1] is not None] == []


@pytest.mark.parametrize("places", [{40: 0.1}, {0: 0.3}, {20: 0.05, 60: 0.08, 100: 0.05}])
def test_each_heap_is_found_where_it_is(places):
    _, law = law_of(estimates(heaped(places), 1e5, 1))
    assert law is not None
    columns = law.basis[:, 42:]
    found = {int(np.flatnonzero(column)[0]) for column in columns.T}
    assert (columns.sum(axis=0) == 1).all(), "single codes were asked about"
    assert found == set(places)
    for code, share in places.items():
        # two cells of about eight codes and one of a single code know it: the least of their variances is 1e-5
        assert abs(law.frequencies[code] - heaped(places)[code]) < 4 * np.sqrt(1e-5), share


def test_a_heap_that_was_not_located_fills_its_cell():
    given = estimates(heaped({43: 0.2}), 1e6, 2)[:2]
    _, law = law_of(given)
    assert law is not None
    inside = np.flatnonzero(law.basis[:, 42])
    assert 43 in inside
    assert inside.tolist() == list(range(43, 48)), "borders at 40, 43 and 48"


def test_heaps_are_what_a_smooth_density_lacks():
    f = heaped({20: 0.05, 60: 0.08, 100: 0.05})
    wrong = []
    for seed in range(5):
        given = estimates(f, 3e4, seed)
        data = CellData.of(given, 1.0)
        plain = fit(data, _basis((np.arange(D) + 0.5) / D, 40)).frequencies
        found = plain, smooth_density(D, given).frequencies
        wrong.append([((np.cumsum(x) - np.cumsum(f)) ** 2).mean() for x in found])
    before, after = np.mean(wrong, axis=0)
    assert after < before / 3


def test_a_heap_pays_for_its_place():
    """The evidence of the law is less than that of the fit by log(places) for every heap."""
    given = estimates(heaped({40: 0.1}), 1e5, 1)
    data, law = law_of(given)
    assert law is not None
    same = fit(data, law.basis, law.mean, 1)
    assert law.log_evidence == pytest.approx(same.log_evidence - np.log(data.borders.size), abs=0.5)
