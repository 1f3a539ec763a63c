"""No check of the package is an `assert`: they are gone under `python -O`, and with them whatever they kept.

What may stay tells the type checker what something is: `assert x is not None`, `assert isinstance(x, T)`.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "ahead_ldp"


def checks(text: str) -> list[int]:
    """The lines of a module where an assert checks something."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assert)]
    return sorted(node.lineno for node in found if not narrows(node.test))


def narrows(test: ast.expr) -> bool:
    """Whether an expression says of a name or an attribute that it is not None, or of which type it is."""
    if isinstance(test, ast.Compare):
        is_not_none = isinstance(test.ops[0], ast.IsNot) and ast.unparse(test.comparators[0]) == "None"
        return len(test.ops) == 1 and is_not_none and is_name(test.left)
    called = isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"
    return called and is_name(test.args[0])


def is_name(node: ast.expr) -> bool:
    """A name, or an attribute of one: nothing that does something."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and is_name(node.value))


def test_finding_16_no_check_is_an_assert():
    found = {path.relative_to(SOURCE).as_posix(): checks(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize("source", ["assert a == b", "assert f() is not None", "assert a", "assert isinstance(f(), A)"])
def test_a_check_is_found(source):
    assert checks(f"def f(a):\n    {source}\n") == [2]


def test_what_tells_a_type_is_left_alone():
    assert checks("assert a.b is not None\nassert isinstance(a, A | B)\n") == []
