"""A person's side of a campaign: checks first, then consent, then the value; drawn once, kept, and only then sent.

The order of steps is the same in every language and pinned by tests/vectors/steps.json: check the question, ask for
consent, map the attributes to the owner's fields, reserve in the ledger, read the value, draw, commit; then send.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ahead_ldp.device.budget import Statement
from ahead_ldp.device.campaign import Campaign, check_wave
from ahead_ldp.device.canonical import check_digest
from ahead_ldp.device.entries import Asker, LedgerRefused, Place, State, Token
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.refusals import QuestionRefused, Reason
from ahead_ldp.device.tokens import report_id
from ahead_ldp.device.words import SystemWords
from ahead_ldp.service.client import views
from ahead_ldp.service.client.enrolment import Signer, obtain_token, own_group
from ahead_ldp.service.client.offers import Offer, Outcome, Receipt, Status
from ahead_ldp.service.client.policy import Fields, OwnerPolicy
from ahead_ldp.service.client.transport import JSON, Answer, Transport, Unreachable, as_transport

Consent = Callable[[Offer], bool]
Values = Callable[[Offer], Mapping[str, object]]
AskFields = Callable[[Offer, Sequence[str]], Fields]  # which fields of theirs these attributes are, from the owner

JITTER_S = 30  # how long a report waits at most, unless the owner wants more or less
_WAITS_TO_BE_SENT = (State.DRAWN, State.SENT)


class WithdrawalRefused(Exception):
    """The report cannot be taken back: its wave is closed, or there is none."""


class Client:
    """Answers campaigns for the owner of one ledger.

    Guarantees:
        refusal   whatever is refused is refused before the value is asked for, and the same for every value
        once      one draw per campaign; a retry sends the same bytes; nothing is sent before it is in the ledger
        silence   after consent nothing that follows depends on the value but the noisy payload itself, for every
                  value there is: one that the declaration does not take is replaced, and the outcome says so
    """

    def __init__(
        self,
        way: str | Transport,
        ledger: Ledger,
        policy: OwnerPolicy,
        *,
        mirror: str | Transport | None = None,
        signer: Signer | None = None,
        jitter_s: int = JITTER_S,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport, self._mirror = as_transport(way), None if mirror is None else as_transport(mirror)
        self._ledger, self._policy, self._signer = ledger, policy, signer
        self._jitter_s, self._clock, self._sleep = jitter_s, clock, sleep
        self._campaigns: dict[str, Campaign] = {}

    def campaign(self, digest: str) -> Campaign:
        """The pinned campaign, the same at the mirror where there is one, within the owner's policy; fetched once."""
        if digest not in self._campaigns:
            campaign = views.fetch_campaign(self._transport, digest)
            views.same_at_mirror(self._mirror, f"/v1/campaigns/{digest}", campaign.encode())
            self._policy.check_campaign(campaign)
            self._campaigns[digest] = campaign
        return self._campaigns[digest]

    def offer(self, digest: str) -> Offer | Outcome:
        """The question that this device would answer now, every check passed; or why there is none yet."""
        campaign = self.campaign(digest)
        state = views.fetch_state(self._transport, digest)
        if state.open_wave is None:
            return Outcome(Status.OVER if state.over else Status.WAITING)
        data = views.fetch_wave(self._transport, campaign, state.open_wave)
        views.same_at_mirror(self._mirror, f"/v1/campaigns/{digest}/waves/{state.open_wave}", data)
        questions = check_wave(data, campaign, state.open_wave, self._policy)
        self._ledger.check_view(digest, state.open_wave, hashlib.sha256(data).hexdigest())
        token = obtain_token(self._ledger, campaign, self._signer)
        open_groups = [(group, share) for group, share in campaign.groups if group in questions]
        question = questions.get(own_group(self._ledger, campaign, state.open_wave, open_groups, token))
        if question is None:
            return Outcome(Status.WAITING)
        limits, asked_of_all = self._policy.exact_limits(), [a.name for each in questions.values() for a in each.asked]
        known = self._known_fields(digest)
        fields = tuple(dict.fromkeys(known[a.name] for a in question.asked if a.name in known))
        self._ledger.check_budget(digest, fields, campaign.epsilon, limits)
        statement, askers = self._ledger.statement(limits), self._ledger.askers()
        return Offer(campaign, question, fields, statement, askers, state.closes_at, tuple(dict.fromkeys(asked_of_all)))

    def answer(self, digest: str, consent: Consent, values: Values, fields: AskFields | None = None) -> Outcome:
        """Answer a campaign once. ``consent`` sees the offer; only after a yes is ``values`` asked for the record.

        Between the two the owner says by ``fields`` which field of theirs every attribute is that any group is asked,
        unless they have said so for this campaign. Where nobody can be asked, the policy has a mapping or the campaign
        is refused.

        Called again it never draws again: it sends what is in the outbox, or says how the report stands.
        """
        with self._ledger.answering():
            entry = self._ledger.entry(check_digest(digest, "campaign"))
            if entry is not None and entry.state != State.RESERVED:
                return self._send_due(digest)
            offer = self.offer(digest)
            if isinstance(offer, Outcome):
                return offer
            if not consent(offer):
                return Outcome(Status.DECLINED)
            replaced = self._draw(offer, values, fields)
            return replace(self._send_due(digest), replaced=replaced)

    def deliver(self, digest: str, attempts: int = 5) -> Outcome:
        """Wait for the report's time and send it, the same bytes again after a failure, a bounded number of times."""
        outcome = Outcome(Status.WAITING)
        for attempt in range(attempts):
            entry = self._ledger.entry(check_digest(digest, "campaign"))
            if entry is not None and (wait := entry.not_before - self._clock()) > 0:
                self._sleep(wait)
            with self._ledger.answering():
                outcome = self._send_due(digest)
            if outcome.status != Status.QUEUED:
                break
            if attempt + 1 < attempts:
                self._sleep(min(60.0, 2.0**attempt))
        return outcome

    def flush(self) -> list[Outcome]:
        """Send everything in the outbox whose time has come."""
        with self._ledger.answering():
            return [self._send_due(entry.campaign) for entry in self._ledger.outbox(int(self._clock()))]

    def withdraw(self, digest: str) -> None:
        """Take the report back; possible until its wave closes. What was charged stays charged.

        A report whose answer was lost is sent again first: only one that the server knows can be withdrawn, and it
        may still be on its way.
        """
        entry = self._ledger.entry(check_digest(digest, "campaign"))
        if entry is not None and entry.state == State.SENT and entry.batch is not None:
            self._send(digest, entry.batch)
            entry = self._ledger.entry(digest)
        if entry is None or entry.state not in (State.SENT, State.ACKNOWLEDGED):
            raise WithdrawalRefused("there is no report to withdraw")
        body = json.dumps({"nonce": self._ledger.token(digest).nonce.hex()}).encode("ascii")
        answer = self._transport.request("POST", f"/v1/campaigns/{digest}/withdrawals", body, JSON)
        if answer.status == 404:
            raise WithdrawalRefused("the server has no report of this device")
        if answer.status in (409, 410):
            raise WithdrawalRefused("the wave is closed: the report was counted")
        if answer.status not in (200, 204):
            raise Unreachable(f"the server answered {answer.status}")
        self._ledger.move(digest, State.WITHDRAWN)

    def opt_out(self) -> None:
        """Withdraw what can be withdrawn, wipe the outbox, answer nothing more. What was charged stays written."""
        for entry in self._ledger.entries():
            if entry.state in (State.SENT, State.ACKNOWLEDGED):
                try:
                    self.withdraw(entry.campaign)
                except (WithdrawalRefused, Unreachable):
                    continue
        self._ledger.opt_out()

    def receipt(self, digest: str) -> Receipt | None:
        """The receipt of a campaign's report, once it is drawn."""
        entry = self._ledger.entry(check_digest(digest, "campaign"))
        if entry is None or entry.state in (State.RESERVED, State.WIPED):
            return None
        nonce = self._ledger.token(digest).nonce
        return Receipt(digest, entry.wave, entry.group, entry.question, report_id(nonce).hex(), nonce.hex())

    def statement(self) -> Statement:
        """What was given away so far and what is left, within the owner's limits."""
        return self._ledger.statement(self._policy.exact_limits())

    def _known_fields(self, digest: str) -> Fields:
        """What the owner has said about this campaign, to the ledger or in the policy; never two things."""
        brought, kept = self._policy.fields.get(digest, {}), self._ledger.mapping(digest)
        for name in brought.keys() & kept.keys():
            if brought[name] != kept[name]:
                raise LedgerRefused(f"the ledger has another field for {name} in this campaign")
        return {**brought, **kept}

    def _map(self, offer: Offer, ask: AskFields | None) -> tuple[str | None, ...]:
        """The owner's fields that the question reads, each once; every attribute that any group is asked has its word.

        Else a device would answer or not by its group, and a server could see who has which field.
        """
        digest, known = offer.campaign.digest, self._known_fields(offer.campaign.digest)
        new = [name for name in offer.asked_of_all if name not in known]
        if new and ask is not None:
            known = {**known, **ask(offer, new)}
        if unknown := [name for name in new if name not in known]:
            raise QuestionRefused(f"the owner has not said which field of theirs {unknown[0]} is in this campaign")
        self._ledger.keep_mapping(digest, {name: known[name] for name in offer.asked_of_all})
        return tuple(dict.fromkeys(known[attribute.name] for attribute in offer.attributes))

    def _draw(self, offer: Offer, values: Values, ask: AskFields | None) -> tuple[str, ...]:
        """Map, reserve, read the value, draw, commit; the attributes whose value did not fit."""
        campaign, question, limits = offer.campaign, offer.question, self._policy.exact_limits()
        digest, fields = campaign.digest, self._map(offer, ask)
        asker = Asker(digest, campaign.record["title"], campaign.record["controller"])
        place = Place(question.wave, question.group, question.digest)
        self._ledger.reserve(asker, place, fields, question.epsilon, limits)
        payload, replaced = question.draw(values(offer), SystemWords())
        batch = batch_of_one(offer, self._ledger.token(digest), payload)
        self._ledger.keep_drawn(digest, question.digest, batch, self._not_before(offer))
        return replaced

    def _not_before(self, offer: Offer) -> int:
        """A random moment soon, so that the time of arrival says little about when the person was there.

        A deadline shortens a long wait, but not below the usual one: a server could make one up to see who comes when.
        """
        now, room = int(self._clock()), self._jitter_s
        if offer.closes_at is not None:
            room = min(room, max((offer.closes_at - now) // 2, JITTER_S))
        return now + secrets.randbelow(room + 1)

    def _send_due(self, digest: str) -> Outcome:
        entry = self._ledger.entry(digest)
        if entry is None or entry.state == State.RESERVED:
            return Outcome(Status.WAITING)
        detail = ""
        if entry.state in _WAITS_TO_BE_SENT and entry.batch is not None and entry.not_before <= self._clock():
            detail = self._send(digest, entry.batch)
            entry = self._ledger.entry(digest) or entry
        status = Status.QUEUED if entry.state in _WAITS_TO_BE_SENT else Status(entry.state)
        return Outcome(status, self.receipt(digest), detail)

    def _send(self, digest: str, batch: bytes) -> str:
        """Send the bytes; what the server says moves the ledger, and never makes new bytes."""
        self._ledger.move(digest, State.SENT)
        try:
            answer = self._transport.request("POST", f"/v1/campaigns/{digest}/reports", batch)
            state, reason = _verdict(answer)
            if state is None and answer.status < 500 and views.fetch_state(self._transport, digest).over:
                state = State.LATE
        except Unreachable as error:
            return str(error)
        if state is not None:
            self._ledger.move(digest, state)
        return reason


def batch_of_one(offer: Offer, token: Token, payload: bytes) -> bytes:
    """The body of an upload of one report (docs/wire.md, "Reports")."""
    frame = report_id(token.nonce) + payload
    if offer.campaign.key is not None:
        if token.signature is None:
            raise LedgerRefused("expected a signed token")
        frame += token.nonce + token.signature
    return offer.question.header.encode() + frame


def _verdict(answer: Answer) -> tuple[State | None, str]:
    if answer.status != 200:
        return None, f"the server answered {answer.status}"
    verdict = views.read_json(answer)
    refused = verdict.get("refused")
    if verdict.get("accepted") == 1 and refused == []:
        return State.ACKNOWLEDGED, ""
    if isinstance(refused, list) and len(refused) == 1 and isinstance(refused[0], dict):
        reason = refused[0].get("reason")
        known = reason if reason in {r.value for r in Reason} else "refused"
        return State.LATE if reason == Reason.CLOSED else State.REJECTED, str(known)
    raise Unreachable("the server's answer does not say what became of the report")
