"""What the types promise to a user: a script that uses everything public passes, and mistakes in one are found."""

import ast
import re
import sys
from pathlib import Path

import pytest

import ahead_ldp

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent / "src"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The lines of both scripts with an error, from one run of mypy as a user would have it."""
    from mypy import api

    folder = tmp_path_factory.mktemp("user")
    config = folder / "mypy.ini"
    config.write_text(
        "[mypy]\nstrict = True\nfollow_imports = silent\n[mypy-pandas.*,pyarrow.*]\nignore_missing_imports = True\n"
    )
    for name in ("user_script.py", "mistakes.py"):
        (folder / name).write_text((HERE / name).read_text("utf-8"), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPYPATH", str(SOURCE))
        patch.chdir(folder)
        words = ["--config-file", str(config), "--cache-dir", str(folder), "--python-executable", sys.executable]
        out, problems, _ = api.run([*words, "user_script.py", "mistakes.py"])
    assert not problems
    return [(m[1], int(m[2]), m[0]) for m in re.finditer(r"(\w+\.py):(\d+): error: .*", out)]


def test_a_script_that_uses_everything_public_passes(found):
    assert [text for file, _, text in found if file == "user_script.py"] == []
    tree = ast.parse((HERE / "user_script.py").read_text("utf-8"))
    used = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert set(ahead_ldp.__all__) <= used


def test_mistakes_are_found(found):
    lines = (HERE / "mistakes.py").read_text("utf-8").splitlines()
    planted = {i for i, line in enumerate(lines, start=1) if "# mistake:" in line}
    assert len(planted) == 11
    assert {line for file, line, _ in found if file == "mistakes.py"} == planted
