"""`ahead advance`."""

from __future__ import annotations

from pathlib import Path

from ahead_ldp.cli import printing
from ahead_ldp.cli.engines import account, engine_of
from ahead_ldp.engines.campaigns import advance
from ahead_ldp.protocol.session import ReplayMismatch


def run(
    directory: Path,
    reports: str | None,
    engine: str,
    dedup: bool,
    quarantine: bool,
    allow_empty: bool,
    as_json: bool,
) -> None:
    """Close the wave, and print what follows."""
    options = {"dedup": dedup, "quarantine": quarantine, "allow_empty": allow_empty}
    try:
        closed = advance(directory, engine=engine_of(engine), reports=reports, **options)
    except ReplayMismatch as error:
        raise ValueError(f"the stored campaign does not replay, nothing is counted: {error}") from error
    result = closed.result
    if as_json:
        found = {"reports": result.reports, "duplicates": result.duplicates, "conflicts": result.conflicts}
        printing.print_json(
            {
                "wave": closed.wave,
                "last": closed.last,
                **found,
                "files": len(result.files),
                "set_aside": result.set_aside,
            }
        )
        return
    print(f"wave {closed.wave} closed: {result.reports:,} reports in {len(result.files):,} files")
    for line in account(result):
        print(line)
    follows = directory / "estimate.json" if closed.last else directory / "questions" / str(closed.wave + 1)
    print(f"{'estimate' if closed.last else f'questions of wave {closed.wave + 1}'}: {follows}")
