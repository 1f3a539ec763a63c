"""One attribute's own mechanism, run side by side with others' by a mechanism for several attributes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.slices import slices
from ahead_ldp.mechanisms.adaptive.adaptive import Adaptive1, reports_of
from ahead_ldp.mechanisms.adaptive.estimates import AdaptiveEstimate
from ahead_ldp.mechanisms.fused.margins import Margin
from ahead_ldp.protocol.mechanism import Question, Tallies, axes_of
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.arrays import Floats, Ints

_PIECES = 128  # of equal width, beside the bins: where errors are told apart (choice F5)


@dataclass(slots=True)
class AttributeRun:
    """A mechanism for one attribute while it runs; its groups and questions are renamed for the whole schema."""

    mechanism: Adaptive1
    schema: Schema  # of the attribute alone
    attribute: int
    told: list[str] = field(default_factory=list)  # groups that have answered
    _session: Session = field(init=False)

    def __post_init__(self) -> None:
        """Ask for its first wave."""
        self._session = Session(self.mechanism, self.schema)

    @property
    def people(self) -> int:
        """How many have answered."""
        return self._session.provenance.people

    @property
    def waves(self) -> int:
        """How many waves there will be."""
        return self.mechanism.waves_of(self.schema)

    def group(self, name: str) -> str:
        """The name of one of its groups among all."""
        return f"{self.attribute + 1}.{name}"

    def ask(self) -> dict[str, Question]:
        """The questions of the next wave; none when it is over."""
        wave = self._session.wave
        return {self.group(name): Question((self.attribute,), q.partition, q.oracle) for name, q in wave.items()}

    def tell(self, tallies: Tallies) -> None:
        """Take in what its groups said."""
        if self._session.is_open:
            mine = {name: tallies[self.group(name)] for name in self._session.wave}
            self.told += map(self.group, mine)
            self._session.tell(mine)

    def density(self) -> Floats:
        """The shares of all codes so far, not negative, of sum 1."""
        reports = [reports_of(question, tally) for question, tally in self._session.answered()]
        weighing = self.mechanism.weighing
        return _density(AdaptiveEstimate.of(self.schema, axes_of(self.schema)[0], reports, weighing=weighing))

    def margin(self, bins: Ints) -> Margin:
        """The density with its errors on the bins, cut further, when all waves are told."""
        size, estimate = self.schema.sizes[0], self._session.estimate
        assert estimate is not None
        parts = np.unique(np.concatenate([bins, np.arange(_PIECES + 1) * size // _PIECES]))
        lo, hi = parts[:-1].astype(float), parts[1:].astype(float)
        drawn = estimate.joint_errors(slices(self.schema, self.schema.names[0], lo, hi))
        if drawn is None:
            return Margin(_density(estimate), bins, parts, np.zeros((lo.size, lo.size)), known=False)
        return Margin(_density(estimate), bins, parts, drawn.T @ drawn / len(drawn))


def _density(estimate: Estimate) -> Floats:
    schema = estimate.schema
    codes = np.arange(schema.sizes[0], dtype=float)
    answers = estimate.answer(slices(schema, schema.names[0], codes, codes + 1), errors=False)
    shares = np.maximum(answers.values, 0.0)
    return shares / shares.sum() if shares.any() else np.full(codes.size, 1 / codes.size)
