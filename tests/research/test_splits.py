"""What a split by groups costs: as wide as in a real run, wider for small groups, and refused where it must."""

import json

import numpy as np
import pytest

import ahead_ldp
from ahead_ldp.cli import main
from ahead_ldp.research import references
from ahead_ldp.research.evaluation import choose
from ahead_ldp.research.splits import group_costs
from ahead_ldp.schema.attributes import as_schema

SCHEMA = ["x=integer,0,15", "g=nominal,a|b|c"]


def test_costs_are_those_of_a_real_run_and_small_groups_cost_more():
    """Other people of the shape, with other noise: their intervals in the groups are as wide as was said.

    One run scatters by a sixth. The means over 4 planned and 8 real ones are then a tenth apart by chance.
    """
    schema, n = as_schema(SCHEMA), 60_000
    mechanism = choose(None, schema, "2", n)[0]
    costs = group_costs(mechanism, schema, n, "g", ["zipf"])
    assert [c.group for c in costs] == ["a", "b", "c"]
    shares = references.reference_shares("zipf", schema.sizes)
    np.testing.assert_allclose([c.share for c in costs], shares[1], atol=0.03)
    rng, halves = np.random.default_rng(7), []
    for run in range(8):
        columns = {"x": rng.choice(16, n, p=shares[0]), "g": np.array(["a", "b", "c"])[rng.choice(3, n, p=shares[1])]}
        estimate = ahead_ldp.simulate(columns, SCHEMA, epsilon=2, seed=run)
        low, high = estimate.by("g").share("x <= 7").interval()
        halves.append((high - low) / 2)
    half = np.mean(halves, axis=0)
    assert ((half / 1.25 < [c.half for c in costs]) & (half * 1.25 > [c.half for c in costs])).all()
    assert costs[0].half < costs[1].half < costs[2].half
    assert all(c.half > c.everybody > 0 for c in costs)
    assert costs[2].times == pytest.approx(costs[2].half / costs[2].everybody)


def test_the_plan_says_it(capsys):
    words = ["plan", "--attribute", SCHEMA[0], "--attribute", SCHEMA[1], "--epsilon", "4", "--users", "5000"]
    words += ["--method", "hdg", "--by"]
    assert main([*words, "g", "--json"]) == 0
    split = json.loads(capsys.readouterr().out)["split"]
    assert [(c["shape"], c["group"]) for c in split] == [(s, g) for s in ("uniform", "zipf") for g in "abc"]
    for by, message in (("z", "one of the attributes x, g"), ("", "one of the attributes")):
        assert main([*words, by]) == 2
        assert message in capsys.readouterr().err
    assert main(["plan", "--attribute", SCHEMA[1], "--epsilon", "4", "--users", "5000", "--by", "g"]) == 2
    assert "another attribute" in capsys.readouterr().err
