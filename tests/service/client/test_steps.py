"""The order of steps, driven from tests/vectors/steps.json as the TypeScript client is."""

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest

from ahead_ldp.device.budget import Limits
from ahead_ldp.device.entries import Asker, LedgerRefused, Place
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.refusals import QuestionRefused
from ahead_ldp.service.client import Answer, Client, OwnerPolicy

CASES = json.loads((Path(__file__).parents[2] / "vectors" / "steps.json").read_text("utf-8"))["cases"]
STATE = {"state": "open", "wave": 1, "waves": [{"number": 1, "state": "open", "opened_at": 0, "closes_at": None}]}


class Recorder:
    """A server, an owner and a ledger that write down what is asked of them, and fail on demand."""

    def __init__(self, case):
        self.case, self.steps, self.fails = case, [], case["fails"]
        self.ledger = RecordedLedger(self)
        for charge in case["spent"]:
            self.charge(charge)
        if case["opted_out"]:
            self.ledger.opt_out()
        limits = {"limits": case["limits"], "lifetime": case["lifetime"]}
        policy = OwnerPolicy(case["max_epsilon"], fields=RecordedFields(self), **limits)
        self.client = Client(self, self.ledger, policy, jitter_s=0)

    def step(self, name):
        self.steps.append(name)
        if self.fails == name:
            raise LedgerRefused("it fails")

    def charge(self, charge):
        epsilon = Fraction(charge["epsilon"])
        place, asker = Place(1, "a", "0" * 64), Asker(charge["campaign"], "title", "controller")
        Ledger.reserve(self.ledger, asker, place, [charge["field"]], epsilon, Limits())

    def request(self, method, path, body=None, content_type=""):
        if method == "POST":
            self.step("send")
            return Answer(200, b'{"accepted":1,"refused":[]}')
        if path.endswith("/state"):
            return Answer(200, json.dumps(STATE).encode())
        if path.endswith("/waves/1"):
            self.step("check")
            return Answer(200, bytes.fromhex(self.case["wave"]))
        return Answer(200, bytes.fromhex(self.case["campaign"]))

    def consent(self, offer):
        self.step("consent")
        for charge in self.case["spent_while_asked"]:
            self.charge(charge)
        return self.case["consent"]

    def fields(self, offer, names):
        assert set(names) >= set(self.case["told"])
        return self.case["told"]

    def values(self, offer):
        self.step("read")
        return self.case["values"]

    def answer(self, monkeypatch):
        """The steps taken and how they ended."""
        self.steps.clear()
        urandom = os.urandom

        def chance(size):
            if self.steps and self.steps[-1] == "read":
                self.step("draw")
            return urandom(size)

        with monkeypatch.context() as patched:
            patched.setattr("os.urandom", chance)
            try:
                fields = None if self.case["told"] is None else self.fields
                outcome = self.client.answer(self.case["digest"], self.consent, self.values, fields)
            except (QuestionRefused, LedgerRefused):
                return {"steps": list(self.steps), "outcome": "refused"}, []
        return {"steps": list(self.steps), "outcome": outcome.status.value}, list(outcome.replaced)


class RecordedLedger(Ledger):
    def __init__(self, recorder):
        super().__init__(None)
        self.recorder = recorder

    def reserve(self, *arguments):
        self.recorder.step("reserve")
        super().reserve(*arguments)

    def keep_drawn(self, *arguments):
        self.recorder.step("commit")
        super().keep_drawn(*arguments)


class RecordedFields(dict):
    """The owner's fields; the first look after consent is the step."""

    def __init__(self, recorder):
        super().__init__({recorder.case["digest"]: recorder.case["fields"]})
        self.recorder = recorder

    def get(self, digest, default=None):
        if self.recorder.steps[-1:] == ["consent"]:
            self.recorder.step("map")
        return super().get(digest, default)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_steps(case, monkeypatch):
    device = Recorder(case)
    taken, replaced = device.answer(monkeypatch)
    assert taken == {"steps": case["steps"], "outcome": case["outcome"]}
    assert replaced == case["replaced"]
    entry = device.ledger.entry(case["digest"])
    assert (None if entry is None else entry.state.value) == case["state"]
    charged = {charge.field for charge in device.ledger.charges()}
    assert sorted(charged, key=str) == sorted(case["charged"], key=str)
    device.fails = None
    assert device.answer(monkeypatch)[0] == case["again"]
    device.ledger.close()


def test_every_step_is_the_last_one_of_some_case():
    assert {case["steps"][-1] for case in CASES} == set(CASES[0]["steps"])
