"""Results as the paper describes its own: made up by formulas, so that every rule can be shown to accept them."""

import numpy as np

from ahead_ldp.research.experiments.journal import Outcome
from ahead_ldp.research.experiments.measuring import BINS
from ahead_ldp.research.experiments.paper import FULL, make_plan
from ahead_ldp.research.experiments.plan import Cell, all_cells, rng_of
from ahead_ldp.research.experiments.results import Measured, View

UNI = 0.08
BEST_THETA = {"blackfriday": 0.0256, "salaries": 0.1024}


def ideal_view() -> View:
    """Every figure at full size, with such results."""
    figures = make_plan(FULL)
    outcomes = {cell.id: ideal_outcome(cell) for cell in all_cells(figures)}
    return View({figure.name: figure for figure in figures}, Measured(outcomes))


def ideal_outcome(cell: Cell) -> Outcome:
    if cell.task == "leaves":
        share = rng_of(1, cell.id).dirichlet(np.full(int(np.prod(BINS[len(cell.data.sizes)])), 0.5))
        rows = [{"bin": i, "share": s, "leaves": 100 * np.sqrt(s)} for i, s in enumerate(share)]
    else:
        noise = np.exp(0.02 * rng_of(1, cell.id).standard_normal(5)) if cell.method != "Uni" else np.ones(5)
        error = UNI if cell.method == "Uni" else min(ideal_error(cell), 0.9 * UNI)
        rows = [{"repetition": i, "mse": float(error * x)} for i, x in enumerate(noise)]
    return Outcome(cell.id, cell.id, tuple(rows))


def ideal_error(cell: Cell) -> float:
    data, epsilon = cell.data, cell.epsilon
    m = len(data.sizes)
    base = 10**-3.07 * 1e4 / (data.n * epsilon**2)
    if cell.method == "unprocessed":
        return threshold_curve(base, BEST_THETA.get(data.name, 0.0128), cell.theta)
    if cell.method in ("AHEAD", "LLE", "default"):
        fading = min(1.0, 0.1 / epsilon) * min(1.0, 1e5 / data.n)
        return base * (1 - 0.25 * data.skew * fading)
    if cell.method == "DE":
        return 2 * base
    if cell.method == "HDG":
        return base * grid_factor(data, m)
    if data.name in ("zipf", "cauchy"):
        return base * {"HIO": 2.0, "DHT": 1.6}[cell.method] * np.log2(data.sizes[0])
    dht = {"salaries": 9.0, "loan": 1.5, "financial": 2.0, "blackfriday": 3.0}.get(data.name, 1.0)
    return base * {"DHT": dht, "HIO": 10 * dht, "CALM": 80 * dht}[cell.method]


def grid_factor(data, m):
    tied = 0.8 if data.r is None else data.r
    heavy = 1.3 if data.name == "laplacian" else 1.0
    if m == 2:
        return heavy * 10 ** (2 * (tied - 0.5)) if data.r is not None else 1.5
    more = (data.n / 1e6) ** 0.3 if data.name in ("gaussian", "laplacian") else 1.0
    return 1.5 * heavy * more * {3: 1 + 3 * tied, 5: 1 + tied + (4.0 if data.name == "loan" else 0.0)}.get(m, 2.0)


def threshold_curve(base, best, theta):
    if theta is None:
        return 0.85 * base
    dip = 0.3 * np.exp(-(np.log(max(theta, 1e-9) / best) ** 2))
    return base * (1 - dip + 20 * (theta / 0.4096) ** 4)
