"""An environment of their own for the packages that we are compared with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.measuring import ROOT

PLACE = ROOT / ".bench-venv"
# Both packages hash text, which xxhash 4 refuses; they import scikit-learn and statsmodels without asking for them.
REQUIREMENTS = ("pure-ldp==1.2.0", "multi-freq-ldpy==0.2.5", "xxhash<4", "scikit-learn", "statsmodels")


class Unavailable(Exception):
    """The environment cannot be made, say without a network."""


def peers_python(place: Path = PLACE, requirements: tuple[str, ...] = REQUIREMENTS) -> Path:
    """The interpreter of the environment, which is made on first use."""
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = place / ".installed"
    if stamp.exists() and stamp.read_text() == "\n".join(requirements):
        return python
    print(f"installing {', '.join(requirements)} into {place.name}", file=sys.stderr)
    try:
        _run(sys.executable, "-m", "venv", "--clear", str(place))
        _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout or "").strip().splitlines() or [str(error)]
        raise Unavailable(said[-1]) from error
    stamp.write_text("\n".join(requirements))
    return python


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
