"""`ahead plan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from ahead_ldp.cli import inputs, printing
from ahead_ldp.cli.plot import FORMATS
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import epsilon_text
from ahead_ldp.engines.progress import Bar
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.research.accounting import CONDITIONS, central_epsilon
from ahead_ldp.research.evaluation import check_runs, choose
from ahead_ldp.research.figures.tradeoffs import plot_tradeoff
from ahead_ldp.research.planner import Plan
from ahead_ldp.research.planner import plan as make_plan
from ahead_ldp.research.targets import UNKNOWNS, Case, Forecast, Solution, exchange, forecast, solve

_EXCHANGED = (0.5, 2.0)  # of epsilon, for the paper's rule
_CURVE = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
_START = {"users": 100_000, "epsilon": 1.0}  # where a search begins
_Row = list[str]


def run(
    attributes: Sequence[str] | None,
    schema_file: Path | None,
    given: Mapping[str, Any],
    wanted: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Solve if asked, plan, and print."""
    schema = inputs.declared_schema(attributes, schema_file)
    if schema is None:
        raise ValueError("expected the attributes, by --attribute or --schema")
    methods = _methods(wanted["method"])
    curve: Path | None = wanted["curve"]
    if curve is not None and curve.suffix.lower() not in FORMATS:
        raise ValueError(f"expected --curve to end in {', '.join(FORMATS)}, got {str(curve)!r}")
    case, unknown, target = _case(schema, given, methods[0], wanted["settings"])
    if wanted["delta"] is not None:
        central_epsilon(case.epsilon, case.users, wanted["delta"])  # refuses a delta that is none before the long part
    check_runs(choose(case.method, schema, epsilon_text(case.epsilon), case.users, case.settings)[0], schema)
    solution = None if unknown is None else solve(case, unknown, target, printing.note)
    case = case if solution is None else solution.forecast.case
    shown: dict[str, Any] = {}
    plan, applied = _plan(case)
    for warning in plan.warnings:
        printing.note(f"warning: {warning}")
    shown |= {**plan.record(), "settings": applied}
    if solution is not None:
        shown["solution"] = solution.record()
    compared = _compare(case, methods) if len(methods) > 1 else []
    if compared:
        shown["compared"] = [f.record() for f in compared]
    shown["exchange"] = [{"epsilon": e, "users": exchange(case, e)} for e in _exchanged(case)]
    if wanted["delta"] is not None:
        central = central_epsilon(case.epsilon, case.users, wanted["delta"])
        shown["shuffled"] = {"delta": wanted["delta"], "central_epsilon": central, "conditions": list(CONDITIONS)}
    if curve is not None:
        _draw(case, target, curve)
        shown["curve"] = str(curve)
    if as_json:
        printing.print_json(shown)
    else:
        _print(plan, applied, solution, compared, shown)


def _methods(method: str | None) -> list[str | None]:
    if method is None:
        return [None]
    return list(MECHANISMS) if method == "all" else list(inputs.split(method, "--method"))


def _case(schema: Schema, given: Mapping[str, Any], method: str | None, settings: str) -> tuple[Case, Any, float]:
    """The case, what is unknown of it (None: nothing), and the target."""
    target = _target(given["target"]) if given["target"] is not None else 0.0
    absent = [name for name in ("users", "epsilon") if given[name] is None]
    unknown = given["solve"] or (absent[0] if absent else None)
    if unknown is not None and unknown not in UNKNOWNS:
        raise ValueError(f"expected --solve to be one of {', '.join(UNKNOWNS)}, got {unknown!r}")
    if unknown is not None and given["target"] is None:
        raise ValueError(f"expected --target when {unknown} is to be found, or --users and --epsilon")
    if unknown is None and given["target"] is not None:
        raise ValueError("expected --target with --solve, or with --users or --epsilon left out")
    if [name for name in absent if name != unknown]:
        raise ValueError(f"expected one unknown, got {' and '.join(sorted({*absent, str(unknown)}))}: give the others")
    if given["users"] is not None and given["users"] < 1:
        raise ValueError(f"expected users >= 1, got {given['users']}")
    users = _START["users"] if given["users"] is None else given["users"]
    epsilon = _START["epsilon"] if given["epsilon"] is None else float(epsilon_text(given["epsilon"]))
    return Case(schema, int(users), epsilon, method, settings), unknown, target


def _target(text: str) -> float:
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = 0.0
    if not 0 < found < 1:
        raise ValueError(f"expected --target to be a share such as 1% or 0.01, got {text!r}")
    return found


def _plan(case: Case) -> tuple[Plan, str]:
    mechanism, applied = choose(case.method, case.schema, epsilon_text(case.epsilon), case.users, case.settings)
    with Bar("predicting") as bar:
        return make_plan(mechanism, case.schema, case.users, bar), applied


def _compare(case: Case, methods: Sequence[str | None]) -> list[Forecast]:
    """Forecasts of all methods that take these attributes, the least error first."""
    found = []
    with Bar("comparing") as bar:
        for i, method in enumerate(methods):
            try:
                found.append(forecast(Case(case.schema, case.users, case.epsilon, method, case.settings)))
            except ValueError as error:
                printing.note(f"left out: {error}")
            bar(i + 1, len(methods))
    return sorted(found, key=lambda f: f.error)


def _exchanged(case: Case) -> list[float]:
    return [float(f"{case.epsilon * factor:.4g}") for factor in _EXCHANGED]


def _draw(case: Case, target: float, path: Path) -> None:
    people = sorted({max(case.users // 10, 1), case.users, case.users * 10})
    curves: dict[int, list[Forecast]] = {}
    with Bar("drawing") as bar:
        for i, users in enumerate(people):
            curves[users] = []
            for j, epsilon in enumerate(_CURVE):
                curves[users].append(forecast(Case(case.schema, users, epsilon, case.method, case.settings), repeats=3))
                bar(i * len(_CURVE) + j + 1, len(people) * len(_CURVE))
    path.parent.mkdir(parents=True, exist_ok=True)
    plot_tradeoff(curves, target or None).savefig(path, dpi=150)


def _print(
    plan: Plan, applied: str, solution: Solution | None, compared: Sequence[Forecast], shown: Mapping[str, Any]
) -> None:
    case_epsilon = float(plan.mechanism.epsilon)
    if solution is not None:
        _print_solution(solution)
        print()
    title = f"{plan.mechanism.name} ({applied}), epsilon {case_epsilon:g}, {plan.users:,} people"
    printing.print_table(title, ["what", "value"], _facts(plan, shown), left=2)
    rows = [
        [p.shape, f"{p.people:,}", printing.error_text(p.mse), f"{100 * sqrt(p.mse.mean):.2f} %"]
        for p in plan.predictions
    ]
    print()
    first = plan.predictions[0]
    title = f"Predicted error: simulated, {first.queries} random queries, {first.repeats} repetitions"
    printing.print_table(title, ["reference shape", "people", "MSE ± 95 %", "typical error"], rows)
    if compared:
        print()
        body = [[f.method, f"{100 * f.error:.2f} %", *(f"{x:.2e}" for x in f.mse.values())] for f in compared]
        head = ["method", "95 % within", *(f"MSE, {shape}" for shape in compared[0].mse)]
        printing.print_table("Methods compared, least error first", head, body)
    if first.people < plan.users:
        printing.note(f"note: the domain is too wide for more than {first.people:,} reference people")
    if "curve" in shown:
        print(f"written: {shown['curve']}")
    if "shuffled" in shown:
        printing.note("the central epsilon holds if: " + "; ".join(CONDITIONS))


def _print_solution(solution: Solution) -> None:
    value = f"{solution.value:,.0f}" if solution.unknown != "epsilon" else f"{solution.value:g}"
    wanted = f"±{100 * solution.target:g} % for 95 % of random ranges"
    error = f"{100 * solution.forecast.error:.2f} %"
    if solution.reached:
        print(f"{solution.unknown} = {value} keeps {wanted} (simulated: {error})")
    else:
        print(f"out of reach: {wanted}; the best tried is {solution.unknown} = {value} with {error}")


def _facts(plan: Plan, shown: Mapping[str, Any]) -> list[_Row]:
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
    same = ", ".join(f"{e['users']:,} people at epsilon {e['epsilon']:g}" for e in shown["exchange"])
    facts.append(["same error by N ε²", same])
    if "shuffled" in shown:
        found = shown["shuffled"]
        facts.append(
            ["behind a shuffler", f"central epsilon {found['central_epsilon']:.4g} at delta {found['delta']:g}"]
        )
    return facts


def _range(low: float, high: float, form: str) -> str:
    first, last = format(low, form), format(high, form)
    return first if first == last else f"{first} to {last}"
