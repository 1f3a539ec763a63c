"""Results as files: tables with numeric edges, and pictures, named after what they are about."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ahead_ldp.device.campaign import Campaign
from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.slices import equal_blocks, slices
from ahead_ldp.schema.coding import bucket_label
from ahead_ldp.schema.units import borders
from ahead_ldp.schema.units import text as spoken_text
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.dashboard.joint_charts import boxes_of, pair_bins

_MOST_ROWS = 256  # of a table: each has a strict interval, which takes milliseconds
_FORMULA = tuple("=+-@＝＋－＠\t\r\n")  # wide letters too: some spreadsheets read them alike
_MOST_SIDE = 16  # bins of each of two attributes
KINDS = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "svg": "image/svg+xml",
    "png": "image/png",
}
REPORTS = {"html": "text/html", "pdf": "application/pdf"}


def disposition(names: Sequence[str], form: str) -> str:
    """The header that names a file after its attributes, in letters that every system takes."""
    plain = "-".join(re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-") or "attribute" for name in names)
    return f'attachment; filename="{plain[:80]}.{form}"'


def made(estimate: Estimate, names: Sequence[str], form: str, campaign: Campaign) -> tuple[bytes, str]:
    """The file and its kind."""
    if form not in KINDS:
        raise Problem("invalid_request")
    try:
        if form in ("svg", "png"):
            return _picture(estimate, names, form, campaign), KINDS[form]
        attributes = [estimate.schema.attributes[estimate.schema.index(name)] for name in names]
        columns = _one(estimate, attributes[0]) if len(names) == 1 else _two(estimate, attributes)
        return (_parquet if form == "parquet" else _csv)(columns), KINDS[form]
    except ImportError as error:
        raise Problem("not_installed", str(error)) from None


def _one(estimate: Estimate, a: Attribute) -> dict[str, list[Any]]:
    ends = np.arange(a.size + 1) if a.size <= _MOST_ROWS or a.labels else equal_blocks(a.ordered_size, _MOST_ROWS)
    if a.missing == "cell" and ends[-1] == a.ordered_size:
        ends = np.append(ends, a.size)
    answers = estimate.answer_jointly(slices(estimate.schema, a.name, ends[:-1].astype(float), ends[1:].astype(float)))
    return {**_edges(a, ends[:-1], ends[1:]), **_numbers(answers)}


def _two(estimate: Estimate, pair: Sequence[Attribute]) -> dict[str, list[Any]]:
    ends = [e for e, _ in pair_bins(pair, _MOST_SIDE)]
    at = np.indices([e.size - 1 for e in ends]).reshape(2, -1)
    named: dict[str, list[Any]] = {}
    for a, e, i in zip(pair, ends, at, strict=True):
        named |= {f"{a.name}_{key}": column for key, column in _edges(a, e[i], e[i + 1]).items()}
    return {**named, **_numbers(estimate.answer_jointly(boxes_of(estimate, pair, ends)))}


def _edges(a: Attribute, first: Any, after: Any) -> dict[str, list[Any]]:
    """What a row stands for: a category, or all from one number to below another; days and times as text."""
    if a.labels:
        return {"value": [bucket_label(a, int(i)) for i in first]}
    known = borders(a)
    low = [None if i >= a.ordered_size else _plain(a, known[i]) for i in first.tolist()]
    high = [None if i > a.ordered_size else _plain(a, known[i]) for i in after.tolist()]
    return {"from": low, "below": high}


def _plain(a: Attribute, number: float) -> Any:
    if a.kind == "real":
        return float(number)
    if a.kind == "integer":
        return int(number)
    if a.kind == "date":
        return str(np.datetime64(int(number), "D"))
    if a.kind == "datetime":
        return str(np.datetime64(int(number), "s"))
    return spoken_text(a, number)


def _numbers(answers: Answers) -> dict[str, list[Any]]:
    wanted = ("share", "low", "high", "simultaneous_low", "simultaneous_high")
    columns = answers.columns()
    return {name: np.asarray(columns[name]).reshape(-1).tolist() for name in wanted}


def _csv(columns: dict[str, list[Any]]) -> bytes:
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow([_harmless(name) for name in columns])
    writer.writerows([_harmless(x) for x in row] for row in zip(*columns.values(), strict=True))
    return lines.getvalue().encode()


def _harmless(cell: Any) -> Any:
    """A text that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _parquet(columns: dict[str, list[Any]]) -> bytes:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError("a Parquet file needs PyArrow: pip install 'ahead-ldp[batch]'") from None

    target = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(column) for name, column in columns.items()}), target)
    return target.getvalue()


def _picture(estimate: Estimate, names: Sequence[str], form: str, campaign: Campaign) -> bytes:
    figure = estimate.plot(*names)
    title = [campaign.wording[name].question if name in campaign.wording else name for name in names]
    figure.suptitle("\n".join(title).replace("$", r"\$"), fontsize="medium")
    if figure.axes:
        setters: list[Callable[[str], object]] = [figure.axes[0].set_xlabel, figure.axes[0].set_ylabel]
        for name, label in zip(names, setters, strict=False):
            unit = campaign.wording[name].unit if name in campaign.wording else ""
            label(f"{name} ({unit})".replace("$", r"\$") if unit else name.replace("$", r"\$"))
    target = io.BytesIO()
    figure.savefig(target, format=form, dpi=150, bbox_inches="tight")
    return target.getvalue()
