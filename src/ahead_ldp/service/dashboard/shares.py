"""Links by which others read the results of closed waves until a day: nothing else, and nothing can be changed by them.

The store has the hash of a link's secret: who reads the store or a backup cannot open the page.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from threading import Lock
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ahead_ldp.service.campaigns.campaign import audit_event
from ahead_ldp.service.campaigns.entries import Unclear, number
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.dashboard.rendering import render
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.server.sessions import Visitor

KIND = "shares"  # of the document that holds a campaign's links
MOST_DAYS = 366
_MOST_LINKS = 50
_DAY_S = 86_400


class SharePages:
    """Makes links, ends them, and shows what they lead to."""

    def __init__(self, service: Service) -> None:
        """Nothing is read before it is asked for."""
        self._service, self._lock = service, Lock()

    def active(self, campaign: str) -> list[dict[str, Any]]:
        """The links that still hold: the hash of each, and until when."""
        kept = json.loads(self._service.store.document(campaign, 0, KIND) or b"[]")
        return [link for link in kept if link["until"] > self._service.clock()]

    def make(self, request: Request, visitor: Visitor) -> Response:
        """A new link, shown once; or the end of all links."""
        campaign, form = request.path_params["campaign"], request.state.form
        record = self._service.directory.terms(campaign).campaign.record
        if form.get("end"):
            with self._lock:
                self._keep(campaign, [], "shares_ended")
            return RedirectResponse(f"/campaigns/{campaign}", 303)
        days = int(number(form.get("days", ""), "Days", whole=True, least=1))
        if days > MOST_DAYS:
            raise Unclear(f"Days: please write {MOST_DAYS} or less.")
        secret, until = secrets.token_urlsafe(24), self._service.clock() + days * _DAY_S
        with self._lock:  # or links that somebody ends meanwhile would be written down again
            links = self.active(campaign)
            if len(links) >= _MOST_LINKS:
                raise Problem("wrong_state", "there are too many links: end them first")
            self._keep(campaign, [*links, {"hash": _hash(secret), "until": until}], "share_made")
        path = request.url_for("shared", campaign=campaign, secret=secret)
        return render(request, "share.html", visitor, record=record, campaign=campaign, link=str(path), until=until)

    def _keep(self, campaign: str, links: list[dict[str, Any]], name: str) -> None:
        self._service.store.put_document(campaign, 0, KIND, json.dumps(links).encode())
        self._service.store.add_event(audit_event(name, campaign, links=len(links)), self._service.clock())

    def shown(self, page: Callable[..., Response], *, base: bool = True) -> Callable[[Request], Any]:
        """A page of the results for whoever has a link that holds."""

        def look(request: Request) -> Response:
            """The results behind a link."""
            campaign, secret = request.path_params["campaign"], request.path_params["secret"]
            self._service.row(campaign)
            known = [hmac.compare_digest(link["hash"], _hash(secret)) for link in self.active(campaign)]
            if not any(known):
                raise Problem("not_found", "this link has ended, or never was")
            where = {"base": f"/shared/{campaign}/{secret}"} if base else {}
            return page(request, None, campaign=campaign, **where)

        async def endpoint(request: Request) -> Response:
            """The page, if the link holds."""
            return await run_in_threadpool(look, request)

        return endpoint


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
