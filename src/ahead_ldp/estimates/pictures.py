"""The one hook by which a result reaches the pictures, which are drawn several layers above it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_load: Callable[[], Any] | None = None


def register(load: Callable[[], Any]) -> None:
    """Say how to get the module of figures. It is loaded when the first picture is asked for."""
    global _load
    _load = load


def figures() -> Any:
    """The module of figures."""
    assert _load is not None, "the package registers its figures when it is imported"
    return _load()
