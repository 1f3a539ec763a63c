"""A process that stores reports and says so: ``python -m tests.service.store.worker URL MUTANT NAME``.

It prints the number of an upload once that is acknowledged. Upload k holds the reports ``NAME k 0`` to ``NAME k 2``.
"""

from __future__ import annotations

import os
import sys
from itertools import count

from tests.service.store.mutants import open_mutant
from tests.service.store.support import batch

SIZE = 3


def names(name: str, k: int) -> list[str]:
    """The reports of upload k."""
    return [f"{name} {k} {i}" for i in range(SIZE)]


def main(url: str, mutant: str, name: str) -> None:
    """Upload until killed."""
    store = open_mutant(url, mutant)
    for k in count():
        assert store.add_reports([batch(names(name, k))]) == [bytes(SIZE)]
        os.write(1, f"{k}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
