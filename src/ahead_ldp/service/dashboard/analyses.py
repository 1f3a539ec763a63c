"""Pages of questions beyond shares, from closed waves: inequality, change, groups, weights, rounds, and the report.

A page has a form in its address and says at once what was asked. What takes seconds is a part that the page loads by
itself, in its turn, and keeps until the next wave is closed.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from starlette.requests import Request
from starlette.responses import Response

from ahead_ldp.estimates.analysis.describing import has_total
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.schema.queries import parse_query
from ahead_ldp.service.campaigns import analyses
from ahead_ldp.service.campaigns.entries import Unclear
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.dashboard import files, found
from ahead_ldp.service.dashboard.axes import short
from ahead_ldp.service.dashboard.rendering import render
from ahead_ldp.service.dashboard.unread import unread_part
from ahead_ldp.service.server.headers import INERT_POLICY
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.server.sessions import Visitor
from ahead_ldp.service.store.rows import CampaignState, WaveState

_MOST_KEPT = 64  # parts of one estimate
_MOST_CHOICES = 64  # groups whose names a field suggests
_MOST_LETTERS = 10_000  # of a list of margins
_MOST_WEIGHED, _MOST_REPORTED = 16, 64  # queries, as the routes take them
_OWN = {"level": 0.95, "intervals": "strict"}

Part = dict[str, Any]


class AnalysisPages:
    """Pages over a service; each method is an endpoint."""

    def __init__(self, service: Service) -> None:
        """All of them ask the same service."""
        self._service = service
        self._parts: WeakKeyDictionary[Estimate, dict[tuple[Any, ...], Part]] = WeakKeyDictionary()

    def spread(self, request: Request, visitor: Visitor) -> Response:
        """How far people lie apart, and what ties two questions together."""
        estimate = self._estimate(request)
        return self._page(request, visitor, "spread", estimate, asked=request.query_params)

    def spread_of(self, request: Request, visitor: Visitor) -> Response:
        """One attribute of it, or two."""
        asked = request.query_params
        kind, names = asked.get("kind", ""), (asked.get("first", ""), asked.get("second", ""))
        makers: dict[str, Callable[..., Part]] = {"numbers": found.numbers, "lorenz": found.lorenz, "pair": found.pair}
        if kind not in makers:
            raise Problem("not_found")
        words = self._words(request)
        given = names if kind == "pair" else names[:1]
        return self._part(request, visitor, (kind, *given), lambda estimate: makers[kind](estimate, *given, words))

    def change(self, request: Request, visitor: Visitor) -> Response:
        """What is different from an earlier campaign: every attribute that both have."""
        estimate, since = self._estimate(request), request.query_params.get("since", "")
        names: list[str] = []
        if estimate is not None and since:
            before = analyses.closed_estimate(self._service, since)
            names = estimate.since(before).shared
        others = [other for other in self._others(request) if other["shared"]]
        shown = {"asked": request.query_params, "shared": names, "others": others, "since": since}
        return self._page(request, visitor, "change", estimate, **shown)

    def change_of(self, request: Request, visitor: Visitor) -> Response:
        """One attribute of it, or one query."""
        asked = request.query_params
        before = analyses.closed_estimate(self._service, asked.get("since", ""))
        sampled, name, query = asked.get("about") != "people", asked.get("name", ""), asked.get("query", "").strip()
        words = self._words(request)

        def made(after: Estimate) -> Part:
            """The part."""
            change = after.since(before, sampled=sampled)
            return found.asked_change(change, query) if query else found.change(change, name, words)

        return self._part(request, visitor, ("change", _told(before), sampled, name, query), made)

    def groups(self, request: Request, visitor: Visitor) -> Response:
        """A number in every group of people."""
        estimate, asked = self._estimate(request), request.query_params
        listed = [] if estimate is None else [a for a in estimate.schema.attributes if a.labels]
        chosen = asked.get("by") or (listed[0].name if listed else "")  # as the form begins
        by = [a for a in listed if a.name == chosen]
        choices = list(by[0].labels)[:_MOST_CHOICES] if by else []
        return self._page(request, visitor, "groups", estimate, asked=asked, choices=choices)

    def groups_of(self, request: Request, visitor: Visitor) -> Response:
        """What was asked of the groups."""
        asked = {name: request.query_params.get(name, "").strip() for name in found.GROUP_FIELDS}
        words = self._words(request)
        key = ("groups", *asked.values())
        return self._part(request, visitor, key, lambda estimate: found.groups(estimate, asked, words))

    def weights(self, request: Request, visitor: Visitor) -> Response:
        """The form for what is known of everybody."""
        estimate = self._estimate(request)
        given = {"margins": "" if estimate is None else found.own_margins(estimate), "queries": ""}
        return self._page(request, visitor, "weights", estimate, given=given, part=None)

    def weigh(self, request: Request, visitor: Visitor) -> Response:
        """Queries, answered with weights."""
        form, estimate = request.state.form, self._estimate(request)
        given = {name: form.get(name, "") for name in ("margins", "queries")}
        if estimate is None:
            raise Problem("no_results")
        try:
            queries = lines_of(given["queries"], _MOST_WEIGHED)
            asked = {**_OWN, "margins": margins_of(given["margins"]), "queries": queries}
            part = self._worked_out(lambda: found.weighted(estimate, asked))
        except ValueError as error:
            part = {"wrong": self._wrong(error, estimate)}
        return self._page(request, visitor, "weights", estimate, given=given, part=part)

    def rounds(self, request: Request, visitor: Visitor) -> Response:
        """A share over several campaigns that are rounds of one, and what they cost, also before this one opens."""
        rounds, estimate = self._rounds(request), self._estimate(request)
        own = request.path_params["campaign"]
        budget = analyses.budget(self._service, rounds)
        shown: dict[str, Any] = {"asked": request.query_params, "chosen": [c for c in rounds if c != own]}
        shown |= {"others": self._others(request), "budget": found.budget(budget), "counted": estimate is not None}
        return self._page(request, visitor, "rounds", estimate, ready=True, **shown)

    def _rounds(self, request: Request) -> list[str]:
        """This campaign and those chosen, in order of time."""
        created = {row.digest: row.created_at for row in self._service.store.campaigns()}
        names = {request.path_params["campaign"], *request.query_params.getlist("with")}
        if not names <= set(created):
            raise Problem("not_found")
        return sorted(names, key=lambda name: created[name])

    def rounds_of(self, request: Request, visitor: Visitor) -> Response:
        """The trend of a share, and what changed."""
        asked, rounds = request.query_params, analyses.named_rounds(self._service, self._rounds(request))
        query, smooth = asked.get("query", "").strip(), "smooth" in asked
        key = ("rounds", *map(_told, rounds.values()), query, smooth)

        def made(_: Estimate) -> Part:
            """The part; in words if some of the campaigns have no such question."""
            for name in parse_query(query).conditions:
                without = [title for title, estimate in rounds.items() if name not in estimate.schema.names]
                if 0 < len(without) < len(rounds):
                    raise ValueError(f"Not asked about “{short(name, 40)}”: {'; '.join(without)}.")
            return found.rounds(rounds, query, smooth)

        return self._part(request, visitor, key, made)

    def report(self, request: Request, visitor: Visitor) -> Response:
        """The form for a page to send."""
        others = [other for other in self._others(request) if other["shared"]]
        return self._page(request, visitor, "report", self._estimate(request), others=others)

    def report_page(self, request: Request, visitor: Visitor) -> Response:
        """The page itself: to look at, or as a file of this form."""
        del visitor
        campaign, given = request.path_params["campaign"], request.query_params
        form = "pdf" if given.get("file") == "pdf" else "html"
        asked = {**_OWN, "format": form, "title": given.get("title", "").strip()[:200]}
        asked |= {name: given.get(name) or None for name in ("since", "by")}
        try:
            asked["queries"] = lines_of(given.get("queries", ""), _MOST_REPORTED)
            with self._service.turns.one():
                page = analyses.report(self._service, campaign, asked)
        except ValueError as error:
            raise Unclear(self._wrong(error, analyses.closed_estimate(self._service, campaign))) from None
        headers = {"cache-control": "no-store", "content-security-policy": INERT_POLICY}
        if "file" in given:
            headers["content-disposition"] = files.disposition(["report"], form)
        return Response(page, media_type=files.REPORTS[form], headers=headers)

    # How.

    def _estimate(self, request: Request) -> Estimate | None:
        """The campaign's; None before the first wave is closed."""
        try:
            return analyses.closed_estimate(self._service, request.path_params["campaign"])
        except Problem as problem:
            if problem.kind != "no_results":
                raise
            return None

    def _page(self, request: Request, visitor: Visitor, page: str, estimate: Estimate | None, **shown: Any) -> Response:
        campaign = request.path_params["campaign"]
        listed = [] if estimate is None else list(estimate.schema.attributes)
        labelled = [a.name for a in listed if a.labels]
        known = {
            "record": self._service.directory.terms(campaign).campaign.record,
            "campaign": campaign,
            "base": f"/campaigns/{campaign}",
            "page": page,
            "state": self._service.state(campaign)["state"],
            "ready": estimate is not None,  # unless the page can do without
            "names": [a.name for a in listed],
            "said": analyses.headings(self._service, campaign),
            "numeric": [{"name": a.name, "total": has_total(a)} for a in listed if not a.labels],
            "first": labelled[0] if labelled else "",
            "example": found.example(listed),
        }
        return render(request, f"{page}.html", visitor, **{**known, **shown})

    def _part(
        self, request: Request, visitor: Visitor, key: tuple[Any, ...], make: Callable[[Estimate], Part]
    ) -> Response:
        estimate = analyses.closed_estimate(self._service, request.path_params["campaign"])
        kept = self._parts.setdefault(estimate, {})
        part = kept.get(key)
        if part is None:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            try:
                part = kept[key] = self._worked_out(lambda: make(estimate))
            except ValueError as error:
                part = {"wrong": self._wrong(error, estimate)}
        return render(request, "found.html", visitor, part=part)

    def _wrong(self, error: ValueError, estimate: Estimate) -> str:
        listed = list(estimate.schema.attributes)
        return unread_part(error, listed, found.example(listed))

    def _worked_out(self, work: Callable[[], Part]) -> Part:
        """Work in its turn; what is wrong with the question is a ``ValueError`` that the page shows."""
        with self._service.turns.one():
            return work()

    def _words(self, request: Request) -> Mapping[str, Any]:
        return self._service.directory.terms(request.path_params["campaign"]).campaign.wording

    def _others(self, request: Request) -> list[dict[str, Any]]:
        """Other campaigns that have results, the latest first, and whether they have a question of this one."""
        own, store = request.path_params["campaign"], self._service.store
        rows = [row for row in store.campaigns() if row.digest != own and row.state is not CampaignState.VOID]

        def title(campaign: str) -> str:
            """The title of a campaign."""
            return str(self._service.directory.terms(campaign).campaign.record["title"])

        def names(campaign: str) -> set[tuple[str, str]]:
            """What is asked, and in which kind of numbers or choices."""
            return {(a.name, a.kind) for a in self._service.directory.terms(campaign).schema.attributes}

        asked = names(own)
        counted = [row for row in rows if any(wave.state is WaveState.CLOSED for wave in store.waves(row.digest))]
        return [
            {
                "digest": row.digest,
                "title": title(row.digest),
                "at": row.created_at,
                "shared": not asked.isdisjoint(names(row.digest)),
            }
            for row in sorted(counted, key=lambda row: -row.created_at)
        ]


def _told(estimate: Estimate) -> str:
    """The end of an estimate's chain: what parts know it by, which would keep it in memory if they held it."""
    assert estimate.provenance is not None
    return estimate.provenance.links[-1]


def margins_of(text: str) -> dict[str, dict[str, float]]:
    """Known shares from lines of a table: attribute, category, share or count."""
    if len(text) > _MOST_LETTERS:
        raise ValueError(f"expected at most {_MOST_LETTERS:,} letters, got {len(text):,}")
    margins: dict[str, dict[str, float]] = {}
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if not any(cell.strip() for cell in row):
            continue
        try:
            name, category, share = (cell.strip() for cell in row)
            number = float(share)
        except ValueError:
            raise ValueError(f"expected lines of attribute, category, share, got {','.join(row)!r}") from None
        if category in margins.setdefault(name, {}):
            raise ValueError(f"expected every category of {name} once, got {category!r} twice")
        margins[name][category] = number
    return margins


def lines_of(text: str, most: int) -> list[str]:
    """Queries, a line each; as many as the route of the same question takes."""
    found = [line.strip() for line in text.splitlines() if line.strip()]
    if len(found) > most:
        raise ValueError(f"expected at most {most} queries, got {len(found):,}")
    return found
