"""The documentation site: build it with Sphinx, then check what was built.

`python -m tools.site` builds docs/ into build/site, every warning an error, and checks each link and anchor of the
HTML, that nothing is loaded from another host, and the size of the whole.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tools import docs

SITE = docs.ROOT / "build" / "site"
MOST_BYTES = 15_000_000
# Pages outside of docs/, most of them at the top of the repository, and the page of the site that shows each.
TOP = {
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "README.md": "index.md",
    "RELEASING.md": "project/releasing.md",
    "SECURITY.md": "project/security.md",
    "examples/embed/README.md": "guides/embed.md",
    "examples/notebooks/README.md": "tutorials/notebooks.md",
    "tests/vectors/README.md": "reference/vectors.md",
}
# Pages that stand elsewhere than in an earlier version: a link to the old address still leads to them.
MOVED = {"own-method.html": "tutorials/own-method.html"}
SHOWS = {f"docs/{there}": top for top, there in TOP.items() if there != "index.md"}
LINK_OR_CODE = re.compile(r"`+[^`]*`+|" + docs.LINK.pattern)
LOADED = {"img": "src", "link": "href", "script": "src", "iframe": "src", "source": "src", "object": "data"}


def site_text(page: Path, root: Path = docs.ROOT) -> str:
    """The Markdown that the site shows for a page of docs/: that of a page at the top where it stands for one."""
    name = page.relative_to(root).as_posix()
    source = root / SHOWS.get(name, name)
    text = source.read_text("utf-8")
    lines = text.splitlines()
    for number, line in docs.prose(text):
        lines[number - 1] = LINK_OR_CODE.sub(lambda m: _moved_link(m, source, page, root), line)
    return "\n".join(lines) + "\n"


def _moved_link(match: re.Match[str], source: Path, page: Path, root: Path) -> str:
    target = match["target"]
    if target is None or docs.OUTSIDE.match(target) or target.startswith("#"):
        return match[0]
    path, _, fragment = target.partition("#")
    there = (source.parent / path).resolve()
    inside = there.relative_to(root.resolve()).as_posix()
    if inside in TOP:
        there, inside = root / "docs" / TOP[inside], f"docs/{TOP[inside]}"
    moved = Path(os.path.relpath(there, page.parent)).as_posix()
    if not inside.startswith("docs/"):
        moved = f"path:{moved}"  # a file of the repository: the site offers it for download
    elif there.is_dir():
        moved = f"{moved}/README.md"
    if fragment:
        moved += f"#{fragment}"
    return match[0][: match.start("target") - match.start()] + moved + match[0][match.end("target") - match.start() :]


def docstring_lines(lines: list[str]) -> list[str]:
    """A docstring as reStructuredText: text is text, `names` are references, indented parts stay as they stand."""
    out: list[str] = []
    literal = item = False
    for line in lines:
        bare = line.strip()
        indented = line.startswith(" ") and bool(bare)
        if not bare:
            literal = item = False
        elif indented and not item and not literal:
            out += ["", "::", ""]
            literal = True
        elif not indented and literal:
            out.append("")
            literal = False
        if bare.startswith("- ") and not literal:
            if not item and out and out[-1].strip():
                out.append("")
            item = True
        out.append(("   " + line) if literal else _escaped(line))
    return out


def _escaped(line: str) -> str:
    parts = re.split(r"(``[^`]+``|`[^`]+`)", line)
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*|]|(?<=\w)_(?!\w)|`)", r"\\\1", part) for part in parts
    )


PICTURE = re.compile(r'(?<=<p>)<img [^>]*src="(?P<file>[^"]+\.svg)"[^>]*>(?=</p>)')
SIGNATURE = re.compile(r'<dt class="sig .*?</dt>', re.DOTALL)


def accessible(body: str) -> str:
    """HTML of a page for keyboards, screen readers and phones: what scrolls can be reached, and parameters are no list.

    Sphinx puts the parameters of a long signature into a definition list without terms; they become lines. A drawing
    is a link to itself: it scrolls on a narrow screen, and can be opened alone.
    """
    lines = {"<dl>": '<span class="lines">', "</dl>": "</span>", "<dd>": '<span class="line">', "</dd>": "</span>"}
    body = SIGNATURE.sub(lambda m: re.sub("</?d[ld]>", lambda tag: lines[tag[0]], m[0]), body)
    body = PICTURE.sub(lambda m: f'<a class="picture" href="{m["file"]}">{m[0]}</a>', body)
    body = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
    return body.replace("<pre>", '<pre tabindex="0">')


@dataclass
class Page(HTMLParser):
    """What one page of the built site refers to, and the anchors that it has."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif (source := given.get(LOADED.get(tag, ""))) and given.get("rel") not in ("index", "search", "next", "prev"):
            self.loaded.append(source)


def faults(site: Path) -> Iterator[str]:
    """One message for each dead link or anchor of the built site, and for each thing loaded from another host."""
    pages = {path: _parsed(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        for target in [*page.links, *page.loaded]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loaded and parts.scheme != "data":
                    yield f"{name}: loaded from another host: {target}"
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not there.is_file():
                yield f"{name}: no such file: {target}"
            elif parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].anchors:
                yield f"{name}: no such anchor: {target}"
    for style in sorted(site.rglob("*.css")):
        for target in re.findall(r"url\(\s*['\"]?((?:https?:)?//[^'\")]+)", style.read_text("utf-8")):
            yield f"{style.relative_to(site).as_posix()}: loaded from another host: {target}"
    if (size := site_bytes(site)) > MOST_BYTES:
        yield f"the site has {size} bytes, more than {MOST_BYTES}"


def write_moved(site: Path, moved: dict[str, str] = MOVED) -> None:
    """A page at each old address that leads on to the new one, with or without script."""
    for old, new in moved.items():
        there = Path(os.path.relpath(site / new, (site / old).parent)).as_posix()
        page = (
            '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>This page has moved</title>\n'
            f'<meta http-equiv="refresh" content="0; url={there}">\n<link rel="canonical" href="{there}">\n'
            f'<main><h1>This page has moved</h1><p><a href="{there}">Here it is.</a></p></main>\n</html>\n'
        )
        if (site / old).exists() and 'http-equiv="refresh"' not in (site / old).read_text("utf-8"):
            raise ValueError(f"expected no page at {old}, which is said to have moved to {new}")
        (site / old).parent.mkdir(parents=True, exist_ok=True)
        (site / old).write_text(page, "utf-8")


def site_bytes(site: Path) -> int:
    """The size of all files of the built site."""
    return sum(path.stat().st_size for path in site.rglob("*") if path.is_file())


def _parsed(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text("utf-8"))
    return page


def build(site: Path) -> str:
    """Build the site into a folder, every warning an error; what Sphinx said, empty if all is well."""
    given = ["-b", "html", "-W", "--keep-going", "-q", "-j", "auto", "-d", str(site.parent / "doctrees")]
    words = [sys.executable, "-m", "sphinx", *given, "docs", str(site)]
    done = subprocess.run(words, cwd=docs.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return done.stderr or f"Sphinx ended with {done.returncode}"
    write_moved(site)
    return ""


def main() -> int:
    """Build and check; 1 if anything is wrong."""
    start = time.monotonic()
    if said := build(SITE):
        print(said, file=sys.stderr)
        return 1
    found = list(faults(SITE))
    for message in found:
        print(message, file=sys.stderr)
    pages = len(list(SITE.rglob("*.html")))
    took = time.monotonic() - start
    size = site_bytes(SITE) / 1e6
    print(f"{pages} pages of HTML, {size:.1f} MB, {len(found)} faults, {took:.0f} s: build/site/index.html")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
