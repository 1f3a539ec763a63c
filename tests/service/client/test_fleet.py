"""The fleet: everybody answers at most once, by the device's law, and what became of them is told."""

import json
from collections import Counter

import numpy as np
import pytest

from ahead_ldp.device.frames import HEADER_LENGTH, ID_LENGTH, Header
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.mechanisms import mechanism_from_record
from ahead_ldp.protocol.session import finish
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.client import Answer, OwnerPolicy, Unreachable
from ahead_ldp.service.client import fleet as fleet_module
from ahead_ldp.service.client.crowd import Crowd, Visits
from ahead_ldp.service.client.fleet import FleetReport, run_fleet
from tests.service.client.fake import SCHEMA, FakeServer, OfficeSigner, crowd_of_values, make_campaign, make_office

POLICY = OwnerPolicy("4")


def codes(n: int, seed: int = 1) -> list[list[int]]:
    return [[int(c)] for c in np.random.default_rng(seed).integers(0, 16, n)]


def run(campaign, people, visits, **options) -> tuple[FleetReport, FakeServer]:
    server = FakeServer(campaign)
    report = run_fleet(server, Crowd(campaign, people, POLICY), visits, lambda number: server.close(), **options)
    return report, server


def test_batches_are_of_one_group_and_everybody_is_in_one(tmp_path):
    campaign = make_campaign(method="hio", epsilon="4", enrolment="panel")
    server, crowd = FakeServer(campaign), Crowd(campaign, codes(500), POLICY)
    uploads = list(crowd.uploads(server.wave(), 1, range(500), batch=30))
    assert sorted(p for u in uploads for p in u.people) == list(range(500))
    assert max(len(u.people) for u in uploads) <= 30
    records = {Header.decode(u.body).question: u.group for u in uploads}
    assert len(records) == len({u.group for u in uploads}) == len(campaign.groups)
    assert list(crowd.uploads(server.wave(), 1, range(500))) == []  # never twice
    ids = [u.body[HEADER_LENGTH : HEADER_LENGTH + ID_LENGTH] for u in uploads]
    assert len(set(ids)) == len(uploads)


def test_a_panel_keeps_its_groups_over_the_waves():
    campaign = make_campaign(epsilon="4", enrolment="panel")
    report, server = run(campaign, codes(400), Visits.draw(400, [1] * 4, returning=1))
    assert report.accepted == 400
    by_wave = {wave: set(groups) for wave, groups in report.waves.items()}
    assert by_wave == {i + 1: {group} for i, (group, _) in enumerate(campaign.groups)}
    assert not server.session.is_open


def far_apart(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two samples differ: 4 standard errors of a mean, 2.5 of a log ratio of variances."""
    mean = abs(a.mean() - b.mean()) / np.sqrt(a.var() / a.size + b.var() / b.size)
    spread = abs(np.log(a.var() / b.var())) / np.sqrt(2 / a.size + 2 / b.size)
    return bool(mean > 4 or spread > 2.5)


def test_what_the_fleet_says_has_the_law_of_simulate(monkeypatch):
    """Answers over 700 repetitions with a fixed source of chance, beside the exact simulation; 30 % more is seen."""
    campaign = make_campaign(epsilon="4", enrolment="panel", method="hio")
    mechanism = mechanism_from_record(campaign.record["method"])
    people, query, repeats = codes(100), "pay in 0..7", 700
    rng = np.random.default_rng(5)
    population = Population.of_records(np.array(people), SCHEMA.sizes)
    exact = [run_simulation(mechanism, SCHEMA, population, rng).ask(query).values[0] for _ in range(repeats)]
    monkeypatch.setattr("os.urandom", rng.bytes)
    visits = Visits((0,) * len(people))
    told = [run(campaign, people, visits, batch=100)[1].session.history for _ in range(repeats)]
    met = np.array([finish(mechanism, SCHEMA, history).ask(query).values[0] for history in told])
    assert not far_apart(np.array(exact), met)
    assert far_apart(np.array(exact), met.mean() + np.sqrt(1.3) * (met - met.mean()))


def test_values_become_codes_as_on_a_device():
    campaign = make_campaign(epsilon="4", schema=as_schema(["pay=integer,0,15", "town=codes,4"]))
    crowd = crowd_of_values(campaign, [{"pay": 3, "town": 1}, {"pay": 15, "town": 0}], POLICY)
    assert [list(c) for c in crowd.people] == [[3, 1], [15, 0]]


def test_a_bad_wave_stops_the_whole_crowd():
    campaign = make_campaign(epsilon="4")
    server, crowd = FakeServer(campaign), Crowd(campaign, codes(10), OwnerPolicy("1"))
    with pytest.raises(QuestionRefused):
        list(crowd.uploads(server.wave(), 1, range(10)))
    assert sum(crowd.answered) == 0


@pytest.mark.parametrize("tier", ["signed", "blind"])
def test_a_crowd_with_tokens(tmp_path, tier):
    office = make_office(tmp_path, tier)
    campaign = make_campaign(epsilon="4", token=office.token_record)
    with pytest.raises(ValueError, match="signers"):
        Crowd(campaign, codes(3), POLICY)
    secrets = office.roster.enrol(8)
    server = FakeServer(campaign)
    crowd = Crowd(campaign, codes(8), POLICY, lambda i: OfficeSigner(office, secrets[i]))
    report = run_fleet(server, crowd, Visits.draw(8, [1]), lambda number: server.close(), batch=3)
    assert report.accepted == 8
    assert report.refused == {}


class Moody(FakeServer):
    """Fails in every way once before it works."""

    def request(self, method, path, body=None, content_type=""):
        if method == "POST":
            self.moods = getattr(self, "moods", ["down", 503, 429, "lost"])
            if self.moods:
                mood = self.moods.pop(0)
                if mood == "lost":
                    super().request(method, path, body)
                if isinstance(mood, str):
                    raise Unreachable(mood)
                return Answer(mood, b"{}", {"retry-after": "0"})
        return super().request(method, path, body)


def test_a_moody_server_gets_the_same_bytes_until_it_takes_them():
    campaign = make_campaign(epsilon="4")
    server = Moody(campaign)
    crowd = Crowd(campaign, codes(50), POLICY)
    report = run_fleet(server, crowd, Visits.draw(50, [1]), lambda number: server.close(), batch=50)
    assert report.accepted == 50
    assert len(server.seen) == 50
    assert Counter(Counter(server.bodies).values()) == {2: 50}  # the lost one, and the one that was answered


def test_a_server_that_never_takes_is_reported(monkeypatch):
    monkeypatch.setattr(fleet_module, "_ATTEMPTS", 2)
    monkeypatch.setattr(fleet_module.time, "sleep", lambda s: None)
    campaign = make_campaign(epsilon="4")

    class Full(FakeServer):
        def request(self, method, path, body=None, content_type=""):
            return Answer(503) if method == "POST" else super().request(method, path, body)

    server = Full(campaign)
    crowd = Crowd(campaign, codes(50), POLICY)
    report = run_fleet(server, crowd, Visits.draw(50, [1]), lambda number: server.close(), batch=20)
    assert report.accepted == 0
    assert report.refused == {"status_503": 50}
    assert "50 status_503" in str(report)


def test_a_wave_that_never_closes_ends_the_wait():
    campaign = make_campaign(epsilon="4")
    with pytest.raises(TimeoutError, match="after 1"):
        run_fleet(FakeServer(campaign), Crowd(campaign, codes(5), POLICY), Visits.draw(5, [1]), patience_s=0.1)


def test_refusals_are_counted_by_reason():
    campaign = make_campaign(epsilon="4")

    def change(path: str, body: bytes) -> bytes:
        if not path.endswith("/reports"):
            return body
        found = json.loads(body)
        return json.dumps({"accepted": found["accepted"] - 1, "refused": [{"index": 0, "reason": "x"}]}).encode()

    server = FakeServer(campaign, change=change)
    crowd = Crowd(campaign, codes(40), POLICY)
    report = run_fleet(server, crowd, Visits.draw(40, [1]), lambda number: server.close(), batch=10)
    assert report.refused == {"x": 4}
    assert report.accepted == 36
    assert report.share == 0.9


def test_visits_follow_their_weights():
    visits = Visits.draw(20_000, [1, 2, 1], returning=1, of=4)
    found = Counter(visits.first)
    for wave, share in {0: 1 / 4, 1: 3 / 16, 2: 3 / 8, 3: 3 / 16}.items():
        assert abs(found[wave] - 20_000 * share) < 5 * np.sqrt(20_000 * share * (1 - share))
    assert list(visits.present(2)) == [i for i, first in enumerate(visits.first) if first in (0, 2)]
    with pytest.raises(ValueError, match="weight"):
        Visits.draw(3, [])


@pytest.mark.parametrize("codes_of_one", [[16], [-1], [30_000], [], [1, 1]], ids=str)
def test_codes_that_no_attribute_has_are_refused(codes_of_one):
    """Values that were taken for codes gave answers that were wrong by 200 standard errors."""
    campaign = make_campaign()
    with pytest.raises(ValueError, match="a code of every attribute, below its size"):
        Crowd(campaign, [[3], codes_of_one], POLICY)
