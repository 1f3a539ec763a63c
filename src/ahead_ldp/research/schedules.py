"""A campaign that is repeated: which people answer in which round, and what that costs each of them, before it opens.

Every round is a campaign of its own, with fresh noise. People are divided into panels that take turns, so that nobody
answers in every round; with one panel everybody does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar

from numpy.random import Generator

from ahead_ldp.device.epsilon import epsilon_text, exact_epsilon

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rounds by name, in order of time; epsilon of every report; and how many panels take turns.

    Guarantees:
        total  all reports of one person together are epsilon-LDP, with the epsilon that ``total`` says for their panel
    """

    rounds: tuple[str, ...]
    epsilon: Fraction
    panels: int = 1

    @classmethod
    def of(cls, rounds: Sequence[str], epsilon: float | str | Fraction, panels: int = 1) -> Schedule:
        """A schedule, or a refusal of what cannot be one."""
        names = tuple(rounds)
        if not names or len(set(names)) != len(names) or not all(names):
            raise ValueError(f"expected rounds of different names, got {', '.join(map(repr, names)) or 'none'}")
        if not 1 <= panels <= len(names):
            raise ValueError(f"expected 1 to {len(names)} panels, one for each round at most, got {panels}")
        return cls(names, exact_epsilon(epsilon), panels)

    def panel_of(self, place: int) -> int:
        """The panel that answers in a round, by the round's place; both count from 0."""
        return place % self.panels

    def total(self, panel: int) -> Fraction:
        """What somebody of a panel has spent after all rounds: the sum over those in which it answers."""
        return self.epsilon * sum(self.panel_of(place) == panel for place in range(len(self.rounds)))

    @property
    def most(self) -> Fraction:
        """What anybody spends at most."""
        return max(self.total(panel) for panel in range(self.panels))

    def table(self, users: int | None = None) -> list[dict[str, Any]]:
        """For each round: its panel, the people who are asked, epsilon, and what the panel has spent by then.

        ``users`` is everybody who is to be divided into the panels.
        """
        return list(self._rows(users))

    def _rows(self, users: int | None) -> Iterator[dict[str, Any]]:
        spent = [Fraction(0)] * self.panels
        for place, name in enumerate(self.rounds):
            panel = self.panel_of(place)
            spent[panel] += self.epsilon
            people = {} if users is None else {"people": _size(users, self.panels, panel)}
            cost = {"epsilon": float(self.epsilon), "spent": float(spent[panel])}
            yield {"round": name, "panel": panel + 1, **people, **cost}

    def divided(self, people: Sequence[T], rng: Generator) -> list[list[T]]:
        """The people of each panel, drawn by chance: who is in which must not depend on what they would answer."""
        order = rng.permutation(len(people)).tolist()
        ends = [0]
        for panel in range(self.panels):
            ends.append(ends[-1] + _size(len(people), self.panels, panel))
        return [[people[i] for i in sorted(order[a:b])] for a, b in pairwise(ends)]

    def sentences(self, users: int | None = None) -> list[str]:
        """What a participant, and those who look after data protection, need to know."""
        turns = -(-len(self.rounds) // self.panels)
        said = [f"{len(self.rounds)} rounds, each report with epsilon {epsilon_text(self.epsilon)} and fresh noise."]
        if self.panels > 1:
            said.append(f"{self.panels} panels take turns: nobody answers more than {turns} times.")
        said.append(f"All reports of one person together are epsilon-LDP with epsilon {float(self.most):g}.")
        if users is not None:
            said.append(f"A round is answered by up to {_size(users, self.panels, 0):,} people.")
        return said


def _size(users: int, panels: int, panel: int) -> int:
    return users // panels + (panel < users % panels)
