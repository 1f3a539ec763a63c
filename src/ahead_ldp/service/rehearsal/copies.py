"""The copy of a campaign that is rehearsed. Its record says that it is one, and so has another digest."""

from __future__ import annotations

import dataclasses

from ahead_ldp.device.campaign import Campaign
from ahead_ldp.protocol.turnout import Staffing, check_people
from ahead_ldp.service.campaigns.campaign import Terms

TITLE = "Rehearsal: "
MOST_PEOPLE = 20_000  # synthetic people of one rehearsal
_USUAL = 5_000  # where a campaign does not say how many people it expects


def people_of(terms: Terms) -> int:
    """How many people rehearse a campaign: those it expects, as far as that is quick."""
    return min(int(getattr(terms.mechanism, "users", None) or _USUAL), MOST_PEOPLE)


def copy_of(terms: Terms, people: int) -> tuple[Terms, Staffing]:
    """A campaign as it is rehearsed by so many people, and how they are spread; ``TooFewPeople`` if they do not do.

    What is asked, how, and of how private answers stays. Everybody comes, so rounds close when all have answered, one
    after the other. No tickets are handed out: they decide who may answer, not what the answers say.
    """
    mechanism = terms.mechanism
    if getattr(mechanism, "users", None) not in (None, people):
        mechanism = dataclasses.replace(mechanism, users=people)  # type: ignore[call-arg]
    spread = check_people(mechanism, terms.schema, people, terms.campaign.minimum)
    record = {
        **terms.campaign.record,
        "title": f"{TITLE}{terms.campaign.record['title']}"[:10_000],
        "method": mechanism.record(),
        "groups": [{"id": g.id, "share": g.share} for g in mechanism.groups(terms.schema)],
        "closing": {"kind": "manual"},
        "token": {"tier": "none"},
        "review": False,
        "rehearsal": True,
    }
    return Terms.of(Campaign.of(record)), spread
