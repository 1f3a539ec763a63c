"""Every registered oracle: a million people through ``simulate``, and reports made and counted."""

from __future__ import annotations

import numpy as np

from ahead_ldp.oracles import ORACLES, make_oracle
from benchmarks.measuring import Section, Sizes, at_most, cpu_s
from benchmarks.populations import gaussian, zipf_codes
from benchmarks.rendering import seconds


def run(sizes: Sizes) -> Section:
    """CPU time of simulation, perturbation and counting."""
    histogram = gaussian(sizes.people, sizes.cells)
    codes = zipf_codes(sizes.users // 10, sizes.cells)
    rows, targets, numbers = [], [], {}
    for name in ORACLES:
        oracle, rng = make_oracle(name, 1.0, sizes.cells), np.random.default_rng(3)
        reports = oracle.perturb(codes, rng)
        simulated = cpu_s(lambda o=oracle, r=rng: o.simulate(histogram, r), sizes.repeats)
        perturbed = cpu_s(lambda o=oracle, r=rng: o.perturb(codes, r), 2) / codes.size
        counted = cpu_s(lambda o=oracle, r=reports: o.tally(r), 2) / codes.size
        numbers[name] = {"simulate_s": simulated, "perturb_s": perturbed, "count_s": counted}
        cells = (seconds(simulated), seconds(perturbed), seconds(counted), f"{oracle.report_bytes} B")
        rows.append((name, *cells))
        if name == "oue":
            targets.append(at_most(f"{sizes.people:,} people through OUE's simulate", simulated, 0.01, "s"))
    head = ("oracle", f"simulate {sizes.people:,}", "perturb, a user", "count, a report", "report")
    note = f"CPU time, |D| = {sizes.cells}, epsilon 1; perturbation and counting over {codes.size:,} users."
    return Section("Every frequency oracle", head, tuple(rows), (note,), tuple(targets), numbers)
