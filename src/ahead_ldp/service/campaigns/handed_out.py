"""Folders in which reports of a campaign stand as they came, outside the store, and their end.

Whoever makes one writes it down first, in the store. So it is found and deleted after a crash, too, and by a process
that was never told to count elsewhere (decision 023).
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from ahead_ldp.service.campaigns.logs import event
from ahead_ldp.service.store.interface import Store

KIND = "handed_out"  # the document with their paths
_NAME = re.compile(r"ahead-count-[0-9a-f]{16}-[0-9]+-[0-9a-f]{16}")  # nothing else is ever deleted


def new(store: Store, campaign: str, wave: int, below: Path) -> Path:
    """A new folder that its owner alone can read, written down before it is made."""
    made = below / f"ahead-count-{campaign[:16]}-{wave}-{secrets.token_hex(8)}"
    _note(store, campaign, lambda paths: [*paths, str(made)])
    made.mkdir(mode=0o700, parents=True)
    return made


def forget(store: Store, campaign: str, ended: Path | None = None, unused: Callable[[], bool] = lambda: True) -> bool:
    """Delete what stands there; False, and an error in the log, if something could not be deleted.

    A folder that is not here may be on another machine: it stays written down, unless it is the one that has ``ended``.
    ``unused`` is asked after the paths were read, so nobody can have begun to use one of them meanwhile.
    """
    noted = _noted(store, campaign)
    if not noted or not unused():
        return True
    here = [Path(path) for path in noted if _NAME.fullmatch(Path(path).name) and Path(path).exists()]
    for folder in here:
        shutil.rmtree(folder, ignore_errors=True)
    left = [folder for folder in here if folder.exists()]
    gone = {str(folder) for folder in [*here, *([] if ended is None else [ended])] if folder not in left}
    if gone & set(noted):
        _note(store, campaign, lambda paths: [path for path in paths if path not in gone])
    if left:
        event("files_left", logging.ERROR, campaign=campaign, count=len(left))
    return not left


def _noted(store: Store, campaign: str) -> list[str]:
    found: list[str] = json.loads(store.document(campaign, 0, KIND) or b"[]")
    return found


def _note(store: Store, campaign: str, change: Callable[[list[str]], list[str]]) -> None:
    """Change what is written down, again and again until no other server has changed it meanwhile."""
    changed = False
    while not changed:
        body = store.document(campaign, 0, KIND)
        paths = change(json.loads(body or b"[]"))
        changed = store.change_document(campaign, 0, KIND, body, json.dumps(paths).encode())
