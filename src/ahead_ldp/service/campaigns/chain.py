"""The public chain of a campaign: what an audit recomputes."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ahead_ldp.service.campaigns.campaign import frozen_digest
from ahead_ldp.service.campaigns.operations import Campaigns
from ahead_ldp.service.store.rows import QuestionRow


def chain(service: Campaigns, campaign: str) -> bytes:
    """Everything that an audit recomputes: questions, frozen tallies, digests over the ids that were counted.

    They are the canonical bytes of one record, put together from stored ones, which are not read for it: anybody may
    ask, and to read the tallies of 65,536 cells takes a tenth of a second.

    The parts are fetched one after the other. A wave that was closed meanwhile would show up without its tallies, or
    the chain would end elsewhere, so they are fetched again until no wave has changed.
    """
    while True:
        waves = service.store.waves(campaign)
        row, questions = service.row(campaign), service.store.questions(campaign)
        frozen = frozen_digest(campaign, questions)
        if service.store.waves(campaign) == waves:
            break
    listed = [
        _object(
            groups=_list(_group(question) for question in questions if question.wave == wave.number),
            number=_plain(wave.number),
            state=_plain(wave.state.value),
        )
        for wave in waves
    ]
    return _object(
        campaign=row.record,
        epoch=_plain(row.epoch),
        frozen=_plain(frozen),
        state=_plain(row.state.value),
        waves=_list(listed),
    )


def _group(question: QuestionRow) -> bytes:
    return _object(
        group=_plain(question.group),
        question=question.record,
        reports=_plain(question.reports_digest),
        state=_plain(question.state.value),
        tally=_plain(None) if question.tally is None else question.tally,
    )


def _object(**members: bytes) -> bytes:
    """The canonical bytes of an object, from those of its members."""
    return b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), members[name]) for name in sorted(members))


def _list(items: Iterable[bytes]) -> bytes:
    return b"[%b]" % b",".join(items)


def _plain(value: str | int | None) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
