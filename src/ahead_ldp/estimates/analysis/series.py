"""One campaign repeated: the same query in every round, what changed, and what the rounds cost a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ahead_ldp.estimates.analysis.ground import Crowd, assumed
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.bands import shared_level
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Each, Findings
from ahead_ldp.estimates.strict.answers import StrictAnswers
from ahead_ldp.estimates.strict.reports import StrictReports
from ahead_ldp.schema.arrays import Floats
from ahead_ldp.schema.queries import Query
from ahead_ldp.schema.workloads import Workload

_STEPS = np.append(0.0, np.geomspace(0.05, 20.0, 40))  # sizes of a step, in errors of a round (Q18)
_LEAST = 1e-6  # error of a share, below which it counts as this
_FREE = 1e3  # variance of the first share of a walk: nothing is known of it (Q18)
WALK = "the share moves from round to round by independent steps of one size, up or down, and "


@dataclass(frozen=True, eq=False)
class Series:
    """Rounds of one campaign, by name, in order of time."""

    rounds: Mapping[str, Estimate]

    def __post_init__(self) -> None:
        """Refuse fewer than two rounds, and rounds whose reports are not known."""
        given: object = self.rounds  # callers without types may pass anything
        if not isinstance(given, Mapping):
            raise ValueError(f"expected estimates by the names of their rounds, got a {type(given).__name__}")
        if len(self.rounds) < 2:
            raise ValueError(f"expected at least two rounds, got {len(self.rounds)}")
        for name, estimate in self.rounds.items():
            if estimate.provenance is None:
                raise ValueError(f"expected rounds that know their reports, got {name!r} without")

    def __repr__(self) -> str:
        return f"<Series: {', '.join(self.rounds)}>"

    def trend(self, query: Query | str, *, smooth: bool = False) -> Findings:
        """The share of a query in every round.

        Intervals are about everybody from whom each round's people were drawn. With ``smooth`` rounds lend strength to
        one another: the share is taken as a random walk, and the intervals are the model's.
        """
        made = [self._round(estimate, query) for estimate in self.rounds.values()]
        values = np.array([float(answers.values[0]) for answers, _ in made])
        errors = np.array([self._error(e, a) for e, (a, _) in zip(self.rounds.values(), made, strict=True)])
        labels = {"round": np.array(list(self.rounds), object)}
        says, back = assumed(self.rounds.values()), next(iter(self.rounds.values())).backend
        if smooth:
            values, errors = _smoothed(values, errors)
            values = np.clip(values, 0.0, 1.0)
            return Findings(labels, values, None, errors, WALK + says, (0.0, 1.0), is_share=True, backend=back)

        each = Each([partial(_one, strict) for _, strict in made])
        return Findings(labels, np.clip(values, 0.0, 1.0), each, errors, says, (0.0, 1.0), is_share=True, backend=back)

    def changes(self, query: Query | str, level: float = 0.95) -> list[dict[str, Any]]:
        """From each round to the next: by how much the share of a query changed, and whether it surely did.

        The intervals of all steps hold at once.
        """
        names, steps = list(self.rounds), []
        own = shared_level(level, len(names) - 1)
        for before, after in pairwise(names):
            answers = self.rounds[after].since(self.rounds[before]).ask(query)
            low, high = (float(side[0]) for side in answers.interval(own))
            record = {"from": before, "to": after, "change": float(answers.values[0]), "low": low, "high": high}
            steps.append({**record, "changed": low > 0 or high < 0})
        return steps

    def budget(self) -> list[dict[str, Any]]:
        """For each round: people, epsilon, and what somebody who took part in all rounds so far has spent."""
        total, rows = Fraction(0), []
        for name, estimate in self.rounds.items():
            origin: Any = estimate.provenance
            total += Fraction(origin.epsilon)
            rows.append(
                {"round": name, "people": origin.people, "epsilon": float(origin.epsilon), "spent": float(total)}
            )
        return rows

    def _round(self, estimate: Estimate, query: Query | str) -> tuple[Answers, StrictAnswers]:
        workload = Workload.from_queries(estimate.schema, [query])
        origin: Any = estimate.provenance
        evidence = StrictReports(estimate.schema, Crowd(origin))
        return estimate.answer(workload), StrictAnswers(evidence, workload)

    def _error(self, estimate: Estimate, answers: Answers) -> float:
        origin: Any = estimate.provenance
        f = float(np.clip(answers.values[0], 0.0, 1.0))
        return float(np.sqrt(answers.spread[0] ** 2 + f * (1 - f) / max(origin.people, 1)))  # Q15


def _one(strict: StrictAnswers, level: float) -> tuple[float, float]:
    low, high = strict.interval(level)
    return float(low[0]), float(high[0])


def _smoothed(values: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Means and errors of a random walk given noisy values of it, over all sizes of its steps."""
    noise = np.maximum(errors, _LEAST)
    steps = float(np.median(noise)) * _STEPS
    rounds, offset = np.arange(values.size), values - values.mean()
    walk = np.minimum.outer(rounds, rounds).astype(float)
    fits, means, variances = [], [], []
    for step in steps.tolist():
        prior = _FREE + step**2 * walk
        total = prior + np.diag(noise**2)
        solved = np.linalg.solve(total, np.column_stack([offset, prior]))
        fits.append(-(float(np.linalg.slogdet(total)[1]) + float(offset @ solved[:, 0])) / 2)
        means.append(prior @ solved[:, 0])
        variances.append(np.maximum(np.diag(prior - prior @ solved[:, 1:]), 0.0))
    ends = np.concatenate([steps[:1], (steps[1:] + steps[:-1]) / 2, steps[-1:]])
    weights = np.exp(np.array(fits) - max(fits)) * np.diff(ends)
    weights /= weights.sum()
    mean = weights @ np.array(means)
    spread = weights @ (np.array(variances) + (np.array(means) - mean) ** 2)
    return mean + values.mean(), np.sqrt(spread)  # Q18
