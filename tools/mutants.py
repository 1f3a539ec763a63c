"""Mutants: small mistakes put into the code at random, and whether the tests find them.

`python -m tools.mutants` copies the tree, changes one expression at a time (a comparison, a sign, a constant, a
condition, a result) and runs the fast tests of the changed module, then those of its room, then the module's slow ones,
until one fails. What no test found is printed as a diff: a test is missing, or the mutant does the same as the code and
belongs in docs/proofs.md.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import difflib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("src") / "ahead_ldp"
ROOMS = ("device", "oracles", "protocol", "estimates")
# Tests of a room beside tests/<room>: the contract tests run over everything that is registered.
ALSO = {
    "oracles": ["tests/mechanisms/square_wave", "tests/mechanisms/hierarchy/test_dht.py"],
    "protocol": [
        "tests/mechanisms/test_contract.py",
        "tests/engines/test_simulation.py",
        "tests/engines/test_collection.py",
        "tests/engines/test_archive.py",
    ],
    "estimates": [
        "tests/mechanisms/test_contract.py",
        "tests/test_api.py",
        "tests/mechanisms/hierarchy",
        "tests/mechanisms/ahead",
        "tests/mechanisms/grids",
    ],
}
PRELOADED = ("numpy", "scipy.optimize", "scipy.special", "scipy.stats", "pytest", "cryptography.fernet")
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
MOST_MEMORY = 8 * 2**30  # of a run: a mutant may ask for arrays without end
FAST, SLOW = "not slow and not soak and not bench", "slow and not soak and not bench"
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}


@dataclass(frozen=True)
class Mutant:
    """One change: the bytes from ``start`` to ``end`` of a file become ``text``."""

    path: Path
    line: int
    kind: str
    start: int
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        """The changed file."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        """The lines that changed."""
        before, after = source.decode().splitlines(), self.apply(source).decode().splitlines()
        lines = list(difflib.unified_diff(before, after, lineterm="", n=0))[3:]
        return f"{self.path}:{self.line} ({self.kind})\n" + "\n".join(f"    {line}" for line in lines)


def mutants(path: Path) -> list[Mutant]:
    """Every mutant of one file, in the order of its lines."""
    source = (ROOT / path).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(node: ast.expr | ast.stmt, kind: str, changed: ast.AST) -> Mutant:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        text = ast.unparse(changed)
        return Mutant(path, node.lineno, kind, start, end, f"({text})" if isinstance(node, ast.expr) else text)

    found = [place(node, kind, changed) for node, kind, changed in changes(ast.parse(source))]
    return sorted(found, key=lambda m: (m.start, m.end, m.kind))


def changes(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, ast.AST]]:
    """(what is changed, how, what stands there then), for code that runs: no annotations, texts or decorators."""
    for field, value in ast.iter_fields(tree):
        if field in {"annotation", "returns", "decorator_list", "type_params"} or isinstance(tree, ast.JoinedStr):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                if isinstance(node, ast.expr | ast.stmt):
                    yield from changes_of(node)
                yield from changes(node)


def changes_of(node: ast.expr | ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str, ast.AST]]:
    """The changes of one node."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            new.ops = [COMPARISONS[type(operator)]()]
            yield node, "comparison", new
        case ast.BinOp(op=operator) if type(operator) in ARITHMETIC and not isinstance(
            new.left, ast.Constant | ast.JoinedStr
        ):
            new.op = ARITHMETIC[type(operator)]()
            yield node, "arithmetic", new
        case ast.BoolOp(op=operator):
            new.op = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield node, "and/or", new
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield node, "dropped not or minus", operand
        case ast.Constant(value=bool(value)):
            yield node, "constant", ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield node, "constant", ast.Constant(value + 1)
        case ast.If(test=test):
            assert isinstance(node, ast.If)
            yield node.test, "condition", ast.UnaryOp(ast.Not(), test)
        case ast.Return(value=ast.expr()):
            yield node, "result", ast.Return(ast.Constant(None))
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            new.func = ast.Name(CALLS[name])
            yield node, "call", new
        case ast.Call(func=ast.Attribute(attr=name) as function) if name in CALLS:
            function.attr = CALLS[name]
            yield node, "call", new


def sample(rooms: list[str], count: int, seed: int) -> list[Mutant]:
    """As many of each room, taken at random, with no two at one place."""
    chosen = []
    for number, room in enumerate(rooms):
        rng = random.Random(f"{seed} {room}")
        files = sorted((ROOT / SOURCE / room).rglob("*.py"))
        every = [m for file in files for m in mutants(file.relative_to(ROOT))]
        rng.shuffle(every)
        apart = list({(m.path, m.line): m for m in every}.values())
        chosen += apart[: count // len(rooms) + (number < count % len(rooms))]
    return chosen


# Running.


def tests_of(path: Path, tree: Path) -> list[tuple[str, list[str]]]:
    """Rings and names of tests in the order in which they are run: of the module, its room, those that use it."""
    room, noun = path.parts[2], path.stem if path.stem != "__init__" else path.parent.name
    folder = tree / "tests" / room
    own = sorted(str(p.relative_to(tree)) for p in folder.rglob(f"test_{noun}*.py"))
    others = [name for name in ALSO.get(room, []) if (tree / name).exists()]
    stages = [(FAST, own), (FAST, [f"tests/{room}"]), (FAST, others), (SLOW, own)]
    return [(ring, names) for ring, names in stages if names]


def run_tests(tree: Path, names: list[str], seconds: float, ring: str = FAST) -> str | None:
    """How the tests failed, in a forked process that has the large packages loaded; None if they passed."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = _in_the_child(tree, names, ring)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code in (3, 4):
                raise RuntimeError(f"pytest could not run {names}: exit {code}")
            return None if code in (0, 5) else f"exit {code}"
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "time"


def _in_the_child(tree: Path, names: list[str], ring: str) -> int:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.chdir(tree)
    sys.path[:0] = [str(tree / "src"), str(tree)]
    sys.dont_write_bytecode = True
    os.environ["PYTHONPATH"] = str(tree / "src")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none of them is needed, and some are slow to load
    sink = os.open(os.environ.get("MUTANTS_OUTPUT", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    import pytest

    return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--no-header", "-m", ring, *names]))


def found_by(mutant: Mutant, tree: Path, seconds: float) -> str | None:
    """Which tests found the mutant and how; None if it survived."""
    target = tree / mutant.path
    before = target.read_bytes()
    for compiled in target.parent.glob(f"__pycache__/{target.stem}.*.pyc"):
        compiled.unlink()
    target.write_bytes(mutant.apply(before))
    try:
        for ring, names in tests_of(mutant.path, tree):
            if (outcome := run_tests(tree, names, seconds, ring)) is not None:
                return f"{names[0]}: {outcome}"
    finally:
        target.write_bytes(before)
    return None


def check_whole(chosen: list[Mutant], tree: Path, seconds: float) -> None:
    """The tests that are to find the mutants pass without one."""
    stages = {(ring, tuple(names)) for mutant in chosen for ring, names in tests_of(mutant.path, tree)}
    for ring, names in sorted(stages):
        if (outcome := run_tests(tree, list(names), seconds, ring)) is not None:
            raise RuntimeError(f"{' '.join(names)} fail without a mutant: {outcome}")


def copy_tree(target: Path) -> None:
    """What the tests read, without what is built."""
    skipped = shutil.ignore_patterns(".git", ".venv*", "node_modules", "__pycache__", ".*_cache", ".hypothesis", "out")
    shutil.copytree(ROOT, target, dirs_exist_ok=True, ignore=skipped)


def main() -> None:
    """Sample, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=120, help="mutants in all")
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS))
    parser.add_argument("--seconds", type=float, default=300.0, help="for one run of tests; longer counts as found")
    parser.add_argument("--part", default="1/1", help="2/4 is every fourth mutant from the second")
    parser.add_argument("--log", type=Path, help="append one JSON line for each mutant")
    parser.add_argument("--floor", type=float, default=0.9, help="the share that must be found")
    options = parser.parse_args()
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    part, parts = map(int, options.part.split("/"))
    chosen = sample(options.rooms, options.count, options.seed)[part - 1 :: parts]
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        copy_tree(tree)
        check_whole(chosen, tree, 10 * options.seconds)
        for number, mutant in enumerate(chosen, start=1):
            outcome = found_by(mutant, tree, options.seconds)
            said = mutant.diff((tree / mutant.path).read_bytes())
            print(f"{number}/{len(chosen)} {outcome or 'SURVIVED'}  {said}", flush=True)
            if outcome is None:
                survivors.append(said)
            if options.log:
                with options.log.open("a") as log:
                    log.write(json.dumps({"found": outcome, "mutant": said}) + "\n")
    found = len(chosen) - len(survivors)
    print(f"\n{found} of {len(chosen)} found ({found / len(chosen):.0%}), seed {options.seed}")
    print("\n".join(survivors))
    sys.exit(found < options.floor * len(chosen))


if __name__ == "__main__":
    main()
