"""Bounds from rows: their variance is exact, their weights are the best ones, and they hold whatever the people are.

Three mistakes are put in on purpose, and each must be seen: an interval that is 30 % too short, variances at equal
shares, and groups taken as drawn from people of their own (a forgotten thinning term).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ahead_ldp.engines.simulation import Population
from ahead_ldp.estimates.strict.problem import Problem
from ahead_ldp.estimates.strict.program import Cone, Start
from ahead_ldp.estimates.strict.rows import Rows, cell_rows, contrast_rows, outcome_rows
from ahead_ldp.oracles import SW, Haar, LinearOracle, make_oracle
from ahead_ldp.protocol.mechanism import Group
from ahead_ldp.schema.arrays import Floats, Ints

RUNS = 1_500
PEOPLE = np.array([3_000, 100, 0, 50, 1_200, 30, 20, 600])
Z = 1.959964


def rows_of(name: str, epsilon: float, cells: Ints, part: Ints, rng: np.random.Generator) -> Rows:
    """A group's rows on 8 atoms: ``cells`` says in which cell of its question each atom is."""
    oracle = make_oracle(name, epsilon, int(cells.max()) + 1)
    tally = oracle.simulate(np.bincount(cells, weights=part).astype(np.int64), rng)
    matrix = np.equal.outer(np.arange(oracle.d), cells).astype(float)
    if isinstance(oracle, LinearOracle):
        return cell_rows(oracle, tally.n, oracle.estimate(tally), matrix, np.ones(oracle.d, np.int64))
    if isinstance(oracle, Haar):
        signs = np.equal.outer(np.arange(oracle.nodes), cells // 2) * (1.0 - 2.0 * (cells % 2))
        return contrast_rows(oracle, tally.n, oracle.contrasts(tally), signs)
    assert isinstance(oracle, SW)
    return outcome_rows(oracle, tally, np.arange(oracle.d), cells)[0]


def problems(questions: list[tuple[str, float, Ints]], runs: int, people: Ints = PEOPLE) -> list[Problem]:
    """Runs in which the people are divided among the questions."""
    rng, made = np.random.default_rng(11), []
    groups = tuple(Group(str(i)) for i in range(len(questions)))
    for _ in range(runs):
        parts = Population.of_histogram(people).divide(groups, rng)
        histograms = [parts[group.id].histogram for group in groups]
        rows = tuple(rows_of(*question, part, rng) for question, part in zip(questions, histograms, strict=True))
        made.append(Problem(rows, np.full(people.size, 1 / people.size), int(people.sum())))
    return made


PAIRS, HALVES, CODES = np.arange(8) // 2, np.arange(8) // 4, np.arange(8)


@pytest.mark.parametrize("name", ["grr", "oue", "olh", "ss", "hrr", "sue", "haar", "sw"])
def test_variance_is_exact_with_the_chance_of_who_is_in_which_group(name: str) -> None:
    """Two groups with heavy cells: the mean of squares over 1,500 runs is within 4.5 of its standard errors."""
    runs = problems([(name, 2.0, CODES), ("grr", 3.0, PAIRS)], RUNS)
    weights = np.random.default_rng(5).normal(size=(6, runs[0].y.size))
    f = PEOPLE / PEOPLE.sum()
    values = np.stack([weights @ problem.y for problem in runs])
    runs[0].__dict__["pilot"] = f
    expected = runs[0].squares(weights)
    errors = values - weights @ (runs[0].matrix @ f)
    tolerance = 4.5 * np.sqrt(2 / RUNS)  # 16 %: a variance that is wrong by 30 % is 8 standard errors off
    assert np.abs((errors**2).mean(axis=0) / expected - 1).max() < tolerance
    assert np.abs(errors.mean(axis=0) / np.sqrt(expected / RUNS)).max() < 4.5
    alone = replace(runs[0], people=None)
    alone.__dict__["pilot"] = f
    assert (alone.squares(weights) > expected).all()


def test_a_forgotten_thinning_term_is_seen() -> None:
    """A difference of two groups with little noise is all thinning: 4 times and more the variance of noise alone."""
    runs = problems([("grr", 8.0, CODES), ("grr", 8.0, CODES)], RUNS)
    f = PEOPLE / PEOPLE.sum()
    weights = np.concatenate([np.eye(8)[:1], -np.eye(8)[:1]], axis=1)
    runs[0].__dict__["pilot"] = f
    squares = np.mean([(weights @ problem.y) ** 2 for problem in runs])
    assert abs(squares / runs[0].squares(weights)[0] - 1) < 4.5 * np.sqrt(2 / RUNS)
    assert squares > 4 * _noise_alone(runs[0], weights, f)


def _noise_alone(problem: Problem, weights: Floats, f: Floats) -> float:
    """The variance if both groups were everybody: no chance of who is in which."""
    total = 0.0
    for rows, w in zip(problem.rows, np.split(weights[0], 2), strict=True):
        share = rows.matrix @ f
        total += float(w**2 @ ((rows.own - 1) * share + rows.other)) / rows.n
        total += float(rows.shared * w.sum() ** 2 + 2 * rows.tied * w.sum() * (w @ share)) / rows.n
    return total


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_the_best_for_their_pilot(epsilon: float, seed: int) -> None:
    """The bound that the weights promise is the value of a distribution within reach, nearly: no other can be lower."""
    problem = problems([("oue", epsilon, CODES), ("grr", epsilon, PAIRS), ("olh", epsilon, HALVES)], 1)[0]
    rng = np.random.default_rng(seed)
    f, q = 0.9 * rng.dirichlet(np.full(8, 0.5)) + 0.0125, (rng.random(8) < 0.4).astype(float)
    cone = Cone.of(problem._information(problem._diagonal(f)) + 1e-3 * np.eye(8))
    for settles in (True, False):  # an active set; an interior point
        away = cone.farthest(q, f, Z, Start(np.zeros(8, bool), settles))
        h, length = cone.matrix @ away, float(np.sqrt(away @ cone.matrix @ away))
        bound = float((q - h).max() + h @ f + Z * length)
        x = f + away * Z / max(length, 1e-300)
        assert abs(x.sum() - 1) < 1e-6
        assert x.min() > -0.02
        reached = float(q @ np.maximum(x, 0) / np.maximum(x, 0).sum())
        assert bound - reached <= 0.03 * max(bound - float(q @ f), 1e-9) + 0.02 or bound >= q.max() - 1e-9


def coverage(runs: list[Problem], short: float = 1.0, even: bool = False, people: Ints = PEOPLE) -> float:
    """How often both bounds of the heaviest atom and of a half hold, over all runs."""
    f, held = people / people.sum(), []
    q = np.stack([np.eye(8)[int(people.argmax())], (np.arange(8) < 4).astype(float)])
    for problem in runs:
        ends = problem.upper(np.concatenate([q, -q]), Z)
        error = ends.error
        if even:
            flat = replace(problem)
            flat.__dict__["pilot"] = problem.even
            error = np.sqrt(np.mean([np.maximum(flat.squares(w), 0) for w in ends.weights], axis=0))
        bound = np.minimum(ends.centre + short * Z * error, [1, 1, 0, 0])
        held.append((-bound[2:] <= q @ f) & (q @ f <= bound[:2]))
    return float(np.mean(held))


def test_bounds_hold_and_mistakes_are_seen() -> None:
    """Nearly everybody in one code, one question through subset selection at epsilon 4: 95 % is 95 % there.

    400 runs of two answers: the standard error of a share near 0.95 is 1.1 points at most.
    """
    people = np.array([20, 20, 20, 4_800, 20, 20, 20, 80])
    runs = problems([("ss", 4.0, CODES)], 400, people)
    assert 0.92 < coverage(runs, people=people) < 0.985
    assert coverage(runs, short=0.7, people=people) < 0.89
    assert coverage(runs, even=True, people=people) < 0.89


def test_rows_without_reports_say_nothing() -> None:
    """No groups at all: the bounds are the functional's own."""
    problem = Problem((), np.full(4, 0.25), None)
    ends = problem.upper(np.array([[1.0, 0, 0, 0], [-1.0, -1, 0, 0]]), Z)
    assert ends.centre.tolist() == [1.0, 0.0]
    assert ends.error.tolist() == [0.0, 0.0]
