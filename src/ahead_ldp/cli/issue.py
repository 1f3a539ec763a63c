"""`ahead issue`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

from ahead_ldp.cli.options import File, Texts, argument, group, option
from ahead_ldp.cli.printing import Shown, note
from ahead_ldp.service import issuer
from ahead_ldp.service.campaigns import logs
from ahead_ldp.service.edge import server
from ahead_ldp.service.issuer import invitations
from ahead_ldp.service.server import cors

Office = Annotated[Path, argument("DIR", "Where the issuer keeps its key.")]


def create(
    directory: Office,
    tier: Annotated[str, option("--tier", "TIER", "blind: the issuer cannot link; signed: it can.")] = "blind",
    bits: Annotated[int, option("--bits", "B", "2048, 3072 or 4096.")] = 2048,
) -> None:
    """Make a key for one campaign, and print its `token` field."""
    print(json.dumps(issuer.Office.create(directory, tier, bits).token_record))


def enrol(
    directory: Office,
    count: Annotated[int | None, option("--count", "N", "People to make secrets for.")] = None,
    secrets: Annotated[File, option("--secrets", "FILE", "Secrets of your own, one a line.")] = None,
) -> None:
    """Enrol people, and print their one-time secrets.

    They are printed here once; only their hashes are kept.
    """
    if (count is None) == (secrets is None):
        raise ValueError("expected --count or --secrets, and not both")
    roster = issuer.Office.open(directory).roster
    if count is not None:
        print("\n".join(roster.enrol(count)))
        return
    assert secrets is not None
    own = [line.strip() for line in secrets.read_text("utf-8").splitlines() if line.strip()]
    roster.add(own)
    note(f"enrolled: {len(own)}")


def invite(
    directory: Office,
    members: Annotated[Path, argument("MEMBERS", "A .csv file with a line for each person.")],
    link: Annotated[str, option("--link", "URL", "The link for people, as the campaign's page shows it.")],
    out: Annotated[Path, option("--out", "FILE", "The file for the mail merge; a new one.")],
) -> None:
    """Enrol everybody in a file, with a link for each.

    Its lines are written to a new file with one more column: the link, which
    works once. Secrets stand behind the # of the links, which browsers send nowhere.
    The new file is for the issuer alone: keep it from the collector.
    """
    count = invitations.invite(issuer.Office.open(directory).roster, members, link, out)
    note(f"{count:,} links written to {out}: whoever has this file can answer for everybody")


def remind(
    directory: Office,
    invited: Annotated[Path, argument("INVITATIONS", "The file that `ahead issue invite` wrote.")],
    out: Annotated[Path, option("--out", "FILE", "The file for the mail merge; a new one.")],
) -> None:
    """Write the lines of those who have not fetched their token yet.

    Nothing else is known: who has fetched it may or may not have answered.
    """
    left, everybody = invitations.remind(issuer.Office.open(directory).roster, invited, out)
    note(f"{left:,} of {everybody:,} people have not fetched their token: written to {out}")


def key(directory: Office) -> None:
    """Print the `token` field for the campaign's record."""
    print(json.dumps(issuer.Office.open(directory).token_record))


def status(directory: Office) -> Shown:
    """Say how many people are enrolled, and how many came."""
    office = issuer.Office.open(directory)
    enrolled, used = office.roster.count()
    record = {"tier": office.tier, "enrolled": enrolled, "used": used}
    return Shown(record, [f"{office.tier}: {used} of {enrolled} secrets used"])


def serve(
    directory: Office,
    host: Annotated[str, option("--host", "HOST", "Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, option("--port", "PORT", "Port to listen on.")] = 8441,
    allowed_origin: Annotated[
        Texts, option("--allowed-origin", "ORIGIN", "A site whose participant's page asks here; repeat it.")
    ] = None,
) -> None:
    """Sign for enrolled people, in a process of its own."""
    origins = cors.parse_origins(",".join(allowed_origin or []), "--allowed-origin")
    app = issuer.make_app(issuer.Office.open(directory), sorted(origins))
    logs.configure("warning")  # failures, and never who came when
    server.Server(app, host, port, port_option="--port ", announce=partial(_announce, host)).run()


def _announce(host: str, port: int) -> None:
    """Where the issuer is, once it listens."""
    note(f"issuing at http://{f'[{host}]' if ':' in host else host}:{port}; put a proxy with TLS in front of it")


issue = group("Issue tokens: one for every enrolled person.", create, enrol, invite, remind, key, status, serve)
