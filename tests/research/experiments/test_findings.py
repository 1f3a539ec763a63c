"""Each rule accepts results like the paper's, and refuses Uni in AHEAD's place and shuffled labels."""

import dataclasses

import numpy as np
import pytest

from ahead_ldp.research.experiments.findings import FINDINGS
from ahead_ldp.research.experiments.journal import Outcome
from ahead_ldp.research.experiments.paper import FIGURES
from ahead_ldp.research.experiments.plan import Cell, Data, paper_theta
from ahead_ldp.research.experiments.results import (
    Evidence,
    Measured,
    View,
    clearly_above,
    crossing,
    geometric,
    rank_correlation,
    spread,
)
from ahead_ldp.research.experiments.verdicts import Finding, judge
from tests.research.experiments.ideal import ideal_view

BY_NAME = {finding.name: finding for finding in FINDINGS}


@pytest.fixture(scope="module")
def view():
    return ideal_view()


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda f: f.name)
def test_rule_accepts_what_the_paper_describes_and_refuses_the_wrong(view, finding):
    assert finding.refuses
    verdict = judge(finding, view)
    assert verdict.refused == dict.fromkeys(finding.refuses, True)
    assert verdict.outcome == "agrees", verdict.evidence


def test_names_are_different_and_figures_exist():
    assert len(BY_NAME) == len(FINDINGS)
    assert {finding.figure for finding in FINDINGS} == set(FIGURES)


def changed(view, method, times, figure):
    """The results of a method in one figure, times something."""
    outcomes = dict(view.measured.outcomes)
    for cell in view.figure(figure).cells:
        if cell.method == method:
            rows = tuple({**row, "mse": row["mse"] * times(cell)} for row in outcomes[cell.id].rows)
            outcomes[cell.id] = dataclasses.replace(outcomes[cell.id], rows=rows)
    return View(view.figures, Measured(outcomes))


BROKEN = {  # a change that a reader would call another finding, and the rule that must notice it
    "one lost panel": ("best-1-dim", "AHEAD", lambda c: 4.0 if c.data.name == "loan" else 1.0),
    "only twice as good": ("salaries", "AHEAD", lambda c: 4.5),
    "much better than DHT": ("loan", "DHT", lambda c: 10.0),
    "worse on fine domains": ("domain-2-dim", "AHEAD", lambda c: 3.0 if c.data.sizes[0] == 1024 else 1.0),
    "grows with r": ("correlation-ahead", "AHEAD", lambda c: 1 + 2 * c.data.r),
    "crossing at 0.8": ("crossing", "HDG", lambda c: 10**-0.6),
    "no crossing": ("crossing", "HDG", lambda c: 100.0),
    "DE better": ("lle-de", "DE", lambda c: 0.4),
    "fewer users, better": ("users-high-dim", "HDG", lambda c: 1e7 / c.data.n),
    "too few users": ("enough-users", "AHEAD", lambda c: 10.0),
    "others need no more": ("more-users", "DHT", lambda c: 0.1),
    "no exchange": ("exchange", "AHEAD", lambda c: 0.1 / c.epsilon),
    "other than printed": ("printed", "AHEAD", lambda c: 2.5),
    "grows with the domain": ("domain-1-dim", "AHEAD", lambda c: np.log2(c.data.sizes[0]) ** 1.5),
    "grows with skewness": ("skewness", "AHEAD", lambda c: 1 + c.data.skew),
    "skewness stays": ("skewness-fades", "AHEAD", lambda c: 1 + c.data.skew),
    "falls with m": ("dimension", "LLE", lambda c: 0.5 ** len(c.data.sizes)),
}


@pytest.mark.parametrize(("name", "method", "times"), BROKEN.values(), ids=BROKEN)
def test_rule_notices_a_change(view, name, method, times):
    finding = BY_NAME[name]
    broken = changed(view, method, times, finding.figure)
    assert judge(finding, broken).outcome == "differs"


def test_a_rule_without_power_claims_nothing(view):
    weak = Finding("weak", "fig5", "Anything goes.", "always", lambda _: Evidence(True, "yes"))
    verdict = judge(weak, view)
    assert verdict.outcome == "undecided"
    assert "no power" in verdict.evidence


def test_missing_results_are_undecided(view):
    empty = View(view.figures, Measured({}))
    for finding in FINDINGS:
        assert judge(finding, empty).outcome == "undecided"
    assert judge(BY_NAME["hdg-fades"], View({}, view.measured)).outcome == "undecided"


# The pieces.


def test_thresholds_are_those_printed_in_the_paper():
    printed = [
        (Data("loan", (256,), 2_260_668), 1.1, 0.006),
        (Data("financial", (512,), 6_022_336), 1.1, 0.004),
        (Data("blackfriday", (1024,), 537_577), 1.1, 0.013),
        (Data("salaries", (2048,), 148_654), 1.1, 0.026),
        (Data("gaussian", (256, 256), 10**7), 1.1, 0.003),
        (Data("gaussian", (1024, 1024), 10**7), 1.1, 0.004),
        (Data("gaussian", (1024,), 10**7), 1.0, 0.003),
    ]
    for data, epsilon, theta in printed:
        assert round(paper_theta(data, epsilon), 3) == theta
    assert round(paper_theta(Data("gaussian", (1024,), 10**6), 0.1), 2) == 0.11


def test_clearly_above_is_welchs_test():
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(0)
    decisions = set()
    for shift in np.linspace(0, 3, 30):
        a, b = (rng.standard_normal(8) + shift).tolist(), (2 * rng.standard_normal(11)).tolist()
        expected = ttest_ind(a, b, equal_var=False, alternative="greater").pvalue < 0.01
        assert clearly_above(a, b) == expected
        decisions.add(bool(expected))
    assert decisions == {True, False}
    assert clearly_above([2.0, 2.0], [1.0, 1.0])
    assert not clearly_above([1.0, 1.0], [1.0, 1.0])
    assert clearly_above([2.0], [1.0])


def test_small_sums():
    assert geometric([1.0, 100.0]) == pytest.approx(10.0)
    assert spread([2.0, 8.0, 4.0]) == 4.0
    assert rank_correlation([1, 2, 3], [10, 20, 15]) == pytest.approx(0.5)
    assert rank_correlation([1, 2, 3], [1, 1, 1]) == 0.0
    x = [0.1, 0.5, 0.9]
    assert crossing(x, np.array([1.0, 1.0, 100.0]), np.array([10.0, 10.0, 10.0])) == pytest.approx(0.7)
    assert crossing(x, np.ones(3), np.full(3, 2.0)) is None


def test_uni_takes_the_place_of_the_papers_method(view):
    wrong = view.with_uni()
    panel = view.panels("fig5")[0]
    np.testing.assert_array_equal(wrong.means(panel, "AHEAD"), view.means(panel, "Uni"))
    np.testing.assert_array_equal(wrong.means(panel, "DHT"), view.means(panel, "DHT"))


def test_shuffles_move_results_and_lose_none(view):
    figure = view.figure("fig7")
    shuffled = view.shuffled(3)
    before = sorted(view.errors(cell)[0] for cell in figure.cells)
    after = sorted(shuffled.errors(cell)[0] for cell in figure.cells)
    assert before == after
    assert [view.errors(c) for c in figure.cells] != [shuffled.errors(c) for c in figure.cells]


def test_outcomes_are_found_by_key():
    cell = Cell(Data("zipf", (8,), 100), "AHEAD", 1.0, 1)
    outcome = Outcome(cell.id, cell.key, ({"repetition": 0, "mse": 0.5},))
    assert cell in Measured.of([cell], {cell.key: outcome})
    assert cell not in Measured.of([cell], {"other": outcome})
