"""Why the store does not work, in the log: each reason once in a while, however many requests meet it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ahead_ldp.service.campaigns.logs import event
from ahead_ldp.service.store.interface import StoreUnavailable

_EVERY_S = 10.0
_MOST = 100  # reasons that are remembered


@dataclass(slots=True)
class Outages:
    """What was said lately. A reason is the store's own message, which holds no report, token or value."""

    monotonic: Callable[[], float] = time.monotonic
    said: dict[str, float] = field(default_factory=dict)

    def tell(self, error: StoreUnavailable, **fields: Any) -> None:
        """Log the reason, unless it was logged a moment ago."""
        reason, now = str(error), self.monotonic()
        if now - self.said.get(reason, -_EVERY_S) < _EVERY_S:
            return
        if len(self.said) >= _MOST:
            self.said.clear()
        self.said[reason] = now
        event("store_unavailable", logging.ERROR, reason=reason, **fields)
