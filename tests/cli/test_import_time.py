"""`import ahead_ldp` stays light: it loads no package that only a part of the users need.

What the import costs in CPU seconds is measured by `make bench`; here nothing depends on a clock.
"""

import json
import subprocess
import sys

import pytest

HEAVY = {"matplotlib", "narwhals", "numba", "pandas", "polars", "pyarrow", "rich", "scipy", "typer"}


def loaded_by(module: str) -> set[str]:
    """The heavy packages in sys.modules of a fresh interpreter after one import."""
    code = f"import {module}, json, sys; print(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return HEAVY & {name.partition(".")[0] for name in json.loads(run.stdout)}


def test_package_import_is_light():
    assert loaded_by("ahead_ldp") == set()


@pytest.mark.parametrize("module", ["rich.console", "scipy.special"])
def test_a_heavy_import_is_seen(module):
    assert module.partition(".")[0] in loaded_by(module)
