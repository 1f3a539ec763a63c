"""`ahead demo`: many people answer, over HTTP where a server can run, and what can be said about them.

Everything is what a real campaign uses; only the people are synthetic. Without the extra `server` the reports are made
and counted in one program, and without `plot` there are no pictures.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated, Any

import ahead_ldp
from ahead_ldp.cli import drawing, inputs, later, sampletown
from ahead_ldp.cli.options import Text, flag, option

PEOPLE, FEWEST, EPSILON = 100_000, 1000, 2.0


def demo(
    *,
    people: Annotated[int, option("--people", "N", "How many people.")] = PEOPLE,
    epsilon: Annotated[float, option("--epsilon", "E", "Privacy parameter of a report.")] = EPSILON,
    method: Annotated[Text, option("--method", "M", "Left out, the best for one attribute.")] = None,
    enrolment: Annotated[str, option("--enrolment", "HOW", "walk_in or panel.")] = "walk_in",
    out: Annotated[Path, option("--out", "FILE", "Where the picture goes.")] = Path("out/demo.png"),
    keep: Annotated[bool, flag("--keep", "Keep the server running, for a look at its dashboard.")] = False,
) -> None:
    """Collect made-up salaries, and answer range queries.

    A real server, and many people who answer it over HTTP; then the audit,
    answers beside the truth, and two pictures.
    """
    private = inputs.epsilon(epsilon)
    if people < FEWEST:
        raise ValueError(f"expected at least {FEWEST} people, got {people}")
    if enrolment not in ("walk_in", "panel"):
        raise ValueError(f"expected --enrolment to be walk_in or panel, got {enrolment!r}")
    salaries = sampletown.synthetic_salaries(people)
    print(f"Synthetic salaries, log-normal with heaping, {people:,} people.")
    if keep or not _is_missing("fastapi"):
        served = later.real("ahead_ldp.cli.demo_server")  # loaded here: what it imports needs the extra
        served.serve(
            salaries, private, method, enrolment, lambda estimate: print_answers(estimate, salaries, out), keep
        )
        return
    print(
        "A server needs what `pip install 'ahead-ldp[server]'` brings. Without it everybody's noisy report is\n"
        "made and counted in this program: the same noise, and no network.\n"
    )
    schema = sampletown.SCHEMA
    estimate = ahead_ldp.collect(salaries, schema, epsilon=epsilon, method=method, progress=False)
    print_answers(estimate, salaries, out)


def _is_missing(package: str) -> bool:
    return importlib.util.find_spec(package) is None


def print_answers(estimate: ahead_ldp.Estimate, salaries: Any, out: Path) -> None:
    """Answers beside the truth, and two pictures."""
    answers = estimate.ask(*sampletown.QUERIES)
    truth = [float(((salaries >= lo) & (salaries <= hi)).mean()) for lo, hi in sampletown.RANGES]
    print(answers.table(truth=truth))
    low, high = answers.interval()
    inside = int(((low <= truth) & (truth <= high)).sum())
    print(f"{inside} of {len(truth)} intervals hold the truth; the widest is {100 * (high - low).max():.1f} points.\n")
    print(estimate.summary())
    print(f"mean: {estimate.mean()}; truth {salaries.mean():,.0f}\n")
    if _is_missing("matplotlib"):
        print("No pictures: they need what `pip install 'ahead-ldp[plot]'` brings.")
        return
    beside = out.with_stem(out.stem + "-answers")
    drawing.save(drawing.picture(estimate, truth=sampletown.histogram(salaries)), out, dpi=110)
    drawing.save(ahead_ldp.plot_answers(answers, truth=truth), beside, dpi=110)
    print(f"Pictures: {out} and {beside}")
