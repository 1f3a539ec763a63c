"""The demonstration, on few people: a real server and real clients, and numbers that are the estimate's."""

import re
import urllib.request
from urllib.parse import urlencode

import numpy as np
import pytest

from ahead_ldp import simulate
from ahead_ldp.cli import demo, demo_server, main, sampletown

PEOPLE = 3000


def shown(capsys, *words):
    code = main(["demo", "--people", str(PEOPLE), *words])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    return printed.out


def test_demo_serves_collects_and_answers_beside_the_truth(tmp_path, capsys):
    out = tmp_path / "pictures" / "demo.png"
    text = shown(capsys, "--out", str(out))
    assert "Synthetic salaries, log-normal with heaping, 3,000 people" in text
    assert "3,000 of 3,000 people counted (100.0 %)" in text
    waves = [int(n.replace(",", "")) for n in re.findall(r"wave \d: +([\d,]+) reports", text)]
    assert len(waves) > 1
    assert sum(waves) == PEOPLE
    assert re.search(r"Audit of the public chain: (\d+) of \1 checks matched", text)
    rows = re.findall(r"^salary in \d+\.\.\d+ .*$", text, flags=re.MULTILINE)
    assert len(rows) == len(sampletown.RANGES)
    salaries = sampletown.synthetic_salaries(PEOPLE, np.random.default_rng(2021))
    for row, (lo, hi) in zip(rows, sampletown.RANGES, strict=True):
        assert row.endswith(f"{100 * ((salaries >= lo) & (salaries <= hi)).mean():.2f} %")
    assert "median" in text
    assert "ahead respond" in text
    assert re.search(
        r"dashboard of this campaign was at http://127\.0\.0\.1:\d+/campaigns/[0-9a-f]{64}/results$", text, re.M
    )
    assert "--keep" in text
    assert out.read_bytes().startswith(b"\x89PNG")
    assert out.with_stem("demo-answers").exists()


@pytest.mark.parametrize("method", ["ahead", "hio", "lle"])
def test_a_panel_and_other_methods_run_as_well(tmp_path, capsys, method):
    text = shown(capsys, "--enrolment", "panel", "--method", method, "--out", str(tmp_path / "x.png"))
    assert f"panel, method {method}" in text
    assert "3,000 of 3,000 people counted" in text


@pytest.mark.parametrize("missing", [["fastapi"], ["matplotlib"], ["fastapi", "matplotlib"]], ids=" ".join)
def test_the_demo_answers_without_the_extras(missing, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "_is_missing", missing.__contains__)
    out = tmp_path / "demo.png"
    code = main(["demo", "--people", str(PEOPLE), "--out", str(out)])
    told = capsys.readouterr().out
    assert code == 0
    assert "intervals hold the truth" in told
    assert ("A server listens" in told) == ("fastapi" not in missing)
    assert ("ahead-ldp[server]" in told) == ("fastapi" in missing)
    assert out.exists() == ("ahead-ldp[plot]" not in told) == ("matplotlib" not in missing)


def test_a_kept_demo_shows_the_finished_campaign_to_the_analyst(tmp_path, capsys, monkeypatch):
    """The address it prints, with the token it prints, has the results for as long as it is not interrupted."""
    pages = []

    def look_and_leave(address, token):
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(address.partition("/campaigns/")[0] + "/login", urlencode({"token": token}).encode()).close()
        with browser.open(address) as answer:
            pages.append(answer.read().decode())
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_server, "_stay", look_and_leave)
    text = shown(capsys, "--keep", "--out", str(tmp_path / "x.png"))
    assert "From 3,000 noisy answers" in pages[0]
    assert re.search(r"^The dashboard: http://127\.0\.0\.1:\d+/campaigns/[0-9a-f]{64}/results$", text, re.M)
    assert re.search(r"analyst's token: ahead_\S+$", text, re.M)


def test_population_is_as_described():
    salaries = sampletown.synthetic_salaries(50_000, np.random.default_rng(1))
    assert salaries.min() >= 0
    assert salaries.max() < sampletown.TOP
    assert np.median(salaries) == pytest.approx(38_000, rel=0.02)
    assert (salaries % 10_000 == 0).mean() == pytest.approx(0.2, abs=0.01)


def test_sizes_make_the_answers_worth_looking_at():
    """At the demo's own sizes, by simulation: 95 % intervals under 5 points, for every draw of the noise."""
    rng = np.random.default_rng(2)
    salaries = sampletown.synthetic_salaries(demo.PEOPLE, rng)
    for _ in range(10):
        estimate = simulate({"salary": salaries}, sampletown.SCHEMA, epsilon=demo.EPSILON, seed=rng)
        low, high = estimate.ask(*sampletown.QUERIES).interval()
        assert (high - low).max() < 0.05


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--epsilon", "-1"], "epsilon"), (["--people", "10"], "1000 people"), (["--enrolment", "x"], "walk_in or panel")],
    ids=["epsilon", "few", "enrolment"],
)
def test_bad_options_are_named(tmp_path, capsys, words, message):
    assert main(["demo", *words, "--out", str(tmp_path / "x.png")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
