"""`ahead plan`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Annotated, Any

from ahead_ldp import mechanisms
from ahead_ldp.cli import drawing, inputs, printing
from ahead_ldp.cli.options import Declared, File, Settings, Text, flag, option
from ahead_ldp.cli.printing import Shown, Table, percent
from ahead_ldp.device import epsilon as limits
from ahead_ldp.engines import progress
from ahead_ldp.mechanisms import few_people
from ahead_ldp.research import accounting, evaluation, planner, splits, targets, widths
from ahead_ldp.research.figures import tradeoffs

_EXCHANGED = (0.5, 2.0)  # of epsilon, for the paper's rule
_CURVE = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
_WANTED = {
    "error": "for 95 % of random ranges",
    "range": "in the interval of a random range",
    "code": "in the interval of a single code",
    "quantile": "of the range in the interval of a quartile",
}
_COLUMN = {"error": "95 % within", "range": "± of a range", "code": "± of a code", "quantile": "± of a quartile"}
_START_USERS, _START_EPSILON = 100_000, "1"  # where a search begins


def plan(
    *,
    epsilon: Annotated[Text, option("--epsilon", "E", "Privacy parameter; left out, solved for.")] = None,
    users: Annotated[
        int | None, option("--users", "N", "How many people will take part; left out, solved for.")
    ] = None,
    declared: Declared,
    method: Annotated[
        Text, option("--method", "M[,M...]", "Several, or 'all', are compared; left out, the default.")
    ] = None,
    target: Annotated[
        Text, option("--target", "T", "Error that 95 % of random range answers keep: 1% or 0.01.")
    ] = None,
    meaning: Annotated[
        Text, option("--target-kind", "K", "error; or half the interval of a range, code or quantile.")
    ] = None,
    solve: Annotated[Text, option("--solve", "WHAT", "users, epsilon, buckets or attributes.")] = None,
    curve: Annotated[File, option("--curve", "FILE", "Draw error against epsilon: .png, .svg or .pdf.")] = None,
    delta: Annotated[
        float | None, option("--shuffle-delta", "D", "Also the central epsilon behind a shuffler, at this delta.")
    ] = None,
    minimum: Annotated[
        int | None, option("--minimum", "N", "A group with fewer reports is not counted; left out, 100.")
    ] = None,
    by: Annotated[Text, option("--by", "NAME", "Also what a split by the groups of this attribute costs.")] = None,
    simulate: Annotated[bool, flag("--simulate", "Simulate now, and read nothing from the tables.")] = False,
    settings: Settings,
) -> Shown:
    """Say what to expect of a collection before it begins.

    Errors and intervals are those of reference populations, from tables that
    were simulated in advance, or simulated now where these do not reach. No
    data are read. With --target, the people or the epsilon left out are found.
    """
    schema = inputs.declared_schema(declared)
    if schema is None:
        raise ValueError("expected the attributes, by --attribute or --schema")
    methods = _methods(method)
    if curve is not None:
        drawing.check_format(curve, "--curve")
    share, kind = 0.0 if target is None else _share(target), _meaning(meaning, target, curve)
    unknown = _unknown(epsilon, users, target, solve)
    if users is not None and users < 1:
        raise ValueError(f"expected users >= 1, got {users}")
    exact = float(inputs.epsilon(_START_EPSILON if epsilon is None else epsilon))
    case = targets.Case(schema, _START_USERS if users is None else users, exact, methods[0], str(settings))
    if delta is not None:
        accounting.central_epsilon(case.epsilon, case.users, delta)  # refuses a bad delta before the long part
    if by is not None:
        splits.asked_in_groups(schema, by)
    evaluation.check_runs(_choose(case)[0], schema)
    solution = None if unknown is None else targets.solve(case, unknown, share, printing.note, kind, simulate)
    case = case if solution is None else solution.forecast.case
    planned, applied = _plan(case, few_people.MINIMUM if minimum is None else minimum, simulate)
    compared = _compare(case, methods, kind, simulate) if len(methods) > 1 else []
    record = {**planned.record(), "settings": applied}
    if solution is not None:
        record["solution"] = solution.record()
    if compared:
        record["compared"] = [f.record() for f in compared]
    record |= {"exchange": _exchange(case), **_further(planned, by, delta)}
    if curve is not None:
        _draw(case, share, curve, kind, simulate)
        record["curve"] = str(curve)
    return Shown(record, _text(planned, solution, compared, record))


def _further(planned: planner.Plan, by: str | None, delta: float | None) -> dict[str, Any]:
    """What was asked for beside the plan: the cost of a split by groups, the privacy behind a shuffler."""
    found: dict[str, Any] = {}
    if by is not None:
        costs = splits.group_costs(planned.mechanism, planned.schema, planned.users, by)
        found["split"] = [cost.record() for cost in costs]
    if delta is not None:
        central = accounting.central_epsilon(float(planned.mechanism.epsilon), planned.users, delta)
        found["shuffled"] = {"delta": delta, "central_epsilon": central, "conditions": list(accounting.CONDITIONS)}
    return found


def _methods(method: str | None) -> list[str | None]:
    if method is None:
        return [None]
    return list(mechanisms.MECHANISMS) if method == "all" else list(inputs.split(method, "--method"))


def _unknown(epsilon: str | None, users: int | None, target: str | None, solve: str | None) -> Any:
    """What is to be found: what --solve names, or what was left out; None where everything is known."""
    absent = [name for name, value in (("users", users), ("epsilon", epsilon)) if value is None]
    unknown = solve or (absent[0] if absent else None)
    if unknown is not None and unknown not in targets.UNKNOWNS:
        raise ValueError(f"expected --solve to be one of {', '.join(targets.UNKNOWNS)}, got {unknown!r}")
    if unknown is not None and target is None:
        raise ValueError(f"expected --target when {unknown} is to be found, or --users and --epsilon")
    if unknown is None and target is not None:
        raise ValueError("expected --target with --solve, or with --users or --epsilon left out")
    if set(absent) - {unknown}:
        raise ValueError(f"expected one unknown, got {' and '.join(sorted({*absent, str(unknown)}))}: give the others")
    return unknown


def _meaning(text: str | None, target: str | None, curve: Path | None) -> targets.Meaning:
    if text is None:
        return "error"
    if text not in targets.MEANINGS:
        raise ValueError(f"expected --target-kind to be one of {', '.join(targets.MEANINGS)}, got {text!r}")
    if target is None and curve is None:
        raise ValueError("expected --target or --curve with --target-kind")
    return text


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise ValueError(f"expected --target to be a share such as 1% or 0.01, got {text!r}")
    return share


def _choose(case: targets.Case) -> Any:
    epsilon = inputs.epsilon(case.epsilon)
    return evaluation.choose(case.method, case.schema, epsilon, case.users, case.settings)


def _plan(case: targets.Case, minimum: int, simulate: bool) -> tuple[planner.Plan, str]:
    mechanism, applied = _choose(case)
    if hasattr(mechanism, "group_people"):
        mechanism = replace(mechanism, group_people=few_people.group_people(minimum))
    with progress.Bar("predicting") as bar:
        planned = planner.plan(mechanism, case.schema, case.users, bar, minimum, simulate)
    if planned.source == "simulation" and not simulate:
        printing.note(f"note: simulated, since {planned.simulated}")
    for warning in planned.warnings:
        printing.note(f"warning: {warning}")
    return planned, applied


def _compare(
    case: targets.Case, methods: Sequence[str | None], meaning: targets.Meaning, simulate: bool
) -> list[targets.Forecast]:
    """Forecasts of all methods that take these attributes, the least error first."""
    forecasts = []
    with progress.Bar("comparing") as bar:
        for i, method in enumerate(methods):
            try:
                forecasts.append(targets.forecast(replace(case, method=method), meaning=meaning, simulate=simulate))
            except ValueError as error:
                printing.note(f"left out: {error}")
            bar(i + 1, len(methods))
    return sorted(forecasts, key=lambda f: f.error)


def _exchange(case: targets.Case) -> list[dict[str, Any]]:
    """How many people give the same error at other epsilons that a campaign may have."""
    others = [float(f"{case.epsilon * factor:.4g}") for factor in _EXCHANGED]
    others = [e for e in others if limits.LEAST_NEW <= e <= limits.MOST_NEW]
    return [{"epsilon": e, "users": targets.exchange(case, e)} for e in others]


def _draw(case: targets.Case, target: float, path: Path, meaning: targets.Meaning, simulate: bool) -> None:
    people = sorted({max(case.users // 10, 1), case.users, case.users * 10})
    points = [(users, epsilon) for users in people for epsilon in _CURVE]
    curves: dict[int, list[targets.Forecast]] = {users: [] for users in people}
    with progress.Bar("drawing") as bar:
        for i, (users, epsilon) in enumerate(points, start=1):
            point = replace(case, users=users, epsilon=epsilon)
            repeats = 3 if meaning == "error" else 1
            curves[users].append(targets.forecast(point, repeats, meaning=meaning, simulate=simulate))
            bar(i, len(points))
    drawing.save(tradeoffs.plot_tradeoff(curves, target or None), path)


def _text(
    planned: planner.Plan,
    solution: targets.Solution | None,
    compared: Sequence[targets.Forecast],
    record: dict[str, Any],
) -> Iterator[str | Table]:
    if solution is not None:
        yield from (_solved(solution), "")
    epsilon = float(planned.mechanism.epsilon)
    title = f"{planned.mechanism.name} ({record['settings']}), epsilon {epsilon:g}, {planned.users:,} people"
    yield Table(title, ["what", "value"], list(_facts(planned, record)), left=2)
    rows = [
        [p.shape, f"{p.people:,}", printing.error_text(p.mse), percent(sqrt(p.mse.mean))] for p in planned.predictions
    ]
    first = planned.predictions[0]
    how = f"simulated, {first.queries} random queries, {first.repeats} repetitions"
    if planned.source == "table":
        how = f"from a table, {first.queries} random queries"
    title = f"Predicted error: {how}"
    yield from ("", Table(title, ["reference shape", "people", "MSE ± 95 %", "typical error"], rows))
    yield from ("", _intervals(planned))
    if "split" in record:
        yield from ("", _split(record["split"]))
    if compared:
        body = [[f.method, f.source, percent(f.error), *(f"{x:.2e}" for x in f.mse.values())] for f in compared]
        head = ["method", "from a", _COLUMN[compared[0].meaning], *(f"MSE, {shape}" for shape in compared[0].mse)]
        yield from ("", Table("Methods compared, least error first", head, body, left=2))
    if first.people < planned.users:
        printing.note(f"note: the domain is too wide for more than {first.people:,} reference people")
    if "curve" in record:
        yield f"written: {record['curve']}"
    if "shuffled" in record:
        printing.note("the central epsilon holds if: " + "; ".join(accounting.CONDITIONS))


def _intervals(planned: planner.Plan) -> Table:
    """How far the intervals that will be printed reach to either side."""
    rows = [
        [w.shape, *("" if (half := w.half[kind]) is None else f"±{percent(half)}" for kind in widths.KINDS)]
        for w in planned.widths
    ]
    repeats = planned.widths[0].repeats
    how = f"in the mean of {repeats} repetitions" if repeats else "from a table"
    title = f"Predicted 95 % intervals, {how}"
    return Table(title, ["reference shape", "a random range", "a single code", "a quartile (of the range)"], rows)


def _split(costs: Sequence[dict[str, Any]]) -> Table:
    """What can be said of every group of people, beside everybody."""
    rows = [[c["shape"], c["group"], percent(c["share"]), f"±{percent(c['half'])}", f"{c['times']:.0f}"] for c in costs]
    whole = ", ".join(f"±{percent(c['everybody'])} ({c['shape']})" for c in {c["shape"]: c for c in costs}.values())
    title = f"A share inside a group, 95 % interval; the same share among everybody: {whole}"
    return Table(title, ["reference shape", "group", "of the people", "in the group", "times as wide"], rows)


def _solved(solution: targets.Solution) -> str:
    value = f"{solution.value:,.0f}" if solution.unknown != "epsilon" else f"{solution.value:g}"
    wanted = f"±{100 * solution.target:g} % {_WANTED[solution.forecast.meaning]}"
    error = percent(solution.forecast.error)
    if solution.reached:
        how = "simulated" if solution.forecast.source == "simulation" else "from a table"
        return f"{solution.unknown} = {value} keeps {wanted} ({how}: {error})"
    return f"out of reach: {wanted}; the best tried is {solution.unknown} = {value} with {error}"


def _facts(planned: planner.Plan, record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "attributes", ", ".join(f"{a.name} ({a.kind}, {a.size} codes)" for a in planned.schema.attributes)
    people = [group.people for group in planned.groups]
    each = f"{len(people)}, of about {_range(min(people), max(people), ',.0f')} people each" if people else ""
    yield "groups", each or "none, nobody is asked"
    yield from _people(record["turnout"]) if people else ()
    if planned.fanout is not None:
        yield "fanout", str(planned.fanout)
    if planned.theta is not None:
        yield "theta", _range(*planned.theta, ".4f")
    if planned.report_bytes is not None:
        yield "report", f"{_range(*planned.report_bytes, 'd')} bytes, 16 of them its random name"
    same = [f"{e['users']:,} people at epsilon {e['epsilon']:g}" for e in record["exchange"]]
    yield "same error by N ε²", ", ".join(same)
    if "shuffled" in record:
        central, delta = record["shuffled"]["central_epsilon"], record["shuffled"]["delta"]
        yield "behind a shuffler", f"central epsilon {central:.4g} at delta {delta:g}"


def _people(staffing: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Who is asked when, and whether the people are enough."""
    people = [wave["people"] for wave in staffing["waves"]]
    yield "waves", f"{len(people)}, of about {_range(min(people), max(people), ',.0f')} people each"
    if staffing["left_out"]:
        yield "since people are few", staffing["left_out"]
    sure = printing.certainty(staffing["chance"], staffing["turnout"])
    yield f"groups reach {staffing['minimum']:,} reports", f"chance at least {sure}"
    if staffing["reports"] >= staffing["minimum"]:
        yield "waves may close at", f"{staffing['reports']:,} reports of every group"


def _range(low: float, high: float, form: str) -> str:
    first, last = format(low, form), format(high, form)
    return first if first == last else f"{first} to {last}"
