"""Two server processes' worth of applications on one PostgreSQL: any of them takes any request, one closes a wave."""

import json
import threading

import pytest

from ahead_ldp.service.store import open_store
from tests.service.server.harness import FakeClock, ages, batch, bench_over, reports
from tests.service.store.postgres_server import NoPostgres, PostgresServer, quick_folder


@pytest.fixture(scope="module")
def postgres():
    try:
        server = PostgresServer(quick_folder())
    except NoPostgres as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


@pytest.fixture
def two(postgres):
    url, clock = postgres.new_database(), FakeClock()
    stores = [open_store(url), open_store(url)]
    with bench_over(stores[0], clock) as first, bench_over(stores[1], clock, names=("op2", "an2")) as second:
        yield first, second
    for store in stores:
        store.close()


def test_a_campaign_runs_over_both(two):
    first, second = two
    campaign = second.opened()
    number = 1
    while second.state(campaign)["state"] == "open":
        assert first.answer(campaign, number, ages(40, seed=number)) == 40
        assert second.answer(campaign, number, ages(40, seed=100 + number)) == 40
        assert second.close(campaign, number)["state"] == "done"
        number += 1
    assert {row.n for row in first.store.questions(campaign)} == {80}
    assert first.state(campaign) == second.state(campaign)


def test_the_same_bytes_at_both_count_once(two):
    first, second = two
    campaign = second.opened()
    question = next(iter(second.questions(campaign, 1).values()))
    body = batch(question, reports(question, 25))
    found = []
    threads = [threading.Thread(target=lambda s=s: found.append(s.upload(campaign, body).json())) for s in (*two, *two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"accepted": 25, "refused": []}] * 4
    assert sum(first.store.counts(campaign, 1).values()) == 25


def test_both_closers_close_once(two):
    first, second = two
    campaign = second.opened(closing={"kind": "reports", "reports": 30})
    second.answer(campaign, 1, ages(30))
    threads = [threading.Thread(target=service.app.round) for service in (*two, *two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [w["number"] for w in first.state(campaign)["waves"]] == [1, 2]
    assert sum(json.loads(e.body)["event"] == "wave_closed" for e in first.store.events()) == 1
