"""A service in the test's own process: its app object, a clock that the test moves, and people who answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ahead_ldp.device.campaign import Campaign, check_wave
from ahead_ldp.device.frames import Header, Report, encode_batch
from ahead_ldp.device.question import Policy, Question
from ahead_ldp.device.tokens import pick_group
from ahead_ldp.service.server.app import Application, create_app
from ahead_ldp.service.server.config import NO_RATES, Settings
from ahead_ldp.service.store import SQLiteStore
from tests.service.server.asgi import AppClient

BINARY = {"content-type": "application/octet-stream"}
TEXTS = {"title": "Pay", "purpose": "a test", "controller": "Example", "contact": "someone@example.org"}


class FakeClock:
    """Seconds that pass when the test says so."""

    def __init__(self, now: int = 1_800_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def pass_(self, seconds: int) -> None:
        self.now += seconds


class Bench:
    """An app under test: routes by role, rounds of the closer by hand."""

    def __init__(self, app: Application, client: AppClient, clock: FakeClock, names: tuple[str, str]) -> None:
        self.app, self.client, self.clock = app, client, clock
        self.service, self.store = app.service, app.service.store
        self.operator = self.service.add_token("operator", names[0])
        self.analyst = self.service.add_token("analyst", names[1])
        self.rng = np.random.default_rng(5)

    def call(self, method: str, path: str, role: str = "operator", **options: Any) -> Any:
        """The answer of a route; ``role`` is operator, analyst or public."""
        token = {"operator": self.operator, "analyst": self.analyst, "public": None}[role]
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return self.client.request(method, f"/v1{path}", headers=headers | options.pop("headers", {}), **options)

    def create(self, **changes: Any) -> str:
        """A draft; its digest."""
        draft = {
            **TEXTS, "attributes": ["age=integer,0,15"], "epsilon": "2", "minimum": 20, "closing": {"kind": "manual"},
            "method": {"name": "ahead"},
        }  # fmt: skip
        answer = self.call("POST", "/campaigns", json=draft | changes)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()["campaign"]

    def opened(self, **changes: Any) -> str:
        """A campaign with its first wave open."""
        campaign = self.create(**changes)
        answer = self.call("POST", f"/campaigns/{campaign}/open")
        assert answer.status_code == 200, answer.text
        return campaign

    def state(self, campaign: str) -> dict[str, Any]:
        return self.call("GET", f"/campaigns/{campaign}/state", "public").json()

    def wave_state(self, campaign: str, number: int) -> str:
        return next(w["state"] for w in self.state(campaign)["waves"] if w["number"] == number)

    def questions(self, campaign: str, number: int) -> dict[str, Question]:
        """The questions of a wave, checked as a device does."""
        record = Campaign.from_bytes(self.call("GET", f"/campaigns/{campaign}", "public").content, campaign)
        data = self.call("GET", f"/campaigns/{campaign}/waves/{number}", "public").content
        return check_wave(data, record, number, Policy("64"))

    def upload(self, campaign: str, body: bytes, **options: Any) -> Any:
        headers = BINARY | options.pop("headers", {})
        return self.client.post(f"/v1/campaigns/{campaign}/reports", content=body, headers=headers, **options)

    def answer(self, campaign: str, number: int, people: Sequence[Mapping[str, object]]) -> int:
        """Let people answer the wave that is open, each in a group drawn by share; how many were accepted."""
        accepted = 0
        for group, members in self.drawn(campaign, number, people).items():
            question = self.questions(campaign, number)[group]
            body = encode_batch(question.header, (question.report(person) for person in members))
            answer = self.upload(campaign, body)
            assert answer.status_code == 200, answer.text
            accepted += answer.json()["accepted"]
        return accepted

    def drawn(self, campaign: str, number: int, people: Sequence[Any]) -> dict[str, list[Any]]:
        shares = dict(self.service.directory.terms(campaign).campaign.groups)
        groups = [(group, shares[group]) for group in self.questions(campaign, number)]
        found: dict[str, list[Any]] = {}
        for person in people:
            number_ = int(self.rng.integers(sum(s for _, s in groups)))
            found.setdefault(pick_group(groups, number_), []).append(person)
        return found

    def close(self, campaign: str, number: int, action: str = "close") -> dict[str, Any]:
        """Ask for a wave to be closed, and let the closer do it."""
        asked = self.call("POST", f"/campaigns/{campaign}/waves/{number}/{action}")
        assert asked.status_code == 202, asked.text
        self.app.round()
        return self.call("GET", asked.headers["location"].removeprefix("/v1")).json()

    def run(self, campaign: str, people: Sequence[Mapping[str, object]], waves: int = 100) -> None:
        """Let people answer, an equal part in every wave, until the campaign ends."""
        number = 1
        while self.state(campaign)["state"] == "open" and number <= waves:
            self.answer(campaign, number, people)
            done = self.close(campaign, number)
            assert done["state"] == "done", done
            number += 1


def ages(n: int, seed: int = 1, top: int = 15) -> list[dict[str, object]]:
    """People of some ages."""
    drawn = np.minimum(np.random.default_rng(seed).poisson(5, n), top)
    return [{"age": int(age)} for age in drawn]


def reports(question: Question, n: int, seed: int = 1) -> list[Report]:
    """Reports of people to one question."""
    return [question.report(person) for person in ages(n, seed, top=4)]


def batch(question: Question, some: Sequence[Report]) -> bytes:
    return encode_batch(Header(question.campaign, question.digest), some)


def refusals(answer: Any) -> list[tuple[int, str]]:
    return [(r["index"], r["reason"]) for r in answer.json()["refused"]]


@contextmanager
def bench(folder: Path, clock: FakeClock | None = None, **settings: Any) -> Iterator[Bench]:
    """A service over a new SQLite store; nothing closes by itself."""
    store = SQLiteStore(folder / "service.db")
    with bench_over(store, clock, **settings) as made:
        yield made
    store.close()


@contextmanager
def bench_over(
    store: Any, clock: FakeClock | None = None, names: tuple[str, str] = ("op", "an"), **settings: Any
) -> Iterator[Bench]:
    """A service over a store that the caller closes; ``names`` are those of its two tokens."""
    clock = clock or FakeClock()
    app = create_app(store, Settings(**{"closer_interval_s": 0.0, "window_ms": 0.0, **NO_RATES, **settings}), clock)
    with AppClient(app) as client:
        yield Bench(app, client, clock, names)


def problem(answer: Any) -> str:
    """The kind of a problem document, checked for its form."""
    assert answer.headers["content-type"] == "application/problem+json"
    found = json.loads(answer.content)
    assert found["status"] == answer.status_code
    return found["type"].removeprefix("urn:ahead-ldp:problem:")
