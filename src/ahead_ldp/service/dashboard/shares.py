"""Links by which others read the results of closed waves until a day: nothing else, and nothing can be changed by them.

The store has the hash of a link's secret: who reads the store or a backup cannot open the page.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
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
from ahead_ldp.service.store.rows import LINKS

MOST_DAYS = 366
_MOST_LINKS = 50
_DAY_S = 86_400
_Links = list[dict[str, Any]]


class SharePages:
    """Makes links, ends them, and shows what they lead to."""

    def __init__(self, service: Service) -> None:
        """Nothing is read before it is asked for."""
        self._service = service

    def active(self, campaign: str) -> _Links:
        """The links that still hold: the hash of each, and until when."""
        return self._holding(self._service.store.document(campaign, 0, LINKS))

    def _holding(self, body: bytes | None) -> _Links:
        return [link for link in json.loads(body or b"[]") if link["until"] > self._service.clock()]

    def make(self, request: Request, visitor: Visitor) -> Response:
        """A new link, shown once; or the end of all links."""
        campaign, form = request.path_params["campaign"], request.state.form
        record = self._service.directory.terms(campaign).campaign.record
        if form.get("end"):
            self._change(campaign, lambda _: [], "shares_ended")
            return RedirectResponse(f"/campaigns/{campaign}", 303)
        days = int(number(form.get("days", ""), "Days", whole=True, least=1))
        if days > MOST_DAYS:
            raise Unclear(f"Days: please write {MOST_DAYS} or less.")
        secret, until = secrets.token_urlsafe(24), self._service.clock() + days * _DAY_S
        self._change(campaign, lambda links: _with_another(links, secret, until), "share_made")
        path = request.url_for("shared", campaign=campaign, secret=secret)
        return render(request, "share.html", visitor, record=record, campaign=campaign, link=str(path), until=until)

    def _change(self, campaign: str, change: Callable[[_Links], _Links], name: str) -> None:
        """Change the links, anew if another server has changed them meanwhile: links that it ended stay ended."""
        store, changed, links = self._service.store, False, []
        while not changed:
            body = store.document(campaign, 0, LINKS)
            links = change(self._holding(body))
            changed = store.change_document(campaign, 0, LINKS, body, json.dumps(links).encode())
        store.add_event(audit_event(name, campaign, links=len(links)), self._service.clock())

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


def _with_another(links: _Links, secret: str, until: int) -> _Links:
    if len(links) >= _MOST_LINKS:
        raise Problem("wrong_state", "there are too many links: end them first")
    return [*links, {"hash": _hash(secret), "until": until}]


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
