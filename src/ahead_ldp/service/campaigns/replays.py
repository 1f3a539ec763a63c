"""The auditor: every campaign's method is run again over what is stored, in the background, and never in anybody's way.

A program may ask other questions than those that are stored: it is newer than the campaign and lost its method's
meaning, or older, or its environment computes otherwise. People answered the stored questions, so these stand. The
auditor raises the alarm: a link of the audit chain, a metric, and a notice for the operator that says what to do.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from ahead_ldp.protocol.session import ReplayMismatch, environment
from ahead_ldp.service.campaigns.campaign import WAYS_OUT, Terms, audit_event
from ahead_ldp.service.campaigns.logs import event
from ahead_ldp.service.store.interface import Store
from ahead_ldp.service.store.rows import CampaignRow, CampaignState, WaveState

REPLAY = "replay"  # the kind of the document that holds the latest finding
_ENDED = (CampaignState.FINISHED, CampaignState.VOID)


@dataclass(slots=True)
class Auditor:
    """Replays one campaign after the other, each once for every wave that was opened or closed."""

    store: Store
    terms: Callable[[str], Terms]  # of a campaign
    clock: Callable[[], int]
    seen: dict[str, tuple[tuple[int, bool], ...]] = field(default_factory=dict)  # campaign -> its waves as audited
    gone: set[str] = field(default_factory=set)  # campaigns that this process cannot replay

    def step(self) -> str | None:
        """Audit one campaign that has changed since it was last looked at, those that go on first; its name."""
        rows = [row for row in self.store.campaigns() if row.state is not CampaignState.DRAFT]
        for row in sorted(rows, key=lambda row: row.state in _ENDED):
            if (row.state in _ENDED and row.digest in self.seen) or row.state is CampaignState.VOID:
                continue  # it does not change any more, or there is nothing left of it
            standing = self._standing(row)
            if self.seen.get(row.digest) != standing:
                self._audit(row.digest)
                self.seen[row.digest] = standing
                return row.digest
        return None

    def _standing(self, row: CampaignRow) -> tuple[tuple[int, bool], ...]:
        return tuple((wave.number, wave.state is WaveState.CLOSED) for wave in self.store.waves(row.digest))

    def _audit(self, campaign: str) -> None:
        why = ""
        try:
            self.terms(campaign).session(self.store.questions(campaign))
        except ReplayMismatch as mismatch:
            why = str(mismatch)
        (self.gone.add if why else self.gone.discard)(campaign)
        if why == finding(self.store, campaign):
            return  # the alarm was raised before, here or by another process
        kind = "replay_mismatch" if why else "replay_matched"
        event(kind, logging.ERROR if why else logging.INFO, campaign=campaign, environment=environment())
        self.store.add_event(audit_event(kind, campaign, why=why, environment=environment()), self.clock())
        self.store.put_document(campaign, 0, REPLAY, json.dumps({"why": why}).encode())


def finding(store: Store, campaign: str) -> str:
    """Why the latest replay of a campaign did not match; empty if it did, or nobody has tried."""
    document = store.document(campaign, 0, REPLAY)
    return "" if document is None else str(json.loads(document)["why"])


def notice(store: Store, campaign: str) -> str:
    """What an operator has to know and do about a replay that did not match; empty if it did."""
    why = finding(store, campaign)
    if not why:
        return ""
    if store.campaign(campaign).state in _ENDED:
        return f"This program does not ask what was asked ({why}). Results are read from the stored questions alone."
    return (
        f"This program does not ask what was asked ({why}). Reports are taken and counted all the same. What to do: "
        f"{WAYS_OUT}."
    )
