"""From stored reports to the tally of a group, chunk by chunk, and the digest that binds the ids counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.oracles import Oracle, Tally
from ahead_ldp.protocol.mechanism import tally_record
from ahead_ldp.schema.arrays import Bytes
from ahead_ldp.service.store.binding import reports_digest
from ahead_ldp.service.store.interface import Store
from ahead_ldp.service.store.rows import FrozenGroup, QuestionRow


@dataclass(frozen=True, slots=True, eq=False)
class GroupCount:
    """One group of a wave: its tally, and the digest over the ids of the reports in it."""

    group: str
    question: str
    tally: Tally
    reports_digest: str

    def frozen(self) -> FrozenGroup:
        """As a store keeps it."""
        record = canonical_bytes(tally_record(self.question, self.tally))
        return FrozenGroup(self.group, self.tally.n, record, self.reports_digest)


def payload_rows(store: Store, campaign: str, wave: int, group: str) -> Iterator[Bytes]:
    """The payloads of a group as arrays, a row for each report."""
    for chunk in store.reports(campaign, wave, group):
        yield np.frombuffer(chunk.payloads, np.uint8).reshape(chunk.n, -1)


def count_group(
    store: Store, campaign: str, question: QuestionRow, oracle: Oracle, alive: Callable[[], None] = lambda: None
) -> GroupCount:
    """Count the stored reports of a group; a void one has none. ``alive`` is called between chunks, to keep a lease."""
    tally = Tally.empty(oracle.outcomes)

    def ids() -> Iterator[bytes]:
        """Those of every chunk, once it is counted."""
        nonlocal tally
        for chunk in store.reports(campaign, question.wave, question.group):
            tally += oracle.tally(np.frombuffer(chunk.payloads, np.uint8).reshape(chunk.n, oracle.report_bytes))
            alive()
            yield chunk.ids

    bound = reports_digest(ids())
    return GroupCount(question.group, question.digest, tally, bound)
