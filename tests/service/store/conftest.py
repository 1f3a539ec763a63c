"""Every contract runs over every store: a file, and a real PostgreSQL that the tests start."""

import pytest

from ahead_ldp.service.store import open_store
from tests.service.store.postgres_server import NoPostgres, PostgresServer, quick_folder

STORES = ("sqlite", "postgres")


@pytest.fixture(scope="session")
def postgres():
    """A running PostgreSQL; it is stopped and removed at the end."""
    try:
        server = PostgresServer(quick_folder())
    except NoPostgres as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


@pytest.fixture(params=STORES)
def new_url(request, tmp_path):
    """A function that names an empty store of one kind."""
    made = iter(range(100))
    if request.param == "sqlite":
        return lambda: f"sqlite:{tmp_path / f'store{next(made)}.db'}"
    return request.getfixturevalue("postgres").new_database


@pytest.fixture
def url(new_url):
    return new_url()


@pytest.fixture
def store(url):
    opened = open_store(url)
    yield opened
    opened.close()
