"""Where the parts of a run are in its directory, and how records are written so that a crash leaves no half."""

from __future__ import annotations

import os
from pathlib import Path

from ahead_ldp.device.canonical import Record, canonical_bytes, parse_canonical

CAMPAIGN, SCHEMA, ESTIMATE, REPORTS = "campaign.json", "schema.json", "estimate.json", "reports"
FINISHED = "the files of a finished run"


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


def read_record(path: Path, expected: str = FINISHED) -> Record:
    """The record of a file."""
    try:
        return parse_canonical(path.read_bytes().removesuffix(b"\n"))
    except OSError as error:
        raise ValueError(f"expected {expected}, got {str(path)!r}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{error}, in {str(path)!r}") from None
