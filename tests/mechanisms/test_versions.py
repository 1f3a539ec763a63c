"""Versions of a method stand beside each other: what was recorded is run by the version that it names."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.mechanisms import EARLIER, MECHANISMS, UnknownVersion, make_mechanism, mechanism_from_record, versions
from ahead_ldp.mechanisms.ahead.flat import Flat
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.protocol.mechanism import Question, axes_of
from ahead_ldp.protocol.session import ReplayMismatch, Session
from ahead_ldp.schema.attributes import as_schema

TEXTS = ["age=integer,0,15"]
DATA = {"age": np.random.default_rng(2).integers(0, 12, 3000)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Halves(Flat):
    """Flat with other questions: cells of two codes each."""

    version: ClassVar[int] = 2

    def run(self, schema):
        run = Flat.run(self, schema)
        (group, question), *_ = next(run).items()
        wide = Partition.equal_grid(axes_of(schema), [8])
        oracle = type(question.oracle).make(self.epsilon, wide.cells)
        tally = (yield {group: Question(question.attributes, wide, oracle)})[group]
        spread = oracle.estimate(tally).repeat(2) / 2
        tallies = {group: type(tally)(tally.n, np.rint(tally.n * np.clip(spread, 0, 1)).astype(np.int64))}
        try:
            run.send(tallies)
        except StopIteration as stop:
            return stop.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothed(Flat):
    """Flat with the same questions and another estimate."""

    estimate_version: ClassVar[int] = 2

    def run(self, schema):
        run = Flat.run(self, schema)
        wave = next(run)
        tallies = yield wave
        ((group, tally),) = tallies.items()
        try:
            run.send({group: type(tally)(tally.n, np.full_like(tally.counts, int(tally.counts.mean())))})
        except StopIteration as stop:
            return stop.value


@pytest.fixture
def halves(monkeypatch):
    """A program that is one version of the questions further."""
    monkeypatch.setitem(MECHANISMS, "flat", Halves)
    monkeypatch.setitem(EARLIER, "flat/1/1", Flat)


@pytest.fixture
def smoothed(monkeypatch):
    """A program that is one version of the estimate further."""
    monkeypatch.setitem(MECHANISMS, "flat", Smoothed)
    monkeypatch.setitem(EARLIER, "flat/1/1", Flat)


def saved(path, method="flat"):
    estimate = ahead_ldp.simulate(DATA, TEXTS, method=method, epsilon=2, seed=3)
    estimate.save(path)
    return estimate


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_version_of_a_method_is_found_by_its_numbers(name):
    for (asked, read), cls in versions(name).items():
        assert (cls.name, cls.version, cls.estimate_version) == (name, asked, read)
    assert versions(name)[MECHANISMS[name].version, MECHANISMS[name].estimate_version] is MECHANISMS[name]


def test_earlier_versions_stand_under_their_own_numbers():
    for key in EARLIER:
        cls = EARLIER[key]
        assert key == f"{cls.name}/{cls.version}/{cls.estimate_version}"
        assert cls.name in MECHANISMS


def test_a_record_is_run_by_the_version_that_it_names(halves):
    new, old = make_mechanism("flat", TEXTS, 1), Flat(epsilon=1)
    assert type(new) is Halves
    assert (new.record()["version"], old.record()["version"]) == (2, 1)
    assert type(mechanism_from_record(new.record())) is Halves
    assert type(mechanism_from_record(old.record())) is Flat


def test_a_version_that_is_gone_is_named(halves, monkeypatch):
    old = Flat(epsilon=1).record()
    monkeypatch.delitem(EARLIER, "flat/1/1")
    with pytest.raises(UnknownVersion, match="expected a version of the method flat among 2, got 1"):
        mechanism_from_record(old)


def test_an_estimate_of_the_version_before_is_read_the_same(tmp_path, monkeypatch):
    before = saved(tmp_path / "estimate.json")
    monkeypatch.setitem(MECHANISMS, "flat", Halves)
    monkeypatch.setitem(EARLIER, "flat/1/1", Flat)
    after = ahead_ldp.load(tmp_path / "estimate.json")
    np.testing.assert_array_equal(after.fingerprint(), before.fingerprint())
    again = saved(tmp_path / "new.json")
    assert again.provenance.mechanism.version == 2
    assert again.provenance.waves[0].wave["1"].oracle.d == 8
    ahead_ldp.load(tmp_path / "new.json")


def test_other_questions_under_the_same_version_are_a_mismatch(tmp_path, monkeypatch):
    saved(tmp_path / "estimate.json")
    monkeypatch.setattr(Halves, "version", 1)
    monkeypatch.setitem(MECHANISMS, "flat", Halves)
    with pytest.raises(ReplayMismatch, match="the question of group 1 is not the saved one"):
        ahead_ldp.load(tmp_path / "estimate.json")


# Estimates.


def test_the_version_of_an_estimate_is_named_only_where_it_is_not_the_first(smoothed):
    assert "estimate_version" not in Flat(epsilon=1).record()
    assert Smoothed(epsilon=1).record()["estimate_version"] == 2
    assert type(mechanism_from_record(Smoothed(epsilon=1).record())) is Smoothed
    assert type(mechanism_from_record(Flat(epsilon=1).record())) is Flat
    assert type(mechanism_from_record(Flat(epsilon=1).record(), "newest")) is Smoothed
    assert type(mechanism_from_record(Smoothed(epsilon=1).record(), 1)) is Flat
    for wrong in (0, 1, "2", True, None, []):
        with pytest.raises(ValueError, match="expected estimate_version to be an integer above 1, or not named"):
            mechanism_from_record({**Flat(epsilon=1).record(), "estimate_version": wrong})
    with pytest.raises(UnknownVersion, match="expected a version of the estimate of flat 1 among 1, 2, got 3"):
        mechanism_from_record(Flat(epsilon=1).record(), 3)


def test_every_method_has_estimates_of_the_version_that_records_leave_out():
    """Raise a version only with the class that it replaces in EARLIER: records without a version mean the first."""
    for name in MECHANISMS:
        for asked, _ in versions(name):
            assert (asked, 1) in versions(name), f"{name} {asked} has no estimate of version 1"


def test_a_saved_estimate_is_read_by_the_version_that_it_names(tmp_path, monkeypatch):
    before = saved(tmp_path / "estimate.json")
    monkeypatch.setitem(MECHANISMS, "flat", Smoothed)
    monkeypatch.setitem(EARLIER, "flat/1/1", Flat)
    np.testing.assert_array_equal(ahead_ldp.load(tmp_path / "estimate.json").fingerprint(), before.fingerprint())
    newest = ahead_ldp.load(tmp_path / "estimate.json", reading="newest")
    assert not np.allclose(newest.fingerprint(), before.fingerprint())
    newest.save(tmp_path / "newest.json")
    assert newest.provenance.campaign == before.provenance.campaign
    again = ahead_ldp.load(tmp_path / "newest.json")
    assert type(again.provenance.mechanism) is Smoothed
    np.testing.assert_array_equal(again.fingerprint(), newest.fingerprint())
    np.testing.assert_array_equal(
        ahead_ldp.load(tmp_path / "newest.json", reading=1).fingerprint(), before.fingerprint()
    )


def test_versions_of_an_estimate_ask_the_same(smoothed):
    schema = as_schema(TEXTS)
    asked = [Session(cls(epsilon=1), schema, "ab" * 32).question_records() for cls in (Flat, Smoothed)]
    assert asked[0] == asked[1]
