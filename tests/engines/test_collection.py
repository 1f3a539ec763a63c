"""In-process collection: every report crosses the wire form, every person is asked once, no value before its time."""

from collections import Counter

import numpy as np
import pytest

from ahead_ldp.device import Policy, Reason, ReportRejected, canonical_bytes, check_question
from ahead_ldp.engines import collection
from ahead_ldp.engines.collection import answer_batch, count_batch, decode_reports, draw_groups, run_collection
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.oracles import ORACLES, make_oracle
from ahead_ldp.protocol.mechanism import Group
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.workloads import Workload, prefix_workload
from tests.support import chi_square, make_mechanism, schema_of, takes

every_mechanism = pytest.mark.parametrize("kind", MECHANISMS.values(), ids=MECHANISMS)


class Wire:
    """What went over the wire: batches, and the reports in them."""

    def __init__(self, monkeypatch):
        self.sent, self.received, self.ids = [], [], Counter()
        encode, split = collection.encode_batch, collection.split_batch

        def sending(header, reports):
            data = encode(header, reports)
            self.sent.append(data)
            return data

        def receiving(data, header, law):
            ids, payloads = split(data, header, law)
            assert len(payloads) == len(ids) * law.payload_length
            self.received.append(data)
            self.ids.update(ids)
            return ids, payloads

        monkeypatch.setattr(collection, "encode_batch", sending)
        monkeypatch.setattr(collection, "split_batch", receiving)


class Person(dict):
    """A person who counts how often the value is read, and minds being asked before the question is open."""

    def __init__(self, open_now, **values):
        super().__init__(values)
        self.open_now, self.reads = open_now, Counter()

    def get(self, name, default=None):
        assert self.open_now(), "the value was read before the person's question was open"
        self.reads[name] += 1
        return super().get(name, default)

    def __getitem__(self, name):
        raise AssertionError("a device reads what is asked, by get")

    __iter__ = keys = items = values = __getitem__


@every_mechanism
def test_every_report_crosses_the_wire_and_everybody_is_asked_once(kind, monkeypatch):
    wire = Wire(monkeypatch)
    schema = schema_of(9, 4) if takes(kind, schema_of(9, 4)) else schema_of(9)
    answering = []
    answer = collection.answer_batch

    def watched(question, people):
        answering.append(question)
        data = answer(question, people)
        answering.pop()
        return data

    monkeypatch.setattr(collection, "answer_batch", watched)
    people = [Person(lambda: bool(answering), x0=i % 9, x1=i % 4) for i in range(1300)]
    progress = []
    collected = run_collection(make_mechanism(kind, users=1300), schema, people, lambda *now: progress.append(now))
    asked = 0 if kind.name == "uni" else 1300
    assert collected.provenance.people == asked
    assert wire.sent == wire.received
    assert sum(wire.ids.values()) == len(wire.ids) == asked, "a report id twice, or a report that was not sent"
    assert sum(t.n for told in collected.history for t in told.values()) == asked
    assert all(max(p.reads.values(), default=0) <= 1 for p in people), "somebody was asked twice"
    assert sum(bool(p.reads) for p in people) == asked
    assert progress == sorted(progress)
    assert not asked or progress[-1] == (asked, 1300)
    values = collected.estimate.answer(prefix_workload(schema)).values
    assert np.isfinite(values).all()
    assert not collected.is_open


def test_attributes_that_are_not_asked_are_not_read():
    schema = schema_of(4, 4)
    question = next(Flat(epsilon=1).run(schema_of(4)))["1"]
    session = Session(Flat(epsilon=1), schema_of(4))
    record = session.question_records()["1"]
    assert question.attributes == (0,)
    device = check_question(canonical_bytes(record), schema, session.campaign, Policy(1))
    person = Person(lambda: True, x0=1, x1=2)
    answer_batch(device, [person])
    assert person.reads == {"x0": 1}


# Groups.


def test_groups_are_drawn_by_share():
    """From the operating system: one false alarm in 10^7. Shares of 1, 2.9 and 2.1 add 83 to chi-square."""
    members = draw_groups((Group("a", 1), Group("b", 3), Group("c", 2)), 60_000)
    everybody = sorted(i for group in members.values() for i in group)
    assert everybody == list(range(60_000))
    sizes = np.array([len(members[g]) for g in "abc"])
    assert chi_square(sizes, np.array([1, 3, 2]) / 6) < 5.5


def test_groups_of_people_follow_one_another_in_no_order():
    members = draw_groups((Group("a"), Group("b")), 4000)
    first = np.zeros(4000, bool)
    first[members["a"]] = True
    changes = int((first[1:] != first[:-1]).sum())
    assert abs(changes - 3999 / 2) < 5.5 * np.sqrt(3999) / 2
    assert draw_groups((), 10) == {}


def test_nobody_is_refused():
    with pytest.raises(ValueError, match="expected at least one person, got none"):
        run_collection(Flat(epsilon=1), schema_of(4), [])


# What a collector refuses.


@pytest.fixture(params=ORACLES)
def batch(request):
    """An open question, its oracle and a batch of five reports."""
    oracle = make_oracle(request.param, 1, 11)
    session = Session(Flat(epsilon=1), schema_of(11))
    record = {**session.question_records()["1"], "oracle": oracle.law.record()}
    question = check_question(canonical_bytes(record), schema_of(11), session.campaign, Policy(1))
    return question, oracle, answer_batch(question, [{"x0": i} for i in range(5)])


def refused(batch, data) -> Reason:
    question, oracle, _ = batch
    with pytest.raises(ReportRejected) as caught:
        count_batch(data, question.header, oracle)
    return caught.value.reason


def test_a_whole_batch_is_counted(batch):
    question, oracle, data = batch
    tally = count_batch(data, question.header, oracle)
    ids, reports = decode_reports(data, question.header, oracle)
    assert tally == oracle.tally(reports)
    assert tally.n == len(set(ids)) == 5


def test_batches_that_do_not_fit_are_refused_with_a_reason(batch):
    question, oracle, data = batch
    assert refused(batch, data[:-1]) is Reason.TRUNCATED
    assert refused(batch, data + b"\0") is Reason.TRUNCATED
    assert refused(batch, data[:65]) is Reason.TRUNCATED
    assert refused(batch, data[:64]) is Reason.TRUNCATED
    assert refused(batch, b"") is Reason.TRUNCATED
    assert refused(batch, b"\2" + data[1:]) is Reason.VERSION
    assert refused(batch, data[:1] + bytes([data[1] ^ 1]) + data[2:]) is Reason.CAMPAIGN
    assert refused(batch, data[:64] + bytes([data[64] ^ 1]) + data[65:]) is Reason.QUESTION
    bad = data[: -oracle.report_bytes] + b"\xff" * oracle.report_bytes
    assert refused(batch, bad) in (Reason.RANGE, Reason.PADDING, Reason.WEIGHT)
    assert question.header.campaign


def test_of_several_reports_with_one_id_the_first_counts(batch):
    question, oracle, data = batch
    frame = 16 + oracle.report_bytes
    first, second = data[65 : 65 + frame], data[65 + frame : 65 + 2 * frame]
    other = first[:16] + second[16:]
    for copies in (first, other, second + other + first):
        ids, reports = decode_reports(data + copies, question.header, oracle)
        assert len(ids) == 5
        assert reports.tobytes() == decode_reports(data, question.header, oracle)[1].tobytes()


def test_every_byte_of_a_header_counts(batch):
    _, _, data = batch
    for at in range(65):
        for flip in (1, 0x80):
            reason = refused(batch, data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :])
            assert reason in (Reason.VERSION, Reason.CAMPAIGN, Reason.QUESTION)


def test_a_value_outside_is_refused_and_not_shown():
    with pytest.raises(ValueError, match="x0 is outside the declared range") as caught:
        run_collection(Flat(epsilon=1), schema_of(4), [{"x0": 123456}])
    assert "123456" not in str(caught.value)


# The law.


def test_collected_answers_are_as_far_off_as_they_say():
    """60 collections of 200 people, from the operating system's randomness: the mean square of their scores is 1.

    Chi-square on 60 degrees leaves (0.3, 2.4) times 60 once in 10^7 runs. Reports without noise give 0; twice the
    noise gives 4, and passes in one run of 170.
    """
    workload = Workload.from_codes([6], [[0, 2]])
    people = [{"x0": i % 6} for i in range(200)]
    truth = sum(p["x0"] <= 2 for p in people) / 200
    scores = []
    for _ in range(60):
        found = run_collection(Flat(epsilon=1, non_negative=False), schema_of(6), people).estimate.answer(workload)
        scores.append((found.values[0] - truth) / found.standard_error[0])
    square = float(np.mean(np.square(scores)))
    assert abs(np.mean(scores)) < 5.5 / np.sqrt(60)
    assert 0.3 < square < 2.4
