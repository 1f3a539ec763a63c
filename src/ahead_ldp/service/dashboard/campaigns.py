"""The operator's pages: campaigns, a new one with its plan, progress, and what can be done about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Thread
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from ahead_ldp.service.campaigns.campaign import Terms
from ahead_ldp.service.campaigns.entries import complaint, hours_of
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.dashboard import drafts, qr
from ahead_ldp.service.dashboard.duplicates import form_of
from ahead_ldp.service.dashboard.rendering import render
from ahead_ldp.service.dashboard.standing import rounds_of, said_of, standing
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.server.sessions import Visitor
from ahead_ldp.service.store.rows import JobState

_WAIT_S = 10.0
_LATE = "the campaign has gone on to another round since this page was loaded. Nothing was changed"
_ABOUT_ALL = ("open", "void")  # what is done to a campaign, not to one of its rounds
_NOT_WHILE_COUNTING = ("finish", "extend", "release", "void_wave", "void_group")
LINKED = 32  # digits of a digest in the link for people: 128 bits


class CampaignPages:
    """Pages over a service; each method is an endpoint."""

    def __init__(self, service: Service, links: Callable[[str], int]) -> None:
        """All of them ask the same service; ``links`` says how many links for others a campaign has."""
        self._service, self._links = service, links
        self._rounds: dict[str, int | None] = {}

    def listing(self, request: Request, visitor: Visitor) -> Response:
        """All campaigns, the latest first."""
        listed = []
        for row in sorted(self._service.store.campaigns(), key=lambda row: -row.created_at):
            progress = self._service.progress(row.digest)
            named = {"digest": row.digest, "title": self._record(row.digest)["title"], "at": row.created_at}
            people = self._people(row.digest, progress)
            listed.append({**named, "people": people, **{name: progress[name] for name in ("state", "wave")}})
            listed[-1] |= {
                "notice": progress.get("notice", ""),
                "said": said_of(progress),
            }
            listed[-1] |= {"state": "held"} if progress["held"] else {}
        return render(request, "campaigns.html", visitor, campaigns=listed)

    def _record(self, campaign: str) -> dict[str, Any]:
        return self._service.directory.terms(campaign).campaign.record

    def new(self, request: Request, visitor: Visitor) -> Response:
        """The form of a new campaign: empty, or as another one was (``?like=``)."""
        like = request.query_params.get("like", "")
        if not like:
            return _form(request, visitor, drafts.FIELDS, [drafts.FIRST], "")
        try:
            return _form(request, visitor, *form_of(self._record(like)), "")
        except ValueError as error:
            return _form(request, visitor, drafts.FIELDS, [drafts.FIRST], str(error), 422)

    def create(self, request: Request, visitor: Visitor) -> Response:
        """Keep the new campaign, or say what is wrong with it."""
        form = request.state.form
        try:
            terms = drafts.terms_of(form)
            self._service.create(terms)
        except (ValueError, TypeError) as error:
            return _form(
                request, visitor, drafts.given_fields(form), drafts.given_questions(form), complaint(error), 422
            )
        return RedirectResponse(f"/campaigns/{terms.digest}", 303)

    def overview(self, request: Request, visitor: Visitor) -> Response:
        """One campaign: where it stands, what to do next, and how people are invited."""
        campaign = request.path_params["campaign"]
        shown, link = self._shown(campaign), ""
        if shown["state"]["state"] == "open":  # before that it would lead people to a closed door
            link = _link(request, campaign)
        code = qr.picture(link, "QR code of the link for people") if link else ""
        shares = self._links(campaign)
        return render(
            request, "campaign.html", visitor, campaign=campaign, link=link, code=code, shares=shares, **shown
        )

    def _shown(self, campaign: str) -> dict[str, Any]:
        terms, state = self._service.directory.terms(campaign), self._service.state(campaign)
        record, progress = terms.campaign.record, self._service.progress(campaign)
        target = record["closing"].get("reports", record["minimum"])
        people = self._people(campaign, progress)
        stands = standing(terms, state, progress, people, self._service.clock(), self._expected_rounds(terms))
        return {"record": record, "state": state, "progress": progress, "target": target, "standing": stands}

    def _people(self, campaign: str, progress: dict[str, Any]) -> int:
        """Answers in all rounds: those that were counted, and those of the latest one."""
        counted = sum(q.n or 0 for q in self._service.store.questions(campaign) if q.wave < progress["wave"])
        return counted + int(progress["reports"])

    def _expected_rounds(self, terms: Terms) -> int | None:
        """How many rounds there will be. Found out beside the page, which does not wait for it."""
        if terms.digest not in self._rounds:
            self._rounds[terms.digest] = None
            Thread(target=self._find_rounds, args=(terms,), daemon=True).start()
        return self._rounds[terms.digest]

    def _find_rounds(self, terms: Terms) -> None:
        self._rounds[terms.digest] = rounds_of(terms)

    def qr(self, request: Request, visitor: Visitor) -> Response:
        """The code of the link for people, as a file to print."""
        del visitor
        campaign = request.path_params["campaign"]
        if self._service.state(campaign)["state"] != "open":
            raise Problem("wrong_state", "the campaign is not open")
        made = qr.picture(_link(request, campaign), "QR code of the link for people")
        headers = {"content-disposition": 'attachment; filename="invitation.svg"', "cache-control": "no-store"}
        return Response(str(made), media_type="image/svg+xml", headers=headers)

    def live(self, request: Request, visitor: Visitor) -> Response:
        """Progress for the script of the page."""
        del visitor
        shown = self._shown(request.path_params["campaign"])
        progress = {name: shown[name] for name in ("progress", "target", "standing")}
        return JSONResponse(progress, headers={"cache-control": "no-store"})

    def act(self, request: Request, visitor: Visitor) -> Response:
        """Do what the operator confirmed, and show the campaign again."""
        del visitor
        campaign, form, service = request.path_params["campaign"], request.state.form, self._service
        progress = self._service.progress(campaign)
        wave = progress["wave"]
        if form.get("action") not in _ABOUT_ALL and _another_round(form.get("wave", ""), wave):
            raise Problem("wrong_state", _LATE)
        if progress["counting"] and form.get("action") == "close":
            return RedirectResponse(f"/campaigns/{campaign}", 303)  # as wanted: it is closed and being counted
        if progress["counting"] and form.get("action") in _NOT_WHILE_COUNTING:
            raise Problem("wrong_state", "the round is being counted: wait a moment")
        actions: dict[str, Callable[[], int | None]] = {  # what is asked for, and the number of its job
            "open": lambda: service.open(campaign),
            "approve": lambda: service.open(campaign),
            "close": lambda: service.close_wave(campaign, wave),
            "release": lambda: service.release_wave(campaign, wave),
            "void_wave": lambda: service.void_wave(campaign, wave),
            "void_group": lambda: service.void_group(campaign, wave, form.get("group", "")),
            "extend": lambda: service.extend(campaign, wave, round(3600 * hours_of(form.get("hours", "")))),
            "finish": lambda: service.finish(campaign),
            "void": lambda: service.void(campaign),
        }
        if form.get("action") not in actions:
            raise Problem("invalid_request")
        number = actions[form["action"]]()
        job = None if number is None else service.ended_job(number, _WAIT_S)
        if job is not None and job.state is JobState.FAILED:
            body = json.loads(job.result or b"{}")
            raise Problem("wrong_state", str(body.get("detail", body.get("title", "the job failed"))))
        return RedirectResponse(f"/campaigns/{campaign}", 303)


def _another_round(said: str, now: int) -> bool:
    """Whether somebody confirmed something about a round that is over: in a page that stood open, or by a second click.

    What is sent without a round is about the latest one.
    """
    return bool(said) and said != str(now)


def _link(request: Request, campaign: str) -> str:
    """The link for people: half of the digest, which their device checks.

    To make two campaigns with the same half takes 2**64 tries, so nobody is shown another one behind the same link.
    """
    return str(request.url_for("participant", campaign=campaign[:LINKED]))


def _form(
    request: Request,
    visitor: Visitor,
    given: dict[str, str],
    questions: list[dict[str, str]],
    wrong: str,
    status: int = 200,
) -> Response:
    shown = {"given": given, "questions": questions, "empty": drafts.QUESTION, "methods": drafts.METHODS}
    return render(request, "new.html", visitor, status, wrong=wrong, **shown)
