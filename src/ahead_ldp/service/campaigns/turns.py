"""Questions that take seconds of a processor, which uploads need as well: one after the other is worked on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

from ahead_ldp.service.campaigns.problems import Problem

_MOST = 8  # questions of one process at a time, most of them waiting: each holds a thread


class Turns:
    """One question works, a few wait, and further ones are told to come back."""

    def __init__(self, most: int = _MOST) -> None:
        """Nobody works yet."""
        self._waiting, self._working = BoundedSemaphore(most), Lock()

    @contextmanager
    def one(self) -> Iterator[None]:
        """A turn; a ``Problem`` where too many wait for theirs."""
        if not self._waiting.acquire(blocking=False):
            raise Problem("busy", "other questions are being worked on")
        try:
            with self._working:
                yield
        finally:
            self._waiting.release()
