"""``python -m benchmarks [NAME ...] [--quick] [--page] [--out DIR]``: measure, print, and write what was found.

A full run of all benchmarks also writes ``docs/benchmarks.md``; with ``--page`` a run of some replaces their sections.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from benchmarks.measuring import QUICK, ROOT, Section, Sizes, machine
from benchmarks.registry import BENCHMARKS
from benchmarks.rendering import markdown, text

PAGE = ROOT / "docs" / "benchmarks.md"
PREFACE = """# Benchmarks

```console
$ make bench
```

This page says how fast the software is and how much memory it takes, and what of that is promised. For what a
collection of a given size costs, see [what a million and a billion reports cost](scale.md). The page is made by the
command above.
`python -m benchmarks NAME --page` measures one section anew.

How to read it: each section has a table of what was measured. Where something is promised, a second table follows.
It has the target, the figure of this run, and whether it was met; `MISSED` marks a promise that this run did not keep.
Times are CPU seconds of one core, the best of several. What is compared is measured side by side in one run, unless
the table says otherwise. A µs is a millionth of a second, so 1 µs a report is one second for a million reports.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed and memory.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}; left out: all")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: a look, not a measurement")
    parser.add_argument("--page", action="store_true", help="put these sections into docs/benchmarks.md")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench", help="folder for JSON and Markdown")
    asked = parser.parse_args(arguments)
    if unknown := sorted(set(asked.names) - set(BENCHMARKS)):
        parser.error(f"expected names among {', '.join(BENCHMARKS)}, got {', '.join(unknown)}")
    sizes = QUICK if asked.quick else Sizes()
    sections = {}
    for name in asked.names or BENCHMARKS:
        print(f"measuring {name} ...", file=sys.stderr)
        sections[name] = BENCHMARKS[name](sizes)
        print(text(sections[name]))
    write(sections, sizes, asked.out)
    if not asked.names and not asked.quick:
        PAGE.write_text(page(sections), encoding="utf-8")
        print(f"written: {PAGE.relative_to(ROOT)}", file=sys.stderr)
    elif asked.page and not asked.quick:
        PAGE.write_text(merged(PAGE.read_text("utf-8"), sections), encoding="utf-8")
    return 0


def write(sections: dict[str, Section], sizes: Sizes, out: Path) -> None:
    """The numbers as JSON and the tables as Markdown."""
    out.mkdir(parents=True, exist_ok=True)
    found = {
        "machine": machine(),
        "sizes": dataclasses.asdict(sizes),
        "sections": {name: dataclasses.asdict(section) for name, section in sections.items()},
    }
    (out / "benchmarks.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (out / "benchmarks.md").write_text(page(sections), encoding="utf-8")


def page(sections: dict[str, Section]) -> str:
    """All sections as one page."""
    return "\n".join([PREFACE, f"Measured on: {machine()}.\n", *map(markdown, sections.values())])


def merged(before: str, sections: dict[str, Section]) -> str:
    """A page with these sections in the place of those of the same title, or at its end; each says what it ran on."""
    head, *others = before.split("\n## ")
    parts = {part.partition("\n")[0]: part for part in others}
    for section in sections.values():
        title, _, rest = markdown(section).removeprefix("## ").partition("\n")
        parts[title] = f"{title}\n\nMeasured apart, on: {machine()}.\n{rest}"
    return "\n## ".join([head, *parts.values()])


if __name__ == "__main__":
    sys.exit(main())
