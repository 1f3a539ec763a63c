"""Lives run over every store: a file, and a real PostgreSQL that the tests start."""

import logging

import pytest

from tests.service.store.conftest import postgres  # noqa: F401 (a fixture)


@pytest.fixture
def quiet(monkeypatch):
    """Faults are injected on purpose; what the server logs about them is not looked at here."""
    monkeypatch.setattr(logging.getLogger("ahead_ldp.service.server"), "disabled", True)
