"""A plan from what a caller knows before anybody is asked: attributes, epsilon, and how many people are expected."""

from __future__ import annotations

from typing import Any

from ahead_ldp.mechanisms import Declared, Epsilon, make_mechanism
from ahead_ldp.protocol.mechanism import Mechanism
from ahead_ldp.research import planner
from ahead_ldp.research.planner import Plan
from ahead_ldp.schema.attributes import as_schema


def plan(
    schema: Declared,
    *,
    epsilon: Epsilon,
    users: int,
    method: str | type[Mechanism] | Mechanism | None = None,
    paper: bool = False,
    simulate: bool = False,
    **choices: Any,
) -> Plan:
    """What a collection would look like: waves, groups, error and widths to expect on people of four shapes.

    ``schema``, ``method``, ``paper`` and further choices are as for `simulate`; ``users`` is how many people are
    expected. Nothing about real people is read. The errors come from tables that were simulated in advance. Where those
    do not reach, and with ``simulate``, they are simulated now, which takes seconds; ``Plan.source`` says which it was.
    """
    declared = as_schema(schema)
    mechanism = make_mechanism(method, declared, epsilon, users, paper, **choices)
    return planner.plan(mechanism, declared, int(users), simulate=simulate)
