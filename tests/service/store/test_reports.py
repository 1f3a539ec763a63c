"""Reports: each id once, in the order of checks of docs/wire.md; a withdrawn one leaves and cannot come back."""

import hashlib
import os
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.service.store import Batch, CampaignState, StateChanged, Withdrawal, binding, open_store, reports_digest
from tests.service.store.support import (
    CAMPAIGN,
    CLOSED,
    GROUPS,
    KNOWN,
    LENGTH,
    NEW,
    OTHER,
    UNKNOWN,
    WITHDRAWN,
    batch,
    close,
    frames,
    hold,
    open_campaign,
    report,
    stored,
)


def test_a_known_id_is_known_whatever_comes_with_it(store):
    open_campaign(store)
    assert store.add_reports([batch("abc")]) == [bytes([NEW] * 3)]
    assert store.add_reports([batch("abc")]) == [bytes([KNOWN] * 3)]
    assert store.add_reports([batch("abc", change=1)]) == [bytes([KNOWN] * 3)]
    assert store.add_reports([batch("xbdc")]) == [bytes([NEW, KNOWN, NEW, KNOWN])]
    assert stored(store) == frames("abcxd")


def test_of_two_with_one_id_the_first_wins(store):
    open_campaign(store)
    outcomes = store.add_reports([batch("aba"), batch("b", change=1), batch("cb"), batch("c", GROUPS[1], change=1)])
    assert outcomes == [bytes([NEW, NEW, KNOWN]), bytes([KNOWN]), bytes([NEW, KNOWN]), bytes([KNOWN])]
    assert stored(store) == frames("abc")
    assert stored(store, GROUPS[1]) == set()


@given(st.permutations([("a", 0), ("a", 1), ("a", 2), ("b", 0)]))
def test_the_first_wins_in_every_order(order):
    """Not the one whose bytes sort first: ids are sorted on the way in."""
    with tempfile.TemporaryDirectory() as folder:
        check_first_wins(open_store(f"{folder}/store.db"), order)


def check_first_wins(store, order):
    open_campaign(store)
    outcomes = b"".join(store.add_reports([batch(name, change=change) for name, change in order]))
    first = next(change for name, change in order if name == "a")
    wanted = [NEW if name == "b" or change == first else KNOWN for name, change in order]
    assert list(outcomes) == wanted
    assert stored(store) == frames("a", first) | frames("b")
    store.close()


def test_many_questions_in_one_transaction(store):
    open_campaign(store)
    open_campaign(store, OTHER)
    parts = [batch("ab"), batch("cd", GROUPS[1]), batch("ab", campaign=OTHER), batch("ef")]
    assert store.add_reports(parts) == [bytes(2)] * 4
    assert stored(store) == frames("abef")
    assert stored(store, GROUPS[1]) == frames("cd")
    assert stored(store, campaign=OTHER) == frames("ab")
    assert store.counts(CAMPAIGN, 1) == {GROUPS[0]: 4, GROUPS[1]: 2}


def test_known_ones_are_accepted_after_the_close(store):
    open_campaign(store)
    store.add_reports([batch("ab")])
    close(store)
    assert store.add_reports([batch("abc")]) == [bytes([KNOWN, KNOWN, CLOSED])]
    assert store.add_reports([batch("ab", change=1)]) == [bytes([KNOWN] * 2)]
    assert store.add_reports([batch("c", wave=2), batch("c")]) == [bytes([NEW]), bytes([KNOWN])]
    assert stored(store) == frames("ab")


def test_looking_up_stores_nothing(store):
    open_campaign(store)
    store.add_reports([batch("ab")])
    asked = [batch("axb", insert=False), batch("a", change=1, insert=False), batch("x")]
    assert store.add_reports(asked[:2]) == [bytes([KNOWN, UNKNOWN, KNOWN]), bytes([KNOWN])]
    assert store.add_reports(asked) == [bytes([KNOWN, KNOWN, KNOWN]), bytes([KNOWN]), bytes([NEW])]
    hold(store)
    assert store.add_reports([batch("ay", insert=False)]) == [bytes([KNOWN, CLOSED])]
    assert store.counts(CAMPAIGN, 1)[GROUPS[0]] == 3


def test_a_question_that_nobody_opened_takes_nothing(store):
    open_campaign(store)
    parts = [batch("a", wave=7), batch("b", group="nobody"), batch("c", campaign=OTHER), batch("d")]
    assert store.add_reports(parts) == [bytes([CLOSED])] * 3 + [bytes([NEW])]
    assert store.add_reports([]) == []


def test_a_known_one_is_known_whatever_question_it_is_sent_to(store):
    """Found by test_stateful.py: a wave that is not open yet was answered before the id was looked up."""
    open_campaign(store)
    store.add_reports([batch("a")])
    for insert in (True, False):
        parts = [batch("ab", wave=2, insert=insert), batch("a", group="nobody", change=1, insert=insert)]
        assert store.add_reports(parts) == [bytes([KNOWN, CLOSED]), bytes([KNOWN])]


def test_payloads_of_two_lengths_change_nothing(store):
    open_campaign(store)
    i, p = report("x")
    with pytest.raises(ValueError, match="one length"):
        store.add_reports([batch("ab"), Batch(CAMPAIGN, 1, GROUPS[0], i, p + b"more")])
    assert store.add_reports([batch("abx")]) == [bytes(3)]


@pytest.mark.parametrize(("ids", "payloads"), [(16, 0), (15, 8), (24, 8), (32, 9), (0, 0)], ids=str)
def test_a_batch_has_one_id_and_payload_of_each_report(ids, payloads):
    with pytest.raises(ValueError, match="expected"):
        Batch(CAMPAIGN, 1, GROUPS[0], bytes(ids), bytes(payloads))


@pytest.mark.parametrize("rows", [1, 5, 1000])
def test_reports_come_in_chunks_of_about_the_size_asked(store, rows):
    open_campaign(store)
    for k in range(10):
        store.add_reports([batch(range(3 * k, 3 * k + 3))])
    chunks = list(store.reports(CAMPAIGN, 1, GROUPS[0], rows))
    assert sum(chunk.n for chunk in chunks) == 30
    assert all(chunk.n < rows + 3 for chunk in chunks)
    assert all(len(chunk.payloads) == chunk.n * LENGTH for chunk in chunks)
    assert stored(store, rows=rows) == frames(range(30))


def test_withdrawal_removes_for_good(store):
    open_campaign(store)
    store.add_reports([batch("abc")])
    ids = {name: report(name)[0] for name in "abcx"}
    assert store.withdraw(CAMPAIGN, ids["b"], 150) == Withdrawal.REMOVED
    assert store.withdraw(CAMPAIGN, ids["b"], 151) == Withdrawal.GONE
    assert stored(store) == frames("ac")
    assert store.counts(CAMPAIGN, 1)[GROUPS[0]] == 2
    for change in (0, 1):
        assert store.add_reports([batch("b", change=change)]) == [bytes([WITHDRAWN])]
    assert store.withdraw(CAMPAIGN, ids["x"], 152) == Withdrawal.UNKNOWN
    assert store.add_reports([batch("xd")]) == [bytes([NEW, NEW])]
    assert store.withdraw(CAMPAIGN, ids["x"], 152) == Withdrawal.REMOVED
    assert store.withdraw(CAMPAIGN, ids["a"], 153) == Withdrawal.REMOVED
    assert store.withdraw(CAMPAIGN, ids["c"], 153) == Withdrawal.REMOVED
    assert stored(store) == frames("d")


def test_withdrawal_is_too_late_once_the_wave_is_held(store):
    open_campaign(store)
    store.add_reports([batch("ab")])
    hold(store)
    assert store.withdraw(CAMPAIGN, report("a")[0], 201) == Withdrawal.TOO_LATE
    assert store.withdraw(CAMPAIGN, report("x")[0], 201) == Withdrawal.UNKNOWN
    assert store.withdraw(OTHER, report("x")[0], 201) == Withdrawal.UNKNOWN
    assert stored(store) == frames("ab")


def test_withdrawal_from_a_group_that_was_voided(store):
    open_campaign(store)
    store.add_reports([batch("a")])
    store.void_group(CAMPAIGN, 1, GROUPS[0], 150)
    assert store.withdraw(CAMPAIGN, report("a")[0], 151) == Withdrawal.GONE
    with pytest.raises(ValueError, match="16 bytes"):
        store.withdraw(CAMPAIGN, b"short", 151)


def test_withdrawal_finds_ids_not_bytes_that_straddle_two(store):
    open_campaign(store)
    ids = bytes(8) + bytes([1]) * 8 + bytes([2]) * 8 + bytes(8)
    straddling = ids[8:24]
    store.add_reports([Batch(CAMPAIGN, 1, GROUPS[0], ids + straddling, bytes(range(24)))])
    assert store.withdraw(CAMPAIGN, straddling, 1) == Withdrawal.REMOVED
    (chunk,) = store.reports(CAMPAIGN, 1, GROUPS[0])
    assert (chunk.ids, chunk.payloads) == (ids, bytes(range(16)))


def test_retention_deletes_reports_and_keeps_ids(store):
    open_campaign(store)
    store.add_reports([batch("abc")])
    with pytest.raises(StateChanged):
        store.delete_reports(CAMPAIGN, 300, b"deleted")
    close(store, last=True)
    assert store.delete_reports(CAMPAIGN, 300, b"deleted") == 3
    assert store.delete_reports(CAMPAIGN, 301, b"deleted") == 0
    assert stored(store) == set()
    assert store.questions(CAMPAIGN, 1)[0].n == 3
    assert store.add_reports([batch("ab", change=1), batch("c")]) == [bytes([KNOWN] * 2), bytes([KNOWN])]
    assert store.withdraw(CAMPAIGN, report("a")[0], 302) == Withdrawal.TOO_LATE  # it was counted
    assert [e.body for e in store.events()] == [b"deleted"]


def test_deleted_payloads_are_in_no_file(tmp_path):
    """Withdrawn, voided or past retention: the bytes are gone from the database, its log and its free pages."""
    store = open_store(str(tmp_path / "store.db"))
    open_campaign(store)
    for k in range(40):
        store.add_reports([batch(range(100 * k, 100 * k + 100)), batch([f"fine {k}"], GROUPS[1])])
    withdrawn, voided = report(123)[1], report("fine 7")[1]
    assert on_disk(tmp_path, report(123)[0])
    store.withdraw(CAMPAIGN, report(123)[0], 150)
    store.void_group(CAMPAIGN, 1, GROUPS[1], 150)
    assert not on_disk(tmp_path, withdrawn)
    assert not on_disk(tmp_path, voided)
    assert on_disk(tmp_path, report(124)[0])
    close(store, last=True)
    store.delete_reports(CAMPAIGN, 300)
    assert not any(on_disk(tmp_path, report(k)[1]) for k in range(0, 4000, 97))
    store.close()


def on_disk(folder, needle):
    return any(needle in path.read_bytes() for path in folder.iterdir())


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=60))
def test_the_digest_is_that_of_sorted_buckets(ids):
    whole = hashlib.sha256()
    for first in range(256):
        whole.update(hashlib.sha256(b"".join(sorted(i for i in ids if i[0] == first))).digest())
    assert reports_digest(ids) == reports_digest(reversed(ids)) == reports_digest([b"".join(ids)]) == whole.hexdigest()


def test_the_state_of_a_campaign_does_not_change_by_reports(store):
    open_campaign(store)
    store.add_reports([batch("abc")])
    assert store.campaign(CAMPAIGN).state == CampaignState.OPEN
    assert store.events() == []


def test_the_digest_over_ids_does_not_depend_on_memory(monkeypatch):
    ids = [os.urandom(16 * n) for n in (1, 300, 7, 0, 512, 90)]
    whole = binding.reports_digest(ids)
    for most in (1, 64, 500):
        monkeypatch.setattr(binding, "_IN_MEMORY", most)
        assert binding.reports_digest(ids) == whole
