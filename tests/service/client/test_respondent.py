"""The client against a server in memory: checks, then consent, then the value; one draw, the same bytes for ever."""

import json
import stat
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from ahead_ldp.device.entries import LedgerBusy, LedgerRefused, State
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.device.tokens import TokenRefused, report_id
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.client import (
    Answer,
    Client,
    Offer,
    OwnerPolicy,
    Status,
    Unreachable,
    WithdrawalRefused,
    privacy_sentence,
)
from ahead_ldp.service.client.respondent import JITTER_S
from tests.service.client.fake import KEY, FakeServer, InEveryCampaign, OfficeSigner, make_campaign, make_office, spent

POLICY = OwnerPolicy("1", fields=InEveryCampaign({"pay": "salary"}))


def yes(offer):
    return True


def no(offer):
    return False


def value(code):
    return lambda offer: {"pay": code}


def never(offer):
    raise AssertionError("the value was asked for")


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "device" / "ledger.db") as made:
        yield made


def client(server, ledger, policy=POLICY, **options):
    return Client(
        server, ledger, policy, **{"jitter_s": 0, "clock": lambda: 1000.0, "sleep": lambda s: None, **options}
    )


def walk_in(**change):
    return FakeServer(make_campaign(**change))


def test_an_answer_is_acknowledged_charged_and_receipted(ledger):
    server = walk_in()
    outcome = client(server, ledger).answer(server.name, yes, value(3))
    assert outcome.status == Status.ACKNOWLEDGED
    assert len(server.seen) == 1
    receipt = outcome.receipt
    assert receipt.report_id == next(iter(server.seen)).hex() == report_id(bytes.fromhex(receipt.nonce)).hex()
    assert spent(ledger)["salary"].spent == 1
    assert ledger.entry(server.name).state == State.ACKNOWLEDGED
    json.dumps(receipt.record())


def test_the_ledger_is_for_its_owner_alone(ledger, tmp_path):
    files = list((tmp_path / "device").iterdir())
    assert files
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_consent_comes_before_the_value(ledger):
    server, order = walk_in(), []

    def consent(offer: Offer) -> bool:
        order.append("consent")
        assert ledger.entry(server.name) is None
        assert not any(method == "POST" for method, _, _ in server.log)
        return True

    def values(offer: Offer) -> dict[str, int]:
        order.append("value")
        assert ledger.entry(server.name).state == State.RESERVED  # charged before it is read
        return {"pay": 1}

    client(server, ledger).answer(server.name, consent, values)
    assert order == ["consent", "value"]


def test_no_consent_reads_nothing_charges_nothing_sends_nothing(ledger):
    server = walk_in()
    assert client(server, ledger).answer(server.name, no, never).status == Status.DECLINED
    assert spent(ledger) == {}
    assert server.bodies == []
    assert client(server, ledger).answer(server.name, yes, value(1)).status == Status.ACKNOWLEDGED


def test_the_draw_is_in_the_ledger_before_anything_is_sent(ledger):
    server = walk_in()

    def watch(method, path, body=None, content_type=""):
        if method == "POST":
            entry = ledger.entry(server.name)
            assert entry.state == State.SENT
            assert entry.batch == body
        return FakeServer.request(server, method, path, body)

    server.request = watch
    assert client(server, ledger).answer(server.name, yes, value(2)).status == Status.ACKNOWLEDGED


@pytest.mark.parametrize("fault", ["request", "answer", "500", "503", "429"])
def test_a_retry_sends_the_same_bytes_and_never_asks_again(ledger, fault):
    server = walk_in()
    mine = client(server, ledger)
    server.lose = fault
    assert mine.answer(server.name, yes, value(5)).status == Status.QUEUED
    assert mine.answer(server.name, never, never).status == Status.ACKNOWLEDGED
    assert mine.answer(server.name, never, never).status == Status.ACKNOWLEDGED
    uploads = [body for method, path, body in server.log if path.endswith("/reports")]
    assert len(uploads) == 2
    assert len(set(uploads)) == 1
    assert len(server.seen) == 1


def test_deliver_is_patient_and_bounded(ledger):
    server, naps = walk_in(), []
    mine = client(server, ledger, sleep=naps.append)
    mine.answer(server.name, yes, value(5))  # acknowledged
    other = walk_in(created="2026-01-02")
    relaxed = OwnerPolicy("1", fields=InEveryCampaign({"pay": "salary"}), limits={"salary": 2})
    mine = client(other, ledger, relaxed, sleep=naps.append)
    other.lose = "answer"
    assert mine.answer(other.name, yes, value(5)).status == Status.QUEUED
    other.lose = "503"
    assert mine.deliver(other.name).status == Status.ACKNOWLEDGED
    assert naps == [1.0]
    assert len({body for _, path, body in other.log if path.endswith("/reports")}) == 1


def test_a_wave_that_closed_meanwhile_stops_the_report(ledger):
    """No new draw for the next wave: that would be fresh noise about the same value."""
    server = walk_in()
    mine = client(server, ledger)
    server.lose = "request"
    mine.answer(server.name, yes, value(5))
    server.close()
    assert mine.answer(server.name, never, never).status == Status.LATE
    assert mine.answer(server.name, never, never).status == Status.LATE
    assert len(spent(ledger)["salary"].charges) == 1


def test_a_lost_answer_after_close_is_still_acknowledged(ledger):
    server = walk_in()
    mine = client(server, ledger)
    server.lose = "answer"
    mine.answer(server.name, yes, value(5))
    server.close()
    assert mine.answer(server.name, never, never).status == Status.ACKNOWLEDGED


def test_not_before_delays_and_stays_within_the_wave(ledger):
    server = walk_in()
    server.closes_at = 1100
    now = [1000.0]
    mine = client(server, ledger, jitter_s=10_000, clock=lambda: now[0])
    moments = set()
    outcome = mine.answer(server.name, yes, value(5))
    entry = ledger.entry(server.name)
    moments.add(entry.not_before)
    assert 1000 <= entry.not_before <= 1050
    if entry.not_before > 1000:
        assert outcome.status == Status.QUEUED
        assert server.bodies == []
        assert mine.flush() == []
    now[0] = 1051.0
    assert [o.status for o in mine.flush()] in ([Status.ACKNOWLEDGED], [])
    assert len(server.seen) == 1


@pytest.mark.parametrize("closes_at", [-(10**9), 0, 1000, 1001, 1020])
def test_finding_19_a_deadline_that_the_server_makes_up_does_not_remove_the_jitter(closes_at):
    found = []
    server = walk_in()
    server.closes_at = closes_at
    for _ in range(40):
        with Ledger(None) as ledger:
            client(server, ledger, jitter_s=JITTER_S).answer(server.name, yes, value(1))
            found.append(ledger.entry(server.name).not_before)
    assert len(set(found)) > 15  # of 31 moments
    assert min(found) >= 1000
    assert max(found) <= 1000 + JITTER_S


def test_jitter_is_spread():
    found = []
    server = walk_in()
    for _ in range(30):
        with Ledger(None) as ledger:
            client(server, ledger, jitter_s=1000).answer(server.name, yes, value(1))
            found.append(ledger.entry(server.name).not_before)
    assert len(set(found)) > 20
    assert max(found) - min(found) > 500


def test_withdrawal_until_the_wave_closes(ledger):
    server = walk_in()
    mine = client(server, ledger)
    with pytest.raises(WithdrawalRefused):
        mine.withdraw(server.name)
    mine.answer(server.name, yes, value(5))
    mine.withdraw(server.name)
    assert server.places == {}
    assert len(spent(ledger)["salary"].charges) == 1  # the server has seen it
    assert mine.answer(server.name, never, never).status == Status.WITHDRAWN


@pytest.mark.parametrize("lost", ["answer", "request"])
def test_a_report_whose_answer_was_lost_is_sent_again_before_it_is_withdrawn(ledger, lost):
    """Only what the server knows can be withdrawn; and it may have been on its way."""
    server = walk_in()
    mine = client(server, ledger)
    server.lose = lost
    assert mine.answer(server.name, yes, value(5)).status == Status.QUEUED
    mine.withdraw(server.name)
    assert ledger.entry(server.name).state == State.WITHDRAWN
    assert sum(server.counts().values()) == 0
    sent = [body for _, path, body in server.log if path.endswith("/reports")]
    assert len(sent) == 2
    assert len(set(sent)) == 1


def test_a_report_that_never_arrived_cannot_be_withdrawn(ledger):
    server = walk_in()
    mine = client(server, ledger)
    server.lose = "503"
    mine.answer(server.name, yes, value(5))
    server.lose = "503"
    with pytest.raises(WithdrawalRefused, match="no report"):
        mine.withdraw(server.name)
    assert ledger.entry(server.name).state == State.SENT


def test_withdrawal_after_close_is_refused(ledger):
    server = walk_in()
    mine = client(server, ledger)
    mine.answer(server.name, yes, value(5))
    server.close()
    with pytest.raises(WithdrawalRefused):
        mine.withdraw(server.name)
    assert ledger.entry(server.name).state == State.ACKNOWLEDGED


def test_opting_out_withdraws_wipes_and_keeps_the_charge(ledger, tmp_path):
    server, slow = walk_in(), walk_in(created="2026-01-02")
    policy = OwnerPolicy("1", fields=InEveryCampaign({"pay": "salary"}), limits={"salary": 5})
    mine = client(server, ledger, policy)
    mine.answer(server.name, yes, value(5))
    queued = client(slow, ledger, policy, jitter_s=0)
    slow.lose = "request"
    queued.answer(slow.name, yes, value(5))
    batch = ledger.entry(slow.name).batch
    mine.opt_out()
    assert server.places == {}
    assert ledger.outbox() == []
    assert len(spent(ledger)["salary"].charges) == 2
    assert {e.state for e in ledger.entries()} == {State.WITHDRAWN, State.WIPED}
    third = walk_in(created="2026-01-03")
    with pytest.raises(LedgerRefused, match="opted out"):
        client(third, ledger, policy).answer(third.name, never, never)
    ledger.close()
    assert batch not in (tmp_path / "device" / "ledger.db").read_bytes()  # overwritten, not only unlinked


@pytest.mark.parametrize("misfit", [4711, -1, "4711", None])
def test_a_value_that_does_not_fit_is_answered_and_the_owner_told(ledger, misfit):
    server = walk_in()
    mine = client(server, ledger)
    outcome = mine.answer(server.name, yes, value(misfit))
    assert (outcome.status, outcome.replaced) == (Status.ACKNOWLEDGED, ("pay",))
    assert len(server.bodies) == 1
    assert len(spent(ledger)["salary"].charges) == 1
    assert mine.answer(server.name, never, never).replaced == ()  # nothing of it was kept


def test_a_value_that_fits_is_not_replaced(ledger):
    server = walk_in()
    assert client(server, ledger).answer(server.name, yes, value(4)).replaced == ()


def test_a_panel_member_keeps_the_group_and_waits():
    server = FakeServer(make_campaign(enrolment="panel"))
    ledgers = [Ledger(None) for _ in range(40)]
    drawn: dict[int, str] = {}
    answered = Counter()
    while server.session.is_open:
        for i, ledger in enumerate(ledgers):
            asked = []
            outcome = client(server, ledger).answer(server.name, lambda o, a=asked: a.append(o) or True, value(i % 16))
            for offer in asked:
                drawn[i] = offer.question.group
                answered[i] += 1
            assert outcome.status in (Status.ACKNOWLEDGED, Status.WAITING)
        server.close()
    assert set(answered.values()) == {1}
    assert len(answered) == 40  # everybody's wave came once
    assert len(set(drawn.values())) > 1
    with Ledger(None) as late:
        assert client(server, late).answer(server.name, never, never).status == Status.OVER
    for ledger in ledgers:
        ledger.close()


@pytest.mark.parametrize("tier", ["signed", "blind"])
@pytest.mark.parametrize("enrolment", ["panel", "walk_in"])
def test_tokens_give_groups_that_both_sides_compute(tmp_path, tier, enrolment):
    office = make_office(tmp_path, tier)
    server = FakeServer(make_campaign(enrolment=enrolment, token=office.token_record, method="hio"))
    for i, secret in enumerate(office.roster.enrol(12)):
        with Ledger(None) as ledger:
            mine = client(server, ledger, signer=OfficeSigner(office, secret))
            assert mine.answer(server.name, yes, value(i)).status == Status.ACKNOWLEDGED  # the server derives it too
    assert len(server.seen) == 12
    assert office.roster.count() == (12, 12)


def test_a_token_survives_a_lost_answer_of_the_issuer(tmp_path, ledger):
    """The blinding is kept before the issuer is asked, so the same message is sent again and the secret still works."""
    office = make_office(tmp_path, "blind")
    server = FakeServer(make_campaign(token=office.token_record))
    signer, messages = OfficeSigner(office, office.roster.enrol(1)[0]), []

    class Losing:
        def sign(self, message):
            messages.append(message)
            answer = signer.sign(message)
            if len(messages) == 1:
                raise Unreachable("lost")
            return answer

    with pytest.raises(Unreachable):
        client(server, ledger, signer=Losing()).answer(server.name, never, never)
    assert client(server, ledger, signer=Losing()).answer(server.name, yes, value(1)).status == Status.ACKNOWLEDGED
    assert messages[0] == messages[1]


def test_a_lying_issuer_is_refused_before_consent(tmp_path, ledger):
    office = make_office(tmp_path, "signed")
    server = FakeServer(make_campaign(token=office.token_record))

    class Liar:
        def sign(self, message):
            return KEY.sign(KEY.number(bytes(32), "signed"))

    with pytest.raises(TokenRefused):
        client(server, ledger, signer=Liar()).answer(server.name, never, never)
    with pytest.raises(QuestionRefused, match="token"):
        client(server, ledger).answer(server.name, never, never)


def test_two_processes_cannot_answer_at_once(ledger, tmp_path):
    server = walk_in()
    other = Ledger(tmp_path / "device" / "ledger.db")

    def consent(offer: Offer) -> bool:
        with pytest.raises(LedgerBusy):
            client(server, other).answer(server.name, never, never)
        return True

    assert client(server, ledger).answer(server.name, consent, value(1)).status == Status.ACKNOWLEDGED
    assert client(server, other).answer(server.name, never, never).status == Status.ACKNOWLEDGED
    assert len(server.bodies) == 1
    other.close()


@pytest.mark.parametrize(("epsilon", "sure"), [("1", "73 %"), ("2", "88 %"), ("0.1", "52 %"), ("5", "99.3 %")])
def test_the_sentence_on_epsilon_is_true(epsilon, sure):
    """Even odds become e^epsilon to 1 at most."""
    assert sure in privacy_sentence(Fraction(epsilon))
    assert "almost certain" in privacy_sentence(Fraction(8))


def test_a_report_to_a_campaign_that_is_over_is_late(ledger):
    """The server answers no more; the state says why, and the device stops trying."""
    server = walk_in()
    mine = client(server, ledger)
    server.lose = "404"
    server.state = "open"
    assert mine.answer(server.name, yes, value(5)).status == Status.QUEUED
    server.lose, server.state = "404", "finished"
    assert mine.answer(server.name, never, never).status == Status.LATE


def test_a_withdrawal_that_got_no_word_can_be_tried_again(ledger):
    server = walk_in()
    mine = client(server, ledger)
    mine.answer(server.name, yes, value(5))

    class Down(FakeServer):
        def request(self, method, path, body=None, content_type=""):
            return Answer(503)

    with pytest.raises(Unreachable):
        client(Down(server.campaign), ledger).withdraw(server.name)
    assert ledger.entry(server.name).state == State.ACKNOWLEDGED
    client(Down(server.campaign), ledger).opt_out()  # what cannot be withdrawn does not stop it
    assert ledger.opted_out
    assert mine.answer(server.name, never, never).status == Status.ACKNOWLEDGED


@pytest.mark.parametrize("limits", [{"salary": "much"}, {"salary": "1/0"}])
def test_limits_that_are_no_numbers(limits):
    with pytest.raises(ValueError, match="lifetime limits"):
        OwnerPolicy("1", limits=limits)


def test_deliver_without_a_report_waits_for_nothing(ledger):
    assert client(walk_in(), ledger).deliver("ab" * 32).status == Status.WAITING


def test_deliver_sleeps_until_the_moment(ledger):
    server, now = walk_in(), [1000.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    mine = client(server, ledger, jitter_s=100_000, clock=lambda: now[0], sleep=sleep)
    mine.answer(server.name, yes, value(5))
    moment = ledger.entry(server.name).not_before
    assert mine.deliver(server.name).status == Status.ACKNOWLEDGED
    assert now[0] >= moment


def test_the_value_is_in_no_file_and_no_request(ledger, tmp_path):
    """A value that is easy to find: in no form of it does it reach the disk, the wire or a record of the attempt."""
    canary = 7_654_321
    server = walk_in(schema=as_schema("pay=integer,0,9999999,16"))
    seen = []
    outcome = client(server, ledger).answer(server.name, lambda o: seen.append(repr(o)) or True, value(canary))
    assert outcome.status == Status.ACKNOWLEDGED
    ledger.close()
    stored = b"".join(path.read_bytes() for path in (tmp_path / "device").iterdir())
    sent = b"".join((path.encode() + (body or b"")) for _, path, body in server.log)
    forms = [str(canary).encode(), *(canary.to_bytes(size, order) for size in (3, 4, 8) for order in ("big", "little"))]
    for form in forms:
        assert form not in stored + sent + repr(outcome).encode() + seen[0].encode()


class Unreadable(dict):
    def get(self, *_):
        raise ZeroDivisionError("a record's own affair")


@pytest.mark.parametrize("record", [{"pay": 10**400}, {"pay": pd.NA}, {"pay": np.array([1, 2])}, None, 7, Unreadable()])
@pytest.mark.parametrize("schema", ["pay=integer,0,15", "pay=category,S|M|L"])
def test_finding_11_no_value_stops_a_device_that_has_promised(ledger, schema, record):
    """It would have told by its silence, and the field would be charged for nothing."""
    server = walk_in(schema=as_schema(schema))
    outcome = client(server, ledger).answer(server.name, yes, lambda offer: record)
    assert (outcome.status, outcome.replaced) == (Status.ACKNOWLEDGED, ("pay",))
    assert len(server.bodies) == 1
