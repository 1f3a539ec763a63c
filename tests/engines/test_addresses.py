"""Report files in an object store: found, held against their manifests and counted as those of this machine are."""

import json

import numpy as np
import pytest

from ahead_ldp.cli import main
from ahead_ldp.engines import addresses
from ahead_ldp.engines.campaigns import advance, open_campaign, start_campaign
from ahead_ldp.engines.files import Asked
from ahead_ldp.engines.local import LOCAL
from ahead_ldp.engines.manifests import find_files
from ahead_ldp.engines.spark import SparkEngine
from ahead_ldp.engines.writer import ReportWriter
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.schema.attributes import as_schema
from tests.engines.examples import asked_of, by_digest, some_reports, write
from tests.engines.object_store import object_store

SECRET = "a-password"
ASKED = [asked_of(wave=wave) for wave in (1, 2)]
QUESTIONS = by_digest(*ASKED)


@pytest.fixture
def lake(tmp_path):
    """A folder that is a bucket, and a function that names what is in it."""
    (tmp_path / "lake").mkdir()
    with object_store(tmp_path) as settings:
        yield tmp_path / "lake", lambda name, kind="s3": f"{kind}://somebody:{SECRET}@lake/{name}?{settings}"


@pytest.fixture
def filled(lake):
    """Two waves in five files, with forty copies across them."""
    folder, address = lake
    for asked in ASKED:
        ids, payloads = some_reports(asked, 1000)
        write(folder / "survey" / "reports", asked, ids, payloads, rows_per_file=500)
    ids, payloads = some_reports(ASKED[0], 1000)
    write(folder / "survey" / "reports", ASKED[0], ids[:40], payloads[40:80], name="again")
    return folder / "survey" / "reports", address


def same(one, other):
    assert {q: t.counts.tolist() for q, t in one.tallies.items()} == {
        q: t.counts.tolist() for q, t in other.tallies.items()
    }
    assert [f.entry for f in one.files] == [f.entry for f in other.files]
    assert one.duplicates == other.duplicates


@pytest.mark.parametrize("kind", ["s3", "s3a"])
@pytest.mark.parametrize("options", [{}, {"dedup": False}, {"verify": True}], ids=str)
def test_a_store_counts_as_a_folder_does(filled, kind, options):
    folder, address = filled
    found = LOCAL.find(address("survey/reports", kind))
    assert [f.name for f in found] == [f.name for f in LOCAL.find(str(folder))]
    result = LOCAL.count(found, QUESTIONS, **options)
    same(result, LOCAL.count(LOCAL.find(str(folder)), QUESTIONS, **options))
    assert result.reports == 2000 + (0 if options.get("dedup", True) else 40)


def test_a_wave_a_folder_and_a_file_have_their_manifest_above_them(filled):
    folder, address = filled
    for below in ("wave=1", "wave=2"):
        there = LOCAL.find(address("survey/reports"), below)
        assert [(f.name, f.entry) for f in there] == [(f.name, f.entry) for f in LOCAL.find(str(folder), below)]
    (one,) = LOCAL.find(address("survey/reports/wave=2/group=1/part-00001.parquet"))
    assert one.entry is not None
    assert one in LOCAL.find(address("survey/reports/"))
    assert LOCAL.find(address("survey/reports"), "wave=3") == LOCAL.find(address("nothing")) == []
    both = find_files([folder / "wave=1", address("survey/reports/wave=2")])
    assert LOCAL.count(both, QUESTIONS).reports == 2000


def test_what_is_damaged_is_refused_by_its_name(filled):
    folder, address = filled
    damaged = folder / "wave=1" / "group=1" / "part-00000.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    (folder / "wave=2" / "group=1" / "part-00000.parquet").unlink()
    found = LOCAL.find(address("survey/reports"))
    with pytest.raises(ValueError, match=r"wave=2/group=1/part-00000\.parquet \(in the manifest, but not there") as met:
        LOCAL.count(found, QUESTIONS)
    assert "wave=1/group=1/part-00000.parquet (not a readable Parquet file" in str(met.value)
    assert SECRET not in str(met.value)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [("s3://a:{0}@lake/x?colour=red", "colour"), ("lakes://a:{0}@lake/x", "Unrecognized filesystem type")],
)
def test_an_address_that_leads_nowhere_is_said_without_its_password(wrong, why):
    with pytest.raises(ValueError, match="expected an address that Arrow can open") as met:
        LOCAL.find(wrong.format(SECRET))
    assert SECRET not in str(met.value).replace(f"URI: lakes://a:{SECRET}@lake/x", "")
    assert why in str(met.value)


@pytest.mark.parametrize(
    ("address", "outer"),
    [
        ("s3://b/a/c?x=1", "s3://b/a?x=1"),
        ("s3://b/a", "s3://b"),
        ("s3://b", None),
        ("file:///a/b", "file:///a"),
        ("file:///a", None),
    ],
)
def test_the_folder_around_an_address(address, outer):
    assert addresses.above(address) == outer


def test_a_campaign_goes_on_from_a_store(lake, tmp_path, monkeypatch, capsys):
    """`ahead tally` and `advance`, also after a crash between the frozen list and the tallies."""
    folder, address = lake
    home = tmp_path / "home"
    session = start_campaign(AHEAD(epsilon=2.0), as_schema("age=codes,8"), home)
    for question in session.question_records().values():
        asked = Asked.of(question)
        with ReportWriter(folder / "reports", name=f"writer-{asked.group}") as writer:
            writer.add(asked, *some_reports(asked, 200))
    assert main(["tally", address("reports"), "--campaign", str(home), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["reports"] == 200 * len(session.wave)
    assert told["manifest"] is not None
    with monkeypatch.context() as patch:
        patch.setattr("ahead_ldp.engines.campaigns.archive.write_tallies", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            advance(home, reports=address("reports"))
    assert advance(home, reports=address("reports")).result.reports == told["reports"]
    with pytest.raises(ValueError, match="got none: put the reports of wave 2 there") as met:
        advance(home, reports=address("reports"))
    assert SECRET not in str(met.value)
    assert open_campaign(home).number == 2
    for file in home.rglob("*.json"):
        assert SECRET not in file.read_text()


def test_only_spark_writes_to_an_address(lake, tmp_path, capsys):
    _, address = lake
    start_campaign(AHEAD(epsilon=2.0), as_schema("age=integer,0,7"), tmp_path / "home")
    (tmp_path / "people.csv").write_text("person,age\n" + "".join(f"p{i},{i % 8}\n" for i in range(50)))
    words = ["perturb", str(tmp_path / "home"), "--data", str(tmp_path / "people.csv"), "--row-key", "person"]
    assert main([*words, "--out", address("reports")]) == 2
    assert "only Spark writes there" in capsys.readouterr().err
    assert main(words) == 0  # nothing was begun
    assert "50 rows answered" in capsys.readouterr().out


def test_spark_finds_what_the_local_engine_finds_without_any_part_of_hadoop(filled):
    """The driver lists an object store through Arrow, as executors read it: no session is asked."""
    _, address = filled
    engine = SparkEngine.__new__(SparkEngine)
    engine.session = None
    found = engine.find(address("survey/reports", "s3a"), "wave=1")
    assert [f.name for f in found] == [f.name for f in LOCAL.find(address("survey/reports"), "wave=1")]
    assert np.sum([f.entry.rows for f in found]) == 1040
