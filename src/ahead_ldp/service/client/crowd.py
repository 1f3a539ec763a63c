"""Simulated people with real devices: the same checks, laws and frames, but a ledger in memory for all of them."""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ahead_ldp.device.campaign import Campaign, check_wave
from ahead_ldp.device.canonical import expect
from ahead_ldp.device.question import Policy, Question
from ahead_ldp.device.tokens import PANEL_WAVE, blind, new_nonce, report_id
from ahead_ldp.device.words import SystemWords
from ahead_ldp.service.client.enrolment import Signer, choose_group, sign_message

Codes = Sequence[int]


@dataclass(frozen=True, slots=True)
class Upload:
    """One batch as a relay sends it: reports of one group, with the places of the people behind them."""

    wave: int
    group: str
    people: tuple[int, ...]
    body: bytes


class Crowd:
    """People of a campaign, given by their codes. Each answers at most once, when present and asked.

    Codes that the campaign's attributes do not have are refused; ``of_values`` takes values as people know them.
    Groups and noise come from the operating system. In a campaign with tokens ``signer_of(person)`` gets each person's
    signature, once, when it is needed.
    """

    def __init__(
        self,
        campaign: Campaign,
        people: Sequence[Codes],
        policy: Policy,
        signer_of: Callable[[int], Signer] | None = None,
    ) -> None:
        expect(campaign.key is None or signer_of is not None, "signers for a campaign with tokens")
        sizes = [attribute.size for attribute in campaign.schema.attributes]
        for codes in people:
            inside = len(codes) == len(sizes) and all(0 <= code < size for code, size in zip(codes, sizes, strict=True))
            expect(inside, "a code of every attribute, below its size, for every person; values go to Crowd.of_values")
        self.campaign, self.people = campaign, people
        self.answered = bytearray(len(people))
        self._policy, self._signer_of = policy, signer_of
        self._groups: dict[int, str] = {}  # of a panel, for life
        self._tokens: dict[int, tuple[bytes, bytes]] = {}  # nonce and signature

    @classmethod
    def of_values(
        cls,
        campaign: Campaign,
        people: Sequence[Mapping[str, object]],
        policy: Policy,
        signer_of: Callable[[int], Signer] | None = None,
    ) -> Crowd:
        """People given by values; each value becomes its code as on a device."""
        attributes = campaign.schema.attributes
        return cls(campaign, [[a.code(p.get(a.name)) for a in attributes] for p in people], policy, signer_of)

    def uploads(self, data: bytes, number: int, present: Iterable[int], batch: int = 100) -> Iterator[Upload]:
        """The batches of those present who are asked in this wave and have not answered; ``data`` is checked first."""
        questions = check_wave(data, self.campaign, number, self._policy)
        answering = {group: _Answering(question) for group, question in questions.items()}
        waiting: dict[str, list[int]] = {group: [] for group in questions}
        open_groups = [(group, share) for group, share in self.campaign.groups if group in questions]
        for person in present:
            if self.answered[person]:
                continue
            group = self._group(person, number, open_groups)
            if group not in waiting:
                continue
            self.answered[person] = 1  # from here on the person's one report is promised
            waiting[group].append(person)
            if len(waiting[group]) == batch:
                yield self._upload(answering[group], number, group, waiting[group])
                waiting[group] = []
        for group, rest in waiting.items():
            if rest:
                yield self._upload(answering[group], number, group, rest)

    def _upload(self, answering: _Answering, number: int, group: str, people: list[int]) -> Upload:
        frames = [answering.header]
        for person in people:
            nonce, signature = self._tokens.get(person) or (new_nonce(), b"")
            frames.append(report_id(nonce) + answering.payload(self.people[person]))
            if self.campaign.key is not None:
                frames.append(nonce + signature)
        return Upload(number, group, tuple(people), b"".join(frames))

    def _group(self, person: int, wave: int, open_groups: Sequence[tuple[str, int]]) -> str:
        signature = None if self.campaign.key is None else self._token(person)[1]
        chosen_for, group = choose_group(self.campaign, wave, open_groups, signature)
        return self._groups.setdefault(person, group) if chosen_for == PANEL_WAVE else group

    def _token(self, person: int) -> tuple[bytes, bytes]:
        if person not in self._tokens:
            key, signer_of, nonce = self.campaign.key, self._signer_of, new_nonce()
            if key is None or signer_of is None:
                raise ValueError("expected signers for a campaign with tokens")
            message = self.campaign.token_message(nonce)
            signature = sign_message(self.campaign, key, message, signer_of(person), lambda: blind(key, message))
            self._tokens[person] = (nonce, signature)
        return self._tokens[person]


class _Answering:
    """A question with the cells of codes that were met before; the law itself is the device's."""

    def __init__(self, question: Question) -> None:
        self.header = question.header.encode()
        self._question, self._axes, self._words = question, question.axes, SystemWords()
        self._cells: dict[tuple[int, ...], int] = {}

    def payload(self, codes: Codes) -> bytes:
        """The noisy answer of somebody with these codes."""
        asked = tuple(codes[i] for i in self._question.attributes)
        cell = self._cells.get(asked)
        if cell is None:
            cell = self._cells[asked] = self._question.partition.cell(self._axes, asked)
        return self._question.law.draw(cell, self._words)


@dataclass(frozen=True, slots=True)
class Visits:
    """When people are there. Some are reachable in every wave, the others come once, in a wave of their own.

    That a person comes, and when, is drawn here and never depends on a value.
    """

    first: tuple[int, ...]  # the wave of a person's visit; 0: reachable in every wave

    @classmethod
    def draw(cls, people: int, weights: Sequence[int], returning: int = 0, of: int = 1) -> Visits:
        """A share ``returning / of`` is always reachable; the others come in wave i with chance as ``weights[i-1]``."""
        borders = list(accumulate(weights))
        expect(bool(borders) and borders[-1] >= 1, "the weight of at least one wave")
        stays = [secrets.randbelow(of) < returning for _ in range(people)]
        return cls(tuple(0 if stay else 1 + bisect_right(borders, secrets.randbelow(borders[-1])) for stay in stays))

    def present(self, wave: int) -> Iterator[int]:
        """Who is there while a wave is open, in the order of their places."""
        return (person for person, first in enumerate(self.first) if first in (0, wave))
