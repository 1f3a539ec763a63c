"""The contract, as another package inherits it: right methods pass, and planted faults are found and named."""

import re

import pytest

from ahead_ldp.oracles import ORACLES
from ahead_ldp.testing import MechanismContract, OracleContract
from tests.testing import toys


class TestHalves(MechanismContract):
    kind = toys.Halves


class TestToy(OracleContract):
    kind = toys.Toy


class AllOf:
    """All tests of a contract, and which of them fail, with what."""

    def __init__(self, contract):
        self.failed = {}
        for name in [n for n in dir(contract) if n.startswith("test_")]:
            try:
                getattr(contract, name)()
            except AssertionError as error:
                self.failed[name] = str(error)


FAULTS = {
    toys.AsksTwice: ("test_every_group_answers_once", "expected every group to be asked once, got 1 asked again"),
    toys.DependsOnOrder: (
        "test_a_run_is_a_function_of_its_tallies",
        "expected the same answers when the same tallies are told with the groups in another order",
    ),
    toys.WrongVariance: (
        "test_standard_errors_are_those_of_the_answers",
        r"expected a variance within 41 % of the promised one, got \[(1\.[6-9]|2\.[0-4])",
    ),
}


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_the_planted_fault_is_found(kind):
    name, message = FAULTS[kind]
    contract = MechanismContract.of(kind)
    with pytest.raises(AssertionError, match=message):
        getattr(contract, name)()


def test_a_wrong_variance_is_all_that_is_wrong_with_it():
    """The other tests do not fail for the fault: each of them looks at one promise."""
    contract = MechanismContract.of(toys.WrongVariance)
    contract.test_every_group_answers_once()
    contract.test_a_run_is_a_function_of_its_tallies()
    contract.test_records_come_back()


def test_faults_of_oracles_are_found():
    failed = AllOf(OracleContract.of(toys.ToyWrongVariance)).failed
    assert list(failed) == ["test_estimates_have_the_promised_moments"]
    assert re.match(r"simulated: expected the promised variance, got one [\d.]+ errors off", *failed.values())
    failed = AllOf(OracleContract.of(toys.ToyTells)).failed
    assert "test_reports_are_private" in failed


@pytest.mark.parametrize("name", ORACLES)
def test_our_oracles_pass_what_others_inherit(name):
    """The parts that our own tests of oracles do not call one by one."""
    contract = OracleContract.of(ORACLES[name])
    contract.check_record()
    contract.check_no_reports()
    contract.check_valid(13)
    if name != "olh":  # a single hash may send all codes to one value: tests/oracles has it hash by hash
        contract.check_privacy("1", 5)
