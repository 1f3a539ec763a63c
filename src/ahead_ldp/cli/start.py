"""`ahead start`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ahead_ldp.cli import inputs, printing
from ahead_ldp.device.epsilon import epsilon_text
from ahead_ldp.engines.campaigns import start_campaign
from ahead_ldp.research.evaluation import check_runs, choose


def run(
    directory: Path,
    attributes: Sequence[str] | None,
    schema_file: Path | None,
    epsilon: str,
    users: int,
    method: str | None,
    settings: str,
    as_json: bool,
) -> None:
    """Write the directory, and print what is asked."""
    schema = inputs.declared_schema(attributes, schema_file)
    if schema is None:
        raise ValueError("expected attributes, by --attribute or --schema")
    if users < 1:
        raise ValueError(f"expected users >= 1, got {users}")
    mechanism, applied = choose(method, schema, epsilon_text(epsilon), users, settings)
    check_runs(mechanism, schema)
    session = start_campaign(mechanism, schema, directory)
    found = {"method": mechanism.name, "settings": applied, "epsilon": float(epsilon_text(epsilon))}
    if as_json:
        asked = sorted(session.wave)
        groups = [group.id for group in mechanism.groups(schema)]
        printing.print_json({"campaign": session.campaign, **found, "groups": groups, "wave": 1, "asked": asked})
        return
    print(f"{mechanism.name}, epsilon {found['epsilon']:g}, campaign {session.campaign[:12]}")
    print(f"questions of wave 1: {directory / 'questions' / '1'}")
