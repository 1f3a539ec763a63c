"""Linear algebra on one thread: while the function runs, and not after."""

import pytest
import scipy.linalg  # noqa: F401  # loads the library whose threads are looked at
from threadpoolctl import ThreadpoolController

from ahead_ldp.estimates.one_thread import one_thread


def threads() -> list[int]:
    return [pool["num_threads"] for pool in ThreadpoolController().info() if pool["user_api"] == "blas"]


def test_one_thread_while_it_runs_and_as_before_afterwards():
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = threads()
        assert one_thread(threads)() == [1] * len(before)
        assert threads() == before


def test_errors_and_answers_pass_through():
    @one_thread
    def half(x: int, *, by: int = 2) -> float:
        """Says so."""
        return x / by

    assert half(3) == 1.5
    assert half.__doc__ == "Says so."
    with pytest.raises(ZeroDivisionError):
        half(1, by=0)
