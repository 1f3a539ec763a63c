"""Programs beside Python that a test may need: without them it is skipped by name, and in CI it fails."""

import os

import pytest


def needed(found, what: str, how: str):
    """The program itself; else a skip that says how to get it, or a failure where AHEAD_CI is set."""
    if found:
        return found
    said = f"{what} is missing: {how}"
    if os.environ.get("AHEAD_CI"):
        pytest.fail(said)
    pytest.skip(said)
