"""`ahead audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from ahead_ldp.cli.options import argument
from ahead_ldp.cli.printing import Shown, Table
from ahead_ldp.engines import runs
from ahead_ldp.service.campaigns import audit as audits


def audit(
    url: Annotated[str, argument("URL", "Address of a campaign, ending with its digest; or a directory.")],
) -> Shown:
    """Recompute the public chain of a campaign, and compare it.

    A directory of `ahead collect`, `ahead start` or `ahead campaign export`
    is computed again from its files.
    """
    if Path(url).is_dir():
        return _directory(Path(url))
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"expected a directory that is there, or the http(s) address of a campaign, got {url!r}")
    result = audits.audit_url(url)
    rows = [[c.name, "matched" if c.matched else "DIFFERS", c.detail] for c in result.checks]
    table = Table(f"campaign {result.campaign}", ["check", "result", "what"], rows, left=3)
    problem = "" if result.matched else f"the public chain does not fit together (computed with {result.environment})"
    return Shown(result.record(), [table], problem)


def _directory(root: Path) -> Shown:
    checks, problem = list[dict[str, Any]](), ""
    try:
        for name, detail in runs.audit_run(root):
            checks.append({"check": name, "matched": True, "detail": detail})
    except ValueError as error:
        problem = f"the files do not fit together: {error}"
        checks.append({"check": "next", "matched": False, "detail": str(error)})
    rows = [[c["check"], "matched" if c["matched"] else "DIFFERS", c["detail"]] for c in checks]
    table = Table(str(root), ["check", "result", "what"], rows, left=3)
    return Shown({"run": str(root), "matched": not problem, "checks": checks}, [table], problem)
