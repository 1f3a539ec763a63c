"""Rehearsals in the browser: one is started from a draft or the form of one, and ends on a page of results.

They live in the memory and the temporary folder of this process, and end with it.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from ahead_ldp.service.campaigns.campaign import Terms
from ahead_ldp.service.campaigns.entries import complaint
from ahead_ldp.service.campaigns.logs import LOGGER
from ahead_ldp.service.campaigns.operations import Campaigns
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.dashboard import drafts
from ahead_ldp.service.dashboard.rendering import render
from ahead_ldp.service.rehearsal.people import Truth
from ahead_ldp.service.rehearsal.rehearsal import Rehearsal
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.server.sessions import Visitor

Results = Callable[[Campaigns, Truth], Any]  # makes the pages of the results
_KEPT = 3  # rehearsals whose results can be looked at; the oldest makes room
_FAILED = "The rehearsal could not be run. The log of the server says why."


@dataclass
class Stage:
    """A rehearsal, how far it is, and the pages of its results."""

    name: str
    rehearsal: Rehearsal
    results: Any
    said: str = "The made-up people are on their way."
    wrong: str = ""
    done: bool = False
    ended: bool = False  # by the server's end, or by newer ones

    @classmethod
    def of(cls, rehearsal: Rehearsal, results: Results) -> Stage:
        """The stage of a rehearsal that was entered."""
        return cls(secrets.token_hex(16), rehearsal, results(rehearsal.service, rehearsal.truth))

    def run(self) -> None:
        """Let everybody answer. What goes wrong is said on the page, without a trace."""
        try:
            self.rehearsal.run(self._progress)
        except Exception as error:
            if not self.ended:
                LOGGER.error("rehearsal_failed", exc_info=error)
            self.wrong = str(error) if isinstance(error, RuntimeError | ValueError) else _FAILED
        self.done = True

    def end(self) -> None:
        """Delete everything of it."""
        self.ended = True
        self.rehearsal.__exit__()

    def _progress(self, number: int, rounds: int, answers: int) -> None:
        people = self.rehearsal.people
        self.said = f"Round {number} of {rounds} is counted: {answers:,} of {people:,} made-up people have answered."


class RehearsalPages:
    """Starts rehearsals, one at a time, and shows what they lead to."""

    def __init__(self, results: Results, service: Service | None = None) -> None:
        """Without a service there are only those that were put on (``add``)."""
        self._service, self._results = service, results
        self._stages, self._lock = dict[str, Stage](), threading.Lock()

    def add(self, stage: Stage) -> None:
        """A rehearsal that is shown here; the oldest makes room for it. Only one is answered at a time."""
        with self._lock:
            if any(not one.done for one in self._stages.values()):
                raise Problem("wrong_state", "another rehearsal is going on: wait until it has ended")
            self._stages[stage.name] = stage
            for name in list(self._stages)[:-_KEPT]:
                self._stages.pop(name).end()

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            for stage in self._stages.values():
                stage.end()
            self._stages.clear()

    def begin(self, request: Request, visitor: Visitor) -> Response:
        """Rehearse a campaign."""
        del visitor
        if self._service is None:
            raise Problem("not_found")
        try:
            return self._begun(self._service.directory.terms(request.path_params["campaign"]))
        except ValueError as error:
            raise Problem("wrong_state", complaint(error)) from None

    def begin_form(self, request: Request, visitor: Visitor) -> Response:
        """Rehearse what stands in the form of a new campaign, without keeping it."""
        try:
            return self._begun(drafts.terms_of(request.state.form))
        except (ValueError, TypeError) as error:
            said = complaint(error)
            return render(request, "error.html", visitor, 422, message="This cannot be tried yet.", detail=said)

    def _begun(self, terms: Terms) -> Response:
        if self._service is None or self._service.stage is None:
            raise Problem("not_found", "there are no rehearsals here")
        stage = Stage.of(Rehearsal(terms, self._service.stage).__enter__(), self._results)
        try:
            self.add(stage)
        except Problem:
            stage.end()
            raise
        threading.Thread(target=stage.run, daemon=True).start()
        return RedirectResponse(f"/rehearsals/{stage.name}", 303)

    def page(self, request: Request, visitor: Visitor | None) -> Response:
        """How far it is; then the results, with the truth beside them."""
        stage = self._stage(request)
        base = f"/rehearsals/{stage.name}"
        if not stage.done or stage.wrong:
            return render(request, "rehearsal.html", visitor, stage=stage, base=base, rehearsal=stage.rehearsal.truth)
        found: Response = stage.results.page(request, visitor, campaign=stage.rehearsal.campaign, base=base)
        return found

    def live(self, request: Request, visitor: Visitor | None) -> Response:
        """How far it is, for the script of the page."""
        del visitor
        stage = self._stage(request)
        return JSONResponse({"said": stage.said, "done": stage.done}, headers={"cache-control": "no-store"})

    def shown(self, name: str, *, base: bool = False) -> Callable[[Request, Visitor | None], Response]:
        """One of the pages of the results, by the name of its method."""

        def look(request: Request, visitor: Visitor | None) -> Response:
            """The page of this rehearsal."""
            stage = self._stage(request)
            where: dict[str, Any] = {"base": f"/rehearsals/{stage.name}"} if base else {}
            if not stage.done or stage.wrong:
                raise Problem("no_results")
            found: Response = getattr(stage.results, name)(request, visitor, campaign=stage.rehearsal.campaign, **where)
            return found

        return look

    def _stage(self, request: Request) -> Stage:
        stage = self._stages.get(request.path_params["rehearsal"])
        if stage is None:
            raise Problem(
                "not_found", "this rehearsal is gone: rehearsals end when the server does, or newer ones come"
            )
        return stage
