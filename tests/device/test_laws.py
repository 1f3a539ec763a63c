"""The contract of every registered law: private, sharp, exact. A new law is tested by registering it."""

import dataclasses
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import ceil, sqrt
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import LAWS, Law, Reason, ReportRejected, SystemWords, law_from_record
from ahead_ldp.device.epsilon import exact_epsilon
from ahead_ldp.device.laws import GRRLaw, HRRLaw, OLHLaw, OUELaw, SSLaw, SUELaw, SWLaw
from tests.device.closed_form import CLOSED_FORMS, SMALL, wide_words
from tests.device.enumeration import Scripted, enumerated
from tests.device.exponential import taylor_bounds

EPSILONS = [
    "0.01",
    "0.02",
    "0.05",
    "0.1",
    "0.2",
    "0.5",
    "0.69",
    "1",
    "1.1",
    "1.5",
    "2",
    "3",
    "4",
    "5.5",
    "7",
    "8",
]
CELLS = [2, 3, 5, 17, 256, 1024]
THRESHOLDS = {"keep": 1, "p_num": 1, "q_num": -1}  # the step that gives privacy away

every_law = pytest.mark.parametrize("name", LAWS)
every_small_law = pytest.mark.parametrize("law", [law for laws in SMALL.values() for law in laws], ids=repr)


def test_every_registered_law_has_its_closed_form_and_small_examples():
    assert set(CLOSED_FORMS) == set(SMALL) == set(AGAINST) == set(LAWS)
    assert all(law.name == name for name, laws in SMALL.items() for law in laws)
    assert all(LAWS[name].name == name for name in LAWS)


# Privacy of what ``make`` gives, in rational arithmetic.


def check_private_and_sharp(law: Law, epsilon: Fraction) -> None:
    assert law.ratio() <= taylor_bounds(epsilon)[0], "not private"
    assert law.ratio() >= taylor_bounds(epsilon * (1 - Fraction(1, 10**6)))[1], "gives accuracy away"


@every_law
@pytest.mark.parametrize("cells", CELLS)
def test_true_epsilon_is_within_a_millionth_below_the_declared_one(name, cells):
    for epsilon in EPSILONS:
        law = LAWS[name].make(epsilon, cells)
        check_private_and_sharp(law, exact_epsilon(epsilon))
        assert law.is_private(exact_epsilon(epsilon))
        assert law.is_sharp(exact_epsilon(epsilon))


def one_step_less_private(law: Law) -> Law:
    (threshold,) = set(law.parameter_names()) & set(THRESHOLDS)
    return dataclasses.replace(law, **{threshold: getattr(law, threshold) + THRESHOLDS[threshold]})


@every_law
@pytest.mark.parametrize("cells", CELLS)
def test_the_threshold_cannot_move_one_step_further(name, cells):
    for epsilon in EPSILONS:
        bad = one_step_less_private(LAWS[name].make(epsilon, cells))
        assert bad.ratio() > taylor_bounds(exact_epsilon(epsilon))[1]
        assert not bad.is_private(exact_epsilon(epsilon))


# The law of ``draw``, by all words of a small size.


def check_law(law: Law) -> None:
    """``draw`` has the closed form's probabilities, and their largest ratio is ``ratio()``."""
    closed = CLOSED_FORMS[law.name]
    worst = Fraction(0)
    for wide in wide_words(law):
        drawn = [enumerated(law, code, wide) for code in range(law.cells)]
        payloads = set().union(*(found for found, _ in drawn))
        for code, (found, rest) in enumerate(drawn):
            assert sum(found.values()) + rest == 1
            assert sum(closed(law, code, y) for y in payloads) == 1
            for y in payloads:
                assert found.get(y, 0) <= closed(law, code, y) <= found.get(y, 0) + rest
        for y in payloads:
            given_code = [closed(law, code, y) for code in range(law.cells)]
            worst = max(worst, max(given_code) / min(given_code))
    assert worst == law.ratio()


@every_small_law
def test_draw_has_exactly_its_law(law):
    check_law(law)


@every_small_law
def test_payloads_that_can_be_drawn_are_exactly_those_accepted(law):
    drawable = set()
    for wide in wide_words(law):
        for code in range(law.cells):
            drawable |= enumerated(law, code, wide)[0].keys()
    assert {len(y) for y in drawable} == {law.payload_length}
    openings = {y[:-1] for y in drawable}
    accepted = {y for opening in openings for last in range(256) if accepts(law, y := opening + bytes([last]))}
    assert accepted == drawable


def accepts(law: Law, payload: bytes) -> bool:
    try:
        law.check_payload(payload)
    except ReportRejected:
        return False
    return True


@pytest.mark.parametrize("law", [HRRLaw(5, 32, 2**31 + 1), HRRLaw(8, 64, 2**63 + 1)], ids=repr)
def test_hadamard_rows_are_uniform_in_the_word(law):
    """``wide_words`` takes one 32-bit word for each row: all others give the same rows, equally often."""
    rows = Counter(
        int.from_bytes(law.draw(1, Scripted([top + low, 0])), "big") // 2
        for top in (0, 2**31, 2**32 - 8)
        for low in range(8)
    )
    assert set(rows.values()) == {3}
    assert len(rows) == 8


def test_hash_is_uniform_on_any_three_codes():
    """The polynomials below a small prime take every triple of values once; the law uses the prime 2**31 - 1."""
    prime, codes = 7, (0, 2, 5)
    triples = Counter(
        tuple((a * x * x + b * x + c) % prime for x in codes)
        for a in range(prime)
        for b in range(prime)
        for c in range(prime)
    )
    assert len(triples) == prime**3


# Payloads on real word sizes.


@every_law
@pytest.mark.parametrize("cells", CELLS)
def test_length_is_the_same_for_all_values_and_drawn_payloads_pass(name, cells):
    law = LAWS[name].make(1, cells)
    lengths = set()
    for code in {0, 1, cells // 2, cells - 1}:
        for _ in range(10):
            payload = law.draw(code, SystemWords())
            law.check_payload(payload)
            lengths.add(len(payload))
    assert lengths == {law.payload_length}


def rejected(law: Law, payload: bytes) -> Reason:
    with pytest.raises(ReportRejected) as caught:
        law.check_payload(payload)
    return caught.value.reason


@every_law
def test_another_length_is_refused(name):
    law = LAWS[name].make(1, 300)
    payload = law.draw(7, SystemWords())
    assert rejected(law, b"") is Reason.LENGTH
    assert rejected(law, payload[:-1]) is Reason.LENGTH
    assert rejected(law, payload + b"\0") is Reason.LENGTH


def test_what_cannot_be_drawn_is_refused_with_its_reason():
    grr, hrr, sw = GRRLaw.make(1, 300), HRRLaw.make(1, 300), SWLaw.make(1, 300)
    assert rejected(grr, (300).to_bytes(2, "big")) is Reason.RANGE
    assert rejected(hrr, (1024).to_bytes(2, "big")) is Reason.RANGE
    assert rejected(sw, sw.outcomes.to_bytes(2, "big")) is Reason.RANGE
    assert accepts(grr, (299).to_bytes(2, "big"))
    assert accepts(hrr, (1023).to_bytes(2, "big"))
    assert accepts(sw, (sw.outcomes - 1).to_bytes(2, "big"))

    olh = OLHLaw.make(1, 300)
    good = olh.draw(7, SystemWords())
    for i in (0, 4, 8):
        assert rejected(olh, good[:i] + (2**31 - 1).to_bytes(4, "big") + good[i + 4 :]) is Reason.RANGE
    assert rejected(olh, good[:12] + bytes([olh.g])) is Reason.RANGE

    for unary in (OUELaw.make(1, 11), SUELaw.make(1, 11)):
        assert accepts(unary, bytes([0xFF, 0b111]))
        assert rejected(unary, bytes([0, 0b1000])) is Reason.PADDING
    ss = SSLaw(11, 32, 2**31, 3)
    assert accepts(ss, bytes([0b1, 0b110]))
    assert rejected(ss, bytes([0b1, 0b1010])) is Reason.PADDING
    assert rejected(ss, bytes([0b1, 0b010])) is Reason.WEIGHT
    assert rejected(ss, bytes([0b11, 0b110])) is Reason.WEIGHT


# Records.


@every_law
@given(
    epsilon=st.integers(1, 800).map(lambda n: Fraction(n, 100)),
    cells=st.integers(2, 5000),
)
def test_record_round_trip(name, epsilon, cells):
    law = LAWS[name].make(epsilon, cells)
    assert law_from_record(law.record()) == law
    assert law.record()["bits"] in (32, 64)


NOT_A_DECIMAL = st.sampled_from([1, 1.0, None, True, "", "-1", "+1", "01", " 1", "1.0", "1e3", "٣", str(2**64), [], {}])
NOT_AN_INTEGER = st.sampled_from([1.0, 32.0, None, True, "", "32", [], {}, -1, 0, 1, 16, 33, 2**53])


@every_law
@given(data=st.data(), cells=st.sampled_from(CELLS))
def test_changed_record_is_refused(name, data, cells):
    record = LAWS[name].make(1, cells).record()
    inner = LAWS[name].parameter_names()
    change = data.draw(st.sampled_from(["unknown", "missing", "type", "integer", "threshold", "name"]))
    if change == "unknown":
        record["seed"] = data.draw(st.sampled_from([1, "1", None]))
    elif change == "missing":
        del record[data.draw(st.sampled_from(sorted(record)))]
    elif change == "type":
        record[data.draw(st.sampled_from(inner))] = data.draw(NOT_A_DECIMAL)
    elif change == "integer":
        field = data.draw(st.sampled_from(["cells", "bits"]))
        record[field] = data.draw(NOT_AN_INTEGER.filter(lambda x: field == "bits" or x not in (16, 33)))
    elif change == "threshold":
        (threshold,) = set(inner) & set(THRESHOLDS)
        record[threshold] = data.draw(st.sampled_from(["0", str(2 ** record["bits"])]))
    else:
        record["name"] = data.draw(st.sampled_from(["", "laplace", name.upper(), None, 1, []]))
    with pytest.raises(ValueError, match="expected"):
        law_from_record(record)


@pytest.mark.parametrize("record", [None, 1, "grr", [], ["grr"], {}], ids=repr)
def test_what_is_no_record_is_refused(record):
    with pytest.raises(ValueError, match="expected the oracle"):
        law_from_record(record)


@pytest.mark.parametrize(
    "make",
    [
        lambda: OUELaw(4, 32, 2**31),  # q = p tells nothing
        lambda: SUELaw(4, 32, 2**31),
        lambda: SSLaw(4, 32, 2**31, 0),
        lambda: SSLaw(4, 32, 2**31, 4),
        lambda: OLHLaw(4, 32, 2**31, 1),
        lambda: OLHLaw(4, 32, 2**31, 2**16 + 1),
        lambda: SWLaw(4, 32, 2**31, 5),
        lambda: SWLaw(4, 32, 2**31, -1),
        lambda: GRRLaw(1, 32, 2**31),
        lambda: GRRLaw(2**31 - 1, 32, 2**31),
        lambda: GRRLaw(4.0, 32, 2**31),
    ],
)
def test_integers_that_are_no_law_are_refused(make):
    with pytest.raises(ValueError, match="expected"):
        make()


@every_law
@pytest.mark.parametrize("cells", [0, 1, -3, 2.0, True, None])
def test_cells_that_ask_nothing_are_refused(name, cells):
    with pytest.raises(ValueError, match="cells"):
        LAWS[name].make(1, cells)


# The real path, from the operating system's words.
#
# It cannot be seeded, so its bounds are chosen: a right law fails once in 10^7 runs (5.33 standard errors, two
# sides), and the number of coins makes a rate that is 2 % off fail in all but one of 10^6 runs (4.75 more).

PASS = NormalDist().inv_cdf(1 - 0.5e-7)
POWER = NormalDist().inv_cdf(1 - 1e-6)
OFF = 0.02

# How many of a report's coins fell against the value. Unary encodings show one coin for each other cell.
AGAINST: dict[str, Callable[..., int]] = {
    "grr": lambda law, code, y: y[0] != code,
    "oue": lambda law, code, y: (int.from_bytes(y, "little") & ~(1 << code)).bit_count(),
    "sue": lambda law, code, y: (int.from_bytes(y, "little") & ~(1 << code)).bit_count(),
    "olh": lambda law, code, y: y[12] != law.hash(*(int.from_bytes(y[i : i + 4], "big") for i in (0, 4, 8)), code),
    "ss": lambda law, code, y: not y[0] >> code & 1,
    "hrr": lambda law, code, y: (y[0] & 1) != ((y[0] >> 1) & code).bit_count() % 2,
    "haar": lambda law, code, y: (y[0] & 1) != (((y[0] >> 1) & (code >> 1)).bit_count() + code) % 2,
    "sw": lambda law, code, y: abs(y[0] - law.b - code) > law.b,
}


def rate_against(law: Law) -> Fraction:
    """The exact rate of such coins."""
    if isinstance(law, OUELaw):
        return Fraction(law.q_num, 2**law.bits)
    kept = law.p_num if isinstance(law, SUELaw) else law.keep  # type: ignore[attr-defined]
    return 1 - Fraction(kept, 2**law.bits)


def real_example(name: str) -> Law:
    """Few coins suffice where many fall against the value: three of four, or one for each of many cells."""
    if name in ("oue", "sue"):
        return LAWS[name].make("0.5", 65)
    return dataclasses.replace(LAWS[name].make(1, 8), keep=2**30)  # type: ignore[call-arg]


def standard_errors(law: Law, drawn_with: Law) -> float:
    """How far the rate of coins against the value lies from that of ``law``."""
    q, coins_each = float(rate_against(law)), law.cells - 1 if law.name in ("oue", "sue") else 1
    n = ceil(((PASS + POWER) / OFF) ** 2 * (1 - q) / q / coins_each)
    code, words, against = 3, SystemWords(), AGAINST[law.name]
    count = sum(against(law, code, drawn_with.draw(code, words)) for _ in range(n))
    coins = n * coins_each
    return abs(count - coins * q) / sqrt(coins * q * (1 - q))


def off_by_two_percent(law: Law) -> Law:
    one, rate = 2**law.bits, rate_against(law) * Fraction(102, 100)
    (threshold,) = set(law.parameter_names()) & set(THRESHOLDS)
    return dataclasses.replace(law, **{threshold: round(one * rate if threshold == "q_num" else one * (1 - rate))})


@every_law
def test_operating_system_path_has_the_declared_rate(name):
    law = real_example(name)
    assert standard_errors(law, drawn_with=law) < PASS


@every_law
def test_operating_system_path_two_percent_off_is_seen(name):
    law = real_example(name)
    assert standard_errors(law, drawn_with=off_by_two_percent(law)) > PASS


# Mutants: each is caught by a check above.


class OneBitUnperturbed(OUELaw):
    """The last cell's bit tells the truth."""

    def draw(self, code, words):
        last = self.cells - 1
        mask = super().draw(code, words)[0] & ~(1 << last) | (code == last) << last
        return bytes([mask])


class TwoPercentOff(OUELaw):
    """Draws with q = 51/128 while its record says 50/128."""

    def draw(self, code, words):
        return OUELaw(self.cells, self.bits, self.q_num * 102 // 100).draw(code, words)


class Modulo(GRRLaw):
    """A word modulo the number of cells instead of rejection: the first cells are likelier."""

    def draw_code(self, code, words):
        if words.take(self.bits) < self.keep:
            return code
        other = words.take(self.bits) % (self.cells - 1)
        return other + (other >= code)


class MovesToItself(GRRLaw):
    """The paper's |D| for |D| - 1: a report that moves may fall on the value again."""

    def draw_code(self, code, words):
        return code if words.take(self.bits) < self.keep else words.take(self.bits) % self.cells


@pytest.mark.parametrize(
    "mutant",
    [OneBitUnperturbed(3, 4, 3), TwoPercentOff(2, 7, 50), Modulo(4, 4, 9), MovesToItself(4, 4, 9)],
    ids=repr,
)
def test_mutant_is_caught_by_enumeration(mutant):
    right = next(base for base in type(mutant).__mro__ if base in LAWS.values())
    check_law(right(mutant.cells, mutant.bits, *(getattr(mutant, name) for name in right.parameter_names())))
    with pytest.raises(AssertionError):
        check_law(mutant)


def nearest(name: str, epsilon: str, cells: int) -> Law:
    """The law with its threshold rounded to the nearest integer."""
    law, e = LAWS[name].make(epsilon, cells), exact_epsilon(epsilon)
    exp = sum(taylor_bounds(e)) / 2
    if isinstance(law, OUELaw):
        return dataclasses.replace(law, q_num=round(2**law.bits / (exp + 1)))
    if isinstance(law, SUELaw):
        half = sum(taylor_bounds(e / 2)) / 2
        return dataclasses.replace(law, p_num=round(2**law.bits * half / (half + 1)))
    inside, outside = {
        "grr": lambda: (1, cells - 1),
        "olh": lambda: (1, law.g - 1),
        "ss": lambda: (law.w, cells - law.w),
        "hrr": lambda: (1, 1),
        "haar": lambda: (1, 1),
        "sw": lambda: (2 * law.b + 1, cells - 1),
    }[name]()
    p = exp * inside / (exp * inside + outside)
    return dataclasses.replace(law, keep=round(2**law.bits * p))  # type: ignore[call-arg]


@every_law
def test_thresholds_rounded_to_nearest_are_caught(name):
    """About half of them break the promise, and no other: those that were not rounded towards privacy."""
    broken = 0
    for epsilon in EPSILONS:
        for cells in CELLS:
            mutant, law = nearest(name, epsilon, cells), LAWS[name].make(epsilon, cells)
            assert mutant in (law, one_step_less_private(law))
            if mutant != law:
                broken += 1
                with pytest.raises(AssertionError, match="not private"):
                    check_private_and_sharp(mutant, exact_epsilon(epsilon))
    assert broken >= len(EPSILONS) // 4


@every_law
@pytest.mark.parametrize(("factor", "message"), [(Fraction(98, 100), "not private"), (Fraction(102, 100), "accuracy")])
def test_two_percent_off_in_the_integers_is_caught(name, factor, message):
    law = LAWS[name].make(1, 17)
    one, rate = 2**law.bits, rate_against(law) * factor
    (threshold,) = set(law.parameter_names()) & set(THRESHOLDS)
    value = round(one * rate if threshold == "q_num" else one * (1 - rate))
    with pytest.raises(AssertionError, match=message):
        check_private_and_sharp(dataclasses.replace(law, **{threshold: value}), Fraction(1))
