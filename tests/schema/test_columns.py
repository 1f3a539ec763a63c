"""The same columns come out of every kind of table, nulls included; unreadable ones are refused."""

import datetime as dt
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.schema import attributes as s
from ahead_ldp.schema.columns import read_codes, read_columns

SCHEMA = s.as_schema(
    [
        s.integer("age", 18, 99, missing="cell"),
        s.real("pay", 0, 1000, 10, missing="cell"),
        s.ordered("size", ["S", "M", "L"], missing="cell"),
        s.date("born", "2020-01-01", "2020-12-31", missing="cell"),
        s.time("at", "00:00", "23:59:59", 24, missing="cell"),
        s.datetime("seen", "1960-01-01", "2020-12-31", 100, missing="cell"),
    ]
)
ROWS = {
    "age": [18, None, 99],
    "pay": [0.0, 999.5, None],
    "size": ["L", None, "S"],
    "born": [dt.date(2020, 1, 1), None, dt.date(2020, 12, 31)],
    "at": [dt.time(0, 0), None, dt.time(23, 59, 59, 999)],
    "seen": [dt.datetime(1960, 1, 1, 0, 0, 0, 5), None, dt.datetime(2020, 12, 30)],
}
CODES = [[0, 0, 2, 0, 0, 0], [82, 9, 3, 366, 24, 100], [81, 10, 0, 365, 23, 99]]


def polars_frame():
    return pytest.importorskip("polars").DataFrame(ROWS)


def polars_lazy():
    return polars_frame().lazy()


def polars_category():
    polars = pytest.importorskip("polars")
    return polars_frame().with_columns(polars.col("size").cast(polars.Categorical))


def arrow_table():
    return pytest.importorskip("pyarrow").table(ROWS)


def arrow_dictionary():
    """A null in an Arrow dictionary became the last category on the way through to_numpy."""
    table = arrow_table()
    return table.set_column(2, "size", table["size"].dictionary_encode())


def pandas_frame():
    return pytest.importorskip("pandas").DataFrame(ROWS)


def pandas_types():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    frame["age"] = frame["age"].astype("Int64")
    frame["size"] = frame["size"].astype("category")
    frame["born"] = pandas.to_datetime(frame["born"])
    frame["seen"] = frame["seen"].dt.tz_localize("UTC")
    return frame


def pandas_strings():
    return pandas_frame().astype({"size": "string", "pay": "Float64"})


MAKERS = [
    polars_frame,
    polars_lazy,
    polars_category,
    arrow_table,
    arrow_dictionary,
    pandas_frame,
    pandas_types,
    pandas_strings,
    lambda: ROWS,
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_every_frame_gives_the_same_codes(make):
    assert read_codes(make(), SCHEMA).tolist() == CODES


def test_a_frame_of_an_array_has_numbers_for_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.array([[18, 3], [99, 5]]))
    found = read_columns(frame)
    assert {name: column.tolist() for name, column in found.items()} == {"0": [18, 99], "1": [3, 5]}
    assert read_columns(frame, ["1"])["1"].tolist() == [3, 5]
    assert list(frame.columns) == [0, 1]
    with pytest.raises(ValueError, match="columns of different names, got 1 more than once"):
        read_columns(frame.assign(**{"1": 7}))
    with pytest.raises(ValueError, match="columns of different names, got a more than once"):
        read_columns(pd.DataFrame([[1, 2]], columns=["a", "a"]))


@pytest.mark.parametrize("make", [polars_frame, arrow_table, pandas_frame, lambda: ROWS], ids=lambda m: m.__name__)
def test_columns_are_chosen_in_the_order_asked_for(make):
    assert list(read_columns(make())) == list(ROWS)
    assert list(read_columns(make(), ["pay", "age"])) == ["pay", "age"]
    with pytest.raises(ValueError, match=r"expected columns among age, pay, .*, got rank"):
        read_columns(make(), ["age", "rank"])


def test_integers_without_nulls_stay_integers():
    for frame in (pytest.importorskip("polars").DataFrame({"x": [1, 2]}), {"x": [1, 2]}, {"x": np.array([1, 2])}):
        assert read_columns(frame)["x"].dtype == np.int64


# Arrays.


def test_arrays_structured_and_plain(tmp_path):
    plain = np.array([[1, 2], [3, 4]])
    structured = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", int), ("b", float)])
    np.save(tmp_path / "plain.npy", plain)
    np.save(tmp_path / "structured.npy", structured)
    for source in (plain, tmp_path / "plain.npy", str(tmp_path / "plain.npy")):
        found = read_columns(source, ["a", "b"])
        assert {name: column.tolist() for name, column in found.items()} == {"a": [1, 3], "b": [2, 4]}
    for source in (structured, tmp_path / "structured.npy"):
        assert list(read_columns(source)) == ["a", "b"]
        assert read_columns(source, ["b"])["b"].tolist() == [2.5, 4.5]
    assert read_columns(np.array([1, 2]), ["a"])["a"].tolist() == [1, 2]


# CSV.


def csv_file(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def test_csv_gives_the_same_codes(tmp_path):
    lines = [
        ",".join(ROWS),
        *(",".join("" if v is None else v_text(v) for v in row) for row in zip(*ROWS.values(), strict=True)),
    ]
    assert read_codes(csv_file(tmp_path, "\n".join(lines)), SCHEMA).tolist() == CODES


def v_text(value):
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def test_csv_cells_become_numbers_text_and_nulls(tmp_path):
    text = '\ufeffi,f,n,s,"t, u",e\r\n1,1.5,7,a,"x ""y""\nz",\r\n\r\n-2,1e3,,,007,\r\n'
    found = read_columns(csv_file(tmp_path, text))
    assert list(found) == ["i", "f", "n", "s", "t, u", "e"]
    assert found["i"].tolist() == [1, -2]
    assert found["i"].dtype == np.int64
    assert found["f"].tolist() == [1.5, 1000.0]
    assert found["n"][0] == 7
    assert math.isnan(found["n"][1])
    assert found["s"].tolist() == ["a", None]
    assert found["t, u"].tolist() == ['x "y"\nz', "007"]
    assert found["e"].tolist() == [None, None]


def test_csv_columns_of_digits_can_stay_text(tmp_path):
    path = csv_file(tmp_path, "zip,x\n007,1\n,2\n012,3\n")
    assert read_columns(path, ["zip"], text=["zip"])["zip"].tolist() == ["007", None, "012"]
    schema = s.as_schema([s.nominal("zip", ["007", "012"], missing="cell"), s.codes("x", 4)])
    assert read_codes(path, schema).tolist() == [[0, 1], [2, 2], [1, 3]]


def test_csv_without_rows_has_empty_columns(tmp_path):
    assert read_columns(csv_file(tmp_path, "a,b\n"))["a"].size == 0


def test_csv_longer_than_a_block(tmp_path):
    path = csv_file(
        tmp_path, "x,y\n" + "\n".join(f"{i},{'long text' if i == 149_999 else 'a'}" for i in range(150_000))
    )
    found = read_columns(path)
    np.testing.assert_array_equal(found["x"], np.arange(150_000))
    assert found["y"][-1] == "long text"


@given(
    st.lists(st.none() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False), min_size=1)
)
def test_csv_numbers_come_back_as_the_same_numbers(tmp_path_factory, values):
    rows = "".join(f"1,{'' if v is None else repr(v)}\n" for v in values)
    path = csv_file(tmp_path_factory.mktemp("csv"), "k,x\n" + rows)
    found = read_columns(path)["x"].tolist()
    assert [v if v == v else None for v in found] == values


# Parquet.


def test_parquet_by_pyarrow_and_by_polars(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    polars_frame().write_parquet(path)
    assert read_codes(path, SCHEMA).tolist() == CODES
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert read_codes(path, SCHEMA).tolist() == CODES
    with pytest.raises(ValueError, match=r"expected columns among age, .*, got rank"):
        read_columns(path, ["rank"])
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ValueError, match=r"expected the extra frames .*ahead-ldp\[frames\]"):
        read_columns(path)


@pytest.mark.parametrize("hidden", [(), ("pyarrow",)])
def test_bad_parquet_is_one_value_error(tmp_path, monkeypatch, hidden):
    for name in hidden:
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    for name in ("bad.parquet", "none.parquet"):
        with pytest.raises(ValueError, match="expected a readable file, got"):
            read_columns(tmp_path / name)


def test_frames_without_narwhals_name_the_extra(monkeypatch):
    frame = polars_frame()
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(
        ValueError, match=r"expected the extra frames for a DataFrame: pip install 'ahead-ldp\[frames\]'"
    ):
        read_columns(frame)


def test_nothing_but_numpy_is_needed_for_arrays_and_csv(tmp_path, monkeypatch):
    for name in ("narwhals", "pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    assert read_columns(csv_file(tmp_path, "a\n1\n"))["a"].tolist() == [1]
    assert read_columns({"a": [1]})["a"].tolist() == [1]


# What is refused.

BAD_CSV = {
    "empty": ("", "no header line"),
    "short row": ("a,b\n1,2\n\n3\n", "expected 2 cells in line 4, got 1"),
    "long row": ("a,b\n1,2,3\n", "expected 2 cells in line 2, got 3"),
    "name twice": ("a,a\n1,2\n", "expected columns of different names, got a more than once"),
    "open quote": ('a\n"1\n', "expected a readable file"),
    "not UTF-8": (b"a\n\xff\n", "expected a readable file"),
}


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_table_with_other_marks_than_commas_says_so(tmp_path, mark):
    """A spreadsheet in a language of decimal commas writes semicolons."""
    path = csv_file(tmp_path, f"id{mark}pay\n1{mark}5\n")
    with pytest.raises(ValueError, match=r"expected commas between the columns, got .* save it with commas"):
        read_columns(path, ["pay"])
    assert list(read_columns(csv_file(tmp_path, "a;b\n5\n"), ["a;b"])) == ["a;b"]


@pytest.mark.parametrize("text, message", BAD_CSV.values(), ids=BAD_CSV)
def test_bad_csv_is_one_value_error(tmp_path, text, message):
    with pytest.raises(ValueError) as caught:
        read_columns(csv_file(tmp_path, text))
    assert message in str(caught.value)
    assert not isinstance(caught.value, UnicodeDecodeError)


BAD_SOURCES = {
    "no such file": ("none.csv", None, "expected a readable file, got 'none.csv'"),
    "no such array": ("none.npy", None, "expected a readable file, got 'none.npy'"),
    "unknown kind of file": ("table.xlsx", None, "expected a file ending in .csv, .parquet or .npy"),
    "array without names": (np.zeros((2, 2)), None, "a name for each of the 2 columns of the array, got none"),
    "array with other names": (np.zeros((2, 2)), ["a"], "a name for each of the 2 columns of the array, got 1"),
    "names twice": (np.zeros((2, 2)), ["a", "a"], "expected columns of different names"),
    "cube": (np.zeros((2, 2, 2)), None, "one or two dimensions, got 3"),
    "wide column": ({"a": np.zeros((2, 2))}, None, "the column a to have one dimension, got 2"),
    "number": (7, None, "SQL result or path, got a int"),
    "one name as text": ({"a": [1]}, "a", "expected a list of column names, got the text 'a'"),
}


@pytest.mark.parametrize("source, columns, message", BAD_SOURCES.values(), ids=BAD_SOURCES)
def test_bad_source_is_one_value_error(source, columns, message):
    with pytest.raises(ValueError) as caught:
        read_columns(source, columns)
    assert message in str(caught.value)


def test_array_of_objects_in_a_file_is_refused(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([None, 1], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="expected a readable file"):
        read_columns(tmp_path / "objects.npy", ["a"])
