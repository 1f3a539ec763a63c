"""`ahead issue`."""

from __future__ import annotations

import json
from pathlib import Path

from ahead_ldp.cli import printing
from ahead_ldp.service.issuer import Office, make_app


def create(directory: Path, tier: str, bits: int) -> None:
    """Make a key and print its public half as a campaign holds it."""
    print(json.dumps(Office.create(directory, tier, bits).token_record))


def enrol(directory: Path, count: int | None, secrets: Path | None) -> None:
    """Enrol people; new secrets go to standard output."""
    if (count is None) == (secrets is None):
        raise ValueError("expected --count or --secrets, and not both")
    roster = Office.open(directory).roster
    if count is not None:
        print("\n".join(roster.enrol(count)))
        return
    assert secrets is not None
    given = [line.strip() for line in secrets.read_text("utf-8").splitlines() if line.strip()]
    roster.add(given)
    printing.note(f"enrolled: {len(given)}")


def key(directory: Path) -> None:
    """Print the public key."""
    print(json.dumps(Office.open(directory).token_record))


def status(directory: Path, as_json: bool) -> None:
    """Print how many secrets were used."""
    office = Office.open(directory)
    enrolled, used = office.roster.count()
    if as_json:
        printing.print_json({"tier": office.tier, "enrolled": enrolled, "used": used})
    else:
        print(f"{office.tier}: {used} of {enrolled} secrets used")


def serve(directory: Path, host: str, port: int, allowed_origins: list[str]) -> None:
    """Run until stopped. No access log: it would say who came when."""
    import uvicorn

    app = make_app(Office.open(directory), allowed_origins)
    printing.note(f"issuing at http://{host}:{port}; put a proxy with TLS in front of it")
    uvicorn.run(app, host=host, port=port, access_log=False, log_level="warning", server_header=False, lifespan="off")
