"""`ahead audit`."""

from __future__ import annotations

from typing import Annotated

from ahead_ldp.cli.options import argument
from ahead_ldp.cli.printing import Shown, Table
from ahead_ldp.service.campaigns import audit as audits


def audit(
    url: Annotated[str, argument("URL", "Address of a campaign, ending with its digest.")],
) -> Shown:
    """Recompute the public chain of a campaign, and say what matched."""
    result = audits.audit_url(url)
    rows = [[c.name, "matched" if c.matched else "DIFFERS", c.detail] for c in result.checks]
    table = Table(f"campaign {result.campaign}", ["check", "result", "what"], rows, left=3)
    problem = "" if result.matched else f"the public chain does not fit together (computed with {result.environment})"
    return Shown(result.record(), [table], problem)
