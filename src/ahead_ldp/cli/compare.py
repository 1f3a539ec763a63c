"""`ahead compare`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ahead_ldp.cli import inputs, printing
from ahead_ldp.engines.progress import Bar
from ahead_ldp.research.datasets import DATASETS, SHAPES, data_folder, dataset
from ahead_ldp.research.experiments import journal
from ahead_ldp.research.experiments.comparing import Recommendation, comparison, fitting, overall, recommend
from ahead_ldp.research.experiments.plan import Data, Figure
from ahead_ldp.research.experiments.results import Measured, write_tables
from ahead_ldp.research.experiments.running import run_cells
from ahead_ldp.research.figures.report import write_comparison
from ahead_ldp.research.figures.reproduction import JOURNAL


def run(
    source: Mapping[str, Any],
    declared: Mapping[str, Any],
    epsilon: str,
    method: str | None,
    asked: Mapping[str, Any],
    jobs: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Plan, run, recommend."""
    for option, least in (("repeats", 2), ("queries", 1), ("seed", 0)):
        if asked[option] < least:
            name = "random" if option == "queries" else option
            raise ValueError(f"expected --{name} >= {least}, got {asked[option]}")
    epsilons = [float(e) for e in inputs.epsilons(epsilon)]
    data = _data(source, declared, asked["users"])
    users = [data.n] if asked["users"] is None else _users(asked["users"])
    wanted = [] if method is None else inputs.split(method, "--method")
    methods, refused = fitting(data.schema, epsilons[0], users[0], wanted)
    for name, reason in refused.items():
        printing.note(f"left out: {name} ({reason})")
    figure = comparison(data, users, epsilons, methods, asked["repeats"], asked["queries"], asked["seed"])
    with tempfile.TemporaryDirectory() as spare:
        folder = Path(spare) if out is None else out
        folder.mkdir(parents=True, exist_ok=True)
        measured = _measure(figure, folder, jobs)
        advice = recommend(figure, measured)
        if out is not None:
            write_tables(out, figure.cells, measured)
            write_comparison(out, figure, measured, advice)
    _print(figure, measured, advice, out, as_json)


def _measure(figure: Figure, folder: Path, jobs: int) -> Measured:
    with Bar("comparing, CPU-s") as bar:
        problems = run_cells(figure.cells, folder / JOURNAL, jobs, lambda done, total: bar(round(done), round(total)))
    for reason in (*problems.missing.values(), *problems.failed.values()):
        raise ValueError(reason)
    return Measured.of(figure.cells, journal.read(folder / JOURNAL))


def _data(source: Mapping[str, Any], declared: Mapping[str, Any], users: str | None) -> Data:
    if (source["data"] is None) == (source["dataset"] is None):
        raise ValueError(f"expected --data or --dataset, got {'neither' if source['data'] is None else 'both'}")
    if source["data"] is None:
        return _known(source, users)
    schema = inputs.declared_schema(**declared)
    records = inputs.read_records(source["data"], source["columns"], False, source["buckets"], schema)
    if records.bounds == "data":
        printing.note("note: bounds were read from the data, which is not private: for experiments only")
    names = inputs.split(source["columns"], "--columns") if source["columns"] else list(records.schema.names)
    path = Path(source["data"])
    n = len(records.codes)
    return Data(path.name, records.schema.sizes, n, tuple(names), file=str(path.resolve()), declared=records.schema)


def _known(source: Mapping[str, Any], users: str | None) -> Data:
    """People of the catalogue, or of a shape."""
    name = source["dataset"]
    if name not in DATASETS and name not in SHAPES:
        raise ValueError(f"expected --dataset among {', '.join((*DATASETS, *SHAPES))}, got {name!r}")
    if source["buckets"] is None:
        raise ValueError("expected --buckets with --dataset")
    if name in SHAPES:
        sizes = inputs.bucket_counts(source["buckets"], len(source["buckets"].split(",")))
        if users is None:
            raise ValueError("expected --users with a shape")
        return Data(name, tuple(sizes), _users(users)[0], r=0.8 if len(sizes) > 1 else None)
    found = dataset(name)
    here = next((s for s in found.sources if (data_folder() / s.file).is_file()), found.sources[0])
    columns = inputs.split(source["columns"], "--columns") if source["columns"] else list(here.columns)
    return Data(name, tuple(inputs.bucket_counts(source["buckets"], len(columns))), found.users, tuple(columns))


def _users(text: str) -> list[int]:
    try:
        found = [int(entry) for entry in inputs.split(text, "--users")]
    except ValueError:
        raise ValueError(f"expected whole numbers for --users, got {text!r}") from None
    if min(found) < 1:
        raise ValueError(f"expected --users >= 1, got {text!r}")
    return found


def _print(
    figure: Figure, measured: Measured, advice: Sequence[Recommendation], out: Path | None, as_json: bool
) -> None:
    if as_json:
        results = [
            {"users": p.cell.data.n, "method": line.method, "epsilon": p.x, "mse": measured.spread(p.cell).record()}
            for panel in figure.panels
            for line in panel.lines
            for p in line.points
        ]
        told = [
            {"users": a.n, "epsilon": a.epsilon, "use": a.method, "as_good": list(a.as_good), "text": a.text}
            for a in advice
        ]
        printing.print_json({"results": results, "recommendations": told, "overall": overall(advice)})
        return
    for panel in figure.panels:
        head = ["method", *(f"ε = {point.x:g}" for point in panel.lines[0].points)]
        rows = [
            [line.method, *(printing.error_text(measured.spread(p.cell)) for p in line.points)] for line in panel.lines
        ]
        printing.print_table(f"{panel.title}: MSE ± 95 %", head, rows)
        print()
    for a in advice:
        print(a.text)
    if len(advice) > 1:
        print(overall(advice))
    if out is not None:
        print(f"written: {out / 'comparison.html'}")
