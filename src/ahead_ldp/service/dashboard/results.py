"""The analyst's page: distributions with bands, a query builder, and downloads, all from the closed waves."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.protocol.mechanism import Question
from ahead_ldp.schema.queries import Query
from ahead_ldp.schema.units import borders
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.dashboard import charts
from ahead_ldp.service.dashboard.rendering import render
from ahead_ldp.service.screening.manipulation import AskedWave, manipulation
from ahead_ldp.service.server.service import Service
from ahead_ldp.service.server.sessions import Visitor

_SHOWN_AT_ONCE = 2  # attributes with their pictures; those of the others are made when they are looked at
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


class ResultPages:
    """Pages over a service; each method is an endpoint."""

    def __init__(self, service: Service) -> None:
        """All of them ask the same service."""
        self._service = service

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
                "complete": session.estimate is not None,
                "people": estimate.provenance.people,
            },
            "attributes": [_attribute(asked, estimate, a) for a in listed[:_SHOWN_AT_ONCE]],
            "others": [a.name for a in listed[_SHOWN_AT_ONCE:]],
            "heat": charts.heat_map(estimate, *pair) if pair else None,
            "names": [a.name for a in listed if a.ordered_size > 1],
            "pair": [a.name for a in pair],
            "manipulation": manipulation(asked, terms.campaign.tier),
        }

    def attribute(self, request: Request, visitor: Visitor) -> Response:
        """The pictures of one attribute, as a part of the page."""
        campaign, name = request.path_params["campaign"], request.query_params.get("name", "")
        estimate = self._estimate(campaign)
        if name not in estimate.schema.names:
            raise Problem("not_found")
        attribute = estimate.schema.attributes[estimate.schema.index(name)]
        shown = _attribute(self._service.directory.asked(campaign), estimate, attribute)
        return render(request, "attribute.html", visitor, campaign=campaign, a=shown)

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
        estimate = self._estimate(campaign)
        query = form["query"] if "query" in form else dragged(estimate.schema.attributes, form.get("drag", ""))
        (answer,) = estimate.ask(query).records()
        share, low, high = (answer[name] for name in ("share", "low", "high"))
        return {
            "query": query,
            "share": share,
            "low": low,
            "high": high,
            "text": f"{100 * share:.2f} %",
            "interval": "not known" if low is None else f"{100 * low:.2f} to {100 * high:.2f} %",
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
        columns = estimate.histogram(name).columns()
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


def _attribute(asked: Sequence[AskedWave], estimate: Estimate, a: Attribute) -> dict[str, Any]:
    ordered = a.kind != "nominal" and a.ordered_size > 1
    quantiles = estimate.quantiles(a.name, _LEVELS) if ordered else None
    texts = quantiles.texts() if quantiles else []
    waves = asked_cells(asked, estimate.schema.names.index(a.name)) if ordered else []
    return {
        "name": a.name,
        "bars": charts.has_bars(a),
        "example": str(Query({a.name: _ends(a, 0, max(a.ordered_size // 2 - 1, 0))})),
        "distribution": charts.distribution(estimate, a),
        "cumulative": charts.cumulative(estimate, a) if ordered else None,
        "decomposition": charts.decomposition(estimate, a, waves) if waves else None,
        "quantiles": list(zip([f"{100 * x:.0f} %" for x in _LEVELS], texts, strict=False)),
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
