"""Client, fleet and issuer against the real server over HTTP: whole campaigns, both enrolments, all three tiers."""

import json
from collections import Counter

import numpy as np
import pytest

from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.tokens import PANEL_WAVE, token_group
from ahead_ldp.service.client import (
    Client,
    HttpTransport,
    IssuerClient,
    OwnerPolicy,
    Status,
    Unreachable,
    WithdrawalRefused,
)
from ahead_ldp.service.client.crowd import Crowd, Visits
from ahead_ldp.service.client.fleet import run_fleet, run_fleet_async
from ahead_ldp.service.client.views import fetch_wave
from tests.service.client.embedded import issuing, running
from tests.service.client.fake import InEveryCampaign, OfficeSigner, crowd_of_values, make_campaign, make_office

POLICY = OwnerPolicy("4", fields=InEveryCampaign({"pay": "salary"}))


def yes(offer):
    return True


def people(n: int, seed: int = 3) -> list[list[int]]:
    return [[int(c)] for c in np.minimum(np.random.default_rng(seed).geometric(0.3, n) - 1, 15)]


def ask(operator, campaign, query="pay in 0..3"):
    body = {"queries": [query]}
    status, found = operator.call("POST", f"/v1/campaigns/{campaign.digest}/queries", body, "analyst")
    assert status == 200, found
    return found["queries"][0]


def never(offer):
    raise AssertionError("asked")


@pytest.mark.parametrize("enrolment", ["walk_in", "panel"])
@pytest.mark.parametrize("how", ["one by one", "asyncio"])
def test_a_whole_campaign_over_http(tmp_path, enrolment, how):
    """Everybody answers once; what the analyst gets is the truth within five standard errors."""
    campaign = make_campaign(enrolment=enrolment, epsilon="4")
    everybody = people(2000)
    weights = [share for _, share in campaign.groups]
    with running(tmp_path) as (server, operator, transport):
        operator.open(campaign)
        crowd = crowd_of_values(campaign, [{"pay": code} for (code,) in everybody], POLICY)
        visits = Visits.draw(len(everybody), weights, returning=int(enrolment == "panel"))
        close = operator.closer(campaign)
        if how == "asyncio":
            report = run_fleet_async(server.url, crowd, visits, close, batch=1, connections=8)
            assert report.uploads == 2000
        else:
            report = run_fleet(transport, crowd, visits, close, batch=100)
        answer = ask(operator, campaign)
    assert report.accepted == 2000
    assert report.refused == {}
    assert len(report.waves) == len(campaign.groups)
    assert "100.0 %" in str(report)
    truth = np.mean([code <= 3 for (code,) in everybody])
    assert abs(answer["share"] - truth) < 5 * answer["standard_error"]
    assert answer["standard_error"] < 0.05


@pytest.mark.parametrize("enrolment", ["walk_in", "panel"])
@pytest.mark.parametrize("tier", ["signed", "blind"])
def test_a_campaign_with_tokens_over_http(tmp_path, tier, enrolment):
    """The issuer is a server of its own; every group is derived, and the collector agrees with every one."""
    office = make_office(tmp_path, tier)
    campaign = make_campaign(enrolment=enrolment, epsilon="4", token=office.token_record, minimum=1)
    everybody, secrets = people(60), office.roster.enrol(60)
    with running(tmp_path) as (_, operator, transport), issuing(office) as issuer:
        operator.open(campaign)
        crowd = Crowd(campaign, everybody, POLICY, lambda person: IssuerClient(issuer, secrets[person]))
        visits = Visits.draw(60, [1] * len(campaign.groups), returning=int(enrolment == "panel"))
        report = run_fleet(transport, crowd, visits, operator.closer(campaign), batch=7)
        assert ask(operator, campaign)["standard_error"] < 0.5
    assert report.accepted == 60
    assert report.refused == {}
    assert office.roster.count() == (60, 60)


@pytest.mark.parametrize("tier", ["none", "signed", "blind"])
def test_one_person_answers_withdraws_and_cannot_come_back(tmp_path, tier):
    office = None if tier == "none" else make_office(tmp_path, tier)
    token = {"tier": "none"} if office is None else office.token_record
    campaign = make_campaign(epsilon="4", token=token)
    with running(tmp_path) as (_, operator, transport), Ledger(tmp_path / "ledger.db") as ledger:
        operator.open(campaign)
        signer = None if office is None else OfficeSigner(office, office.roster.enrol(1)[0])
        mine = Client(transport, ledger, POLICY, signer=signer, jitter_s=0)
        first = mine.answer(campaign.digest, yes, lambda offer: {"pay": 3})
        assert first.status == Status.ACKNOWLEDGED
        batch = ledger.entry(campaign.digest).batch
        path = f"/v1/campaigns/{campaign.digest}/reports"
        assert json.loads(transport.request("POST", path, batch).body) == {"accepted": 1, "refused": []}
        mine.withdraw(campaign.digest)
        again = json.loads(transport.request("POST", path, batch).body)
        assert again == {"accepted": 0, "refused": [{"index": 0, "reason": "report_withdrawn"}]}
        status, progress = operator.call("GET", f"/v1/campaigns/{campaign.digest}/progress", role="analyst")
        assert status == 200
        assert sum(group["reports"] for group in progress["groups"]) == 0


def test_a_lost_answer_is_sent_again_byte_by_byte(tmp_path):
    campaign = make_campaign(epsilon="4")

    class Losing:
        def __init__(self, inner: HttpTransport) -> None:
            self.inner, self.bodies = inner, []

        def request(self, method, path, body=None, content_type="application/octet-stream"):
            answer = self.inner.request(method, path, body, content_type)
            if method == "POST":
                self.bodies.append(body)
                if len(self.bodies) == 1:
                    raise Unreachable("lost")
            return answer

    with running(tmp_path) as (_, operator, transport), Ledger(None) as ledger:
        operator.open(campaign)
        losing = Losing(transport)
        mine = Client(losing, ledger, POLICY, jitter_s=0)
        assert mine.answer(campaign.digest, yes, lambda offer: {"pay": 3}).status == Status.QUEUED
        assert mine.answer(campaign.digest, never, never).status == Status.ACKNOWLEDGED
        assert len(losing.bodies) == 2
        assert len(set(losing.bodies)) == 1
        _, progress = operator.call("GET", f"/v1/campaigns/{campaign.digest}/progress", role="analyst")
        assert sum(group["reports"] for group in progress["groups"]) == 1


def test_late_reports_and_late_withdrawals(tmp_path):
    campaign = make_campaign(epsilon="4", minimum=1)
    with running(tmp_path) as (_, operator, transport), Ledger(None) as early, Ledger(None) as late:
        operator.open(campaign)
        policy = OwnerPolicy("4", least_group=1, fields=InEveryCampaign({"pay": "salary"}))
        first = Client(transport, early, policy, jitter_s=0)
        first.answer(campaign.digest, yes, lambda offer: {"pay": 3})
        now = [0.0]
        second = Client(transport, late, policy, jitter_s=10**9, clock=lambda: now[0])
        second.answer(campaign.digest, yes, lambda offer: {"pay": 3})
        operator.closer(campaign)(1)
        now[0] = 2e9
        assert second.answer(campaign.digest, never, never).status == Status.LATE
        with pytest.raises(WithdrawalRefused):
            first.withdraw(campaign.digest)


@pytest.mark.parametrize("enrolment", ["walk_in", "panel"])
def test_forged_groups_and_tokens_are_refused(tmp_path, enrolment):
    """A device that answers the question of another group, with another nonce, or with a signature bent by a bit."""
    office = make_office(tmp_path, "signed")
    campaign = make_campaign(
        enrolment=enrolment, epsilon="4", token=office.token_record, method="hio", minimum=1
    )  # all groups in one wave
    with running(tmp_path) as (_, operator, transport):
        operator.open(campaign)
        data = fetch_wave(transport, campaign, 1)
        secrets = office.roster.enrol(20)
        crowd = Crowd(campaign, people(20), POLICY, lambda i: OfficeSigner(office, secrets[i]))
        wave = PANEL_WAVE if enrolment == "panel" else 1
        path = f"/v1/campaigns/{campaign.digest}/reports"
        uploads = list(crowd.uploads(data, 1, range(20), batch=1))
        assert len(uploads) == 20
        reasons = Counter()
        for upload in uploads:
            size = office.key.public.length
            assert token_group(upload.body[-size:], campaign.digest, wave, campaign.groups) == upload.group
            bent = upload.body[:-1] + bytes([upload.body[-1] ^ 1])
            renamed = upload.body[:65] + bytes(16) + upload.body[81:]
            for body in (bent, renamed):
                reasons[json.loads(transport.request("POST", path, body).body)["refused"][0]["reason"]] += 1
        a = uploads[0]
        b = next(upload for upload in uploads if upload.group != a.group)
        tail = 32 + office.key.public.length
        body = b.body[:65] + a.body[65:81] + b.body[81:-tail] + a.body[-tail:]  # a's token on b's question
        assert json.loads(transport.request("POST", path, body).body)["refused"][0]["reason"] == "wrong_group"
        assert reasons == {"token_invalid": 40}
        for upload in uploads:
            assert json.loads(transport.request("POST", path, upload.body).body)["accepted"] == 1


def yields(tmp_path, enrolment: str, returning: int, n: int = 1200) -> float:
    campaign = make_campaign(enrolment=enrolment, epsilon="4", minimum=1)
    with running(tmp_path) as (_, operator, transport):
        operator.open(campaign)
        crowd = Crowd(campaign, people(n), POLICY)
        visits = Visits.draw(n, [share for _, share in campaign.groups], returning, of=100)
        report = run_fleet(transport, crowd, visits, operator.closer(campaign))
    assert report.accepted == sum(crowd.answered)
    return report.share


@pytest.mark.parametrize("returning", [0, 50])
def test_yield_of_each_enrolment_with_people_who_come_once(tmp_path, returning):
    """A walk-in counts everybody; a panel loses one-time visitors, all but those who come in their own wave."""
    waves = len(make_campaign(epsilon="4").groups)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert yields(tmp_path / "a", "walk_in", returning) == 1.0
    expected = returning / 100 + (1 - returning / 100) / waves
    found = yields(tmp_path / "b", "panel", returning)
    assert abs(found - expected) < 5 * np.sqrt(0.25 / 1200)


def test_an_asyncio_fleet_sends_again_what_was_refused_for_now(tmp_path):
    """A server that takes few requests a second: 429 is answered with patience and the same bytes."""
    campaign = make_campaign(epsilon="4", method="flat", minimum=1)
    with running(tmp_path, rate_per_s=200.0, rate_burst=5) as (server, operator, _):
        operator.open(campaign)
        crowd = Crowd(campaign, people(60), POLICY)
        report = run_fleet_async(server.url, crowd, Visits.draw(60, [1]), operator.closer(campaign), connections=8)
    assert report.accepted == 60
    assert report.refused == {}
