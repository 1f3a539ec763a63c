"""A rehearsal is a campaign with real clients and real answers, and nothing of it can become a real campaign."""

import json
import os
import urllib.error
import urllib.request

import numpy as np
import pytest

from ahead_ldp.cli import main
from ahead_ldp.device.campaign import Campaign
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.protocol.turnout import TooFewPeople
from ahead_ldp.service.campaigns.campaign import draft
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.client import OwnerPolicy
from ahead_ldp.service.client.crowd import Crowd
from ahead_ldp.service.rehearsal.copies import MOST_PEOPLE, copy_of, people_of
from ahead_ldp.service.rehearsal.rehearsal import Rehearsal
from ahead_ldp.service.server import embedded
from tests.service.server.harness import TEXTS, bench, problem

DRAFT = {**TEXTS, "schema": ["age=integer,18,81"], "epsilon": "2", "minimum": 20, "created": "2026-11-16"}


def terms(**changes):
    return draft({**DRAFT, "users": 600, **changes})


@pytest.fixture(scope="module")
def rehearsed():
    with Rehearsal(terms(), embedded.stage, seed=1) as made:
        made.report, made.folder, made.said = None, made.store.path.parent, []
        made.report = made.run(lambda *now: made.said.append(now))
        yield made


def test_everybody_answers_and_is_counted(rehearsed):
    assert (rehearsed.report.accepted, rehearsed.report.refused) == (600, {})
    assert rehearsed.service.state(rehearsed.campaign)["state"] == "finished"
    assert [number for number, _, _ in rehearsed.said] == list(range(1, rehearsed.rounds + 1))
    assert rehearsed.said[-1] == (rehearsed.rounds, rehearsed.rounds, 600)


def test_the_truth_is_in_the_intervals(rehearsed):
    """At most a width away: the noise is the system's, and a third of that distance is 1.96 standard errors."""
    estimate = rehearsed.service.directory.estimate(rehearsed.campaign)
    queries = [f"age in {low}..{low + 20}" for low in range(18, 66, 4)]
    low, high = estimate.ask(*queries).interval()
    truth, wide = np.array([rehearsed.truth.share(query) for query in queries]), high - low
    assert ((low - wide <= truth) & (truth <= high + wide)).all()
    assert ((low <= truth) & (truth <= high)).sum() >= 4
    assert wide.max() < 0.9  # and says something


def test_the_copy_asks_the_same_and_says_that_it_is_one():
    asked = terms(token={"tier": "none"}, closing={"kind": "reports", "reports": 25}, review=True, enrolment="panel")
    copy, spread = copy_of(asked, 600)
    old, new = asked.campaign.record, copy.campaign.record
    changed = {name for name in new if new[name] != old.get(name)}
    assert changed == {"title", "closing", "review", "rehearsal"}
    assert new["title"] == "Rehearsal: Pay"
    assert copy.campaign.is_rehearsal
    assert not asked.campaign.is_rehearsal
    assert copy.digest != asked.digest
    assert sum(spread.wave_people) == pytest.approx(600)


def test_fewer_people_than_expected_are_spread_anew():
    copy, _ = copy_of(terms(users=100_000), 1000)
    assert copy.mechanism.users == 1000
    assert len(copy.campaign.groups) < len(terms(users=100_000).campaign.groups)
    assert people_of(terms(users=100_000)) == MOST_PEOPLE
    with pytest.raises(TooFewPeople, match="What would do"):
        copy_of(terms(), 10)
    with pytest.raises(ValueError, match="expected 1 to 20,000 people"):
        Rehearsal(terms(), embedded.stage, 10**6)


def test_a_mark_that_is_not_true_is_refused():
    record = terms().campaign.record
    for odd in (False, 1, "yes", None):
        with pytest.raises(ValueError, match="rehearsal to be true"):
            Campaign.of({**record, "rehearsal": odd})


def test_no_collector_takes_its_record_tokens_reports_or_store(rehearsed, tmp_path, capsys):
    copy = rehearsed.terms.campaign
    with embedded.stage(rehearsed.store) as stage:
        token = stage.service.add_token("operator", "mine")
    with bench(tmp_path) as real:
        refused = real.call("POST", "/campaigns/records", json=copy.record)
        assert (refused.status_code, problem(refused)) == (422, "invalid_campaign")
        assert "a rehearsal never becomes one" in refused.text
        assert real.call("GET", f"/campaigns/{copy.digest}", "public").status_code == 404
        assert real.client.get("/v1/campaigns", headers={"authorization": f"Bearer {token}"}).status_code == 401
        name = real.create(**{k: v for k, v in DRAFT.items() if k != "schema"}, attributes=DRAFT["schema"], users=600)
        real.call("POST", f"/campaigns/{name}/open")
        wave = rehearsed.service.directory.publish(copy.digest, 1).body
        crowd = Crowd(copy, rehearsed.truth.codes[:50].tolist(), OwnerPolicy("2"))
        for upload in crowd.uploads(wave, 1, range(50)):  # answers to the rehearsal, sent to the campaign
            assert real.upload(name, upload.body).status_code in (400, 404, 422)
            assert real.upload(copy.digest, upload.body).status_code == 404
        assert real.service.progress(name)["reports"] == 0
    store = rehearsed.store.path
    assert main(["serve", "--set", f"store={store}", "--set", f"keys={store.parent / 'keys'}"]) != 0
    assert "got that of a rehearsal" in capsys.readouterr().err
    with embedded.start(rehearsed.store) as server:  # whoever serves it without that check serves nothing of it
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{server.url}/v1/campaigns/{copy.digest}")
        with pytest.raises(Problem):
            server.service.directory.terms(copy.digest)


def test_a_real_campaign_is_none_of_a_rehearsal(rehearsed):
    with pytest.raises(ValueError, match="rehearsal"):
        rehearsed.service.create(terms(title="Another"))


def test_no_device_of_a_person_answers_it(rehearsed):
    with pytest.raises(QuestionRefused, match="only synthetic people answer"):
        OwnerPolicy("4").check_campaign(rehearsed.terms.campaign)


def test_the_folder_goes_with_the_rehearsal():
    with Rehearsal(terms(), embedded.stage, seed=1) as made:
        folder = made.store.path.parent
        assert os.stat(folder).st_mode & 0o077 == 0
    assert not folder.exists()


def test_the_crowd_refuses_codes_outside_the_domain(rehearsed):
    for codes in ([64], [-1], [1, 1], []):
        with pytest.raises(ValueError, match="below its size"):
            Crowd(rehearsed.terms.campaign, [codes], OwnerPolicy("2"))


def test_the_command_prints_answers_beside_the_truth(tmp_path, capsys):
    file = tmp_path / "campaign.toml"
    file.write_text(
        'title = "Pay"\npurpose = "a test"\ncontroller = "Example"\ncontact = "a@example.org"\nepsilon = "2"\n'
        'users = 400\nminimum = 20\nattributes = ["age=integer,18,81", "town=nominal,A|B|C"]\n'
    )
    wanted = ["--ask", "age < 50", "--ask", "town = A", "--seed", "3"]
    assert main(["campaign", "rehearse", str(file), *wanted, "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["rehearsal"] is True
    assert found["people"] == 400
    assert [r["query"] for r in found["queries"]] == ["age < 50", "town = A"]
    assert all(r["low"] <= r["share"] <= r["high"] and 0 < r["truth"] < 1 for r in found["queries"])
    assert "400 synthetic people answer" in printed.err
    assert "400 of 400 answers are counted" in printed.err
    assert main(["campaign", "rehearse", str(file), "--ask", "age < 50", "--ask", "bonus > 3"]) != 0
    assert "people answer" not in (told := capsys.readouterr().err)  # it is said before anybody answers
    assert "expected an attribute among age, town, got 'bonus'" in told


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("title = 1", "expected attributes, epsilon, minimum"),
        ("nonsense", "expected a survey, a campaign or a record"),
        ('attributes = ["a=integer,0,9"]\nepsilon = "1"\nminimum = 10\nusers = 100\n', "the fields of a campaign"),
    ],
)
def test_a_file_that_is_none(tmp_path, capsys, text, rule):
    (tmp_path / "x.toml").write_text(text)
    assert main(["campaign", "rehearse", str(tmp_path / "x.toml")]) != 0
    assert rule in capsys.readouterr().err
