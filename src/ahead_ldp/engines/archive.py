"""Estimates from files: computed again from what they are a function of, and checked."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from ahead_ldp.device.canonical import Record, digest, fields, parse_canonical
from ahead_ldp.device.codes import Schema
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.mechanisms import mechanism_from_record
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import tally_from_record
from ahead_ldp.protocol.session import ReplayMismatch, Session, environment

_FIELDS = "type version campaign schema method waves frozen answers environment"
_TOLERANCE = 1e-9  # between environments; bit for bit in one


def load(path: str | PathLike[str]) -> Estimate:
    """The estimate that ``Estimate.save`` wrote: every question is recomputed and compared, then the answers are.

    A file that is not such a record is a ``ValueError``; one that gives other questions, another chain or other
    answers here is a ``ReplayMismatch``, and nothing comes of it.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"expected a readable file, got {str(path)!r}: {error}") from None
    found = fields(parse_canonical(data.removesuffix(b"\n")), _FIELDS, "the estimate")
    if (found["type"], found["version"]) != ("estimate", 1) or not isinstance(found["waves"], list):
        raise ValueError(f"expected an estimate of version 1 in {str(path)!r}")
    return estimate_from_record(found)


def estimate_from_record(found: Record) -> Estimate:
    """The estimate behind its canonical form, recomputed and checked."""
    schema = Schema.from_record(found["schema"])
    session = Session(mechanism_from_record(found["method"]), schema, found["campaign"])
    for wave in found["waves"]:
        session.tell(_tallies(session, wave, found["environment"]))
    if session.frozen != found["frozen"]:
        raise ReplayMismatch("the tallies are not those that the saved chain of digests binds")
    estimate = session.finish()
    saved = np.array([float(x) for x in found["answers"]])
    made = estimate.fingerprint()
    if saved.shape != made.shape or not np.allclose(made, saved, rtol=0.0, atol=_TOLERANCE):
        raise ReplayMismatch(
            f"the answers are not the saved ones: made by {found['environment']}, here {environment()}"
        )
    return estimate


def _tallies(session: Session, wave: object, made_by: str) -> dict[str, Tally]:
    if not isinstance(wave, list) or not session.is_open:
        raise ValueError("expected a list of tallies for each wave of the method")
    told = {str(fields(entry, "group tally", "a tally")["group"]): entry["tally"] for entry in wave}
    questions = {group: digest(record) for group, record in session.question_records().items()}
    for group, tally in told.items():
        asked = tally.get("question") if isinstance(tally, dict) else None
        if group not in questions or asked != questions[group]:
            raise ReplayMismatch(
                f"wave {session.number}: the question of group {group} is not the saved one: "
                f"made by {made_by}, here {environment()}"
            )
    return {group: tally_from_record(tally, questions[group]) for group, tally in told.items()}
