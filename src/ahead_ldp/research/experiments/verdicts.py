"""A finding, and what became of it: the rule must be met by our results and refuse wrong ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ahead_ldp.research.experiments.results import NotMeasured, Rule, View


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence of the paper, the rule that stands for it, and the counter-examples that the rule must refuse."""

    name: str
    figure: str
    sentence: str
    rule_name: str
    rule: Rule
    refuses: tuple[str, ...] = ("uni", "shuffled")
    beside: str = ""  # another figure that the rule looks at


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a finding: "agrees", "differs", or "undecided" with the reason.

    A rule that lets a counter-example pass on these results has no power on them: then nothing is claimed.
    """

    finding: Finding
    outcome: str
    evidence: str
    refused: dict[str, bool]


SHUFFLES = 20
MOST_LET_IN = 1  # of the shuffles: one in twenty


def judge(finding: Finding, view: View) -> Verdict:
    """Apply the rule to the results, and to the counter-examples."""
    shown = view.only((finding.figure, finding.beside))
    try:
        evidence = finding.rule(shown)
        refused = {name: refuses(finding.rule, shown, name) for name in finding.refuses}
    except NotMeasured as reason:
        return Verdict(finding, "undecided", str(reason), {})
    if evidence.met and not all(refused.values()):
        let_in = ", ".join(name for name, no in refused.items() if not no)
        return Verdict(
            finding, "undecided", f"the rule has no power here, it accepts: {let_in}. {evidence.text}", refused
        )
    return Verdict(finding, "agrees" if evidence.met else "differs", evidence.text, refused)


def left_open(verdict: Verdict, why: str) -> Verdict:
    """The verdict of results that cannot decide: undecided, with what they would have said."""
    if verdict.outcome == "undecided":
        return verdict
    return replace(
        verdict, outcome="undecided", evidence=f"{why}; on these results it {verdict.outcome}: {verdict.evidence}"
    )


def refuses(rule: Rule, view: View, name: str) -> bool:
    """Whether a rule rejects Uni in the place of the paper's method ("uni"), or labels drawn at random ("shuffled")."""
    if name == "uni":
        return not rule(view.with_uni()).met
    return sum(rule(view.shuffled(i)).met for i in range(SHUFFLES)) <= MOST_LET_IN


def judge_all(findings: Iterable[Finding], view: View) -> list[Verdict]:
    """Every finding about the figures of a view."""
    return [judge(finding, view) for finding in findings if finding.figure in view.figures]
