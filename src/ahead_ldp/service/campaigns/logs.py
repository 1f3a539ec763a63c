"""Structured logs: one JSON object per line, with the fields that an event names and nothing else.

No body, value, token or address reaches a log because nothing here has a field for one: an event is a fixed text, and
its fields are numbers, states, reasons and digests of public records.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO

LOGGER = logging.getLogger("ahead_ldp.service.server")
LOGGERS = (LOGGER.name, "asyncio")  # the second speaks of tasks and sockets that failed
FIELDS = frozenset(
    [
        "campaign",
        "wave",
        "group",
        "state",
        "reason",
        "n",
        "accepted",
        "refused",
        "status",
        "seconds",
        "kind",
        "count",
        "epoch",
        "role",
        "port",
        "store",
        "z",
        "extended",
        "environment",
        "error",
    ]
)


def event(name: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log one event. A field that is not in the list is our own mistake."""
    if unknown := sorted(fields.keys() - FIELDS):
        raise AssertionError(f"expected fields that may be logged, got {', '.join(unknown)}")
    LOGGER.log(level, name, extra={"fields": fields})


class JsonLines(logging.Formatter):
    """Time, level, event and fields. Of an exception only its class and where it was raised: never its message."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": record.msg if record.name == LOGGER.name else record.name,
            **getattr(record, "fields", {}),
        }
        if record.name != LOGGER.name:  # its first line as it stands in the code: what is put into it could be anything
            line["message"] = str(record.msg).partition("\n")[0]
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            trace = record.exc_info[2]
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            if trace is not None:
                line["at"] = f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}"
        return json.dumps(line, default=str)


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Send the server's events, and what the event loop has to say, to a stream as JSON lines."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
