"""The demonstration, on few people: it runs, says what it must, and its numbers are the estimate's."""

import re

import numpy as np
import pytest

from ahead_ldp import demo, simulate


def test_demo_prints_answers_beside_the_truth_and_draws(tmp_path, capsys):
    out = tmp_path / "pictures" / "demo.png"
    demo.main(["--people", "3000", "--out", str(out)])
    text = capsys.readouterr().out
    assert "Synthetic salaries, log-normal with heaping, 3,000 people" in text
    rows = re.findall(r"^salary in \d+\.\.\d+ .*$", text, flags=re.MULTILINE)
    assert len(rows) == len(demo.RANGES)
    salaries = demo.synthetic_salaries(3000, np.random.default_rng(2021))
    for row, (lo, hi) in zip(rows, demo.RANGES, strict=True):
        assert row.endswith(f"{100 * ((salaries >= lo) & (salaries <= hi)).mean():.2f} %")
    assert "median" in text
    assert out.read_bytes().startswith(b"\x89PNG")
    assert out.with_stem("demo-answers").exists()


def test_population_is_as_described():
    salaries = demo.synthetic_salaries(50_000, np.random.default_rng(1))
    assert salaries.min() >= 0
    assert salaries.max() < demo.TOP
    assert np.median(salaries) == pytest.approx(38_000, rel=0.02)
    assert (salaries % 10_000 == 0).mean() == pytest.approx(0.2, abs=0.01)


def test_sizes_make_the_answers_worth_looking_at():
    """At the demo's own sizes, by simulation: 95 % intervals under 5 points, for every draw of the noise."""
    rng = np.random.default_rng(2)
    salaries = demo.synthetic_salaries(demo.PEOPLE, rng)
    for _ in range(10):
        estimate = simulate({"salary": salaries}, demo.SCHEMA, epsilon=demo.EPSILON, random_state=rng)
        low, high = estimate.ask(*demo.QUERIES).interval()
        assert (high - low).max() < 0.05


def test_bad_epsilon_is_named(tmp_path):
    with pytest.raises(ValueError, match="epsilon"):
        demo.main(["--people", "10", "--epsilon", "-1", "--out", str(tmp_path / "x.png")])
