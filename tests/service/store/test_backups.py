"""Backup and restore: one snapshot, any store to any store, a new epoch, and no wave closed twice."""

import threading

import pytest

from ahead_ldp.service.store import (
    CampaignState,
    JobState,
    NotFound,
    RoleToken,
    StoreUnavailable,
    Visit,
    WaveState,
    check_chain,
    open_store,
    restore,
)
from ahead_ldp.service.store.rows import LINKS
from tests.service.store.conftest import STORES
from tests.service.store.support import (
    CAMPAIGN,
    CLOSED,
    GROUPS,
    KNOWN,
    NEW,
    OTHER,
    WITHDRAWN,
    batch,
    close,
    frames,
    new_wave,
    open_campaign,
    report,
    stored,
)
from tests.service.store.test_migrations import make_version_2

ENDED = "e" * 64
VISIT = Visit(bytes(32), bytes(16), bytes(32), 400, 400, 10**6)


@pytest.fixture(params=STORES)
def target(request, tmp_path):
    """An empty store to restore into, of either kind."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'restored.db'}"
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture
def backup(tmp_path):
    return str(tmp_path / "backup")


def fill(store):
    """A campaign in its second wave, one that has ended, one that never began, and everything around them."""
    open_campaign(store)
    store.add_reports([batch("abc"), batch("xy", GROUPS[1])])
    store.withdraw(CAMPAIGN, report("b")[0], 150)
    close(store)
    store.add_reports([batch("de", wave=2)])
    open_campaign(store, ENDED)
    store.add_reports([batch("abc", campaign=ENDED)])
    close(store, campaign=ENDED, last=True)
    store.delete_reports(ENDED, 300)
    store.create_campaign(OTHER, b"draft", 400)
    store.add_counters({(CAMPAIGN, 1, "wave_closed"): 3})
    store.put_document(CAMPAIGN, 1, "screens", b"document")
    store.put_document(CAMPAIGN, 0, LINKS, b"a link that is ended after the backup")
    store.add_job("close 2", "close", b"args", 400)
    store.lease_job(400, 1000)
    store.add_role_token(RoleToken(bytes(32), "operator", "ann", 10, None, None))
    store.start_session(VISIT)
    store.add_event(b"event", 400)


def state(store):
    """All that a restore must bring back unchanged."""
    return (
        [(c.digest, c.record, c.created_at) for c in store.campaigns()],
        [store.questions(c.digest) for c in store.campaigns()],
        [stored(store, group) for group in GROUPS],
        store.counters(CAMPAIGN),
        store.document(CAMPAIGN, 1, "screens"),
        store.role_tokens(),
        store.events()[:1],
    )


def test_a_kept_campaign_goes_on_in_a_new_epoch(store, target, backup):
    fill(store)
    store.backup(backup)
    before = state(store)
    store.add_reports([batch("lost", wave=2)])  # after the backup
    restored = restore(backup, target, 500, keep=[CAMPAIGN, OTHER])
    assert (restored.epoch, restored.ended) == (2, ())
    again = open_store(target)
    assert state(again) == before
    assert again.session(VISIT.digest, 400) is None  # people sign in again
    assert again.document(CAMPAIGN, 0, LINKS) is None  # links that were ended since stay ended
    assert (again.epoch(), again.campaign(CAMPAIGN).epoch) == (2, 2)
    assert stored(again, wave=2) == frames("de")
    # Devices send again what the backup does not have; what it has is known or withdrawn as before.
    outcomes = again.add_reports([batch("lost", wave=2), batch(["d", "a", "b"], wave=2)])
    assert outcomes == [bytes([NEW] * 4), bytes([KNOWN, KNOWN, WITHDRAWN])]
    assert again.add_reports([batch("abc", campaign=ENDED, change=1)]) == [bytes([KNOWN] * 3)]
    assert (again.jobs()[0].state, again.jobs()[0].lease) == (JobState.QUEUED, None)
    assert again.lease_job(501, 10) is not None
    assert check_chain(again.events()) == again.events()[-1].digest
    assert b'"restored"' in again.events()[-1].body
    assert again.create_campaign("f" * 64, b"new", 501)  # numbers go on where they were
    assert again.add_job("other", "kind", b"", 501).number == 2
    assert close(again, wave=2)
    again.close()


def test_campaigns_that_nobody_vouches_for_end(store, target, backup):
    """A wave that was open may have been closed and published since: it is never closed again."""
    fill(store)
    store.backup(backup)
    restored = restore(backup, target, 500, epoch=9)
    ended = {e.campaign: (e.state, e.wave, e.reports) for e in restored.ended}
    assert ended == {CAMPAIGN: ("finished", 2, 2), OTHER: ("void", None, 0)}
    again = open_store(target)
    assert again.epoch() == 9
    assert [w.state for w in again.waves(CAMPAIGN)] == [WaveState.CLOSED, WaveState.VOID]
    assert again.questions(CAMPAIGN, 1) == store.questions(CAMPAIGN, 1)
    assert (again.campaign(CAMPAIGN).state, again.campaign(CAMPAIGN).ended_at) == (CampaignState.FINISHED, 500)
    assert again.campaign(OTHER).state == CampaignState.VOID
    assert again.counts(CAMPAIGN, 2) == dict.fromkeys(GROUPS, 0)
    assert again.add_reports([batch("dz", wave=2)]) == [bytes([KNOWN, CLOSED])]
    again.close()


def test_a_backup_of_a_backup_counts_epochs(store, new_url, tmp_path):
    open_campaign(store)
    url = None
    for k in range(3):
        store.backup(str(tmp_path / f"backup {k}"))
        store.close()
        url = new_url()
        restore(tmp_path / f"backup {k}", url, 500 + k, keep=[CAMPAIGN])
        store = open_store(url)
    assert store.epoch() == 4
    assert len(store.events()) == 3
    store.close()


def test_a_backup_is_one_moment_while_reports_come_in(store, target, backup):
    """Uploads of three go on during the backup: each is in it as a whole or not at all, and in order."""
    open_campaign(store)
    stop, sent = threading.Event(), []

    def send():
        while not stop.is_set():
            store.add_reports([batch([f"{len(sent)} {i}" for i in range(3)])])
            sent.append(len(sent))

    thread = threading.Thread(target=send)
    thread.start()
    while len(sent) < 5:
        stop.wait(0.005)
    before = len(sent)
    store.backup(backup)
    stop.set()
    thread.join()
    restore(backup, target, 500, keep=[CAMPAIGN])
    again = open_store(target)
    n = again.counts(CAMPAIGN, 1)[GROUPS[0]] // 3
    assert n >= before
    assert stored(again) == frames(f"{k} {i}" for k in range(n) for i in range(3))
    again.close()


def test_nothing_is_overwritten(store, target, backup, tmp_path):
    open_campaign(store)
    store.backup(backup)
    with pytest.raises(ValueError, match="nothing is yet"):
        store.backup(backup)
    restore(backup, target, 500)
    with pytest.raises(ValueError, match="expected"):
        restore(backup, target, 501)
    assert sorted(p.name for p in tmp_path.iterdir() if "restoring" in p.name or "part" in p.name) == []


def test_what_is_no_whole_backup_is_refused(store, new_url, backup, tmp_path):
    open_campaign(store)
    for k in range(50):
        store.add_reports([batch(range(100 * k, 100 * k + 100))])
    store.backup(backup)
    whole = (tmp_path / "backup").read_bytes()
    for content in (whole[: len(whole) // 2], whole[:5000] + bytes(4096) + whole[9096:], b"something else"):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(StoreUnavailable):
            restore(tmp_path / "bad", new_url(), 500)
    with pytest.raises(NotFound):
        restore(tmp_path / "nothing", new_url(), 500)
    with pytest.raises(NotFound):
        restore(backup, new_url(), 500, keep=[OTHER])


def test_an_older_backup_is_brought_up(tmp_path, target):
    make_version_2(f"sqlite:{tmp_path / 'old'}")
    restore(tmp_path / "old", target, 500, keep=[CAMPAIGN])
    again = open_store(target)
    assert stored(again) == frames("ab")
    assert again.add_reports([batch("xn", wave=2)]) == [bytes([KNOWN, NEW])]
    again.close()


def test_a_restored_wave_opens_the_next_like_any_other(store, target, backup):
    open_campaign(store)
    store.backup(backup)
    restore(backup, target, 500, keep=[CAMPAIGN])
    again = open_store(target)
    close(again)
    assert [w.number for w in again.waves(CAMPAIGN)] == [1, 2]
    assert again.questions(CAMPAIGN, 2)[0].record == new_wave(2).questions[0].record
    again.close()
