"""A collector who wants more than one report about one value: renames, clones, declares names in advance, waits.

The victim is `ahead respond` and the client as they are; the attacker chooses everything that a server can choose. Each
attack goes over several lives of a ledger: every step opens the file anew.
"""

import hashlib
import http.client
import itertools
import json

import pytest

from ahead_ldp.cli import participant
from ahead_ldp.device.budget import Limits
from ahead_ldp.device.entries import LedgerRefused
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.client import Client, OwnerPolicy, Status
from tests.service.client.embedded import running
from tests.service.client.fake import KEY, FakeServer, make_campaign

REFUSALS = (QuestionRefused, LedgerRefused)
DAYS = (f"2026-{month:02}-{day:02}" for month, day in itertools.product(range(1, 13), range(1, 29)))


def campaign(*names, **change):
    """A campaign of its own about attributes of these names."""
    return make_campaign(schema=as_schema([f"{name}=integer,0,15" for name in names]), created=next(DAYS), **change)


class Owner:
    """Somebody at a terminal. ``says`` is their word on which thing of theirs a name is; Enter takes the default."""

    def __init__(self, path, monkeypatch, says=lambda name, default: default, agrees=True):
        self.path, self.says, self.agrees, self.asked = path, says, agrees, []
        monkeypatch.setattr("typer.confirm", lambda *_, **__: self.agrees)
        monkeypatch.setattr("typer.prompt", self._prompt)

    def _prompt(self, name, default=None, **_):
        self.asked.append(name)
        said = self.says(name, default)
        assert said is not None, "nothing was offered, and they had to think"
        return said

    def meets(self, met, policy=None, person=None):
        """One visit to a campaign: acknowledged, declined, or None where the device refused; and the server."""
        server = FakeServer(met)
        with Ledger(self.path) as ledger:
            client = Client(server, ledger, policy or OwnerPolicy("1"), jitter_s=0)
            somebody = person(ledger) if person else participant.Person(False, ledger)
            try:
                outcome = client.answer(
                    server.name, somebody.consent, lambda offer: {a.name: 7 for a in offer.attributes}, somebody.fields
                )
            except REFUSALS:
                return None
        return outcome.status if outcome.status == Status.DECLINED else len(server.seen)

    def charges(self):
        with Ledger(self.path) as ledger:
            return ledger.charges()


def test_finding_3_names_declared_in_advance_open_no_further_reports(tmp_path, monkeypatch):
    """A first campaign declares age and eleven other names for it, and is declined; then one campaign for each name."""
    names = ["age", *(f"age_{i}" for i in range(11))]
    owner = Owner(tmp_path / "l.db", monkeypatch, agrees=False)
    assert owner.meets(campaign(*names, method="lle")) == Status.DECLINED
    assert owner.asked == []  # nothing is mapped before consent
    owner.agrees = True
    reports = [owner.meets(campaign(name)) for name in names]
    assert reports == [1, *[None] * 11]
    assert owner.asked == names  # each name was asked about, once
    assert [charge.field for charge in owner.charges()] == ["age"]


def test_names_that_another_group_is_asked_are_the_owners_word_too(tmp_path, monkeypatch):
    """Answered, not declined: all groups' names are asked about, and one that is like another is offered it."""
    owner = Owner(tmp_path / "l.db", monkeypatch)
    assert owner.meets(campaign("age", "age_0", "age_1", method="lle")) == 1
    assert owner.asked == ["age", "age_0", "age_1"]
    assert [owner.meets(campaign(name)) for name in ("age", "age_0", "age_1", "age_2")] == [None] * 4
    assert {charge.field for charge in owner.charges()} == {"age"}


def test_a_campaign_that_policy_refuses_maps_nothing(tmp_path, monkeypatch):
    owner = Owner(tmp_path / "l.db", monkeypatch)
    assert owner.meets(campaign("age", "age_0", epsilon="2")) is None
    assert owner.asked == []
    assert [owner.meets(campaign(name)) for name in ("age", "age_0")] == [1, None]


def test_clones_and_renamed_clones_get_one_report(tmp_path, monkeypatch):
    owner = Owner(tmp_path / "l.db", monkeypatch)
    clones = [campaign("pay", title=f"Pay {i}") for i in range(5)]
    renamed = [campaign(name) for name in ("pay ", "Pay", "pay_2026", "monthly pay", "PAY!") if name.strip() == name]
    assert [owner.meets(met) for met in clones + renamed] == [1] + [None] * (len(clones + renamed) - 1)


def test_a_name_in_other_words_has_to_be_typed(tmp_path, monkeypatch):
    """Nothing is offered for it, so that Enter alone makes no new field; an owner who knows better says which it is."""
    owner = Owner(tmp_path / "l.db", monkeypatch)
    assert owner.meets(campaign("pay")) == 1
    with pytest.raises(AssertionError, match="had to think"):
        owner.meets(campaign("income"))
    owner.says = lambda name, default: "pay"
    assert owner.meets(campaign("income")) is None


def test_who_is_not_sure_is_asked_once_in_a_lifetime(tmp_path, monkeypatch):
    owner = Owner(tmp_path / "l.db", monkeypatch, says=lambda name, default: "?")
    assert [owner.meets(campaign(name)) for name in ("x1", "x2", "y")] == [1, None, None]
    owner.says = lambda name, default: name
    assert owner.meets(campaign("z")) is None  # it may have been this one


def test_an_owner_who_takes_every_name_for_new_is_held_by_the_lifetime(tmp_path, monkeypatch):
    """Somebody who is deceived every time gives away the lifetime's limit, and no more."""
    owner = Owner(tmp_path / "l.db", monkeypatch, says=lambda name, default: name)
    policy = OwnerPolicy("1", lifetime=5)
    reports = [owner.meets(campaign(f"thing{chr(97 + i)}"), policy) for i in range(12)]
    assert reports == [1] * 5 + [None] * 7


@pytest.mark.parametrize("names", [("constructor", "__proto__"), ("toString", "toString_2")])
def test_names_that_mean_something_to_a_language_are_names(tmp_path, monkeypatch, names):
    owner = Owner(tmp_path / "l.db", monkeypatch, says=lambda name, default: names[0])
    assert [owner.meets(campaign(name)) for name in names * 3] == [1] + [None] * 5


def test_scripts_have_no_moment_of_consent_and_bring_their_fields(tmp_path, monkeypatch):
    """Without a mapping for this very campaign a script is refused, whatever it answered before under the same name."""
    owner = Owner(tmp_path / "l.db", monkeypatch)

    def script(ledger):
        return participant.Script(True, ledger, {"age": 7, "age_0": 7})

    first, clone, renamed = campaign("age"), campaign("age"), campaign("age_0")
    assert owner.meets(first, None, script) is None
    brought = OwnerPolicy("1", fields={first.digest: {"age": "age"}})
    assert owner.meets(first, brought, script) == 1
    for met in (clone, renamed):
        assert owner.meets(met, brought, script) is None
        assert owner.meets(met, OwnerPolicy("1", fields={met.digest: {"age": "age", "age_0": "age"}}), script) is None
    assert owner.asked == []


def test_a_file_cannot_say_two_things_about_one_campaign(tmp_path, monkeypatch):
    """A promise that was never drawn keeps the fields that it was made for."""
    met, path = campaign("age"), tmp_path / "l.db"
    with Ledger(path) as ledger:
        ledger.keep_mapping(met.digest, {"age": "age"})
    owner = Owner(path, monkeypatch)
    assert owner.meets(met, OwnerPolicy("1", fields={met.digest: {"age": "other"}})) is None
    assert owner.meets(met, OwnerPolicy("1", fields={met.digest: {"age": "age"}})) == 1


def test_what_was_charged_outlives_every_campaign(tmp_path, monkeypatch):
    """Opting out, opting in, other names, other days: the charge stays, and so does what it is for."""
    owner = Owner(tmp_path / "l.db", monkeypatch)
    assert owner.meets(campaign("age", title="First")) == 1
    with Ledger(owner.path) as ledger:
        ledger.opt_out()
    assert owner.meets(campaign("age")) is None
    with Ledger(owner.path) as ledger:
        ledger.opt_in()
        (line,) = ledger.statement(Limits()).lines
        assert ledger.askers()[line.charges[0].campaign].title == "First"
    assert owner.meets(campaign("age")) is None


# Tokens, by sockets of the attacker's own.


def post(url, campaign, body):
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    connection.request("POST", f"/v1/campaigns/{campaign}/reports", body, {"Content-Type": "application/octet-stream"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def get(url, path):
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    connection.request("GET", path)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def frame_for(url, campaign, nonce, signature):
    """A report with this token, under the first question of the campaign: there is one group, so it is the token's."""
    (question,) = get(url, f"/v1/campaigns/{campaign}/waves/1")["questions"]
    name = hashlib.sha256(json.dumps(question, sort_keys=True, separators=(",", ":")).encode()).digest()
    payload = bytes((question["oracle"]["cells"] + 7) // 8)
    frame = hashlib.sha256(nonce).digest()[:16] + payload + nonce + signature
    return b"\x01" + bytes.fromhex(campaign) + name + frame


@pytest.mark.parametrize("tier", ["signed", "blind"])
def test_finding_14_a_token_of_one_campaign_is_refused_by_every_other(tmp_path, tier):
    """Two campaigns trust one issuer. Somebody who is enrolled in the first takes its token to the second, and back."""
    method = {"name": "flat", "choices": {"oracle": "oue"}}
    with running(tmp_path) as (server, operator, _):
        names = []
        for title in ("First", "Second"):
            who = {"title": title, "purpose": "p", "controller": "c", "contact": "x", "token": KEY.token_record(tier)}
            what = {"attributes": ["pay=integer,0,15"], "epsilon": "1", "method": method}
            draft = {**who, **what, "minimum": 1, "closing": {"kind": "manual"}}
            status, made = operator.call("POST", "/v1/campaigns", draft)
            assert status == 201, made
            operator.call("POST", f"/v1/campaigns/{made['campaign']}/open")
            names.append(made["campaign"])
        for own, other in (names, names[::-1]):
            nonce = hashlib.sha256(own.encode()).digest()
            message = hashlib.sha256(b"ahead-ldp token 2\n" + bytes.fromhex(own) + nonce).digest()
            bound, bare = (KEY.sign(KEY.number(text, "signed")) for text in (message, nonce))
            for campaign, signature in ((other, bound), (other, bare), (own, bare)):  # bare: on the nonce, as before
                answer = post(server.url, campaign, frame_for(server.url, campaign, nonce, signature))
                assert (answer["accepted"], answer["refused"][0]["reason"]) == (0, "token_invalid")
            assert post(server.url, own, frame_for(server.url, own, nonce, bound))["accepted"] == 1
