"""kill -9 of a real server, and of its PostgreSQL, at random moments while a client process sends without pause.

Every upload ends with an answer, because the client sends the same bytes until there is one. So at the end the stored
reports must be exactly the acknowledged ones, and every published tally their count.
"""

import random
import time

import pytest

from tests.service.store.postgres_server import NoPostgres, PostgresServer
from tests.service.system.collection import Collection
from tests.service.system.processes import Load, Server

CYCLES, SOAK_CYCLES = 10, 100


@pytest.fixture
def fragile():
    try:
        server = PostgresServer(wal_writer_delay="10s")  # only commits flush the log
    except NoPostgres as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


def survive(store, cycles, seed, kill=None):
    """Kill so many times under load; then everything is checked. How many reports and waves there were."""
    rng = random.Random(seed)
    server = Server(store)
    try:
        collection = Collection(server, 2 + cycles // 5)
        load = Load(server.url, [book.campaign for book in collection.books], seed)
        try:
            for _ in range(cycles):
                load.wait_for(rng.randrange(1, 40))
                time.sleep(rng.random() * 0.05)
                if kill is None:
                    server.kill()
                    server.start()
                else:
                    kill()
                collection.observe()
            load.wait_for(5)
            told = load.stop()
        finally:
            load.kill()
        collection.settle(told)
        collection.quiet()
        collection.check()
        before = collection.fingerprint()
        server.kill()
        server.start()
        assert collection.fingerprint() == before
        assert not [line for line in server.log if "Traceback" in line]
    finally:
        server.stop()
    return collection.size()


def test_nothing_is_lost_or_doubled_when_the_server_is_killed(tmp_path):
    reports, waves = survive(tmp_path / "store.db", CYCLES, 1)
    assert reports > 100
    assert waves > 1


def test_nothing_is_lost_or_doubled_when_a_server_on_postgres_is_killed(fragile):
    reports, waves = survive(fragile.new_database(), CYCLES, 2)
    assert reports > 100
    assert waves > 1


def test_nothing_is_lost_or_doubled_when_postgres_is_killed(fragile):
    def kill():
        fragile.kill()
        fragile.start()

    reports, waves = survive(fragile.new_database(), CYCLES, 3, kill)
    assert reports > 100
    assert waves > 1


@pytest.mark.soak
def test_many_kills_of_the_server(tmp_path):
    assert survive(tmp_path / "store.db", SOAK_CYCLES, random.randrange(2**32))[1] > 10


@pytest.mark.soak
def test_many_kills_of_a_server_on_postgres(fragile):
    assert survive(fragile.new_database(), SOAK_CYCLES, random.randrange(2**32))[1] > 10


@pytest.mark.soak
def test_many_kills_of_postgres(fragile):
    def kill():
        fragile.kill()
        fragile.start()

    assert survive(fragile.new_database(), SOAK_CYCLES, random.randrange(2**32), kill)[1] > 10
