"""What the tests of one-wave mechanisms share: legal estimates on any domain, means and variances of repeated runs."""

from typing import Any

import numpy as np

from ahead_ldp.device import Schema
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.protocol.session import finish
from ahead_ldp.schema.workloads import Workload, random_workload, true_answers
from tests.support import PASS, schema_of

REPEATS = 1500


def bumpy(sizes: tuple[int, ...], people: int, seed: int = 1) -> np.ndarray:
    """Counts with no cell near 0."""
    shares = 1 + np.random.default_rng(seed).random(sizes)
    return np.floor(people * shares / shares.sum()).astype(np.int64)


def ranges(*closed: tuple[int, int], size: int) -> Workload:
    """Closed ranges of one attribute."""
    return Workload.from_codes([size], [[pair] for pair in closed])


def whole(schema: Schema) -> Workload:
    """The query for everybody."""
    return Workload.from_codes(schema, [[[0, size - 1] for size in schema.sizes]])


def strong_over_paper(kind: Any, epsilon: float, histogram: np.ndarray, workload: Workload, runs: int) -> float:
    """The mean squared error of a method's strong preset over that of its paper's, on the same people."""
    people, truth, error = Population.of_histogram(histogram), true_answers(workload, histogram), {}
    for name, mechanism in (("paper", kind.paper(epsilon)), ("strong", kind.strong(epsilon))):
        rng = np.random.default_rng(8)
        found = [run_simulation(mechanism, schema_of(*histogram.shape), people, rng) for _ in range(runs)]
        error[name] = np.mean([(each.answer(workload, errors=False).values - truth) ** 2 for each in found])
    return float(error["strong"] / error["paper"])


def bell_of_256(people: int) -> tuple[np.ndarray, Workload]:
    """A bell on 256 codes, and a hundred random ranges."""
    shape = np.exp(-0.5 * ((np.arange(256) - 128) / 20) ** 2)
    histogram = np.random.default_rng(6).multinomial(people, shape / shape.sum())
    return histogram, random_workload([256], 100, np.random.default_rng(7))


def mean_and_variance_hold(
    mechanism: Mechanism, schema: Schema, histogram: np.ndarray, workload: Workload
) -> tuple[bool, np.ndarray]:
    """Whether answers are unbiased, and how many standard errors their spread is off from their standard errors.

    The variance of 1500 runs is known to 3.7 %, so a variance 30 % off lies eight standard errors out.
    """
    rng, people = np.random.default_rng(3), Population.of_histogram(histogram)
    runs = [run_simulation(mechanism, schema, people, rng) for _ in range(REPEATS)]
    answers = np.stack([run.answer(workload, errors=False).values for run in runs])
    predicted = np.mean([run.answer(workload).standard_error ** 2 for run in runs[:40]], axis=0)
    found = answers.var(axis=0, ddof=1)
    off = np.abs(answers.mean(axis=0) - true_answers(workload, histogram)) / np.sqrt(found / REPEATS)
    return bool((off < PASS).all()), (found / predicted - 1) / np.sqrt(2 / REPEATS)


def check_mean_and_variance(mechanism: Mechanism, schema: Schema, histogram: np.ndarray, workload: Workload) -> None:
    unbiased, off = mean_and_variance_hold(mechanism, schema, histogram, workload)
    assert unbiased
    assert (np.abs(off) < PASS).all(), off


def check_any_numbers(mechanism: Mechanism, schema: Schema, seed: int = 0) -> None:
    """Nobody, one person, few people, many: always an estimate without NaN, and 1 for everybody."""
    rng = np.random.default_rng(seed)
    cells = np.zeros(schema.sizes, np.int64)
    some = tuple(rng.integers(0, size) for size in schema.sizes)
    check_legal(finish(mechanism, schema), schema, rng)
    for people in (1, 7, 3000):
        cells[some] = people
        cells.flat[-1] += people
        estimate = run_simulation(mechanism, schema, Population.of_histogram(cells), rng)
        check_legal(estimate, schema, rng)


def check_legal(estimate: Estimate, schema: Schema, rng: np.random.Generator) -> None:
    everybody = estimate.answer(whole(schema))
    np.testing.assert_allclose(everybody.values, 1.0, atol=1e-9)
    ends = np.sort(rng.integers(0, np.array(schema.sizes)[:, None], size=(20, len(schema.sizes), 2)), axis=-1)
    found = estimate.answer(Workload.from_codes(schema, ends))
    assert np.isfinite(found.values).all()
    assert (found.standard_error >= 0).all()  # not NaN; infinite where nothing is known
    if estimate.consistent:
        assert (found.values >= -1e-9).all()
        assert (found.values <= 1 + 1e-9).all()


def with_empty(mechanism: Mechanism, schema: Schema, histogram: np.ndarray, empty: set[str]) -> Estimate:
    """The estimate of one wave in which these groups said nothing."""
    rng = np.random.default_rng(5)
    people = Population.of_histogram(histogram).divide(mechanism.groups(schema), rng)
    wave = next(mechanism.run(schema))
    told = {
        group: Tally.empty(q.oracle.outcomes) if group in empty else q.oracle.simulate(people[group].cells(q), rng)
        for group, q in wave.items()
    }
    return finish(mechanism, schema, [told])


def check_record(mechanism: Mechanism) -> None:
    assert type(mechanism).from_record(mechanism.record()) == mechanism
