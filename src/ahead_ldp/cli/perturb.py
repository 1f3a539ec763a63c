"""`ahead perturb`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ahead_ldp.cli import inputs, printing
from ahead_ldp.engines.jobs import Job
from ahead_ldp.engines.layout import REPORTS
from ahead_ldp.engines.perturb import Answered, Plan, answer_table
from ahead_ldp.engines.spark_holding import answer_frame, read_frame
from ahead_ldp.engines.spark_session import spark_session


def run(
    directory: Path, where: Mapping[str, Any], how: Mapping[str, Any], end: bool, engine: str, as_json: bool
) -> None:
    """Answer, or end, and print what was done."""
    if engine not in ("local", "spark"):
        raise ValueError(f"expected --engine to be local or spark, got {engine!r}")
    if not where["data"]:
        raise ValueError("expected a table, by --data")
    if not how["row_key"] and not end:
        raise ValueError("expected a column that names each row, by --row-key")
    names = None if how["columns"] is None else inputs.split(how["columns"], "--columns")
    plan = Plan.read(directory, how["row_key"], names, how["max_epsilon"])
    if "://" in where["data"] and where["job"] is None:
        raise ValueError("expected a folder of this machine for key and ledger, by --job")
    job = Job(where["job"] or f"{where['data'].rstrip('/')}.ahead-job")
    if end:
        job.end(plan.campaign)
        print("the key is destroyed; this campaign gets no further answer from this table")
        return
    out = where["out"] or str((directory / REPORTS).resolve())
    if engine == "local":
        done = answer_table(directory, where["data"], plan, job, out=out, processes=how["processes"])
    else:
        frame, table = read_frame(spark_session(), where["data"])
        done = answer_frame(frame, plan, job, out, table)
    _print(done, out, as_json)


def _print(done: Answered, out: str, as_json: bool) -> None:
    if as_json:
        found = {"wave": done.wave, "rows": done.rows, "reports": done.reports, "out": out, "ended": done.ended}
        printing.print_json(found)
        return
    answered = sum(done.reports.values())
    print(f"wave {done.wave}: {answered:,} of {done.rows:,} rows answered; their reports are in {out}")
    print("all groups have answered: the key is destroyed" if done.ended else "the other rows answer in other waves")
