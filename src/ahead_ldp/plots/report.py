"""One page about an estimate that can be sent: pictures and sentences, with nothing to load from elsewhere."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.analysis.describing import has_total
from ahead_ldp.estimates.answers import Kind
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Findings
from ahead_ldp.plots.changes import plot_difference
from ahead_ldp.plots.densities import plot_estimate
from ahead_ldp.plots.findings import plot_findings
from ahead_ldp.plots.intervals import plot_answers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#222}
@media print{body{margin:0;max-width:none}svg{max-height:11cm;break-inside:avoid}h2{break-after:avoid}}
svg{max-width:100%;height:auto}h2{margin-top:2.5rem;border-bottom:1px solid #ddd}.notes{color:#555;font-size:.85rem}"""


def report_page(
    estimate: Estimate,
    *queries: str,
    title: str = "Report",
    before: Estimate | None = None,
    by: str | None = None,
    level: float = 0.95,
    kind: Kind | None = None,
) -> str:
    """An HTML page: every attribute with its picture and sentences, then queries, groups ``by`` an attribute, changes.

    Everything is in the page, pictures as SVG. ``before`` is an earlier estimate, for what changed since.
    """
    parts = [f"<h1>{escape(title)}</h1>", *_paragraphs(_head(estimate, level))]
    for a in estimate.schema.attributes:
        parts += [f"<h2>{escape(a.name)}</h2>", _svg(plot_estimate(estimate, a.name, level=level, kind=kind))]
        parts += _paragraphs(_sentences(estimate, a, level, kind))
    if queries:
        answers = estimate.ask(*queries)
        parts += ["<h2>Queries</h2>", _svg(plot_answers(answers, level=level, kind=kind))]
    if by is not None:
        parts += _groups(estimate, by, level, kind)
    if before is not None:
        change = estimate.since(before)
        shared = [n for n in estimate.schema.names if n in before.schema.names]
        parts.append("<h2>What changed</h2>")
        for name in shared:
            parts += [
                _svg(plot_difference(change, name, level, kind)),
                *_paragraphs([change.test(name, level, kind).text()]),
            ]
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n'
    )


def _head(estimate: Estimate, level: float) -> Iterator[str]:
    origin = estimate.provenance
    if origin is not None:
        yield (
            f"{origin.people:,} people took part. Each report was made private with epsilon {origin.epsilon} before it"
            f" was sent, so no report tells the value of anybody. The method is {origin.method}."
        )
    yield f"Intervals hold what is asked for with a probability of {100 * level:g} %."


def _sentences(estimate: Estimate, a: Attribute, level: float, kind: Kind | None) -> Iterator[str]:
    """What is to be said of one attribute."""
    if a.labels:
        shares = estimate.histogram(a.name)
        low, high = (side.reshape(-1) for side in shares.interval(level, True, kind))
        top = int(shares.values.argmax())
        yield (
            f"The most common category is {shares.labels[a.name][top]}, with {100 * shares.values[top]:.1f} % of the"
            f" people ({100 * low[top]:.1f} to {100 * high[top]:.1f} %, all categories at once)."
        )
        return
    quartiles = estimate.quantiles(a.name)
    texts = quartiles.texts(level, kind)
    yield (
        f"A quarter of the people is at or below {texts[0]}, half at or below {texts[1]}, three quarters at or below"
        f" {texts[2]}."
    )
    yield f"The mean is {estimate.mean(a.name).text(level, kind)}."
    yield f"The standard deviation is {_said(estimate.std(a.name), level, kind)}."
    if has_total(a):
        yield f"The tenth with the most holds {_said(estimate.top_share(a.name, [0.1]), level, kind)} of the total."
        yield f"The Gini coefficient is {_said(estimate.gini(a.name), level, kind)}."
    yield from quartiles.notes(level, kind)


def _said(findings: Findings, level: float, kind: Kind | None) -> str:
    (low,), (high,) = findings.interval(level, kind=kind)
    width = float(high - low)
    return f"{findings.said(findings.value, width)} ({findings.said(low, width)} to {findings.said(high, width)})"


def _groups(estimate: Estimate, by: str, level: float, kind: Kind | None) -> list[str]:
    parts, groups = [f"<h2>By {escape(by)}</h2>"], estimate.by(by)
    for a in estimate.schema.attributes:
        if a.name != by and not a.labels:
            parts += [
                f"<h3>Mean of {escape(a.name)}</h3>",
                _svg(plot_findings(groups.mean(a.name), level=level, kind=kind)),
            ]
    return parts


def _paragraphs(lines: Sequence[str] | Iterator[str]) -> list[str]:
    return [f"<p>{escape(line)}</p>" for line in lines]


def _svg(figure: Figure) -> str:
    """A picture as part of a page, the same for the same picture."""
    import matplotlib as mpl

    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "ahead", "svg.fonttype": "path"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()[out.getvalue().index("<svg") :]
