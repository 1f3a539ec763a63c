"""The check of an installed wheel: every extra has its program, and what fails is told."""

import sys
import tomllib

import pytest

from tools import docs, install, release

PROJECT = tomllib.loads((docs.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FOR_WORK = {"docs", "dev"}  # for work on the project, in a checkout


def test_every_extra_has_its_program():
    assert set(install.EXTRAS) == set(PROJECT["optional-dependencies"]) - FOR_WORK
    guide = (docs.ROOT / "docs" / "guides" / "index.md").read_text("utf-8")
    assert [f"| `{extra}` |" for extra in PROJECT["optional-dependencies"] if f"| `{extra}` |" not in guide] == []


@pytest.mark.parametrize("extra", install.EXTRAS)
def test_the_program_is_python(extra):
    compile(install.EXTRAS[extra], extra, "exec")


def test_what_fails_is_told(tmp_path):
    with pytest.raises(RuntimeError, match="No module named 'nothing_of_this_name'"):
        install.run([sys.executable, "-c", "import nothing_of_this_name"], tmp_path, {})


def test_a_demo_that_compares_with_nothing_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(install, "run", lambda *_: "a picture")
    with pytest.raises(RuntimeError, match="compare with the truth"):
        install.use(tmp_path, {}, install.DEMO)


@pytest.mark.soak
@pytest.mark.parametrize("extra", ["", *install.EXTRAS, install.DEMO])
def test_the_wheel_works_with_each_extra_alone(extra, tmp_path):
    release.build(tmp_path / "dist", 1_700_000_000)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    env = install.environment(sys.executable, tmp_path, wheel, "server,plot" if extra == install.DEMO else extra)
    install.use(tmp_path, env, extra)
