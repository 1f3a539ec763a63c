"""The tool that makes mutants: each is one legal change, the sample is that of its seed, and texts are left alone."""

import ast
from pathlib import Path

import pytest

from tools import mutants

FILE = Path("src/ahead_ldp/device/words.py")


def test_every_mutant_is_one_legal_change():
    source = (mutants.ROOT / FILE).read_bytes()
    made = mutants.mutants(FILE)
    assert len(made) > 5
    whole = ast.dump(ast.parse(source))
    for mutant in made:
        assert ast.dump(ast.parse(mutant.apply(source))) != whole, mutant


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("x = a < b", ["x = (a <= b)"]),
        ("x = a + b", ["x = (a - b)"]),
        ("x = not a", ["x = (a)"]),
        ("x = a and b", ["x = (a or b)"]),
        ("x = f(3)", ["x = f((4))"]),
        ("x = True", ["x = (False)"]),
        ("x = max(a, b)", ["x = (min(a, b))"]),
        ("def f(a: int = 1) -> int:\n    return a", ["def f(a: int = (2)) -> int:\n    return a",
                                                     "def f(a: int = 1) -> int:\n    return None"]),
        ('x = f"{a + 1}"', []),
        ('"""Text."""', []),
    ],
)  # fmt: skip
def test_changes(code, changed, tmp_path, monkeypatch):
    (tmp_path / "code.py").write_text(code)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    made = mutants.mutants(Path("code.py"))
    assert [mutant.apply(code.encode()).decode() for mutant in made] == changed


def test_a_sample_is_that_of_its_seed_and_of_all_rooms():
    one, again, other = (mutants.sample(["device", "oracles"], 9, seed) for seed in (1, 1, 2))
    assert one == again != other
    assert len({(mutant.path, mutant.line) for mutant in one}) == 9
    assert [mutant.path.parts[2] for mutant in one] == ["device"] * 5 + ["oracles"] * 4


def test_tests_of_a_module_come_first():
    stages = mutants.tests_of(FILE, mutants.ROOT)
    own = ["tests/device/test_words.py"]
    assert stages == [(mutants.FAST, own), (mutants.FAST, ["tests/device"]), (mutants.SLOW, own)]
