"""Queries on many attributes from the answers of their pairs; tests/mechanisms/grids has the law that it tends to."""

import numpy as np
import pytest

from ahead_ldp.estimates.solvers.weighted_update import in_out_cells


@pytest.mark.parametrize("answer", [1.0, 1.3])
def test_pairs_that_hold_everybody_leave_nobody_outside(answer):
    """Noise puts answers beyond 1; the complement of 1 has no share that could be scaled."""
    cells = in_out_cells(np.full((2, 3), answer), 3, complement=True)
    np.testing.assert_allclose(cells, [[1.0] + [0.0] * 7] * 2, atol=1e-6)
