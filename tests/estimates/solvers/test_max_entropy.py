"""The maximum-entropy step: a general solver on the same problem, exact maximum entropy, slopes, feasibility."""

import numpy as np
import pytest

from ahead_ldp.estimates.solvers.max_entropy import BLOCKS, attributes_of, block_map, solve, weighted_update
from tests.reference import in_out_cells as slow
from tests.reference.feasibility import features, fitted, is_feasible


def distributions(q: int, count: int, seed: int, even: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(1 << q, even), size=count)


def blocks_of(f: np.ndarray, q: int) -> np.ndarray:
    return np.stack([slow.block_sums(row, q) for row in f])


def noisy_blocks(q: int, count: int, seed: int, noise: float) -> np.ndarray:
    """As pair trees give them: some below 0, sums that are not 1, shared attributes that disagree."""
    rng = np.random.default_rng([seed, 1])
    exact = blocks_of(distributions(q, count, seed, 0.5), q)
    return exact + noise * rng.normal(size=exact.shape)


@pytest.mark.parametrize("q", [3, 4])
@pytest.mark.parametrize("noise", [0.003, 0.03, 0.15])
def test_it_is_what_a_general_solver_finds(q, noise):
    pairs = q * (q - 1) // 2
    variance = noise**2 * np.random.default_rng(q).uniform(0.5, 2, pairs)
    blocks = noisy_blocks(q, 5 if q == 3 else 2, q, noise)
    assert not is_feasible(blocks).any()
    answers = solve(blocks, variance).answers
    for t, answer in zip(blocks, answers, strict=True):
        generic = slow.generic_minimum(t, variance, q)
        assert answer == pytest.approx(generic[0], abs=1e-6)


@pytest.mark.parametrize("q", [3, 4])
def test_the_reference_problem_has_its_minimum_where_the_general_solver_says(q):
    variance = np.full(q * (q - 1) // 2, 1e-3)
    blocks = noisy_blocks(q, 1, 9, 0.03)[0]
    best = slow.generic_minimum(blocks, variance, q)
    least = slow.objective(best, blocks, variance, q)
    for other in distributions(q, 20, 8):
        assert slow.objective(0.999 * best + 0.001 * other, blocks, variance, q) > least


@pytest.mark.parametrize("q", [3, 4, 5])
def test_with_little_noise_it_is_exact_maximum_entropy_where_that_exists(q):
    f = distributions(q, 8, 20 + q)
    blocks = blocks_of(f, q)
    assert is_feasible(blocks).all()
    exact = [slow.proportional_fit(t, q)[0] for t in blocks]
    np.testing.assert_allclose(solve(blocks, np.full(blocks.shape[1], 1e-10)).answers, exact, atol=1e-6)
    assert np.abs(exact - f[:, 0]).max() > 1e-3  # entropy decides: pairs do not fix the rest


@pytest.mark.parametrize("q", [3, 4, 5])
def test_weighted_update_is_proportional_fitting_where_blocks_are_feasible(q):
    blocks = blocks_of(distributions(q, 8, 30 + q), q)
    exact = [slow.proportional_fit(t, q)[0] for t in blocks]
    np.testing.assert_allclose(weighted_update(blocks, sweeps=20_000, tolerance=1e-13), exact, atol=1e-9)


def test_weighted_update_takes_what_cannot_be():
    blocks = noisy_blocks(4, 50, 3, 0.2)
    blocks[0] = 0.0
    blocks[1] = -1.0
    found = weighted_update(blocks)
    assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize("q", [3, 4])
def test_slopes_are_finite_differences(q):
    pairs = q * (q - 1) // 2
    variance = 1e-3 * np.random.default_rng(5).uniform(0.5, 2, pairs)
    blocks, step = noisy_blocks(q, 5, 40 + q, 0.02), 1e-5
    slopes = solve(blocks, variance).by_block
    for p in range(pairs):
        for b in range(4):
            moved = np.zeros_like(blocks)
            moved[:, p, b] = step
            difference = solve(blocks + moved, variance).answers - solve(blocks - moved, variance).answers
            np.testing.assert_allclose(slopes[:, p, b], difference / (2 * step), atol=2e-5)


def test_every_answer_is_a_share_and_queries_do_not_meet():
    rng = np.random.default_rng(6)
    for q in (2, 3, 5, 7):
        pairs = q * (q - 1) // 2
        blocks = rng.normal(0.25, 0.4, (30, pairs, 4))
        variance = 10.0 ** rng.uniform(-9, 1, pairs)
        found = solve(blocks, variance)
        assert ((found.answers >= 0) & (found.answers <= 1)).all()
        assert np.isfinite(found.by_block).all()
        alone = np.concatenate([solve(blocks[i : i + 1], variance).answers for i in range(30)])
        np.testing.assert_allclose(found.answers, alone, atol=1e-9)


def test_the_gradient_is_zero_where_it_stops():
    """Hard cases: hardly any noise allowed, blocks far from any distribution. The fit is then the nearest there is."""
    rng = np.random.default_rng(7)
    blocks = rng.dirichlet(np.full(4, 0.3), size=(40, 6))
    tight, loose = (solve(blocks, np.full(6, v)).answers for v in (1e-7, 2e-7))
    assert np.abs(tight - loose).max() < 1e-3
    for t, answer in zip(blocks[:2], solve(blocks[:2], np.full(6, 1e-3)).answers, strict=True):
        assert answer == pytest.approx(slow.generic_minimum(t, np.full(6, 1e-3), 4)[0], abs=1e-6)


def test_the_order_of_attributes_does_not_matter():
    q, order = 4, [2, 0, 3, 1]
    blocks, variance = noisy_blocks(q, 20, 11, 0.05), np.array([1, 2, 3, 4, 5, 6]) * 1e-4
    pairs = [(i, j) for i in range(q) for j in range(i + 1, q)]
    place = [pairs.index(tuple(sorted((order[i], order[j])))) for i, j in pairs]
    turned = [order[i] > order[j] for i, j in pairs]
    moved = np.stack(
        [blocks[:, p][:, [0, 2, 1, 3]] if t else blocks[:, p] for p, t in zip(place, turned, strict=True)], axis=1
    )
    np.testing.assert_allclose(solve(moved, variance[place]).answers, solve(blocks, variance).answers, atol=1e-9)


@pytest.mark.parametrize("q", [2, 3, 4, 5])
def test_features_and_blocks_are_those_of_the_cells(q):
    matrix, constant = block_map(q)
    f = distributions(q, 5, q)
    numbers = [sum(1 << i for i, inside in enumerate(cell) if inside) for cell in slow.cells(q)]
    in_order = np.empty_like(f)
    in_order[:, numbers] = f
    assert numbers[0] == (1 << q) - 1  # all in
    np.testing.assert_allclose(
        (in_order @ features(q)) @ matrix.transpose(0, 2, 1) + constant[:, None], _pairs_first(f, q)
    )
    exact = blocks_of(f, q)
    np.testing.assert_allclose(fitted(exact, np.full(exact.shape[1], 1e-4)), exact, atol=1e-9)


def test_the_order_of_blocks_is_that_of_the_cells_of_a_pair():
    assert tuple(map(tuple, slow.cells(2))) == BLOCKS


def _pairs_first(f: np.ndarray, q: int) -> np.ndarray:
    return blocks_of(f, q).transpose(1, 0, 2)


def test_fitted_blocks_sum_to_one_and_agree_on_attributes():
    blocks = noisy_blocks(4, 20, 12, 0.1)
    found = fitted(blocks, np.array([1, 2, 3, 4, 5, 6]) * 1e-4)
    np.testing.assert_allclose(found.sum(axis=2), 1.0)
    np.testing.assert_allclose(found[:, 0, [0, 1]].sum(axis=1), found[:, 1, [0, 1]].sum(axis=1))  # attribute 0
    np.testing.assert_allclose(found[:, 0, [0, 2]].sum(axis=1), found[:, 3, [0, 1]].sum(axis=1))  # attribute 1
    np.testing.assert_allclose(fitted(found, np.full(6, 1e-4)), found, atol=1e-9)


def test_feasible_is_what_some_distribution_has():
    assert is_feasible(blocks_of(distributions(3, 10, 1, 0.2), 3)).all()
    assert is_feasible(blocks_of(distributions(5, 3, 2, 0.2), 5)).all()
    half = np.array([0.0, 0.5, 0.5, 0.0])
    apart = np.tile(half, (1, 3, 1))  # three halves, no two of which meet
    sums = np.tile([0.3, 0.3, 0.3, 0.3], (1, 3, 1))
    below = np.tile([-0.1, 0.4, 0.4, 0.3], (1, 3, 1))
    marginals = np.array([[[0.25] * 4, [0.25] * 4, [0.4, 0.2, 0.2, 0.2]]])
    assert not np.concatenate([is_feasible(x) for x in (apart, sums, below, marginals)]).any()
    assert is_feasible(np.tile([0.25] * 4, (1, 3, 1))).all()
    barely = np.tile([1 / 6, 1 / 3, 1 / 3, 1 / 6], (1, 3, 1))  # each cell with one or two in: 1/6
    assert is_feasible(barely).all()
    assert not is_feasible(np.tile([1 / 6 - 1e-4, 1 / 3 + 1e-4, 1 / 3 + 1e-4, 1 / 6 - 1e-4], (1, 3, 1))).any()


def test_more_attributes_than_16_are_refused():
    assert attributes_of(120) == 16
    with pytest.raises(ValueError, match="at most 16 attributes, got 17"):
        solve(np.zeros((1, 136, 4)), np.ones(136))


def test_no_queries_no_answers():
    assert solve(np.empty((0, 3, 4)), np.ones(3)).answers.shape == (0,)
