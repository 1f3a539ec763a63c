"""The operator's pages: campaigns, a new one with its plan, progress, and what can be done about it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.mechanisms.ahead.uniform import Uniform
from ahead_ldp.protocol.turnout import check_people
from ahead_ldp.research.targets import Case, forecast
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.campaigns.campaign import draft, sized_mechanism
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.dashboard.rendering import render
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.server.sessions import Visitor
from ahead_ldp.service.store.rows import JobState

_FIELDS = {
    "title": "", "purpose": "", "controller": "", "contact": "", "attributes": "age=integer,18,99", "epsilon": "1",
    "users": "10000", "method": "", "minimum": "100", "closing": "reports", "closing_value": "", "enrolment": "walk_in",
    "review": "", "retention_days": "30", "consent": "",
}  # fmt: skip
_METHODS = [name for name in MECHANISMS if name != Uniform.name]  # which asks nobody
_MOST_SIMULATED = 2**20  # cells of a domain whose plan is simulated while somebody types
_WAIT_S = 10.0


class CampaignPages:
    """Pages over a service; each method is an endpoint."""

    def __init__(self, service: Service) -> None:
        """All of them ask the same service."""
        self._service = service

    def listing(self, request: Request, visitor: Visitor) -> Response:
        """All campaigns, the latest first."""
        listed = []
        for row in sorted(self._service.store.campaigns(), key=lambda row: -row.created_at):
            progress = self._service.progress(row.digest)
            named = {"digest": row.digest, "title": self._record(row.digest)["title"], "at": row.created_at}
            listed.append({**named, **{name: progress[name] for name in ("state", "wave", "reports")}})
            listed[-1]["notice"] = progress.get("notice", "")
        return render(request, "campaigns.html", visitor, campaigns=listed)

    def _record(self, campaign: str) -> dict[str, Any]:
        return self._service.directory.terms(campaign).campaign.record

    def new(self, request: Request, visitor: Visitor) -> Response:
        """The form of a new campaign."""
        return self._form(request, visitor, _FIELDS, "")

    def create(self, request: Request, visitor: Visitor) -> Response:
        """Keep the new campaign, or say what is wrong with it."""
        given = {**_FIELDS, **{k: v.strip() for k, v in request.state.form.items() if k in _FIELDS}}
        given["review"] = request.state.form.get("review", "")
        try:
            terms = draft(_draft(given))
            self._service.create(terms)
        except (ValueError, TypeError) as error:
            return self._form(request, visitor, given, str(error), 422)
        return RedirectResponse(f"/campaigns/{terms.digest}", 303)

    def _form(
        self, request: Request, visitor: Visitor, given: dict[str, str], wrong: str, status: int = 200
    ) -> Response:
        return render(request, "new.html", visitor, status, given=given, wrong=wrong, methods=_METHODS)

    def plan(self, request: Request, visitor: Visitor) -> Response:
        """The error to expect of what stands in the form, simulated on the planner's reference populations."""
        del visitor
        given = {**_FIELDS, **request.state.form}
        try:
            return JSONResponse(_plan(given))
        except (ValueError, TypeError) as error:
            return JSONResponse({"wrong": str(error)})

    def overview(self, request: Request, visitor: Visitor) -> Response:
        """One campaign: where it stands, wave by wave."""
        campaign = request.path_params["campaign"]
        link = str(request.url_for("participant", campaign=campaign))
        return render(request, "campaign.html", visitor, campaign=campaign, link=link, **self._shown(campaign))

    def _shown(self, campaign: str) -> dict[str, Any]:
        record, state = self._record(campaign), self._service.state(campaign)
        progress = self._service.progress(campaign)
        closing = record["closing"]
        target = closing["reports"] if closing["kind"] == "reports" else record["minimum"]
        screens = [
            {"wave": wave.number, "state": wave.state.value, "worst": _worst(checks.get("screens", [])), **checks}
            for wave, checks in self._service.screens(campaign)
        ]
        return {"record": record, "state": state, "progress": progress, "target": target, "screens": screens}

    def live(self, request: Request, visitor: Visitor) -> Response:
        """Progress for the script of the page."""
        del visitor
        shown = self._shown(request.path_params["campaign"])
        progress = {"progress": shown["progress"], "target": shown["target"]}
        return JSONResponse(progress, headers={"cache-control": "no-store"})

    def act(self, request: Request, visitor: Visitor) -> Response:
        """Do what the operator confirmed, and show the campaign again."""
        del visitor
        campaign, form, service = request.path_params["campaign"], request.state.form, self._service
        wave = service.progress(campaign)["wave"]
        actions: dict[str, Callable[[], int | None]] = {  # what is asked for, and the number of its job
            "open": lambda: service.open(campaign),
            "approve": lambda: service.open(campaign),
            "close": lambda: service.close_wave(campaign, wave),
            "release": lambda: service.release_wave(campaign, wave),
            "void_wave": lambda: service.void_wave(campaign, wave),
            "void_group": lambda: service.void_group(campaign, wave, form.get("group", "")),
            "extend": lambda: service.extend(campaign, wave, _whole(form.get("seconds", ""), "seconds")),
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


def _worst(screens: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each kind of screen the one that is furthest out."""
    furthest = {one["screen"]: one for one in sorted(screens, key=lambda one: one["z"])}
    return sorted(furthest.values(), key=lambda one: -one["z"])


def _draft(given: dict[str, str]) -> dict[str, Any]:
    closing: dict[str, Any] | None = {"kind": given["closing"]}
    if given["closing"] == "reports" and not given["closing_value"].strip():
        closing = None  # as many as the people expected will bring
    elif given["closing"] == "reports":
        reports = _whole(given["closing_value"], "the number of reports at which a wave closes")
        closing = {"kind": "reports", "reports": reports}
    elif given["closing"] == "deadline":
        seconds = 3600 * _whole(given["closing_value"], "the hours after which a wave closes")
        closing = {"kind": "deadline", "seconds": seconds}
    return {
        **{name: given[name] for name in ("title", "purpose", "controller", "contact", "epsilon")},
        "texts": {"consent": given["consent"]} if given["consent"] else {},
        "created": time.strftime("%Y-%m-%d", time.gmtime()),
        "schema": given["attributes"].split("\n") if "\n" in given["attributes"] else [given["attributes"]],
        "method": {"name": given["method"]} if given["method"] else None,
        "users": _whole(given["users"], "the number of people expected"),
        "minimum": _whole(given["minimum"], "the minimum of a group"),
        "closing": closing,
        "enrolment": given["enrolment"],
        "review": bool(given["review"]),
        "retention_days": _whole(given["retention_days"], "the days of retention"),
    }


def _plan(given: dict[str, str]) -> dict[str, Any]:
    schema = as_schema([line.strip() for line in given["attributes"].split("\n") if line.strip()])
    users = _whole(given["users"], "the number of people expected")
    if math.prod(schema.sizes) > _MOST_SIMULATED:
        return {"wrong": "The domain is too large to simulate here: use `ahead plan`."}
    minimum = _whole(given["minimum"], "the minimum of a group")
    mechanism = sized_mechanism(given["method"] or None, schema, given["epsilon"], users, minimum)
    found = check_people(mechanism, schema, users, minimum)
    case = Case(schema, users, float(given["epsilon"]), given["method"] or None)
    plan = forecast(case, repeats=2)
    shapes = ", ".join(f"{shape} {100 * error:.1f}" for shape, error in plan.errors.items())
    return {"method": plan.method, "error": f"{100 * plan.error:.1f}", "shapes": shapes, "people": found.record()}


def _whole(text: str, what: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError(f"expected {what} to be a whole number")
    return int(text)
