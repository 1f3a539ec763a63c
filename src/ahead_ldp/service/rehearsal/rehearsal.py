"""One rehearsal from beginning to end: a server of its own, synthetic people who answer it over HTTP, and the truth.

Everything lies in a folder that is deleted at the end: the store, and the keys of its waves. The server listens on
this machine alone, on a free port, for as long as people answer. Nothing of a real campaign is in reach of it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing
from typing import Protocol, Self

import numpy as np

from ahead_ldp.device.campaign import Campaign
from ahead_ldp.service.campaigns.campaign import Terms
from ahead_ldp.service.campaigns.operations import Campaigns, system_clock
from ahead_ldp.service.client.crowd import Crowd, Visits
from ahead_ldp.service.client.fleet import FleetReport, run_fleet_async
from ahead_ldp.service.client.policy import OwnerPolicy
from ahead_ldp.service.client.transport import as_transport
from ahead_ldp.service.client.views import fetch_campaign
from ahead_ldp.service.rehearsal.copies import MOST_PEOPLE, copy_of, people_of
from ahead_ldp.service.rehearsal.people import Truth, synthetic_people
from ahead_ldp.service.store import open_store
from ahead_ldp.service.store.interface import Store
from ahead_ldp.service.store.rows import JobState

_BATCH, _CONNECTIONS = 100, 4
_WAIT_S = 60.0
Progress = Callable[[int, int, int], None]  # rounds counted, rounds in all, answers so far


class Served(Protocol):
    """A running server."""

    @property
    def url(self) -> str:
        """Where it listens."""

    @property
    def service(self) -> Campaigns:
        """What runs behind its routes."""


Serve = Callable[[Store], AbstractContextManager[Served]]  # starts a server that takes rehearsals, and nothing else


class Rehearsal(AbstractContextManager["Rehearsal"]):
    """A campaign tried out before anybody is asked. Use it as a context: its end deletes everything."""

    def __init__(self, terms: Terms, serve: Serve, people: int | None = None, seed: int | None = None) -> None:
        """Make the copy and the people; a ``ValueError`` if a campaign of so many people could not end."""
        self._serve = serve
        count = people_of(terms) if people is None else people
        if not 1 <= count <= MOST_PEOPLE:
            raise ValueError(f"expected 1 to {MOST_PEOPLE:,} people of a rehearsal, got {count:,}")
        self.original = terms
        self.terms, self.spread = copy_of(terms, count)
        self.truth = Truth(terms.schema, synthetic_people(terms.schema, count, np.random.default_rng(seed)))
        self._stack = ExitStack()

    @property
    def people(self) -> int:
        """How many answer."""
        return len(self.truth.codes)

    @property
    def campaign(self) -> str:
        """The digest of the copy."""
        return self.terms.digest

    @property
    def rounds(self) -> int:
        """How many rounds there will be."""
        return len(self.spread.waves)

    def __enter__(self) -> Self:
        """Make the folder and the store."""
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ahead-rehearsal-"))
            opened = open_store(f"{folder}/rehearsal.db", keys=f"{folder}/keys")
            self.store = stack.enter_context(closing(opened))
            self.service = Campaigns(self.store, system_clock, 0, rehearsing=True)  # for who looks at the results
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        """Delete everything."""
        self._stack.close()

    def run(self, progress: Progress | None = None) -> FleetReport:
        """Everybody answers, round after round, until the copy is finished. The server is gone afterwards."""
        with self._serve(self.store) as server:
            return self._answered(server, progress)

    def _answered(self, server: Served, progress: Progress | None) -> FleetReport:
        service, answers = server.service, 0
        service.create(self.terms)
        service.open(self.campaign)
        copy = fetch_campaign(as_transport(server.url), self.campaign)
        crowd = Crowd(copy, self.truth.codes.tolist(), OwnerPolicy(copy.epsilon))

        def close(number: int) -> None:
            """Count a round; what stops it stops the rehearsal."""
            nonlocal answers
            _counted(service, copy, number)
            answers += sum(question.n or 0 for question in service.store.questions(self.campaign, number))
            if progress is not None:
                progress(number, max(self.rounds, number), answers)

        expected = [max(round(people), 1) for people in self.spread.wave_people]
        visits = Visits.draw(self.people, expected, returning=int(copy.enrolment == "panel"))
        return run_fleet_async(server.url, crowd, visits, close, batch=_BATCH, connections=_CONNECTIONS)


def _counted(service: Campaigns, copy: Campaign, number: int) -> None:
    job = service.ended_job(service.close_wave(copy.digest, number), _WAIT_S)
    if job.state is not JobState.DONE:
        said = json.loads(job.result or b"{}")
        why = said.get("detail") or said.get("title") or "it took too long"
        raise RuntimeError(f"round {number} of the rehearsal was not counted: {why}")
    if service.progress(copy.digest)["held"]:
        service.ended_job(service.release_wave(copy.digest, number), _WAIT_S)  # these people are honest
