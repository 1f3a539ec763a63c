"""A log-linear density by a generic optimiser, its evidence by a dense Hessian: slow and obvious."""

import numpy as np
from scipy.optimize import minimize

from ahead_ldp.mechanisms.adaptive.cell_estimates import CellEstimates


def density(basis: np.ndarray, beta: np.ndarray) -> np.ndarray:
    f = np.exp(basis @ beta - (basis @ beta).max())
    return f / f.sum()


def cells(given: list[CellEstimates], x: np.ndarray) -> np.ndarray:
    return np.concatenate([[x[a:b].sum() for a, b in zip(g.borders, g.borders[1:], strict=False)] for g in given])


def mode(given: list[CellEstimates], basis: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, float]:
    """The most probable coefficients, and the penalised misfit there, less what pooling leaves out."""
    y, tau = (np.concatenate([getattr(g, name) for g in given]) for name in ("estimate", "precision"))

    def penalised(w: np.ndarray) -> float:
        return float(tau @ (y - cells(given, density(basis, scale * w))) ** 2 + w @ w)

    found = minimize(penalised, np.zeros(scale.size), method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    return scale * found.x, float(found.fun)


def log_evidence(given: list[CellEstimates], basis: np.ndarray, scale: np.ndarray) -> float:
    """Laplace's approximation with the Gauss-Newton Hessian, the Jacobian by differences."""
    tau = np.concatenate([g.precision for g in given])
    beta, least = mode(given, basis, scale)
    step = 1e-6
    columns = []
    for i in range(beta.size):
        up, down = beta.copy(), beta.copy()
        up[i], down[i] = up[i] + step, down[i] - step
        columns.append((cells(given, density(basis, up)) - cells(given, density(basis, down))) / (2 * step))
    j = np.stack(columns, axis=1)
    hessian = j.T @ (tau[:, None] * j) + np.diag(scale**-2.0)
    return -0.5 * least - 0.5 * np.linalg.slogdet(hessian)[1] - np.log(scale).sum()
