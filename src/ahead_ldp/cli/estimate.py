"""`ahead estimate`."""

from __future__ import annotations

from pathlib import Path

from ahead_ldp.cli import printing
from ahead_ldp.engines.campaigns import read_estimate
from ahead_ldp.protocol.session import ReplayMismatch


def run(directory: Path, out: Path | None, as_json: bool) -> None:
    """Replay, print, and save if asked."""
    try:
        estimate, waves, finished = read_estimate(directory)
    except ReplayMismatch as error:
        raise ValueError(f"the stored campaign does not replay, nothing is estimated: {error}") from error
    if out is not None:
        estimate.save(out)
    p = estimate.provenance
    assert p is not None
    if as_json:
        found = {"method": p.method, "epsilon": float(p.epsilon), "people": p.people}
        printing.print_json({"run": str(directory), **found, "waves": waves, "finished": finished})
        return
    print(estimate.summary())
    print(f"after {waves} waves, {'all of them' if finished else 'not all of them'}")
