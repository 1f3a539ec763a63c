"""AHEAD with node objects and one report per person: Algorithms 1 and 2 of the paper, line by line.

A node that is not divided gets a copy of itself as its only child (Alg. 1, line 14), so that a level is always the
whole domain. Copies are one node in the end: the topmost, into which the averaging has put what all of them say.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from math import inf, isinf, sqrt

from ahead_ldp.device import Axis
from ahead_ldp.device.laws import OUELaw
from tests.reference.norm_sub import norm_sub as paper_loop
from tests.support import SeededWords

Box = tuple[tuple[int, int], ...]
Ask = Callable[[int, list[Box]], tuple[int, list[int]]]


class Node:
    def __init__(self, box: Box, fate: str = "open") -> None:
        self.box = box
        self.fate = fate  # open, divide, stop
        self.children: list[Node] = []
        self.frequency = 0.0
        self.variance = inf


def construct(
    axes: Sequence[Axis], fanout: int, epsilon: float, ask: Ask, tested: str = "raw", stopped: str = "final"
) -> Node:
    """Algorithm 1; ``ask(i, boxes)`` gives the number of people in group i and the ones in their reports."""
    root = Node(tuple((0, axis.size) for axis in axes), "divide")
    root.frequency, root.variance = 1.0, 0.0  # line 4
    levels = [[root]]
    for i in range(1, groups(axes, fanout) + 1):  # line 5
        below = []
        for node in levels[-1]:  # lines 7 to 16
            if node.fate == "divide":
                node.children = [Node(box) for box in divide(axes, node.box, fanout)]
            else:
                node.children = [Node(node.box, node.fate)]
            below += node.children
        n, ones = ask(i, [node.box for node in below])  # line 18
        if n:
            law = OUELaw.make(epsilon, len(below))
            p, q = law.own / 2**law.bits, law.other / 2**law.bits
            found = [(one / n - q) / (p - q) for one in ones]
            variance = q * (1 - q) / (n * (p - q) ** 2)
            compared = norm_sub(found) if tested == "norm_sub" else found
            for node, f, x in zip(below, found, compared, strict=True):  # lines 19 to 21
                node.frequency, node.variance = f, variance
                theta = sqrt((len(divide(axes, node.box, fanout)) + 1) * variance)
                if node.fate == "open" or stopped == "retested":
                    node.fate = "divide" if x > theta else "stop"
        levels.append(below)
    post_process(axes, fanout, levels)
    return root


def post_process(axes: Sequence[Axis], fanout: int, levels: list[list[Node]]) -> None:
    """Algorithm 2."""
    for level in levels[1:]:  # lines 1 to 3
        if not isinf(level[0].variance):
            for node, f in zip(level, norm_sub([node.frequency for node in level]), strict=True):
                node.frequency = f
    for level in reversed(levels[1:-1]):  # lines 4 to 9: from c - 1 to 1
        for node in level:
            own, below = node.variance, sum(child.variance for child in node.children)
            if isinf(below):
                continue
            weight = 0.0 if isinf(own) else below / (below + own)  # lambda_1
            node.frequency = weight * node.frequency + (1 - weight) * sum(child.frequency for child in node.children)
            node.variance = below if isinf(own) else own * below / (own + below)
    join_copies(levels[0][0])
    complete(axes, fanout, levels[0][0])


def join_copies(node: Node) -> None:
    while len(node.children) == 1:
        assert node.children[0].box == node.box
        node.children = node.children[0].children
    for child in node.children:
        join_copies(child)


def complete(axes: Sequence[Axis], fanout: int, node: Node) -> None:
    """Lines 10 to 17, down to single codes: children without an estimate share their parent's by their size."""
    if size(node.box) == 1:
        return
    if not node.children:
        node.children = [Node(box) for box in divide(axes, node.box, fanout)]
    for child in node.children:
        if isinf(child.variance):
            child.frequency = node.frequency * size(child.box) / size(node.box)
        complete(axes, fanout, child)


def answer(node: Node, box: Sequence[Sequence[int]]) -> float:
    """Coarse nodes first (Sec. 4.5)."""
    if all(lo <= first and end <= hi for (first, end), (lo, hi) in zip(node.box, box, strict=True)):
        return node.frequency
    if any(end <= lo or hi <= first for (first, end), (lo, hi) in zip(node.box, box, strict=True)):
        return 0.0
    return sum(answer(child, box) for child in node.children)


def frequencies(node: Node) -> dict[Box, float]:
    """Of all nodes of the complete tree."""
    found = {node.box: node.frequency}
    for child in node.children:
        found |= frequencies(child)
    return found


def norm_sub(x: list[float]) -> list[float]:
    """The text's loop; without a positive entry, where it is not defined, the shift that WLLS20 defines."""
    if max(x) > 0:
        return paper_loop(x)
    low, high = min(x) - 1, max(x)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(v - middle, 0.0) for v in x) > 1 else (low, middle)
    return [max(v - low, 0.0) for v in x]


def groups(axes: Sequence[Axis], fanout: int) -> int:
    """c: how often the domain is divided until all boxes are single codes."""
    boxes, count = [tuple((0, axis.size) for axis in axes)], 0
    while any(size(box) > 1 for box in boxes):
        boxes = [part for box in boxes for part in divide(axes, box, fanout)]
        count += 1
    return count


def divide(axes: Sequence[Axis], box: Box, fanout: int) -> list[Box]:
    """All attributes at once, each into at most B parts of nearly equal length; categories and missing apart."""
    return list(product(*(_sides(axis, side, fanout) for axis, side in zip(axes, box, strict=True))))


def _sides(axis: Axis, side: tuple[int, int], fanout: int) -> list[tuple[int, int]]:
    lo, hi = side
    if axis.nominal:
        return [(code, code + 1) for code in range(lo, hi)]
    apart = axis.missing and hi == axis.size and lo < hi - 1
    length = hi - lo - apart
    parts = min(fanout, length)
    ends = [lo + length * j // parts for j in range(parts + 1)]
    found = list(pairwise(ends))
    return [*found, (hi - 1, hi)] if apart else found


def size(box: Box) -> int:
    total = 1
    for lo, hi in box:
        total *= hi - lo
    return total


class People:
    """Everybody draws a group and answers once, on the device's path; the ones of all reports are counted."""

    def __init__(self, records: Sequence[Sequence[int]], count: int, epsilon: float, words: SeededWords) -> None:
        self.epsilon, self.words = epsilon, words
        self.groups: list[list[Sequence[int]]] = [[] for _ in range(count)]
        for record in records:
            self.groups[words.take(32) * count >> 32].append(record)

    def ask(self, i: int, boxes: list[Box]) -> tuple[int, list[int]]:
        law = OUELaw.make(self.epsilon, len(boxes))
        ones = [0] * len(boxes)
        for record in self.groups[i - 1]:
            inside = [all(lo <= code < hi for code, (lo, hi) in zip(record, box, strict=True)) for box in boxes]
            payload = law.draw(inside.index(True), self.words)
            for cell in range(len(boxes)):
                ones[cell] += payload[cell // 8] >> cell % 8 & 1
        return len(self.groups[i - 1]), ones
