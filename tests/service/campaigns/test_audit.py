"""The audit from outside: everything fits on an honest server, and each lie is found."""

import json
from types import SimpleNamespace

import pytest

from ahead_ldp.device.canonical import canonical_bytes, parse_canonical
from ahead_ldp.service.campaigns.audit import audit, audit_url
from ahead_ldp.service.campaigns.chain import chain
from ahead_ldp.service.store import CampaignState, QuestionRow, QuestionState, WaveRow, WaveState
from tests.service.server.harness import ages, bench


@pytest.fixture
def service(tmp_path):
    with bench(tmp_path) as made:
        yield made


@pytest.fixture
def campaign(service):
    name = service.opened()
    service.run(name, ages(100), waves=2)
    service.answer(name, 3, ages(10))
    return name


def fetch(service, campaign, changes=None):
    """The public documents, some of them changed on the way."""

    def get(path):
        data = service.call("GET", f"/campaigns/{campaign}{path}", "public").content
        return (changes or {}).get(path, lambda x: x)(data)

    return get


def failed(found):
    return [check.name for check in found.checks if not check.matched]


def test_an_honest_campaign_fits_together(service, campaign):
    found = audit(campaign, fetch(service, campaign))
    assert found.matched
    assert [check.name for check in found.checks] == ["campaign", "chain", "questions", "minimum", "frozen"]
    assert json.loads(json.dumps(found.record()))["matched"]


def test_a_finished_campaign_fits_together(service):
    name = service.opened(method={"name": "hio"})
    service.run(name, ages(400))
    assert audit(name, fetch(service, name)).matched


def test_a_chain_is_canonical_bytes_of_stored_ones_which_nobody_reads(service, campaign):
    """It was read and written anew for every stranger: a tenth of a second each time, at 65,536 cells."""
    data = service.call("GET", f"/campaigns/{campaign}/chain", "public").content
    record = parse_canonical(data)
    assert record["waves"][0]["groups"][0]["tally"] is not None
    assert service.store.questions(campaign)[0].record in data
    unread = QuestionRow(1, "é", "0" * 64, b"1.5", QuestionState.OPEN, None, b"2.5", None)
    stub = SimpleNamespace(
        row=lambda _: SimpleNamespace(record=b"0.5", state=CampaignState.OPEN, epoch=1),
        store=SimpleNamespace(
            waves=lambda _: [WaveRow("c", 1, WaveState.OPEN, "", 0, None, None, 0)], questions=lambda _: [unread]
        ),
    )
    assert json.loads(chain(stub, "c"))["waves"] == [
        {
            "number": 1,
            "state": "open",
            "groups": [{"group": "é", "state": "open", "question": 1.5, "tally": 2.5, "reports": None}],
        }
    ]


def with_chain(change):
    def changed(data):
        chain = json.loads(data)
        change(chain)
        return json.dumps(chain).encode()

    return {"/chain": changed}


def other_count(chain):
    chain["waves"][0]["groups"][0]["tally"]["counts"][0] ^= 1


def other_question(chain):
    chain["waves"][1]["groups"][0]["question"]["epsilon"] = "3"


def fewer_people(chain):
    tally = chain["waves"][1]["groups"][0]["tally"]
    tally["n"], tally["counts"] = 5, [min(c, 5) for c in tally["counts"]]


def other_end(chain):
    chain["frozen"] = "0" * 64


def missing_wave(chain):
    del chain["waves"][0]


def no_digest(chain):
    chain["waves"][0]["groups"][0]["reports"] = "none"


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (with_chain(other_count), "questions"),
        (with_chain(other_question), "questions"),
        (with_chain(missing_wave), "questions"),
        (with_chain(no_digest), "questions"),
        (with_chain(fewer_people), "questions"),
        (with_chain(other_end), "frozen"),
        ({"": lambda data: canonical_bytes(parse_canonical(data) | {"title": "another"})}, "campaign"),
        ({"/waves/2": lambda data: data.replace(b'"epsilon":"2"', b'"epsilon":"3"')}, "questions"),
        ({"/state": lambda data: json.dumps(json.loads(data) | {"frozen": "1" * 64}).encode()}, "frozen"),
    ],
)
def test_each_lie_is_found(service, campaign, change, check):
    assert failed(audit(campaign, fetch(service, campaign, change))) == [check]


def test_a_group_below_the_minimum_is_found(service):
    """In the last wave nothing later depends on the tally, so only this check and the chain's end can tell."""
    name = service.opened(method={"name": "flat"})
    service.run(name, ages(100))

    def few(chain):
        tally = chain["waves"][0]["groups"][0]["tally"]
        tally["n"], tally["counts"] = 5, [min(c, 5) for c in tally["counts"]]

    assert failed(audit(name, fetch(service, name, with_chain(few)))) == ["minimum"]


@pytest.mark.parametrize("url", ["ftp://x/" + "0" * 64, "https://host/c/abc", "not a url"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ValueError, match="expected"):
        audit_url(url)
