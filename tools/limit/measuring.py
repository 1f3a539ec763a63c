"""The default, and those who know more, on members of a class: errors against the density that people were drawn by."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ahead_ldp.engines.simulation import Population
from ahead_ldp.protocol.session import Session
from ahead_ldp.research.evaluation import choose, workload_rng
from ahead_ldp.schema.attributes import as_schema, codes
from ahead_ldp.schema.workloads import Workload, random_workload
from tools.limit.bound import answers, at_centre, van_trees
from tools.limit.classes import SPREAD, Class, class_of
from tools.limit.oracle import Posterior, asked_with, read
from tools.limit.questions import Design

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Line = dict[str, Any]
Choices = dict[str, float]

PEOPLE = (10_000, 100_000, 1_000_000, 10_000_000)
EPSILONS = (0.1, 0.5, 1.0, 2.0)
QUERIES, SEED = 200, 52_021
NAMED = "shape", "n", "epsilon", "spread", "choices"  # what a line is known by
CURVES = {
    "itself": "the default, on the shape itself",
    "default": "the default",
    "people": "the default, against the shares of the people themselves",
    "asked": "the default, asked with the true density known",
    "read": "the default's reports, read by somebody who knows the class",
    "oracle": "the best questions that we know for somebody who knows the class, read by the same",
    "read risk": "what this reader expects the error to be",
    "oracle risk": "what the other expects it to be",
}


@dataclass(frozen=True, eq=False)
class Setting:
    """What is the same for all members of a class."""

    ranges: Workload
    n: int
    epsilon: float
    choices: Choices  # of the method, in place of its own


def measure(
    name: str, n: int, epsilon: float, count: int, spread: float = SPREAD, choices: Choices | None = None
) -> Line:
    """One line of the table. Errors are lists: one for each member drawn, the same members for every curve.

    ``choices`` take the place of the default's own.
    """
    members = class_of(name, spread)
    ranges = ranges_of(members.shape.size)
    ends, rng = ranges.boxes[:, 0, :], _rng(name, n, epsilon)
    setting = Setting(ranges, n, epsilon, choices or {})
    design = Design.of(members, ends, n, epsilon)
    half = rng.standard_normal((-(-count // 2), members.spread.size)) * members.spread
    drawn = members.density(members.centre + np.concatenate([half, -half])[:count])
    errors: dict[str, list[float]] = {curve: [] for curve in CURVES}
    for density in drawn:
        for curve, error in _errors(members, design, setting, density, rng).items():
            errors[curve].append(error)
        own = _default(rng.multinomial(n, members.shape), setting, rng)[0]
        errors["itself"].append(_mse(own, answers(members.shape, ends)))
    return {
        "shape": name,
        "n": n,
        "epsilon": epsilon,
        "spread": spread,
        "choices": setting.choices,
        "bound": van_trees(members, ends, n, epsilon),
        "local": at_centre(members, ends).bound(n, epsilon),
        "expected": design.expected,
        "prior": float(np.mean((answers(drawn.T, ends) - answers(members.shape, ends)[:, None]) ** 2)),
        "errors": errors,
    }


def ranges_of(size: int) -> Workload:
    """The ranges that are asked about, random ones and always the same."""
    return random_workload((size,), QUERIES, workload_rng(SEED))


def _errors(members: Class, design: Design, setting: Setting, density: Floats, rng: Generator) -> dict[str, float]:
    """Of one member, with people drawn from it."""
    ends = setting.ranges.boxes[:, 0, :]
    truth, people = answers(density, ends), rng.multinomial(setting.n, density)
    default, session = _default(people, setting, rng)
    with asked_with(density):
        asked, _ = _default(people, setting, rng)
    by_class = Posterior.of(members, read(session.answered(), members), rng)
    oracle = Posterior.of(members, read(design.asked(people, rng), members), rng)
    return {
        "default": _mse(default, truth),
        "people": _mse(default, answers(people / setting.n, ends)),
        "asked": _mse(asked, truth),
        "read": _mse(answers(by_class.mean, ends), truth),
        "read risk": by_class.risk(ends),
        "oracle": _mse(answers(oracle.mean, ends), truth),
        "oracle risk": oracle.risk(ends),
    }


def _default(people: Ints, setting: Setting, rng: Generator) -> tuple[Floats, Session]:
    """The answers of what a user gets who names no method."""
    schema = as_schema([codes("x", people.size)])
    mechanism = choose(None, schema, setting.epsilon, setting.n)[0]
    mechanism = replace(mechanism, **setting.choices) if setting.choices else mechanism
    groups = Population.of_histogram(people).divide(mechanism.groups(schema), rng)
    session = Session(mechanism, schema)
    while session.estimate is None:
        session.tell({g: q.oracle.simulate(groups[g].cells(q), rng) for g, q in session.wave.items()})
    return session.estimate.answer(setting.ranges, errors=False).values, session


def keep(file: Path, line: Line) -> None:
    """Put a line into the file, in place of one that is about the same."""
    lines = lines_of(file) if file.exists() else []
    same = [all(other.get(key) == line.get(key) for key in NAMED) for other in lines]
    kept = [other for other, gone in zip(lines, same, strict=True) if not gone] + [line]
    file.write_text("".join(json.dumps(rounded(x)) + "\n" for x in kept), encoding="utf-8")


def lines_of(file: Path) -> list[Line]:
    """The lines of a file."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def rounded(value: Any) -> Any:
    """With four digits of every real number."""
    if isinstance(value, dict):
        return {key: rounded(x) for key, x in value.items()}
    if isinstance(value, list):
        return [rounded(x) for x in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def shown(line: Line) -> str:
    """A line in text: the bound, and all errors over it."""
    over = {curve: np.mean(found) / line["bound"] for curve, found in line["errors"].items()}
    ratios = " ".join(f"{curve} {x:.2f}" for curve, x in over.items())
    own = " ".join(f"{key}={value}" for key, value in line["choices"].items())
    return (
        f"{line['shape']:18s} {line['n']:>9,} {line['epsilon']:4g} {own} bound {line['bound']:.2e}  over it: {ratios}"
    )


def _mse(answered: Floats, truth: Floats) -> float:
    return float(np.mean((answered - truth) ** 2))


def _rng(name: str, n: int, epsilon: float) -> Generator:
    return np.random.default_rng(int.from_bytes(hashlib.sha256(f"{name} {n} {epsilon}".encode()).digest()[:8]))
