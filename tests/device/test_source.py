"""A device's noise comes from the operating system and is compared as integers: held by reading the source."""

import ast
import inspect
from pathlib import Path

import pytest

from ahead_ldp import device
from ahead_ldp.device import Question

SOURCE = Path(device.__file__).parent

MODULES = {
    *("__future__", "abc", "bisect", "collections.abc", "contextlib", "dataclasses", "datetime", "decimal", "enum"),
    *("fractions", "functools", "hashlib", "hmac", "itertools", "json", "math", "operator", "os", "pathlib", "re"),
    *("sqlite3", "struct", "typing"),
}
PRIVATE_STEPS = {
    *("take", "take_many", "below", "draw", "draw_code", "respond", "hash", "pack", "cell", "code", "stand_in"),
    *("report", "new_nonce", "report_id"),
}


def problems(source: str) -> list[str]:
    """What a device's module may not do: other sources of chance, and floating point on the way to a report."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [f"imports {a.name}" for a in node.names if a.name not in MODULES]
        elif isinstance(node, ast.ImportFrom):
            if node.module == "os" or not (node.module in MODULES or str(node.module).startswith("ahead_ldp.device")):
                found.append(f"imports from {node.module}")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            if node.attr != "urandom":
                found.append(f"uses os.{node.attr}")
        elif isinstance(node, ast.Name) and node.id in {"__import__", "eval", "exec", "id", "globals"}:
            found.append(f"calls {node.id}")
        elif isinstance(node, ast.FunctionDef) and node.name in PRIVATE_STEPS:
            found += [f"{node.name} {what}" for what in floating_point(node)]
    return found


def floating_point(function: ast.FunctionDef) -> list[str]:
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            found.append(f"holds the float {node.value}")
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            found.append("divides")
        elif isinstance(node, ast.Name) and node.id in {"float", "math", "round", "Decimal"}:
            found.append(f"uses {node.id}")
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_source_is_clean(path):
    assert problems(path.read_text("utf-8")) == []


def test_every_private_step_is_found_in_the_source():
    """The gate looks at functions by name; a name that no longer exists would make it look at nothing."""
    trees = [ast.parse(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")]
    names = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert names >= PRIVATE_STEPS


def test_a_report_takes_no_source_of_chance_from_its_caller():
    assert list(inspect.signature(Question.report).parameters) == ["self", "values"]
    assert "SystemWords()" in inspect.getsource(Question.report)
    assert list(inspect.signature(device.SystemWords).parameters) == []


MUTANTS = {
    "seeded": "import random\n\nclass Words:\n    rng = random.Random(7)\n",
    "seeded, from": "from random import Random\n",
    "numpy": "import numpy as np\n\ndef take(bits):\n    return np.random.default_rng(7).integers(2**bits)\n",
    "numpy, delayed": "def take(bits):\n    import numpy.random\n",
    "another source": "import secrets\n",
    "the clock": "import time\n\ndef take(bits):\n    return time.time_ns() % 2**bits\n",
    "the process": "import os\n\ndef take(bits):\n    return os.getpid()\n",
    "hidden import": "def take(bits):\n    return __import__('random').getrandbits(bits)\n",
    "addresses": "def take(bits):\n    return id(object()) % 2**bits\n",
    "float coin": "def draw(self, code, words):\n    return code if words.take(32) / 2**32 < self.p else 0\n",
    "float literal": "def draw(self, code, words):\n    return words.take(32) * 2.0**-32 < self.p\n",
    "float call": "def below(n, words, bits):\n    return int(float(words.take(bits)) * n) >> bits\n",
    "math": "import math\n\ndef draw(self, code, words):\n    return math.ldexp(words.take(53), -53)\n",
    "os renamed": "from os import urandom\n",
}


@pytest.mark.parametrize("source", MUTANTS.values(), ids=MUTANTS)
def test_mutant_source_is_caught(source):
    assert problems(source)
