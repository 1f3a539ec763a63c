"""`ahead plan`."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from pathlib import Path

from ahead_ldp.cli import inputs, printing
from ahead_ldp.evaluation import check_runs, choose
from ahead_ldp.planner import Plan
from ahead_ldp.planner import plan as make_plan
from ahead_ldp.progress import Bar


def run(
    attributes: Sequence[str] | None,
    schema_file: Path | None,
    epsilon: str,
    users: int,
    method: str | None,
    settings: str,
    as_json: bool,
) -> None:
    """Plan and print."""
    schema = inputs.declared_schema(attributes, schema_file)
    if schema is None:
        raise ValueError("expected the attributes, by --attribute or --schema")
    mechanism, applied = choose(method, schema, epsilon, users, settings)
    check_runs(mechanism, schema)
    with Bar("predicting") as bar:
        plan = make_plan(mechanism, schema, users, bar)
    for warning in plan.warnings:
        printing.note(f"warning: {warning}")
    if as_json:
        printing.print_json({**plan.record(), "settings": applied})
        return
    title = f"{mechanism.name} ({applied}), epsilon {float(mechanism.epsilon):g}, {users:,} people"
    printing.print_table(title, ["what", "value"], _facts(plan), left=2)
    rows = [
        [p.shape, f"{p.people:,}", printing.error_text(p.mse), f"{100 * sqrt(p.mse.mean):.2f} %"]
        for p in plan.predictions
    ]
    print()
    first = plan.predictions[0]
    title = f"Predicted error: simulated, {first.queries} random queries, {first.repeats} repetitions"
    printing.print_table(title, ["reference shape", "people", "MSE ± 95 %", "typical error"], rows)
    if first.people < users:
        printing.note(f"note: the domain is too wide for more than {first.people:,} reference people")


def _facts(plan: Plan) -> list[list[str]]:
    facts = [["attributes", ", ".join(f"{a.name} ({a.kind}, {a.size} codes)" for a in plan.schema.attributes)]]
    people = [group.people for group in plan.groups]
    if people:
        each = _range(min(people), max(people), ",.0f")
        facts.append(["groups", f"{len(people)}, of about {each} people each"])
    else:
        facts.append(["groups", "none, nobody is asked"])
    facts.append(["waves", str(plan.waves)])
    if plan.fanout is not None:
        facts.append(["fanout", str(plan.fanout)])
    if plan.theta is not None:
        facts.append(["theta", _range(*plan.theta, ".4f")])
    if plan.report_bytes is not None:
        facts.append(["report", f"{_range(*plan.report_bytes, 'd')} bytes, 16 of them its random name"])
    return facts


def _range(low: float, high: float, form: str) -> str:
    first, last = format(low, form), format(high, form)
    return first if first == last else f"{first} to {last}"
