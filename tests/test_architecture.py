"""The layers of the package, held by reading the source: nothing is imported to check it."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = "ahead_ldp"
SOURCE = Path(__file__).resolve().parent.parent / "src" / PACKAGE

# Bottom to top. A module belongs to a line by its first name below the package; it imports from the lines
# above its own in this list (the lower layers), and from its own line, without a cycle.
LAYERS = [
    {"device"},
    {"schema", "partitions", "oracles"},
    {"estimates"},
    {"protocol"},
    {"mechanisms"},
    {"engines"},
    {"plots", "research", "service", "testing"},
    {"__init__"},  # the public surface: everything below the programs
    {"cli", "__main__"},
]
LONGEST_CHAIN = 18  # steps from a program down to a module that imports nothing of ours
STANDARD_LIBRARY_ONLY = "device"
FORBIDDEN_ON_DEVICE = {"random", "numpy"}  # a device draws from the operating system
MAY_LOAD_BY_NAME = {"__init__", "cli"}  # their parts are loaded on use
# What is registered is loaded on use; an estimate finds its strict intervals, analyses and pictures, which stand above
# it, when one is asked for. To type checkers these modules may also name what is found.
BY_NAME = {"ahead_ldp.schema.registry", "ahead_ldp.estimates.estimate", "ahead_ldp.estimates.pictures"}


@dataclass(frozen=True)
class Import:
    """One imported name: where it stands, what it reaches, and whether a function delays it."""

    module: str
    line: int
    target: str  # an own module, or the full dotted name of a foreign one
    own: bool
    inside_function: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def modules(source: Path) -> dict[str, Path]:
    """Dotted name -> file; a package goes by its own name."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = (PACKAGE, *path.relative_to(source).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def top(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def layer(module: str) -> int:
    for height, line in enumerate(LAYERS):
        if top(module) in line:
            return height
    raise LookupError(
        f"{module} belongs to no layer: add {top(module)!r} to LAYERS in tests/test_architecture.py, "
        "on the lowest line whose modules may use it"
    )


def imports(files: dict[str, Path]) -> list[Import]:
    found = []
    for module, path in files.items():
        tree = ast.parse(path.read_text("utf-8"), str(path))
        for node, inside in walk(tree, inside=False, with_types=module not in BY_NAME):
            for name in imported_names(module, path, node):
                own = name.partition(".")[0] == PACKAGE
                target = nearest(name, files) if own else name
                if target != module:
                    found.append(Import(module, node.lineno, target, own, inside))
    return found


def walk(node: ast.AST, inside: bool, with_types: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        if not with_types and isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child, inside
        delays = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from walk(child, inside or delays, with_types)


def imported_names(module: str, path: Path, node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        at = module.split(".") + (["__init__"] if path.name == "__init__.py" else [])
        base = at[: len(at) - node.level] if node.level else []
        for alias in node.names:
            yield ".".join([*base, *filter(None, [node.module]), alias.name])
    elif isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in {"import_module", "__import__"} and top(module) not in MAY_LOAD_BY_NAME and module not in BY_NAME:
            given = node.args[0] if node.args else None
            literal = given.value if isinstance(given, ast.Constant) else None
            name = literal if isinstance(literal, str) else PACKAGE  # unreadable: taken as our own
            yield name if not name.startswith(".") else PACKAGE


def nearest(name: str, files: dict[str, Path]) -> str:
    """The module that holds a dotted name: the longest prefix that is a file."""
    while name not in files and "." in name:
        name = name.rpartition(".")[0]
    return name


def unknown_modules(source: Path) -> list[str]:
    messages = []
    for module in modules(source):
        try:
            layer(module)
        except LookupError as error:
            messages.append(str(error))
    return messages


def upward_imports(source: Path) -> list[str]:
    own = [i for i in imports(modules(source)) if i.own]
    return [f"{i}, which is a higher layer" for i in own if layer(i.target) > layer(i.module)]


def cycles(source: Path) -> list[str]:
    files = modules(source)
    graph: dict[str, set[str]] = {module: set() for module in files}
    for i in imports(files):
        if i.own and i.target in files:
            graph[i.module].add(i.target)

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(graph[start])
        while todo:
            module = todo.pop()
            if module not in seen:
                seen.add(module)
                todo += graph[module]
        return seen

    return [f"{module} imports itself in a circle" for module in graph if module in reach(module)]


def long_chains(source: Path) -> list[str]:
    files = modules(source)
    below: dict[str, set[str]] = {module: set() for module in files}
    for i in imports(files):
        if i.own and i.target in files and not i.inside_function:
            below[i.module].add(i.target)

    @cache
    def chain(module: str) -> tuple[str, ...]:
        return (module, *max(map(chain, sorted(below[module])), key=len, default=()))

    longest = () if cycles(source) else max(map(chain, files), key=len, default=())
    return [" -> ".join(longest)] if len(longest) - 1 > LONGEST_CHAIN else []


def delayed_imports(source: Path) -> list[str]:
    found = imports(modules(source))
    return [f"{i} inside a function; own modules are imported at the top" for i in found if i.own and i.inside_function]


def device_imports(source: Path) -> list[str]:
    messages = []
    for i in imports(modules(source)):
        if top(i.module) != STANDARD_LIBRARY_ONLY:
            continue
        first = i.target.partition(".")[0]
        if i.own and top(i.target) != STANDARD_LIBRARY_ONLY:
            messages.append(f"{i}; {STANDARD_LIBRARY_ONLY} imports only itself")
        elif not i.own and (first not in sys.stdlib_module_names or first in FORBIDDEN_ON_DEVICE):
            messages.append(f"{i}; {STANDARD_LIBRARY_ONLY} uses the standard library, and never {first}")
    return messages


CHECKS = [unknown_modules, upward_imports, cycles, long_chains, delayed_imports, device_imports]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_package(check):
    assert modules(SOURCE), f"no Python files under {SOURCE}"
    assert check(SOURCE) == []


# The checker on small trees: it accepts a good one, and finds each fault it is there for.

GOOD = {
    "__init__.py": "from ahead_ldp.oracles import GRR\nfrom ahead_ldp.schema import Schema\n",
    "device/__init__.py": "from ahead_ldp.device import frames\n",
    "device/frames.py": "import os, secrets\nfrom fractions import Fraction\n",
    "schema.py": "import numpy as np\nfrom ahead_ldp import device\n",
    "partitions.py": "from ahead_ldp.schema import Schema\n",
    "estimates.py": "from ahead_ldp.schema import Schema\n",
    "oracles/__init__.py": "from ahead_ldp.oracles.grr import GRR\n",
    "oracles/grr.py": "from ..device import frames\nfrom . import base\ndef f():\n    import scipy\n",
    "oracles/base.py": "from ahead_ldp.partitions import Box\n",
    "cli.py": "import ahead_ldp, importlib\ndef f(x):\n    return importlib.import_module(x)\n",
}

FAULTS = {
    "unknown module": (unknown_modules, {"helpers.py": ""}, "add 'helpers' to LAYERS"),
    "unknown package": (unknown_modules, {"helpers/text.py": ""}, "add 'helpers' to LAYERS"),
    "upward": (
        upward_imports,
        {"schema.py": "from ahead_ldp.estimates import Estimate\n"},
        "ahead_ldp.schema:1",
    ),
    "upward, relative": (upward_imports, {"oracles/base.py": "from ..cli import main\n"}, "ahead_ldp.cli"),
    "upward, whole name": (upward_imports, {"schema.py": "import ahead_ldp.estimates\n"}, "ahead_ldp.estimates"),
    "upward, for types": (
        upward_imports,
        {"schema.py": "import typing\nif typing.TYPE_CHECKING:\n    from ahead_ldp import estimates\n"},
        "ahead_ldp.schema:3",
    ),
    "the public surface from below": (
        upward_imports,
        {"schema.py": "from ahead_ldp import GRR\n"},
        "schema:1",
    ),
    "the surface from the command": (upward_imports, {"__init__.py": "from ahead_ldp import cli\n"}, "cli"),
    "cycle in a line": (cycles, {"schema.py": "from ahead_ldp import partitions\n"}, "ahead_ldp.partitions"),
    "cycle in a package": (
        cycles,
        {"oracles/base.py": "from ahead_ldp.oracles.grr import GRR\n"},
        "oracles.base",
    ),
    "cycle through a package": (
        cycles,
        {"oracles/base.py": "from ahead_ldp.oracles import GRR\n"},
        "oracles.grr",
    ),
    "a chain of 19 steps": (
        long_chains,
        {f"oracles/o{n}.py": f"from ahead_ldp.oracles import o{n - 1}\n" for n in range(1, 20)} | {"oracles/o0.py": ""},
        "ahead_ldp.oracles.o19 -> ahead_ldp.oracles.o18 ->",
    ),
    "in a function": (
        delayed_imports,
        {"partitions.py": "def f():\n    from ahead_ldp import schema\n"},
        "partitions:2",
    ),
    "in a method": (
        delayed_imports,
        {"partitions.py": "class A:\n    async def f(self):\n        if 1:\n            from . import schema\n"},
        "partitions:4",
    ),
    "by name": (
        delayed_imports,
        {"partitions.py": "import importlib\n\ndef f():\n    importlib.import_module('ahead_ldp.schema')\n"},
        "partitions:4",
    ),
    "by a computed name": (
        delayed_imports,
        {"partitions.py": "def f(x):\n    return __import__(x)\n"},
        "partitions:2",
    ),
    "device: numpy": (device_imports, {"device/frames.py": "import numpy.random\n"}, "numpy.random"),
    "device: numpy, delayed": (
        device_imports,
        {"device/frames.py": "def f():\n    import numpy\n"},
        "frames:2",
    ),
    "device: random": (device_imports, {"device/frames.py": "from random import getrandbits\n"}, "random"),
    "device: a package": (device_imports, {"device/frames.py": "import xxhash\n"}, "xxhash"),
    "device: upward": (device_imports, {"device/frames.py": "from ahead_ldp.schema import S\n"}, "schema"),
}


def plant(root: Path, files: dict[str, str]) -> Path:
    source = root / PACKAGE
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    return source


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_good_tree_is_accepted(tmp_path, check):
    assert check(plant(tmp_path, GOOD)) == []


@pytest.mark.parametrize(("check", "change", "message"), FAULTS.values(), ids=FAULTS)
def test_fault_is_found(tmp_path, check, change, message):
    assert message in "\n".join(check(plant(tmp_path, GOOD | change)))


def test_the_list_is_short_enough_to_be_kept_in_mind():
    assert len(LAYERS) <= 10
    assert len(set().union(*LAYERS)) <= 15  # fourteen rooms, and the surface


def test_the_picture_in_the_docs_is_of_this_list():
    from tools.layers import PICTURE, draw

    assert PICTURE.read_text("utf-8") == draw(), "write it anew: python -m tools.layers"
