"""The contract of a mechanism: what the rest of the package, the service and people's devices rely on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from math import prod, sqrt
from typing import Any, ClassVar

import numpy as np

from ahead_ldp.device.canonical import canonical_bytes, digest
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.epsilon import exact_epsilon
from ahead_ldp.device.question import Policy, check_question
from ahead_ldp.engines.collection import run_collection
from ahead_ldp.engines.simulation import Population, run_simulation
from ahead_ldp.estimates.answers import Answers
from ahead_ldp.estimates.estimate import Estimate
from ahead_ldp.oracles.tally import Tally
from ahead_ldp.protocol.mechanism import Mechanism, Tallies, Wave
from ahead_ldp.protocol.session import Session, finish
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.schema.workloads import Workload, point_workload, random_workload, true_answers
from ahead_ldp.testing.statistics import PASS, hold, refuses


def _codes(*sizes: int) -> Schema:
    return as_schema([f"x{i}=codes,{size}" for i, size in enumerate(sizes)])


# Domains of every kind: one code, no power of anything, unequal attributes, categories, missing values.
SCHEMAS: dict[str, Schema] = {
    "one code": _codes(1),
    "two codes": _codes(2),
    "prime": _codes(37),
    "power": _codes(64),
    "ones": _codes(1, 1),
    "one beside many": _codes(1, 9),
    "unequal": _codes(3, 17),
    "square": _codes(8, 8),
    "three": _codes(4, 2, 5),
    "nominal": as_schema(["color=nominal,red|green|blue|grey|pink"]),
    "missing": as_schema(["x=codes,12,missing=cell"]),
    "mixed": as_schema(["x=codes,7,missing=cell", "color=nominal,red|green|blue", "size=category,S|M|L"]),
}
EPSILONS = (1, 0.5, "1.1", 2.25)
NO_EPSILONS = (0, -1.0, float("nan"), float("inf"), None)
COLLECTIONS = 40


class MechanismContract:
    """Tests of one mechanism. Inherit from it in a class whose name begins with ``Test``, and set ``kind``.

    ``choices`` are given to every mechanism that is made. ``repeats`` is how many simulations the standard errors are
    judged by: 300 find a variance that is 1.7 times too small or too large.
    """

    kind: ClassVar[type[Mechanism]]
    choices: ClassVar[dict[str, Any]] = {}
    repeats: ClassVar[int] = 300

    @classmethod
    def of(cls, kind: type[Mechanism]) -> MechanismContract:
        """The contract of a class, without a class of tests."""
        return type(f"Contract of {kind.__name__}", (cls,), {"kind": kind})()

    # What pytest runs.

    def test_records_come_back(self) -> None:
        """A mechanism and its canonical record are the same thing."""
        for epsilon in EPSILONS:
            self.check_record(epsilon)

    def test_what_is_no_epsilon_is_refused(self) -> None:
        """Zero, negative numbers, infinity and nothing at all."""
        for epsilon in NO_EPSILONS:
            self.check_bad_epsilon(epsilon)

    def test_nothing_can_be_changed(self) -> None:
        """A mechanism is frozen."""
        self.check_frozen()

    def test_too_many_attributes_are_refused(self) -> None:
        """Where there is a limit, it is said before anybody is asked."""
        self.check_limit()

    def test_every_group_answers_once(self) -> None:
        """Nobody is asked twice, and every question keeps epsilon."""
        for schema in self.schemas():
            self.check_questions(schema)

    def test_devices_accept_every_question(self) -> None:
        """A device checks a question in full before it answers."""
        for schema in self.schemas():
            self.check_devices(schema)

    def test_a_run_is_a_function_of_its_tallies(self) -> None:
        """The same tallies give the same questions and answers, in whatever order they are told."""
        for schema in self.schemas():
            self.check_pure(schema)

    def test_there_is_an_estimate_after_every_wave(self) -> None:
        """A run can be ended at any time, and with nobody in it."""
        for schema in self.schemas():
            self.check_unfinished(schema)

    def test_any_group_may_be_empty(self) -> None:
        """One person is enough."""
        for schema in self.schemas():
            self.check_empty_groups(schema)

    def test_no_size_of_a_domain_is_special(self) -> None:
        """From 1 to 70 codes no code is lost."""
        self.check_sizes()

    def test_much_information_gives_the_truth(self) -> None:
        """10^7 people at epsilon 6."""
        for seed in (1, 2):
            self.check_truth(seed)

    def test_simulation_and_collection_have_one_law(self) -> None:
        """What is simulated is what devices would send."""
        self.check_one_law()

    def test_standard_errors_are_those_of_the_answers(self) -> None:
        """An answer is as far from the truth as its standard error says."""
        self.check_standard_errors()

    # The checks.

    def make(self, epsilon: Any = 1.0, users: int = 2000) -> Mechanism:
        """The mechanism with its choices; one that plans for people is told how many to expect."""
        names = {f.name for f in dataclasses.fields(self.kind)}
        return self.kind(epsilon=epsilon, **{**({"users": users} if "users" in names else {}), **self.choices})

    def takes(self, schema: Schema) -> bool:
        """Whether the mechanism is for attributes of this number and these kinds."""
        few_enough = self.kind.most_attributes is None or len(schema.attributes) <= self.kind.most_attributes
        ordered = all(a.kind != "nominal" and a.missing != "cell" for a in schema.attributes)
        return few_enough and (ordered or not self.kind.ordered_only)

    def schemas(self) -> Iterator[Schema]:
        """The domains that it is for."""
        return (schema for schema in SCHEMAS.values() if self.takes(schema))

    def check_record(self, epsilon: Any) -> None:
        """The record has every choice, gives the mechanism back, and is different for another mechanism."""
        mechanism, kind = self.make(epsilon), self.kind
        record = mechanism.record()
        again = kind.from_record(record)
        hold(again.record() == record, f"the record of {kind.name} at epsilon {epsilon!r} comes back as another")
        hold(exact_epsilon(again.epsilon) == exact_epsilon(epsilon), f"epsilon {epsilon!r} comes back as another")
        fields = {f.name for f in dataclasses.fields(kind)} - {"epsilon"}
        hold(set(record["choices"]) == fields, f"the record has the choices {fields}")
        hold(digest(self.make("7.5").record()) != digest(record), "another epsilon has another digest")
        for name in fields:
            less = {**record, "choices": {k: v for k, v in record["choices"].items() if k != name}}
            refuses(lambda less=less: kind.from_record(less), f"a record without {name}", name)  # type: ignore[misc]
        refuses(lambda: kind.from_record({**record, "version": kind.version + 1}), "a record of another version")

    def check_bad_epsilon(self, epsilon: Any) -> None:
        """It is refused, and named."""
        refuses(lambda: self.make(epsilon), f"epsilon {epsilon!r}", "expected", "epsilon", repr(epsilon))

    def check_frozen(self) -> None:
        """No field can be set."""
        mechanism: Any = self.make()
        frozen = dataclasses.FrozenInstanceError
        refuses(lambda: setattr(mechanism, "epsilon", 2), "a change of epsilon", error=frozen)

    def check_limit(self) -> None:
        """One attribute more than ``most_attributes`` is refused by the run."""
        schema = _codes(*[3] * ((self.kind.most_attributes or 3) + 1))
        run = self.make().run(schema)
        if self.takes(schema):
            next(run, None)
            return
        refuses(lambda: next(run), f"{len(schema.attributes)} attributes", "expected", "attribute")

    def check_questions(self, schema: Schema) -> None:
        """Every group is asked in exactly one wave, by a law that is private."""
        for epsilon in ("0.5", "2"):
            mechanism = self.make(epsilon)
            groups = mechanism.groups(schema)
            waves, _, _ = play(mechanism, schema, 3000)
            asked = [group for wave in waves for group in wave]
            twice = sorted({group for group in asked if asked.count(group) > 1})
            hold(not twice, f"expected every group to be asked once, got {', '.join(twice)} asked again")
            known = sorted(group.id for group in groups)
            hold(sorted(asked) == known, f"expected the groups {known} to be asked, got {sorted(asked)}")
            hold(all(waves), "expected a question in every wave")
            hold(all(type(g.share) is int and g.share > 0 for g in groups), "expected shares to be positive integers")
            for question in (question for wave in waves for question in wave.values()):
                private = question.oracle.law.is_private(exact_epsilon(epsilon))
                hold(private, f"expected every question to keep epsilon {epsilon}, got {question.oracle.law}")
                hold(question.partition.cells == question.oracle.d >= 2, "expected at least two cells in a question")
                hold(len(set(question.attributes)) == len(question.attributes) > 0, "expected each attribute once")
            hold(prod(schema.sizes) > 1 or not groups, "expected no question about a domain of one code")

    def check_devices(self, schema: Schema) -> None:
        """A device accepts every question, and finds the same cell."""
        session = Session(self.make("1.5"), schema)
        _, history, _ = play(session.mechanism, schema, 3000)
        for told in history:
            for group, record in session.question_records().items():
                question = check_question(canonical_bytes(record), schema, session.campaign, Policy("1.5", 2**20))
                mine = session.wave[group]
                hold(question.law == mine.oracle.law, "expected the device to read the oracle's law")
                codes = np.array([size - 1 for size in schema.sizes])
                asked = list(mine.attributes)
                cell = question.partition.cell(question.axes, codes[asked].tolist())
                hold(cell == mine.partition.locate(codes[None, asked])[0], "expected the device's cell to be ours")
            session.tell(told)
        hold(not session.is_open, "expected the run to end with its waves")

    def check_pure(self, schema: Schema) -> None:
        """Told the same again, and in another order of the groups, it asks and answers the same to the last bit."""
        _, history, estimate = play(self.make(), schema, 2000)
        expected = estimate.answer(point_workload(schema))
        questions: list[Any] = []
        for order in ("again", "with the groups in another order"):
            session, asked = Session(self.make(), schema), []
            for told in history:
                asked.append({g: canonical_bytes(r) for g, r in session.question_records().items()})
                turned = dict(reversed(list(told.items()))) if questions else told
                session.tell(turned)
            questions.append(asked)
            answers = session.finish().answer(point_workload(schema))
            hold(asked == questions[0], f"expected the same questions when the same tallies are told {order}")
            same = np.array_equal(answers.values, expected.values)
            hold(same, f"expected the same answers when the same tallies are told {order}")
            same = np.array_equal(answers.standard_error, expected.standard_error)
            hold(same, f"expected the same standard errors when the same tallies are told {order}")

    def check_unfinished(self, schema: Schema) -> None:
        """An estimate after any number of waves, with everybody and with nobody."""
        mechanism = self.make()
        _, history, complete = play(mechanism, schema, 2000)
        for waves in range(len(history) + 1):
            check_estimate(finish(mechanism, schema, history[:waves]), schema)
        check_estimate(complete, schema)
        check_estimate(play(mechanism, schema, 0)[2], schema)

    def check_empty_groups(self, schema: Schema) -> None:
        """An estimate of one person, and with any group left out."""
        mechanism = self.make()
        check_estimate(play(mechanism, schema, 1)[2], schema)
        _, history, _ = play(mechanism, schema, 600)
        for group in [g for told in history for g in told][:6]:
            rng = np.random.default_rng(5)
            session = Session(mechanism, schema)
            while session.is_open:
                session.tell(
                    {
                        g: Tally.empty(q.oracle.outcomes)
                        if g == group
                        else q.oracle.simulate(rng.multinomial(100, np.full(q.oracle.d, 1 / q.oracle.d)), rng)
                        for g, q in session.wave.items()
                    }
                )
            check_estimate(session.finish(), schema)

    def check_sizes(self) -> None:
        """No size is special, no code is lost: at epsilon 8 everybody in the last code is found there."""
        rng = np.random.default_rng(6)
        for size in [*range(1, 20), 31, 32, 33, 63, 64, 65, 70]:
            schema = _codes(size)
            histogram = np.zeros(size, np.int64)
            histogram[-1] = 20_000
            mechanism = self.make(8, users=20_000)
            estimate = run_simulation(mechanism, schema, Population.of_histogram(histogram), rng)
            last = estimate.answer(Workload.from_codes([size], [[size - 1, size - 1]])).values[0]
            hold(np.isfinite(last), f"expected a number for the last of {size} codes, got {last}")
            found = last > 0.8 or not (size == 1 or mechanism.groups(schema))
            hold(found, f"expected everybody in the last of {size} codes, got {last:.3f} of them")

    def check_truth(self, seed: int) -> None:
        """12 random ranges, off by less than 2 points; a method that asks nobody is let off."""
        rng = np.random.default_rng(seed)
        sizes = (16, 16) if self.takes(_codes(16, 16)) else (40,)
        histogram = rng.multinomial(10**7, rng.dirichlet(np.ones(prod(sizes)))).reshape(sizes)
        workload, mechanism = random_workload(sizes, 12, rng), self.make(6, users=10**7)
        population = Population.of_histogram(histogram)
        answers = run_simulation(mechanism, _codes(*sizes), population, rng).answer(workload)
        off = np.abs(answers.values - true_answers(workload, histogram)).max()
        asks = bool(mechanism.groups(_codes(*sizes)))
        hold(
            off < 0.02 or not asks, f"expected 10^7 people at epsilon 6 to give the truth, got an answer {off:.3f} off"
        )

    def check_one_law(self) -> None:
        """The mean of 40 collections of 300 people against 200 simulations, and their spreads.

        Collections draw from the operating system, so the bounds leave two false alarms in 10^6 runs: means within 5.5
        standard errors, the ratio of variances, F(39, 199), in (1/4, 3). A variance ten times off never passes.
        """
        schema, histogram = _codes(6), np.array([120, 10, 50, 0, 20, 100])
        people = [{"x0": int(code)} for code in np.repeat(np.arange(6), histogram)]
        workload = Workload.from_codes([6], [[0, 1], [2, 4]])
        mechanism, rng = self.make(users=300), np.random.default_rng(7)
        population = Population.of_histogram(histogram)

        def values(estimate: Estimate) -> Any:
            """Its answers, without errors."""
            return estimate.answer(workload, errors=False).values

        simulations = range(5 * COLLECTIONS)
        simulated = np.stack([values(run_simulation(mechanism, schema, population, rng)) for _ in simulations])
        collected = np.stack(
            [values(run_collection(mechanism, schema, people).estimate) for _ in range(COLLECTIONS)]  # type: ignore[arg-type]
        )
        spread = simulated.std(axis=0)
        if not mechanism.groups(schema):
            hold(
                (spread < 1e-12).all() and np.allclose(collected[0], simulated[0]), "expected no noise without reports"
            )
            return
        off = np.abs(simulated.mean(axis=0) - collected.mean(axis=0)) / (spread * sqrt(1.2 / COLLECTIONS))
        hold((off < PASS + 0.5).all(), f"expected simulations and collections of one mean, got {off} standard errors")
        ratio = collected.var(axis=0) / simulated.var(axis=0)
        hold(((ratio > 1 / 4) & (ratio < 3)).all(), f"expected one variance in both, got ratios of {ratio}")

    def check_standard_errors(self) -> None:
        """Mean squared errors of ``repeats`` simulations, over what the answers' standard errors make them.

        20,000 people at epsilon 4, no code near 0: the ratio is 1 up to 5 sqrt(2 / repeats). Answers that say that they
        leave a bias out are not judged.
        """
        schema, rng = _codes(16), np.random.default_rng(3)
        shares = 1 + rng.random(16)
        histogram = np.floor(20_000 * shares / shares.sum()).astype(np.int64)
        workload = Workload.from_codes([16], [[0, 3], [4, 7], [0, 7], [2, 12], [5, 5]])
        mechanism, population = self.make(4, users=20_000), Population.of_histogram(histogram)
        if not mechanism.groups(schema):
            return
        truth = true_answers(workload, histogram)
        runs: list[Answers] = [
            run_simulation(mechanism, schema, population, rng).answer(workload) for _ in range(self.repeats)
        ]
        errors = np.mean([(answers.values - truth) ** 2 for answers in runs], axis=0)
        claimed = np.mean([answers.spread**2 for answers in runs], axis=0)
        judged = ~np.any([answers.bias_not_included for answers in runs], axis=0)
        ratio = errors[judged] / claimed[judged]
        bound = PASS * sqrt(2 / self.repeats)
        said = f"expected a variance within {100 * bound:.0f} % of the promised one, got {np.round(ratio, 2)} times it"
        hold((np.abs(ratio - 1) < bound).all(), said)


def play(
    mechanism: Mechanism, schema: Schema, people: int, seed: int = 1
) -> tuple[list[Wave], list[Tallies], Estimate]:
    """A whole run, with so many people of a skewed population."""
    rng = np.random.default_rng(seed)
    weight = 0.8 ** np.arange(prod(schema.sizes)).reshape(schema.sizes)
    counts = rng.multinomial(people, (weight / weight.sum()).reshape(-1)).reshape(schema.sizes)
    groups = mechanism.groups(schema)
    parts = Population.of_histogram(counts).divide(groups, rng) if people and groups else {}
    waves: list[Wave] = []
    history: list[Tallies] = []
    run = mechanism.run(schema)
    try:
        wave = next(run)
        while True:
            strangers = sorted(set(wave) - {group.id for group in groups})
            hold(not strangers, f"expected questions to groups that were declared, got {', '.join(strangers)}")
            told = {
                g: q.oracle.simulate(parts[g].cells(q), rng) if parts else Tally.empty(q.oracle.outcomes)
                for g, q in wave.items()
            }
            waves.append(wave)
            history.append(told)
            wave = run.send(told)
    except StopIteration as stop:
        return waves, history, stop.value


def check_estimate(estimate: Estimate, schema: Schema) -> None:
    """Answers are finite, the whole domain is 1 and nothing is 0, whatever is known."""
    hold(estimate.schema == schema, "expected the estimate to have the schema of the run")
    workload = random_workload(schema, 15, np.random.default_rng(3))
    answers = estimate.answer(workload)
    hold(np.isfinite(answers.values).all(), f"expected finite answers, got {answers.values}")
    hold((answers.standard_error >= 0).all(), f"expected standard errors >= 0, got {answers.standard_error}")
    hold(answers.bias_not_included.shape == (15,), "expected a mark for every answer")
    whole = Workload.from_codes(schema.sizes, [[[0, size - 1] for size in schema.sizes]])
    everybody = estimate.answer(whole).values[0]
    hold(abs(everybody - 1.0) < 1e-6, f"expected the whole domain to be 1, got {everybody}")
    nothing = Workload(schema.sizes, np.zeros((1, len(schema.sizes), 2)), np.array([0]), 1)
    hold(abs(estimate.answer(nothing).values[0]) < 1e-9, "expected a range without a code to be 0")
    if estimate.consistent:
        points = estimate.answer(point_workload(schema), errors=False).values
        hold(points.min() >= -1e-9, "expected no negative share in a consistent estimate")
        hold(abs(points.sum() - 1.0) < 1e-6, "expected the shares of a consistent estimate to sum to 1")
        sums = true_answers(workload, np.maximum(points, 0.0).reshape(schema.sizes))
        hold(np.abs(answers.values - sums).max() < 1e-6, "expected a consistent estimate to add up")
    without = estimate.answer(workload, errors=False)
    hold(np.abs(without.values - answers.values).max() < 1e-12, "expected the same answers with and without errors")
