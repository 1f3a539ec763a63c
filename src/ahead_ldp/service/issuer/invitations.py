"""Invitations as files for a mail merge: one row for each person, with a link that works once.

The secret of a person stands behind the # of their link. Browsers send that part nowhere, so the collector, whose page
the link opens, does not see it; the page hands it to the issuer. These files are the issuer's: whoever has them can
answer for everybody.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from ahead_ldp.device.canonical import expect
from ahead_ldp.service.issuer.roster import Roster

COLUMN = "link"
_PAGE = re.compile(r"https?://[^\s/#?]+(/[^\s#?]*)?/c/[0-9a-f]{32,64}")  # 128 bits of the digest, or more


def invite(roster: Roster, members: Path, page: str, out: Path) -> int:
    """Enrol everybody in a CSV file and write it again, with a link for each; how many they are."""
    expect(
        bool(_PAGE.fullmatch(page)), "the link for people, as the campaign's page shows it, such as https://.../c/..."
    )
    head, rows = _read(members)
    expect(COLUMN not in head, f"a file without a column {COLUMN!r}")
    expect(len(rows) >= 1, "at least one person in the file")
    _make(out)  # before anybody is enrolled: secrets that nobody was given would be counted among the enrolled
    try:
        links = [f"{page}#{secret}" for secret in roster.enrol(len(rows))]
    except BaseException:
        out.unlink()
        raise
    _write(out, [*head, COLUMN], [[*row, link] for row, link in zip(rows, links, strict=True)])
    return len(rows)


def remind(roster: Roster, invitations: Path, out: Path) -> tuple[int, int]:
    """Write the rows of those who have not fetched their token, for a reminder; how many of how many they are."""
    head, rows = _read(invitations)
    expect(COLUMN in head, f"a file made by `ahead issue invite`, with a column {COLUMN!r}")
    at = head.index(COLUMN)
    fetched = roster.fetched([row[at].partition("#")[2] for row in rows])
    _make(out)
    left = [row for row, done in zip(rows, fetched, strict=True) if not done]
    _write(out, head, left)
    return len(left), len(rows)


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of a CSV file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise ValueError(f"expected a CSV file in UTF-8, got {str(path)!r}") from None
    head, rows = (lines[0], lines[1:]) if lines else ([], [])
    expect(bool(head) and len(set(head)) == len(head), f"a first line of different column names in {str(path)!r}")
    expect(all(len(row) == len(head) for row in rows), f"as many entries as columns in every line of {str(path)!r}")
    return head, rows


def _make(out: Path) -> None:
    """A new and empty file that its owner alone can read."""
    try:
        out.touch(mode=0o600, exist_ok=False)
    except OSError as error:
        raise ValueError(f"expected a new file, got {str(out)!r}: {error.strerror}") from None


def _write(path: Path, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows])
