"""The campaign record and the wave: what a device reads before it answers, and what it refuses."""

import json

import pytest

from ahead_ldp.device.campaign import Campaign, campaign_record, check_wave, wave_record
from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.device.question import Policy
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.device.tokens import pick_group
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.ahead.lle import LLE
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.attributes import as_schema

SCHEMA = as_schema(["x=codes,8", "y=codes,8", "z=codes,4"])
POLICY = Policy(max_epsilon=2)
N = "c" + "f" * 511  # 2048 bits, odd


def made(**changed):
    mechanism = LLE.paper(epsilon=1.0)
    given = {
        "title": "Travel",
        "purpose": "How far people travel to work.",
        "controller": "The town",
        "contact": "town@example.org",
        "created": "2026-01-31",
        "schema": SCHEMA,
        "method": mechanism.record(),
        "epsilon": "1",
        "groups": [(g.id, g.share) for g in mechanism.groups(SCHEMA)],
        "minimum": 10,
        "closing": {"kind": "reports", "reports": 100},
    }
    return campaign_record(**{**given, **changed})


def wave_of(record):
    session = Session(LLE.paper(epsilon=1.0), SCHEMA, Campaign.of(record).digest)
    return list(session.question_records().values())


def test_the_record_reads_back_and_its_digest_binds_every_field():
    record = made()
    campaign = Campaign.from_bytes(canonical_bytes(record))
    assert campaign.encode() == canonical_bytes(record)
    assert (campaign.schema, campaign.epsilon, campaign.minimum, campaign.tier) == (SCHEMA, 1, 10, "none")
    assert Campaign.from_bytes(campaign.encode(), campaign.digest).digest == campaign.digest
    digests = {campaign.digest}
    for changed in (
        {"title": "Other"},
        {"created": "2026-02-01"},
        {"minimum": 9},
        {"review": True},
        {"texts": {"a": "b"}},
    ):
        digests.add(Campaign.of(made(**changed)).digest)
    assert len(digests) == 6
    with pytest.raises(ValueError, match="pinned"):
        Campaign.from_bytes(canonical_bytes(made(title="Other")), campaign.digest)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("type", "question", "campaign"),
        ("version", 1, "version"),
        ("title", "", "title"),
        ("purpose", "a\x00b", "control"),
        ("texts", {"consent": 3}, "texts.consent"),
        ("created", "2026-02-30", "created"),
        ("created", "20260131", "created"),
        ("epsilon", "1.0", "epsilon"),
        ("epsilon", 1, "epsilon"),
        ("groups", [], "groups"),
        ("groups", [{"id": "a", "share": 0}], "share"),
        ("groups", [{"id": "a", "share": 1}, {"id": "a", "share": 1}], "different"),
        ("minimum", 0, "minimum"),
        ("closing", {"kind": "never"}, "closing"),
        ("closing", {"kind": "reports", "reports": 0}, "closing.reports"),
        ("closing", {"kind": "manual", "reports": 3}, "unknown"),
        ("enrolment", "both", "enrolment"),
        ("token", {"tier": "gold"}, "tier"),
        ("token", {"tier": "blind", "n": "ff", "e": 65537}, "token.n"),
        ("token", {"tier": "blind", "n": "0" + N[1:], "e": 65537}, "token.n"),
        ("token", {"tier": "signed", "n": N[:-1] + "e", "e": 65537}, "odd"),
        ("token", {"tier": "signed", "n": N, "e": 3}, "token.e"),
        ("review", 1, "review"),
        ("retention_days", -1, "retention_days"),
        ("extra", 1, "extra"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_name(field, value, said):
    record = json.loads(canonical_bytes(made()))
    record[field] = value
    with pytest.raises(ValueError, match=said):
        Campaign.of(record)


def test_a_missing_field_is_refused():
    for field in made():
        record = made()
        del record[field]
        with pytest.raises(ValueError, match=field):
            Campaign.of(record)


def test_tokens_carry_the_issuers_key():
    campaign = Campaign.of(made(token={"tier": "blind", "version": 2, "n": N, "e": 65537}))
    assert (campaign.tier, campaign.key) == ("blind", (int(N, 16), 65537))


def test_shares_decide_the_group():
    groups = [("a", 1), ("b", 3), ("c", 2)]
    assert [pick_group(groups, i) for i in range(6)] == ["a", "b", "b", "b", "c", "c"]


def test_a_wave_is_checked_question_by_question():
    record = made()
    campaign, questions = Campaign.of(record), wave_of(record)
    found = check_wave(canonical_bytes(wave_record(campaign.digest, 1, questions)), campaign, 1, POLICY)
    assert list(found) == [g for g, _ in campaign.groups if g.endswith(".1")]
    assert all(q.wave == 1 for q in found.values())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda w: {**w, "number": 2},
        lambda w: {**w, "campaign": "0" * 64},
        lambda w: {**w, "type": "waves"},
        lambda w: {**w, "questions": []},
        lambda w: {**w, "questions": w["questions"][::-1]},
        lambda w: {**w, "questions": [*w["questions"], w["questions"][0]]},
        lambda w: {**w, "questions": [{**w["questions"][0], "wave": 2}, *w["questions"][1:]]},
        lambda w: {**w, "questions": [{**w["questions"][0], "group": "nobody"}, *w["questions"][1:]]},
        lambda w: {**w, "questions": [*w["questions"][:-1], {**w["questions"][-1], "epsilon": "2"}]},
        lambda w: {**w, "questions": [*w["questions"][:-1], 3]},
        lambda w: {**w, "more": 1},
    ],
)
def test_a_spoilt_wave_is_refused_as_a_whole(spoil):
    record = made()
    campaign = Campaign.of(record)
    wave = wave_record(campaign.digest, 1, wave_of(record))
    with pytest.raises(QuestionRefused):
        check_wave(canonical_bytes(spoil(wave)), campaign, 1, POLICY)


def test_a_question_of_another_price_is_refused():
    """The campaign says epsilon 1; a wave that asks at 2 is refused though the device would allow 2."""
    record = made()
    campaign = Campaign.of(record)
    dear = Session(AHEAD.paper(epsilon=2.0), as_schema("x=codes,8"), campaign.digest)
    questions = list(dear.question_records().values())
    with pytest.raises(QuestionRefused, match="epsilon"):
        check_wave(canonical_bytes(wave_record(campaign.digest, 1, questions)), campaign, 1, POLICY)


def test_a_new_campaign_has_tokens_of_its_own_and_an_old_record_keeps_its():
    """Records of before say nothing of a version: their tokens are signatures on the bare nonce, and stay readable."""
    old = {"tier": "blind", "n": N, "e": 65537}
    with pytest.raises(ValueError, match=r"token\.version to be 2"):
        made(token=old)
    campaign = Campaign.of({**made(token={**old, "version": 2}), "token": old})
    nonce = bytes(range(32))
    assert (campaign.token_version, campaign.token_message(nonce)) == (1, nonce)
    bound = Campaign.of(made(token={**old, "version": 2}))
    assert bound.token_message(nonce) != Campaign.of(made(token={**old, "version": 2}, title="Other")).token_message(
        nonce
    )
