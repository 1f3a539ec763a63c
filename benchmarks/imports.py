"""What a start costs: the import, the first names, the command line's help."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from benchmarks.measuring import Section, Sizes, at_most, child_cpu_s
from benchmarks.rendering import seconds


def run(sizes: Sizes) -> Section:
    """CPU time of whole processes."""
    python = sys.executable
    commands = {
        "python -c pass": [python, "-c", "pass"],
        "import numpy": [python, "-c", "import numpy"],
        "import ahead_ldp": [python, "-c", "import ahead_ldp"],
        "from ahead_ldp import simulate": [python, "-c", "from ahead_ldp import simulate"],
    }
    if find_spec("ahead_ldp.cli"):
        commands["ahead --help"] = [python, "-m", "ahead_ldp", "--help"]
    spent = {name: child_cpu_s(command, min(sizes.repeats, 7)) for name, command in commands.items()}
    rows = tuple((name, seconds(value)) for name, value in spent.items())
    bounded = ("import ahead_ldp", "ahead --help")
    targets = tuple(at_most(name, spent[name], 0.3, "s") for name in bounded if name in spent)
    note = "CPU time of the whole process, the interpreter's own start included."
    return Section("Start", ("what", "CPU time"), rows, (note,), targets, spent)
