"""The operator's pages: campaigns, a new one with its plan, progress, and what can be done about it."""

from __future__ import annotations

import json
import time
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.mechanisms.ahead.uniform import Uniform
from ahead_ldp.research.targets import Case, forecast
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.campaigns.campaign import draft
from ahead_ldp.service.campaigns.closing import SCREENS
from ahead_ldp.service.dashboard.login import Visitor
from ahead_ldp.service.dashboard.rendering import render
from ahead_ldp.service.server.problems import Problem
from ahead_ldp.service.server.service import Service

_FIELDS = {
    "title": "", "purpose": "", "controller": "", "contact": "", "attributes": "age=integer,18,99", "epsilon": "1",
    "users": "10000", "method": "", "minimum": "100", "closing": "manual", "closing_value": "", "enrolment": "walk_in",
    "review": "", "retention_days": "30", "consent": "",
}  # fmt: skip
_METHODS = [name for name in MECHANISMS if name != Uniform.name]  # which asks nobody
_MOST_SIMULATED = 2**20  # cells of a domain whose plan is simulated while somebody types
_WAIT_S = 10.0


class CampaignPages:
    """Pages over a service; each method is an endpoint."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def listing(self, request: Request, visitor: Visitor) -> Response:
        """All campaigns, the latest first."""
        return render(request, "campaigns.html", visitor, campaigns=await run_in_threadpool(self._rows))

    def _rows(self) -> list[dict[str, Any]]:
        rows = sorted(self._service.store.campaigns(), key=lambda row: -row.created_at)
        return [
            {"digest": r.digest, "title": self._record(r.digest)["title"], "state": r.state.value, "at": r.created_at}
            | {"wave": self._service.progress(r.digest)["wave"], "reports": self._service.progress(r.digest)["reports"]}
            for r in rows
        ]

    def _record(self, campaign: str) -> dict[str, Any]:
        return self._service.directory.terms(campaign).campaign.record

    async def new(self, request: Request, visitor: Visitor) -> Response:
        """The form of a new campaign."""
        return self._form(request, visitor, _FIELDS, "")

    async def create(self, request: Request, visitor: Visitor) -> Response:
        """Keep the new campaign, or say what is wrong with it."""
        given = {**_FIELDS, **{k: v.strip() for k, v in request.state.form.items() if k in _FIELDS}}
        given["review"] = request.state.form.get("review", "")
        try:
            terms = await run_in_threadpool(lambda: draft(_draft(given)))
            await run_in_threadpool(self._service.create, terms)
        except (ValueError, TypeError) as error:
            return self._form(request, visitor, given, str(error), 422)
        return RedirectResponse(f"/campaigns/{terms.digest}", 303)

    def _form(
        self, request: Request, visitor: Visitor, given: dict[str, str], wrong: str, status: int = 200
    ) -> Response:
        return render(request, "new.html", visitor, status, given=given, wrong=wrong, methods=_METHODS)

    async def plan(self, request: Request, visitor: Visitor) -> Response:
        """The error to expect of what stands in the form, simulated on the planner's reference populations."""
        del visitor
        given = {**_FIELDS, **request.state.form}
        try:
            found = await run_in_threadpool(_plan, given)
        except (ValueError, TypeError) as error:
            return JSONResponse({"wrong": str(error)})
        return JSONResponse(found)

    async def overview(self, request: Request, visitor: Visitor) -> Response:
        """One campaign: where it stands, wave by wave."""
        campaign = request.path_params["campaign"]
        shown = await run_in_threadpool(self._shown, campaign)
        link = str(request.url_for("participant", campaign=campaign))
        return render(request, "campaign.html", visitor, campaign=campaign, link=link, **shown)

    def _shown(self, campaign: str) -> dict[str, Any]:
        record, state = self._record(campaign), self._service.state(campaign)
        progress = self._service.progress(campaign)
        closing = record["closing"]
        target = closing["reports"] if closing["kind"] == "reports" else record["minimum"]
        screens = []
        for wave in self._service.store.waves(campaign):
            body = self._service.store.document(campaign, wave.number, SCREENS)
            told = json.loads(body) if body else {}
            worst = _worst(told.get("screens", []))
            screens.append({"wave": wave.number, "state": wave.state.value, "worst": worst, **told})
        return {"record": record, "state": state, "progress": progress, "target": target, "screens": screens}

    async def live(self, request: Request, visitor: Visitor) -> Response:
        """Progress for the script of the page."""
        del visitor
        campaign = request.path_params["campaign"]
        shown = await run_in_threadpool(self._shown, campaign)
        return JSONResponse(
            {"progress": shown["progress"], "target": shown["target"]}, headers={"cache-control": "no-store"}
        )

    async def act(self, request: Request, visitor: Visitor) -> Response:
        """Do what the operator confirmed, and show the campaign again."""
        del visitor
        campaign, form = request.path_params["campaign"], request.state.form
        await run_in_threadpool(self._act, campaign, form)
        return RedirectResponse(f"/campaigns/{campaign}", 303)

    def _act(self, campaign: str, form: dict[str, str]) -> None:
        service, action = self._service, form.get("action", "")
        wave = service.progress(campaign)["wave"]
        if action in ("open", "approve"):
            service.open(campaign)
        elif action == "close":
            self._wait(service.close_wave(campaign, wave, "close"))
        elif action == "release":
            self._wait(service.close_wave(campaign, wave, "release", release=True))
        elif action == "void_wave":
            self._wait(service.close_wave(campaign, wave, "void", void_all=True))
        elif action == "void_group":
            service.void_group(campaign, wave, form.get("group", ""))
        elif action == "extend":
            service.extend(campaign, wave, _whole(form.get("seconds", ""), "seconds"))
        elif action == "finish":
            job = service.finish(campaign)
            if job is not None:
                self._wait(job)
        elif action == "void":
            service.void(campaign)
        else:
            raise Problem("invalid_request")

    def _wait(self, number: int) -> None:
        """Until the job has ended; a job that failed says why."""
        until = time.monotonic() + _WAIT_S
        while time.monotonic() < until:
            job = self._service.store.job(number)
            if job.state.value == "failed":
                body = json.loads(job.result or b"{}")
                raise Problem("wrong_state", str(body.get("detail", body.get("title", "the job failed"))))
            if job.state.value == "done":
                return
            time.sleep(0.02)


def _worst(screens: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each kind of screen the one that is furthest out."""
    found: dict[str, dict[str, Any]] = {}
    for one in screens:
        if one["screen"] not in found or one["z"] > found[one["screen"]]["z"]:
            found[one["screen"]] = one
    return sorted(found.values(), key=lambda one: -one["z"])


def _draft(given: dict[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {name: given[name] for name in ("title", "purpose", "controller", "contact", "epsilon")}
    kind = given["closing"]
    closing: dict[str, Any] = {"kind": kind}
    if kind == "reports":
        closing["reports"] = _whole(given["closing_value"], "the number of reports at which a wave closes")
    elif kind == "deadline":
        closing["seconds"] = 3600 * _whole(given["closing_value"], "the hours after which a wave closes")
    return {
        **made,
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
    cells = 1
    for size in schema.sizes:
        cells *= size
    if cells > _MOST_SIMULATED:
        return {"wrong": "The domain is too large to simulate here: use `ahead plan`."}
    case = Case(schema, users, float(given["epsilon"]), given["method"] or None)
    found = forecast(case, repeats=2)
    shapes = ", ".join(f"{shape} {100 * error:.1f}" for shape, error in found.errors.items())
    return {"method": found.method, "error": f"{100 * found.error:.1f}", "shapes": shapes}


def _whole(text: str, what: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError(f"expected {what} to be a whole number")
    return int(text)
