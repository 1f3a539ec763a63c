"""The figure of docs/limit.md, drawn from what was measured: SVG, light and dark in one file.

`python -m tools.limit.picture` writes docs/img/limit.svg; a test compares it with what is drawn now.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from tools.figures import FOLDER, STYLE
from tools.limit.bound import all_information
from tools.limit.classes import SHAPES, SPREAD
from tools.limit.measuring import Line, lines_of

MEASURED = Path(__file__).parent / "measured.jsonl"
PICTURE = FOLDER / "limit.svg"
CURVES = {
    "default": "the default",
    "asked": "the default, asked with the true density known",
    "read risk": "the default's reports, read with the class known",
    "oracle risk": "asked and read with the class known",
}
WIDTH, COLUMNS, GAP, LEFT, TOP, TALL, BELOW = 720, 3, 14, 30, 86, 150, 44
FEWEST, MOST = 1.9, 8.0  # decades of what all reports tell
HIGHEST = 32.0  # times the bound
_OWN_STYLE = """
  .grid { stroke: #d5dbe6 } .least { stroke: #2b2f36; stroke-width: 1.5 }
  .curve { fill: none; stroke-width: 1.5 } .dot { stroke: none }
  .default { stroke: #c2571a } .dot.default { fill: #c2571a } .asked { stroke: #8a63b8 } .dot.asked { fill: #8a63b8 }
  .read { stroke: #2f62b5 } .dot.read { fill: #2f62b5 } .oracle { stroke: #2e7d4f } .dot.oracle { fill: #2e7d4f }
  @media (prefers-color-scheme: dark) {
    .grid { stroke: #39404d } .least { stroke: #e3e6ec }
    .default { stroke: #ff9a5c } .dot.default { fill: #ff9a5c } .asked { stroke: #c3a3ec } .dot.asked { fill: #c3a3ec }
    .read { stroke: #8ab4ff } .dot.read { fill: #8ab4ff } .oracle { stroke: #6cc28d } .dot.oracle { fill: #6cc28d }
  }
"""


def measured(file: Path = MEASURED) -> list[Line]:
    """The lines about the default as it is and classes as they are, which the figure is made of."""
    return [line for line in lines_of(file) if not line["choices"] and line["spread"] == SPREAD]


def draw(lines: Sequence[Line] | None = None) -> str:
    """A panel for each shape: errors over the bound, by how much all reports tell."""
    lines = measured() if lines is None else lines
    wide = (WIDTH - LEFT - COLUMNS * GAP) / COLUMNS
    body = [
        _text(LEFT, 22, "Mean squared error of random ranges, over a bound that no method can go below", "title"),
        *_key(),
    ]
    for i, name in enumerate(SHAPES):
        left, top = LEFT + i % COLUMNS * (wide + GAP), TOP + i // COLUMNS * (TALL + BELOW)
        body += _panel(name, [line for line in lines if line["shape"] == name], left, top, wide, i % COLUMNS == 0)
    rows = -(-len(SHAPES) // COLUMNS)
    height = TOP + rows * (TALL + BELOW) + 8
    body.append(_text(LEFT, height - 10, "from left to right: people times 4 sinh(epsilon / 2) squared", "small"))
    said = "The default's error over a bound that every protocol obeys, for six shapes; the page has the numbers"
    box = f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(said)}"'
    card = f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>'
    return "\n".join([head, f"<style>{STYLE}{_OWN_STYLE}</style>", card, *body, "</svg>"]) + "\n"


def _key() -> list[str]:
    found = []
    for i, (curve, said) in enumerate(CURVES.items()):
        x, y = LEFT + i % 2 * 330, 40 + i // 2 * 18
        found.append(f'<circle class="dot {curve.split()[0]}" cx="{x + 4}" cy="{y}" r="4"/>')
        found.append(_text(x + 13, y + 4, said, "small"))
    return found


def _panel(name: str, lines: Sequence[Line], left: float, top: float, wide: float, labelled: bool) -> list[str]:
    def x_of(tells: float) -> float:
        return left + wide * (float(np.log10(tells)) - FEWEST) / (MOST - FEWEST)

    def y_of(over: float) -> float:
        return top + TALL * (1 - float(np.log2(min(max(over, 1.0), HIGHEST)) / np.log2(HIGHEST)))

    body = [_text(left, top - 6, name, "small")]
    for over in (1, 2, 4, 8, 16, 32):
        kind = "least" if over == 1 else "grid"
        body.append(
            f'<line class="{kind}" x1="{left:.1f}" x2="{left + wide:.1f}" y1="{y_of(over):.1f}" y2="{y_of(over):.1f}"/>'
        )
        if labelled:
            body.append(_text(left - 5, y_of(over) + 4, f"{over}", "small", "end"))
    for power in (2, 4, 6):
        body.append(_text(x_of(10.0**power), top + TALL + 15, f"{10**power:,}", "small", "middle"))
    for curve in CURVES:
        kind = curve.split()[0]
        tells = [4 * line["n"] * all_information(line["epsilon"]) for line in lines]
        errors = [float(np.mean(line["errors"][curve])) / line["bound"] for line in lines]
        at = [(x_of(x), y_of(y)) for x, y in sorted(zip(tells, errors, strict=True))]
        path = " L".join(f"{x:.1f} {y:.1f}" for x, y in at)
        body.append(f'<path class="curve {kind}" d="M{path}"/>')
        body += [f'<circle class="dot {kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.4"/>' for x, y in at]
    return body


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(draw(), encoding="utf-8")
    print(PICTURE.name)


if __name__ == "__main__":
    main()
