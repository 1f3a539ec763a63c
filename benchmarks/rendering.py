"""Results as text: a table for the terminal, Markdown for the docs."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measuring import Section, Target

TARGET_HEAD = ("target", "promised", "measured", "")


def seconds(value: float) -> str:
    """A time with a unit that suits it."""
    if value < 1e-3:
        return f"{value * 1e6:.3g} µs"
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def times(value: float) -> str:
    """A ratio."""
    return f"{value:,.0f}x" if value >= 100 else f"{value:.3g}x"


def target_row(target: Target) -> tuple[str, ...]:
    """A promise beside its number."""
    show = {"x": times, "s": seconds}.get(target.unit, lambda value: f"{value:,.4g} {target.unit}".strip())
    sign = ">=" if target.at_least else "<="
    return target.what, f"{sign} {show(target.bound)}", show(target.value), "met" if target.met else "MISSED"


def text(section: Section) -> str:
    """A section for the terminal."""
    parts = [section.title, "=" * len(section.title)]
    if section.rows:
        parts.append(_columns(section.head, section.rows))
    parts += [f"- {note}" for note in section.notes]
    if section.targets:
        parts += ["", _columns(TARGET_HEAD, [target_row(t) for t in section.targets])]
    return "\n".join([*parts, ""])


def markdown(section: Section) -> str:
    """A section for the docs."""
    parts = [f"## {section.title}", ""]
    if section.rows:
        parts += [_pipes(section.head, section.rows), ""]
    if section.targets:
        parts += [_pipes(TARGET_HEAD, [target_row(t) for t in section.targets]), ""]
    if section.notes:
        parts += [*(f"- {note}" for note in section.notes), ""]
    return "\n".join(parts)


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * w for w in widths], *rows]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(x, widths, strict=True)).rstrip() for x in lines)


def _pipes(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
