"""`ahead new-method`: a package with a method of one's own, ready to be changed."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template
from typing import Annotated

from ahead_ldp import mechanisms
from ahead_ldp.cli.options import File, argument, option
from ahead_ldp.cli.printing import Shown

FILES = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling>=1.26,<2"]
build-backend = "hatchling.build"

[project]
name = "$distribution"
version = "0.1.0"
description = "The method $name for ahead-ldp"
requires-python = ">=3.11"
dependencies = ["ahead-ldp"]

[project.entry-points."ahead_ldp.mechanisms"]
$name = "$package:$cls"

[tool.hatch.build.targets.wheel]
packages = ["src/$package"]
""",
    "src/$package/__init__.py": '''\
"""The method $name."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.measurements import Measurement
from ahead_ldp.mechanisms.ahead.averaging import average
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.oracles import linear_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, Run, axes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class $cls(Mechanism):
    """Everybody is asked about all codes at once; negative shares are cut off and the rest is scaled to sum to 1.

    ``oracle`` is the name of the randomiser, or "best" for the one of least variance.
    """

    name: ClassVar[str] = "$name"
    idea: ClassVar[str] = "one question on all codes, negative shares cut off"
    source: ClassVar[str] = "docs/$name.md"
    oracle: str = "best"

    def groups(self, schema: Schema) -> tuple[Group, ...]:
        """One group of everybody, unless there is nothing to ask."""
        return (Group("everybody"),) if prod(schema.sizes) > 1 else ()

    def run(self, schema: Schema) -> Run:
        """Ask one wave of questions, be told its tallies, and return the estimate."""
        tree, measurements = Tree.root(axes_of(schema), max(2, *schema.sizes)), []
        for group in self.groups(schema):
            tree = tree.split(np.array([True]))[0]
            oracle = linear_oracle(self.oracle, self.epsilon, tree.leaves.size)
            question = Question(tuple(range(len(schema.attributes))), Partition.of_tree(tree), oracle)
            tally = (yield {group.id: question})[group.id]
            shares = np.maximum(oracle.estimate(tally), 0.0)
            kept = shares / shares.sum() if shares.sum() > 0 else np.full(shares.size, 1 / shares.size)
            measurements.append(Measurement(tree.leaves, kept, tally.n, oracle, projected=True))
        return TreeEstimate(schema, average(tree, measurements), consistent=True)
''',
    "tests/test_$name.py": '''\
"""The contract of $name, and what it promises beyond it."""

import ahead_ldp
import numpy as np
from ahead_ldp.testing import MechanismContract

from $package import $cls


class Test$cls(MechanismContract):
    kind = $cls


def test_it_is_found_by_name():
    assert ahead_ldp.MECHANISMS["$name"] is $cls


def test_it_answers():
    people = np.random.default_rng(1).integers(18, 100, 50_000)
    estimate = ahead_ldp.simulate(people, "age=integer,18,99", epsilon=2, method=$cls, seed=1)
    answers = estimate.ask("age in 30..49")
    true = ((people >= 30) & (people <= 49)).mean()
    assert abs(answers.values[0] - true) < 5 * answers.standard_error[0]
''',
    "docs/$name.md": """\
# $name

What the method does, in two sentences, and where it comes from.

## When to take it

For which data, how many people and which epsilon it was measured to be better than the others. `ahead compare --method
$name,default --data FILE --epsilon 0.5,1,2` measures it on data at hand.

## What it promises

Which answers are unbiased, what the standard errors hold, and where the method departs from its paper.
""",
    "README.md": """\
# $distribution

The method `$name` for the Python package ahead-ldp. Install it with `pip install -e .`; then
`ahead methods` lists it, and every command takes `--method $name`. `pytest` runs its contract.
""",
}


def new_method(
    name: Annotated[str, argument("NAME", "Of the method: small letters, digits and _.")],
    *,
    out: Annotated[File, option("--out", "DIR", "A new folder; left out, NAME here.")] = None,
) -> Shown:
    """Write a small package with a method of your own.

    It has the method, the tests of its contract and a page of documentation.
    The method works as it is; change what it asks and how it estimates.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ValueError(f"expected NAME of small letters, digits and _, beginning with a letter, got {name!r}")
    if name in mechanisms.MECHANISMS:
        raise ValueError(f"expected a NAME that no method has yet, got {name!r}")
    folder = Path(name) if out is None else out
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"expected a folder that is new or empty, got {str(folder)!r}")
    words = {
        "name": name,
        "package": f"ahead_{name}",
        "distribution": f"ahead-{name.replace('_', '-')}",
        "cls": "".join(part.capitalize() for part in name.split("_")),
    }
    written = []
    for path, text in FILES.items():
        file = folder / Template(path).substitute(words)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(Template(text).substitute(words), encoding="utf-8")
        written.append(str(file))
    steps = [f"written: {file}" for file in written]
    steps += [f"next: cd {folder} && pip install -e . && pytest && ahead methods"]
    return Shown({"method": name, "files": written}, steps)
