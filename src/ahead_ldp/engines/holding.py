"""Answering from a table on this machine: every row is looked at first, then the reports are written."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ahead_ldp.engines.dedup import Spill
from ahead_ldp.engines.jobs import Job
from ahead_ldp.engines.layout import REPORTS
from ahead_ldp.engines.manifests import sha256_of
from ahead_ldp.engines.mapping import map_items
from ahead_ldp.engines.perturb import Plan, answer_rows, check_rows, read_table, rows_of, table_files
from ahead_ldp.engines.writer import ReportWriter
from ahead_ldp.schema.arrays import Bytes

_MOST_ROWS = 10**7  # of a table, for which buckets are small
_ENOUGH = 200_000  # rows from which on processes are worth their start


@dataclass(frozen=True, slots=True)
class Answered:
    """What was done: the wave, reports by group, rows of the table, and whether the campaign has ended here."""

    wave: int
    reports: dict[str, int]
    rows: int
    ended: bool


def answer_table(
    directory: str | Path, table: str | Path, plan: Plan, job: Job, *, out: str | Path | None = None, processes: int = 1
) -> Answered:
    """Answer the open wave of a campaign's directory for the rows of a table; reports go to ``out`` or the directory.

    Nothing is written unless every row can answer and every key is there once.
    """
    rows = _check_table(table, plan)
    key = job.begin(plan.campaign, plan.columns, plan.wave, plan.digests(), fingerprint(table))
    reports = dict.fromkeys(plan.questions, 0)
    answer = partial(_answer, plan=plan, key=key)
    with ReportWriter(Path(out or Path(directory) / REPORTS), name=job.name) as writer:
        batches = read_table(table, plan)
        for answered in map_items(answer, batches, processes if rows > _ENOUGH else 1):
            for group, (ids, payloads) in answered.items():
                writer.add(plan.asked(group), ids, payloads)
                reports[group] += len(ids)
    ended = job.done(plan.campaign, plan.wave, [group.id for group in plan.groups])
    return Answered(plan.wave, reports, rows, ended)


def _answer(batch: Any, plan: Plan, key: bytes) -> dict[str, tuple[Bytes, Bytes]]:
    return answer_rows(plan, key, rows_of(plan, batch))


def _check_table(table: str | Path, plan: Plan) -> int:
    """How many rows there are, all of which can answer, with keys that differ."""
    rows = 0
    with tempfile.TemporaryDirectory(prefix="ahead-keys-") as folder:
        spill = Spill(Path(folder), _MOST_ROWS)
        for batch in read_table(table, plan):
            prints = check_rows(plan, rows_of(plan, batch))
            spill.add(0, rows, prints, prints, plan.campaign)
            rows += len(prints)
        copies = sum(found for _, found, _ in spill.resolve())
    if copies:
        raise ValueError(f"expected every key in {plan.row_key} once, got {copies} that stand there again")
    if not rows:
        raise ValueError(f"expected a table with rows, got none in {str(table)!r}")
    return rows


def fingerprint(table: str | Path) -> str:
    """A digest of all bytes of a table."""
    found = hashlib.sha256()
    for path in table_files(table):
        found.update(f"{path.name}:{sha256_of(str(path))}\n".encode())
    return found.hexdigest()
