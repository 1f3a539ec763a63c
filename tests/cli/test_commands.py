"""How commands are found and loaded: a file and a line each, quick to list, and clear about what is not installed."""

import subprocess
import sys
from importlib import metadata

import pytest

from ahead_ldp import cli
from ahead_ldp.cli import main
from ahead_ldp.cli.app import SECTIONS, commands

HELP = """if True:
    import sys
    from ahead_ldp.cli import main
    from ahead_ldp.cli.app import commands
    assert [main([name, "--help"]) for name in commands()] == [0] * len(commands())
    print(*sys.modules, file=sys.stderr)
"""

WITHOUT = """if True:
    import sys
    from ahead_ldp.cli import main
    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name == sys.argv[1]:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Missing())
    main([sys.argv[2], "--help"])
    sys.exit(main(sys.argv[2:]))
"""

TWICE = """if True:
    import contextlib, io
    from ahead_ldp.cli import later, main
    with contextlib.redirect_stdout(io.StringIO()):
        main(["serve", "--help"])
    later.load()
    from ahead_ldp.service.server import ingest
    from ahead_ldp.service.store import interface, sqlite
    print(ingest.StoreUnavailable is sqlite.StoreUnavailable is interface.StoreUnavailable)
"""

GREETING = '''
from typing import Annotated

from ahead_ldp.cli.options import Declared, argument
from ahead_ldp.cli.printing import Shown


def greet(name: Annotated[str, argument("NAME", "Who is greeted.")], *, declared: Declared) -> Shown:
    """Greet somebody."""
    return Shown({"name": name, "attributes": declared.attribute}, [f"Hello {name}"])
'''


def python(code, *words):
    """What a new interpreter prints, and its exit code."""
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_no_help_loads_more_than_options():
    code, out, err = python(HELP)
    assert (code, out.count("Usage: ahead ")) == (0, len(commands())), err
    heavy = {"numpy", "scipy", "rich", "matplotlib", "pyarrow", "starlette", "cryptography", "http.client", "sqlite3"}
    assert not heavy & set(err.split())


def test_no_class_exists_twice():
    """A store that cannot be reached is answered as such only if all modules mean the same class by its error."""
    code, out, err = python(TWICE)
    assert (code, out) == (0, "True\n"), err


def test_a_new_command_is_a_file_and_a_line(capsys, tmp_path, monkeypatch):
    def shown(*words):
        assert main(list(words)) == 0
        return capsys.readouterr().out

    (tmp_path / "greeting.py").write_text(GREETING)
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    monkeypatch.setitem(SECTIONS["Begin"], "greet", "greeting")
    assert "greet Greet somebody." in " ".join(shown("--help").split())
    assert "--attribute SPEC" in shown("greet", "--help")
    assert shown("greet", "Ada") == "Hello Ada\n"
    assert '"attributes": [\n    "x=codes,4"' in shown("greet", "Ada", "--attribute", "x=codes,4", "--json")
    monkeypatch.delitem(sys.modules, "ahead_ldp.cli.greeting")


def test_the_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{metadata.version('ahead-ldp')}\n"


@pytest.mark.parametrize(
    ("module", "words", "remedy"),
    [
        ("starlette", ["serve"], "pip install 'ahead-ldp[server]'"),
        ("cryptography", ["issue", "create", "x"], "pip install 'ahead-ldp[batch]' or pip install 'ahead-ldp[server]'"),
    ],
)
def test_a_missing_package_is_named_with_what_brings_it(tmp_path, monkeypatch, module, words, remedy):
    monkeypatch.chdir(tmp_path)
    code, out, err = python(WITHOUT, module, *words)
    assert (code, err) == (2, f"error: No module named '{module}': {remedy}\n")
    assert "Usage: ahead" in out  # help needs no extra


@pytest.mark.parametrize(
    ("module", "remedy"),
    [
        ("prometheus_client", ": pip install 'ahead-ldp[server]'"),
        ("psycopg", ": pip install 'ahead-ldp[postgres]'"),
        ("pyarrow.parquet", ": " + " or ".join(f"pip install 'ahead-ldp[{x}]'" for x in ("batch", "frames", "spark"))),
        ("pytest", ""),  # of the extra for developers
        ("py", ""),
        ("nowhere", ""),
    ],
)
def test_extras_are_read_from_the_package(module, remedy):
    assert cli._remedy(module) == remedy
