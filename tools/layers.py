"""The picture of the layers in docs/architecture.md, made from the list in tests/test_architecture.py.

`python -m tools.layers` writes docs/img/layers.svg; a test compares it with the list.
"""

from __future__ import annotations

import ast
import textwrap
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE, PICTURE = ROOT / "src" / "ahead_ldp", ROOT / "docs" / "img" / "layers.svg"
WIDTH, GAP, LABEL, LINE = 960, 10, 30, 15  # in SVG units
CHARACTER = 6.7  # about the width of one at 12 px
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #333 } .name { font-weight: 600; font-size: 14px }
  rect { fill: #f4f6fa; stroke: #5b7db1 } .number { fill: #777; font-size: 11px }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd } rect { fill: #1d2330; stroke: #7d9bd0 } .number { fill: #999 }
  }
"""


def layers() -> list[set[str]]:
    """The list in the architecture test, from the ground up."""
    tree = ast.parse((ROOT / "tests" / "test_architecture.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS":
            return [set(line) for line in ast.literal_eval(node.value)]
    raise LookupError("expected a list LAYERS in tests/test_architecture.py")


def promise(room: str) -> str:
    """The first sentence of a room's docstring: what it is for."""
    package, module = SOURCE / room / "__init__.py", SOURCE / f"{room}.py"
    text = ast.get_docstring(ast.parse((package if package.exists() else module).read_text("utf-8"))) or ""
    return text.partition("\n")[0].partition(": one file")[0]


def inside(room: str) -> str:
    """The rooms within a room, if it has any."""
    return ", ".join(sorted(p.parent.name for p in (SOURCE / room).glob("*/__init__.py"))) if room else ""


def draw() -> str:
    """The layers from the top of the house down to the ground, as SVG."""
    y, parts = GAP, []
    for number, line in reversed(list(enumerate(layers(), start=1))):
        rooms = sorted(line)
        wide = (WIDTH - LABEL - GAP * len(rooms)) / len(rooms)
        texts = {room: _text(room, int((wide - 20) / CHARACTER)) for room in rooms}
        height = 30 + LINE * max(map(len, texts.values()))
        parts.append(f'<text class="number" x="8" y="{y + height / 2 + 4:g}">{number}</text>')
        for place, room in enumerate(rooms):
            parts += _box(LABEL + place * (wide + GAP), y, wide, height, room, texts[room])
        y += height + GAP
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img">',
        "<title>The layers of ahead_ldp: each imports only from those below it</title>",
        f"<style>{STYLE}</style>",
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def _text(room: str, width: int) -> list[str]:
    folder = "" if room == "__init__" else room
    within = inside(folder)
    return textwrap.wrap(promise(folder), width) + textwrap.wrap(f"Inside: {within}." if within else "", width)


def _box(x: float, y: float, wide: float, height: float, room: str, lines: list[str]) -> list[str]:
    name = "ahead_ldp" if room == "__init__" else room
    return [
        f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{height:g}" rx="6"/>',
        f'<text class="name" x="{x + 10:g}" y="{y + 20:g}">{escape(name)}</text>',
        *(f'<text x="{x + 10:g}" y="{y + 37 + LINE * i:g}">{escape(text)}</text>' for i, text in enumerate(lines)),
    ]


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"written: {PICTURE.name}")
