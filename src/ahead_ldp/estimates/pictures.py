"""Pictures of what stands here. They are drawn in `plots`, a layer above, which is loaded when one is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def picture(function: str, *shown: Any, **options: Any) -> Any:
    """What a function of `ahead_ldp.plots` draws."""
    return getattr(import_module("ahead_ldp.plots"), function)(*shown, **options)
