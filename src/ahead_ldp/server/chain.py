"""The public chain of a campaign: what an audit recomputes."""

from __future__ import annotations

from typing import Any

from ahead_ldp.device.canonical import parse_canonical
from ahead_ldp.server.service import Service
from ahead_ldp.sessions import NOTHING


def chain(service: Service, campaign: str) -> dict[str, Any]:
    """Everything that an audit recomputes: questions, frozen tallies, digests over the reports."""
    row, rows = service.row(campaign), service.store.questions(campaign)
    waves = []
    for wave in service.store.waves(campaign):
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
    frozen = service.directory.session(campaign).frozen if waves else NOTHING
    return {"campaign": record, "state": row.state.value, "waves": waves, "frozen": frozen, "epoch": row.epoch}
