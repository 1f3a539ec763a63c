"""All benchmarks by name."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import ahead, growth, imports, methods, oracles, peers
from benchmarks.measuring import Section, Sizes

BENCHMARKS: dict[str, Callable[[Sizes], Section]] = {
    "peers": peers.run,
    "oracles": oracles.run,
    "ahead": ahead.run,
    "growth": growth.run,
    "methods": methods.run,
    "imports": imports.run,
}
