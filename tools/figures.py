"""Pictures of the explanation pages, drawn by code from simulated people: SVG, light and dark in one file.

`python -m tools.figures` writes docs/img/tree-steps.svg, tree-grows.svg, report-life.svg, epsilon-band.svg and
promise-coin.svg; a test compares them with what is drawn now.
"""

from collections.abc import Sequence
from html import escape

import numpy as np

from ahead_ldp.cli.sampletown import SCHEMA, TOP, histogram, synthetic_salaries
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.oracles.grr import GRR
from ahead_ldp.oracles.oue import OUE
from ahead_ldp.schema.arrays import Floats, Ints
from tools.docs import ROOT

FOLDER = ROOT / "docs" / "img"
PEOPLE, EPSILON, SEED = 200_000, 1.0, 3
WIDTH, LEFT = 720, 12
STEP_S = 1.6  # of the moving picture
STYLE = """
  .card { fill: #ffffff; stroke: #d5dbe6 } text { font: 13px system-ui, sans-serif; fill: #2b2f36 }
  .title { font-weight: 600 } .small { font-size: 11px; fill: #5a6270 } .bar { fill: #8fb0e0; stroke: #ffffff }
  .new { fill: #2f62b5; stroke: #ffffff } .truth { fill: none; stroke: #c2571a; stroke-width: 1.5 }
  .axis { stroke: #5a6270 } .box { fill: #eef3fb; stroke: #2f62b5 } .arrow { stroke: #5a6270; fill: none }
  .head { fill: #5a6270 } .device { fill: #eef8ee; stroke: #2e7d4f } .band { stroke: #2b2f36; stroke-width: 1.5 }
  .on { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    .card { fill: #14171d; stroke: #39404d } text { fill: #e3e6ec } .small { fill: #a7afbd }
    .bar { fill: #3d5f96; stroke: #14171d } .new { fill: #8ab4ff; stroke: #14171d } .truth { stroke: #ff9a5c }
    .axis { stroke: #a7afbd } .box { fill: #1c2636; stroke: #8ab4ff } .arrow { stroke: #a7afbd } .head { fill: #a7afbd }
    .device { fill: #182a1f; stroke: #6cc28d } .band { stroke: #e3e6ec }
    .on { fill: #14171d }
  }
"""


def grown_tree() -> tuple[TreeEstimate, Floats]:
    """The tree that AHEAD grows over the salaries of the demo, and the true share of each code."""
    people = histogram(synthetic_salaries(PEOPLE))
    estimate = run_simulation(
        AHEAD.paper(EPSILON), SCHEMA, Population.of_histogram(people), np.random.default_rng(SEED)
    )
    if not isinstance(estimate, TreeEstimate):
        raise TypeError(f"expected a tree, got {type(estimate).__name__}")
    return estimate, people / people.sum()


def steps(estimate: TreeEstimate) -> list[Ints]:
    """The nodes that each wave asks about: those of its level, and those that were not cut before."""
    tree = estimate.tree
    height = int(tree.level.max())
    whole = ~np.isin(np.arange(tree.level.size), tree.parent)
    return [np.flatnonzero((tree.level == k) | (whole & (tree.level < k))) for k in range(1, height + 1)]


def tree_steps() -> str:
    """Every wave as a panel of its own, one below the other."""
    estimate, truth = grown_tree()
    panel, found = 92, steps(estimate)
    body = []
    for k, nodes in enumerate(found, start=1):
        body += [
            f'<g transform="translate(0 {8 + (k - 1) * (panel + 20)})">',
            *_panel(estimate, truth, nodes, k, panel),
            "</g>",
        ]
    said = f"AHEAD over {PEOPLE:,} salaries: {len(found)} waves, from 2 intervals to {found[-1].size}"
    return _svg(WIDTH, 16 + len(found) * (panel + 20), body, said)


def tree_grows() -> str:
    """The same panels in one place, one after the other; without motion the last one."""
    estimate, truth = grown_tree()
    panel, found = 150, steps(estimate)
    whole = STEP_S * len(found)
    share = 100 / len(found)
    style = [f"@keyframes turn {{ 0%, {share:.2f}% {{ opacity: 1 }} {share + 0.01:.2f}%, 100% {{ opacity: 0 }} }}"]
    style.append(f".step {{ opacity: 0; animation: turn {whole:g}s infinite }}")
    style += [f".s{k} {{ animation-delay: {STEP_S * k:g}s }}" for k in range(len(found))]
    style.append("@media (prefers-reduced-motion: reduce) { .step { animation: none } .last { opacity: 1 } }")
    body = [f"<style>{' '.join(style)}</style>"]
    for k, nodes in enumerate(found):
        last = " last" if k == len(found) - 1 else ""
        body += [
            f'<g class="step s{k}{last}" transform="translate(0 8)">',
            *_panel(estimate, truth, nodes, k + 1, panel),
            "</g>",
        ]
    return _svg(WIDTH, panel + 36, body, "A tree that grows: AHEAD cuts intervals that hold many people, wave by wave")


def _panel(estimate: TreeEstimate, truth: Floats, nodes: Ints, wave: int, height: int) -> list[str]:
    """One wave: a bar for each interval, as high as its density, over the line of the truth."""
    tree, d = estimate.tree, truth.size
    lo, hi = tree.lo.reshape(tree.level.size, -1)[nodes, 0], tree.hi.reshape(tree.level.size, -1)[nodes, 0]
    density = np.maximum(estimate.values[nodes], 0) / (hi - lo)
    scale, top, wide = (height - 24) / (1.05 * truth.max()), height - 6, (WIDTH - 2 * LEFT) / d
    out = [_text(LEFT, 14, f"Wave {wave}: {nodes.size} intervals", "title")]
    for i in np.argsort(lo).tolist():
        kind = "new" if tree.level[nodes[i]] == wave else "bar"
        out.append(_rect(kind, LEFT + lo[i] * wide, top, (hi[i] - lo[i]) * wide, min(density[i] * scale, height - 24)))
    corners = [(LEFT + (i + side) * wide, top - s * scale) for i, s in enumerate(truth.tolist()) for side in (0, 1)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    out += [f'<polyline class="truth" points="{points}"/>', _line("axis", LEFT, WIDTH - LEFT, top, top)]
    for i, anchor in enumerate(["start", "middle", "middle", "middle", "end"]):
        out.append(_text(LEFT + i / 4 * (WIDTH - 2 * LEFT), top + 12, f"{i * TOP // 4:,}", "small", anchor))
    return out


LIFE = [
    ("device", "1  Check", "The device fetches the question, and refuses what was not promised."),
    ("device", "2  Consent", "The person reads who asks, what for and at which epsilon, then agrees."),
    ("device", "3  Read", "Only now the value is read: 52,000 a year. It becomes the number of a cell."),
    ("device", "4  Noise", "The device draws noise from the operating system. What comes out is the report."),
    ("box", "5  Send", "The report and a random id cross the network, and no name."),
    ("box", "6  Keep", "The server stores it encrypted. Until the wave closes the person can take it back."),
    ("box", "7  Count", "The wave closes. Reports are counted per cell, and the counts are published."),
    ("box", "8  Answer", "From all counts together comes the estimate, with an interval beside each answer."),
    ("box", "9  Forget", "After the retention the key is destroyed. No copy of the report can be read again."),
]


def report_life() -> str:
    """The stations of one report, from the person to the published number."""
    tall, gap, border = 46, 14, 26
    body = [_text(30, 22, "On the person's own device: the true value never leaves this part", "small")]
    for k, (kind, name, text) in enumerate(LIFE):
        y = 30 + k * (tall + gap) + (border if kind == "box" else 0)
        if kind == "box" and LIFE[k - 1][0] != "box":
            body.append(_line("axis", 30, WIDTH - 30, y - 24, y - 24))
            body.append(_text(80, y - 9, "On the network and the server: noisy reports and counts only", "small"))
        body.append(f'<rect class="{kind}" x="30" y="{y}" width="{WIDTH - 60}" height="{tall}" rx="6"/>')
        body += [_text(44, y + 28, name, "title"), _text(136, y + 28, text)]
        if k + 1 < len(LIFE):
            end = y + tall + gap + (border if kind != LIFE[k + 1][0] else 0)
            body += [_line("arrow", 60, 60, y + tall, end - 5)]
            body.append(f'<path class="head" d="M56 {end - 6} L64 {end - 6} L60 {end} Z"/>')
    return _svg(WIDTH, 30 + len(LIFE) * (tall + gap) + border + 8, body, "The life of a report in nine steps")


def promise_coin() -> str:
    """What somebody with either answer sends, how often: the two rows differ by a factor of three at most."""
    law = GRR.make(float(np.log(3)), 2)
    rows = [("somebody who earns more", law.p, law.q), ("somebody who earns less", law.q, law.p)]
    left, wide, tall = 220, WIDTH - 240, 34
    body = [_text(left, 24, 'sends "yes"', "small"), _text(WIDTH - 20, 24, 'sends "no"', "small", "end")]
    for k, (who, yes, no) in enumerate(rows):
        y = 34 + k * (tall + 14)
        body += [_text(20, y + 22, who), _rect("new", left, y + tall, wide * yes, tall)]
        body += [_rect("bar", left + wide * yes, y + tall, wide * no, tall)]
        body.append(_text(left + 10, y + 22, f"{100 * yes:.0f} in 100", "on"))
        body.append(_text(left + wide - 10, y + 22, f"{100 * no:.0f} in 100", "", "end"))
    return _svg(
        WIDTH, 140, body, "Both kinds of people send both answers; either answer is three times as likely at most"
    )


CELLS = 16  # of the figure about epsilon


def shares() -> Floats:
    """The true shares of the figure about epsilon: the demo's salaries in sixteen cells."""
    return histogram(synthetic_salaries(PEOPLE)).reshape(CELLS, -1).sum(axis=1) / PEOPLE


def half_width(epsilon: float, n: int, share: float) -> float:
    """Half the 95 % interval of a cell's share when n people answer one question with OUE."""
    return 1.96 * float(np.sqrt(OUE.make(epsilon, CELLS).variance(n, share)))


def epsilon_band(cases: Sequence[tuple[float, int]] = ((0.5, 10_000), (1.0, 10_000), (2.0, 10_000))) -> str:
    """What the page shows where no script runs: the band at three values of epsilon."""
    wide, height, true = (WIDTH - 4 * LEFT) / len(cases), 190, shares().tolist()
    scale, top = (height - 40) / max(s + half_width(e, n, s) for e, n in cases for s in true), height - 8
    body = []
    for k, (epsilon, n) in enumerate(cases):
        left, bar = LEFT + k * (wide + LEFT), wide / CELLS
        body.append(_text(left, 24, f"epsilon {epsilon:g}, {n:,} people", "title"))
        for i, share in enumerate(true):
            x, half = left + i * bar, half_width(epsilon, n, share)
            body.append(_rect("bar", x, top, bar, share * scale))
            body.append(
                _line(
                    "band", x + bar / 2, x + bar / 2, top - max(share - half, 0) * scale, top - (share + half) * scale
                )
            )
        body.append(_line("axis", left, left + wide, top, top))
    return _svg(
        WIDTH, height + 6, body, "The same people at three values of epsilon: the smaller epsilon, the wider the band"
    )


def _rect(kind: str, x: float, bottom: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{bottom - height:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(width: float, height: float, body: Sequence[str], said: str) -> str:
    box = f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(said)}"'
    card = f'<rect class="card" x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>'
    return "\n".join([head, f"<style>{STYLE}</style>", card, *body, "</svg>"]) + "\n"


FIGURES = {
    "tree-steps.svg": tree_steps, "tree-grows.svg": tree_grows, "report-life.svg": report_life,
    "epsilon-band.svg": epsilon_band, "promise-coin.svg": promise_coin,
}  # fmt: skip


def main() -> None:
    """Write every picture."""
    for name, draw in FIGURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
        print(f"docs/img/{name}")


if __name__ == "__main__":
    main()
