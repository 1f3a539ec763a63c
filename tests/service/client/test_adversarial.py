"""A server that cheats: every malformed, too fine, re-priced, renamed, cloned or repeated question is refused.

Refused means: neither consent nor the value was asked for, nothing was uploaded, nothing was charged, and what the
server could observe is the same for every value. Each attack is one entry; the same machinery accepts an honest server.
An attribute that the owner has not mapped to a field is refused after consent, for that is when it is mapped.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from ahead_ldp.device import LAWS
from ahead_ldp.device.canonical import canonical_bytes, parse_canonical
from ahead_ldp.device.entries import LedgerRefused
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.client import Answer, Client, OwnerPolicy, Status, Unreachable
from tests.service.client.fake import FakeServer, InEveryCampaign, make_campaign, spent

REFUSALS = (QuestionRefused, LedgerRefused, Unreachable)
MISFITS = (-1, 16, 10**40, -math.inf, math.nan, 7.5, True, "a canary", "", b"7", None, object())
VALUES = (*range(16), *MISFITS)
PAIRS = as_schema(["pay=integer,0,15", "age=integer,0,15", "town=codes,4"])
POLICY = OwnerPolicy("1", max_cells=64, fields=InEveryCampaign({"pay": "salary", "age": "age", "town": "town"}))


def never(offer):
    raise AssertionError("asked before the refusal")


def respond(server: FakeServer, ledger: Ledger, code: object, policy: OwnerPolicy = POLICY, **options: Any):
    mine = Client(server, ledger, policy, jitter_s=0, **options)
    return mine.answer(server.name, lambda offer: True, lambda offer: {"pay": code, "age": 1, "town": 1})


def attempt(
    server: FakeServer, ledger: Ledger, policy: OwnerPolicy = POLICY, consent: Any = never, **options: Any
) -> tuple[str, list[Any]]:
    """How a server is refused: the message, and what it saw."""
    before = (spent(ledger), ledger.entries())
    mine = Client(server, ledger, policy, jitter_s=0, **options)
    with pytest.raises(REFUSALS) as caught:
        mine.answer(server.name, consent, never)
    assert (spent(ledger), ledger.entries()) == before
    assert not any(method == "POST" for method, _, _ in server.log)
    return f"{type(caught.value).__name__}: {caught.value}", server.log


# Waves, changed on the way


def on_wave(edit: Callable[[dict[str, Any]], Any]) -> Callable[[str, bytes], bytes]:
    """Rewrite the wave's record; ``edit`` changes it in place or returns another."""

    def change(path: str, body: bytes) -> bytes:
        if "/waves/" not in path:
            return body
        record = parse_canonical(body)
        other = edit(record)
        made = record if other is None else other
        return made if isinstance(made, bytes) else canonical_bytes(made)

    return change


def on_question(**fields: Any) -> Callable[[str, bytes], bytes]:
    return on_wave(lambda wave: wave["questions"][0].update(fields))


def on_oracle(**fields: Any) -> Callable[[str, bytes], bytes]:
    return on_wave(lambda wave: wave["questions"][0]["oracle"].update(fields))


def on_partition(**fields: Any) -> Callable[[str, bytes], bytes]:
    return on_wave(lambda wave: wave["questions"][0].update(partition=fields))


def raw(make: Callable[[bytes], bytes]) -> Callable[[str, bytes], bytes]:
    return lambda path, body: make(body) if "/waves/" in path else body


def law(name: str, epsilon: str, cells: int) -> dict[str, Any]:
    return LAWS[name].make(epsilon, cells).record()


def finer(cells: int) -> Callable[[str, bytes], bytes]:
    """Everything consistent, but with more cells than codes: overlapping or empty ones."""
    cuts = {"form": "grid", "cuts": [list(range(1, cells))]}
    return on_question(partition=cuts, oracle=law("oue", "1", cells))


MALFORMED = {
    "empty": raw(lambda b: b""),
    "not JSON": raw(lambda b: b"{"),
    "a list": raw(lambda b: b"[]"),
    "not UTF-8": raw(lambda b: b[:-1] + b"\xff}"),
    "a space": raw(lambda b: b.replace(b":", b": ", 1)),
    "a line end": raw(lambda b: b + b"\n"),
    "keys not sorted": raw(lambda b: json.dumps(dict(reversed(json.loads(b).items())), separators=(",", ":")).encode()),
    "a key twice": raw(lambda b: b[:-1] + b',"version":1}'),
    "a float": raw(lambda b: b.replace(b'"version":1', b'"version":1.0', 1)),
    "an exponent": raw(lambda b: b.replace(b'"number":1', b'"number":1e0', 1)),
    "NaN": raw(lambda b: b.replace(b'"number":1', b'"number":NaN', 1)),
    "nested without end": raw(lambda b: b"[" * 100_000),
    "cut off": raw(lambda b: b[:-10]),
    "escaped otherwise": raw(lambda b: b.replace(b"wave", b"\\u0077ave", 1)),
    "another type": on_wave(lambda w: w.update(type="question")),
    "another version": on_wave(lambda w: w.update(version=2)),
    "true for 1": on_wave(lambda w: w.update(version=True)),
    "an unknown field": on_wave(lambda w: w.update(comment="please")),
    "a missing field": on_wave(lambda w: w.pop("number") and None),
    "of another campaign": on_wave(lambda w: w.update(campaign="ab" * 32)),
    "another number": on_wave(lambda w: w.update(number=2)),
    "no questions": on_wave(lambda w: w.update(questions=[])),
    "questions no list": on_wave(lambda w: w.update(questions={})),
    "a question that is a text": on_wave(lambda w: w.update(questions=["q"])),
    "the same group twice": on_wave(lambda w: w.update(questions=w["questions"] * 2)),
}

QUESTIONS = {
    "unknown group": on_question(group="targets"),
    "a group without a name": on_question(group=""),
    "another wave": on_question(wave=2),
    "question of another campaign": on_question(campaign="ab" * 32),
    "tallies that are none": on_question(tallies="none"),
    "a first wave after tallies": on_question(tallies="ab" * 32),
    "an unknown field": on_question(note="x"),
    "another version": on_question(version=2),
    # too fine, overlapping, not covering
    "more cells than codes": finer(17),
    "more cells than the policy allows": finer(65),
    "cuts that fall": on_question(partition={"form": "grid", "cuts": [[8, 4]]}, oracle=law("oue", "1", 3)),
    "a cut twice": on_question(partition={"form": "grid", "cuts": [[8, 8]]}, oracle=law("oue", "1", 3)),
    "a cut at the end": on_question(partition={"form": "grid", "cuts": [[16]]}, oracle=law("oue", "1", 2)),
    "a cut at zero": on_question(partition={"form": "grid", "cuts": [[0, 8]]}, oracle=law("oue", "1", 3)),
    "cuts of two attributes for one": on_question(
        partition={"form": "grid", "cuts": [[8], [8]]}, oracle=law("oue", "1", 4)
    ),
    "cuts that are texts": on_partition(form="grid", cuts=[["8"]]),
    "boxes": on_partition(form="boxes", boxes=[[0, 8], [4, 16]]),
    "flags that end early": on_partition(form="tree", fanout=2, flags="1"),
    "flags that go on": on_partition(form="tree", fanout=2, flags="1000"),
    "flags that cut a code": on_partition(form="tree", fanout=16, flags="1" + "1" * 16),
    "flags of other letters": on_partition(form="tree", fanout=2, flags="1x0"),
    "a fanout of one": on_partition(form="tree", fanout=1, flags="10"),
    "cells that are not the partition's": on_question(oracle=law("oue", "1", 3)),
    "one cell": on_question(partition={"form": "tree", "fanout": 2, "flags": "0"}),
    # re-priced
    "epsilon above the policy": on_question(epsilon="1.5", oracle=law("oue", "1.5", 2)),
    "epsilon above the policy, old oracle": on_question(epsilon="1.5"),
    "epsilon below the campaign's": on_question(epsilon="0.5", oracle=law("oue", "0.5", 2)),
    "epsilon spelled otherwise": on_question(epsilon="1.0"),
    "epsilon as a number": on_question(epsilon=1),
    "an oracle that gives more away": on_question(oracle=law("oue", "1.001", 2)),
    "an oracle that gives everything away": on_question(oracle=law("grr", "30", 2)),
    "an oracle without noise": on_question(oracle={**law("grr", "1", 2), "keep": str(2**32)}),
    "an oracle that keeps never": on_question(oracle={**law("grr", "1", 2), "keep": "0"}),
    "an unknown oracle": on_oracle(name="plain"),
    "an oracle of 16 bits": on_oracle(bits=16),
    "an oracle with a seed": on_oracle(seed="7"),
    # renamed
    "an attribute that is not in the schema": on_question(attributes=["health"]),
    "no attribute": on_question(attributes=[]),
    "an attribute twice": on_question(attributes=["pay", "pay"]),
    "an attribute that is no text": on_question(attributes=[["pay"]]),
}

STATES = {
    "no JSON": b"<html>",
    "a list": b"[]",
    "unknown state": b'{"state":"hungry","wave":1,"waves":[]}',
    "no waves": b'{"state":"open","wave":1}',
    "a wave that is not listed": b'{"state":"open","wave":1,"waves":[]}',
    "a wave listed twice": b'{"state":"open","wave":1,"waves":[%s,%s]}' % ((b'{"number":1,"state":"open"}',) * 2),
    "a wave by name": b'{"state":"open","wave":"1/../../x","waves":[{"number":"1/../../x","state":"open"}]}',
    "a negative wave": b'{"state":"open","wave":-1,"waves":[{"number":-1,"state":"open"}]}',
    "true for 1": b'{"state":"open","wave":true,"waves":[{"number":true,"state":"open"}]}',
}


def edited_campaign(**fields: Any) -> Callable[[str, bytes], bytes]:
    def change(path: str, body: bytes) -> bytes:
        if path.count("/") != 3:
            return body
        return canonical_bytes({**parse_canonical(body), **fields})

    return change


CAMPAIGNS = {
    "another title": edited_campaign(title="Weather"),
    "a larger epsilon": edited_campaign(epsilon="8"),
    "a lower minimum": edited_campaign(minimum=1),
    "another enrolment": edited_campaign(enrolment="panel"),
    "another day": edited_campaign(created="2026-01-02"),
    "another schema": edited_campaign(schema=as_schema("pay=integer,0,31").record()),
    "another key": edited_campaign(token={"tier": "signed", "n": "f" * 511 + "1", "e": 65537}),
    "longer retention": edited_campaign(retention_days=36_500),
    "a space at the end": lambda path, body: body + b" " if path.count("/") == 3 else body,
    "a page": lambda path, body: b"<html></html>" if path.count("/") == 3 else body,
}


ATTACKS = {
    **{f"malformed: {name}": change for name, change in MALFORMED.items()},
    **{f"question: {name}": change for name, change in QUESTIONS.items()},
    **{
        f"state: {name}": (lambda path, body, text=text: text if path.endswith("/state") else body)
        for name, text in STATES.items()
    },
    **{f"campaign: {name}": change for name, change in CAMPAIGNS.items()},
}


@pytest.mark.parametrize("change", ATTACKS.values(), ids=ATTACKS)
def test_attack_is_refused_alike_for_every_value(change):
    """The value is never asked for, so nothing can depend on it; two devices show the server the same."""
    seen = []
    for _ in range(2):
        ledger = Ledger(None)
        seen.append(attempt(FakeServer(make_campaign(), change=change), ledger))
        ledger.close()
    assert seen[0] == seen[1]


ONLY_FIRST = ("another number", "an exponent", "NaN", "another wave", "a first wave after tallies")
LATER = {
    **{name: change for name, change in (MALFORMED | QUESTIONS).items() if name not in ONLY_FIRST},
    "a number with an exponent": raw(lambda b: b.replace(b'"number":2', b'"number":2e0', 1)),
    "the first wave again": on_wave(lambda w: w.update(number=1)),
    "a question of the first wave": on_question(wave=1),
    "a wave that is still to come": on_question(wave=3),
}


@pytest.mark.parametrize("change", LATER.values(), ids=LATER)
def test_attack_in_a_later_wave_is_refused_too(change):
    """A server may behave until somebody comes for the second wave."""
    server, ledger = FakeServer(make_campaign()), Ledger(None)
    server.close()
    server.change = change
    attempt(server, ledger)
    server.change = lambda path, body: body
    server.log.clear()
    assert respond(server, ledger, 5).status == Status.ACKNOWLEDGED
    ledger.close()


@pytest.mark.parametrize("code", VALUES)
def test_the_same_machinery_accepts_an_honest_server(code):
    server, ledger = FakeServer(make_campaign()), Ledger(None)
    assert respond(server, ledger, code).status == Status.ACKNOWLEDGED
    ledger.close()


def test_what_an_honest_server_sees_has_one_shape_for_every_value():
    """Same requests in the same order, bodies of the same length; no header and no path holds anything of the value."""
    shapes = set()
    for code in VALUES:
        server, ledger = FakeServer(make_campaign()), Ledger(None)
        respond(server, ledger, code)
        shapes.add(tuple((method, path, len(body or b"")) for method, path, body in server.log))
        ledger.close()
    assert len(shapes) == 1


METHODS = ("ahead", "flat", "hio", "dht", "sw")


@pytest.mark.parametrize("method", METHODS)
def test_with_the_same_chance_only_the_payload_depends_on_the_value(method, monkeypatch):
    """Record and replay: every value meets the same random bytes, and everything but the payload is the same.

    The same amounts of chance are asked for in the same order, the ledger executes the same statements, the same
    requests are sent, and their bodies differ in the payload alone.
    """
    seen, payloads = [], set()
    for code in VALUES:
        drawn, statements = [], []
        server, ledger = FakeServer(make_campaign(method=method)), Ledger(None)
        ledger._database.set_trace_callback(lambda text, s=statements: s.append(re.sub("(?i)x'[0-9a-f]*'", "X", text)))

        def fixed(size: int, drawn: list[int] = drawn) -> bytes:
            drawn.append(size)
            return hashlib.shake_256(f"chance a {len(drawn)}".encode()).digest(size)

        with monkeypatch.context() as patched:
            patched.setattr("os.urandom", fixed)
            patched.setattr("secrets.randbelow", lambda n: 0)
            respond(server, ledger, code, clock=lambda: 0.0)
        ((_, _, body),) = [entry for entry in server.log if entry[0] == "POST"]
        payloads.add(body[81:])
        shapes = [(verb, path, (data or b"")[:81], len(data or b"")) for verb, path, data in server.log]
        seen.append((drawn, statements, shapes))
        ledger.close()
    assert all(other == seen[0] for other in seen[1:])
    assert len(payloads) > 1


def test_two_campaigns_see_nothing_in_common():
    ledger, sent = Ledger(None), []
    policy = OwnerPolicy("1", fields=POLICY.fields, limits={"salary": 9})
    for day in (1, 2):
        server = FakeServer(make_campaign(created=f"2026-04-0{day}", method="flat"))
        respond(server, ledger, 5, policy)
        sent += server.bodies
    assert sent[0][:16] != sent[1][:16]
    first, second = (client_nonce(ledger, entry.campaign) for entry in ledger.entries())
    assert first != second
    ledger.close()


def client_nonce(ledger: Ledger, campaign: str) -> bytes:
    return ledger.token(campaign).nonce


# Several questions in one wave: what one group would refuse, every group refuses.


def pairs_campaign(**change: Any):
    return make_campaign(schema=PAIRS, method="lle", **change)


PAIR_ATTACKS = {
    "order": on_wave(lambda w: w["questions"].reverse()),
    "the last question too fine": on_wave(lambda w: w["questions"][-1]["oracle"].update(law("oue", "1", 99))),
    "the last question re-priced": on_wave(lambda w: w["questions"][-1].update(epsilon="0.9")),
    "questions after different tallies": on_wave(lambda w: w["questions"][-1].update(tallies="ab" * 32)),
    "one question twice": on_wave(lambda w: w["questions"].append(w["questions"][-1])),
    "groups renamed into each other": on_wave(lambda w: w["questions"][0].update(group=w["questions"][1]["group"])),
}


@pytest.mark.parametrize("change", PAIR_ATTACKS.values(), ids=PAIR_ATTACKS)
def test_attack_on_any_group_is_refused_by_all(change):
    for _ in range(8):  # whatever group the device would have drawn
        ledger = Ledger(None)
        attempt(FakeServer(pairs_campaign(), change=change), ledger)
        ledger.close()


def test_a_pair_charges_both_fields_and_a_spent_one_blocks():
    server, ledger = FakeServer(pairs_campaign()), Ledger(None)
    assert respond(server, ledger, 3).status == Status.ACKNOWLEDGED
    charged = set(spent(ledger))
    assert len(charged) == 2
    assert len([s for s in spent(ledger).values() if len(s.charges) == 1 and s.spent == 1]) == 2
    attribute = {"salary": "pay", "age": "age", "town": "town"}[sorted(charged)[0]]
    clone = FakeServer(make_campaign(schema=as_schema(f"{attribute}=integer,0,15")))
    assert "reported before" in attempt(clone, ledger)[0]
    ledger.close()


# The owner's policy


@pytest.mark.parametrize(
    ("policy", "campaign"),
    [
        (OwnerPolicy("0.5", fields=POLICY.fields), {}),
        (OwnerPolicy("1", max_cells=1, fields=POLICY.fields), {}),
        (OwnerPolicy("1", least_group=11, fields=POLICY.fields), {}),
        (OwnerPolicy("1", fields=POLICY.fields, limits={"salary": "0.99"}), {}),
        (POLICY, {"epsilon": "1.01"}),
        (POLICY, {"minimum": 9}),
    ],
    ids=["epsilon", "cells", "group", "lifetime", "dearer", "smaller groups"],
)
def test_what_the_owner_does_not_allow_is_refused(policy, campaign):
    ledger = Ledger(None)
    attempt(FakeServer(make_campaign(**campaign)), ledger, policy)
    ledger.close()


@pytest.mark.parametrize(
    ("policy", "campaign"),
    [
        (OwnerPolicy("1", fields=InEveryCampaign({})), {}),
        (OwnerPolicy("1", fields=InEveryCampaign({"wage": "salary"})), {}),
        (POLICY, {"schema": as_schema("health=integer,0,15")}),
    ],
    ids=["no field", "other field", "renamed"],
)
def test_an_attribute_that_is_no_field_of_the_owner_is_refused_after_consent_and_before_the_value(policy, campaign):
    ledger, asked = Ledger(None), []
    refusal, _ = attempt(FakeServer(make_campaign(**campaign)), ledger, policy, lambda offer: asked.append(1) or True)
    assert "which field" in refusal
    assert asked == [1]
    ledger.close()


@pytest.mark.parametrize("epsilon", ["1.5", "1.000001", "0.999999"])
def test_another_price_than_the_campaigns_is_refused_even_within_the_policy(epsilon):
    """The owner would pay 2, the campaign promised 1: a question at any other price is not the campaign's."""
    policy, ledger = OwnerPolicy("2", fields=POLICY.fields), Ledger(None)
    change = on_question(epsilon=epsilon, oracle=law("oue", epsilon, 2))
    assert "the campaign's epsilon" in attempt(FakeServer(make_campaign(), change=change), ledger, policy)[0]
    ledger.close()


def test_one_attribute_of_the_schema_that_the_owner_does_not_know_blocks_every_group():
    """Else a device would answer or not by its group, and a server could see who has which field."""
    policy = OwnerPolicy("1", max_cells=64, fields=InEveryCampaign({"pay": "salary", "age": "age"}))
    for _ in range(8):
        ledger = Ledger(None)
        assert "town" in attempt(FakeServer(pairs_campaign()), ledger, policy, lambda offer: True)[0]
        ledger.close()


class Swapped:
    """A whole other campaign, consistent in itself, under the name of the pinned one."""

    def __init__(self, name: str, inner: FakeServer) -> None:
        self.name, self.inner, self.log = name, inner, inner.log

    def request(self, method, path, body=None, content_type=""):
        return self.inner.request(method, path.replace(self.name, self.inner.name), body, content_type)


@pytest.mark.parametrize(
    "change", [{"title": "Weather"}, {"minimum": 20}, {"created": "2026-06-06"}, {"epsilon": "0.5"}]
)
def test_another_campaign_under_the_pinned_name_is_refused(change):
    """Even one with better terms, which the owner's policy would take: it is not what the person was invited to."""
    ledger, other = Ledger(None), FakeServer(make_campaign(**change))
    assert "pinned" in attempt(Swapped(make_campaign().digest, other), ledger)[0]
    assert respond(other, ledger, 5).status == Status.ACKNOWLEDGED  # under its own name it is answered
    ledger.close()


# Clones, repeats, other names


def test_a_clone_of_a_campaign_is_refused():
    ledger = Ledger(None)
    respond(FakeServer(make_campaign()), ledger, 5)
    clone = FakeServer(make_campaign(created="2026-02-01"))
    assert "reported before" in attempt(clone, ledger)[0]
    ledger.close()


def test_the_same_question_under_another_name_is_refused():
    """The owner says that wage is salary too; a server that renames gains nothing."""
    ledger = Ledger(None)
    policy = OwnerPolicy("1", fields=InEveryCampaign({"pay": "salary", "wage": "salary"}))
    respond(FakeServer(make_campaign()), ledger, 5, policy)
    attempt(FakeServer(make_campaign(schema=as_schema("wage=integer,0,15"))), ledger, policy)
    ledger.close()


def test_one_field_under_two_names_in_one_question_is_charged_and_blocks_everything_else():
    """A pair of a field with itself is still one report about it, and the last one."""
    policy = OwnerPolicy("1", max_cells=64, fields=InEveryCampaign({"pay": "salary", "wage": "salary", "town": "town"}))
    both = as_schema(["pay=integer,0,15", "wage=integer,0,15", "town=codes,4"])
    for _ in range(8):  # whatever pair the device draws, salary is in it
        ledger = Ledger(None)
        server = FakeServer(make_campaign(schema=both, method="lle"))
        mine = Client(server, ledger, policy, jitter_s=0)
        outcome = mine.answer(server.name, lambda offer: True, lambda offer: {"pay": 3, "wage": 3, "town": 1})
        assert outcome.status == Status.ACKNOWLEDGED
        assert (len(spent(ledger)["salary"].charges), spent(ledger)["salary"].spent) == (1, 1)
        attempt(FakeServer(make_campaign()), ledger, policy)
        attempt(FakeServer(make_campaign(schema=as_schema("wage=integer,0,15"))), ledger, policy)
        ledger.close()


def test_a_lifetime_limit_allows_so_many_and_no_more():
    ledger = Ledger(None)
    policy = OwnerPolicy("1", fields=POLICY.fields, limits={"salary": "2.5"})
    for day in (1, 2):
        assert respond(FakeServer(make_campaign(created=f"2026-03-0{day}")), ledger, 5, policy).status == "acknowledged"
    assert "lifetime limit" in attempt(FakeServer(make_campaign(created="2026-03-03")), ledger, policy)[0]
    half = FakeServer(make_campaign(created="2026-03-04", epsilon="0.5"))
    assert respond(half, ledger, 5, policy).status == Status.ACKNOWLEDGED
    assert spent(ledger)["salary"].spent == policy.exact_limits().fields["salary"]
    ledger.close()


def test_a_repeated_question_gets_no_second_answer():
    """The next waves, the same wave again, an answer that says no: never a second draw."""
    server, ledger = FakeServer(make_campaign()), Ledger(None)
    respond(server, ledger, 5)
    mine = Client(server, ledger, POLICY, jitter_s=0)
    for _ in range(3):
        assert mine.answer(server.name, never, never).status == Status.ACKNOWLEDGED
        server.close() if server.session.is_open else None
    assert len(server.bodies) == 1
    ledger.close()


@pytest.mark.parametrize("reason", ["report_replayed", "padding_not_zero", "wave_closed", "please_draw_again", "pay=5"])
def test_a_refusal_by_the_server_never_brings_new_bytes(reason):
    def change(path: str, body: bytes) -> bytes:
        said = {"accepted": 0, "refused": [{"index": 0, "reason": reason}]}
        return json.dumps(said).encode() if path.endswith("/reports") else body

    server, ledger = FakeServer(make_campaign(), change=change), Ledger(None)
    outcome = respond(server, ledger, 5)
    assert outcome.status in (Status.LATE, Status.REJECTED)
    assert "pay=5" not in outcome.detail
    mine = Client(server, ledger, POLICY, jitter_s=0)
    mine.answer(server.name, never, never)
    mine.flush()
    assert len(server.bodies) == 1
    ledger.close()


@pytest.mark.parametrize(
    "answer",
    [b"", b"[]", b"{}", b'{"accepted":2,"refused":[]}', b'{"accepted":true}', b'{"accepted":0,"refused":[]}', b"\xff"],
)
def test_an_answer_that_says_nothing_leaves_the_same_bytes_in_the_outbox(answer):
    server, ledger = FakeServer(make_campaign()), Ledger(None)
    server.change = lambda path, body: answer if path.endswith("/reports") else body
    assert respond(server, ledger, 5).status == Status.QUEUED
    server.change = lambda path, body: body
    mine = Client(server, ledger, POLICY, jitter_s=0)
    assert [o.status for o in mine.flush()] == [Status.ACKNOWLEDGED]
    assert len(set(server.bodies)) == 1
    ledger.close()


# Two views


def other_questions(wave: dict[str, Any]) -> None:
    """A legal wave, but not the one that others see."""
    for question in wave["questions"]:
        question.update(partition={"form": "grid", "cuts": [[3]]}, oracle=law("oue", "1", 2))


def test_a_view_that_differs_from_an_earlier_one_is_refused():
    server, ledger = FakeServer(make_campaign()), Ledger(None)
    mine = Client(server, ledger, POLICY, jitter_s=0)
    assert mine.answer(server.name, lambda offer: False, never).status == Status.DECLINED  # has seen the wave
    server.change = on_wave(other_questions)
    assert "other questions before" in attempt(server, ledger)[0]
    server.change = lambda path, body: body
    assert respond(server, ledger, 5).status == Status.ACKNOWLEDGED
    ledger.close()


def test_the_other_view_alone_would_pass():
    """So the refusal above is by memory, and not because the questions are bad."""
    server, ledger = FakeServer(make_campaign(), change=on_wave(other_questions)), Ledger(None)
    mine = Client(server, ledger, POLICY, jitter_s=0)
    assert mine.answer(server.name, lambda offer: False, never).status == Status.DECLINED
    ledger.close()


class Broken:
    def request(self, method, path, body=None, content_type=""):
        raise Unreachable("down")


class Redirecting:
    def __init__(self, status):
        self.status, self.log, self.name = status, [], make_campaign().digest

    def request(self, method, path, body=None, content_type=""):
        self.log.append((method, path, body))
        return Answer(self.status, make_campaign().encode(), {"location": "https://elsewhere.example"})


def test_a_mirror_that_shows_something_else_or_nothing_blocks():
    campaign = make_campaign()
    mirrors = {
        "same": (FakeServer(campaign), True),
        "other questions": (FakeServer(campaign, change=on_wave(other_questions)), False),
        "other campaign": (FakeServer(campaign, change=edited_campaign(title="x")), False),
        "down": (Broken(), False),
        "redirects": (Redirecting(302), False),
    }
    for name, (mirror, good) in mirrors.items():
        ledger = Ledger(None)
        if good:
            assert respond(FakeServer(campaign), ledger, 5, mirror=mirror).status == Status.ACKNOWLEDGED, name
        else:
            assert "mirror" in attempt(FakeServer(campaign), ledger, mirror=mirror)[0], name
        ledger.close()


@pytest.mark.parametrize("status", [204, 301, 302, 307, 400, 401, 404, 418, 500, 503])
def test_any_other_status_ends_before_anything_is_asked(status):
    ledger = Ledger(None)
    attempt(Redirecting(status), ledger)
    ledger.close()


@pytest.mark.parametrize("digest", ["", "x", "AB" * 32, "ab" * 31, "../" * 20, 7])
def test_a_pin_that_is_no_digest_is_refused_without_a_request(digest):
    server, ledger = FakeServer(make_campaign()), Ledger(None)
    with pytest.raises(ValueError, match="64 lower-case"):
        Client(server, ledger, POLICY).answer(digest, never, never)
    assert server.log == []
    ledger.close()
