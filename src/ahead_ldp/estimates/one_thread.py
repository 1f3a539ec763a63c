"""Linear algebra on one thread: systems of a few hundred unknowns lose more by threads that wait than they gain."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with the threads of NumPy's and SciPy's linear algebra limited to one while it runs.

    The limit holds for the whole process. Of two calls at the same time in threads of their own, the later one to end
    may leave it in place, which is harmless.
    """

    @wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself."""
        with _pools().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return alone


@lru_cache(maxsize=1)
def _pools() -> Any:
    import scipy.linalg  # noqa: F401  # its library must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
