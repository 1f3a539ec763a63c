"""A progress bar on standard error, for work that turns out to be long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Self, TextIO

_WIDTH = 30


class Bar:
    """Shows how far some work is, once it has taken ``patience_s``; shorter work leaves no trace.

    Call it with what is done and what there is to do. On a terminal the line is drawn over and gone at the end;
    elsewhere there is a line at most every five seconds.
    """

    def __init__(
        self,
        title: str,
        stream: TextIO | None = None,
        patience_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title, self.patience_s, self.clock = title, patience_s, clock
        self.stream = sys.stderr if stream is None else stream
        self.on_terminal = self.stream.isatty()
        self.started = clock()
        self.drawn: float | None = None

    def __call__(self, done: int, total: int) -> None:
        """Tell how far it is."""
        now = self.clock()
        between_s = 0.1 if self.on_terminal else 5.0
        if now - self.started < self.patience_s or (self.drawn is not None and now - self.drawn < between_s):
            return
        self.drawn = now
        share = done / max(total, 1)
        left_s = (now - self.started) * (1 - share) / share if share > 0 else float("inf")
        filled = round(_WIDTH * share)
        bar = "#" * filled + "." * (_WIDTH - filled)
        left = f", {left_s:.0f} s left" if left_s < 1e6 else ""
        line = f"{self.title} [{bar}] {share:4.0%} ({done:,} of {total:,}{left})"
        self.stream.write(f"\r\033[K{line}" if self.on_terminal else f"{line}\n")
        self.stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.drawn is not None and self.on_terminal:
            self.stream.write("\r\033[K")
            self.stream.flush()
