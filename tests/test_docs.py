"""Every link resolves, every Python block and every command of the documentation runs."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import types
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from ahead_ldp.device.laws import LAWS
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.oracles import ORACLES
from ahead_ldp.schema.attributes import parse_attribute
from tests.needs import needed
from tools import docs, system

LANGUAGES = {"python", "console", "text", "json", "toml", "yaml", "bibtex", "markdown"}
DIRECTIVES = {"{toctree}", "{eval-rst}"}  # for the site alone: tests/test_site.py and `make docs` hold them
# page -> number of blocks tagged `no-run`. Each needs a reason beside it.
NO_RUN: dict[str, int] = {}
COMMAND_TIMEOUT_S = 300
NEEDS_JAVA = {"docs/tutorials/cluster.md"}


def name(page: Path) -> str:
    return page.relative_to(docs.ROOT).as_posix()


def runnable(page: Path) -> list[docs.Block]:
    return [b for b in docs.blocks(page.read_text("utf-8")) if b.info in {"python", "console"}]


PAGES = docs.pages()
RUNNABLE = [page for page in PAGES if runnable(page)]


def commands(text: str) -> list[str]:
    """The lines after `$ `, each joined with the lines that continue it after a backslash."""
    found: list[str] = []
    open_line = False
    for line in text.splitlines():
        if open_line:
            found[-1] += "\n" + line.removeprefix("> ")
        elif line.startswith("$ "):
            found.append(line.removeprefix("$ "))
        else:
            continue
        open_line = line.endswith("\\")
    return found


def make_targets() -> set[str]:
    makefile = (docs.ROOT / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z][\w-]*):(?!=)", makefile, flags=re.MULTILINE))


def run_command(command: str) -> None:
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        asked = {word for word in words[1:] if "=" not in word and not word.startswith("-")}
        missing = asked - make_targets()
        assert not missing, f"the Makefile has no target {sorted(missing)}"
        return
    bin_first = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        env={**os.environ, "PATH": bin_first, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"


def run_page(page: Path, module: types.ModuleType) -> None:
    """Run the blocks of a page in order: Python in one namespace, commands in the same directory."""
    for block in runnable(page):
        where = f"{page}:{block.line}"
        if block.info == "python":
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
            exec(code, module.__dict__)
        else:
            found = commands(block.text)
            assert found, f"{where}: a console block without a line that starts with `$ `"
            for command in found:
                run_command(command)


@pytest.fixture
def namespace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    kept = [(known, dict(known)) for known in (LAWS, ORACLES._entries, MECHANISMS._entries)]
    module = types.ModuleType("docs_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield module
    for file in tmp_path.glob("*.pid"):  # what a page started and did not come to end
        with suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGKILL)
    for known, before in kept:  # what a page registers is forgotten after it
        known.clear()
        known.update(before)


NUMBER = re.compile(r"\d+\.\d+")
# Pages that show what their blocks print, and the numbers that their text takes from it.
PRINTED = {
    "docs/intervals.md": """
        low, high = finer.ask("pay in 30000..30199").interval()
        print(f"interval of {100 * low[0]:.1f} to {100 * high[0]:.1f} %")
        low, high = bars.interval(0.95, simultaneous=True)
        print(f"it holds {100 * low[top]:.0f} to {100 * high[top]:.0f} %")
        low, high = bars.interval(0.95)
        print(f"interval of {100 * low[top]:.0f} to {100 * high[top]:.0f} %")
        low, high = gap.interval()
        print(f"interval is {100 * low[0]:.0f} to {100 * high[0]:.0f} %")
        low, high = finer.ask("pay in 40000..49999", "pay in 20000..29999").interval()
        print(f"would give {100 * (low[0] - high[1]):.0f} to {100 * (high[0] - low[1]):.0f} %")
    """,
}


@pytest.mark.parametrize("page", PRINTED)
def test_what_a_page_shows_is_what_its_blocks_print(page, namespace, capsys):
    """Words are equal; the last digits may be those of another processor."""
    text = (docs.ROOT / page).read_text("utf-8")
    shown, printed = [], []
    for block in docs.blocks(text):
        if block.info == "python":
            exec(block.text, namespace.__dict__)
            printed.append(capsys.readouterr().out)
        elif block.info == "text":
            shown.append((block.text, printed[-1]))
    assert len(shown) == 2
    for on_page, output in shown:
        assert NUMBER.sub("#", on_page).split() == NUMBER.sub("#", output).split()
        assert [float(n) for n in NUMBER.findall(on_page)] == pytest.approx(
            [float(n) for n in NUMBER.findall(output)], abs=0.1
        )
    exec(textwrap.dedent(PRINTED[page]), namespace.__dict__)
    missing = [line for line in capsys.readouterr().out.splitlines() if line not in " ".join(text.split())]
    assert missing == []


ATTRIBUTE = re.compile(
    r"[a-z_]+=(?:integer|real|date|time|datetime|category|ordered|nominal|boolean|codes|paper)\b[^`\s\"']*"
)


def test_every_attribute_as_text_can_be_declared():
    found = [
        (name(page), text.replace("\\|", "|")) for page in PAGES for text in ATTRIBUTE.findall(page.read_text("utf-8"))
    ]
    assert len(found) > 100
    refused = []
    for page, text in found:
        try:
            parse_attribute(text.rstrip("),.;:]\\"))
        except ValueError as error:
            refused.append((page, text, str(error)))
    assert refused == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_resolve(page):
    assert docs.broken_links(page) == []


@pytest.mark.parametrize("page", RUNNABLE, ids=name)
def test_blocks_run(page, namespace):
    if name(page) in NEEDS_JAVA:
        needed(shutil.which("java"), "Java", system.how_to_install("java"))
    run_page(page, namespace)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_block_escapes_the_tests(page):
    infos = Counter(block.info for block in docs.blocks(page.read_text("utf-8")))
    skipped = {info for info in infos if info.endswith(" no-run")}
    unknown = {info for info in infos if info.removesuffix(" no-run") not in LANGUAGES | DIRECTIVES}
    assert not unknown, f"tag each block with one of {sorted(LANGUAGES)}; commands are `console`: {unknown}"
    assert sum(infos[info] for info in skipped) == NO_RUN.get(name(page), 0)


FILE = re.compile(r"\b(?:tests|src|tools|benchmarks|examples|js|deploy)/[\w/.-]+\.(?:py|ts|mjs|js|md|json|yaml|toml)\b")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_are_named_exist(page):
    named = set(FILE.findall(page.read_text("utf-8")))
    assert [name for name in sorted(named) if not (docs.ROOT / name).exists()] == []


def test_no_run_list_names_existing_pages():
    assert set(NO_RUN) <= {name(page) for page in PAGES}


# The checks themselves: each one is shown to fail on what it is there for.


def page_of(tmp_path: Path, text: str) -> Path:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


@pytest.mark.parametrize(
    "target",
    ["missing.md", "missing/", "page.md#no-such-heading", "#no-such-heading", "../../etc/passwd"],
)
def test_broken_link_is_found(tmp_path, target):
    page = page_of(tmp_path, f"# A heading\n\nSee [there]({target}).\n")
    assert len(docs.broken_links(page, root=tmp_path)) == 1


def test_good_links_are_accepted(tmp_path):
    text = (
        "# A `code` heading, twice\n# A `code` heading, twice\n[a](page.md) [b](#a-code-heading-twice-1)\n"
        "[c](https://example.org/none) `[d](none.md)`\n```text\n[e](none.md)\n```\n"
    )
    assert docs.broken_links(page_of(tmp_path, text), root=tmp_path) == []


def test_unclosed_fence_is_refused():
    with pytest.raises(ValueError, match="line 2"):
        docs.blocks("text\n```python\nx = 1\n")


def test_python_blocks_share_a_namespace_and_a_directory(tmp_path, namespace):
    text = (
        "```python\nx = 1\nopen('made', 'w').close()\n```\n\n- item\n  ```python\n  x += 1\n  ```\n"
        "```console\n$ test -e \\\n> made\nnot a command\n```\n"
    )
    run_page(page_of(tmp_path, text), namespace)
    assert namespace.x == 2


def test_failing_python_block_names_its_line(tmp_path, namespace):
    page = page_of(tmp_path, "# Page\n\n```python\nx = 1\nx / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(page, namespace)
    assert caught.traceback[-1].lineno + 1 == 5


@pytest.mark.parametrize("command", ["false", "make no-such-target", "false | true"])
def test_failing_command_is_found(tmp_path, namespace, command):
    page = page_of(tmp_path, f"```console\n$ {command}\n```\n")
    with pytest.raises(AssertionError):
        run_page(page, namespace)
