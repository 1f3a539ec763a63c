"""Where the service keeps its state: one interface, two stores."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from ahead_ldp.service.store.backups import Asked, Ended, Restored, prepare, restore_file
from ahead_ldp.service.store.binding import reports_digest
from ahead_ldp.service.store.events import check_chain, event_digest
from ahead_ldp.service.store.interface import (
    KeyMissing,
    LeaseLost,
    NotFound,
    SchemaMismatch,
    StateChanged,
    Store,
    StoreError,
    StoreUnavailable,
)
from ahead_ldp.service.store.keys import Keys
from ahead_ldp.service.store.migrations import SCHEMA_VERSION
from ahead_ldp.service.store.postgres import PostgresStore
from ahead_ldp.service.store.rows import (
    ACCEPTED,
    Batch,
    CampaignRow,
    CampaignState,
    Chunk,
    Event,
    FrozenGroup,
    Job,
    JobState,
    Lease,
    NewQuestion,
    NewWave,
    Outcome,
    QuestionRow,
    QuestionState,
    RoleToken,
    Visit,
    WaveRow,
    WaveState,
    Withdrawal,
)
from ahead_ldp.service.store.sqlite import SQLiteStore

__all__ = [
    "ACCEPTED",
    "SCHEMA_VERSION",
    "Batch",
    "CampaignRow",
    "CampaignState",
    "Chunk",
    "Ended",
    "Event",
    "FrozenGroup",
    "Job",
    "JobState",
    "KeyMissing",
    "Keys",
    "Lease",
    "LeaseLost",
    "NewQuestion",
    "NewWave",
    "NotFound",
    "Outcome",
    "PostgresStore",
    "QuestionRow",
    "QuestionState",
    "Restored",
    "RoleToken",
    "SQLiteStore",
    "SchemaMismatch",
    "StateChanged",
    "Store",
    "StoreError",
    "StoreUnavailable",
    "Visit",
    "WaveRow",
    "WaveState",
    "Withdrawal",
    "check_chain",
    "event_digest",
    "missing_file",
    "open_store",
    "reports_digest",
    "restore",
]

_NO_EPOCH = 2**53  # epochs are numbers in JSON
_POSTGRES = ("postgresql://", "postgres://")


def open_store(url: str, *, migrate: bool = False, keys: str | Path | None = None) -> Store:
    """The store behind a URL: ``postgresql://...``, else a file (``sqlite:PATH`` or just the path).

    An empty one gets its tables. Tables of an older version are brought up if ``migrate``, else refused. ``keys`` is
    the directory of the waves' keys: left out, $AHEAD_KEYS, else ``ahead.keys`` in the working directory.
    """
    if url.startswith(_POSTGRES):
        return PostgresStore(url, migrate=migrate, keys=keys)
    if "://" in url and not url.startswith("sqlite://"):
        raise ValueError(f"expected a store to be a file or postgresql://..., got {url.partition('://')[0]}://...")
    return SQLiteStore(_path(url), migrate=migrate, keys=keys)


def missing_file(url: str) -> Path | None:
    """Where the file of a store should be, if none is there, or one without a byte. None: there is one, or no file."""
    path = None if url.startswith(_POSTGRES) else _path(url)
    there = path is None or (path.exists() and not (path.is_file() and path.stat().st_size == 0))
    return None if there else path


def restore(
    backup: str | Path,
    url: str,
    now: int,
    keep: Collection[str] = (),
    epoch: int = 0,
    keys: str | Path | None = None,
) -> Restored:
    """Fill an empty store from a backup, as a new epoch.

    What came in after the backup is lost. Campaigns that had not ended are ended, except those in ``keep``: their
    operator vouches that no wave was closed since. The new epoch is one more than the backup's, or ``epoch`` if larger.
    The keys are not in a backup: those of the kept campaigns must be in the key directory (``KeyMissing``).
    """
    if not 0 <= epoch < _NO_EPOCH:
        raise ValueError(f"expected 0 <= epoch < 2^53, got {epoch}")
    as_asked = Asked(now, frozenset(keep), epoch, keys)
    if not url.startswith(_POSTGRES):
        return restore_file(backup, _path(url), as_asked)
    with tempfile.TemporaryDirectory() as folder:
        prepared, restored = prepare(backup, Path(folder), as_asked)
        with closing(SQLiteStore(prepared)) as source, closing(PostgresStore(url)) as target, source.reading() as tx:
            target.load(tx)
    return restored


def _path(url: str) -> Path:
    return Path(url.removeprefix("sqlite://").removeprefix("sqlite:"))
