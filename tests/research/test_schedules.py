"""Rounds before they open: what each choice costs a person, shown by enumerating everything they could send."""

import json
from itertools import chain, product

import numpy as np
import pytest

from ahead_ldp.cli import main
from ahead_ldp.device.budget import Limits
from ahead_ldp.device.entries import Asker, LedgerRefused, Place
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.oracles import make_oracle
from ahead_ldp.research.schedules import Schedule
from tests.reference.reports import all_reports

ROUNDS = ("spring", "summer", "autumn")
CHOICES = [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (3, 3)]  # rounds, panels


def joint_laws(name, epsilon, rounds, panels, cells=2):
    """ln P of everything that a person of each panel may send, a row for each course of values over the rounds.

    What is seen of a round in which the panel does not answer is nothing, whatever the value.
    """
    oracle = make_oracle(name, float(epsilon), cells)
    one = np.stack([oracle.log_prob(all_reports(oracle), value) for value in range(cells)])
    made = Schedule.of(ROUNDS[:rounds], epsilon, panels)
    for panel in range(panels):
        answers = [made.panel_of(place) == panel for place in range(rounds)]
        rows = []
        for course in product(range(cells), repeat=rounds):
            law = np.zeros(1)
            for value, asked in zip(course, answers, strict=True):
                law = (law[:, None] + one[value][None, :]).reshape(-1) if asked else law
            rows.append(law)
        yield panel, np.stack(rows)


@pytest.mark.parametrize(("rounds", "panels"), CHOICES)
@pytest.mark.parametrize("name", ["grr", "oue", "hrr"])
def test_the_total_is_what_can_be_learnt_at_most_and_is_reached(name, rounds, panels):
    made, found = Schedule.of(ROUNDS[:rounds], "0.7", panels), []
    for panel, laws in joint_laws(name, "0.7", rounds, panels):
        np.testing.assert_allclose(np.exp(laws).sum(axis=1), 1.0, rtol=1e-9)
        worst = float(np.ptp(laws, axis=0).max())
        total = float(made.total(panel))
        assert total * (1 - 1e-4) <= worst <= total + 1e-9
        found.append(worst)
    assert float(made.most) * (1 - 1e-4) <= max(found) <= float(made.most) + 1e-9


def test_a_panel_that_nobody_knows_hides_no_less():
    """Who does not know the panel sees a mixture over panels: what it tells of the values is at most the total."""
    laws = dict(joint_laws("grr", "0.7", 3, 2))
    mixed = np.concatenate([laws[0] + np.log(0.5), laws[1] + np.log(0.5)], axis=1)  # which rounds is seen
    np.testing.assert_allclose(np.exp(mixed).sum(axis=1), 1.0)
    assert np.ptp(mixed, axis=0).max() <= float(Schedule.of(ROUNDS, "0.7", 2).most) + 1e-9


def test_the_same_noise_in_every_round_would_not_be_the_promise_of_one():
    """Why remembered answers are left out: with two values in two rounds, two remembered reports tell both of them."""
    oracle = make_oracle("grr", 0.7, 2)
    one = np.stack([oracle.log_prob(all_reports(oracle), value) for value in range(2)])
    same, moved = np.full((2, 2), -np.inf), one[0][:, None] + one[1][None, :]
    np.fill_diagonal(same, one[0])  # a value that stays has one report, sent twice
    assert np.isinf(same).any()
    assert np.isfinite(moved).all()  # so two different reports tell for certain that the value changed


def charge(ledger, i, made, limits):
    asker = Asker(f"{i:064x}", "Pay", "Example")
    ledger.reserve(asker, Place(1, "a", "0" * 64), ["pay"], made.epsilon, limits)


def test_the_ledger_adds_up_rounds_and_stops_at_the_total(tmp_path):
    made, limits = Schedule.of(ROUNDS, "0.7", 1), Limits(fields={"pay": Schedule.of(ROUNDS[:2], "0.7").most})
    with Ledger(tmp_path / "ledger.db") as ledger:
        for i, row in enumerate(made.table()[:2]):
            charge(ledger, i, made, limits)
            assert float(ledger.statement(limits).spent) == pytest.approx(row["spent"])
        with pytest.raises(LedgerRefused, match="lifetime limit"):
            charge(ledger, 2, made, limits)


def test_tables_and_panels():
    made = Schedule.of(ROUNDS, 1, 2)
    rows = made.table(users=101)
    assert [(r["panel"], r["people"], r["spent"]) for r in rows] == [(1, 51, 1.0), (2, 50, 1.0), (1, 51, 2.0)]
    parts = made.divided(list(range(101)), np.random.default_rng(1))
    assert [len(part) for part in parts] == [51, 50]
    assert sorted(parts[0] + parts[1]) == list(range(101))
    assert abs(np.mean(parts[0]) - 50) < 5 * 29 / np.sqrt(51)  # by chance, not by place
    assert parts[0] != list(range(51))
    for wrong in (((), 1, 1), (("a", "a"), 1, 1), (("a",), 1, 2), (("a",), 0, 1), (("a",), 1, 0)):
        with pytest.raises(ValueError, match="expected"):
            Schedule.of(*wrong)


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.txt").write_text("".join(f"p{i}\n" for i in range(7)), "utf-8")
    words = ["schedule", *ROUNDS, "--epsilon", "0.5", "--panels", "3"]
    assert main([*words, "--users", "900", "--invite", "people.txt", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["most"], [r["people"] for r in found["rounds"]]) == (0.5, [300] * 3)
    listed = [(tmp_path / path).read_text("utf-8").split() for path in found["lists"]]
    assert sorted(chain.from_iterable(listed)) == [f"p{i}" for i in range(7)]
    assert main(words) == 0
    assert "nobody answers more than 1 times" in capsys.readouterr().out
    for wrong in (["--users", "2"], ["--invite", "none.txt"]):
        assert main([*words, *wrong]) == 2
