"""Many reports are deleted in portions: uploads go on in between, and a crash leaves nothing that counts."""

from contextlib import closing
from types import SimpleNamespace

import pytest

from ahead_ldp.service.store import (
    CampaignState,
    StoreUnavailable,
    WaveState,
    Withdrawal,
    open_store,
    tables,
    uploads,
)
from tests.service.store.support import (
    CAMPAIGN,
    CLOSED,
    GROUPS,
    KNOWN,
    LENGTH,
    NEW,
    OTHER,
    batch,
    close,
    frames,
    open_campaign,
    report,
    stored,
)

CHUNKS, EACH = 10, 3
SEALED = 28  # a nonce and a tag for each chunk


@pytest.fixture
def store(url, tmp_path):
    with closing(open_store(url, keys=tmp_path / "keys")) as opened:
        yield opened


@pytest.fixture
def filled(store, monkeypatch):
    """Two groups, ten chunks of the first; a portion is two chunks."""
    monkeypatch.setattr(uploads, "PORTION", 2 * (EACH * LENGTH + SEALED))
    open_campaign(store)
    open_campaign(store, OTHER)
    for k in range(CHUNKS):
        store.add_reports([batch(range(EACH * k, EACH * (k + 1)))])
    store.add_reports([batch("xyz", GROUPS[1])])
    return store


@pytest.fixture
def pauses(monkeypatch):
    """What happens in the pauses between portions: a list of functions, one for each; the last one stays."""
    todo, met = [lambda: None], []

    def pause(_seconds):
        met.append(len(met))
        (todo.pop(0) if len(todo) > 1 else todo[0])()

    monkeypatch.setattr(tables, "time", SimpleNamespace(sleep=pause))  # of the store alone: other threads sleep, too
    return todo, met


def payloads_left(store):
    """Reports whose payload is still in the tables, whatever the states say."""
    with store.reading() as tx:
        ((n,),) = tx.rows("SELECT COALESCE(SUM(k.n), 0) FROM chunks k JOIN questions q ON q.key = k.question")
    return int(n)


def key_files(store):
    return len(list(store.keys.folder.glob("*.key")))


def crash():
    raise StoreUnavailable("killed")


def test_uploads_go_on_while_a_campaign_is_forgotten(filled, pauses):
    todo, met = pauses
    close(filled, last=True)
    sent = iter(range(1000))
    todo[0] = lambda: filled.add_reports([batch([f"other {next(sent)}"], campaign=OTHER)])
    assert filled.delete_reports(CAMPAIGN, 300, b"deleted") == CHUNKS * EACH + 3
    assert len(met) == CHUNKS // 2
    assert stored(filled, campaign=OTHER) == frames(f"other {k}" for k in range(len(met)))
    assert payloads_left(filled) == len(met)
    assert [e.body for e in filled.events()] == [b"deleted"]


def test_a_crash_between_portions_is_made_good(filled, pauses):
    """The keys go with the first portion; the event is written once, when all reports are gone."""
    todo, _ = pauses
    close(filled, last=True)
    todo.insert(0, lambda: None)
    todo[1] = crash
    with pytest.raises(StoreUnavailable, match="killed"):
        filled.delete_reports(CAMPAIGN, 300, b"deleted")
    assert payloads_left(filled) == (CHUNKS - 4) * EACH + 3
    assert key_files(filled) == 1  # of the other campaign
    assert filled.events() == []
    todo[0] = lambda: None
    assert filled.delete_reports(CAMPAIGN, 301, b"deleted") == (CHUNKS - 4) * EACH + 3
    assert filled.delete_reports(CAMPAIGN, 302, b"deleted") == 0
    assert payloads_left(filled) == 0
    assert [e.body for e in filled.events()] == [b"deleted"]


def nothing_of_it(store):
    """A voided group has no reports for anybody, and takes none."""
    assert store.counts(CAMPAIGN, 1)[GROUPS[0]] == 0
    assert stored(store) == set()
    assert store.withdraw(CAMPAIGN, report(EACH * CHUNKS - 1)[0], 201) == Withdrawal.GONE
    assert store.add_reports([batch([0, "new"])]) == [bytes([KNOWN, CLOSED])]


def test_a_voided_group_is_out_before_its_payloads_are_gone(filled, pauses):
    todo, met = pauses

    def look():
        assert payloads_left(filled) > 3
        nothing_of_it(filled)
        assert filled.add_reports([batch([f"fine {len(met)}"], GROUPS[1])]) == [bytes([NEW])]

    todo[0] = look
    filled.void_group(CAMPAIGN, 1, GROUPS[0], 200, b"void")
    assert len(met) == CHUNKS // 2 - 1
    assert filled.counts(CAMPAIGN, 1) == {GROUPS[0]: 0, GROUPS[1]: 3 + len(met)}
    assert payloads_left(filled) == 3 + len(met)


def test_what_a_crash_left_of_a_voided_group_goes_when_it_is_voided_again(filled, pauses):
    todo, _ = pauses
    todo[0] = crash
    with pytest.raises(StoreUnavailable):
        filled.void_group(CAMPAIGN, 1, GROUPS[0], 200, b"void")
    nothing_of_it(filled)
    todo[0] = lambda: None
    filled.void_group(CAMPAIGN, 1, GROUPS[0], 201, b"void")
    assert payloads_left(filled) == 3
    assert [e.body for e in filled.events()] == [b"void"]


def test_what_a_crash_left_of_what_was_given_up_goes_although_nobody_asks_again(filled, pauses):
    todo, met = pauses
    todo[0] = crash
    with pytest.raises(StoreUnavailable):
        filled.void_group(CAMPAIGN, 1, GROUPS[0], 200)
    todo[0] = lambda: filled.add_reports([batch([f"fine {len(met)}"], GROUPS[1])])
    filled.finish_deletions()
    assert payloads_left(filled) == filled.counts(CAMPAIGN, 1)[GROUPS[1]] == len(met) + 2
    assert key_files(filled) == 2  # the other group goes on, and so does the other campaign
    pauses_before = len(met)
    filled.finish_deletions()
    assert len(met) == pauses_before


def test_what_a_crash_left_of_a_voided_wave_goes_with_its_campaign(filled, pauses):
    todo, _ = pauses
    todo[0] = crash
    with pytest.raises(StoreUnavailable):
        filled.set_wave_state(CAMPAIGN, 1, WaveState.OPEN, WaveState.VOID, 200)
    assert 0 < payloads_left(filled) < CHUNKS * EACH
    assert sum(filled.counts(CAMPAIGN, 1).values()) == 0
    assert stored(filled) == stored(filled, GROUPS[1]) == set()
    assert key_files(filled) == 1  # of the other campaign
    todo[0] = lambda: None
    filled.set_campaign_state(CAMPAIGN, CampaignState.OPEN, CampaignState.VOID, 201)
    assert filled.delete_reports(CAMPAIGN, 202) > 0
    assert payloads_left(filled) == 0
