"""`ahead evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ahead_ldp.cli import inputs, printing
from ahead_ldp.device.codes import Schema
from ahead_ldp.engines.progress import Bar
from ahead_ldp.engines.simulation import Population
from ahead_ldp.research.evaluation import Score, Task, check_runs, choose, measure, people_of, workload_rng
from ahead_ldp.schema.workloads import Workload, random_workload


def run(
    source: Mapping[str, Any],
    declared: Mapping[str, Any],
    epsilon: str,
    method: str | None,
    settings: str,
    asked: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Measure every method at every epsilon, and print."""
    for option, least in (("repeats", 1), ("seed", 0)):
        if asked[option] < least:
            raise ValueError(f"expected --{option} >= {least}, got {asked[option]}")
    epsilons = inputs.epsilons(epsilon)
    methods = [None] if method is None else inputs.split(method, "--method")
    schema, people, data = _people(source, inputs.declared_schema(**declared))
    workload = _workload(schema, asked)
    chosen = [choose(name, schema, e, people.n, settings) for name in methods for e in epsilons]
    for mechanism, _ in chosen:
        check_runs(mechanism, schema, workload)
    task, repeats, done = Task.of(schema, people, workload), asked["repeats"], 0
    with Bar("evaluating") as bar:

        def step() -> None:
            """One repetition is done."""
            nonlocal done
            done += 1
            bar(done, repeats * len(chosen))

        scores = [measure(task, mechanism, repeats, asked["seed"], label, step) for mechanism, label in chosen]
    data["queries"] = {"source": str(asked["queries"] or "random"), "count": workload.n}
    if as_json:
        printing.print_json({"data": data, "results": [score.record() for score in scores]})
    else:
        _print(data, scores)


def _people(source: Mapping[str, Any], declared: Schema | None) -> tuple[Schema, Population, dict[str, Any]]:
    data, histogram, columns, buckets = (source[key] for key in ("data", "histogram", "columns", "buckets"))
    if (data is None) == (histogram is None):
        raise ValueError(f"expected --data or --histogram, got {'neither' if data is None else 'both'}")
    if histogram is not None:
        if source["codes"]:
            raise ValueError("expected --codes with --data only: a histogram is over codes")
        schema, counts = inputs.read_histogram(Path(histogram), columns, buckets, declared)
        people, bounds = Population.of_histogram(counts), "codes" if declared is None else "declared"
    else:
        records = inputs.read_records(Path(data), columns, source["codes"], buckets, declared)
        schema, bounds = records.schema, records.bounds
        people = people_of(records.codes, schema.sizes)
    if bounds == "data":
        printing.note("note: bounds were read from the data, which is not private: for experiments only")
    about = {
        "source": str(data or histogram),
        "people": people.n,
        "attributes": [{"name": a.name, "kind": a.kind, "codes": a.size} for a in schema.attributes],
        "bounds": {"data": "from the data, not private"}.get(bounds, bounds),
    }
    return schema, people, about


def _workload(schema: Schema, asked: Mapping[str, Any]) -> Workload:
    if asked["queries"] is not None:
        if asked["random"] is not None:
            raise ValueError("expected --queries or --random, got both")
        workload = inputs.read_queries(asked["queries"], schema)
        if not workload.n:
            raise ValueError(f"expected at least one query in {str(asked['queries'])!r}, got none")
        return workload
    count = 200 if asked["random"] is None else asked["random"]
    if count < 1:
        raise ValueError(f"expected --random >= 1, got {count}")
    return random_workload(schema, count, workload_rng(asked["seed"]))


def _print(data: Mapping[str, Any], scores: list[Score]) -> None:
    sizes = " x ".join(str(a["codes"]) for a in data["attributes"])
    asked = f"{data['queries']['count']} queries, {len(scores[0].trials)} repetitions"
    title = f"{data['people']:,} people, {sizes} codes, {asked}"
    head = ["method", "settings", "epsilon", "MSE ± 95 %", "build", "queries", "memory"]
    rows = [
        [
            score.method,
            score.settings,
            score.epsilon,
            printing.error_text(score.mse),
            printing.seconds_text(score.build_seconds),
            printing.seconds_text(score.query_seconds),
            printing.bytes_text(score.peak_memory_bytes),
        ]
        for score in scores
    ]
    printing.print_table(title, head, rows, left=2)
