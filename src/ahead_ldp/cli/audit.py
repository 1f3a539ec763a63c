"""`ahead audit`."""

from __future__ import annotations

from ahead_ldp.cli import printing
from ahead_ldp.service.campaigns.audit import audit_url


def run(url: str, as_json: bool) -> None:
    """Audit, print what matched, and refuse if anything did not."""
    found = audit_url(url)
    if as_json:
        printing.print_json(found.record())
    else:
        rows = [[c.name, "matched" if c.matched else "DIFFERS", c.detail] for c in found.checks]
        printing.print_table(f"campaign {found.campaign}", ["check", "result", "what"], rows, left=3)
    if not found.matched:
        raise ValueError(f"the public chain does not fit together (computed with {found.environment})")
