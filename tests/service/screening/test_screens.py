"""Screens: quiet on honest waves whatever people's values are, loud on fakes; and what they cannot see stays so."""

import numpy as np
import pytest

from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.oracles import ORACLES, Tally, make_oracle
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.screening.cooccurrence import pair_deviates, pair_screens, support
from ahead_ldp.service.screening.deviates import chi_square, half_squares, largest_of, unskewed, wilson_hilferty
from ahead_ldp.service.screening.joint_fit import joint_fit, told
from ahead_ldp.service.screening.manipulation import influence, manipulation
from ahead_ldp.service.screening.screens import FEWEST, screen_wave
from tests.service.screening.attacks import attacked_wave, plain

HOLD_Z = 6.0
TARGETS = np.arange(4)


def codes(d, n, rng):
    """People of a random, uneven distribution."""
    return rng.choice(d, size=n, p=rng.dirichlet(np.full(d, 0.3)))


@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.parametrize("name", ORACLES)
def test_honest_waves_are_quiet(name, epsilon):
    """Each screen over repetitions: mean of a one-sided normal or below, none beyond 5."""
    rng, oracle = np.random.default_rng(7), make_oracle(name, epsilon, 16)
    found = {}
    for _ in range(20):
        for screen, z in attacked_wave(oracle, codes(16, 3000, rng), TARGETS, 0.0, "plain", rng).screens.items():
            found.setdefault(screen, []).append(z)
    assert found
    for screen, z in found.items():
        assert max(z) < 5, screen
        assert np.mean(z) < 0.8 + 5 * 0.6 / np.sqrt(20), screen  # |normal| has mean 0.8 and deviation 0.6


@pytest.mark.parametrize(
    ("name", "attack", "fakes", "screen"),
    [
        ("oue", "plain", 0.02, "raw_sum"),
        ("oue", "plain", 0.01, "ones_histogram"),
        ("oue", "padded", 0.02, "pairs_together"),
        ("oue", "padded", 0.05, "pairs_largest"),
        ("sue", "padded", 0.02, "pairs_together"),
        ("ss", "padded", 0.05, "pairs_largest"),
        ("olh", "padded", 0.05, "pairs_largest"),
        ("grr", "plain", 0.10, "below_zero_together"),
    ],
)
def test_fakes_for_the_same_cells_are_seen(name, attack, fakes, screen):
    rng, oracle = np.random.default_rng(11), make_oracle(name, "1", 64)
    people = np.minimum(rng.geometric(0.08, 50_000) - 1, 63)
    found = attacked_wave(oracle, people, np.arange(40, 48), fakes, attack, rng)
    assert found.screens[screen] > HOLD_Z
    assert found.seen(HOLD_Z)
    assert found.moved > 0.1  # and it was worth seeing


def test_padding_hides_from_the_number_of_ones():
    """What docs/threat-model.md says: only pairs see a padded attack."""
    rng, oracle = np.random.default_rng(11), make_oracle("oue", "1", 64)
    people = np.minimum(rng.geometric(0.08, 50_000) - 1, 63)
    found = attacked_wave(oracle, people, np.arange(40, 48), 0.02, "padded", rng).screens
    assert max(found["raw_sum"], found["ones_histogram"]) < 5 < found["pairs_together"]


@pytest.mark.parametrize("name", ["oue", "ss", "olh", "hrr", "grr"])
def test_devices_that_lie_about_the_value_are_not_seen(name):
    """Nothing can: such a report is what a person with that value sends."""
    rng, oracle = np.random.default_rng(13), make_oracle(name, "1", 32)
    found = attacked_wave(oracle, codes(32, 20_000, rng), TARGETS, 0.2, "lying", rng)
    assert max(found.screens.values()) < 5


def test_rows_of_signs_that_are_not_uniform_are_seen():
    rng, oracle = np.random.default_rng(3), make_oracle("hrr", "1", 16)
    reports = oracle.perturb(codes(16, 5000, rng), rng)
    reports[:500] = reports[0]
    tally = oracle.tally(reports)
    rows = tally.counts[0::2] + tally.counts[1::2]
    assert chi_square(rows, np.full(rows.size, 1.0)) > HOLD_Z


@pytest.mark.parametrize("name", ["oue", "sue", "ss", "olh"])
def test_pairs_have_their_known_mean_whatever_the_values(name):
    """The identity behind co-occurrence, by averaging over many reports of one value; a wrong constant fails."""
    rng, oracle, n = np.random.default_rng(5), make_oracle(name, "1", 6), 40_000
    for value in (0, 3):
        bits = support(oracle, oracle.perturb(np.full(n, value), rng), np.arange(6))
        z = pair_deviates(oracle, bits.T @ bits / n, n)
        assert np.nanmax(np.abs(z[np.triu_indices(6, 1)])) < 4.5
    shifted = bits.copy()
    shifted[: n // 20, :2] = 1
    z = pair_deviates(oracle, shifted.T @ shifted / n, n)
    assert z[0, 1] > HOLD_Z


def test_few_reports_say_nothing():
    rng, oracle = np.random.default_rng(5), make_oracle("oue", "1", 8)
    reports = oracle.perturb(codes(8, 20, rng), rng)
    assert pair_screens(oracle, oracle.tally(reports), [reports]) == {}


# Group balance and the whole wave


def honest_session(name, attributes, n, seed, waves=None, **choices):
    """A session told by honest people, its last wave counted but not told."""
    rng = np.random.default_rng(seed)
    schema = as_schema(attributes)
    session = Session(MECHANISMS.find(name)(epsilon="1", **choices), schema)
    distribution = [rng.dirichlet(np.full(size, 0.5)) for size in schema.sizes]
    done = 0
    while True:
        tallies = {}
        for group, question in session.wave.items():
            drawn = np.stack([rng.choice(p.size, n, p=p) for p in distribution], axis=1)
            cells = question.partition.locate(drawn[:, list(question.attributes)])
            tallies[group] = question.oracle.tally(question.oracle.perturb(cells, rng))
        done += 1
        last = waves is not None and done == waves
        following = Session(session.mechanism, schema)
        for history in [*session.history, tallies]:
            following.tell(history)
        if last or not following.is_open:
            return session, tallies
        session = following


CASES = {
    "ahead": ("ahead", ["x=integer,0,31"], {}),
    "hio": ("hio", ["x=integer,0,31"], {}),
    "calm": ("calm", ["x=integer,0,7", "y=integer,0,7", "z=integer,0,7"], {}),
    "hdg": ("hdg", ["x=integer,0,15", "y=integer,0,15"], {"users": 10_000}),
}


@pytest.mark.parametrize("case", CASES)
def test_groups_of_the_same_people_fit_together(case):
    name, attributes, choices = CASES[case]
    found = []
    for seed in range(12):
        session, tallies = honest_session(name, attributes, 2000, seed, **choices)
        found += [z for _, z, _ in joint_fit(session, tallies)]
    assert len(found) >= 12
    assert max(found) < 4.5
    assert abs(np.mean(found)) < 5 * 1.0 / np.sqrt(12)


@pytest.mark.parametrize("case", CASES)
def test_one_group_of_other_people_does_not_fit(case):
    """The power of the test above: one group has fakes that speak for one end of the range."""
    name, attributes, choices = CASES[case]
    session, tallies = honest_session(name, attributes, 5000, 1, **choices)
    group = list(tallies)[-1]
    oracle, rng = session.wave[group].oracle, np.random.default_rng(1)
    fakes = oracle.tally(plain(oracle, np.array([oracle.d - 1]), 1000, rng))
    poisoned = dict(tallies) | {group: tallies[group] + fakes}
    assert max(z for _, z, _ in joint_fit(session, poisoned)) > HOLD_Z


def test_told_repeats_what_the_session_was_told():
    session, tallies = honest_session("ahead", ["x=integer,0,15"], 500, 2)
    found = told(session, tallies)
    assert [tally.n for _, tally in found] == [500] * 4
    assert found[-1][0].oracle == session.wave["4"].oracle


def test_unbalanced_groups_hold_the_wave():
    session, tallies = honest_session("hio", ["x=integer,0,7"], 1000, 3)
    shares = dict.fromkeys(tallies, 1)
    rng = np.random.default_rng(1)
    even = screen_wave(session, tallies, shares, lambda group: [], rng, HOLD_Z)
    assert "group_balance" in {s.name for s in even.screens}
    assert {s.name for s in even.screens if s.z > HOLD_Z} == set()
    group = next(iter(tallies))
    oracle = session.wave[group].oracle
    more = dict(tallies) | {group: tallies[group] + oracle.simulate(np.full(oracle.d, 700 // oracle.d), rng)}
    found = screen_wave(session, more, shares, lambda group: [], rng, HOLD_Z)
    assert found.hold
    assert found.record()["screens"][0]["screen"] == "group_balance"


def test_nothing_is_said_about_tiny_groups():
    session, _ = honest_session("ahead", ["x=integer,0,7"], 100, 1, waves=1)
    few = {"1": Tally(FEWEST - 1, np.full(2, FEWEST - 1))}
    assert screen_wave(session, few, {"1": 1}, lambda group: [], np.random.default_rng(1), HOLD_Z).screens == ()


# The scale


@pytest.mark.parametrize("cells", [1, 2, 8, 300])
def test_low_cells_together_are_normal_however_few(cells):
    """Beyond 2 and 3 lie 2.28 % and 0.135 % of honest waves: four standard errors either way of 10,000."""
    z = np.random.default_rng(11).standard_normal((10_000, cells))
    found = np.array([half_squares(t, cells) for t in (np.minimum(z, 0.0) ** 2).sum(axis=1).tolist()])
    for at, tail in [(2, 0.02275), (3, 0.00135)]:
        assert abs((found > at).mean() - tail) < 4 * np.sqrt(tail / found.size), at


def test_low_cells_together_far_out():
    """One cell is its own deviate; where a tail has no floating-point number, larger sums still lie further out."""
    assert half_squares(49.0, 1) == pytest.approx(7.0)
    z = [half_squares(t, 16) for t in (0.0, 5.0, 50.0, 1400.0, 1500.0, 1e5)]
    assert z == sorted(z)
    assert z[-1] == pytest.approx(np.sqrt(1e5), rel=0.01)


def test_deviates_are_normal():
    rng = np.random.default_rng(1)
    p = np.array([0.1, 0.2, 0.3, 0.4])
    z = [chi_square(rng.multinomial(1000, p), p) for _ in range(2000)]
    assert abs(np.mean(z)) < 0.1
    assert abs(np.std(z) - 1) < 0.1
    assert chi_square(np.zeros(3, int), np.ones(3)) is None
    assert chi_square(np.array([5, 1]), np.array([1.0, 0.0])) == np.inf
    assert abs(wilson_hilferty(10.0, 10)) < 0.3


def test_the_largest_of_many_is_paid_for():
    rng = np.random.default_rng(1)
    z = [largest_of(rng.standard_normal(500).max(), 500) for _ in range(2000)]
    assert np.mean(np.array(z) > 1.645) < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 2000)
    assert largest_of(50.0, 10**6) > 45


def test_skewed_counts_become_normal():
    rng = np.random.default_rng(1)
    z = (rng.poisson(9.0, 200_000) - 9.0) / 3.0
    tail = (unskewed(z, np.full(z.size, 1 / 3)) > 4).mean()
    assert tail < 1e-4 < (z > 4).mean()  # a normal has 3e-5


# What fakes could do at most


@pytest.mark.parametrize("name", ["oue", "ss", "grr", "olh", "hrr"])
def test_one_report_moves_a_cell_by_at_most_its_influence(name):
    rng, oracle = np.random.default_rng(2), make_oracle(name, "1", 8)
    n, bound = 500, influence(oracle)
    reports = oracle.perturb(codes(8, n, rng), rng)
    before = oracle.estimate(oracle.tally(reports))
    moved = []
    for _ in range(200):
        changed = reports.copy()
        changed[0] = oracle.perturb(rng.integers(0, 8, 1), rng)[0]
        moved.append(np.abs(oracle.estimate(oracle.tally(changed)) - before).max())
    assert max(moved) <= 2 * bound / n + 1e-12  # out with one, in with another
    assert max(moved) > bound / n / 2


def test_the_bound_is_shown_for_both_ways_to_spread_fakes():
    session, tallies = honest_session("ahead", ["x=integer,0,7"], 300, 1)
    session.tell(tallies)
    found = manipulation([told(session)], "none")
    assert found["group_can_be_chosen"]
    for bound in found["largest_shift_of_a_cell"]:
        assert 0 < bound["spread"] <= bound["one_group"] <= 1
    assert not manipulation([told(session)], "blind")["group_can_be_chosen"]
