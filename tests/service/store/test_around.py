"""What stands around the reports: counters, documents, jobs with leases, role tokens, visits, the audit chain."""

import hashlib
from dataclasses import replace

import pytest

from ahead_ldp.service.store import JobState, RoleToken, StateChanged, StoreUnavailable, Visit, check_chain
from tests.service.store.support import CAMPAIGN, OTHER, batch, open_campaign


def test_counters_add_up(store):
    store.add_counters({(CAMPAIGN, 1, "padding_not_zero"): 2, (CAMPAIGN, 1, "wave_closed"): 1})
    store.add_counters({(CAMPAIGN, 1, "padding_not_zero"): 3, (OTHER, 1, "padding_not_zero"): 7})
    store.add_counters({})
    assert store.counters(CAMPAIGN) == {(1, "padding_not_zero"): 5, (1, "wave_closed"): 1}


def test_documents_are_replaced(store):
    assert store.document(CAMPAIGN, 1, "screens") is None
    for body in (b"first", b"second"):
        store.put_document(CAMPAIGN, 1, "screens", body)
        assert store.document(CAMPAIGN, 1, "screens") == body
    assert store.document(CAMPAIGN, 2, "screens") is None


def test_a_document_is_changed_by_whoever_read_it_last(store):
    """Of two servers that read the same, one changes it, and the other is told."""
    assert not store.change_document(CAMPAIGN, 1, "shares", b"never was", b"old")
    assert store.document(CAMPAIGN, 1, "shares") is None
    assert store.change_document(CAMPAIGN, 1, "shares", None, b"first")
    assert not store.change_document(CAMPAIGN, 1, "shares", None, b"first as well")
    assert store.change_document(CAMPAIGN, 1, "shares", b"first", b"second")
    assert not store.change_document(CAMPAIGN, 1, "shares", b"first", b"third")
    assert store.document(CAMPAIGN, 1, "shares") == b"second"
    assert store.document(CAMPAIGN, 2, "shares") is None


def test_a_job_is_made_once_and_done_by_its_holder(store):
    job = store.add_job("close 1", "close", b"args", 10)
    assert store.add_job("close 1", "close", b"other", 11) == job
    leased = store.lease_job(20, 30)
    assert (leased.number, leased.state, leased.attempts, leased.lease_until) == (job.number, JobState.LEASED, 1, 50)
    assert store.lease_job(21, 30) is None
    assert not store.renew_job(job.number, "somebody else", 90)
    assert store.renew_job(job.number, leased.lease, 90)
    assert store.lease_job(89, 30) is None
    assert not store.end_job(job.number, "somebody else", JobState.DONE)
    assert store.end_job(job.number, leased.lease, JobState.DONE, b"result")
    done = store.job(job.number)
    assert (done.state, done.result, done.lease, done.lease_until) == (JobState.DONE, b"result", None, None)
    assert not store.end_job(job.number, leased.lease, JobState.FAILED)
    assert store.add_job("close 1", "close", b"args", 99).state == JobState.DONE
    assert store.lease_job(1000, 30) is None


def test_a_lost_lease_is_taken_up_and_its_holder_told(store):
    store.add_job("close 1", "close", b"", 10)
    first = store.lease_job(20, 30)
    second = store.lease_job(50, 30)
    assert (second.number, second.attempts) == (first.number, 2)
    assert second.lease != first.lease
    assert not store.renew_job(first.number, first.lease, 900)
    assert not store.end_job(first.number, first.lease, JobState.DONE)
    assert store.end_job(second.number, second.lease, JobState.QUEUED, not_before=100)
    assert store.lease_job(99, 30) is None
    assert store.lease_job(100, 30).attempts == 3


def test_failed_jobs_are_queued_anew_in_order_of_age(store):
    for key in ("a", "b"):
        store.add_job(key, "kind", b"", 10)
    leased = store.lease_job(20, 30)
    assert leased.key == "a"
    assert store.end_job(leased.number, leased.lease, JobState.FAILED, b"why")
    assert store.lease_job(20, 30).key == "b"
    assert store.add_job("a", "kind", b"", 30, not_before=40).state == JobState.QUEUED
    assert store.lease_job(39, 30) is None
    assert store.lease_job(40, 30).key == "a"
    assert [job.key for job in store.jobs()] == ["a", "b"]
    with pytest.raises(ValueError, match="done, failed or queued"):
        store.end_job(1, "x", JobState.LEASED)


def test_role_tokens_are_found_by_hash_and_revoked_by_name(store):
    token = RoleToken(hashlib.sha256(b"secret").digest(), "operator", "ann", 10, 500, None)
    store.add_role_token(token, b"token ann")
    for taken in (replace(token, name="bob"), replace(token, digest=bytes(32))):
        with pytest.raises(StateChanged):
            store.add_role_token(taken, b"token again")
    assert store.role_token(token.digest) == token
    assert store.role_token(bytes(32)) is None
    assert store.revoke_role_token("ann", 20, b"revoked")
    assert not store.revoke_role_token("ann", 21, b"revoked")
    assert not store.revoke_role_token("nobody", 21, b"revoked")
    assert store.role_tokens() == [replace(token, revoked_at=20)]
    assert [e.body for e in store.events()] == [b"token ann", b"revoked"]


def test_the_audit_chain_shows_every_change(store):
    made = [store.add_event(f"event {k}".encode(), 10 + k) for k in range(5)]
    assert store.events() == made
    assert store.events(after=3) == made[3:]
    assert store.events(limit=2) == made[:2]
    assert check_chain(made) == made[-1].digest
    assert check_chain(made[2:], made[1].digest, 2) == made[-1].digest
    forged = [
        made[:2] + made[3:],  # one left out
        [*made[:2], replace(made[2], body=b"other"), *made[3:]],
        [*made[:2], replace(made[2], at=11), *made[3:]],
        [made[1], made[0], *made[2:]],
    ]
    for chain in forged:
        with pytest.raises(ValueError, match="expected event"):
            check_chain(chain)


def test_readiness_is_a_real_write(store):
    store.ping()
    store.check_writable()
    assert store.epoch() == 1


def test_a_closed_store_is_unavailable(store):
    open_campaign(store)
    store.close()
    store.close()
    for call in (store.ping, store.check_writable, store.campaigns, lambda: store.add_reports([batch("a")])):
        with pytest.raises(StoreUnavailable, match="closed"):
            call()


def test_visits_are_found_by_hash_until_they_expire_rotate_once_and_end_as_a_family(store):
    first = Visit(bytes([1]) * 32, b"family" + bytes(10), b"token" + bytes(27), 100, 100, 200)
    store.start_session(first, b"in")
    assert store.session(first.digest, 199) == first
    assert store.session(first.digest, 200) is None
    assert store.session(bytes(32), 100) is None
    second = replace(first, digest=bytes([2]) * 32, made_at=150, expires_at=250)
    assert store.rotate_session(first.digest, second, 160)
    assert not store.rotate_session(first.digest, replace(second, digest=bytes([3]) * 32), 160)
    assert store.session(first.digest, 159) == replace(first, expires_at=160)
    assert store.session(first.digest, 160) is None
    assert store.session(second.digest, 160) == second
    other = replace(first, digest=bytes([4]) * 32, family=bytes(16), made_at=205, expires_at=400)
    store.start_session(other)
    assert not store.rotate_session(first.digest, second, 300)  # forgotten with the start of another
    assert store.end_session(first.family, 210, b"out")
    assert not store.end_session(first.family, 210, b"out")
    assert store.session(second.digest, 210) is None
    assert store.session(other.digest, 210) == other
    assert [e.body for e in store.events()] == [b"in", b"out"]
