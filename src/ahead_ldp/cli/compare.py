"""`ahead compare`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from ahead_ldp.cli import inputs, options, printing
from ahead_ldp.cli.options import File, Text, option
from ahead_ldp.cli.printing import Shown, Table
from ahead_ldp.engines import progress
from ahead_ldp.research import contrasts, distances
from ahead_ldp.research import datasets as catalogue
from ahead_ldp.research.experiments import comparing, journal, results, running
from ahead_ldp.research.experiments import plan as plans
from ahead_ldp.research.figures import report, reproduction


def compare(
    *,
    epsilon: options.Epsilons,
    data: options.Data = None,
    dataset: Annotated[Text, option("--dataset", "NAME", "Or a data set or shape of `ahead datasets`.")] = None,
    columns: options.Columns = None,
    buckets: Annotated[Text, option("--buckets", "D[,D...]", "Codes of each attribute.")] = None,
    declared: options.Declared,
    users: Annotated[Text, option("--users", "N[,N...]", "Drawn from the data; left out, everybody once.")] = None,
    method: Annotated[Text, option("--method", "M[,M...]", "M, M:paper or M:strong; left out, all that fit.")] = None,
    repeats: options.Repeats = 10,
    random: Annotated[int, option("--random", "Q", "Random queries.")] = 200,
    metric: Annotated[str, option("--metric", "E", "mse, or of the distributions: wasserstein or ks.")] = "mse",
    seed: Annotated[int, option("--seed", "S", "Seed of people, queries, groups and noise.")] = 0,
    jobs: Annotated[int, option("--jobs", "J", "Processes.")] = 1,
    out: Annotated[File, option("--out", "DIR", "Tables, figure and page; a killed run goes on there.")] = None,
) -> Shown:
    """Compare methods on your own data, and recommend one.

    The recommendation comes from the measurements, for every number of
    people and epsilon. For every other method it says whether it is worse,
    as good, or not decided by these repetitions, and why.
    """
    options.at_least(2, repeats=repeats)
    options.at_least(1, random=random)
    options.at_least(0, seed=seed)
    distances.check_metric(metric)
    epsilons = [float(e) for e in inputs.epsilons(epsilon)]
    options.one_of(data=data, dataset=dataset)
    crowds = None if users is None else inputs.whole_numbers(inputs.split(users, "--users"), "--users")
    source = options.Source(columns, False, buckets)
    people = _read(data, source, declared) if data is not None else _known(str(dataset), source, crowds)
    sizes = crowds or [people.n]
    wanted = [] if method is None else inputs.split(method, "--method")
    methods, refused = comparing.fitting(people.schema, epsilons[0], sizes[0], wanted)
    for name, reason in refused.items():
        printing.note(f"left out: {name} ({reason})")
    figure = comparing.comparison(people, sizes, epsilons, methods, repeats, random, seed, metric)
    with tempfile.TemporaryDirectory() as spare:
        folder = Path(spare) if out is None else out
        folder.mkdir(parents=True, exist_ok=True)
        measured = _measure(figure, folder, jobs)
        advice = comparing.recommend(figure, measured)
        if out is not None:
            results.write_tables(out, figure.cells, measured)
            report.write_comparison(out, figure, measured, advice)
    written = [] if out is None else [f"written: {out / 'comparison.html'}"]
    return Shown(_record(figure, measured, advice), [*_text(figure, measured, advice), *written])


def _measure(figure: plans.Figure, folder: Path, jobs: int) -> results.Measured:
    path = folder / reproduction.JOURNAL
    with progress.Bar("comparing, CPU-s") as bar:
        problems = running.run_cells(figure.cells, path, jobs, lambda done, total: bar(round(done), round(total)))
    for reason in (*problems.missing.values(), *problems.failed.values()):
        raise ValueError(reason)
    return results.Measured.of(figure.cells, journal.read(path))


def _read(path: Path, source: options.Source, declared: options.Declared) -> plans.Data:
    """People of a file."""
    records = inputs.read_records(path, source, inputs.declared_schema(declared))
    schema, n = records.schema, len(records.codes)
    names = inputs.names_of(source.columns) or schema.names
    return plans.Data(path.name, schema.sizes, n, tuple(names), file=str(path.resolve()), declared=schema)


def _known(name: str, source: options.Source, crowds: Sequence[int] | None) -> plans.Data:
    """People of the catalogue, or of a shape."""
    known = (*catalogue.DATASETS, *catalogue.SHAPES)
    if name not in known:
        raise ValueError(f"expected --dataset among {', '.join(known)}, got {name!r}")
    if source.buckets is None:
        raise ValueError("expected --buckets with --dataset")
    if name in catalogue.SHAPES:
        sizes = inputs.bucket_counts(source.buckets, len(source.buckets.split(",")))
        if crowds is None:
            raise ValueError("expected --users with a shape")
        return plans.Data(name, tuple(sizes), crowds[0], r=0.8 if len(sizes) > 1 else None)
    dataset, folder = catalogue.dataset(name), catalogue.data_folder()
    here = next((s for s in dataset.sources if (folder / s.file).is_file()), dataset.sources[0])
    columns = inputs.names_of(source.columns) or here.columns
    return plans.Data(name, tuple(inputs.bucket_counts(source.buckets, len(columns))), dataset.users, tuple(columns))


def _record(
    figure: plans.Figure, measured: results.Measured, advice: Sequence[comparing.Recommendation]
) -> dict[str, Any]:
    results = [
        {"users": p.cell.data.n, "method": line.method, "epsilon": p.x, p.cell.task: measured.spread(p.cell).record()}
        for panel in figure.panels
        for line in panel.lines
        for p in line.points
    ]
    recommended = [a.record() for a in advice]
    return {"results": results, "recommendations": recommended, "overall": comparing.overall(advice)}


def _text(
    figure: plans.Figure, measured: results.Measured, advice: Sequence[comparing.Recommendation]
) -> Iterator[str | Table]:
    for panel in figure.panels:
        head = ["method", *(f"ε = {point.x:g}" for point in panel.lines[0].points)]
        rows = [
            [line.method, *(printing.error_text(measured.spread(p.cell)) for p in line.points)] for line in panel.lines
        ]
        yield Table(f"{panel.title}: {distances.METRICS[advice[0].metric]} ± 95 %", head, rows)
        yield ""
    for a in advice:
        yield a.text
        yield from (f"  {reason}" for reason in a.reasons)
    if len(advice) > 1:
        yield comparing.overall(advice)
    if advice[0].contrasts:
        yield contrasts.explanation(len(advice[0].means), figure.cells[0].repeats)
