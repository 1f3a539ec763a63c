"""Places where a long computation lets others go first: between two numbers, where nothing is half done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_BETWEEN: ContextVar[Callable[[], None] | None] = ContextVar("between two numbers", default=None)


@contextmanager
def pausing(between: Callable[[], None]) -> Iterator[None]:
    """While this lasts, what is computed in this thread calls ``between`` again and again."""
    token = _BETWEEN.set(between)
    try:
        yield
    finally:
        _BETWEEN.reset(token)


def pause() -> None:
    """Let others go first, if somebody has said how. Called where no lock is held."""
    between = _BETWEEN.get()
    if between is not None:
        between()
