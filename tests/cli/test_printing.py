"""Tables in narrow terminals: no number is cut off, and every row keeps its name."""

import re

import pytest

from ahead_ldp.cli.printing import Table

NUMBERS = ["7.70e-03 ± 2.8e-03", "5.90e-02 ± 1.4e-02", "1.34e-01 ± 2.7e-02", "0.5 ms", "33.6 kB"]
WIDE = Table(
    "A title", ["method", "settings", "MSE", "W1", "KS", "build", "memory"],
    [["mine", "default", *NUMBERS], ["flat", "default", *NUMBERS]], left=2,
)  # fmt: skip


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 160])
def test_every_number_is_whole_and_beside_its_name(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = str(WIDE).splitlines()
    assert max(map(len, lines)) <= columns
    assert "…" not in str(WIDE)
    for name in ("mine", "flat"):
        told = " ".join(re.sub(r"\s+", " ", line) for line in lines if line.startswith(name))
        assert all(number in told for number in NUMBERS)


def test_what_fits_is_one_table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert WIDE.parts(160) == [list(range(7))]
    assert len(str(WIDE).splitlines()) == 5


def test_text_is_broken_before_numbers_are_moved():
    table = Table("", ["query", "share"], [["age between thirty and forty, or above sixty", "12.3 %"]])
    assert table.parts(30) == [[0, 1]]


def test_a_number_that_is_wider_than_the_terminal_stands_alone():
    assert WIDE.parts(10) == [[0, 1, i] for i in range(2, 7)]


def test_a_title_is_not_broken_at_the_width_of_a_narrow_table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    title = "people.csv, N = 20,000: the mean squared error ± 95 %"
    assert str(Table(title, ["method", "MSE"], [["ahead", "1.0"]])).splitlines()[0] == title
