"""The memory of this process. Standard library only: the other packages' environment imports it too."""

from __future__ import annotations

import resource
import sys
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


def _status(field: str) -> float:
    line = next(x for x in _STATUS.read_text().splitlines() if x.startswith(field + ":"))
    return int(line.split()[1]) * 1024 / 1e6
