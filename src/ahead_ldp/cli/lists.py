"""`ahead methods` and `ahead datasets`: what there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ahead_ldp
from ahead_ldp import mechanisms, oracles
from ahead_ldp.cli import printing
from ahead_ldp.cli.printing import Shown, Table
from ahead_ldp.protocol import session as sessions
from ahead_ldp.research import datasets as catalogue
from ahead_ldp.research import evaluation

REFERENCE = "value=codes,256"  # the schema that waves are counted on


def methods() -> Shown:
    """List every method: attributes, waves, source."""
    working, broken = mechanisms.MECHANISMS.working()
    for reason in broken.values():
        printing.note(f"left out: {reason}")
    listed = [_method(name) for name in working]
    rows = [
        [
            m["method"],
            m["idea"],
            m["source"],
            ", ".join(m["settings"][1:]),
            str(m["most_attributes"] or "any"),
            str(m["waves"]),
        ]
        for m in listed
    ]
    head = ["method", "idea", "source", "also as", "attr.", "waves"]
    title = "Methods (waves: for one attribute of 256 codes)"
    return Shown({"methods": listed}, [Table(title, head, rows, left=4)])


def _method(name: str) -> dict[str, Any]:
    """A registered method: how many attributes it takes, how many waves it asks, where it is from."""
    method = mechanisms.MECHANISMS[name]
    return {
        "method": name,
        "idea": method.idea,
        "source": method.source,
        "most_attributes": method.most_attributes,
        "waves": _waves(name),
        "settings": ["default", *(preset for preset in ("paper", "strong") if hasattr(method, preset))],
    }


def _waves(name: str) -> int:
    """Counted in a run that nobody answers."""
    schema = ahead_ldp.as_schema(REFERENCE)
    session = sessions.Session(evaluation.choose(name, schema, "1", users=1_000_000)[0], schema)
    while session.is_open:
        session.tell({group: oracles.Tally.empty(asked.oracle.outcomes) for group, asked in session.wave.items()})
    return len(session.history)


def datasets() -> Shown:
    """List the data sets that are here, and how to get others."""
    folder = catalogue.data_folder()
    listed = [_dataset(dataset, folder) for dataset in catalogue.DATASETS.values()]
    shapes = [{"dataset": name, "about": about} for name, about in catalogue.SHAPES.items()]
    rows = [[d["dataset"], d["state"], ", ".join(d["columns"]), f"{d['users']:,}"] for d in listed]
    synthetic = [[s["dataset"], s["about"]] for s in shapes]
    wanted = [[d["dataset"], d["stand_in"] or "missing", d["obtain"]] for d in listed if d["state"] != "complete"]
    text: list[str | Table] = [
        Table(f"Data sets in {folder}", ["name", "state", "columns", "people"], rows, left=3),
        "",
        Table("Synthetic, always here", ["name", "shape"], synthetic, left=2),
    ]
    if wanted:
        text += ["", Table("How to get the rest (folder: AHEAD_DATA)", ["name", "now", "how"], wanted, left=3)]
    return Shown({"folder": str(folder), "datasets": listed, "shapes": shapes}, text)


def _dataset(dataset: catalogue.Dataset, folder: Path) -> dict[str, Any]:
    """Whether a data set is complete, a stand-in or missing, by the files in the folder."""
    there = [source for source in dataset.sources if (folder / source.file).is_file()]
    complete = any(not source.stand_in for source in there)
    return {
        "dataset": dataset.name,
        "about": dataset.about,
        "users": dataset.users,
        "in_the_paper": dataset.paper,
        "state": "complete" if complete else "stand-in" if there else "missing",
        "file": there[0].file if there else None,
        "stand_in": "" if complete else "; ".join(source.stand_in for source in there),
        "columns": list(dataset.columns),
        "obtain": dataset.obtain,
    }
