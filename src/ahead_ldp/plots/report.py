"""One page about an estimate that can be sent: pictures and sentences, with nothing to load from elsewhere."""

from __future__ import annotations

import io
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from ahead_ldp.estimates.answers import Kind
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.plots.contents import Block, Contents, Heading, Paragraph, Picture, Table
from ahead_ldp.plots.fonts import Fonts, drawn_with, fonts_for
from ahead_ldp.plots.printed import Printed
from ahead_ldp.plots.style import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#222}
@media print{body{margin:0;max-width:none}figure{break-inside:avoid}svg{max-height:11cm}h2,h3{break-after:avoid}}
svg{max-width:100%;height:auto}figure{margin:1rem 0}h2{margin-top:2.5rem;border-bottom:1px solid #ddd}
figcaption,.notes{color:#555;font-size:.85rem}table{border-collapse:collapse;font-size:.9rem;margin:1rem 0}
th,td{text-align:right;padding:.25rem .75rem;border-bottom:1px solid #ddd;font-variant-numeric:tabular-nums}
th:first-child{text-align:left;padding-left:0}tbody th{font-weight:normal}
@media(min-width:46rem){td{white-space:nowrap}}"""
_LACKING = (
    "Boxes{} stand for letters, {} in all, of which there was no font on the machine that wrote this report. Install a"
    " font that has them, and write it again."
)


def report_page(
    estimate: Estimate,
    *queries: str,
    title: str = "Report",
    before: Estimate | None = None,
    by: str | None = None,
    level: float = 0.95,
    kind: Kind | None = None,
    headings: Mapping[str, str] | None = None,
) -> str:
    """An HTML page: every attribute with its picture and sentences, then queries, groups ``by`` an attribute, changes.

    Everything is in the page, pictures as SVG. ``before`` is an earlier estimate, for what changed since. ``headings``
    are the words of attributes, to stand above their pictures in place of their names.
    """
    contents = Contents(title, before, by, level, kind, headings)
    new_figure()  # says what to install where matplotlib is missing
    fonts = fonts_for(contents.letters(estimate, queries))
    with drawn_with(fonts):
        blocks = contents.blocks(estimate, queries) + _lacking(fonts, " in pictures")
        body = "\n".join(map(_html, blocks))
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n'
    )


def report_pdf(
    estimate: Estimate,
    *queries: str,
    title: str = "Report",
    before: Estimate | None = None,
    by: str | None = None,
    level: float = 0.95,
    kind: Kind | None = None,
    headings: Mapping[str, str] | None = None,
) -> bytes:
    """The same as a PDF of A4 pages: sentences and tables are text, pictures are drawn lines.

    The file holds its fonts. The same estimate gives the same bytes, so no date is in it.
    """
    contents = Contents(title, before, by, level, kind, headings)
    new_figure()  # says what to install where matplotlib is missing
    fonts = fonts_for(contents.letters(estimate, queries))
    file = Printed(title, fonts)
    with drawn_with(fonts):
        for block in contents.blocks(estimate, queries) + _lacking(fonts, ""):
            match block:
                case Heading(text, rank):
                    file.heading(text, rank)
                case Paragraph(text, small):
                    file.paragraph(text, small)
                case Picture(figure, caption):
                    width, height = figure.get_size_inches()
                    file.picture(svg(figure), float(height / width), caption)
                case Table(head, rows):
                    file.table(head, rows)
    return file.bytes()


def _lacking(fonts: Fonts, where: str) -> list[Block]:
    return [Paragraph(_LACKING.format(where, len(fonts.missing)), small=True)] if fonts.missing else []


def _html(block: Block) -> str:
    match block:
        case Heading(text, rank):
            return f"<h{rank}>{escape(text)}</h{rank}>"
        case Paragraph(text, small):
            return ('<p class="notes">' if small else "<p>") + f"{escape(text)}</p>"
        case Picture(figure, caption):
            drawn = svg(figure).replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
            return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"
        case Table(head, rows):
            names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
            lines = [
                f'<tr><th scope="row">{escape(name)}</th>' + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>"
                for name, *cells in rows
            ]
            return f"<table><thead><tr>{names}</tr></thead><tbody>\n{chr(10).join(lines)}\n</tbody></table>"


def svg(figure: Figure) -> str:
    """A picture as part of a page, the same for the same picture."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()[out.getvalue().index("<svg") :]
