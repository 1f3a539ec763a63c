"""A function over many items, on this machine or on Spark, with the same results in the same order."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

from ahead_ldp.engines.spark_session import spark_session

A = TypeVar("A")
B = TypeVar("B")


def map_items(function: Callable[[A], B], items: Iterable[A], processes: int = 1) -> Iterator[B]:
    """The results in order, from so many processes; a few items are under way at a time, however many there are.

    With more than one process the function must be importable, and items and results small enough to be sent.
    """
    if processes < 2:
        yield from map(function, items)
        return
    waiting: deque[Future[B]] = deque()
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def spark_map(function: Callable[[A], B], items: Sequence[A], session: Any = None) -> list[B]:
    """The results in order, a Spark task for each item. The function must give the same for the same item."""
    if not items:
        return []
    context = spark_session(session).sparkContext
    numbered = context.parallelize(list(enumerate(items)), len(items))
    found = numbered.map(lambda item: (item[0], function(item[1]))).collect()
    return [result for _, result in sorted(found, key=lambda item: item[0])]


def map_cells(
    function: Callable[[A], B], items: Sequence[A], *, engine: str = "local", processes: int = 1, session: Any = None
) -> list[B]:
    """The results in order, by the engine that is named: what an experiment's plan is run by."""
    if engine not in ("local", "spark"):
        raise ValueError(f"expected engine to be local or spark, got {engine!r}")
    return spark_map(function, items, session) if engine == "spark" else list(map_items(function, items, processes))
