"""A4 pages with headings, sentences, pictures and tables, as a PDF (fpdf2; decision 020 says why)."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ahead_ldp.plots.fonts import Fonts

if TYPE_CHECKING:
    from fpdf import FPDF

_MARGIN = 20.0  # mm, as all lengths here
_PICTURE = 150.0  # width of a picture
_SIZES = {1: 18.0, 2: 13.0, 3: 11.0}  # of headings, in points
_TEXT, _SMALL, _LEADING = 10.0, 8.0, 1.4
_TOGETHER = 16  # rows of a table that no page divides
_INK, _GREY, _RULE = 34, 90, 210
_DATE = datetime(1970, 1, 1, tzinfo=UTC)


class Printed:
    """A document that is written from top to bottom."""

    def __init__(self, title: str, fonts: Fonts) -> None:
        """An empty document."""
        self._family = fonts.families[0]
        self._pdf = _document(title, self._family)
        for family, file in zip(fonts.families, fonts.files, strict=True):
            self._pdf.add_font(family, fname=file)
            self._pdf.add_font(family, "B", fonts.bold if family == self._family else file)
        self._pdf.set_fallback_fonts(list(fonts.families[1:]))
        self._pdf.set_margin(_MARGIN)
        self._pdf.set_auto_page_break(True, _MARGIN)
        self._pdf.add_page()
        self._waiting: list[tuple[str, int]] = []  # headings stay with what follows them

    def heading(self, text: str, rank: int) -> None:
        """A heading, which is also in the outline beside the pages."""
        self._waiting.append((text, rank))

    def paragraph(self, text: str, small: bool = False) -> None:
        """Sentences."""
        self._begin(15.0)
        self._write(text, _SMALL if small else _TEXT, _GREY if small else _INK)
        self._pdf.ln(1.0 if small else 2.0)

    def picture(self, drawing: str, shape: float, caption: str) -> None:
        """An SVG picture of this height for each width, and its caption below, on one page."""
        height = _PICTURE * shape
        self._begin(height + 2 * self._line(_SMALL) + 3.0)
        # An element that fpdf2 passes over is one that nobody sees: who made the picture.
        logging.getLogger("fpdf.svg").setLevel(logging.ERROR)
        self._pdf.image(io.BytesIO(drawing.encode()), w=_PICTURE, h=height)
        self._pdf.ln(1.0)
        self._write(caption, _SMALL, _GREY)
        self._pdf.ln(2.0)

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table, whose head stands on each page; names to the left, numbers to the right."""
        from fpdf.enums import TableBordersLayout
        from fpdf.fonts import FontFace

        self._begin(min(len(rows) + 1, _TOGETHER) * (self._line(_SMALL + 1) + 1.6))
        pdf = self._pdf
        pdf.set_font(self._family, size=_SMALL + 1)
        pdf.set_text_color(_INK)
        pdf.set_draw_color(_RULE)
        widths = [max(pdf.get_string_width(row[i]) for row in [head, *rows]) + 8.0 for i in range(len(head))]
        wide = min(sum(widths), pdf.epw)
        if sum(widths) > wide:  # long names are broken into lines first
            widths[0] = max(widths[0] - (sum(widths) - wide), 0.25 * wide)
        with pdf.table(
            width=wide, col_widths=[w * wide / sum(widths) for w in widths], align="LEFT", padding=(0.8, 1.5, 0.8, 1.5),
            text_align=("LEFT", *["RIGHT"] * (len(head) - 1)), borders_layout=TableBordersLayout.HORIZONTAL_LINES,
            line_height=self._line(_SMALL + 1), headings_style=FontFace(emphasis="BOLD", color=_INK),
        ) as table:  # fmt: skip
            for row in [head, *rows]:
                table.row(row)
        pdf.ln(3.0)

    def bytes(self) -> bytes:
        """The file, without the date that the format would give it: the same pages are the same bytes."""
        self._begin(0.0)
        made = bytes(self._pdf.output())
        return re.sub(rb"/CreationDate \(D:19700101000000Z\)", lambda found: b" " * len(found[0]), made)

    def _begin(self, height: float) -> None:
        """Go to the next page where the headings and so much more find no room on this one, and write the headings."""
        pdf = self._pdf
        above = sum(2.4 * self._line(_SIZES[rank]) for _, rank in self._waiting)
        if pdf.will_page_break(above + height) and pdf.get_y() > _MARGIN + 1:
            pdf.add_page()
        for text, rank in self._waiting:
            if pdf.get_y() > _MARGIN + 1:
                pdf.ln(4.0 if rank == 2 else 2.0)
            pdf.start_section(text, rank - 1)
            self._write(text, _SIZES[rank], _INK, "B")
            if rank == 2:
                pdf.set_draw_color(_RULE)
                pdf.line(pdf.l_margin, pdf.get_y() + 0.8, pdf.w - pdf.r_margin, pdf.get_y() + 0.8)
            pdf.ln(2.5)
        self._waiting.clear()

    def _write(self, text: str, size: float, ink: int, style: Any = "") -> None:
        self._pdf.set_font(self._family, style, size)
        self._pdf.set_text_color(ink)
        self._pdf.multi_cell(0, self._line(size), text, align="L", new_x="LMARGIN", new_y="NEXT")

    def _line(self, size: float) -> float:
        return size * _LEADING * 25.4 / 72


def _document(title: str, family: str) -> FPDF:
    """An empty document with page numbers below, which say nothing where there is one page."""
    try:
        from fpdf import FPDF
    except ImportError:
        raise ImportError("a PDF needs fpdf2: pip install 'ahead-ldp[pdf]'") from None

    class Document(FPDF):  # type: ignore[misc,unused-ignore]
        """Pages with numbers."""

        def footer(self) -> None:
            """The title, the page and how many there are."""
            self.set_y(-13.0)
            self.set_font(family, size=_SMALL)
            self.set_text_color(_GREY)
            self.cell(0, 5.0, title if len(title) < 80 else title[:79] + "…", align="L")
            self.set_x(self.l_margin)
            self.cell(0, 5.0, f"{self.page_no()} / {{nb}}", align="R")

    made = Document(format="A4")
    made.set_title(title)
    made.set_lang("en")
    made.set_creation_date(_DATE)
    return made
