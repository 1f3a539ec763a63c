"""`ahead store`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ahead_ldp.cli import printing
from ahead_ldp.service.store import SCHEMA_VERSION, Store, StoreError, check_chain, events, open_store
from ahead_ldp.service.store import restore as restore_store


def check(url: str, as_json: bool) -> None:
    """Open, read everything, verify the audit chain, write a mark; then say what was found."""
    with existing(url) as store:
        found: dict[str, Any] = {
            "version": SCHEMA_VERSION,
            "epoch": store.epoch(),
            "events": _check_events(store),
            "campaigns": [_campaign(store, row.digest, row.state) for row in store.campaigns()],
        }
        store.check_writable()
    if as_json:
        return printing.print_json(found)
    rows = [[c["campaign"][:12], c["state"], str(c["waves"]), f"{c['reports']:,}"] for c in found["campaigns"]]
    title = f"version {found['version']}, epoch {found['epoch']}, {found['events']} events in an unbroken chain"
    printing.print_table(title, ["campaign", "state", "waves", "reports"], rows, left=2)


def backup(url: str, file: Path, as_json: bool) -> None:
    """Copy to a new file."""
    with existing(url) as store:
        store.backup(str(file))
    printing.print_json({"backup": str(file), "bytes": file.stat().st_size}) if as_json else print(f"written: {file}")


def restore(file: Path, url: str, keep: Sequence[str], epoch: int, as_json: bool) -> None:
    """Fill an empty store."""
    with _told():
        done = restore_store(file, url, int(time.time()), keep, epoch)
    ended = [{"campaign": e.campaign, "state": e.state, "wave": e.wave, "reports": e.reports} for e in done.ended]
    if as_json:
        return printing.print_json({"epoch": done.epoch, "ended": ended})
    print(f"restored as epoch {done.epoch}; what came in after the backup is lost")
    for e in done.ended:
        wave = f"; wave {e.wave} is void, {e.reports:,} reports deleted" if e.wave is not None else ""
        print(f"campaign {e.campaign[:12]} is {e.state}{wave}")


def migrate(url: str, as_json: bool) -> None:
    """Bring up the tables."""
    with existing(url, migrate=True):
        pass
    printing.print_json({"version": SCHEMA_VERSION}) if as_json else print(f"the store has version {SCHEMA_VERSION}")


@contextmanager
def existing(url: str, migrate: bool = False) -> Iterator[Store]:
    """The store behind a URL; a file that is not there is a mistake here, not a new store."""
    path = url.removeprefix("sqlite://").removeprefix("sqlite:")
    if not url.startswith("postgres") and not Path(path).exists():
        raise ValueError(f"expected a store, but there is no file {path}")
    with _told():
        store = open_store(url, migrate=migrate)
        try:
            yield store
        finally:
            store.close()


@contextmanager
def _told() -> Iterator[None]:
    """What a store says no to, as one line for whoever typed the command."""
    try:
        yield
    except StoreError as error:
        raise ValueError(str(error)) from error


def _check_events(store: Store) -> int:
    """The number of events, every link checked."""
    number, digest = 0, events.BEFORE_ALL
    while found := store.events(number):
        digest, number = check_chain(found, digest, number), found[-1].number
    return number


def _campaign(store: Store, digest: str, state: str) -> dict[str, Any]:
    """A campaign with the number of its reports, every one of them read."""
    reports = 0
    for question in store.questions(digest):
        n = sum(chunk.n for chunk in store.reports(digest, question.wave, question.group))
        if n != store.counts(digest, question.wave)[question.group]:
            raise ValueError(f"expected as many reports as are counted in wave {question.wave} of {digest}")
        reports += n
    return {"campaign": digest, "state": state, "waves": len(store.waves(digest)), "reports": reports}
