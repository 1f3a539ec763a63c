"""A campaign in batch: from the first question to the estimate, through crashes, late files and damage."""

import json
from pathlib import Path

import numpy as np
import pytest

from ahead_ldp.engines import archive, campaigns
from ahead_ldp.engines.archive import load
from ahead_ldp.engines.campaigns import (
    advance,
    all_questions,
    open_campaign,
    open_questions,
    read_estimate,
    start_campaign,
)
from ahead_ldp.engines.collection import draw_groups
from ahead_ldp.engines.local import LOCAL
from ahead_ldp.engines.runs import collect_run, read_run
from ahead_ldp.engines.writer import ReportWriter
from ahead_ldp.mechanisms import MECHANISMS, UnknownVersion
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.ahead.uniform import Uniform
from ahead_ldp.protocol.session import ReplayMismatch
from ahead_ldp.schema.workloads import point_workload
from tests.support import make_mechanism, schema_of

SCHEMA = schema_of(8)
CODES = np.random.default_rng(3).integers(0, 4, 900)[:, None]


def send(root: Path, members, codes=CODES, name=""):
    """The reports of the open wave's groups, into the campaign's directory."""
    session = open_campaign(root)
    rng = np.random.default_rng([7, session.number])
    with ReportWriter(root / "reports", name=name) as writer:
        for group, record in session.question_records().items():
            question, mine = session.wave[group], codes[members[group]]
            payloads = question.oracle.perturb(question.partition.locate(mine[:, list(question.attributes)]), rng)
            writer.add(record, rng.integers(0, 256, (len(mine), 16), dtype=np.uint8), payloads)


@pytest.fixture
def started(tmp_path):
    mechanism = AHEAD(epsilon=2.0)
    start_campaign(mechanism, SCHEMA, tmp_path)
    return tmp_path, draw_groups(mechanism.groups(SCHEMA), len(CODES))


@pytest.mark.parametrize("kind", [k for k in MECHANISMS.values() if k is not Uniform], ids=lambda k: k.name)
def test_every_method_runs_in_batch(tmp_path, kind):
    schema = schema_of(4, 4) if kind.most_attributes != 1 else schema_of(8)
    mechanism = make_mechanism(kind)
    start_campaign(mechanism, schema, tmp_path)
    codes = np.random.default_rng(3).integers(0, 4, (900, len(schema.attributes)))
    members, waves = draw_groups(mechanism.groups(schema), len(codes)), 0
    while open_campaign(tmp_path).is_open:
        send(tmp_path, members, codes)
        advance(tmp_path, allow_empty=True)
        waves += 1
    assert waves
    estimate, told, finished = read_estimate(tmp_path)
    assert (told, finished, estimate.provenance.people) == (waves, True, 900)
    np.testing.assert_array_equal(read_run(tmp_path, recount=True).fingerprint(), estimate.fingerprint())


def test_a_wave_is_closed_with_the_files_that_are_there(started):
    root, members = started
    assert [q.wave for q in all_questions(root).values()] == [1]
    send(root, members)
    closed = advance(root)
    assert (closed.wave, closed.last) == (1, False)
    frozen = json.loads((root / "frozen/1.json").read_text())
    assert [(x["name"], x["rows"]) for x in frozen["files"]] == [
        ("wave=1/group=1/part-00000.parquet", len(members["1"]))
    ]
    assert json.loads((root / "tallies/1/1.json").read_text())["n"] == len(members["1"])
    assert sorted(p.name for p in (root / "questions").iterdir()) == ["1", "2"]
    estimate, waves, finished = read_estimate(root)
    assert (waves, finished) == (1, False)
    assert estimate.provenance.people == len(members["1"])
    assert not (root / "estimate.json").exists()


def test_reports_that_come_late_do_not_count(started):
    root, members = started
    session = open_campaign(root)
    (record,) = session.question_records().values()
    send(root, members)
    advance(root)
    before = (root / "tallies/1/1.json").read_bytes()
    with ReportWriter(root / "reports", name="late") as writer:
        writer.add(
            record,
            np.ones((1, 16), np.uint8),
            session.wave["1"].oracle.perturb(np.array([0]), np.random.default_rng(1)),
        )
    send(root, members)
    assert advance(root).wave == 2
    assert (root / "tallies/1/1.json").read_bytes() == before


@pytest.mark.parametrize("at", range(6))
def test_a_crash_at_any_write_changes_nothing(started, monkeypatch, at):
    root, members = started
    send(root, members)
    writes = 0

    def crashing(path, record):
        nonlocal writes
        writes += 1
        if writes == at + 1:
            raise KeyboardInterrupt
        original(path, record)

    original = campaigns.write_record
    with monkeypatch.context() as patch:
        for module in (campaigns, archive):
            patch.setattr(module, "write_record", crashing)
        try:
            advance(root)
        except KeyboardInterrupt:
            frozen = (root / "frozen/1.json").exists()
            if frozen:  # what comes now is too late
                session = open_campaign(root)
                if session.number == 1:
                    (record,) = session.question_records().values()
                    payload = session.wave["1"].oracle.perturb(np.array([0]), np.random.default_rng(1))
                    with ReportWriter(root / "reports", name="late") as writer:
                        writer.add(record, np.ones((1, 16), np.uint8), payload)
    session = open_campaign(root)
    if session.number == 1:
        advance(root)
    read_estimate(root)
    assert open_campaign(root).number == 2
    assert json.loads((root / "tallies/1/1.json").read_text())["n"] == len(members["1"])
    assert (root / "questions/2").exists()


def test_a_frozen_file_that_changed_stops_it(started, monkeypatch):
    root, members = started
    send(root, members)

    def crashing(path, record):
        if path.parent.parent.name == "tallies":
            raise KeyboardInterrupt
        original(path, record)

    original = campaigns.write_record
    with monkeypatch.context() as patch:
        for module in (campaigns, archive):
            patch.setattr(module, "write_record", crashing)
        with pytest.raises(KeyboardInterrupt):
            advance(root)
    (path,) = root.rglob("*.parquet")
    path.unlink()
    with pytest.raises(ValueError, match=r"part-00000.parquet"):
        advance(root, quarantine=True)


def test_files_that_cannot_be_frozen_are_not_counted(started):
    """An engine that does not hash files itself, as Spark, needs their manifest: after a crash the list must stand."""
    root, members = started
    send(root, members)
    (root / "reports/_manifest.json").unlink()

    class Blind:
        find = staticmethod(LOCAL.find)

        def count(self, files, questions, **options):
            return LOCAL.count(files, questions, **{**options, "verify": False})

    with pytest.raises(ValueError, match=r"expected a manifest, .*part-00000\.parquet is in none"):
        advance(root, engine=Blind())
    assert not (root / "frozen").exists()
    assert open_campaign(root).number == 1
    assert advance(root).result.reports == len(members["1"])  # the local engine hashes them


def test_an_empty_wave_needs_a_word(started):
    root, _ = started
    with pytest.raises(
        ValueError, match=r"put the reports of wave 1 there, or close the wave without any by --allow-empty"
    ):
        advance(root)
    assert advance(root, allow_empty=True).result.reports == 0
    assert open_campaign(root).number == 2


def test_damaged_files_are_set_aside_and_listed(started):
    root, members = started
    send(root, members)
    send(root, members, name="more")
    bad = root / "reports/wave=1/group=1/part-more-00000.parquet"
    bad.write_bytes(bad.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"part-more-00000.parquet \(not a readable Parquet file"):
        advance(root)
    assert open_campaign(root).number == 1
    assert advance(root, quarantine=True).result.reports == len(members["1"])
    listed = json.loads((root / "frozen/1.json").read_text())["set_aside"]
    assert [x["name"] for x in listed] == ["wave=1/group=1/part-more-00000.parquet"]


def test_a_changed_question_or_tally_stops_it(started):
    root, members = started
    send(root, members)
    advance(root)
    path = root / "tallies/1/1.json"
    path.write_bytes(path.read_bytes().replace(b'"n":', b'"n":1', 1))
    with pytest.raises(ReplayMismatch):
        open_campaign(root)


def test_an_ended_campaign_does_not_advance(tmp_path):
    start_campaign(Uniform(epsilon=1.0), SCHEMA, tmp_path)
    with pytest.raises(ValueError, match="the campaign has ended: `ahead estimate`"):
        advance(tmp_path)
    assert read_estimate(tmp_path)[2]


def test_what_is_no_campaign_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"expected a campaign's directory, as `ahead start` makes it, got .*campaign.json"
    ):
        advance(tmp_path)


def test_a_richer_campaign_of_a_service_is_read(started):
    """Its digest is that of the whole record, and every question carries it."""
    from ahead_ldp.device.canonical import canonical_bytes, digest, parse_canonical
    from ahead_ldp.engines.archive import read_campaign

    root, _ = started
    record = {**parse_canonical((root / "campaign.json").read_bytes()[:-1]), "title": "Pay"}
    (root / "campaign.json").write_bytes(canonical_bytes(record) + b"\n")
    assert read_campaign(root)[2] == digest(record)
    with pytest.raises(ReplayMismatch):  # these questions are of the plain one
        open_campaign(root)


def test_a_collected_run_as_report_files(tmp_path):
    people = [{"x0": int(c)} for c in CODES[:, 0]]
    made = collect_run(AHEAD(epsilon=2.0), SCHEMA, people, tmp_path, parquet=True)
    assert not list(tmp_path.rglob("*.bin"))
    again = read_run(tmp_path, recount=True)
    np.testing.assert_array_equal(again.fingerprint(), made.fingerprint())
    assert read_estimate(tmp_path)[2]
    path = next(tmp_path.rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-9])
    read_run(tmp_path)
    with pytest.raises(ReplayMismatch, match="reports"):
        read_run(tmp_path, recount=True)


def test_open_questions_go_by_digest(started):
    root, _ = started
    session = open_campaign(root)
    assert {a.group for a in open_questions(session).values()} == set(session.wave)


def test_a_campaign_whose_method_is_gone_ends_on_what_was_counted(started, monkeypatch):
    """The open wave is counted, nothing that was reported is lost, and the answers have intervals."""
    root, members = started
    send(root, members)
    advance(root)
    send(root, members)
    waiting = sum(len(members[group]) for group in open_campaign(root).wave)
    before = read_estimate(root)[0].provenance.people
    monkeypatch.setattr(AHEAD, "version", 2)
    for refused in (lambda: advance(root), lambda: read_estimate(root)):
        with pytest.raises(UnknownVersion):
            refused()
    assert read_estimate(root, "stored")[0].provenance.people == before
    closed = advance(root, reading="stored")
    assert (closed.wave, closed.last, closed.result.reports) == (2, True, waiting)
    estimate, waves, finished = read_estimate(root, "stored")
    assert (estimate.provenance.people, waves, finished) == (before + waiting, 2, True)
    kept = load(root / "estimate.json")  # the file has its questions with it
    np.testing.assert_array_equal(kept.fingerprint(), estimate.fingerprint())
    assert kept.answer(point_workload(SCHEMA)).interval()[1].min() < 0.5
    monkeypatch.undo()
    assert read_estimate(root)[1] == 2  # the program that has the method reads the same two waves, and goes on
