"""A real cluster, on hosts of their own: workers die and are slow, and every report is counted once."""

import json
import shutil
import time

import numpy as np
import pytest

from ahead_ldp.engines.local import LOCAL
from benchmarks.batch_runner import question
from tests.engines.cluster import Cluster
from tests.engines.cluster_job import CELLS, as_record
from tests.engines.examples import some_reports, write
from tests.hosts import NoHosts
from tests.needs import needed
from tools import system

WAIT_S = 300  # far more than it takes, so that a busy machine is not taken for a fault


@pytest.fixture
def cluster(tmp_path):
    pytest.importorskip("pyspark")
    needed(shutil.which("ip"), "ip", system.how_to_install("ip"))
    try:
        made = Cluster(tmp_path)
    except NoHosts as reason:
        pytest.skip(str(reason))  # a right that nothing installs
    yield made
    made.remove()


def reports(folder, seed):
    """Many files, and copies across them."""
    asked = question(CELLS)
    ids, payloads = some_reports(asked, 4000, seed)
    write(folder, asked, ids, payloads, rows_per_file=250)
    write(folder, asked, ids[:40], payloads[40:80], name="z")
    return asked


def survive(cluster, folder, seed):
    """One job, in which a worker dies while tasks run on it."""
    asked, marks = reports(folder / "reports", seed), folder / "marks"
    marks.mkdir()
    truth = as_record(LOCAL.count(LOCAL.find(str(folder / "reports")), {asked.question: asked}))
    driver = cluster.driver(folder / "reports", marks)
    until = time.monotonic() + WAIT_S
    while len(list(marks.glob("began-*"))) < 3:
        assert driver.poll() is None, driver.stderr.read()[-3000:]
        assert time.monotonic() < until
        time.sleep(0.02)
    killed = cluster.hosts.kill(2 + seed % 2)
    said, errors = driver.communicate(timeout=WAIT_S)
    assert driver.returncode == 0, errors[-3000:]
    assert killed >= 3  # worker, executor, interpreters
    return json.loads(said.splitlines()[-1]), truth


def test_a_worker_dies_and_another_is_slow(cluster, tmp_path):
    found, truth = survive(cluster, tmp_path, 1)
    assert found == truth
    assert (truth["n"], truth["duplicates"]) == (4000, 40)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(20))
def test_many_jobs_lose_a_worker(part, cluster, tmp_path):
    found, truth = survive(cluster, tmp_path, int(np.random.default_rng().integers(1, 10**6)))
    assert found == truth
