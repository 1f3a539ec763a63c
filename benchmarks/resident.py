"""The memory of this process. Standard library only: the other packages' environment imports it too."""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STATUS = Path("/proc/self/status")
_PEAK_RESET = Path("/proc/self/clear_refs")


def start_peak() -> float:
    """Forget the peak so far where the system allows it; the megabytes held now."""
    try:
        _PEAK_RESET.write_text("5")
        return _status("VmRSS")
    except OSError:
        return peak()


def peak() -> float:
    """The most megabytes held since ``start_peak``, or since the process began."""
    if _STATUS.exists():  # getrusage would count the process that started this one
        return _status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


@contextmanager
def own_peak(every_s: float = 0.05) -> Iterator[dict[str, float]]:
    """The most megabytes of its own that the process holds inside the block, looked at every so often.

    Pages of files that it has mapped are left out: the system takes them back when it needs room.
    """
    found, done = {"own_memory": _status("RssAnon")}, threading.Event()

    def look() -> None:
        while not done.wait(every_s):
            found["own_memory"] = max(found["own_memory"], _status("RssAnon"))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield found
    finally:
        done.set()
        looking.join()


def _status(field: str) -> float:
    line = next(x for x in _STATUS.read_text().splitlines() if x.startswith(field + ":"))
    return int(line.split()[1]) * 1024 / 1e6
