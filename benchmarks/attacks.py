"""What the screens see: ``python -m benchmarks.attacks`` attacks waves of every oracle and counts those held.

100,000 people, epsilon 1, 64 cells, fakes for 8 target cells. The table is in docs/threat-model.md.
"""

from __future__ import annotations

import argparse

import numpy as np

from ahead_ldp.oracles import ORACLES, make_oracle
from ahead_ldp.service.server.config import Settings
from tests.service.screening.attacks import ATTACKS, attacked_wave

SHARES = (0.001, 0.01, 0.05)
CELLS, TARGETS = 64, np.arange(40, 48)


def measure(people: int, repeats: int, seed: int = 1) -> list[tuple[str, ...]]:
    """For each oracle, attack and share of fakes: waves held, the loudest screen, and how far the targets moved."""
    rng, hold_z, rows = np.random.default_rng(seed), Settings().hold_z, []
    codes = np.minimum(rng.geometric(0.08, people) - 1, CELLS - 1)
    for name in ORACLES:
        oracle = make_oracle(name, "1", CELLS)
        for attack in ATTACKS:
            if attack == "plain" and name not in ("oue", "sue"):
                continue  # for the others it is the padded one
            cells = []
            for share in SHARES:
                found = [attacked_wave(oracle, codes, TARGETS, share, attack, rng) for _ in range(repeats)]
                held = sum(wave.seen(hold_z) for wave in found)
                mean = {screen: np.mean([w.screens[screen] for w in found]) for screen in found[0].screens}
                loudest = max(mean, key=lambda screen: mean[screen])
                moved = [w.moved for w in found if w.moved is not None]
                shift = f", {100 * np.mean(moved):+.0f} points" if moved else ""
                cells.append(f"{held}/{repeats} ({loudest} {mean[loudest]:.1f}{shift})")
            rows.append((name, attack, *cells))
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args(arguments)
    print("| oracle | attack |", " | ".join(f"{100 * share:g} % fakes" for share in SHARES), "|")
    print("|", " | ".join(["---"] * (2 + len(SHARES))), "|")
    for row in measure(given.people, given.repeats):
        print("|", " | ".join(row), "|")


if __name__ == "__main__":
    main()
