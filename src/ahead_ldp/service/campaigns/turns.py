"""Questions that take seconds of a processor, which uploads need as well: one after the other is worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from ahead_ldp.estimates.pauses import pausing
from ahead_ldp.service.campaigns.problems import Problem

_MOST = 8  # questions of one process at a time, most of them waiting: each holds a thread


class Turns:
    """One question works, a few wait, and further ones are told to come back.

    A question of many numbers takes a turn for each: a short one waits for one number of a long one, and not for all.
    """

    def __init__(self, most: int = _MOST) -> None:
        """Nobody works yet."""
        self._most, self._moved = most, Condition()
        self._line: deque[object] = deque()  # the first one works

    @contextmanager
    def one(self) -> Iterator[None]:
        """A turn; a ``Problem`` where too many wait for theirs."""
        me = object()
        with self._moved:
            if len(self._line) >= self._most:
                raise Problem("busy", "other questions are being worked on")
            self._line.append(me)
        try:
            self._wait(me)
            with pausing(lambda: self._give_way(me)):
                yield
        finally:
            with self._moved:
                self._line.remove(me)
                self._moved.notify_all()

    def _wait(self, me: object) -> None:
        with self._moved:
            self._moved.wait_for(lambda: self._line[0] is me)

    def _give_way(self, me: object) -> None:
        """Go to the end of the line, if anybody is in it."""
        with self._moved:
            if len(self._line) > 1:
                self._line.rotate(-1)
                self._moved.notify_all()
                self._moved.wait_for(lambda: self._line[0] is me)
