"""Spark: the same tallies as the local engine and as counting by hand, whatever happens to tasks and partitions."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ahead_ldp.cli import main
from ahead_ldp.engines import spark, writer
from ahead_ldp.engines.campaigns import advance, open_campaign, start_campaign
from ahead_ldp.engines.jobs import Job
from ahead_ldp.engines.local import LOCAL
from ahead_ldp.engines.perturb import Plan, answer_table
from ahead_ldp.engines.spark import SparkEngine
from ahead_ldp.engines.spark_holding import answer_frame, read_frame
from ahead_ldp.engines.spark_rows import count_frame
from ahead_ldp.engines.spark_session import spark_map
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.research.experiments import journal
from ahead_ldp.research.experiments.measuring import run_cell
from ahead_ldp.research.experiments.plan import Cell, Data
from ahead_ldp.research.experiments.running import run_cells_on_spark
from ahead_ldp.schema.attributes import as_schema
from tests.engines.examples import SIZES, as_reports, asked_of, by_digest, naive_tally, some_reports, write
from tools import docs

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """One real Spark for all tests: two workers, four attempts for a task."""
    pyspark = pytest.importorskip("pyspark.sql")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = pyspark.SparkSession.builder.master(os.environ.get("AHEAD_SPARK_MASTER", "local[2,4]"))
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield SparkEngine(session)
    session.stop()


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Reports of every oracle, in files of every shape: whole, one row, copies, other payloads."""
    root = tmp_path_factory.mktemp("reports")
    all_asked, truth = [], {}
    for wave, (name, cells) in enumerate(SIZES.items(), start=1):
        asked = asked_of(name, cells, wave=wave)
        ids, payloads = some_reports(asked, 301)
        other = payloads[:1].copy()
        for candidate in payloads[1:]:
            if (candidate != payloads[3]).any():
                other = candidate[None]
        ids = np.concatenate([ids, ids[:5], ids[3:4]])  # five copies, and one id with another payload
        payloads = np.concatenate([payloads, payloads[:5], other])
        write(root, asked, ids[:200], payloads[:200], rows_per_file=None if wave > 2 else 90)
        write(root, asked, ids[200:201], payloads[200:201], name="one")
        write(root, asked, ids[201:], payloads[201:], name="rest")
        all_asked.append(asked)
        truth[asked.question] = naive_tally(asked, as_reports(ids, payloads))
    return root, by_digest(*all_asked), truth


def test_tallies_are_those_of_the_local_engine_and_of_counting_by_hand(engine, everything):
    root, questions, truth = everything
    local = LOCAL.count(LOCAL.find(str(root)), questions)
    spark = engine.count(engine.find(str(root)), questions)
    assert local.tallies == truth
    assert spark.tallies == truth
    assert spark.duplicates == local.duplicates == 6 * len(questions)
    assert [file.name for file in spark.files] == [file.name for file in local.files]
    for below in ("wave=2", "wave=2/group=1", "wave=2/group=1/part-one-00000.parquet"):
        there = engine.find(str(root / below))
        assert [(f.name, f.entry) for f in there] == [(f.name, f.entry) for f in LOCAL.find(str(root / below))]
        assert there == engine.find(str(root), below)


def truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def fewer(path):
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 7), path)


DAMAGE = [(truncated, "not a readable Parquet file"), (fewer, "it has 7 rows, its manifest says 50")]


@pytest.mark.parametrize(("damage", "says"), DAMAGE)
def test_a_damaged_file_is_named_or_set_aside_whole(engine, tmp_path, damage, says):
    asked = asked_of()
    ids, payloads = some_reports(asked, 100)
    paths = write(tmp_path, asked, ids, payloads, rows_per_file=50)
    damage(paths[1])
    files = engine.find(str(tmp_path))
    with pytest.raises(ValueError, match=rf"--quarantine: wave=1/group=1/part-00001.parquet \({says}"):
        engine.count(files, by_digest(asked))
    found = engine.count(files, by_digest(asked), quarantine=True)
    assert found.tallies[asked.question] == asked.oracle.tally(payloads[:50])
    assert list(found.set_aside) == ["wave=1/group=1/part-00001.parquet"]


def test_files_of_something_else_are_refused_by_name(engine, tmp_path):
    asked, other = asked_of(), asked_of(campaign="d" * 64)
    write(tmp_path / "a", asked, *some_reports(asked, 5))
    write(tmp_path / "b", other, *some_reports(other, 5))
    files = engine.find(str(tmp_path / "a")) + engine.find(str(tmp_path / "b"))
    with pytest.raises(ValueError, match=r"move away wave=1/group=1/part-00000.parquet \(of another campaign: 'ddd"):
        engine.count(files, by_digest(asked))


def test_what_cannot_be_read_without_a_manifest_is_named(engine, tmp_path):
    asked = asked_of()
    (path,) = write(tmp_path, asked, *some_reports(asked, 50))
    (tmp_path / "_manifest.json").unlink()
    truncated(path)
    with pytest.raises(ValueError, match=r"part-00000.parquet \(not a readable Parquet file"):
        engine.count(engine.find(str(tmp_path)), by_digest(asked))


def test_other_bytes_than_the_manifest_says_are_found(engine, tmp_path):
    asked = asked_of()
    (path,) = write(tmp_path, asked, *some_reports(asked, 50))
    pq.write_table(pq.read_table(path), path, compression="snappy")
    with pytest.raises(ValueError, match="its bytes are not those of its manifest"):
        engine.count(engine.find(str(tmp_path)), by_digest(asked), verify=True)


def test_skewed_empty_and_single_row_files(engine, tmp_path, monkeypatch):
    """A large file is counted in parts, by several tasks; copies in other parts and files are found."""
    monkeypatch.setattr(spark, "ROWS_PER_PART", 1000)
    monkeypatch.setattr(writer, "ROWS_PER_GROUP", 700)
    asked = asked_of("oue", 64)
    ids, payloads = some_reports(asked, 5001)
    write(tmp_path, asked, ids[:5000], payloads[:5000])
    write(tmp_path, asked, ids[[5000, 4999, 3]], payloads[[5000, 4999, 4]], name="x")
    write(tmp_path, asked, ids[:0], payloads[:0], name="none")
    files = engine.find(str(tmp_path))
    assert max(len(spark._parts(file)) for file in files) == 5
    found = engine.count(files, by_digest(asked))
    assert (found.tallies[asked.question], found.duplicates) == (asked.oracle.tally(payloads), 2)
    assert engine.find(str(tmp_path / "nothing")) == []


def test_a_part_that_is_damaged_spoils_its_file(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(spark, "ROWS_PER_PART", 300)
    monkeypatch.setattr(writer, "ROWS_PER_GROUP", 100)
    asked = asked_of()
    ids, payloads = some_reports(asked, 900)
    bad = payloads.copy()
    bad[850, -1] |= 0x80  # padding
    write(tmp_path, asked, ids, bad)
    write(tmp_path, asked, ids, payloads, name="whole")
    files = engine.find(str(tmp_path))
    with pytest.raises(ValueError, match=r"\(1 of 900 reports could not have been made by a device"):
        engine.count(files, by_digest(asked))
    found = engine.count(files, by_digest(asked), quarantine=True)
    assert (found.tallies[asked.question], found.duplicates) == (asked.oracle.tally(payloads), 0)


def test_many_copies_are_compared_without_a_list_of_suspects(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(spark, "_FILTERED", 10)
    asked = asked_of("grr", 5)
    ids, payloads = some_reports(asked, 100)
    write(tmp_path, asked, np.concatenate([ids, ids]), np.concatenate([payloads, payloads]))
    found = engine.count(engine.find(str(tmp_path)), by_digest(asked))
    assert (found.tallies[asked.question], found.duplicates) == (asked.oracle.tally(payloads), 100)


def dying(units, marker, count):
    """Count; the first task that gets here dies afterwards, with its interpreter and its result."""
    found = count(units)
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return found
    os._exit(1)


def test_a_killed_task_changes_no_tally(engine, tmp_path, monkeypatch):
    asked = asked_of()
    ids, payloads = some_reports(asked, 300)
    write(tmp_path / "reports", asked, ids, payloads, rows_per_file=100)
    marker, whole = str(tmp_path / "killed"), spark.SparkEngine._map

    def doomed(self, function, units):
        return whole(self, partial(dying, marker=marker, count=function), units)

    monkeypatch.setattr(spark.SparkEngine, "_map", doomed)
    found = engine.count(engine.find(str(tmp_path / "reports")), by_digest(asked))
    assert os.path.exists(marker)
    assert found.tallies[asked.question] == asked.oracle.tally(payloads)


def test_rows_of_a_table_are_counted_too(engine, tmp_path):
    """What lies in a lake format is no report file; the first of an id counts, by the columns that say so."""
    asked, other = asked_of("oue", 64), asked_of("grr", 5, group="2")
    (ids, payloads), (_, more) = some_reports(asked, 60), some_reports(other, 20)
    rows = [(i.tobytes(), p.tobytes(), asked.question, at) for at, (i, p) in enumerate(zip(ids, payloads, strict=True))]
    rows += [(bytes([at]) * 16, p.tobytes(), other.question, 0) for at, p in enumerate(more)]
    schema = "report_id binary, payload binary, question string, at int"
    frame = engine.session.createDataFrame(rows, schema)
    truth = {asked.question: asked.oracle.tally(payloads), other.question: other.oracle.tally(more)}
    assert count_frame(frame, by_digest(asked, other)) == truth
    again = engine.session.createDataFrame([*rows, (rows[3][0], rows[4][1], asked.question, 99)], schema)
    assert count_frame(again, by_digest(asked, other), ["at"]) == truth
    with pytest.raises(ValueError, match="expected every report_id once, got 1 again"):
        count_frame(again, by_digest(asked, other))
    with pytest.raises(ValueError, match="got 20 of others"):
        count_frame(frame, by_digest(asked))
    short = engine.session.createDataFrame([(b"i" * 16, b"x", asked.question, 0)], schema)
    with pytest.raises(ValueError, match="1 of 1 reports could not have been made by a device"):
        count_frame(short, by_digest(asked))


def killing(batches, marker):
    """Hand on the rows; the first task that gets here dies in the middle, with its interpreter."""
    for batch in batches:
        yield batch
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        os._exit(1)


@pytest.fixture
def held(tmp_path):
    """A campaign, a table in several files, and a job with a fixed key."""
    schema = as_schema(["pay=integer,0,15"])
    start_campaign(AHEAD(epsilon=2.0), schema, tmp_path / "campaign")
    (tmp_path / "people").mkdir()
    for part in range(3):
        table = pa.table({"person": [f"p{part}-{i}" for i in range(200)], "pay": [i % 5 for i in range(200)]})
        pq.write_table(table, tmp_path / "people" / f"{part}.parquet")
    return tmp_path


def sent(root) -> dict[bytes, bytes]:
    found = {}
    for path in root.rglob("*.parquet"):
        for row in pq.ParquetFile(path).read().to_pylist():
            assert row["report_id"] not in found
            found[row["report_id"]] = row["payload"]
    return found


def test_perturbation_on_spark_is_that_of_one_machine_whatever_happens(engine, held, monkeypatch):
    """All waves; in the first a task is killed and the job then runs again."""
    monkeypatch.setattr("secrets.token_bytes", lambda n: bytes(n))
    root, job = held / "campaign", Job(held / "job")
    frame, table = read_frame(engine.session, str(held / "people"))
    answered = 0
    while open_campaign(root).is_open:
        plan = Plan.read(root, "person")
        out, here = str(root / "reports"), held / "here"
        rows = frame
        if plan.wave == 1:
            rows = frame.mapInArrow(partial(killing, marker=str(held / "killed")), frame.schema)
            with monkeypatch.context() as patch:
                patch.setattr(Job, "done", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
                with pytest.raises(KeyboardInterrupt):
                    answer_frame(rows, plan, job, out, table)
            first = {p.name: p.read_bytes() for p in root.rglob("*.parquet")}
            assert (held / "killed").exists()
        done = answer_frame(rows, plan, job, out, table)
        if plan.wave == 1:
            assert {p.name: p.read_bytes() for p in root.rglob("*.parquet")} == first
            with pytest.raises(ValueError, match="refused: wave 1 has been answered"):
                answer_frame(rows, plan, job, out, table)
        answer_table(root, held / "people", plan, Job(held / "other"), out=here)
        folder = f"wave={plan.wave}"
        assert sent(root / "reports" / folder) == sent(here / folder)
        assert not list(root.rglob("*.unfinished"))
        answered += sum(done.reports.values())
        assert advance(root, engine=engine if plan.wave == 1 else LOCAL).result.reports == sum(done.reports.values())
    assert (answered, done.rows, done.ended) == (600, 600, True)
    assert not list((held / "job").glob("*.key"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("SELECT person, 4711 AS pay FROM people", "values outside the declared range"),
        ("SELECT 'x' AS person, pay FROM people", "every key in person once, got 599 that stand"),
        ("SELECT person FROM people", "got none for pay"),
    ],
)
def test_a_bad_table_is_refused_before_anything_is_written(engine, held, change, says):
    engine.session.read.parquet(str(held / "people")).createOrReplaceTempView("people")
    plan = Plan.read(held / "campaign", "person")
    with pytest.raises(ValueError, match=says) as error:
        answer_frame(engine.session.sql(change), plan, Job(held / "job"), str(held / "out"), "0" * 64)
    assert "4711" not in str(error.value)
    assert not (held / "out").exists()


def test_the_commands_run_on_spark(engine, held, capsys):
    root = held / "campaign"
    perturb = ["perturb", root, "--data", held / "people", "--row-key", "person", "--engine", "spark"]
    assert main([str(word) for word in perturb]) == 0, capsys.readouterr().err
    assert main(["tally", str(root), "--engine", "spark", "--no-dedup", "--json"]) == 0
    printed = capsys.readouterr().out
    assert '"duplicates": 0' in printed
    assert main(["perturb", str(root), "--data", str(held / "none"), "--row-key", "person", "--engine", "spark"]) == 2
    assert "PATH_NOT_FOUND" in capsys.readouterr().err


def double(x: int) -> int:
    return 2 * x


def test_items_are_mapped_in_order(engine):
    assert spark_map(double, [3, 1, 2], engine.session) == [6, 2, 4]


def test_a_plan_of_experiments_gives_the_same_outcomes_on_spark(engine, tmp_path):
    zipf = Data("zipf", (32,), 5_000)
    cells = [Cell(data=zipf, method=method, epsilon=1.0, repeats=2, queries=20) for method in ("AHEAD", "Uni")]
    gone = Cell(data=Data("no such shape", (32,), 100), method="AHEAD", epsilon=1.0, repeats=1, queries=5)
    path = tmp_path / "journal.jsonl"
    problems = run_cells_on_spark([*cells, gone], path, 2, session=engine.session)
    found = journal.read(path)
    assert {key: outcome.rows for key, outcome in found.items()} == {cell.key: run_cell(cell).rows for cell in cells}
    assert list(problems.failed) == [gone.id]
    before = path.read_bytes()
    run_cells_on_spark(cells, path, 2, session=engine.session)  # nothing is left to do
    assert path.read_bytes() == before


def test_the_command_runs_under_spark_submit_as_the_page_says(engine, tmp_path):
    """spark-submit takes a program whose name ends in .py, and not the command itself."""
    page = (docs.ROOT / "docs" / "spark.md").read_text("utf-8")
    (program,) = [block.text for block in docs.blocks(page) if "SystemExit" in block.text]
    assert page.count("spark-submit --") == page.count("submit.py advance") == 2
    (tmp_path / "submit.py").write_text(program)
    people = tmp_path / "people.csv"
    people.write_text("person,age\n" + "".join(f"p{i},{i % 4}\n" for i in range(60)))
    root = tmp_path / "survey"
    start_campaign(Flat(epsilon=1.0), as_schema("age=codes,4"), root)
    assert main(["perturb", str(root), "--data", str(people), "--row-key", "person"]) == 0
    submit = Path(sys.executable).parent / "spark-submit"
    words = [str(submit), "--master", "local[1]", "submit.py", "tally", str(root), "--engine", "spark", "--json"]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_GATEWAY")}
    env = {**kept, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout[done.stdout.index("{\n") :])["reports"] == 60
