"""The public chain of a campaign: what an audit recomputes."""

from __future__ import annotations

from typing import Any

from ahead_ldp.device.canonical import parse_canonical
from ahead_ldp.service.campaigns.campaign import frozen_digest
from ahead_ldp.service.campaigns.operations import Campaigns
from ahead_ldp.service.store.rows import QuestionRow


def chain(service: Campaigns, campaign: str) -> dict[str, Any]:
    """Everything that an audit recomputes: questions, frozen tallies, digests over the ids that were counted.

    The parts are read one after the other. A wave that was closed meanwhile would show up without its tallies, or
    the chain would end elsewhere, so they are read again until no wave has changed.
    """
    while True:
        waves = service.store.waves(campaign)
        row, questions = service.row(campaign), service.store.questions(campaign)
        frozen = frozen_digest(campaign, questions)
        if service.store.waves(campaign) == waves:
            break
    listed = [
        {
            "number": wave.number,
            "state": wave.state.value,
            "groups": [_group(question) for question in questions if question.wave == wave.number],
        }
        for wave in waves
    ]
    record = parse_canonical(row.record)
    return {"campaign": record, "state": row.state.value, "waves": listed, "frozen": frozen, "epoch": row.epoch}


def _group(question: QuestionRow) -> dict[str, Any]:
    return {
        "group": question.group,
        "state": question.state.value,
        "question": parse_canonical(question.record),
        "tally": None if question.tally is None else parse_canonical(question.tally),
        "reports": question.reports_digest,
    }
