"""The contract of every registered mechanism. A new one is tested by registering it.

The checks are those that other packages inherit: ``ahead_ldp.testing``.
"""

import pytest

from ahead_ldp.device import digest
from ahead_ldp.mechanisms import MECHANISMS, mechanism_from_record
from ahead_ldp.testing import SCHEMAS, MechanismContract
from ahead_ldp.testing.mechanisms import EPSILONS, NO_EPSILONS

every_mechanism = pytest.mark.parametrize("kind", MECHANISMS.values(), ids=MECHANISMS)
# Shrinkage: their errors are not those of a linear estimate, and have tests and intervals of their own.
SHRUNK = {"adaptive", "fused"}


class Contract(MechanismContract):
    repeats = 100  # finds a variance 3.5 times too large or 1.7 times too small


def cases() -> list:
    return [
        pytest.param(kind, schema, id=f"{kind.name} {name}")
        for kind in MECHANISMS.values()
        for name, schema in SCHEMAS.items()
        if Contract.of(kind).takes(schema)
    ]


every_case = pytest.mark.parametrize(("kind", "schema"), cases())


# Records.


@every_mechanism
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_record_round_trip_and_digest(kind, epsilon):
    contract = Contract.of(kind)
    contract.check_record(epsilon)
    record = contract.make(epsilon).record()
    again = mechanism_from_record(record)
    assert type(again) is kind
    assert digest(again.record()) == digest(record)
    with pytest.raises(ValueError, match="expected"):
        mechanism_from_record({**record, "version": kind.version + 1})


@every_mechanism
@pytest.mark.parametrize("epsilon", NO_EPSILONS, ids=repr)
def test_epsilon_that_is_none_is_refused(kind, epsilon):
    Contract.of(kind).check_bad_epsilon(epsilon)


@every_mechanism
def test_nothing_of_a_mechanism_can_be_changed(kind):
    Contract.of(kind).check_frozen()


@every_mechanism
def test_more_attributes_than_a_method_is_for_are_refused(kind):
    Contract.of(kind).check_limit()


# Questions.


@every_case
def test_questions_are_private_and_every_group_answers_once(kind, schema):
    Contract.of(kind).check_questions(schema)


@every_case
def test_devices_accept_every_question(kind, schema):
    Contract.of(kind).check_devices(schema)


@every_case
def test_a_run_is_a_function_of_its_tallies(kind, schema):
    Contract.of(kind).check_pure(schema)


# Estimates.


@every_case
def test_there_is_an_estimate_after_every_wave_and_with_nobody(kind, schema):
    Contract.of(kind).check_unfinished(schema)


@every_case
def test_any_group_may_be_empty_and_one_person_is_enough(kind, schema):
    Contract.of(kind).check_empty_groups(schema)


@every_mechanism
def test_all_sizes_of_a_domain(kind):
    Contract.of(kind).check_sizes()


@every_mechanism
@pytest.mark.parametrize("seed", [1, 2])
def test_much_information_gives_the_truth(kind, seed):
    Contract.of(kind).check_truth(seed)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in SHRUNK])
def test_standard_errors_are_those_of_the_answers(name):
    Contract.of(MECHANISMS[name]).check_standard_errors()


# Simulation and collection.


@every_mechanism
def test_simulation_and_collection_have_one_law(kind):
    Contract.of(kind).check_one_law()
