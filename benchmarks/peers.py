"""OUE and OLH beside pure-ldp and multi-freq-ldpy: perturbation, counting and memory, per core."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ahead_ldp.oracles import make_oracle
from benchmarks.measuring import (
    Section,
    Sizes,
    Target,
    at_least,
    at_most,
    compiled,
    cpu_s,
    in_own_process,
    paths,
    read_bandwidth,
)
from benchmarks.peers_environment import Unavailable, peers_python
from benchmarks.populations import zipf_codes
from benchmarks.rendering import seconds

EPSILON = 1.0
PEERS = ("pure-ldp", "multi-freq-ldpy")
Times = dict[str, float]  # what -> CPU seconds or megabytes


def run(sizes: Sizes) -> Section:
    """Both packages and both of our paths in turns, the best of each."""
    found: dict[str, Times] = {}
    versions: dict[str, str] = {}
    python, skipped = None, "not asked for"
    if sizes.peers:
        try:
            python = peers_python()
        except Unavailable as error:
            skipped = str(error)
    bandwidth = 0.0
    for _ in range(sizes.rounds):
        for package in PEERS if python else ():
            for mechanism in ("oue", "olh"):
                counted = sizes.users if mechanism == "oue" else min(sizes.users, sizes.hashed)
                arguments = (package, mechanism, sizes.users, sizes.cells, EPSILON, counted)
                one = in_own_process(python or "", "benchmarks.peers_runner", *arguments)
                versions[package] = one["version"]
                _keep_best(found.setdefault(package, {}), _named(mechanism, one))
        bandwidth = max(bandwidth, read_bandwidth(sizes.memory_mb, sizes.repeats))
        for path, fast in paths().items():
            _keep_best(found.setdefault(path, {}), ours(sizes, fast))
    return section(sizes, found, versions, bandwidth, None if python else skipped)


def ours(sizes: Sizes, fast: bool) -> Times:
    """What is measured of this package, with NumPy alone or with compiled counting."""
    codes, rng = zipf_codes(sizes.users, sizes.cells), np.random.default_rng(2)
    measured: Times = {}
    with compiled(fast):
        for mechanism in ("oue", "olh"):
            oracle = make_oracle(mechanism, EPSILON, sizes.cells)
            reports = oracle.perturb(codes, rng)

            def perturb(perturb: Callable[..., object] = oracle.perturb) -> object:
                return perturb(codes, rng)

            def count(count: Callable[..., object] = oracle.tally, reports: Any = reports) -> object:
                return count(reports)

            measured[f"{mechanism} perturb"] = cpu_s(perturb, 3)
            measured[f"{mechanism} count"] = cpu_s(count, sizes.repeats if mechanism == "oue" else 3)
    memory = in_own_process(sys.executable, "benchmarks.memory", sizes.users, sizes.cells, fast)
    return {**measured, "oue memory": memory["peak_over_base_mb"]}


def section(
    sizes: Sizes, found: dict[str, Times], versions: dict[str, str], bandwidth: float, skipped: str | None
) -> Section:
    """The table of all that was measured, and the ratios that were promised."""
    order = [*(p for p in PEERS if p in found), *(p for p in found if p not in PEERS)]
    whats = ("oue perturb", "oue count", "olh perturb", "olh count", "oue memory")
    rows = [(*_name(p, versions), *(_shown(what, found[p][what]) for what in whats)) for p in order]
    report_bytes = make_oracle("oue", EPSILON, sizes.cells).report_bytes
    megabytes = sizes.users * report_bytes / 1e6
    rates = {p: sizes.users * report_bytes / found[p]["oue count"] for p in order if p not in PEERS}
    notes = [
        f"CPU time of {sizes.users:,} users, |D| = {sizes.cells}, epsilon {EPSILON:g}; the best of {sizes.rounds}"
        " rounds, in which all of them take turns.",
        f"Read bandwidth of one core in the same run: {bandwidth / 1e9:.1f} GB/s. OUE counting reads packed reports at "
        + ", ".join(f"{rate / 1e9:.2f} GB/s ({p}, {rate / bandwidth:.2f} of it)" for p, rate in rates.items())
        + ".",
        f"OUE memory: peak while all reports are held and counted, over what the process holds after a first round of"
        f" everything. Our reports alone are {megabytes:.1f} MB.",
    ]
    if skipped is None:
        notes.append(
            f"OLH counting of the other packages is measured on {min(sizes.users, sizes.hashed):,} reports and"
            " scaled up: it is proportional to them. They are called once for each user: neither takes many."
        )
        notes.append("The better package is the better of the two at that measurement.")
    else:
        notes.insert(0, f"SKIPPED: pure-ldp and multi-freq-ldpy could not be measured: {skipped}")
    numbers = {"measured": found, "versions": versions, "bandwidth": bandwidth, "skipped": skipped}
    head = ("package", "OUE perturb", "OUE count", "OLH perturb", "OLH count", "OUE memory")
    targets = (*_ratios(found, skipped is None), *_bandwidth_targets(rates, bandwidth))
    return Section("Frequency oracles beside other packages", head, tuple(rows), tuple(notes), targets, numbers)


def _ratios(found: dict[str, Times], measured: bool) -> list[Target]:
    if not measured:
        return []
    best = {what: min(found[p][what] for p in PEERS) for what in found[PEERS[0]]}
    perturbed = best["oue perturb"] / found["NumPy"]["oue perturb"]
    targets = [at_least("OUE perturbation against the better package", perturbed, 10, "x")]
    for path, bound in (("NumPy", 100), ("numba", 500)):
        if path in found:
            ratio = best["olh count"] / found[path]["olh count"]
            targets.append(at_least(f"OLH counting with {path} against the better package", ratio, bound, "x"))
    for path in (p for p in found if p not in PEERS):
        share = found[path]["oue memory"] / best["oue memory"]
        targets.append(at_most(f"OUE memory with {path}, share of the better package", share, 0.1))
    return targets


def _bandwidth_targets(rates: Times, bandwidth: float) -> list[Target]:
    bounds = {"NumPy": 1 / 30, "numba": 1 / 4}
    return [
        at_least(f"OUE counting with {path}, share of the read bandwidth", rate / bandwidth, bounds[path])
        for path, rate in rates.items()
    ]


def _named(mechanism: str, one: dict[str, Any]) -> Times:
    memory = {"oue memory": one["peak_over_base_mb"]} if mechanism == "oue" else {}
    return {f"{mechanism} perturb": one["perturb_s"], f"{mechanism} count": one["count_s"], **memory}


def _keep_best(best: Times, new: Times) -> None:
    for what, value in new.items():
        best[what] = min(best.get(what, value), value)


def _name(package: str, versions: dict[str, str]) -> tuple[str]:
    return (f"{package} {versions[package]}" if package in versions else f"ahead-ldp, {package}",)


def _shown(what: str, value: float) -> str:
    return f"{value:,.0f} MB" if what == "oue memory" else seconds(value)
