"""`ahead datasets`."""

from __future__ import annotations

from typing import Any

from ahead_ldp.cli import printing
from ahead_ldp.research.datasets import DATASETS, SHAPES, Dataset, data_folder


def run(as_json: bool) -> None:
    """Print what is here, what is missing and how to get it."""
    folder = data_folder()
    found = [describe(dataset) for dataset in DATASETS.values()]
    shapes = [{"dataset": name, "about": about} for name, about in SHAPES.items()]
    if as_json:
        printing.print_json({"folder": str(folder), "datasets": found, "shapes": shapes})
        return
    rows = [[d["dataset"], d["state"], ", ".join(d["columns"]), f"{d['users']:,}"] for d in found]
    printing.print_table(f"Data sets in {folder}", ["name", "state", "columns", "people"], rows, left=3)
    print()
    printing.print_table(
        "Synthetic, always here", ["name", "shape"], [[s["dataset"], s["about"]] for s in shapes], left=2
    )
    wanted = [d for d in found if d["state"] != "complete"]
    if wanted:
        print()
        rows = [[d["dataset"], d["stand_in"] or "missing", d["obtain"]] for d in wanted]
        printing.print_table("How to get the rest (folder: AHEAD_DATA)", ["name", "now", "how"], rows, left=3)


def describe(dataset: Dataset) -> dict[str, Any]:
    """Whether a data set is complete, a stand-in or missing, by the files in the folder."""
    folder = data_folder()
    there = [source for source in dataset.sources if (folder / source.file).is_file()]
    complete = any(not source.stand_in for source in there)
    state = "complete" if complete else "stand-in" if there else "missing"
    return {
        "dataset": dataset.name,
        "about": dataset.about,
        "users": dataset.users,
        "in_the_paper": dataset.paper,
        "state": state,
        "file": there[0].file if there else None,
        "stand_in": "" if complete else "; ".join(source.stand_in for source in there),
        "columns": list(dataset.columns),
        "obtain": dataset.obtain,
    }
