"""`ahead tally`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ahead_ldp.cli import printing
from ahead_ldp.cli.engines import account, engine_of
from ahead_ldp.engines.campaigns import all_questions
from ahead_ldp.engines.layout import CAMPAIGN, REPORTS
from ahead_ldp.engines.manifests import find_files, some_files
from ahead_ldp.protocol.mechanism import tally_record


def run(
    paths: Sequence[str],
    campaign: Path | None,
    engine: str,
    dedup: bool,
    quarantine: bool,
    verify: bool,
    as_json: bool,
) -> None:
    """Count and print."""
    questions = all_questions(campaign or _campaign(paths[0]))
    chosen = engine_of(engine)
    if engine == "local":
        files = find_files(paths)
    else:
        places = [str(Path(p) / REPORTS) if (Path(p) / CAMPAIGN).exists() else p for p in paths]
        files = [file for place in places for file in chosen.find(place)]
    result = chosen.count(some_files(paths, files), questions, dedup=dedup, quarantine=quarantine, verify=verify)
    asked = sorted(questions.values(), key=lambda a: (a.wave, a.group))
    if as_json:
        tallies = [
            {"wave": a.wave, "group": a.group, **tally_record(a.question, result.tallies[a.question])} for a in asked
        ]
        found = {"reports": result.reports, "duplicates": result.duplicates, "conflicts": result.conflicts}
        printing.print_json({**found, "files": len(result.files), "set_aside": result.set_aside, "tallies": tallies})
        return
    rows = [[str(a.wave), a.group, a.oracle.name, str(a.oracle.d), f"{result.tallies[a.question].n:,}"] for a in asked]
    title = f"{result.reports:,} reports in {len(result.files):,} files"
    printing.print_table(title, ["wave", "group", "oracle", "cells", "reports"], rows, left=3)
    for line in account(result):
        print(line)


def _campaign(path: str) -> Path:
    """The directory of a campaign that a path lies in."""
    start = Path(path).resolve()
    for folder in (start, *start.parents):
        if (folder / CAMPAIGN).exists():
            return folder
    raise ValueError(f"expected {path!r} to lie in a campaign's directory; else name the directory by --campaign")
