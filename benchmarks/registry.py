"""All benchmarks by name."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import (
    ahead,
    batch,
    builds,
    devices,
    growth,
    imports,
    intervals,
    methods,
    oracles,
    pages,
    peers,
    service,
    stores,
    waves,
)
from benchmarks.measuring import Section, Sizes

BENCHMARKS: dict[str, Callable[[Sizes], Section]] = {
    "peers": peers.run,
    "oracles": oracles.run,
    "ahead": ahead.run,
    "build": builds.run,
    "growth": growth.run,
    "methods": methods.run,
    "intervals": intervals.run,
    "pages": pages.run,
    "devices": devices.run,
    "imports": imports.run,
    "batch": batch.run,
    "store": stores.run,
    "service": service.run,
    "waves": waves.run,
}
