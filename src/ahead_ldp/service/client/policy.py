"""What the owner of a device allows, whatever a server says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ahead_ldp.device.campaign import Campaign
from ahead_ldp.device.epsilon import exact_epsilon
from ahead_ldp.device.question import Policy, Question
from ahead_ldp.device.refusals import QuestionRefused


@dataclass(frozen=True, slots=True)
class OwnerPolicy(Policy):
    """The limits of one report, the owner's own names for attributes, and lifetime limits.

    ``fields`` maps an attribute of a campaign to the owner's field that it reads. Two campaigns that call one thing
    by two names read the same field; an attribute that the owner has not mapped is not answered. Without an entry in
    ``limits`` a field is reported once in a lifetime; with one, while the sum of epsilon stays within it.
    """

    least_group: int = 10
    fields: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, float | str | Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a limit that is no number."""
        exact_epsilon(self.max_epsilon)
        self.exact_limits()

    def exact_limits(self) -> dict[str, Fraction]:
        """Lifetime limits as rationals."""
        try:
            return {name: Fraction(str(value)) for name, value in self.limits.items()}
        except (ValueError, ZeroDivisionError):
            raise ValueError("expected lifetime limits to be numbers") from None

    def check_campaign(self, campaign: Campaign) -> None:
        """Refuse a campaign whose terms are outside the owner's, before any of its questions is looked at."""
        if campaign.epsilon > exact_epsilon(self.max_epsilon):
            raise QuestionRefused("expected epsilon within the device's limit")
        if campaign.minimum < self.least_group:
            raise QuestionRefused(f"expected groups of at least {self.least_group} people")

    def known_fields(self, question: Question) -> tuple[str, ...]:
        """The owner's fields that a question reads, each once, as far as the owner has named them."""
        return tuple(dict.fromkeys(self.fields[a.name] for a in question.asked if a.name in self.fields))

    def map_fields(self, question: Question, asked_of_all: Iterable[str]) -> tuple[str, ...]:
        """The owner's fields that a question reads, each once; every attribute that any group is asked must have one.

        Else a device would answer or not by its group, and a server could see who has which field.
        """
        if unknown := [name for name in asked_of_all if name not in self.fields]:
            raise QuestionRefused(f"the owner has not said which field {unknown[0]} is")
        return self.known_fields(question)
