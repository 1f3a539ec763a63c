"""python -m tools.limit --out FILE [--shapes gaussian,slope] [--people 10000,...] [--epsilons 0.1,...] [--members 16]
        [--spread 1] [--choices finest=0.05]

Bounds and errors of docs/limit.md: one line of JSON for each shape, number of people and epsilon. A line that FILE
has already about the same is replaced; others are kept.
"""

import argparse
from pathlib import Path

from tools.limit import measuring
from tools.limit.classes import SHAPES, SPREAD


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--people", default=",".join(map(str, measuring.PEOPLE)))
    parser.add_argument("--epsilons", default=",".join(map(str, measuring.EPSILONS)))
    parser.add_argument("--members", type=int, default=16, help="of each class, drawn anew for every line")
    parser.add_argument("--spread", type=float, default=SPREAD, help="of the class")
    parser.add_argument("--choices", default="", help="of the default, in place of its own")
    given = parser.parse_args()
    choices = {key: float(value) for key, value in (part.split("=") for part in given.choices.split(",") if part)}
    for name in given.shapes.split(","):
        for n in map(int, given.people.split(",")):
            for epsilon in map(float, given.epsilons.split(",")):
                line = measuring.measure(name, n, epsilon, given.members, given.spread, choices)
                measuring.keep(given.out, line)
                print(measuring.shown(line), flush=True)


if __name__ == "__main__":
    main()
