"""`ahead evaluate`."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Annotated, Any

import ahead_ldp
from ahead_ldp.cli import inputs, options, printing
from ahead_ldp.cli.options import File, Text, option
from ahead_ldp.cli.printing import Shown, Table
from ahead_ldp.engines import progress, simulation
from ahead_ldp.research import distances, evaluation
from ahead_ldp.schema import workloads


def evaluate(
    *,
    epsilon: options.Epsilons,
    data: options.Data = None,
    histogram: Annotated[File, option("--histogram", "FILE", "Counts instead of records: .npy or .csv.")] = None,
    source: options.Source,
    declared: options.Declared,
    method: Annotated[Text, option("--method", "M[,M...]", "Left out, the best for the attributes.")] = None,
    settings: options.Settings,
    queries: Annotated[File, option("--queries", "FILE", "lo,hi per attribute in codes, closed: .csv or .npy.")] = None,
    random: Annotated[
        int | None, option("--random", "Q", "How many random queries; left out, 200 if there is no --queries.")
    ] = None,
    repeats: options.Repeats = 20,
    seed: Annotated[int, option("--seed", "S", "Seed of queries, groups and noise.")] = 0,
) -> Shown:
    """Compare methods on data at hand: error, time and memory.

    Data and queries stay fixed; every repetition draws groups and noise anew.
    Attributes are declared, or have D buckets between the bounds of the data,
    which is not private.
    """
    options.at_least(1, repeats=repeats)
    options.at_least(0, seed=seed)
    epsilons = inputs.epsilons(epsilon)
    methods = [None] if method is None else inputs.split(method, "--method")
    schema, people, about = _people(data, histogram, source, inputs.declared_schema(declared))
    workload = _workload(schema, queries, random, seed)
    chosen = [evaluation.choose(name, schema, e, people.n, str(settings)) for name in methods for e in epsilons]
    for mechanism, _ in chosen:
        evaluation.check_runs(mechanism, schema, workload)
    task, done = evaluation.Task.of(schema, people, workload), count(1)
    with progress.Bar("evaluating") as bar:
        scores = [
            evaluation.measure(task, mechanism, repeats, seed, label, lambda: bar(next(done), repeats * len(chosen)))
            for mechanism, label in chosen
        ]
    about["queries"] = {"source": str(queries or "random"), "count": workload.n}
    return Shown({"data": about, "results": [score.record() for score in scores]}, [_table(about, scores)])


def _people(
    data: Path | None, histogram: Path | None, source: options.Source, declared: ahead_ldp.Schema | None
) -> tuple[ahead_ldp.Schema, simulation.Population, dict[str, Any]]:
    """The people of a file under their schema, and what is said about them."""
    options.one_of(data=data, histogram=histogram)
    if data is not None:
        records = inputs.read_records(data, source, declared)
        schema, bounds = records.schema, records.bounds
        people = evaluation.people_of(records.codes, schema.sizes)
    else:
        assert histogram is not None
        if source.codes:
            raise ValueError("expected --codes with --data only: a histogram is over codes")
        schema, counts = inputs.read_histogram(histogram, source, declared)
        people, bounds = simulation.Population.of_histogram(counts), "codes" if declared is None else "declared"
    return (
        schema,
        people,
        {
            "source": str(data or histogram),
            "people": people.n,
            "attributes": [{"name": a.name, "kind": a.kind, "codes": a.size} for a in schema.attributes],
            "bounds": {"data": "from the data, not private"}.get(bounds, bounds),
        },
    )


def _workload(schema: ahead_ldp.Schema, queries: Path | None, random: int | None, seed: int) -> workloads.Workload:
    if queries is None:
        drawn = 200 if random is None else random
        options.at_least(1, random=drawn)
        return workloads.random_workload(schema, drawn, evaluation.workload_rng(seed))
    if random is not None:
        raise ValueError("expected --queries or --random, got both")
    workload = inputs.read_queries(queries, schema)
    if not workload.n:
        raise ValueError(f"expected at least one query in {str(queries)!r}, got none")
    return workload


def _table(about: dict[str, Any], scores: list[evaluation.Score]) -> Table:
    sizes = " x ".join(str(a["codes"]) for a in about["attributes"])
    asked = f"{about['queries']['count']} queries, {len(scores[0].trials)} repetitions"
    title = f"{about['people']:,} people, {sizes} codes, {asked}"
    head = [
        "method",
        "settings",
        "epsilon",
        *(f"{name} ± 95 %" for name in distances.METRICS.values()),
        "build",
        "queries",
        "memory",
    ]
    rows = [
        [
            score.method,
            score.settings,
            score.epsilon,
            *("" if (found := score.spread(m)) is None else printing.error_text(found) for m in distances.METRICS),
            printing.seconds_text(score.build_seconds),
            printing.seconds_text(score.query_seconds),
            printing.bytes_text(score.peak_memory_bytes),
        ]
        for score in scores
    ]
    return Table(title, head, rows, left=3)
