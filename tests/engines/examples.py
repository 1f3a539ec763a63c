"""Questions, reports and folders of reports for the tests of the engines, and counting in the plainest way."""

from pathlib import Path

import numpy as np

from ahead_ldp.device.partition import GridForm
from ahead_ldp.device.question import question_record
from ahead_ldp.engines.files import Asked
from ahead_ldp.engines.writer import ReportWriter
from ahead_ldp.oracles import Tally, make_oracle

CAMPAIGN = "c" * 64
SIZES = {"grr": 5, "oue": 20, "olh": 9, "ss": 12, "hrr": 6, "sue": 7, "sw": 10, "haar": 6}


def question(oracle="oue", cells=20, wave=1, group="1", campaign=CAMPAIGN, epsilon="1"):
    """A question's canonical record."""
    return question_record(
        campaign=campaign,
        wave=wave,
        group=group,
        tallies="0" * 64,
        epsilon=epsilon,
        attributes=["x"],
        partition=GridForm((tuple(range(1, cells)),)),
        law=make_oracle(oracle, epsilon, cells).law,
    )


def asked_of(*args, **kwargs) -> Asked:
    return Asked.of(question(*args, **kwargs))


def by_digest(*asked: Asked) -> dict[str, Asked]:
    return {one.question: one for one in asked}


def some_reports(asked: Asked, n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Ids and payloads."""
    rng = np.random.default_rng([seed, asked.wave])
    payloads = asked.oracle.perturb(rng.integers(0, asked.oracle.d, n), rng)
    return rng.integers(0, 256, (n, 16), dtype=np.uint8), payloads


def write(root: Path, asked: Asked, ids, payloads, **options) -> list[Path]:
    """Report files with a manifest; where they are."""
    with ReportWriter(root, **options) as writer:
        writer.add(asked, ids, payloads)
    return [root / entry.name for entry in writer.entries]


def naive_tally(asked: Asked, reports: dict[bytes, bytes]) -> Tally:
    """One report at a time: what each supports, by a device's own reading."""
    counts = np.zeros(asked.oracle.outcomes, np.int64)
    for payload in reports.values():
        for outcome in supported(asked.oracle.law, payload):
            counts[outcome] += 1
    return Tally(len(reports), counts)


def supported(law, payload: bytes) -> list[int]:
    """The outcomes that one payload adds to."""
    if law.name in ("oue", "sue", "ss"):
        mask = int.from_bytes(payload, "little")
        return [cell for cell in range(law.cells) if mask >> cell & 1]
    if law.name == "olh":
        a, b, c = (int.from_bytes(payload[4 * i : 4 * i + 4], "big") for i in range(3))
        return [x for x in range(law.cells) if law.hash(a, b, c, x) == int.from_bytes(payload[12:], "big")]
    return [int.from_bytes(payload, "big")]


def as_reports(ids, payloads) -> dict[bytes, bytes]:
    """The payload that counts for each id: the first one."""
    found: dict[bytes, bytes] = {}
    for i, payload in zip(ids, payloads, strict=True):
        found.setdefault(i.tobytes(), payload.tobytes())
    return found
