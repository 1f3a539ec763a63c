"""kill -9 at random moments: of the process that stores, and of PostgreSQL with all its children.

A killed process loses nothing that the operating system has, so this alone proves little about the disk: see
test_power_loss.py. It does prove that the acknowledgement comes after the commit, and that what is left can be opened.
"""

import os
import random
import signal
import subprocess
import sys
import threading

import psycopg
import pytest

from ahead_ldp.service.store import StoreUnavailable, open_store
from tests.service.store.mutants import open_mutant
from tests.service.store.postgres_server import NoPostgres, PostgresServer
from tests.service.store.support import CAMPAIGN, GROUPS, batch, frames, open_campaign, stored
from tests.service.store.worker import SIZE, names

CYCLES = 10
SOAK_CYCLES = 100


def run_and_kill(url, mutant, name, acknowledgements):
    """Uploads that were acknowledged before a SIGKILL that strikes right after one of them."""
    command = [sys.executable, "-m", "tests.service.store.worker", url, mutant, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as worker:
        lines = [worker.stdout.readline() for _ in range(acknowledgements)]
        os.kill(worker.pid, signal.SIGKILL)
        lines += worker.stdout.readlines()
        assert all(lines), worker.stderr.read().decode()
    return len([line for line in lines if line.endswith(b"\n")])


def lost_after_kills(url, mutant, cycles, seed):
    """How many acknowledged reports are missing after all cycles; what is stored is checked to be whole."""
    rng = random.Random(seed)
    store = open_store(url)
    open_campaign(store)
    store.close()
    wanted = set()
    for cycle in range(cycles):
        k = run_and_kill(url, mutant, f"cycle {cycle}", rng.randrange(1, 30))
        wanted |= frames(name for upload in range(k) for name in names(f"cycle {cycle}", upload))
        store = open_store(url)
        found = stored(store)  # every id once, every hash right
        assert store.counts(CAMPAIGN, 1)[GROUPS[0]] == len(found)
        assert len(found) % SIZE == 0  # an upload is in as a whole or not at all
        assert len(found - wanted) <= SIZE * (cycle + 1)  # at most the one that was not acknowledged any more
        store.close()
    return len(wanted - found)


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(url):
    assert lost_after_kills(url, "whole", CYCLES, 1) == 0


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_in_many_kills(url):
    assert lost_after_kills(url, "whole", SOAK_CYCLES, random.randrange(2**32)) == 0


def test_the_kill_finds_a_store_that_acknowledges_early(tmp_path):
    assert lost_after_kills(f"sqlite:{tmp_path / 'store.db'}", "early", 2, 1) > 0


# PostgreSQL killed under a store that goes on.


@pytest.fixture(scope="module")
def fragile():
    """A PostgreSQL to be killed. Its background writer sleeps, so that only commits flush the log."""
    try:
        server = PostgresServer(wal_writer_delay="10s")
    except NoPostgres as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


def lost_after_crashes(server, mutant, cycles, seed):
    """Acknowledged reports that are missing after kills of PostgreSQL at random moments under load."""
    rng = random.Random(seed)
    url = server.new_database()
    store = open_store(url)
    open_campaign(store)
    store.close()
    broken = open_mutant(url, mutant)
    acknowledged = []

    def upload(cycle):
        k = 0
        try:
            while True:
                broken.add_reports([batch(names(f"cycle {cycle}", k))])
                acknowledged.extend(names(f"cycle {cycle}", k))
                k += 1
        except StoreUnavailable:
            return

    lost = 0
    for cycle in range(cycles):
        thread = threading.Thread(target=upload, args=(cycle,))
        before = len(acknowledged)
        thread.start()
        while len(acknowledged) - before < SIZE * rng.randrange(1, 20) and thread.is_alive():
            threading.Event().wait(0.001)
        server.kill()
        thread.join()
        assert len(acknowledged) > before
        server.start()
        again = open_store(url)
        found = stored(again)
        again.close()
        lost = len(frames(acknowledged) - found)
        assert len(found - frames(acknowledged)) <= SIZE * (cycle + 1)
        if lost:
            return lost
    return lost


def test_nothing_acknowledged_is_lost_when_postgres_is_killed(fragile):
    assert lost_after_crashes(fragile, "whole", CYCLES, 1) == 0


@pytest.mark.soak
def test_nothing_acknowledged_is_lost_in_many_kills_of_postgres(fragile):
    assert lost_after_crashes(fragile, "whole", SOAK_CYCLES, random.randrange(2**32)) == 0


@pytest.mark.parametrize("mutant", ["early", "unsynced"])
def test_the_kill_of_postgres_finds_mutants(fragile, mutant):
    assert lost_after_crashes(fragile, mutant, 3, 1) > 0


def test_a_postgres_that_does_not_sync_is_refused(fragile):
    set_fsync(fragile, "off")
    try:
        with pytest.raises(StoreUnavailable, match="expected fsync to be on, got off"):
            open_store(fragile.new_database())
    finally:
        set_fsync(fragile, "on")


def set_fsync(server, value):
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET fsync = {value}")
        connection.execute("SELECT pg_reload_conf()")
    while True:  # the postmaster tells its children
        with psycopg.connect(server.url()) as connection:
            if connection.execute("SHOW fsync").fetchone() == (value,):
                return
