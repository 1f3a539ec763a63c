"""People to measure on: the paper's buckets, the files, the shapes, and crowds that answer like any population."""

import json

import numpy as np
import pytest

from ahead_ldp.cli import main
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.protocol.mechanism import Group
from ahead_ldp.research.datasets import (
    DATASETS,
    Crowd,
    MissingData,
    crowds,
    data_folder,
    drawn,
    find_source,
    load,
    people,
    probabilities,
)
from ahead_ldp.research.datasets.loading import equal_slots, numbers, paper_buckets
from ahead_ldp.research.evaluation import choose
from ahead_ldp.schema.attributes import as_schema, codes
from ahead_ldp.schema.workloads import Workload, random_workload, true_answers_from_records

RNG = np.random.default_rng


def rng_rows(n, sizes, seed=0):
    rng = RNG(seed)
    return np.stack([rng.integers(0, size, n) for size in sizes], axis=1)


# Buckets.


def test_the_papers_buckets_by_hand():
    values = np.array([0.0, 1.0, 2.5, 10.0, np.nan])
    assert paper_buckets(values, 5).tolist() == [0, 0, 1, 4, 0]  # the maximum alone in the last; missing is 0
    assert paper_buckets(np.array([-5.0, 0.0, 5.0]), 3).tolist() == [0, 1, 2]
    assert paper_buckets(np.array([3, 3, 3]), 8).tolist() == [0, 0, 0]


def test_equal_slots_drop_what_is_outside():
    assert equal_slots(np.array([0.0, 99.9, 100.0, 100.1, -1.0, 50.0]), 0.0, 100.0, 10).tolist() == [0, 9, 9, 5]


def test_numbers_from_text():
    found = numbers(np.array(["1.5", "Not Provided", None, "-2"], dtype=object))
    np.testing.assert_array_equal(found, [1.5, np.nan, np.nan, -2.0])


PRINTED = {  # Tables 4 and 5: correlations of a1..a5, by row, above the diagonal
    "salaries": [-0.6638, -0.3631, 0.2344, 0.2344, 0.0208, 0.2442, 0.2442, 0.4665, 0.4665, 1.0],
    "blackfriday": [-0.0508, -0.0030, -0.0062, 0.0083, -0.0552, -0.4010, -0.3749, 0.0774, 0.0566, 0.3239],
}


@pytest.mark.parametrize("name", PRINTED)
def test_the_papers_buckets_give_its_printed_correlations(name):
    found = DATASETS[name]
    try:
        find_source(found, found.columns)
    except MissingData as reason:
        pytest.skip(str(reason))
    rows = load(name, found.columns, [64] * 5, RNG(0)).people.codes[:1000].astype(float)
    measured = np.corrcoef(rows.T)[np.triu_indices(5, 1)]
    np.testing.assert_allclose(measured, PRINTED[name], atol=5.1e-5)
    equal = np.floor((rows - rows.min(axis=0)) / np.ptp(rows, axis=0) * 31)  # power: another rule does not
    assert np.abs(np.corrcoef(equal.T)[np.triu_indices(5, 1)] - PRINTED[name]).max() > 1e-3


# Files.


def write_kaggle(folder):
    """Small files with the original names and their oddities."""
    head = "Id,EmployeeName,BasePay,OvertimePay,OtherPay,Benefits,TotalPay,TotalPayBenefits\n"
    rows = ["1,A,100,0,0,,100,100", "2,B,Not Provided,50,0,,50,50", "3,C,,0,25,,25,25", "4,D,400,0,0,,400,400"]
    (folder / "Salaries.csv").write_text(head + "\n".join(rows) + "\n")
    head = "step,type,amount,isFraud\n"
    (folder / "PS_20174392719_1491204439457_log.csv").write_text(head + "1,A,10,0\n1,A,600000,0\n2,B,500000,1\n")
    head = "id,loan_amnt,int_rate,installment,total_pymnt,last_pymnt_amnt\n"
    (folder / "accepted_2007_to_2018Q4.csv").write_text(head + "1,1000,7,30,900,30\n2,5000,9,80,1200,90\ntotal,,,,,\n")


def test_original_files_are_read(tmp_path, monkeypatch):
    write_kaggle(tmp_path)
    monkeypatch.setenv("AHEAD_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    pay = load("salaries", ["BasePay", "TotalPay"], [5, 5], RNG(0))
    assert pay.note == ""
    assert pay.people.codes.tolist() == [[1, 0], [0, 0], [0, 0], [4, 4]]  # not provided and empty are 0
    assert load("financial", ["amount"], [512], RNG(0)).people.n == 2  # over 500,000 is dropped
    assert load("loan", ["loan_amnt"], [4], RNG(0)).people.histogram.tolist() == [1, 0, 0, 1]  # not the totals


def test_a_missing_data_set_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("AHEAD_DATA", str(tmp_path))
    with pytest.raises(MissingData, match=r"Salaries is not in .*Salaries\.csv.*kaggle\.com/kaggle/sf-salaries"):
        load("salaries", ["TotalPay"], [64], RNG(0))
    with pytest.raises(ValueError, match=r"columns of salaries among BasePay.*got Bonus"):
        load("salaries", ["Bonus"], [64], RNG(0))
    with pytest.raises(ValueError, match=r"data set among salaries.*got 'taxes'"):
        load("taxes", ["x"], [4], RNG(0))


def test_a_stand_in_says_so_and_reaches_the_papers_number(tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"amount": [1.0, 2.0, 9e5], "isFraud": [0, 0, 0]}), tmp_path / "financial_sample.parquet")
    monkeypatch.setenv("AHEAD_DATA", str(tmp_path))
    found = load("financial", ["amount"], [512], RNG(0))
    assert found.people.n == 6_022_336
    assert found.note.startswith("stand-in: 47,429")
    assert load("financial", ["amount"], [512], RNG(0), n=10).people.n == 10


def test_the_original_is_preferred(tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_kaggle(tmp_path)
    pq.write_table(pa.table({"loan_amnt": [1, 2]}), tmp_path / "loan_amnt.parquet")
    monkeypatch.setenv("AHEAD_DATA", str(tmp_path))
    assert load("loan", ["loan_amnt"], [4], RNG(0)).file.name == "accepted_2007_to_2018Q4.csv"


def test_stored_histograms_are_coarsened(tmp_path, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    fine = np.zeros(4096, np.int32)
    fine[[0, 1, 4095]] = [3, 4, 5]
    pq.write_table(pa.table({"HEPTH": fine}), tmp_path / "dpbench_1d.parquet")
    cells = {"dataset": ["TWITTER", "TWITTER", "OTHER"], "i": [0, 255, 1], "j": [1, 255, 1], "count": [2, 7, 9]}
    pq.write_table(pa.table(cells), tmp_path / "dpbench_2d.parquet")
    monkeypatch.setenv("AHEAD_DATA", str(tmp_path))
    one = load("hepth", ["bin"], [1024], RNG(0)).people.histogram
    assert (one[0], one[-1], one.sum()) == (7, 5, 12)
    two = load("twitter", ["i", "j"], [64, 64], RNG(0)).people.histogram
    assert (two[0, 0], two[-1, -1], two.sum()) == (2, 7, 9)
    assert load("hepth", ["bin"], [64], RNG(0), n=1000).people.n == 1000
    with pytest.raises(ValueError, match="sizes that divide"):
        load("hepth", ["bin"], [100], RNG(0))


def test_drawing_is_without_replacement_where_it_can_be():
    rows = np.arange(10)[:, None]
    assert drawn(rows, 10, RNG(0)) is rows
    assert sorted(drawn(rows, 9, RNG(0))[:, 0].tolist()) == sorted(set(drawn(rows, 9, RNG(0))[:, 0].tolist()))
    assert len(drawn(rows, 25, RNG(0))) == 25


def test_the_command_lists_what_is_there(tmp_path, monkeypatch, capsys):
    write_kaggle(tmp_path)
    monkeypatch.setenv("AHEAD_DATA", str(tmp_path))
    assert main(["datasets", "--json"]) == 0
    found = {d["dataset"]: d for d in json.loads(capsys.readouterr().out)["datasets"]}
    assert (found["salaries"]["state"], found["blackfriday"]["state"]) == ("complete", "missing")
    assert main(["datasets"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "black-friday" in told
    assert "zipf" in told


# Shapes.


@pytest.mark.parametrize("skew", [0.0, 0.5, 0.9])
def test_skewed_gaussian_has_its_moments(skew):
    check_moments(probabilities("gaussian", 8192, skew), skew, 0.005)


@pytest.mark.parametrize("skew", [0.0, 1.0, 2.0])
def test_skewed_laplacian_has_its_moments(skew):
    check_moments(probabilities("laplacian", 8192, skew), skew, 0.2)  # tails beyond 5 deviations are at the ends


def check_moments(p, skew, tolerance):
    x = (np.arange(p.size) + 0.5) / p.size * 10 - 5
    mean = (p * x).sum()
    variance = (p * (x - mean) ** 2).sum()
    assert abs(mean) < 0.01
    assert abs(variance - 1) < 0.04
    assert abs((p * (x - mean) ** 3).sum() / variance**1.5 - skew) <= tolerance


def test_laplacian_without_skewness_is_the_closed_form():
    edges = np.linspace(-5, 5, 65)
    below = np.where(edges < 0, 0.5 * np.exp(np.sqrt(2) * edges), 1 - 0.5 * np.exp(-np.sqrt(2) * edges))
    below[0], below[-1] = 0, 1
    np.testing.assert_allclose(probabilities("laplacian", 64), np.diff(below), atol=1e-12)


def test_zipf_and_cauchy():
    p = probabilities("zipf", 256)
    np.testing.assert_allclose(p[0] / p[9], 10**1.1)
    c = probabilities("cauchy", 1000)
    np.testing.assert_allclose(c, c[::-1], atol=1e-12)  # tails are drawn again, not heaped at the ends
    assert c[0] < c[499] / 20


@pytest.mark.parametrize("shape", ["gaussian", "laplacian"])
@pytest.mark.parametrize("sizes", [(64, 64), (64,) * 4])
def test_tied_attributes_have_their_correlation(shape, sizes):
    n, r = 200_000, 0.8
    found = people(shape, sizes, n, RNG(1), r=r)
    if isinstance(found, Crowd):
        rows = found.codes.astype(float)
    else:
        rows = np.repeat(np.argwhere(found.histogram), found.histogram[found.histogram > 0], axis=0).astype(float)
    assert len(rows) == n
    measured = np.corrcoef(rows.T)[np.triu_indices(len(sizes), 1)]
    heavy = 5.0 if shape == "laplacian" else 1.0  # its fourth moments
    assert np.abs(measured - r).max() < 5 * (1 - r**2) * np.sqrt(heavy / n) + 0.006  # buckets and ends
    deviation = rows.std(axis=0) * 10 / 64
    assert np.abs(deviation - 1).max() < 0.03


def test_shapes_refuse():
    for bad, message in [
        (lambda: people("square", (8,), 10, RNG(0)), "shape among"),
        (lambda: people("zipf", (8, 8), 10, RNG(0), r=0.5), "gaussian or laplacian"),
        (lambda: people("gaussian", (8, 8), 10, RNG(0)), "correlation 0 <= r < 1, got None"),
        (lambda: probabilities("gaussian", 8, 1.5), "skewness in 0..0.995"),
        (lambda: people("gaussian", (8,), 0, RNG(0)), "n >= 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            bad()


# Crowds.


@pytest.fixture(params=["numba", "numpy"])
def path(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(crowds, "compiled", lambda: None)
    else:
        pytest.importorskip("numba")
    return request.param


@pytest.mark.usefixtures("path")
def test_a_crowd_answers_like_its_records():
    sizes = (8, 300, 5)
    rows = rng_rows(5000, sizes)
    crowd = Crowd.of(rows, sizes)
    workload = random_workload(sizes, 130, RNG(3))
    np.testing.assert_allclose(crowd.true_answers(workload), true_answers_from_records(workload, rows), atol=1e-12)
    histogram = crowd.histogram_of([2, 0]).reshape(5, 8)
    np.testing.assert_array_equal(histogram, np.histogram2d(rows[:, 2], rows[:, 0], [range(6), range(9)])[0])


@pytest.mark.usefixtures("path")
def test_groups_of_a_crowd_are_a_partition_by_share():
    rows = rng_rows(60_000, (4, 7))
    crowd = Crowd.of(rows, (4, 7))
    parts = crowd.divide([Group("a", 1), Group("b", 3), Group("c", 2)], RNG(5))
    n = np.array([part.n for part in parts.values()])
    assert n.sum() == 60_000
    expected = 60_000 * np.array([1, 3, 2]) / 6
    assert (np.abs(n - expected) < 5 * np.sqrt(expected * (1 - expected / 60_000))).all()
    together = sum(part.histogram_of([0, 1]) for part in parts.values())
    np.testing.assert_array_equal(together, crowd.histogram_of([0, 1]))


def test_both_paths_give_the_same_groups(monkeypatch):
    pytest.importorskip("numba")
    crowd = Crowd.of(rng_rows(3000, (4, 7)), (4, 7))
    groups = [Group(str(i), 1 + i % 3) for i in range(37)]
    fast = crowd.divide(groups, RNG(5))
    monkeypatch.setattr(crowds, "compiled", lambda: None)
    slow = crowd.divide(groups, RNG(5))
    for name, part in fast.items():
        np.testing.assert_array_equal(part.codes, slow[name].codes)


def test_a_crowd_simulates_with_the_law_of_records():
    """Mean and variance of one answer over many runs, beside those of the generic population."""
    sizes = (8, 8, 8)
    rows = rng_rows(3000, sizes) // np.array([1, 2, 1])
    schema = as_schema([codes(f"x{i}", 8) for i in range(3)])
    mechanism, _ = choose("lle", schema, 1.0, 3000, "paper")
    workload = Workload.from_codes(sizes, [[[0, 3], [0, 2], [0, 7]]])
    found = []
    for population in (Crowd.of(rows, sizes), Population.of_records(rows, sizes)):
        answers = [
            run_simulation(mechanism, schema, population, RNG([7, i])).answer(workload, errors=False)
            for i in range(150)
        ]
        found.append(np.array([a.values[0] for a in answers]))
    crowd, records = found
    standard_error = np.sqrt(crowd.var() / crowd.size + records.var() / records.size)
    assert abs(crowd.mean() - records.mean()) < 5 * standard_error
    ratio = crowd.var() / records.var()
    assert 1 / 1.9 < ratio < 1.9  # 5 standard deviations of a variance ratio of 150 and 150


def test_crowds_refuse():
    with pytest.raises(ValueError, match="codes below"):
        Crowd.of(np.array([[8]]), (8,))
    with pytest.raises(ValueError, match="at least one person"):
        Crowd.of(np.empty((0, 1), int), (8,))
    with pytest.raises(ValueError, match="shape"):
        Crowd.of(np.array([1, 2]), (8,))
    with pytest.raises(ValueError, match="at most 65536 codes"):
        crowds.small_type([1 << 17])
    half = Workload((8,), np.array([[[0.0, 1.5]]]), np.array([0]), 1)
    with pytest.raises(ValueError, match="cuts a code"):
        Crowd.of(np.array([[1]]), (8,)).true_answers(half)
