"""What the owner of a device allows, whatever a server says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ahead_ldp.device.budget import LIFETIME, Limits
from ahead_ldp.device.campaign import Campaign
from ahead_ldp.device.canonical import check_digest, expect
from ahead_ldp.device.epsilon import exact_epsilon
from ahead_ldp.device.question import Policy
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.device.texts import check_name

Fields = Mapping[str, str | None]  # attribute of a campaign -> field of the owner; None: the owner is not sure


@dataclass(frozen=True, slots=True)
class OwnerPolicy(Policy):
    """The limits of one report, the owner's own names for what campaigns ask, and lifetime limits.

    ``fields`` has, by the digest of a campaign, the owner's field of each of its attributes. A program that answers
    without a person beside it brings this with it; names are the collector's choice, so none is valid for another
    campaign. Without an entry in ``limits`` a field is reported once in a lifetime; with one, while the sum of epsilon
    stays within it. ``lifetime`` is the limit over all fields together.
    """

    least_group: int = 10
    fields: Mapping[str, Fields] = field(default_factory=dict)
    limits: Mapping[str, float | str | Fraction] = field(default_factory=dict)
    lifetime: float | str | Fraction = LIFETIME

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a limit that is no number, or a file of fields in another form."""
        exact_epsilon(self.max_epsilon)
        self.exact_limits()
        for digest, mapped in self.fields.items():
            check_digest(digest, "the campaign of a mapping")
            expect(isinstance(mapped, Mapping), "the fields of a campaign to be given by attribute")
            for name in mapped.values():
                if name is not None:
                    check_name(name, "the name of a field")

    def exact_limits(self) -> Limits:
        """Lifetime limits as rationals."""
        try:
            fields = {name: Fraction(str(value)) for name, value in self.limits.items()}
            return Limits(Fraction(str(self.lifetime)), fields)
        except (ValueError, ZeroDivisionError):
            raise ValueError("expected lifetime limits to be numbers") from None

    def check_campaign(self, campaign: Campaign) -> None:
        """Refuse a campaign whose terms are outside the owner's, before any of its questions is looked at."""
        if campaign.is_rehearsal:
            raise QuestionRefused("expected a campaign, got the rehearsal of one, which only synthetic people answer")
        if campaign.epsilon > exact_epsilon(self.max_epsilon):
            raise QuestionRefused("expected epsilon within the device's limit")
        if campaign.minimum < self.least_group:
            raise QuestionRefused(f"expected groups of at least {self.least_group} people")
