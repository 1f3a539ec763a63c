"""The memory of OUE reports made and counted, in a process of its own.

Run as ``python -m benchmarks.memory USERS CELLS FAST``. Base is taken after a first round of everything, so that
imports and compiled code are in it.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from ahead_ldp.oracles import make_oracle
from benchmarks.measuring import compiled
from benchmarks.populations import zipf_codes
from benchmarks.resident import peak, start_peak


def main(users: int, cells: int, fast: bool) -> dict[str, float]:
    """Megabytes at the start and at the peak, all reports held at once."""
    oracle = make_oracle("oue", 1.0, cells)
    codes = zipf_codes(users, cells)
    rng = np.random.default_rng(2)
    with compiled(fast):
        oracle.tally(oracle.perturb(codes[: min(users, 10_000)], rng))
        base = start_peak()
        oracle.tally(oracle.perturb(codes, rng))
        return {"base_mb": base, "peak_over_base_mb": peak() - base}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "True")))
