"""What CONTRIBUTING promises: a method is one file and one line, an oracle a law and a reader with a line each.

The files are written here, registered by their line, and go through the functions of the contract tests.
"""

import sys

import pytest

from ahead_ldp.device import laws
from ahead_ldp.device.laws import LAWS
from ahead_ldp.mechanisms import MECHANISMS, make_mechanism
from ahead_ldp.oracles import ORACLES, make_oracle
from tests.device.closed_form import CLOSED_FORMS
from tests.mechanisms import test_contract as methods
from tests.oracles import test_oracle_laws, test_oracles
from tests.support import schema_of

METHOD = '''
"""Plain: everybody is asked about all cells."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from ahead_ldp.mechanisms.ahead.averaging import Measurement, average
from ahead_ldp.mechanisms.ahead.tree_estimates import TreeEstimate
from ahead_ldp.oracles import make_oracle
from ahead_ldp.partitions.partition import Partition
from ahead_ldp.partitions.trees import Tree
from ahead_ldp.protocol.mechanism import Group, Mechanism, Question, axes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(Mechanism):
    """Optimised unary encoding on every code."""

    name: ClassVar[str] = "plain"
    oracle: str = "oue"

    def groups(self, schema):
        """One, unless there is nothing to ask."""
        return (Group("1"),) if prod(schema.sizes) > 1 else ()

    def run(self, schema):
        """One wave, one question."""
        tree, measurements = Tree.root(axes_of(schema), max(2, *schema.sizes)), []
        for group in self.groups(schema):
            tree = tree.split(np.array([True]))[0]
            oracle = make_oracle(self.oracle, self.epsilon, tree.leaves.size)
            question = Question(tuple(range(len(schema.sizes))), Partition.of_tree(tree), oracle)
            tally = (yield {group.id: question})[group.id]
            measurements.append(Measurement(tree.leaves, oracle.estimate(tally), tally.n, oracle))
        return TreeEstimate(schema, average(tree, measurements), consistent=False)
'''

LAW = '''
"""The law of "twin", symmetric unary encoding under another name: standard library only."""

from typing import ClassVar

from ahead_ldp.device.laws import SUELaw


class TwinLaw(SUELaw):
    """p = 1 - q."""

    __slots__ = ()
    name: ClassVar[str] = "twin"
'''

ORACLE = '''
"""How reports of "twin" are read."""

from typing import ClassVar

from addition_twin_law import TwinLaw

from ahead_ldp.oracles.unary import UnaryOracle


class Twin(UnaryOracle):
    """One noisy bit for every cell."""

    __slots__ = ()
    name: ClassVar[str] = "twin"
    law_type: ClassVar[type[TwinLaw]] = TwinLaw
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder from which modules are imported; they are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("addition_")]:
        del sys.modules[name]


def test_a_method_is_one_file_and_one_line(folder, monkeypatch):
    (folder / "addition_plain.py").write_text(METHOD)
    monkeypatch.setitem(MECHANISMS, "plain", "addition_plain:Plain")  # the line
    kind = type(make_mechanism("plain", schema_of(9), 1.0))
    assert "plain" in MECHANISMS
    methods.test_record_round_trip_and_digest(kind, "1.1")
    methods.test_epsilon_that_is_none_is_refused(kind, -1.0)
    methods.test_nothing_of_a_mechanism_can_be_changed(kind)
    for schema in methods.SCHEMAS.values():
        methods.test_questions_are_private_and_every_group_answers_once(kind, schema)
        methods.test_devices_accept_every_question(kind, schema)
        methods.test_a_run_is_a_function_of_its_tallies(kind, schema)
        methods.test_there_is_an_estimate_after_every_wave_and_with_nobody(kind, schema)
        methods.test_any_group_may_be_empty_and_one_person_is_enough(kind, schema)
    methods.test_much_information_gives_the_truth(kind, 1)


def test_an_oracle_is_a_law_and_a_reader_with_a_line_each(folder, monkeypatch):
    (folder / "addition_twin_law.py").write_text(LAW)
    (folder / "addition_twin.py").write_text(ORACLE)
    from addition_twin import Twin  # type: ignore[import-not-found]
    from addition_twin_law import TwinLaw  # type: ignore[import-not-found]

    monkeypatch.setitem(LAWS, "twin", TwinLaw)  # the line of the device
    monkeypatch.setitem(ORACLES, "twin", Twin)  # the line of the oracles
    monkeypatch.setitem(CLOSED_FORMS, "twin", CLOSED_FORMS["sue"])  # and what the tests hold it against
    assert laws.law_from_record(make_oracle("twin", 1, 5).law.record()) == TwinLaw.make(1, 5)
    test_oracles.test_registry_and_records()
    for d in (2, 3, 5, 8):
        test_oracles.test_privacy_is_exactly_epsilon("twin", d)
        test_oracles.test_perturb_makes_legal_reports_of_the_devices_form("twin", d)
    test_oracles.test_log_prob_is_the_devices_law("twin")
    test_oracles.test_one_report_has_exactly_the_promised_moments("twin", 3, "1")
    test_oracles.test_no_reports_mean_no_information("twin")
    for path in (test_oracle_laws.simulated, test_oracle_laws.in_bulk, test_oracle_laws.by_devices):
        test_oracle_laws.test_counts_have_their_exact_joint_law("twin", path)
    methods.test_devices_accept_every_question(
        type(make_mechanism("flat", schema_of(9), 1.0, oracle="twin")), schema_of(9)
    )
