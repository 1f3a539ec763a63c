"""Many at once: threads on one store, and on PostgreSQL several stores on one database."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ahead_ldp.service.store import CampaignState, StateChanged, WaveState, Withdrawal, open_store
from tests.service.store.support import (
    CAMPAIGN,
    CLOSED,
    GROUPS,
    KNOWN,
    NEW,
    batch,
    count,
    frames,
    hold,
    new_wave,
    open_campaign,
    report,
    stored,
)

WORKERS = 4


@pytest.fixture
def stores(store, url):
    """Four workers' stores: server processes share a PostgreSQL, threads share a file."""
    others = [open_store(url) for _ in range(WORKERS - 1)]
    yield [store, *others]
    for other in others:
        other.close()


def together(*calls):
    """Results or errors of calls that start at the same moment."""
    barrier = threading.Barrier(len(calls))

    def run(call):
        barrier.wait()
        try:
            return call()
        except StateChanged as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_replay_storm_counts_each_report_once(stores):
    """All send the same reports in different orders: one NEW an id, in total and in the chunks, and no deadlock."""
    open_campaign(stores[0])

    def send(k):
        order = [(i * (2 * k + 1)) % 64 for i in range(64)]
        return [stores[k].add_reports([batch(order[at : at + 16])])[0] for at in range(0, 64, 16)]

    outcomes = b"".join(b"".join(found) for found in together(*(lambda k=k: send(k) for k in range(WORKERS))))
    assert outcomes.count(NEW) == 64
    assert outcomes.count(KNOWN) == 64 * (WORKERS - 1)
    assert stored(stores[0]) == frames(range(64))


def test_of_changed_bytes_at_once_one_wins(stores):
    open_campaign(stores[0])
    calls = [lambda k=k: stores[k].add_reports([batch(range(20), change=k)])[0] for k in range(WORKERS)]
    outcomes = together(*calls)
    for i in range(20):
        assert [found[i] for found in outcomes].count(NEW) == 1
    winners = {i: next(k for k in range(WORKERS) if outcomes[k][i] == NEW) for i in range(20)}
    assert stored(stores[0]) == set().union(*(frames([i], change) for i, change in winners.items()))


def test_what_is_acknowledged_is_counted_when_a_wave_closes_meanwhile(stores):
    """Uploads run into a close: every NEW is in the frozen count, every CLOSED is not."""
    open_campaign(stores[0])
    acknowledged, refused = set(), set()

    def send(k):
        for at in itertools.count():
            names = [f"{k} {at} {i}" for i in range(3)]
            (outcome,) = stores[k].add_reports([batch(names)])
            if outcome == bytes([CLOSED] * 3):
                refused.update(names)
                return
            assert outcome == bytes([NEW] * 3)
            acknowledged.update(names)

    def shut():
        while len(acknowledged) < 60:
            threading.Event().wait(0.002)
        hold(stores[0])
        counted = count(stores[0])
        assert stores[0].freeze_wave(CAMPAIGN, 1, counted, 201, CampaignState.FINISHED)
        return counted[0].n

    *_, n = together(*(lambda k=k: send(k) for k in range(1, WORKERS)), shut)
    assert n == len(acknowledged)
    assert len(refused) == 3 * (WORKERS - 1)
    assert stored(stores[0]) == frames(acknowledged)


def test_of_closers_at_once_one_freezes(stores):
    open_campaign(stores[0])
    stores[0].add_reports([batch("abc")])
    held = together(*(lambda s=s: hold(s) for s in stores))
    assert held.count(None) == 1
    counted = count(stores[0])
    calls = [
        lambda s=s: s.freeze_wave(CAMPAIGN, 1, counted, 201, CampaignState.OPEN, new_wave(2), b"frozen") for s in stores
    ]
    assert sorted(map(str, together(*calls))) == ["False"] * (WORKERS - 1) + ["True"]
    assert [w.state for w in stores[0].waves(CAMPAIGN)] == ["closed", "open"]
    assert len(stores[0].events()) == 1


def test_of_withdrawals_at_once_one_removes(stores):
    open_campaign(stores[0])
    stores[0].add_reports([batch(range(40))])
    calls = [lambda s=s: [s.withdraw(CAMPAIGN, report(i)[0], 150) for i in range(30)] for s in stores]
    outcomes = together(*calls)
    for found in zip(*outcomes, strict=True):
        assert sorted(found) == [Withdrawal.GONE] * (WORKERS - 1) + [Withdrawal.REMOVED]
    assert stored(stores[0]) == frames(range(30, 40))


def test_a_withdrawal_that_meets_its_own_report(stores):
    """Whichever comes first: it was removed, or nothing was known of it, and then it can be withdrawn once it is in."""
    open_campaign(stores[0])
    for i in range(15):
        (outcome,), answer = together(
            lambda i=i: stores[0].add_reports([batch([i])]), lambda i=i: stores[1].withdraw(CAMPAIGN, report(i)[0], 150)
        )
        assert outcome[0] == NEW
        if answer == Withdrawal.UNKNOWN:
            answer = stores[1].withdraw(CAMPAIGN, report(i)[0], 150)
        assert answer == Withdrawal.REMOVED
    assert stored(stores[0]) == set()


def test_events_at_once_make_one_chain(stores):
    together(*(lambda s=s: [s.add_event(b"event", 10) for _ in range(10)] for s in stores))
    assert [e.number for e in stores[0].events()] == list(range(1, 10 * WORKERS + 1))


def test_jobs_at_once_go_to_one_worker_each(stores):
    for k in range(10):
        stores[0].add_job(f"job {k}", "kind", b"", 1)
    leased = together(*(lambda s=s: [s.lease_job(10, 100) for _ in range(10)] for s in stores))
    numbers = [job.number for found in leased for job in found if job is not None]
    assert sorted(numbers) == [job.number for job in stores[0].jobs()]


def test_open_and_end_at_once(stores):
    stores[0].create_campaign(CAMPAIGN, b"record", 1)
    results = together(
        lambda: stores[0].open_wave(CAMPAIGN, new_wave(1, GROUPS), 2, CampaignState.DRAFT),
        lambda: stores[1].set_campaign_state(CAMPAIGN, CampaignState.DRAFT, CampaignState.VOID, 2),
    )
    assert sum(result is None for result in results) == 1
    is_open = stores[0].campaign(CAMPAIGN).state == CampaignState.OPEN
    assert [w.state for w in stores[0].waves(CAMPAIGN)] == [WaveState.OPEN] * is_open
