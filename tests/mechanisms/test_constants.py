"""Every number that was chosen says where it comes from: found by reading the source.

A constant is a number, or a container of numbers, bound at the level of a module or a class. Its line, or a comment on
the line above, names its source: a decision page that exists, a formula or choice of docs/derivations, a paper, or the
reason why there is nothing to choose (`tolerance:`, `unit:`).
"""

import ast
import re
from collections.abc import Callable

import pytest

from tests.mechanisms.test_derivations import LABEL, MECHANISMS, ROOT, comments, labels_on_pages

# The default methods are ours: what was tuned there has no paper, so it must name where it was derived or measured.
FOLDERS = [MECHANISMS / "adaptive", MECHANISMS / "fused"]
FILES = [MECHANISMS / "grain.py", *(path for folder in FOLDERS for path in sorted(folder.rglob("*.py")))]
ALL = [path for folder in (MECHANISMS, MECHANISMS.parent / "estimates") for path in sorted(folder.rglob("*.py"))]
DECISIONS = {page.name[:3] for page in (ROOT / "docs" / "decisions").glob("[0-9][0-9][0-9]-*.md")}
LABELS = set(labels_on_pages())
PAPER = re.compile(r"\bpaper\b|\b[A-Z][A-Za-z+]+\d\d\b")
REASON = re.compile(r"\b(tolerance|unit): \w")
NEUTRAL = {0, 1}  # the default of a field, if it is one of these, was not chosen


def is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def holds_numbers(node: ast.expr) -> bool:
    """Whether a value is made of numbers: alone, in a formula, a container or an array."""
    match node:
        case ast.UnaryOp(operand=inner) | ast.Starred(value=inner):
            return holds_numbers(inner)
        case ast.BinOp(left=left, right=right):
            return holds_numbers(left) or holds_numbers(right)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            return any(map(holds_numbers, parts))
        case ast.Call(func=ast.Attribute(value=ast.Name("np"), attr="array" | "where"), args=arguments):
            return any(map(holds_numbers, arguments))
    return is_number(node)


def constants(source: str) -> dict[int, str]:
    """The lines at which constants begin, and their names."""
    found = {}
    tree = ast.parse(source)
    for owner in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        for node in owner.body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None or not holds_numbers(node.value):
                continue
            if isinstance(owner, ast.ClassDef) and is_number(node.value) and node.value.value in NEUTRAL:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found[node.lineno] = ast.unparse(targets[0])
    return found


def sourced(comment: str) -> bool:
    """Whether a comment names where a number comes from; every decision and label that it names must exist."""
    decisions = set(re.findall(r"\d{3}", " ".join(re.findall(r"\bdecisions? (\d{3}(?:(?:, | and )\d{3})*)", comment))))
    labels = set(LABEL.findall(comment))
    return (
        decisions <= DECISIONS
        and labels <= LABELS
        and bool(decisions or labels or PAPER.search(comment) or REASON.search(comment))
    )


def bare(source: str, enough: Callable[[str], bool] = sourced) -> list[str]:
    """The constants of a module that do not say where they come from, or whatever is ``enough``."""
    by_line, lines, found = comments(source), source.splitlines(), []
    for line, name in constants(source).items():
        above = by_line.get(line - 1, "") if line > 1 and lines[line - 2].lstrip().startswith("#") else ""
        if not enough(by_line.get(line, "")) and not enough(above):
            found.append(f"{line}: {name}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_constant_names_its_source(path):
    assert bare(path.read_text("utf-8")) == []


@pytest.mark.parametrize("path", ALL, ids=lambda path: str(path.relative_to(MECHANISMS.parent)))
def test_every_constant_of_all_methods_says_why(path):
    assert bare(path.read_text("utf-8"), enough=bool) == []


def test_a_constant_without_a_word_is_found():
    assert bare("WIDTH = 3.5\nDEPTH = 4  # of a tree", enough=bool) == ["1: WIDTH"]


@pytest.mark.parametrize(
    "line",
    [
        "WIDENING = 1.15",
        "WIDENING = 1.15  # wide enough",
        "WIDENING = 1.15  # decision 999",
        "WIDENING = 1.15  # decision 011 and A99",
        "WIDTHS = np.array([0.1, *[0.2] * 3])",
        "LEAST, MOST = 1 << 4, -3",
        "SHARES = {'a': (1.0, 2.0)}  # of people",
        "class Choices:\n    finest: float = 0.1",
    ],
)
def test_a_bare_constant_is_found(line):
    assert len(bare(f"import numpy as np\n{line}\n")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "WIDENING = 1.15  # decision 011, table 2",
        "WIDENING = 1.15  # decisions 011 and 013",
        "# of the share below a code (A12)\nGRAIN = 2.0**20",
        "RATIO = 0.556  # of the paper, Sec. 5",
        "BEST = 3.0  # WBLJ17, Eq. 7",
        "LEAST = 1e-12  # tolerance: of a mass",
        "NAMES = ('a', 'b')",
        "class Choices:\n    weight: float = 1.0",
        "def f():\n    x = 3",
    ],
)
def test_what_names_its_source_or_was_not_chosen_passes(line):
    assert bare(f"{line}\n") == []


def test_there_is_something_to_read():
    assert sum(len(constants(path.read_text("utf-8"))) for path in FILES) > 60


def test_decisions_are_numbered_without_gaps_and_listed():
    assert sorted(DECISIONS) == [f"{number:03}" for number in range(1, len(DECISIONS) + 1)]
    listed = re.findall(r"^- \[(\d{3})\]", (ROOT / "docs" / "decisions" / "README.md").read_text("utf-8"), re.MULTILINE)
    assert listed == sorted(DECISIONS)
