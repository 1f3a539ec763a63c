"""The analyst's page: distributions with bands, a query builder, and downloads, all from the closed waves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ahead_ldp.device.codes import Attribute
from ahead_ldp.device.wording import Wording
from ahead_ldp.estimates.answers import percent
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.schema.queries import Beyond, Either, Query, parse_query
from ahead_ldp.schema.units import borders
from ahead_ldp.service.campaigns.analyses import headings, written
from ahead_ldp.service.campaigns.campaign import Terms
from ahead_ldp.service.campaigns.operations import Campaigns
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.campaigns.results import STORED_NOTE
from ahead_ldp.service.dashboard import charts, comparisons, files, joint_charts, summaries
from ahead_ldp.service.dashboard.asked_cells import asked_cells
from ahead_ldp.service.dashboard.rendering import render
from ahead_ldp.service.dashboard.unread import pointed, signed, unread
from ahead_ldp.service.rehearsal.people import Truth
from ahead_ldp.service.screening.manipulation import manipulation
from ahead_ldp.service.server.sessions import Visitor

_SHOWN_AT_ONCE = 2  # attributes with their pictures; those of the others are made when they are looked at
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
_MOST_KEPT = 256  # pieces and files of one estimate; a link for others may be followed by anybody
_MOST_STRIPS = 8  # attributes whose cells are shown round by round
_PLACES = 2048  # along a picture that a pointer tells apart
_MOST_CHOICES = 10**13  # beyond it the level of one interval among them is 1 in floating point

T = TypeVar("T")

PICKED_NOTE = "Picked by looking: the interval is wider, so that it holds for all ranges that could have been dragged."


_COMPARED = {
    "raw_sum": "how much noise the answers have",
    "ones_histogram": "how much is marked in an answer",
    "pairs_largest": "what is marked together most",
    "pairs_together": "what is marked together",
    "below_zero_lowest": "the part with the fewest answers",
    "below_zero_together": "parts with too few answers",
    "rows": "what devices chose by chance",
    "coefficients": "what devices chose by chance",
    "hash_values": "what devices made of it",
    "fit": "the answers as a whole",
    "group_balance": "how people spread over the groups",
    "joint_fit": "whether groups agree",
}


class ResultPages:
    """Pages over a service; each method is an endpoint."""

    def __init__(self, service: Campaigns, truth: Truth | None = None) -> None:
        """All of them ask the same service; those of a rehearsal show the truth beside every answer."""
        self._service, self._truth = service, truth
        self._lock = Lock()
        self._pieces: WeakKeyDictionary[Estimate, dict[tuple[str, ...], Any]] = WeakKeyDictionary()

    def page(self, request: Request, visitor: Visitor | None, campaign: str = "", base: str = "") -> Response:
        """Everything at a glance."""
        campaign = campaign or request.path_params["campaign"]
        base = base or f"/campaigns/{campaign}"
        pair = [request.query_params.get(name, "") for name in ("across", "up")]
        try:
            shown = self._shown(campaign, pair)
        except Problem as problem:
            if problem.kind != "no_results":
                raise
            record = self._service.directory.terms(campaign).campaign.record
            state = self._service.state(campaign)["state"]
            shown = {"record": record, "attributes": None, "state": state}
        shown["rehearsal"] = self._truth
        return render(request, "results.html", visitor, campaign=campaign, base=base, **shown)

    def _shown(self, campaign: str, wanted: Sequence[str]) -> dict[str, Any]:
        session, directory = self._service.closed_session(campaign), self._service.directory
        terms, estimate = directory.terms(campaign), directory.estimate(campaign)
        if estimate.provenance is None:
            raise Problem("no_results")
        listed = estimate.schema.attributes
        pair = _pair(listed, wanted)
        return {
            "record": terms.campaign.record,
            "session": {
                "waves": len(session.history),
                "complete": session.mechanism.computes and session.estimate is not None,
                "people": estimate.provenance.people,
            },
            "stored": "" if session.mechanism.computes else STORED_NOTE,
            "attributes": [self._attribute(campaign, estimate, a) for a in listed[:_SHOWN_AT_ONCE]],
            "others": [{"name": a.name, "question": _question(terms, a)} for a in listed[_SHOWN_AT_ONCE:]],
            "heat": joint_charts.heat_map(estimate, pair, terms.campaign.wording) if pair else None,
            "has_table": bool(pair) and joint_charts.has_joint_table(pair),
            "table": self._kept(estimate).get((pair[0].name, f"with {pair[1].name}")) if pair else None,
            "names": [a.name for a in listed if a.ordered_size > 1],
            "pair": [a.name for a in pair],
        }

    def checks(self, request: Request, visitor: Visitor) -> Response:
        """Whether the answers can be trusted: what was compared, what was asked round by round, what fakes could do."""
        campaign, service = request.path_params["campaign"], self._service
        record = service.directory.terms(campaign).campaign.record
        screens = [
            {"wave": wave.number, "state": wave.state.value, "worst": _worst(found.get("screens", [])), **found}
            for wave, found in service.screens(campaign)
        ]
        asked, strips, bound = service.directory.asked(campaign), [], None
        try:
            estimate = self._estimate(campaign)
            bound = manipulation(asked, service.directory.terms(campaign).campaign.tier)
            for i, a in enumerate(estimate.schema.attributes[:_MOST_STRIPS]):
                cells = asked_cells(asked, i) if _ordered(a) else []
                strips += (
                    [(a.name, charts.decomposition(estimate, a, cells), [len(c) + 1 for c in cells])] if cells else []
                )
        except Problem as problem:
            if problem.kind != "no_results":
                raise
        shown: dict[str, Any] = {"record": record, "screens": screens, "strips": strips, "manipulation": bound}
        return render(request, "checks.html", visitor, campaign=campaign, base=f"/campaigns/{campaign}", **shown)

    def attribute(self, request: Request, visitor: Visitor | None, campaign: str = "", base: str = "") -> Response:
        """One attribute as a part of the page, or one piece of that, which is kept until the next wave is closed."""
        campaign, name = campaign or request.path_params["campaign"], request.query_params.get("name", "")
        piece, estimate = request.query_params.get("piece"), self._estimate(campaign)
        if name not in estimate.schema.names:
            raise Problem("not_found")
        attribute = estimate.schema.attributes[estimate.schema.index(name)]
        if "with" in request.query_params:
            return self._joint(request, visitor, campaign, estimate, attribute)
        if piece is not None:
            if piece not in (*_pieces(attribute), "fine"):
                raise Problem("not_found")
            words = self._service.directory.terms(campaign).campaign.wording.get(name)
            made = self._made(estimate, (name, piece), lambda: _PIECES[piece](estimate, attribute, words, self._truth))
        shown = self._attribute(campaign, estimate, attribute)
        only = "distribution" if piece == "fine" else piece
        if only is not None:
            shown["pieces"][only] = made
        base = base or f"/campaigns/{campaign}"
        about: dict[str, Any] = {"a": shown, "only": only, "rehearsal": self._truth}
        return render(request, "attribute.html", visitor, campaign=campaign, base=base, **about)

    def _joint(
        self, request: Request, visitor: Visitor | None, campaign: str, estimate: Estimate, first: Attribute
    ) -> Response:
        """The table of two attributes together."""
        name = request.query_params["with"]
        if name not in estimate.schema.names or name == first.name:
            raise Problem("not_found")
        pair = [first, estimate.schema.attributes[estimate.schema.index(name)]]
        if not joint_charts.has_joint_table(pair):
            raise Problem("not_found")
        wording, key = self._service.directory.terms(campaign).campaign.wording, (first.name, f"with {name}")
        table = self._made(estimate, key, lambda: joint_charts.joint_rows(estimate, pair, wording, self._truth))
        shown: dict[str, Any] = {"pair": [a.name for a in pair], "table": table}
        return render(request, "joint.html", visitor, campaign=campaign, rehearsal=self._truth, **shown)

    def _kept(self, estimate: Estimate) -> dict[tuple[str, ...], Any]:
        """Pieces that were made from an estimate, by the attribute's name and their own."""
        return self._pieces.setdefault(estimate, {})

    def _made(self, estimate: Estimate, key: tuple[str, ...], make: Callable[[], T]) -> T:
        """A piece or a file of an estimate, made once and in its turn; of too many the first made goes.

        It takes up to seconds of a processor, and a shared link may be followed by many.
        """
        kept = self._kept(estimate)
        if (known := kept.get(key)) is not None:
            return cast("T", known)
        made = self._service.worked_out(lambda: cast("T", kept[key]) if key in kept else make())
        with self._lock:
            kept[key] = made
            for oldest in list(kept)[:-_MOST_KEPT]:
                del kept[oldest]
        return made

    def _attribute(self, campaign: str, estimate: Estimate, a: Attribute) -> dict[str, Any]:
        """What is shown of an attribute. A piece that is not made yet is None: the page asks for it by itself."""
        kept, terms = self._kept(estimate), self._service.directory.terms(campaign)
        words = terms.campaign.wording.get(a.name)
        return {
            "name": a.name,
            "question": _question(terms, a),
            "unit": "" if words is None else words.unit,
            "bars": charts.has_bars(a),
            "moment": {"date": "day", "time": "time", "datetime": "time"}.get(a.kind, ""),
            "example": _example(a),
            "everyday": _everyday(a),
            "pieces": {piece: kept.get((a.name, piece)) for piece in _pieces(a)},
        }

    def _estimate(self, campaign: str) -> Estimate:
        self._service.closed_session(campaign)
        return self._service.directory.estimate(campaign)

    def ask(self, request: Request, visitor: Visitor | None, campaign: str = "") -> Response:
        """The answer to one query: as text, or as ranges of codes from a drag."""
        del visitor
        campaign, form = campaign or request.path_params["campaign"], request.state.form
        try:
            return JSONResponse(self._answer(campaign, form))
        except ValueError as error:
            listed = self._estimate(campaign).schema.attributes
            examples = [example for a in listed[:2] for example in (_everyday(a), _example(a))]
            return JSONResponse({"wrong": unread(error, listed, examples)}, 422)

    def _answer(self, campaign: str, form: dict[str, str]) -> dict[str, Any]:
        """Dragged ranges are picked by looking: theirs is the simultaneous interval. Typed ones have both."""
        estimate, drag = self._estimate(campaign), "query" not in form
        listed = estimate.schema.attributes
        typed = "" if drag else signed(form["query"], listed)
        compared = None if drag else comparisons.sides(typed)
        query = dragged(listed, form.get("drag", "")) if drag else typed
        for asked in compared or (query,):
            if said := pointed(asked, estimate.schema):
                return {"wrong": said}
        if compared:
            return comparisons.compared(estimate, compared, self._truth)
        answers, count = estimate.ask(query), choices(listed, query)
        own, picked = answers.interval(), None if count is None else answers.interval(summaries.level_among(count))
        low, high = (float(side[0]) for side in (picked if drag and picked else own))
        return {
            "query": query,
            "share": float(answers.values[0]),
            "low": low,
            "high": high,
            "text": percent(float(answers.values[0])),
            "interval": _between(low, high),
            "picked": "" if drag or picked is None else _between(*(float(side[0]) for side in picked)),
            "notes": [PICKED_NOTE] * drag + answers.remarks(),
            "command": "" if self._truth else f"ahead campaign query {campaign} '{query}'",
            "truth": percent(self._truth.share(query)) if self._truth else "",
        }

    def report(self, request: Request, visitor: Visitor | None, campaign: str = "") -> Response:
        """Everything on one page that can be sent and printed, with nothing to load from elsewhere."""
        del visitor
        campaign = campaign or request.path_params["campaign"]
        record, estimate = self._service.directory.terms(campaign).campaign.record, self._estimate(campaign)
        form = "pdf" if request.query_params.get("format") == "pdf" else "html"

        def make() -> str | bytes:
            """The report."""
            options: dict[str, Any] = {"title": record["title"], "headings": headings(self._service, campaign)}
            return written(form, estimate, (), **options)

        report = self._made(estimate, (form, "report"), make)
        headers = {"content-disposition": files.disposition([record["title"]], form), "cache-control": "no-store"}
        return Response(report, media_type=files.REPORTS[form], headers=headers)

    def download(self, request: Request, visitor: Visitor | None, campaign: str = "") -> Response:
        """The distribution of one attribute, or of two together, as CSV, Parquet, SVG or PNG, named after them."""
        del visitor
        campaign, asked = campaign or request.path_params["campaign"], request.query_params
        names = [asked[key] for key in ("attribute", "with") if key in asked]
        estimate, form = self._estimate(campaign), asked.get("format", "csv")
        if not names or len(set(names)) != len(names) or not set(names) <= set(estimate.schema.names):
            raise Problem("not_found")
        if form not in files.KINDS:
            raise Problem("invalid_request")
        record = self._service.directory.terms(campaign).campaign

        def make() -> tuple[bytes, str]:
            """The file."""
            return files.made(estimate, names, form, record)

        body, kind = self._made(estimate, ("", form, *names), make)
        headers = {"content-disposition": files.disposition(names, form), "cache-control": "no-store"}
        return Response(body, media_type=kind, headers=headers)


def _question(terms: Terms, a: Attribute) -> str:
    """The question as people read it; the name of the attribute if it has no words."""
    words = terms.campaign.wording.get(a.name)
    return a.name if words is None else words.question


def dragged(attributes: Sequence[Attribute], text: str) -> str:
    """The query behind a drag: for each attribute the first and the last code, in the user's units."""
    try:
        given = {str(name): (int(lo), int(hi)) for name, (lo, hi) in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        raise ValueError("expected a range of codes") from None
    known = {a.name: a for a in attributes}
    conditions = {}
    for name, (lo, hi) in given.items():
        a = known.get(name)
        if a is None or not 0 <= lo <= hi < a.ordered_size:
            raise ValueError("expected codes of an attribute of the campaign")
        conditions[name] = _ends(a, lo, hi)
    if not conditions:
        raise ValueError("expected a range of codes")
    return str(Query(conditions))


def _ends(a: Attribute, lo: int, hi: int) -> tuple[Any, Any] | frozenset[str]:
    if a.labels:
        return frozenset(a.labels[lo : hi + 1])
    edges = borders(a)
    if a.kind == "real":
        return float(edges[lo]), float(edges[hi + 1])
    first, last = int(edges[lo]), int(edges[hi + 1]) - 1
    if a.kind == "integer":
        return first, last
    unit = {"date": "datetime64[D]", "datetime": "datetime64[s]"}.get(a.kind)
    if unit is None:  # a time of day
        return tuple(f"{x // 3600:02d}:{x // 60 % 60:02d}:{x % 60:02d}" for x in (first, last))  # type: ignore[return-value]
    return tuple(str(np.array(x).astype(unit)) for x in (first, last))  # type: ignore[return-value]


def _example(a: Attribute) -> str:
    """A question as the page writes it: the lower half of the answers."""
    return str(Query({a.name: _ends(a, 0, max(a.ordered_size // 2 - 1, 0))}))


def _everyday(a: Attribute) -> str:
    """A question in everyday words: the upper half of a number's range, or one choice."""
    if a.kind == "nominal":
        asked = ((f"{a.name} = {label}", Query({a.name: label})) for label in a.labels)
        return next((said for said, query in asked if _reads(said, query)), "")
    if a.kind == "date" and a.ordered_size > 1:
        day = str(np.array(int(borders(a)[a.ordered_size // 2])).astype("datetime64[D]"))
        plain, query = f"{a.name} > {day}", Query({a.name: (Beyond(day), None)})
        return plain if _reads(plain, query) else ""
    if a.kind not in ("integer", "real") or a.ordered_size < 4:
        return ""
    middle = int(borders(a)[a.ordered_size // 2])
    said = f"{middle // 1000}k" if middle and middle % 1000 == 0 else str(middle)
    plain = f"{a.name} > {said}"
    return plain if _reads(plain, Query({a.name: (Beyond(said), None)})) else f'"{a.name}" > {said}'


def _reads(text: str, query: Query) -> bool:
    """Whether a text is read as this query."""
    try:
        return parse_query(text) == query
    except ValueError:
        return False


def bar_queries(estimate: Estimate, a: Attribute) -> list[str]:
    """The queries behind the bars of an attribute's picture."""
    ends = charts.fitting_bins(estimate, a).ends if not charts.has_bars(a) else np.arange(a.ordered_size + 1)
    pairs = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    return [str(Query({a.name: _ends(a, lo, hi - 1)})) for lo, hi in pairs]


def _pair(attributes: Sequence[Attribute], wanted: Sequence[str]) -> list[Attribute]:
    """Two attributes to show together: those asked for, else the first two, ordered ones before nominal ones."""
    wide = [a for a in attributes if a.ordered_size > 1]
    asked = [a for name in wanted for a in wide if a.name == name]
    if len(asked) == 2 and asked[0] is not asked[1]:
        return asked
    first = sorted(wide, key=lambda a: a.kind == "nominal")[:2]
    return first if len(first) == 2 else []


def choices(attributes: Sequence[Attribute], query: str) -> int | None:
    """Among how many queries on the same attributes one is picked by looking; None where they are too many to count.

    Of an attribute all ranges of its codes, or of the places that a pointer tells apart; of a set all sets.
    """
    known, count = {a.name: a for a in attributes}, 1
    for name, condition in parse_query(query).conditions.items():
        a = known[name]
        places = min(a.size, _PLACES)
        scattered = isinstance(condition, Either)
        scattered = scattered or (isinstance(condition, frozenset) and not _adjacent(a, condition))
        count *= 2**a.size if scattered else places * (places + 1) // 2
    return count if count <= _MOST_CHOICES else None


def _adjacent(a: Attribute, labels: frozenset[Any]) -> bool:
    codes = sorted(a.labels.index(label) for label in labels) if labels <= set(a.labels) else [0, 2]
    return codes[-1] - codes[0] == len(codes) - 1


def _between(low: float, high: float) -> str:
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def _worst(screens: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each kind of screen the one that is furthest out, with what it compares."""
    furthest = {compared(one["screen"]): one for one in sorted(screens, key=lambda one: one["z"])}
    return [{**one, "said": said} for said, one in sorted(furthest.items(), key=lambda item: -item[1]["z"])]


def compared(screen: str) -> str:
    """What a screen compares, in words; docs/threat-model.md has what exactly."""
    for name, said in _COMPARED.items():
        if screen.startswith(name):
            about = screen.removeprefix(name).strip("_ ")
            return f"{said} about {about}" if about else said
    return screen.replace("_", " ")


def _bars(
    estimate: Estimate, a: Attribute, words: Wording | None, truth: Truth | None, *, fine: bool = False
) -> dict[str, Any]:
    """The picture of a distribution, its numbers as a table, and whether finer bars would say little."""
    picture = charts.distribution(estimate, a, words, fine=fine, truth=truth)
    if charts.has_bars(a):
        rows = charts.category_rows(estimate, a, words, truth)
        return {"picture": picture, "rows": rows, "coarse": False, "fine": False}
    bins = charts.fitting_bins(estimate, a, fine=fine)
    rows = charts.bin_rows(estimate, a, bins, truth)
    return {"picture": picture, "rows": rows, "coarse": bins.coarsened, "fine": fine}


def _quantiles(estimate: Estimate, a: Attribute, words: Wording | None, truth: Truth | None) -> list[tuple[str, ...]]:
    del words  # the unit stands above the column
    said = summaries.quantile_texts(estimate, a, _LEVELS)
    columns = [[f"{100 * x:.0f} %" for x in _LEVELS], [value for value, _ in said], [span for _, span in said]]
    if truth is not None:
        columns.append([truth.quantile_text(a.name, x) for x in _LEVELS])
    return list(zip(*columns, strict=True))


def _pieces(a: Attribute) -> list[str]:
    """What there is to show of an attribute's intervals: curves and quantiles need an order, and many steps."""
    curved = _ordered(a) and not (a.labels and charts.has_bars(a))
    return ["summary", "distribution", *(["cumulative", "quantiles"] if curved else [])]


def _ordered(a: Attribute) -> bool:
    return a.kind != "nominal" and a.ordered_size > 1


_PIECES: dict[str, Callable[[Estimate, Attribute, Wording | None, Truth | None], Any]] = {
    "summary": summaries.sentences,
    "distribution": _bars,
    "fine": partial(_bars, fine=True),
    "cumulative": charts.cumulative,
    "quantiles": _quantiles,
}
