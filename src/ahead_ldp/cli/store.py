"""`ahead store`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

from ahead_ldp.cli.options import Text, Texts, argument, group, option
from ahead_ldp.cli.printing import Shown, Table
from ahead_ldp.service import store as stores

Url = Annotated[str, argument("STORE", "A file, or postgresql://user@host/database.")]
Keys = Annotated[Text, option("--keys", "DIR", "The key directory; left out, $AHEAD_KEYS or ./ahead.keys.")]


def check(url: Url, *, keys: Keys = None) -> Shown:
    """Read everything in a store, say what is there, try a write."""
    with _existing(url, keys=keys) as store:
        record: dict[str, Any] = {
            "version": stores.SCHEMA_VERSION,
            "epoch": store.epoch(),
            "events": _check_events(store),
            "campaigns": [_campaign(store, row.digest, row.state) for row in store.campaigns()],
        }
        store.check_writable()
    rows = [[c["campaign"][:12], c["state"], str(c["waves"]), f"{c['reports']:,}"] for c in record["campaigns"]]
    title = f"version {record['version']}, epoch {record['epoch']}, {record['events']} events in an unbroken chain"
    return Shown(record, [Table(title, ["campaign", "state", "waves", "reports"], rows, left=2)])


def backup(url: Url, file: Annotated[Path, argument("FILE", "A new file.")]) -> Shown:
    """Copy a store to one file, while the server goes on."""
    with _existing(url) as store:
        store.backup(str(file))
    return Shown({"backup": str(file), "bytes": file.stat().st_size}, [f"written: {file}"])


def restore(
    file: Annotated[Path, argument("FILE", "A backup.")],
    url: Url,
    keep: Annotated[
        Texts,
        option("--keep", "CAMPAIGN", "A campaign of which no wave was closed since; repeat for more."),
    ] = None,
    epoch: Annotated[int, option("--epoch", "N", "At least this number for the new epoch.")] = 0,
    keys: Keys = None,
) -> Shown:
    """Fill an empty store from a backup, as a new epoch.

    Campaigns that had not ended are ended, unless they are kept. What is kept needs
    its keys, which are not in the backup.
    """
    with _refusing():
        restored = stores.restore(file, url, int(time.time()), keep or [], epoch, keys)
    names = ("campaign", "state", "wave", "reports")
    ended = [{name: getattr(campaign, name) for name in names} for campaign in restored.ended]
    lost = f"restored as epoch {restored.epoch}; what came in after the backup is lost"
    lines = [
        f"campaign {e.campaign[:12]} is {e.state}"
        + (f"; wave {e.wave} is void, {e.reports:,} reports deleted" if e.wave is not None else "")
        for e in restored.ended
    ]
    if restored.forgotten:
        lines.append(f"{restored.forgotten:,} reports of closed waves are forgotten: their keys are gone")
    tokens = [{"name": token.name, "role": token.role} for token in restored.tokens]
    if tokens:
        named = ", ".join(f"{token['name']} ({token['role']})" for token in tokens)
        lines.append(f"tokens that hold, also if they were revoked since the backup: {named}")
    record = {"epoch": restored.epoch, "ended": ended, "forgotten": restored.forgotten, "tokens": tokens}
    return Shown(record, [lost, *lines])


def migrate(url: Url, *, keys: Keys = None) -> Shown:
    """Bring the tables of an older version up to this program's."""
    with _existing(url, migrate=True, keys=keys):
        version = stores.SCHEMA_VERSION
    return Shown({"version": version}, [f"the store has version {version}"])


@contextmanager
def _existing(url: str, migrate: bool = False, keys: str | None = None) -> Iterator[stores.Store]:
    """The store behind a URL; a file that is not there is a mistake here, not a new store."""
    if (path := stores.missing_file(url)) is not None:
        raise ValueError(f"expected a store, but there is {'an empty' if path.exists() else 'no'} file {path}")
    with _refusing(), closing(stores.open_store(url, migrate=migrate, keys=keys)) as store:
        yield store


@contextmanager
def _refusing() -> Iterator[None]:
    """What a store says no to, as one line for whoever typed the command."""
    try:
        yield
    except stores.StoreError as error:
        raise ValueError(str(error)) from error


def _check_events(store: stores.Store) -> int:
    """The number of events, every link checked."""
    number, digest = 0, stores.events.BEFORE_ALL
    while some := store.events(number):
        digest, number = stores.check_chain(some, digest, number), some[-1].number
    return number


def _campaign(store: stores.Store, digest: str, state: str) -> dict[str, Any]:
    """A campaign with the number of its reports, every one of them read."""
    reports = 0
    for question in store.questions(digest):
        n = sum(chunk.n for chunk in store.reports(digest, question.wave, question.group))
        if n != store.counts(digest, question.wave)[question.group]:
            raise ValueError(f"expected as many reports as are counted in wave {question.wave} of {digest}")
        reports += n
    return {"campaign": digest, "state": state, "waves": len(store.waves(digest)), "reports": reports}


store = group("Look after a server's store.", check, backup, restore, migrate)
