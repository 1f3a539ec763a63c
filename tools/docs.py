"""The documentation as data: pages, fenced blocks, links, generated blocks.

`python -m tools.docs` writes the generated blocks and the made parts (tools/reference.py) anew and checks every link.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>[^`]*)$")
HEADING = re.compile(r"^#{1,6} +(?P<title>.*?)(?: +#+)?$")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\((?P<target>[^()\s]*)(?: +\"[^\"]*\")?\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]: +<?(?P<target>[^\s>]+)>?")
GENERATED = re.compile(r"(<!-- generated: (?P<command>ahead [^>]*?) -->\n+```text\n).*?(?=```)", re.DOTALL)
TITLED = re.compile(r"^.+ <(?P<page>[^<>]+)>$")  # of a toctree: a title for the navigation, and the page
OUTSIDE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its info string, its text, and the line its text starts on (from 1)."""

    info: str
    text: str
    line: int


def pages(root: Path = ROOT) -> list[Path]:
    """Every Markdown page: those at the top, and all of docs/."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order; an unclosed fence is a ValueError."""
    return [item for item in _parse(text) if isinstance(item, Block)]


def toctree(text: str) -> list[str]:
    """The pages that the toctrees of a page name, as they stand there, without titles."""
    found = []
    for block in blocks(text):
        if block.info == "{toctree}":
            lines = [line.strip() for line in block.text.splitlines() if line.strip() and not line.startswith(":")]
            found += [titled["page"] if (titled := TITLED.match(line)) else line for line in lines]
    return found


def prose(text: str) -> list[tuple[int, str]]:
    """The lines outside fenced blocks, with their line numbers."""
    return [item for item in _parse(text) if not isinstance(item, Block)]


def _parse(text: str) -> Iterator[Block | tuple[int, str]]:
    opening: re.Match[str] | None = None
    body: list[str] = []
    start = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if opening is None:
            opening = FENCE.match(line)
            if opening is None:
                yield number, line
            else:
                body, start = [], number + 1
        elif line.strip().startswith(opening["ticks"]) and not line.strip().strip(opening["ticks"][0]):
            yield Block(opening["info"].strip(), "\n".join(body) + "\n", start)
            opening = None
        else:
            body.append(line.removeprefix(opening["indent"]))
    if opening is not None:
        raise ValueError(f"expected every fence to be closed, got one open since line {start - 1}")


def anchors(text: str) -> set[str]:
    """The fragment of every heading, as Markdown hosts derive it."""
    found: set[str] = set()
    for _, line in prose(text):
        if heading := HEADING.match(line):
            title = LINK.sub(lambda m: m[0][m[0].index("[") + 1 : m[0].rindex("](")], heading["title"])
            slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            repeats = 0
            while (name := f"{slug}-{repeats}" if repeats else slug) in found:
                repeats += 1
            found.add(name)
    return found


def links(text: str) -> Iterator[tuple[int, str]]:
    """Line number and target of every link in the prose of a page."""
    for number, line in prose(text):
        plain = re.sub(r"`[^`]*`", "``", line)
        for pattern in (LINK, REFERENCE):
            for match in pattern.finditer(plain):
                yield number, match["target"]


def broken_links(page: Path, root: Path = ROOT) -> list[str]:
    """One message for each relative link of the page that leads nowhere, or out of the repository."""
    text = page.read_text(encoding="utf-8")
    messages = []
    for number, target in links(text):
        if OUTSIDE.match(target):
            continue
        path, _, fragment = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        where = f"{page.relative_to(root)}:{number}"
        if not there.is_relative_to(root.resolve()) or not there.exists():
            messages.append(f"{where}: no such file: {target}")
        elif fragment and there.suffix == ".md" and fragment not in anchors(there.read_text("utf-8")):
            messages.append(f"{where}: no such heading: {target}")
    return messages


def regenerated(text: str) -> str:
    """The page with every block after `<!-- generated: ahead ... -->` as the command prints it now, 80 columns wide."""
    return GENERATED.sub(lambda block: block[1] + _printed(block["command"]), text)


def _printed(command: str) -> str:
    words = [sys.executable, "-m", "ahead_ldp", *shlex.split(command)[1:]]
    env = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Write generated blocks anew and check every page; print what is broken; 1 if anything is."""
    from tools import reference  # which reads pages with this module

    found = pages()
    for page in found:
        old = page.read_text(encoding="utf-8")
        if (new := reference.filled(regenerated(old))) != old:
            page.write_text(new, encoding="utf-8")
            print(f"{page.relative_to(ROOT)} written anew")
    broken = [message for page in found for message in broken_links(page)]
    for message in broken:
        print(message, file=sys.stderr)
    print(f"{len(found)} pages, {len(broken)} broken links")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
