"""A user's script that uses everything public; `mypy --strict` passes on it."""

import numpy as np
from numpy.typing import NDArray

import ahead_ldp
from ahead_ldp import (
    MECHANISMS,
    Answer,
    Answers,
    Attribute,
    Beyond,
    Comparison,
    Difference,
    Draft,
    Either,
    Estimate,
    Findings,
    Mean,
    Mechanism,
    Quantiles,
    Query,
    Schema,
    Series,
    Workload,
)

version: str = ahead_ldp.__version__
people = {"age": np.array([20, 30, 40]), "town": ["A", "B", "A"]}

draft: Draft = ahead_ldp.infer(people, ["age", "town"], buckets=16)
schema: Schema = draft.review(age=(18, 99), town=["A", "B"]).schema()
other: Schema = ahead_ldp.as_schema(["age=integer,18,99", "town=nominal,A|B"])
first: Attribute = other.attributes[0]
method: Mechanism = ahead_ldp.make_mechanism("flat", schema, np.float32(1.0), users=3)
known: list[str] = sorted(MECHANISMS)

estimate: Estimate = ahead_ldp.simulate(people, schema, epsilon=1, method=method, clip=True, seed=1)
moved: int = sum(estimate.clipped.values())
asked: Answers = estimate.ask(
    "age > 30",
    ("age", 30, 39),
    {"age": (30, None), "town": ["A"]},
    Query({"age": Either(((None, 20), (Beyond(60), None)))}),
    snap="outward",
)
one: Answer = asked["age > 30"]
share: float = one.share
low, high = one.interval(0.9, kind="model")
shares: NDArray[np.float64] = asked.share + asked.low + asked.high + asked.standard_error
rows: int = asked.to_frame("polars").height
plain: NDArray[np.float64] = asked.to_frame("dict")["share"]
names: list[str] = asked.to_frame("arrow").column_names
pandas_frame = asked.to_frame("pandas", level=0.9)
quantiles: Quantiles = estimate.quantiles("age", [0.5])
table: str = quantiles.table() + asked.table() + estimate.summary()
mean: Mean = estimate.mean("age")
average: float = float(mean)
synthetic: int = estimate.sample(10, seed=1, backend="polars").height
workload: Workload = Workload.from_queries(schema, ["age > 30"])
again: Answers = estimate.answer(workload)
estimate.save("estimate.json")
loaded: Estimate = ahead_ldp.load("estimate.json")
ahead_ldp.load_schema("schema.toml")
collected: Estimate = ahead_ldp.collect(people, schema, epsilon="0.5", progress=False)
ahead_ldp.plot_estimate(estimate, "age").savefig("age.png")
ahead_ldp.plot_answers(asked).savefig("answers.png")
ahead_ldp.plot_tree(estimate).savefig("tree.png")
estimate.plot("age").savefig("again.png")

spread: Findings = estimate.std("age")
in_groups: Findings = estimate.by("town").mean("age")
for_everybody: Findings = estimate.calibrated({"town": {"A": 0.4, "B": 0.6}}).ask("age > 30")
likely: NDArray[np.bool_] = estimate.mode("age").region()
since: Answers = estimate.since(collected).ask("age > 30")
change: Difference = ahead_ldp.difference(collected, estimate)
moved_mean: Findings = change.mean("age")
rounds: Series = Series({"first": estimate, "second": collected})
trend: Findings = rounds.trend("age > 30")
page: str = ahead_ldp.report_page(estimate, "age > 30", title="Ages")
file: bytes = ahead_ldp.report_pdf(estimate, "age > 30", title="Ages")
expected: ahead_ldp.Plan = ahead_ldp.plan(schema, epsilon=1, users=1000, method="flat")
beside: Comparison = ahead_ldp.compare(people, schema, epsilon=1, methods=["flat", "hio"], repeats=3)
ahead_ldp.plot_cdf(estimate, "age").savefig("cdf.png")
ahead_ldp.plot_difference(change).savefig("change.png")
ahead_ldp.plot_findings(spread).savefig("spread.png")
