"""How many groups so many people can be asked in: one rule for the default methods and for campaigns (decision 019)."""

from __future__ import annotations

from math import sqrt

MINIMUM = 100  # reports that a group is promised to have before it is counted, where nobody says otherwise
_FEWER = 0.7  # of the people expected may come, and groups still reach the minimum (decision 019)
_SHORT_SD = 3.4  # standard deviations by which a group may then fall short by chance (decision 019)
_ROUNDING = 1e-9  # tolerance: of a quotient that would be whole but for its last bits


def group_people(minimum: int) -> int:
    """How many people a group is to expect, so that it reaches its minimum though 30 % of them stay away."""
    root = (_SHORT_SD + sqrt(_SHORT_SD**2 + 4 * minimum)) / 2  # n - 3.4 sqrt(n) = minimum
    return round(root**2 / _FEWER)


GROUP_PEOPLE = group_people(MINIMUM)


def groups_of(users: float, least: int) -> int:
    """How many groups of ``least`` people so many are enough for; one at any rate."""
    return whole(users / least)


def whole(people: float) -> int:
    """So many people or groups, rounded down; one at any rate."""
    return max(1, int(people + _ROUNDING))


def divide(users: float | None, least: int, scales: int, shifts: int) -> tuple[int, int]:
    """The scales and shifts of one attribute, at most so many, for the people who are to be asked about it.

    Every scale is kept while there is a group for it: shifts go first. Nobody declared means as many as it takes.
    """
    if users is None:
        return scales, shifts
    groups = groups_of(users, least)
    kept = min(scales, groups)
    return kept, min(shifts, groups // kept)


def fewer_groups(asked: int, full: int) -> str:
    """What a plan says where there are fewer groups than many people would get; empty if there are not."""
    return f"{asked} group{'s' * (asked > 1)} instead of {full}" if asked < full else ""
