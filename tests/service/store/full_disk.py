"""A store on a real disk that fills up and turns read-only: ``python -m tests.service.store.full_disk FOLDER``.

FOLDER is a small tmpfs of this process's own mount namespace. Every claim is asserted; the last line is ``whole``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ahead_ldp.service.store import SQLiteStore, StoreUnavailable, open_store
from tests.service.store.support import batch, frames, open_campaign, stored


def upload_until_refused(store: SQLiteStore, names: set[str]) -> str:
    """Upload until the store refuses; what was acknowledged is added to the names."""
    for _ in range(10_000):
        new = {f"{len(names)} {i}" for i in range(200)}
        try:
            store.add_reports([batch(sorted(new))])
        except StoreUnavailable as error:
            return str(error)
        names |= new
    raise AssertionError("the disk never filled")


def main(folder: Path) -> None:
    """Fill, free, turn read-only, turn back."""
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(500_000))
    store = open_store(str(folder / "store.db"))
    open_campaign(store)
    names: set[str] = set()
    refused = upload_until_refused(store, names)
    assert "FULL" in refused or "IOERR" in refused, refused
    store.ping()  # what is there can still be read
    assert stored(store) == frames(names)
    ballast.unlink()
    assert store.add_reports([batch(["after"])]) == [bytes(1)]
    names.add("after")
    store.close()
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    with pytest.raises(StoreUnavailable, match=r"READONLY|CANTOPEN"):
        open_store(str(folder / "store.db")).check_writable()
    subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
    store = open_store(str(folder / "store.db"))
    assert store.add_reports([batch(["again"])]) == [bytes(1)]
    names.add("again")
    store.close()
    again = open_store(str(folder / "store.db"))
    assert stored(again) == frames(names)
    again.close()
    print("whole")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
