"""People, queries and repetitions for the tests of methods on several attributes."""

import numpy as np

from ahead_ldp.device import Schema
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.schema.attributes import as_schema, codes
from ahead_ldp.schema.workloads import Workload, true_answers


def schema_of(*sizes: int) -> Schema:
    return as_schema([codes(f"a{i}", d) for i, d in enumerate(sizes)])


def bumpy(sizes: tuple[int, ...], people: int, seed: int) -> np.ndarray:
    """A histogram with no cell near 0, so that Norm-Sub has nothing to clip."""
    rng = np.random.default_rng(seed)
    shares = 1 + 0.5 * rng.random(sizes)
    return rng.multinomial(people, (shares / shares.sum()).reshape(-1)).reshape(sizes)


def random_ranges(sizes: tuple[int, ...], count: int, seed: int) -> Workload:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, np.array(sizes)[:, None], size=(count, len(sizes), 2))
    return Workload.from_codes(sizes, np.sort(ends, axis=-1))


def whole(sizes: tuple[int, ...]) -> Workload:
    return Workload.from_codes(sizes, [[[0, d - 1] for d in sizes]])


def spread(mechanism: Mechanism, sizes: tuple[int, ...], workload: Workload, reps: int, people: int = 200_000):
    """Answers (reps, n), and the mean of the variances that were claimed."""
    population, schema = Population.of_histogram(bumpy(sizes, people, 7)), schema_of(*sizes)
    found = [
        run_simulation(mechanism, schema, population, np.random.default_rng(r)).answer(workload) for r in range(reps)
    ]
    truth = true_answers(workload, population.histogram)
    return np.stack([f.values for f in found]) - truth, np.mean([f.standard_error**2 for f in found], axis=0)


def cells_of(sizes: tuple[int, ...], parts: int, attributes: int) -> Workload:
    """Every cell of a coarse grid of the first attributes."""
    index = np.indices((parts,) * attributes).reshape(attributes, -1).T
    ranges = np.zeros((len(index), len(sizes), 2), np.int64)
    ranges[..., 1] = np.array(sizes) - 1
    width = np.array(sizes[:attributes]) // parts
    ranges[:, :attributes, 0], ranges[:, :attributes, 1] = index * width, (index + 1) * width - 1
    return Workload.from_codes(sizes, ranges)
