"""The analyst's page: distributions with bands, a query builder, and downloads, all from the closed waves."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.answers import percent
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.protocol.mechanism import Question
from ahead_ldp.schema.queries import Either, Query, parse_query
from ahead_ldp.schema.units import borders
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.campaigns.results import STORED_NOTE
from ahead_ldp.service.dashboard import charts
from ahead_ldp.service.dashboard.rendering import render
from ahead_ldp.service.screening.manipulation import AskedWave, manipulation
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.server.sessions import Visitor

_SHOWN_AT_ONCE = 2  # attributes with their pictures; those of the others are made when they are looked at
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
_MOST_ROWS = 256  # of a table to download: each has a strict interval, which takes milliseconds
_PLACES = 2048  # along a picture that a pointer tells apart
_MOST_CHOICES = 10**13  # beyond it the level of one interval among them is 1 in floating point

PICKED_NOTE = "Picked by looking: the interval is simultaneous, it holds for all ranges that could have been dragged."


class ResultPages:
    """Pages over a service; each method is an endpoint."""

    def __init__(self, service: Service) -> None:
        """All of them ask the same service."""
        self._service = service
        self._pieces: WeakKeyDictionary[Estimate, dict[tuple[str, str], Any]] = WeakKeyDictionary()

    def page(self, request: Request, visitor: Visitor) -> Response:
        """Everything at a glance."""
        campaign = request.path_params["campaign"]
        pair = [request.query_params.get(name, "") for name in ("across", "up")]
        try:
            shown = self._shown(campaign, pair)
        except Problem as problem:
            if problem.kind != "no_results":
                raise
            record = self._service.directory.terms(campaign).campaign.record
            state = self._service.state(campaign)["state"]
            shown = {"record": record, "attributes": None, "state": state}
        return render(request, "results.html", visitor, campaign=campaign, **shown)

    def _shown(self, campaign: str, wanted: Sequence[str]) -> dict[str, Any]:
        session, directory = self._service.closed_session(campaign), self._service.directory
        terms, estimate, asked = directory.terms(campaign), directory.estimate(campaign), directory.asked(campaign)
        assert estimate.provenance is not None
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
            "attributes": [self._attribute(asked, estimate, a) for a in listed[:_SHOWN_AT_ONCE]],
            "others": [a.name for a in listed[_SHOWN_AT_ONCE:]],
            "heat": charts.heat_map(estimate, *pair) if pair else None,
            "names": [a.name for a in listed if a.ordered_size > 1],
            "pair": [a.name for a in pair],
            "manipulation": manipulation(asked, terms.campaign.tier),
        }

    def attribute(self, request: Request, visitor: Visitor) -> Response:
        """One attribute as a part of the page, or one piece of that, which is kept until the next wave is closed."""
        campaign, name = request.path_params["campaign"], request.query_params.get("name", "")
        piece, estimate = request.query_params.get("piece"), self._estimate(campaign)
        if name not in estimate.schema.names:
            raise Problem("not_found")
        attribute = estimate.schema.attributes[estimate.schema.index(name)]
        if piece is not None:
            if piece not in _pieces(attribute):
                raise Problem("not_found")
            kept = self._kept(estimate)
            kept[name, piece] = kept.get((name, piece)) or _PIECES[piece](estimate, attribute)
        shown = self._attribute(self._service.directory.asked(campaign), estimate, attribute)
        return render(request, "attribute.html", visitor, campaign=campaign, a=shown, only=piece)

    def _kept(self, estimate: Estimate) -> dict[tuple[str, str], Any]:
        """Pieces that were made from an estimate, by the attribute's name and their own."""
        return self._pieces.setdefault(estimate, {})

    def _attribute(self, asked: Sequence[AskedWave], estimate: Estimate, a: Attribute) -> dict[str, Any]:
        """What is shown of an attribute. A piece that is not made yet is None: the page asks for it by itself."""
        kept, pieces = self._kept(estimate), _pieces(a)
        waves = asked_cells(asked, estimate.schema.names.index(a.name)) if "cumulative" in pieces else []
        return {
            "name": a.name,
            "bars": charts.has_bars(a),
            "example": str(Query({a.name: _ends(a, 0, max(a.ordered_size // 2 - 1, 0))})),
            "pieces": {piece: kept.get((a.name, piece)) for piece in pieces},
            "decomposition": charts.decomposition(estimate, a, waves) if waves else None,
        }

    def _estimate(self, campaign: str) -> Estimate:
        self._service.closed_session(campaign)
        return self._service.directory.estimate(campaign)

    def ask(self, request: Request, visitor: Visitor) -> Response:
        """The answer to one query: as text, or as ranges of codes from a drag."""
        del visitor
        campaign, form = request.path_params["campaign"], request.state.form
        try:
            return JSONResponse(self._answer(campaign, form))
        except ValueError as error:
            return JSONResponse({"wrong": str(error)}, 422)

    def _answer(self, campaign: str, form: dict[str, str]) -> dict[str, Any]:
        """Dragged ranges are picked by looking: theirs is the simultaneous interval. Typed ones have both."""
        estimate, drag = self._estimate(campaign), "query" not in form
        query = dragged(estimate.schema.attributes, form.get("drag", "")) if drag else form["query"]
        answers, count = estimate.ask(query), choices(estimate.schema.attributes, query)
        own, picked = answers.interval(), None if count is None else answers.interval(charts.level_among(count))
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
            "command": f"ahead campaign query {campaign} '{query}'",
        }

    def download(self, request: Request, visitor: Visitor) -> Response:
        """The distribution of one attribute as CSV, Parquet, SVG or PNG."""
        del visitor
        campaign = request.path_params["campaign"]
        name, form = request.query_params.get("attribute", ""), request.query_params.get("format", "csv")
        body, kind = self._file(campaign, name, form)
        ending = {"text/csv": "csv", "image/svg+xml": "svg", "image/png": "png"}.get(kind, "parquet")
        headers = {"content-disposition": f'attachment; filename="distribution.{ending}"', "cache-control": "no-store"}
        return Response(body, media_type=kind, headers=headers)

    def _file(self, campaign: str, name: str, form: str) -> tuple[bytes, str]:
        estimate = self._estimate(campaign)
        if name not in estimate.schema.names:
            raise Problem("not_found")
        if form in ("svg", "png"):
            target = io.BytesIO()
            estimate.plot(name).savefig(target, format=form, dpi=150)
            return target.getvalue(), "image/svg+xml" if form == "svg" else "image/png"
        a = estimate.schema.attributes[estimate.schema.index(name)]
        few = a.kind == "nominal" or a.size <= _MOST_ROWS
        columns = estimate.histogram(name, None if few else _MOST_ROWS).columns()
        if form == "parquet":
            return _parquet(columns), "application/vnd.apache.parquet"
        if form != "csv":
            raise Problem("invalid_request")
        lines = io.StringIO()
        writer = csv.writer(lines)
        writer.writerow(columns)
        writer.writerows(zip(*(np.asarray(c).reshape(-1).tolist() for c in columns.values()), strict=True))
        return lines.getvalue().encode(), "text/csv"


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


def _quantiles(estimate: Estimate, a: Attribute) -> list[tuple[str, str]]:
    texts = estimate.quantiles(a.name, _LEVELS).texts()
    return list(zip([f"{100 * x:.0f} %" for x in _LEVELS], texts, strict=True))


def _pieces(a: Attribute) -> list[str]:
    """What there is to show of an attribute's intervals: curves and quantiles need an order."""
    return list(_PIECES) if a.kind != "nominal" and a.ordered_size > 1 else ["distribution"]


_PIECES: dict[str, Callable[[Estimate, Attribute], Any]] = {
    "distribution": charts.distribution,
    "cumulative": charts.cumulative,
    "quantiles": _quantiles,
}


def asked_cells(waves: Sequence[AskedWave], attribute: int) -> list[list[int]]:
    """For each closed wave the inner borders of the finest cells that were asked about on an attribute."""
    finest = [max((_inner_borders(q, attribute) for q, _ in wave), key=len, default=[]) for wave in waves]
    return [inner for inner in finest if inner]


def _inner_borders(question: Question, attribute: int) -> list[int]:
    if attribute not in question.attributes:
        return []
    at = question.attributes.index(attribute)
    return sorted({int(x) for x in question.partition.lo[:, at]} - {0})


def _parquet(columns: dict[str, Any]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = io.BytesIO()
    pq.write_table(
        pa.table({name: pa.array(np.asarray(c).reshape(-1).tolist()) for name, c in columns.items()}), target
    )
    return target.getvalue()
