"""Made-up people fit every kind of question, and what is said to be the truth about them is a count."""

import numpy as np
import pytest

from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.rehearsal.people import Truth, synthetic_people

SCHEMA = as_schema(
    [
        "age=integer,18,99",
        "pay=real,0,1000,20,missing=cell",
        "town=nominal,A|B|C|D",
        "born=date,1940-01-01,2010-12-31,71",
        "yes=category,no|yes",
    ]
)


@pytest.fixture(scope="module")
def codes():
    return synthetic_people(SCHEMA, 20_000, np.random.default_rng(1))


def test_codes_are_in_the_domain_and_spread_over_it(codes):
    assert codes.shape == (20_000, 5)
    assert (codes >= 0).all()
    assert (codes < np.array(SCHEMA.sizes)).all()
    age = codes[:, 0]
    assert np.unique(age).size > 60
    assert np.bincount(age).max() < 0.05 * age.size  # a bump, no heap
    assert set(np.unique(codes[:, 4])) == {0, 1}


def test_some_have_no_value_where_a_question_allows_it(codes):
    missing = np.mean(codes[:, 1] == 20)  # 5 %, of 20,000: 0.15 points of chance
    assert missing == pytest.approx(0.05, abs=0.008)


def test_categories_are_as_frequent_as_one_over_their_place(codes):
    shares = np.bincount(codes[:, 2], minlength=4) / len(codes)
    assert shares == pytest.approx(np.array([12, 6, 4, 3]) / 25, abs=0.018)  # five standard errors


def test_attributes_hang_together(codes):
    assert np.corrcoef(codes[:, 0], codes[:, 3])[0, 1] > 0.2


def test_the_truth_is_a_count(codes):
    truth = Truth(SCHEMA, codes)
    age = codes[:, 0] + 18
    assert truth.share("age between 30 and 39") == pytest.approx(np.mean((age >= 30) & (age <= 39)))
    both = np.mean((age < 40) & (codes[:, 2] == 1))
    assert truth.share("age < 40 and town = B") == pytest.approx(both)
    assert truth.share("pay missing") == pytest.approx(np.mean(codes[:, 1] == 20))


def test_quantiles_of_the_truth_are_those_of_the_values(codes):
    truth = Truth(SCHEMA, codes)
    assert truth.quantile_text("age", 0.5) == f"{int(np.median(codes[:, 0])) + 18}"
    known = codes[codes[:, 1] < 20, 1]
    middle = truth.quantile("pay", 0.5)
    assert 50 * np.quantile(known, 0.5) <= middle <= 50 * (np.quantile(known, 0.5) + 1)  # in the bucket of the median


def test_the_same_seed_makes_the_same_people(codes):
    assert np.array_equal(codes, synthetic_people(SCHEMA, 20_000, np.random.default_rng(1)))


def test_the_average_of_the_truth_is_that_of_the_values(codes):
    truth = Truth(SCHEMA, codes)
    assert truth.mean("age") == pytest.approx(codes[:, 0].mean() + 18)
    known = codes[codes[:, 1] < SCHEMA.attributes[1].ordered_size, 1]
    assert truth.mean("pay") == pytest.approx(50 * (known.mean() + 0.5))  # in the middle of their buckets
