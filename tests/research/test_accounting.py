"""Shuffle accounting: the numerical bound against a slow sum, exact shuffled reports, and the closed forms."""

from itertools import product
from math import comb, exp, log

import numpy as np
import pytest

from ahead_ldp.research.accounting import BOUNDS, central_delta, central_epsilon, local_epsilon


def slow_delta(epsilon: float, n: int, central: float) -> float:
    """The hockey-stick divergence of the two counts, summed over every outcome."""
    w, share = exp(epsilon) / (exp(epsilon) + 1), 2 / (exp(epsilon) + 1)
    laws = [dict[tuple[int, int], float](), dict[tuple[int, int], float]()]
    for c in range(n):
        here = comb(n - 1, c) * share**c * (1 - share) ** (n - 1 - c)
        for a, d in product(range(c + 1), (0, 1)):
            both = here * comb(c, a) / 2**c * (w if d else 1 - w)
            for law, first in zip(laws, (a + d, a + 1 - d), strict=True):
                law[first, c + 1 - first] = law.get((first, c + 1 - first), 0.0) + both
    return sum(max(mass - exp(central) * laws[1].get(key, 0.0), 0.0) for key, mass in laws[0].items())


@pytest.mark.parametrize(("epsilon", "n"), [(0.5, 2), (1.0, 3), (1.0, 9), (2.0, 30), (4.0, 60)])
@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.9])
def test_delta_is_the_sum_over_all_outcomes(epsilon: float, n: int, part: float) -> None:
    found, slow = central_delta(epsilon, n, part * epsilon), slow_delta(epsilon, n, part * epsilon)
    assert found == pytest.approx(slow, rel=1e-9, abs=1e-13)


def shuffled(rows: list[np.ndarray]) -> dict[tuple[int, ...], float]:
    """The law of the histogram of reports, where person i draws from row i."""
    law = {(0,) * rows[0].size: 1.0}
    for row in rows:
        grown: dict[tuple[int, ...], float] = {}
        for counts, mass in law.items():
            for cell, q in enumerate(row):
                key = tuple(c + (i == cell) for i, c in enumerate(counts))
                grown[key] = grown.get(key, 0.0) + mass * float(q)
        law = grown
    return law


def exact_delta(rows: np.ndarray, n: int, central: float) -> float:
    """The largest divergence of shuffled reports of neighbouring populations; rows are the reports' laws by value."""
    worst, values = 0.0, range(len(rows))
    others = {tuple(sorted(x)) for x in product(values, repeat=n - 1)}
    for rest in others:
        laws = {x: shuffled([rows[x], *(rows[y] for y in rest)]) for x in values}
        for x, y in product(values, repeat=2):
            found = sum(max(mass - exp(central) * laws[y].get(k, 0.0), 0.0) for k, mass in laws[x].items())
            worst = max(worst, found)
    return worst


def grr(epsilon: float, d: int) -> np.ndarray:
    return (np.ones((d, d)) + (exp(epsilon) - 1) * np.eye(d)) / (exp(epsilon) + d - 1)


def sparse(epsilon: float) -> np.ndarray:
    """Two values told apart by two outcomes, and a third value whose reports share them as little as can be."""
    p = 1 / (exp(epsilon) + 1)
    return np.array([[1 - p, p, 0.0], [p, 1 - p, 0.0], [p, p, 1 - 2 * p]])


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("d", "n"), [(2, 2), (2, 5), (2, 9), (3, 4), (4, 3)])
def test_no_shuffled_population_is_less_private_than_the_bound(epsilon: float, d: int, n: int) -> None:
    for part in (0.1, 0.4, 0.8):
        assert exact_delta(grr(epsilon, d), n, part * epsilon) <= central_delta(epsilon, n, part * epsilon) + 1e-12


def test_the_bound_is_met_where_clones_are_scarcest() -> None:
    """Others who are clones as rarely as the argument allows make the pair of counts itself: the bound is exact."""
    rows = sparse(1.0)
    laws = [shuffled([rows[x], *[rows[2]] * 8]) for x in (0, 1)]
    exact = sum(max(mass - exp(0.4) * laws[1].get(k, 0.0), 0.0) for k, mass in laws[0].items())
    assert central_delta(1.0, 9, 0.4) == pytest.approx(exact, rel=1e-9)


def test_closed_forms_are_those_of_the_papers_and_lie_above_the_numerical_bound() -> None:
    # FMT21, Thm. 3.1 at n = 10^5, epsilon 4, delta 10^-6 is 0.538 where ln(4 / delta) is rounded up; FMT23 is below.
    assert central_epsilon(4.0, 10**5, 1e-6, "closed_form_2021") == pytest.approx(0.5346, abs=5e-4)
    for n in (10**4, 10**5, 10**6):
        for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
            for delta in (1e-4, 1e-6, 1e-9):
                tight, later, earlier = (central_epsilon(epsilon, n, delta, bound) for bound in BOUNDS)
                assert tight <= later <= earlier <= epsilon


def test_few_people_and_large_epsilons_keep_the_local_guarantee() -> None:
    for bound in BOUNDS:
        assert central_epsilon(1.0, 1, 1e-6, bound) == pytest.approx(1.0, abs=1e-5)
        assert central_epsilon(30.0, 1000, 1e-6, bound) <= 30.0
    assert central_delta(1.0, 100, 1.0) == 0.0


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_local_epsilon_is_the_inverse(bound: str) -> None:
    found = local_epsilon(0.2, 10**5, 1e-6, bound)
    assert central_epsilon(found, 10**5, 1e-6, bound) <= 0.2
    assert central_epsilon(found * 1.001, 10**5, 1e-6, bound) > 0.2
    assert log(found) > log(0.2)


@pytest.mark.parametrize(
    ("given", "said"),
    [((0.0, 10, 1e-6), "epsilon > 0"), ((1.0, 0, 1e-6), "n >= 1"), ((1.0, 10, 0.0), "0 < delta < 1")],
)
def test_bad_input_is_named(given: tuple[float, int, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        central_epsilon(*given)
    with pytest.raises(ValueError, match="bound"):
        central_epsilon(1.0, 10, 0.1, "loose")
