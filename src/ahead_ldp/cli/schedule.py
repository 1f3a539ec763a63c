"""`ahead schedule`: what repeated rounds cost the people, before the first one opens."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

from ahead_ldp.cli import inputs
from ahead_ldp.cli.options import File, argument, option
from ahead_ldp.cli.printing import Shown, Table
from ahead_ldp.research import schedules


def schedule(
    rounds: Annotated[list[str], argument("ROUND...", "Names of the rounds, in order of time.")],
    *,
    epsilon: Annotated[str, option("--epsilon", "E", "Privacy parameter of every report.")],
    panels: Annotated[int, option("--panels", "K", "Parts of the people that take turns; 1: all, always.")] = 1,
    users: Annotated[int | None, option("--users", "N", "Everybody who is to take part.")] = None,
    invite: Annotated[File, option("--invite", "FILE", "Names to divide into panels by chance, a line each.")] = None,
    out: Annotated[Path, option("--out", "DIR", "Where the lists of the panels go, with --invite.")] = Path("panels"),
) -> Shown:
    """Say what rounds cost people, and divide people into panels.

    Every round is a campaign of its own with fresh noise. What a person spends
    is the sum over the rounds in which their panel answers.
    """
    made = schedules.Schedule.of(rounds, inputs.epsilon(epsilon), panels)
    if users is not None and users < panels:
        raise ValueError(f"expected at least as many users as panels, got {users}")
    rows, said = made.table(users), made.sentences(users)
    record = {"rounds": rows, "panels": panels, "most": float(made.most), "sentences": said}
    text = [*said, ""]
    head = ["round", "panel", *(["people"] if users else []), "epsilon", "spent by then"]
    body = [
        [r["round"], str(r["panel"]), *([f"{r['people']:,}"] if users else []), f"{r['epsilon']:g}", f"{r['spent']:g}"]
        for r in rows
    ]
    if invite is not None:
        written = _divide(made, invite, out)
        record["lists"] = written
        text += [f"written: {path}" for path in written] + [""]
    return Shown(record, [*text, Table("What a member of the panel that answers has spent", head, body)])


def _divide(made: schedules.Schedule, invite: Path, out: Path) -> list[str]:
    try:
        with open(invite, encoding="utf-8", newline="") as file:
            names = [row[0].strip() for row in csv.reader(file) if row and row[0].strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"expected a readable list of names, got {str(invite)!r}: {error}") from None
    if len(names) < made.panels:
        raise ValueError(f"expected at least {made.panels} names in {str(invite)!r}, got {len(names)}")
    from numpy.random import default_rng  # slow to load, and needed here alone

    out.mkdir(parents=True, exist_ok=True)
    written = []
    for i, members in enumerate(made.divided(names, default_rng()), start=1):
        path = out / f"panel-{i}.txt"
        path.write_text("".join(f"{name}\n" for name in members), "utf-8")
        written.append(str(path))
    return written
