"""docs/limit.md: bounds that hold where the least error is known, and are close to it."""

from itertools import combinations, product
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

from ahead_ldp.mechanisms.adaptive import adaptive
from ahead_ldp.mechanisms.adaptive.cell_estimates import CellData, CellEstimates
from ahead_ldp.research.evaluation import choose
from ahead_ldp.schema.attributes import as_schema, codes
from tools import docs
from tools.limit import bound, measuring, picture, tables
from tools.limit.bound import Part, all_information, answers, least_favourable, most_told, one_information, van_trees
from tools.limit.classes import SHAPES, Class, class_of
from tools.limit.oracle import Posterior, asked_with, read
from tools.limit.questions import Design

OFF = 1.3  # a bound that is this much too high is to be found

# What one report can tell.


def told(channel, density):  # (reports, d), (d,) -> eigenvalues
    """What a report tells about all directions, where a person's value tells 1 about each."""
    chance = channel @ density
    likelihood = (channel / chance[:, None] - 1) * np.sqrt(density)
    return np.linalg.eigvalsh((likelihood * chance[:, None]).T @ likelihood)


def subset_selection(epsilon, d, w):
    sets = np.array([[x in chosen for x in range(d)] for chosen in combinations(range(d), w)], float)
    chance = 1 + (np.exp(epsilon) - 1) * sets
    return chance / chance.sum(axis=0)


def random_channel(d, rng):
    """Reports that are likelier for some codes, by up to a factor; which factor it is, `level` says."""
    chance = rng.dirichlet(np.ones(6))[:, None] * np.exp(rng.uniform(0.1, 2) * rng.integers(0, 2, (6, d)))
    return chance / chance.sum(axis=0)


def level(channel):
    return np.log(channel.max(axis=1) / channel.min(axis=1)).max()


@pytest.mark.parametrize("seed", range(20))
def test_no_report_tells_more(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    channel, density = random_channel(d, rng), rng.dirichlet(np.ones(d))
    eigenvalues, epsilon = told(channel, density), level(channel)
    assert eigenvalues.sum() <= all_information(epsilon) * (1 + 1e-9)
    assert eigenvalues.max() <= one_information(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "d", "w"), [(np.log(3), 8, 2), (np.log(3), 12, 3), (np.log(5), 12, 2)])
def test_subset_selection_tells_as_much(epsilon, d, w):
    eigenvalues = told(subset_selection(epsilon, d, w), np.full(d, 1 / d))
    assert_allclose(eigenvalues.sum(), all_information(epsilon))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomised_response_tells_as_much_about_one_direction(epsilon):
    eigenvalues = told(subset_selection(epsilon, 2, 1), np.array([0.5, 0.5]))
    assert_allclose(eigenvalues.max(), one_information(epsilon))


# The least favourable information.


def test_no_prior_has_a_closed_form():
    s, total = np.diag([4.0, 1.0, 0.25]), 1e-3
    m = least_favourable(s, np.zeros((3, 3)), total, total)
    assert_allclose(m, np.diag([2.0, 1.0, 0.5]) * total / 3.5, rtol=1e-6, atol=1e-12)
    part = Part(np.sqrt(3 * s), np.eye(3)[None], 1e-12 * np.eye(3))
    epsilon, n = 0.2, 1000
    assert_allclose(part.bound(n, epsilon), 3.5**2 / (n * all_information(epsilon)), rtol=0.02)


def test_a_prior_is_filled_up_like_water():
    s, j, total = np.array([4.0, 1.0, 0.01]), np.array([2.0, 1.0, 30.0]), 6.0
    m = least_favourable(np.diag(s), np.diag(j), total, total)
    level = (total + j[:2].sum()) / np.sqrt(s[:2]).sum()
    assert_allclose(np.diag(m), [2 * level - 2, level - 1, 0], atol=1e-3)


def test_no_direction_gets_more_than_it_can():
    m = least_favourable(np.diag([100.0, 1.0, 1.0]), 0.01 * np.eye(3), 2.0, 1.0)
    assert_allclose(np.diag(m), [1.0, 0.5, 0.5], rtol=1e-6)


def test_no_other_information_is_worse_for_two_directions():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(2, 2))
    s, j = root @ root.T, np.diag([0.5, 3.0])
    risk = np.trace(s @ np.linalg.inv(least_favourable(s, j, 2.0, 2.0) + j))
    grid = []
    for share, angle in product(np.linspace(0, 1, 101), np.linspace(0, np.pi, 101)):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        grid.append(np.trace(s @ np.linalg.inv(turn @ np.diag([2 * share, 2 - 2 * share]) @ turn.T + j)))
    assert_allclose(risk, min(grid), rtol=5e-3)  # the search ends before it is exact; the bound holds all the same


def test_most_told_is_the_largest_over_informations():
    values, n, epsilon = np.array([3.0, 2.0, 1.0]), 10, 0.5
    total, one = n * all_information(epsilon), n * one_information(epsilon)
    assert total < 2 * one
    assert_allclose(most_told(values, n, epsilon), 3 * one + 2 * (total - one))


# A closed form: two codes, a logarithm of the odds that is normal, and randomised response.

COIN = Class(np.array([0.5, 0.5]), np.array([[-0.5], [0.5]]), np.array([0.8]), np.zeros(1))
SECOND = np.array([[1.0, 2.0]])
PIECES = 200  # over which the bound is averaged: more than elsewhere, so that chance is under 1 %


def risk_of_randomised_response(n, epsilon):
    """Exact but for the integral over the prior: the variance that is left of the second code's share."""
    points, weights = np.polynomial.hermite_e.hermegauss(200)
    share = 1 / (1 + np.exp(-0.8 * points))
    yes = (share * (np.exp(epsilon) - 1) + 1) / (np.exp(epsilon) + 1)
    chance = binom.pmf(np.arange(n + 1)[:, None], n, yes) * weights / weights.sum()
    total = chance.sum(axis=1)
    kept = total > 1e-300
    mean = (chance[kept] @ share) / total[kept]
    return (weights / weights.sum()) @ share**2 - total[kept] @ mean**2


@pytest.mark.parametrize(("n", "epsilon"), [(1, 1.0), (20, 0.5), (200, 0.5), (200, 2.0), (2000, 0.2), (5000, 1.0)])
def test_the_bound_is_below_the_risk_of_randomised_response(n, epsilon):
    assert van_trees(COIN, SECOND, n, epsilon, PIECES) <= risk_of_randomised_response(n, epsilon)


@pytest.mark.parametrize(("n", "epsilon"), [(1, 0.5), (5000, 0.1), (5000, 0.5)])
def test_a_bound_that_is_a_third_too_high_is_found(n, epsilon):
    assert OFF * van_trees(COIN, SECOND, n, epsilon, PIECES) > risk_of_randomised_response(n, epsilon)


# The oracle.


def linear_data(rng, d, count):
    """Estimates of halves, quarters and so on of the codes, without the law that the sum is known."""
    estimates = [
        CellEstimates(np.linspace(0, d, cells + 1).astype(int), rng.normal(1 / cells, 0.02, cells), np.full(cells, 1e4))
        for cells in (2, 4, 8)[:count]
    ]
    return CellData.of(estimates, 1.0)


def test_a_class_that_hardly_bends_is_read_by_least_squares():
    rng = np.random.default_rng(3)
    members = Class.around(np.full(16, 1 / 16), 1e-3, cosines=4)
    data = linear_data(rng, 16, 3)
    posterior = Posterior.of(members, data, rng, 20_000)
    jacobian = data.jacobian(members.basis, members.shape)
    left = np.linalg.inv(jacobian.T @ jacobian + np.diag(members.spread**-2.0))
    theta = left @ jacobian.T @ data.residual(members.shape)
    ends = np.array([[0.0, 8.0], [3.0, 11.0]])
    moved = answers(members.shape[:, None] * (members.basis - members.shape @ members.basis), ends)
    expected = answers(members.shape, ends) + moved @ theta
    assert_allclose(answers(posterior.mean, ends), expected, atol=5e-6)
    assert_allclose(posterior.risk(ends), np.trace(moved @ left @ moved.T) / 2, rtol=0.05)
    assert posterior.effective > 10_000


@pytest.mark.parametrize(("n", "epsilon"), [(10**4, 0.5), (10**6, 1.0)])
def test_the_oracle_makes_the_error_that_it_expects_and_no_less_than_the_bound(n, epsilon):
    rng = np.random.default_rng(n)
    x = (np.arange(64) + 0.5) / 64
    shape = np.exp(-0.5 * ((x - 0.5) / 0.2) ** 2)
    members = Class.around(shape / shape.sum(), cosines=12)
    ends = np.sort(rng.integers(0, 65, size=(100, 2)), axis=1).astype(float)
    design = Design.of(members, ends, n, epsilon)
    errors, risks = [], []
    for theta in members.draw(rng, 60):
        density = members.density(theta)
        posterior = Posterior.of(members, read(design.asked(rng.multinomial(n, density), rng), members), rng)
        errors.append(np.mean((answers(posterior.mean, ends) - answers(density, ends)) ** 2))
        risks.append(posterior.risk(ends))
    assert abs(np.mean(errors) - np.mean(risks)) < 4 * np.std(errors) / np.sqrt(len(errors))
    assert_allclose(np.mean(risks), design.expected, rtol=0.3)
    least = van_trees(members, ends, n, epsilon)
    assert least < np.mean(risks) < 2.5 * least


def test_the_best_shares_are_better_than_each_size_alone():
    members, ends = class_of("gaussian"), np.array([[0.0, 100.0], [90.0, 140.0], [128.0, 256.0]])
    mixed = Design.of(members, ends, 10**6, 1.0).expected
    for cells in (4, 16):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tools.limit.questions.CELLS", (cells,))
            assert mixed < Design.of(members, ends, 10**6, 1.0).expected


def test_questions_by_the_true_density_are_asked_from_the_first_wave_on():
    density = np.random.default_rng(0).dirichlet(np.full(64, 0.5))
    schema = as_schema([codes("x", 64)])
    mechanism = choose(None, schema, 1.0, 10**6)[0]
    own = next(mechanism.run(schema))
    with asked_with(density):
        told_first = next(mechanism.run(schema))
    for question, blind in zip(told_first.values(), own.values(), strict=True):
        cells = np.add.reduceat(density, question.partition.lo[:, 0])
        assert question.partition.form != blind.partition.form
        assert cells.max() < 0.25 + 2 * density.max()
    assert next(mechanism.run(schema)).keys() == own.keys()
    assert [q.partition.form for q in next(mechanism.run(schema)).values()] == [q.partition.form for q in own.values()]
    assert adaptive.Adaptive1._outlook.__name__ == "_outlook"


# What was measured.


def test_all_shapes_people_and_epsilons_were_measured():
    lines = picture.measured()
    wanted = sorted(product(SHAPES, measuring.PEOPLE, measuring.EPSILONS))
    assert sorted((x["shape"], x["n"], x["epsilon"]) for x in lines) == wanted
    for line in lines:
        assert {len(found) for found in line["errors"].values()} == {16}
        assert line["bound"] < np.mean(line["errors"]["oracle risk"])


def test_a_bound_that_was_measured_is_computed_again():
    line = next(x for x in picture.measured() if (x["shape"], x["n"], x["epsilon"]) == ("slope", 10**5, 1.0))
    members, ends = class_of("slope"), measuring.ranges_of(512).boxes[:, 0, :]
    assert_allclose(bound.van_trees(members, ends, 10**5, 1.0), line["bound"], rtol=1e-3)
    assert_allclose(Design.of(members, ends, 10**5, 1.0).expected, line["expected"], rtol=1e-3)


def test_a_line_takes_the_place_of_the_one_before(tmp_path):
    line = {"shape": "gaussian", "n": 10, "epsilon": 1.0, "spread": 0.5, "choices": {"finest": 0.05}, "bound": 0.123456}
    for other in (line, {**line, "n": 20}, {**line, "bound": 1.0}):
        measuring.keep(tmp_path / "found", other)
    assert [(x["n"], x["bound"]) for x in measuring.lines_of(tmp_path / "found")] == [(20, 0.1235), (10, 1.0)]
    assert measuring.shown({**line, "errors": {"default": [0.246912]}}).endswith(
        "finest=0.05 bound 1.23e-01  over it: default 2.00"
    )


def test_the_picture_is_drawn_from_what_was_measured():
    drawn = picture.PICTURE.read_text("utf-8")
    assert picture.draw() == drawn, "run python -m tools.limit.picture"
    ElementTree.fromstring(drawn)
    lines = [{**line, "bound": 2 * line["bound"]} for line in picture.measured()]
    assert picture.draw(lines) != drawn


def test_the_tables_of_the_page_are_those_of_what_was_measured():
    page = (docs.ROOT / "docs" / "limit.md").read_text("utf-8")
    for table in tables.tables():
        assert "\n".join(table) in page, "run python -m tools.limit.tables"


def test_tables_follow_the_measurement():
    line = {"shape": "slope", "n": 10_000, "epsilon": 0.1, "spread": 0.5, "choices": {}, "bound": 1.0}
    twice = {**line, "n": 10**6, "epsilon": 2.0}
    for one, factor in ((line, 1.0), (twice, 2.0)):
        one["errors"] = {
            curve: [factor, 3 * factor] for curve in ("default", "asked", "read risk", "oracle risk", "read", "oracle")
        }
    assert [tables.told(one) for one in (line, twice)] == [False, True]
    everywhere = [{**line, "n": n, "epsilon": e} for n, e in product(measuring.PEOPLE, measuring.EPSILONS)]
    assert tables.by_people(everywhere, "default")[2] == "| 10,000 | 2.0 | 2.0 | 2.0 | 2.0 |"
    assert tables.ratio([line, twice], "default", "bound") == pytest.approx(8**0.5)
    assert [row[-6:] for row in tables.agreement([{**line, "local": 1.5}])] == ["1.00 |"] * 2 + ["1.50 |"]
    assert tables.one([line, twice], {**twice}) is twice
