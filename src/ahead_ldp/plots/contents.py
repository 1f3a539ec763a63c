"""What a report says: headings, sentences, pictures and tables in order, whichever file they are written to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ahead_ldp.device.codes import Attribute
from ahead_ldp.estimates.analysis.describing import has_total
from ahead_ldp.estimates.answers import Answers, Kind, about, percent
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.estimates.findings import Findings
from ahead_ldp.plots.changes import Change, draw_difference
from ahead_ldp.plots.densities import draw_density
from ahead_ldp.plots.findings import plot_findings
from ahead_ldp.plots.intervals import plot_answers
from ahead_ldp.plots.style import height_of_rows, new_figure
from ahead_ldp.schema.queries import Query
from ahead_ldp.schema.units import text, unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BANDS = "The dark band is the {0:g} % interval of each place, the light band holds at all places at once."
_LINES = "Thick lines are {0:g} % intervals, thin lines hold for all at once."


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: 1 is that of the page, 2 of a part, 3 inside of one."""

    text: str
    rank: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences; small ones are what must be known of the numbers."""

    text: str
    small: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A picture, and what it shows, in words."""

    figure: Figure
    caption: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts below a head; the first column says what a row is about, the others are numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = Heading | Paragraph | Picture | Table


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a report, and how sure its intervals are."""

    title: str = "Report"
    before: Estimate | None = None
    by: str | None = None
    level: float = 0.95
    kind: Kind | None = None
    headings: Mapping[str, str] | None = None

    def blocks(self, estimate: Estimate, queries: Sequence[str]) -> list[Block]:
        """Every attribute with its picture and sentences, then queries, groups and changes; a note stands once."""
        made: list[Block] = []
        for part in (
            self._head(estimate),
            *(self._attribute(estimate, a) for a in estimate.schema.attributes),
            self._queries(estimate, queries),
            self._groups(estimate),
            self._changes(estimate, queries),
        ):
            for block in part:
                if not isinstance(block, Paragraph) or block not in made:
                    made.append(block)
        return made

    def letters(self, estimate: Estimate, queries: Sequence[str]) -> str:
        """All letters of names, categories and headings, from which fonts are chosen."""
        schemas = [e.schema for e in (estimate, self.before) if e is not None]
        names = [text for s in schemas for a in s.attributes for text in (a.name, *a.labels)]
        return "".join([self.title, *queries, *names, *(self.headings or {}).values()])

    def _head(self, estimate: Estimate) -> Iterator[Block]:
        yield Heading(self.title, 1)
        origin = estimate.provenance
        if origin is not None:
            yield Paragraph(
                f"{origin.people:,} people took part. Noise was added to each answer before it was sent (epsilon"
                f" {origin.epsilon}: the smaller, the more noise). So a single answer tells little of the person who"
                f" gave it, and all answers together tell much. The method is {origin.method}."
            )
        yield Paragraph(
            f"All numbers are estimates. The interval beside a number holds the true one with a probability of"
            f" {100 * self.level:g} %."
        )

    def _attribute(self, estimate: Estimate, a: Attribute) -> Iterator[Block]:
        yield Heading((self.headings or {}).get(a.name, a.name))
        figure = new_figure(7.0, 2.75)
        answers = draw_density(figure.add_subplot(), estimate, a, None, self.level, self.kind)
        what = f"How many people have each value of {a.name}."
        reading = _LINES if a.labels else _BANDS
        yield Picture(figure, f"{what} {reading.format(100 * self.level)}")
        yield Paragraph(" ".join(self._sentences(estimate, a)))
        yield from _notes(answers.remarks(self.level, self.kind))

    def _sentences(self, estimate: Estimate, a: Attribute) -> Iterator[str]:
        """What is to be said of one attribute."""
        level, kind = self.level, self.kind
        if a.missing == "cell":
            missing = estimate.ask(Query({a.name: None}))
            (least,), (most,) = missing.interval(level, kind=kind)
            said = f"{percent(missing.values[0])} of the people gave no value ({percent(least)} to {percent(most)})"
            yield f"{said}." if a.labels else f"{said}: what follows is about the others."
        if a.labels:
            shares = estimate.histogram(a.name)
            low, high = (side.reshape(-1) for side in shares.interval(level, True, kind))
            top = int(shares.values.argmax())
            said = about(*(float(side[top]) for side in (shares.values, low, high)))
            yield f"The most common category is {shares.labels[a.name][top]}: about {said} of the people."
            return
        quartiles = [f"{at} ({low} to {high})" for at, low, high in estimate.quantiles(a.name).about(level, kind)]
        yield (
            f"A quarter of the people is at or below {quartiles[0]}, half at or below {quartiles[1]}, three quarters"
            f" at or below {quartiles[2]}."
        )
        mean = estimate.mean(a.name)
        least, most = mean._ends(level, kind)
        numbers = [text(a, x, (most - least) / 4) for x in (mean.number, least, most)]
        yield f"The mean is {numbers[0]} ({numbers[1]} to {numbers[2]})."
        yield f"The standard deviation is {' '.join(filter(None, [self._said(estimate.std(a.name)), unit(a)]))}."
        if has_total(a):
            yield f"The tenth with the most has {self._said(estimate.top_share(a.name, [0.1]))} of the total."
            yield f"The Gini coefficient is {self._said(estimate.gini(a.name))}."

    def _said(self, findings: Findings) -> str:
        (low,), (high,) = findings.interval(self.level, kind=self.kind)
        width = float(high - low)
        if findings.is_share:
            return about(findings.value, low, high)
        return f"{findings.said(findings.value, width)} ({findings.said(low, width)} to {findings.said(high, width)})"

    def _queries(self, estimate: Estimate, queries: Sequence[str]) -> Iterator[Block]:
        if not queries:
            return
        yield Heading("Queries")
        answers = estimate.ask(*queries)
        figure = new_figure(7.0, height_of_rows(answers.names))
        plot_answers(answers, ax=figure.add_subplot(), level=self.level, kind=self.kind)
        yield Picture(figure, f"The share of people whom each query holds. {_LINES.format(100 * self.level)}")
        yield self._shares(("query", "share"), answers, percent)
        yield from _notes(answers.remarks(self.level, self.kind))

    def _shares(self, what: tuple[str, str], answers: Answers, said: Callable[[float], str]) -> Table:
        """A row for each answer, with the interval of each for itself and with those of all at once."""
        many = len(answers) > 1
        sides = [answers.interval(self.level, together, self.kind) for together in (False, True)[: 1 + many]]
        rows = [
            (str(name), said(share), *(f"{said(low[i])} to {said(high[i])}" for low, high in sides))
            for i, (name, share) in enumerate(zip(answers.names, answers.values.tolist(), strict=True))
        ]
        return Table((*what, f"{100 * self.level:g} % interval", *["for all at once"] * many), tuple(rows))

    def _groups(self, estimate: Estimate) -> Iterator[Block]:
        if self.by is None:
            return
        yield Heading(f"Groups: {(self.headings or {}).get(self.by, self.by)}")
        groups = estimate.by(self.by)
        for a in estimate.schema.attributes:
            if a.name == self.by or a.labels:
                continue
            mean = groups.mean(a.name)
            yield Heading(f"Mean of {a.name}", 3)
            figure = new_figure(7.0, height_of_rows(mean.names))
            plot_findings(mean, figure.add_subplot(), self.level, self.kind)
            yield Picture(figure, f"The mean of {a.name} in each group. {_LINES.format(100 * self.level)}")
            yield self._numbers(mean)
            yield from _notes(mean.notes(self.level, self.kind)[len(mean) > 1 :])

    def _numbers(self, findings: Findings) -> Table:
        sides = [findings.interval(self.level, together, self.kind) for together in (False, True)]
        rows = []
        for i, (name, value) in enumerate(zip(findings.names, findings.values.tolist(), strict=True)):
            width = float(sides[0][1][i] - sides[0][0][i])
            ends = (
                f"{findings.said(low[i], high[i] - low[i])} to {findings.said(high[i], high[i] - low[i])}"
                for low, high in sides
            )
            rows.append((name, findings.said(value, width), *ends))
        return Table(("group", "mean", f"{100 * self.level:g} % interval", "for all at once"), tuple(rows))

    def _changes(self, estimate: Estimate, queries: Sequence[str]) -> Iterator[Block]:
        if self.before is None:
            return
        change = estimate.since(self.before)
        yield Heading("What changed")
        if queries:
            answers = change.ask(*queries)
            yield Paragraph("Each change is the share now less the share before, in points of percent.")
            yield self._shares(("query", "change"), answers, _points)
            yield from _notes(answers.remarks(self.level, self.kind))
        for name in change.shared:
            yield Heading((self.headings or {}).get(name, name), 3)
            yield from self._change(change, estimate.schema.attributes[estimate.schema.index(name)])

    def _change(self, change: Change, a: Attribute) -> Iterator[Block]:
        figure = new_figure(7.0, height_of_rows(a.labels) if a.labels else 4.6)
        answers = draw_difference(figure, change, a.name, self.level, self.kind)
        if a.labels:
            what = f"By how much the share of each category of {a.name} changed. {_LINES.format(100 * self.level)}"
        else:
            what = f"Above: people up to each value of {a.name}. Below: by how much they changed, in points of percent."
            what = f"{what} {_BANDS.format(100 * self.level)} Where the light band leaves 0, something changed."
        yield Picture(figure, what)
        yield Paragraph(change.test(a.name, self.level, self.kind).text())
        yield from _notes(answers.remarks(self.level, self.kind))


def _notes(lines: Iterable[str]) -> Iterator[Paragraph]:
    return (Paragraph(line, small=True) for line in lines)


def _points(change: float) -> str:
    """A change of a share in points of percent, with its sign."""
    points = round(100 * change, 1) + 0.0
    return f"{'+' if points > 0 else '−' if points < 0 else ''}{abs(points):.1f}"
