"""A collection as files: complete, replayable, and refused as soon as one byte is another."""

import json
from pathlib import Path

import numpy as np
import pytest

from ahead_ldp.device.canonical import canonical_bytes, parse_canonical
from ahead_ldp.engines.runs import collect_run, read_run
from ahead_ldp.mechanisms import UnknownVersion
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.ahead.lle import LLE
from ahead_ldp.mechanisms.ahead.uniform import Uniform
from ahead_ldp.protocol.session import ReplayMismatch
from ahead_ldp.schema.attributes import as_schema

SCHEMA = as_schema("x=integer,100,107")
PEOPLE = [{"x": 100 + i % 3} for i in range(1500)]


@pytest.fixture
def run(tmp_path):
    collect_run(AHEAD.paper(epsilon=1.0), SCHEMA, PEOPLE, tmp_path / "run")
    return tmp_path / "run"


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_everything_that_a_server_has_is_written(run):
    each = {
        f"{kind}/{wave}/{wave}.{end}"
        for kind, end in (("questions", "json"), ("tallies", "json"), ("reports", "bin"))
        for wave in (1, 2, 3)
    }
    assert files(run) == each | {"schema.json", "campaign.json", "estimate.json"}
    told = [json.loads((run / f"tallies/{i}/{i}.json").read_text()) for i in (1, 2, 3)]
    assert sum(tally["n"] for tally in told) == len(PEOPLE)
    for path in run.rglob("*.json"):
        assert canonical_bytes(parse_canonical(path.read_bytes()[:-1])) + b"\n" == path.read_bytes()


def test_a_report_file_is_one_batch(run):
    """Header of 65 bytes, then 16 bytes of a name and one byte of payload for every person of the group."""
    size = (run / "reports/1/1.bin").stat().st_size
    n = json.loads((run / "tallies/1/1.json").read_text())["n"]
    assert n > 1
    assert size == 65 + n * 17


def test_the_estimate_comes_back(tmp_path):
    made = collect_run(AHEAD.paper(epsilon=1.0), SCHEMA, PEOPLE, tmp_path)
    again = read_run(tmp_path, recount=True)
    np.testing.assert_array_equal(again.fingerprint(), made.fingerprint())


@pytest.fixture
def runs(monkeypatch):
    """How often AHEAD was run from its first wave."""
    started, original = [], AHEAD.run

    def counted(self, schema):
        started.append(schema)
        return original(self, schema)

    monkeypatch.setattr(AHEAD, "run", counted)
    return started


@pytest.mark.parametrize("parquet", [False, True])
def test_collecting_and_reading_run_the_mechanism_once_each(tmp_path, runs, parquet):
    collect_run(AHEAD.paper(epsilon=1.0), SCHEMA, PEOPLE, tmp_path, parquet=parquet)
    assert len(runs) == 1
    estimate = read_run(tmp_path, recount=True)
    assert len(runs) == 2
    estimate.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "estimate.json").read_bytes()
    assert len(runs) == 2


def test_more_than_a_batch_in_one_file(tmp_path):
    collect_run(AHEAD.paper(epsilon=1.0), as_schema("x=integer,100,102"), PEOPLE * 3, tmp_path)
    read_run(tmp_path, recount=True)


def test_methods_of_several_groups_and_of_none(tmp_path):
    schema = as_schema(["x=integer,100,103", "y=codes,4", "z=codes,4"])
    people = [{"x": 100, "y": i % 4, "z": 3} for i in range(60)]
    collect_run(LLE.paper(epsilon=1.0), schema, people, tmp_path / "pairs")
    assert read_run(tmp_path / "pairs", recount=True).provenance.people == 60
    collect_run(Uniform(epsilon=1.0), schema, people, tmp_path / "nobody")
    assert read_run(tmp_path / "nobody").provenance.people == 0


def test_empty_groups_have_no_report_file(tmp_path):
    collect_run(AHEAD.paper(epsilon=1.0), SCHEMA, PEOPLE[:1], tmp_path)
    assert len([name for name in files(tmp_path) if name.startswith("reports")]) == 1
    assert read_run(tmp_path, recount=True).provenance.people == 1


def test_a_directory_in_use_is_refused(run):
    before = files(run)
    with pytest.raises(ValueError, match="new or empty directory"):
        collect_run(AHEAD.paper(epsilon=1.0), SCHEMA, PEOPLE, run)
    assert files(run) == before


TAMPERED = {
    "a question": ("questions/2/2.json", b'"wave":2', b'"wave":3'),
    "a count": ("tallies/1/1.json", b'"n":', b'"n":1'),
    "the method": ("campaign.json", b'"fanout":2', b'"fanout":3'),
    "epsilon": ("campaign.json", b'"epsilon":"1"', b'"epsilon":"2"'),
    "the bounds": ("schema.json", b'"lo":100', b'"lo":101'),
    "an answer": ("estimate.json", b'"answers":["', b'"answers":["1'),
}


@pytest.mark.parametrize(("name", "old", "new"), TAMPERED.values(), ids=TAMPERED)
def test_another_byte_stops_the_replay(run, name, old, new):
    read_run(run)
    data = (run / name).read_bytes()
    assert old in data
    (run / name).write_bytes(data.replace(old, new, 1))
    with pytest.raises(ReplayMismatch):
        read_run(run)


@pytest.mark.parametrize("change", ["flip", "cut", "foreign"])
def test_other_reports_stop_the_recount(run, change):
    path = run / "reports/1/1.bin"
    data = path.read_bytes()
    changed = {
        "flip": data[:-1] + bytes([data[-1] ^ 0x80]),
        "cut": data[:-17],
        "foreign": (run / "reports/2/2.bin").read_bytes(),
    }
    path.write_bytes(changed[change])
    read_run(run)
    with pytest.raises(ReplayMismatch, match="reports"):
        read_run(run, recount=True)


def test_a_copy_of_a_report_counts_once(run):
    """The id alone decides, in a run's files as in the service: whatever came under a known id changes nothing."""
    path, before = run / "reports/1/1.bin", read_run(run, recount=True)
    data = path.read_bytes()
    path.write_bytes(data + data[-17:])
    assert read_run(run, recount=True).fingerprint().tolist() == before.fingerprint().tolist()
    path.write_bytes(data + data[-17:-1] + bytes([data[-1] ^ 1]))
    assert read_run(run, recount=True).fingerprint().tolist() == before.fingerprint().tolist()


def test_estimate_of_another_run_is_refused(run, tmp_path):
    collect_run(AHEAD.paper(epsilon=1.0), SCHEMA, PEOPLE, tmp_path / "other")
    (run / "estimate.json").write_bytes((tmp_path / "other" / "estimate.json").read_bytes())
    with pytest.raises(ReplayMismatch, match=r"estimate\.json is not of the stored tallies"):
        read_run(run)


@pytest.mark.parametrize("name", ["campaign.json", "schema.json", "estimate.json"])
def test_an_incomplete_run_is_refused(run, name):
    (run / name).unlink()
    with pytest.raises(ValueError, match=f"files of a finished run, got .*{name}"):
        read_run(run)


def test_a_run_without_its_last_wave_is_refused(run):
    (run / "questions/3/3.json").unlink()
    (run / "questions/3").rmdir()
    with pytest.raises(ValueError, match="finished run"):
        read_run(run)


def test_a_run_is_read_without_its_method(run, monkeypatch):
    """The stored questions and tallies are enough, whatever became of the method that asked them."""
    own = read_run(run)
    monkeypatch.setattr(AHEAD, "version", 2)
    with pytest.raises(UnknownVersion, match="expected a version of the method ahead among 2, got 1"):
        read_run(run)
    read = read_run(run, recount=True, reading="stored")
    assert (read.provenance.people, read.provenance.frozen) == (own.provenance.people, own.provenance.frozen)
    low, high = read.ask("x = 101").interval(1 - 1e-6)  # reports are of this moment: one run in a million may miss
    assert low[0] <= 1 / 3 <= high[0]


def test_a_run_without_its_method_is_still_checked(run):
    data = (run / "tallies/1/1.json").read_bytes()
    (run / "tallies/1/1.json").write_bytes(data.replace(b'"counts":[', b'"counts":[1', 1))
    with pytest.raises(ReplayMismatch):
        read_run(run, reading="stored")
