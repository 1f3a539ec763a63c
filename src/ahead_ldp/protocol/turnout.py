"""Will the people be enough? Waves, people per group, and the chance that every group reaches its minimum.

A campaign promises that a group is counted only if it has so many reports. It declares how many people it expects, and
fewer may come. What is planned here holds at a turnout of 80 %, with a chance of at least 99 %.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ahead_ldp.device.canonical import Record
from ahead_ldp.device.codes import Schema
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.protocol.mechanism import Group, Mechanism

TURNOUT = 0.8  # of the people expected, at which a plan has to work
CERTAINTY = 0.99  # the chance with which it has to
_MOST_PEOPLE = 10**12  # unit: where a search for enough people ends


class TooFewPeople(ValueError):
    """No plan works for the people expected; the text says what would, and the fields hold its numbers."""

    def __init__(self, said: str, planned: Staffing, *, enough: int = 0, attributes: int = 0, of: int = 0) -> None:
        """``enough`` people would do, or so many ``attributes`` of all; else a wave waits for too many reports."""
        super().__init__(said)
        self.users, self.minimum = planned.users, planned.minimum
        self.enough, self.attributes, self.of = enough, attributes, of
        self.most_reports = None if enough else planned.reports


@dataclass(frozen=True, slots=True)
class Staffing:
    """How the people expected are spread over waves and groups, and how sure it is that they are enough."""

    users: int
    minimum: int  # reports of a group, without which it is not counted
    waves: tuple[tuple[tuple[str, float], ...], ...]  # of every wave its groups, each with the people expected
    chance: float  # that every group reaches the minimum at a turnout of 80 %; at least
    reports: int  # of every group, which a wave may wait for: they come at a turnout of 80 %, with 99 % certainty
    left_out: str  # what is not asked since the people are few

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return sum(map(len, self.waves))

    @property
    def wave_people(self) -> list[float]:
        """The people expected in every wave."""
        return [sum(people for _, people in wave) for wave in self.waves]

    @property
    def smallest(self) -> float:
        """The people expected in the smallest group."""
        return min((people for wave in self.waves for _, people in wave), default=0.0)

    def counted(self, reports: int) -> float:
        """About how many people come before every wave has so many reports of every group, if they keep coming."""
        return sum(
            reports * people / min(own for _, own in wave)
            for wave, people in zip(self.waves, self.wave_people, strict=True)
        )

    @property
    def works(self) -> bool:
        """Whether the minimum is reached surely enough."""
        return self.chance >= CERTAINTY

    def record(self) -> Record:
        """As plain values."""
        return {
            "users": self.users,
            "minimum": self.minimum,
            "waves": [
                {"wave": k, "people": people, "groups": len(wave)}
                for k, (wave, people) in enumerate(zip(self.waves, self.wave_people, strict=True), start=1)
            ],
            "groups": self.groups,
            "smallest_group": self.smallest,
            "turnout": TURNOUT,
            "chance": self.chance,
            "reports": self.reports,
            "left_out": self.left_out,
        }


def staffing(
    mechanism: Mechanism, schema: Schema, users: int, minimum: int, asked: Sequence[Sequence[str]] | None = None
) -> Staffing:
    """How so many people are spread over the method's waves and groups; ``asked`` is who is asked when, if known."""
    groups = mechanism.groups(schema)
    people = dict(zip((g.id for g in groups), (users * share for share in _shares(groups)), strict=True))
    waves = tuple(tuple((name, people[name]) for name in wave) for wave in asked or _waves(mechanism, schema))
    sure, most = chance(groups, users, minimum), most_reports(groups, users)
    return Staffing(users, minimum, waves, sure, most, mechanism.left_out(schema))


def check_people(mechanism: Mechanism, schema: Schema, users: int, minimum: int, wanted: int | None = None) -> Staffing:
    """The staffing, if every group reaches the minimum surely enough; else ``TooFewPeople``, with what would do.

    ``wanted`` is how many reports of every group a wave is to wait for, if not the minimum.
    """
    planned = staffing(mechanism, schema, users, minimum)
    if not planned.works:
        raise _too_few(mechanism, schema, planned)
    if wanted is not None and wanted > planned.reports:
        raise TooFewPeople(
            f"expected closing.reports to be at most {planned.reports:,}, got {wanted:,}: at {_percent(TURNOUT)} of "
            f"{users:,} people the smallest of {planned.groups} groups may have no more, and its wave would not close",
            planned,
        )
    return planned


def chance(groups: Sequence[Group], users: int, minimum: int, turnout: float = TURNOUT) -> float:
    """At least how likely it is that every group has its minimum, where everybody comes with the chance ``turnout``.

    The reports of a group are binomial; the chances that single groups fall short are added up (Boole).
    """
    from scipy.special import bdtr

    if minimum > users:
        return 0.0 if groups else 1.0
    return max(0.0, 1.0 - float(sum(bdtr(minimum - 1, users, turnout * share) for share in _shares(groups))))


def most_reports(groups: Sequence[Group], users: int) -> int:
    """The most reports that every group has at a turnout of 80 %, with a chance of 99 %; 0: there are none."""
    return _last(lambda reports: chance(groups, users, reports) >= CERTAINTY, 0, users)


def fewest_people(mechanism: Mechanism, schema: Schema, minimum: int) -> int:
    """How many people a method needs for these attributes; methods that plan with the number are told it."""
    plans = "users" in {f.name for f in dataclasses.fields(mechanism)}

    def too_few(users: int) -> bool:
        """Whether so many would not do."""
        told = dataclasses.replace(mechanism, users=users) if plans else mechanism  # type: ignore[call-arg]
        return chance(told.groups(schema), users, minimum) < CERTAINTY

    return _last(too_few, 0, _MOST_PEOPLE) + 1


def most_attributes(mechanism: Mechanism, schema: Schema, users: int, minimum: int) -> int:
    """How many of the attributes, from the first on, so many people are enough for."""
    for count in range(len(schema.attributes) - 1, 0, -1):
        if chance(mechanism.groups(Schema(schema.attributes[:count])), users, minimum) >= CERTAINTY:
            return count
    return 0


def refusal(mechanism: Mechanism, schema: Schema, planned: Staffing) -> str:
    """Why the people expected are too few, and what would do."""
    return str(_too_few(mechanism, schema, planned))


def _too_few(mechanism: Mechanism, schema: Schema, planned: Staffing) -> TooFewPeople:
    users, minimum, count = planned.users, planned.minimum, len(schema.attributes)
    few, enough = most_attributes(mechanism, schema, users, minimum), fewest_people(mechanism, schema, minimum)
    ways = [f"{enough:,} people"]
    ways += [f"at most {few} of the {count} attributes"] * (few > 0)
    groups = f"{planned.groups} group{'s' * (planned.groups > 1)}"
    said = (
        f"expected enough people for {groups} of the method {mechanism.name}, got {users:,}: at a turnout of "
        f"{_percent(TURNOUT)} every group reaches {minimum:,} reports with a chance of {_percent(planned.chance)}, "
        f"and {_percent(CERTAINTY)} are needed. What would do: {', or '.join(ways)}"
    )
    return TooFewPeople(said, planned, enough=enough, attributes=few, of=count)


def _percent(share: float) -> str:
    return f"{int(1000 * share) / 10:g} %"


def _waves(mechanism: Mechanism, schema: Schema) -> list[list[str]]:
    """The groups of every wave, from a run that nobody answers: they do not depend on what is said."""
    run, waves = mechanism.run(schema), list[list[str]]()
    try:
        wave = next(run)
        while True:
            waves.append(list(wave))
            wave = run.send({group: Tally.empty(question.oracle.outcomes) for group, question in wave.items()})
    except StopIteration:
        return waves


def _shares(groups: Sequence[Group]) -> list[float]:
    everybody = sum(group.share for group in groups)
    return [group.share / everybody for group in groups]


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last number for which something holds, which it does up to there; ``low`` where it never does."""
    step = 1
    while low + step <= high and holds(low + step):
        low, step = low + step, 2 * step
    high = min(high, low + step - 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
