"""The public chain of a campaign: what an audit recomputes."""

from __future__ import annotations

from typing import Any

from ahead_ldp.device.canonical import parse_canonical
from ahead_ldp.protocol.session import NOTHING
from ahead_ldp.service.campaigns.operations import Campaigns


def chain(service: Campaigns, campaign: str) -> dict[str, Any]:
    """Everything that an audit recomputes: questions, frozen tallies, digests over the reports.

    The parts are read one after the other. A wave that was closed meanwhile would show up without its tallies, or
    the chain would end elsewhere, so they are read again until no wave has changed.
    """
    while True:
        found = service.store.waves(campaign)
        row, rows = service.row(campaign), service.store.questions(campaign)
        frozen = service.directory.session(campaign).frozen if found else NOTHING
        if service.store.waves(campaign) == found:
            break
    waves = []
    for wave in found:
        questions = [q for q in rows if q.wave == wave.number]
        waves.append(
            {
                "number": wave.number,
                "state": wave.state.value,
                "groups": [
                    {
                        "group": q.group,
                        "state": q.state.value,
                        "question": parse_canonical(q.record),
                        "tally": None if q.tally is None else parse_canonical(q.tally),
                        "reports": q.reports_digest,
                    }
                    for q in questions
                ],
            }
        )
    record = parse_canonical(row.record)
    return {"campaign": record, "state": row.state.value, "waves": waves, "frozen": frozen, "epoch": row.epoch}
