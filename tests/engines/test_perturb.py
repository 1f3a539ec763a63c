"""Clients in bulk: the device's own reports, one per row, the same whenever they are made, and never twice."""

import json
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ahead_ldp.device.laws import LAWS, OUELaw, SSLaw
from ahead_ldp.engines import perturb
from ahead_ldp.engines.campaigns import advance, open_campaign, read_estimate, start_campaign
from ahead_ldp.engines.draws import RowWords, draw_reports, keystream, place_row, row_secret
from ahead_ldp.engines.jobs import Job
from ahead_ldp.engines.perturb import Plan, answer_rows, answer_table, read_table, rows_of
from ahead_ldp.mechanisms.ahead.ahead import AHEAD
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.oracles import oracle_of_law
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.coding import encode
from tests.support import PASS, chi_square

KEY = bytes(range(32))
SCHEMA = as_schema(["pay=integer,0,15"])
N = 4000


def table_of(n=N, start=0) -> pa.Table:
    return pa.table({"person": [f"p{i}" for i in range(start, start + n)], "pay": [i % 5 for i in range(n)]})


@pytest.fixture
def held(tmp_path):
    """A campaign of several waves, and a table beside it."""
    start_campaign(AHEAD(epsilon=2.0), SCHEMA, tmp_path / "campaign")
    pq.write_table(table_of(), tmp_path / "people.parquet", row_group_size=1000)
    return tmp_path


def answer(held, table="people.parquet", job="job", **options):
    plan = Plan.read(held / "campaign", "person")
    return answer_table(held / "campaign", held / table, plan, Job(held / job), **options)


def reports_of(root, wave):
    """Everything that was sent in a wave: id -> (group, payload)."""
    found = {}
    for path in sorted((root / "reports" / f"wave={wave}").rglob("*.parquet")):
        for row in pq.ParquetFile(path).read().to_pylist():
            assert row["report_id"] not in found
            found[row["report_id"]] = path.parent.name, row["payload"]
    return found


# The streams.


def test_the_keystream_is_chacha20():
    """RFC 8439, A.1, test vector 1: key, counter and nonce of zeros."""
    assert keystream(bytes(32), 16).hex() == "76b8e0ada0f13d90405d6ae55386bd28"


def test_words_are_the_stream_big_endian_without_an_end():
    words, stream = RowWords(KEY), keystream(KEY, 1000)
    taken = b"".join(words.take(bits).to_bytes(bits // 8, "big") for bits in [32, 64] * 50) + words.take_bytes(300)
    assert taken == stream[: len(taken)]


def test_streams_are_apart_by_key_purpose_context_and_row():
    made = {
        row_secret(key, purpose, context, row)
        for key in (KEY, bytes(32))
        for purpose in (b"place", b"noise")
        for context in ("a" * 64, "b" * 64)
        for row in (b"1", b"2")
    }
    assert len(made) == 16


@pytest.mark.parametrize("epsilon", ["0.3", "1", "30"])
@pytest.mark.parametrize("cells", [2, 3, 11, 130])
@pytest.mark.parametrize("name", LAWS)
def test_bulk_draws_are_the_device_law_on_the_same_words(name, cells, epsilon):
    law = LAWS[name].make(epsilon, cells)
    codes = np.arange(60) % cells
    secrets = [row_secret(KEY, b"noise", "a" * 64, b"%d" % i) for i in range(60)]
    made = draw_reports(law, codes, secrets)
    assert [row.tobytes() for row in made] == [
        law.draw(int(code), RowWords(secret)) for code, secret in zip(codes, secrets, strict=True)
    ]
    assert draw_reports(law, codes[:0], []).shape == (0, law.payload_length)


def test_long_words_and_an_unlucky_subset(monkeypatch):
    wide = OUELaw(5, 64, 2**60 + 12345)
    few = SSLaw.make(1, 40)
    monkeypatch.setattr("ahead_ldp.engines.draws.log", lambda x: 0.0)  # far too few words at once
    for law in (wide, few):
        secrets = [row_secret(KEY, b"noise", "a" * 64, b"%d" % i) for i in range(200)]
        codes = np.arange(200) % law.cells
        expected = [law.draw(int(c), RowWords(s)) for c, s in zip(codes, secrets, strict=True)]
        assert [row.tobytes() for row in draw_reports(law, codes, secrets)] == expected


def test_groups_follow_their_shares_and_ids_differ():
    placed = [place_row(KEY, "a" * 64, b"%d" % i, 7) for i in range(7000)]
    counts = np.bincount([number for number, _ in placed], minlength=7)
    assert abs(chi_square(counts, np.full(7, 1 / 7))) < PASS
    assert abs(chi_square(counts, np.array([1.3, 1, 1, 1, 1, 1, 0.7]) / 7)) > PASS
    assert len({report_id for _, report_id in placed}) == 7000


# A table.


def test_cells_and_payloads_are_those_of_a_device(held):
    plan = Plan.read(held / "campaign", "person")
    (group,) = plan.questions
    question = plan.questions[group]
    rows = rows_of(plan, table_of(300))
    ids, payloads = answer_rows(plan, KEY, rows)[group]
    known = {
        place_row(KEY, plan.campaign, key, sum(g.share for g in plan.groups))[1]: i for i, key in enumerate(rows.keys)
    }
    for report_id, payload in zip(ids, payloads, strict=True):
        i = known[report_id.tobytes()]
        words = RowWords(row_secret(KEY, b"noise", question.digest, rows.keys[i]))
        assert payload.tobytes() == question.law.draw(question.cell({"pay": i % 5}), words)
    assert 0 < len(ids) < 300


def test_every_row_answers_in_exactly_one_wave_and_the_key_goes_with_the_last(held):
    answered, waves = 0, 0
    while open_campaign(held / "campaign").is_open:
        done = answer(held)
        waves += 1
        answered += sum(done.reports.values())
        key = list((held / "job").glob("*.key"))
        assert done.rows == N
        assert len(key) == (0 if done.ended else 1)
        if key:
            assert stat.S_IMODE(key[0].stat().st_mode) == 0o600
            assert key[0].stat().st_size == 32
        assert advance(held / "campaign").result.reports == sum(done.reports.values())
    assert waves > 1
    assert answered == N
    assert done.ended
    estimate, _, finished = read_estimate(held / "campaign")
    assert finished
    share = estimate.ask("pay in 0..4").values[0]
    assert abs(share - 1.0) < 0.2
    with pytest.raises(ValueError, match="this one has ended here, and its key is destroyed"):
        answer(held)


def test_no_value_and_no_key_is_in_what_is_sent(held):
    answer(held)
    for path in (held / "campaign").rglob("*"):
        if path.is_file():
            assert b"p1234" not in path.read_bytes()


def test_a_second_answer_to_a_wave_is_refused(held):
    answer(held)
    before = reports_of(held / "campaign", 1)
    with pytest.raises(ValueError, match="refused: wave 1 has been answered from this table"):
        answer(held)
    assert reports_of(held / "campaign", 1) == before


def crash(monkeypatch):
    monkeypatch.setattr(Job, "done", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))


def test_after_a_crash_the_same_bytes_are_written_again(held, monkeypatch):
    with monkeypatch.context() as patch:
        crash(patch)
        with pytest.raises(KeyboardInterrupt):
            answer(held)
    first = {p.name: p.read_bytes() for p in (held / "campaign/reports").rglob("*.parquet")}
    (held / "campaign/reports" / f"_manifest-{Job(held / 'job').name}.json").unlink()  # it crashed a bit earlier
    answer(held)
    assert {p.name: p.read_bytes() for p in (held / "campaign/reports").rglob("*.parquet")} == first


def test_after_a_crash_other_values_or_questions_are_refused(held, monkeypatch):
    with monkeypatch.context() as patch:
        crash(patch)
        with pytest.raises(KeyboardInterrupt):
            answer(held)
    pq.write_table(table_of(N + 1), held / "people.parquet")
    with pytest.raises(ValueError, match="refused: the table has changed since wave 1 was begun"):
        answer(held)
    plan = Plan.read(held / "campaign", "person")
    with pytest.raises(ValueError, match="refused: wave 1 was begun with other questions"):
        Job(held / "job").begin(plan.campaign, plan.columns, 1, {"1": "f" * 64}, "0" * 64)


def test_another_campaign_on_the_same_field_is_refused_and_on_another_not(held):
    answer(held)
    start_campaign(Flat(epsilon=1.0), SCHEMA, held / "second")
    with pytest.raises(ValueError, match="refused: pay of this table was reported on in campaign"):
        answer_table(held / "second", held / "people.parquet", Plan.read(held / "second", "person"), Job(held / "job"))
    table = table_of().append_column("age", pa.array([i % 3 for i in range(N)]))
    pq.write_table(table, held / "people.parquet")
    plan = Plan.read(held / "second", "person", ["age"])
    done = answer_table(held / "second", held / "people.parquet", plan, Job(held / "job"))
    assert sum(done.reports.values()) == N
    assert done.ended


def test_a_group_answers_in_one_wave(tmp_path):
    job = Job(tmp_path)
    job.begin("a" * 64, ["pay"], 1, {"1": "b" * 64}, "0" * 64)
    with pytest.raises(ValueError, match="group 1 has answered in wave 1"):
        job.begin("a" * 64, ["pay"], 2, {"1": "c" * 64}, "0" * 64)
    with pytest.raises(ValueError, match="expected the columns pay, as before, got age"):
        job.begin("a" * 64, ["age"], 2, {"2": "c" * 64}, "0" * 64)


def test_a_key_that_others_may_read_is_refused(tmp_path):
    job = Job(tmp_path)
    key = job.begin("a" * 64, ["pay"], 1, {"1": "b" * 64}, "0" * 64)
    assert job.begin("a" * 64, ["pay"], 1, {"1": "b" * 64}, "0" * 64) == key
    (path,) = tmp_path.glob("*.key")
    path.chmod(0o644)
    with pytest.raises(ValueError, match="only their owner may read"):
        job.begin("a" * 64, ["pay"], 1, {"1": "b" * 64}, "0" * 64)


def test_two_jobs_have_different_keys_and_names(tmp_path):
    keys = [Job(tmp_path / n).begin("a" * 64, ["pay"], 1, {"1": "b" * 64}, "0" * 64) for n in "ab"]
    assert keys[0] != keys[1]
    assert Job(tmp_path / "a").name != Job(tmp_path / "b").name


BAD = {
    "a key twice": (lambda t: pa.concat_tables([t, t.slice(5, 2)]), "every key in person once, got 2 that stand"),
    "no key": (lambda t: t.set_column(0, "person", pa.array([None] * N, pa.string())), "a key in every row, got"),
    "a fraction as key": (lambda t: t.set_column(0, "person", pa.array([0.5] * N)), "whole numbers, texts or bytes"),
    "a value outside": (
        lambda t: t.set_column(1, "pay", pa.array([4711] * N)),
        "pay: .* values outside the declared range",
    ),
    "no such column": (lambda t: t.drop_columns(["pay"]), "got none for pay"),
    "no rows": (lambda t: t.slice(0, 0), "a table with rows"),
}


@pytest.mark.parametrize(("change", "says"), BAD.values(), ids=BAD)
def test_a_bad_table_is_refused_before_anything_is_written(held, change, says):
    pq.write_table(change(table_of()), held / "people.parquet")
    with pytest.raises(ValueError, match=says) as error:
        answer(held)
    assert "4711" not in str(error.value)
    assert not (held / "campaign/reports").exists()
    assert json.loads((held / "job/job.json").read_text())["campaigns"] == []


def test_a_question_beyond_the_limit_is_refused(held):
    with pytest.raises(ValueError, match=r"the question is refused, nothing is answered: .*limit"):
        Plan.read(held / "campaign", "person", max_epsilon="1")
    with pytest.raises(ValueError, match="a row key beside the values"):
        Plan.read(held / "campaign", "pay")


def test_numbers_and_texts_name_the_same_rows_and_csv_reads_alike(held):
    plan = Plan.read(held / "campaign", "person")
    numbers = pa.table({"person": list(range(50)), "pay": [i % 5 for i in range(50)]})
    texts = pa.table({"person": [str(i) for i in range(50)], "pay": [i % 5 for i in range(50)]})
    (held / "people.csv").write_text("person,pay\n" + "".join(f"{i},{i % 5}\n" for i in range(50)))
    read = pa.Table.from_batches(list(read_table(held / "people.csv", plan)))
    made = [answer_rows(plan, KEY, rows_of(plan, t)) for t in (numbers, texts, read)]
    for other in made[1:]:
        for group, (ids, payloads) in made[0].items():
            np.testing.assert_array_equal(ids, other[group][0])
            np.testing.assert_array_equal(payloads, other[group][1])


def test_a_csv_file_without_a_column_says_which_are_wanted(held):
    (held / "people.csv").write_text("person,salary\np0,4711\n")
    with pytest.raises(ValueError, match=r"the columns person, pay in '.*people.csv', got others") as error:
        answer(held, table="people.csv")
    assert "4711" not in str(error.value)


@pytest.mark.parametrize("row", ["p1,secret4711", "p1,2,4711"])
def test_a_bad_line_of_a_csv_file_does_not_show(held, row):
    (held / "people.csv").write_text(f"person,pay\np0,1\n{row}\n")
    with pytest.raises(ValueError, match=r"not of kind integer|a readable table with the columns person, pay") as error:
        answer(held, table="people.csv")
    assert "4711" not in str(error.value)


def test_columns_of_all_kinds_are_coded_as_by_a_device(held):
    import datetime as dt

    schema = as_schema(["day=date,2024-01-01,2024-12-31", "size=category,S|M|L", "x=real,0,1,4"])
    table = pa.table(
        {
            "day": [dt.date(2024, 5, 1), dt.date(2024, 6, 2)],
            "size": pa.array(["S", "L"]).dictionary_encode(),
            "x": [0.2, 0.9],
        }
    )
    arrays = {a.name: perturb._array(table.column(a.name), a) for a in schema.attributes}
    assert encode(schema, arrays).tolist() == [
        [a.code(v) for a, v in zip(schema.attributes, row.values(), strict=True)] for row in table.to_pylist()
    ]


def test_several_processes_write_the_same(held, monkeypatch):
    """Two jobs with one key: one process, and two."""
    monkeypatch.setattr(perturb, "_ENOUGH", 0)
    monkeypatch.setattr("secrets.token_bytes", lambda n: bytes(n))
    monkeypatch.setattr("secrets.token_hex", lambda n: "00" * n)
    answer(held, job="one", out=held / "one/reports")
    answer(held, job="two", out=held / "two/reports", processes=2)
    assert reports_of(held / "one", 1) == reports_of(held / "two", 1)
    assert len(reports_of(held / "one", 1)) > 100


def test_the_estimate_of_the_noise_is_right(held):
    """Frequencies from one group's reports lie within their errors of the table's."""
    start_campaign(Flat(epsilon=1.0), SCHEMA, held / "flat")
    plan = Plan.read(held / "flat", "person")
    (group,) = plan.questions
    rows = rows_of(plan, table_of())
    _, payloads = answer_rows(plan, KEY, rows)[group]
    oracle = oracle_of_law(plan.questions[group].law)
    found = oracle.estimate(oracle.tally(payloads))
    truth = np.bincount(np.arange(N) % 5, minlength=16) / N
    assert np.abs((found - truth) / np.sqrt(oracle.variance(N, truth))).max() < PASS
