"""Where the parts of a collection are in its directory, and how its records are read and written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ahead_ldp.device.canonical import Record, canonical_bytes, digest, parse_canonical
from ahead_ldp.device.codes import Schema
from ahead_ldp.mechanisms import mechanism_from_record
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import Mechanism, campaign_record, tally_from_record
from ahead_ldp.protocol.session import ReplayMismatch

CAMPAIGN, SCHEMA, ESTIMATE, REPORTS = "campaign.json", "schema.json", "estimate.json", "reports"
_TOLD = ("schema", "method", "groups")  # what a session is made from; a service's record says more


def group_name(group: str) -> str:
    """The group itself if its name can be that of a file."""
    if not group or group.startswith(".") or not all(c.isalnum() or c in "._-" for c in group):
        raise ValueError(f"expected a group's name of letters, digits, dots and dashes, got {group!r}")
    return group


def place(root: Path, kind: str, wave: int, group: str, end: str = "json") -> Path:
    """The file of one group: ``KIND/WAVE/GROUP.json``."""
    return root / kind / str(wave) / f"{group_name(group)}.{end}"


def report_folder(wave: int, group: str) -> str:
    """Where the report files of one group are, below the folder of all: the form that Spark and Polars know."""
    return f"wave={wave}/group={group_name(group)}"


def write_record(path: Path, record: Record) -> None:
    """Canonical JSON, whole or not at all: a crash leaves the old file, never a half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, canonical_bytes(record) + b"\n")


def write_whole(path: Path, data: bytes) -> None:
    """Bytes that appear under their name in one step and are on the disk by then."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def read_record(path: Path, expected: str = "the files of a finished run") -> Record:
    """The record of a file."""
    try:
        return parse_canonical(path.read_bytes().removesuffix(b"\n"))
    except OSError as error:
        raise ValueError(f"expected {expected}, got {str(path)!r}: {error.strerror}") from None


def write_campaign(root: Path, mechanism: Mechanism, schema: Schema) -> None:
    """Begin a directory, which must be new or empty."""
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise ValueError(f"expected a new or empty directory, got {str(root)!r}")
    root.mkdir(parents=True, exist_ok=True)
    write_record(root / SCHEMA, schema.record())
    write_record(root / CAMPAIGN, campaign_record(mechanism, schema))


def read_campaign(root: Path, expected: str = "the files of a finished run") -> tuple[Mechanism, Schema, str]:
    """Mechanism, schema and the digest that every question carries. A service's richer record is welcome."""
    found = read_record(root / CAMPAIGN, expected)
    if found.get("type") != "campaign" or any(name not in found for name in _TOLD):
        raise ValueError(f"expected a campaign with schema, method and groups in {str(root / CAMPAIGN)!r}")
    mechanism, schema = mechanism_from_record(found["method"]), Schema.from_record(found["schema"])
    made, stored = campaign_record(mechanism, schema), read_record(root / SCHEMA, expected)
    if any(made[name] != found[name] for name in _TOLD) or stored != found["schema"]:
        raise ReplayMismatch("campaign.json, its groups and schema.json are not of one run")
    return mechanism, schema, digest(found)


def asked_waves(root: Path) -> list[int]:
    """The waves whose questions are there, from 1 without a gap."""
    found = sorted(int(path.name) for path in (root / "questions").glob("*") if path.name.isdecimal())
    if found != list(range(1, len(found) + 1)):
        raise ValueError(f"expected waves numbered from 1 in {str(root / 'questions')!r}, got {found}")
    return found


def read_questions(root: Path, wave: int) -> dict[str, bytes]:
    """The canonical bytes of a wave's questions, by group."""
    paths = sorted((root / "questions" / str(wave)).glob("*.json"))
    return {path.name.removesuffix(".json"): path.read_bytes().removesuffix(b"\n") for path in paths}


def read_tallies(root: Path, wave: int, questions: Mapping[str, bytes]) -> dict[str, Tally]:
    """The tallies of a wave, each checked to be of its question."""
    found = {}
    for group, question in questions.items():
        path = place(root, "tallies", wave, group)
        try:
            found[group] = tally_from_record(read_record(path), digest(parse_canonical(question)))
        except ValueError as error:
            raise ReplayMismatch(f"{path.relative_to(root)} does not go with its question: {error}") from None
    return found
