"""Records and texts that an attacker might send: honest ones, ones with a part changed, ones with bytes changed."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from ahead_ldp.device.canonical import canonical_bytes
from tools.campaign_vectors import TOKEN, good_campaign
from tools.vectors import ATTRIBUTES, CAMPAIGN, SCHEMA, good_question

LAWS = ("grr", "oue", "olh", "ss", "hrr")
NUMBERS = (
    *(0, 1, -1, 2, 7, 18, 10**9, 2**31 - 2, 2**31, 2**53 - 1, 2**53, -(2**53), 10**30, 0.0, 1.5, 1e300, True, False),
)
DECIMALS = (
    *("0", "1", "1.0", "1.10", "0.1", "01", "+1", "-1", "-0.0", "0.0", "1e5", "1e+16", "1e-05", "1e16", "1E5", "inf"),
    *(
        "nan",
        "100.0",
        "12.5",
        "64",
        "64.1",
        "65",
        "0.000001",
        "5e-324",
        "2.5e-05",
        "1.7976931348623157e+308",
        "1_000.0",
    ),
    *("0.30000000000000004", "9007199254740993.0", "123456789012.123456789012345678", " 1.0", "٣"),
    "0.1234567890123456789012345678",
)
WORDS = (
    *("integer", "real", "date", "nominal", "ordered", "cell", "value", "refused", "panel", "blind", "grid", "tree"),
    "oue",
)
DAYS = ("2026-01-31", "2026-02-29", "2024-02-29", "0001-01-01", "0000-01-01", "9999-12-31", "20260131", "2026-1-31")
PLAIN_KEYS = ("a", "a1", "a_", "z", "name", "version", "constructor")
KEYS = (*PLAIN_KEYS, "__proto__", "toString", "A", "", "é", "a b", "a\n", "_a", "1a")
ODD = '\n\t\r\b\f\0\x1f\x7f\x85\xa0\xad"\\/\u2028\u2029\u200b\u202e\u2060\ufeff\ufffe\uffff\U0001fae8'
PIECES = (
    *(b" ", b"\n", b"\t", b"\0", b",", b'"', b"\\", b"{", b"}", b"[]", b"0", b"-", b"1e1", b".0", b"\xff", b"\xc0\x80"),
    *(b"\xed\xa0\x80", b'"a":1,', b'"__proto__":1,', b"\\u0041", b"\\/", b"\\ud800", b"\\ud83d\\ude00", b"\\u001F"),
    *(b"NaN", b"//", b"\xef\xbb\xbf", b"\xc2\xa0"),
)
SPELLINGS = ((b":", b": "), (b"1", b"1.0"), (b"0", b"-0"), (b"e", b"\\u0065"), (b"{", b"{ "), (b"}", b"}\n"))


def text(rng: random.Random) -> str:
    """A text of characters from everywhere; seldom with a lone surrogate."""
    kinds = [
        lambda: rng.choice("abcxyz09 _-.,"),
        lambda: chr(rng.randrange(0x20, 0x250)),
        lambda: chr(rng.randrange(0x300, 0xD800)),
        lambda: chr(rng.randrange(0xE000, 0x110000)),
        lambda: rng.choice(
            '\n\t\r\b\f\0\x1f\x7f\x85\xa0\xad"\\/\u2028\u2029\u200b\u202e\u2060\ufeff\ufffe\uffff\U0001fae8'
        ),
        lambda: chr(rng.randrange(0xD800, 0xE000)) if rng.random() < 0.1 else "x",
    ]
    made = "".join(rng.choice(kinds)() for _ in range(rng.choice([0, 1, 1, 2, 3, 8, 30])))
    if rng.random() < 0.02:
        made = (made or "x") * rng.choice([7, 67, 200, 334, 1000, 10_000])
    return made if rng.random() < 0.9 else f" {made} "


def value(rng: random.Random, levels: int = 4) -> Any:
    """Any JSON value."""
    roll = rng.random()
    if roll < 0.25:
        return rng.choice(NUMBERS) if rng.random() < 0.6 else rng.randrange(-(2**60), 2**60)
    if roll < 0.55:
        return text(rng)
    if roll < 0.75:
        return rng.choice([None, *DECIMALS, *WORDS, *DAYS])
    if levels == 0:
        return [] if rng.random() < 0.5 else {}
    if roll < 0.87:
        return [value(rng, levels - 1) for _ in range(rng.randrange(4))]
    return {
        rng.choice(KEYS[:7]) if rng.random() < 0.9 else rng.choice(KEYS): value(rng, levels - 1)
        for _ in range(rng.randrange(4))
    }


def deep(rng: random.Random, *more: int) -> Any:
    """Levels around the bound, or as many as are said."""
    made: Any = value(rng, 0)
    for _ in range(rng.choice([28, 30, 31, 32, 33, 40, *more])):
        made = [made] if rng.random() < 0.5 else {"a": made}
    return made


def places(record: Any, levels: int = 8) -> Iterator[tuple[Any, Any]]:
    """Every container of a record, with each of its keys."""
    for key in list(record) if isinstance(record, dict) else range(len(record)):
        yield record, key
        if isinstance(record[key], dict | list) and levels:
            yield from places(record[key], levels - 1)


def changed(record: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The record with up to three parts changed: another value, a part less, a part more, a part elsewhere."""
    made = copy.deepcopy(record)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        container, key = rng.choice(list(places(made)) or [(made, "a")])
        roll, old = rng.random(), container[key] if isinstance(container, list) or key in container else None
        if roll < 0.1 and isinstance(container, dict):
            container.pop(key, None)
        elif roll < 0.2 and isinstance(container, dict):
            container[rng.choice(KEYS)] = value(rng, 1)
        elif roll < 0.3 and isinstance(old, list):
            rng.shuffle(old)
        elif roll < 0.4 and isinstance(old, list) and old:
            old.append(copy.deepcopy(rng.choice(old)))
        elif roll < 0.5 and type(old) is int:
            container[key] = old + rng.choice([-1, 1, 2**31, 2**53])
        elif roll < 0.6 and isinstance(old, str):
            container[key] = rng.choice([old + " ", old.upper(), old[:-1], old + "0", [old], text(rng), *DECIMALS])
        elif roll < 0.65:
            container[key] = deep(rng)
        else:
            container[key] = value(rng, 2)
    return made


def spelled(record: Any, rng: random.Random) -> bytes:
    """A record as bytes: canonical if it can be, now and then spelled in another way or with bytes changed."""
    try:
        data = canonical_bytes(record) if isinstance(record, dict) else None
    except (ValueError, RecursionError):
        data = None
    if data is None or rng.random() < 0.05:
        try:
            options = {"ensure_ascii": rng.random() < 0.3, "sort_keys": rng.random() < 0.7}
            data = json.dumps(record, separators=(",", ":"), **options).encode("utf-8", "surrogatepass")
        except (RecursionError, TypeError):
            data = b'{"a":' * 2000 + b"1" + b"}" * 2000
    if rng.random() < 0.25:
        data = bent(data, rng)
    return data


def bent(data: bytes, rng: random.Random) -> bytes:
    """Bytes with something changed that a lenient reader might overlook."""
    at = rng.randrange(len(data) + 1)
    piece, roll = rng.choice(PIECES), rng.random()
    if roll < 0.35:
        return data[:at] + piece + data[at:]
    if roll < 0.5:
        return data[:at] + data[at + 1 :]
    if roll < 0.6:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if roll < 0.7:
        return data[:at]
    old, new = rng.choice(
        [(b":", b": "), (b"1", b"1.0"), (b"0", b"-0"), (b"e", b"\\u0065"), (b"{", b"{ "), (b"}", b"}\n")]
    )
    return data.replace(old, new, 1)


def cases(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """So many cases, each a kind and bytes."""
    rng = random.Random(seed)
    tokens = [{"tier": "none"}, TOKEN, {**TOKEN, "tier": "signed"}, {k: v for k, v in TOKEN.items() if k != "version"}]
    campaign = good_campaign()
    for _ in range(count):
        roll = rng.random()
        if roll < 0.3:
            yield "record", spelled({rng.choice(PLAIN_KEYS): value(rng) for _ in range(rng.randrange(5))}, rng)
        elif roll < 0.34:
            yield "record", spelled({"a": deep(rng, 900, 1100, 5000)}, rng)
        elif roll < 0.55:
            attributes = [attribute.record() for attribute in rng.sample(ATTRIBUTES, rng.choice([1, 1, 2]))]
            yield "schema", spelled(changed({"type": "schema", "version": 1, "attributes": attributes}, rng), rng)
        elif roll < 0.75:
            yield "campaign", spelled(changed({**campaign, "token": rng.choice(tokens)}, rng), rng)
        elif roll < 0.87:
            yield "question", spelled(changed(good_question(rng.choice(LAWS)), rng), rng)
        elif roll < 0.9:
            yield (
                "epsilon",
                (rng.choice(DECIMALS) if rng.random() < 0.7 else text(rng)).encode("utf-8", "surrogatepass"),
            )
        else:
            yield rng.choice(["name", "text"]), text(rng).encode("utf-8", "surrogatepass")


def judged_against() -> tuple[str, str]:
    """The schema and the campaign that questions are checked against."""
    return json.dumps(SCHEMA.record()), CAMPAIGN
