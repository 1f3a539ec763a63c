"""Answering a box by walking down the tree."""

from ahead_ldp.partitions.trees import Tree

Box = list[list[float]]


def children(tree: Tree) -> list[list[int]]:
    """The children of every node."""
    below: list[list[int]] = [[] for _ in range(tree.size)]
    for node, parent in enumerate(tree.parent.tolist()):
        if parent >= 0:
            below[parent].append(node)
    return below


def sides(tree: Tree) -> list[list[tuple[int, int]]]:
    """The box of every node."""
    return [list(zip(lo, hi, strict=True)) for lo, hi in zip(tree.lo.tolist(), tree.hi.tolist(), strict=True)]


def share_inside(node: list[tuple[int, int]], box: Box) -> float:
    share = 1.0
    for (first, end), (lo, hi) in zip(node, box, strict=True):
        share *= max(0.0, min(hi, end) - max(lo, first)) / (end - first)
    return share


def is_covered(node: list[tuple[int, int]], box: Box) -> bool:
    return all(lo <= first and end <= hi for (first, end), (lo, hi) in zip(node, box, strict=True))


def walk(tree: Tree, values: list[float], box: Box) -> float:
    """A covered node answers for all below it; else its children answer; a leaf that is cut gives its share."""
    below, nodes = children(tree), sides(tree)

    def answer(node: int) -> float:
        if is_covered(nodes[node], box):
            return values[node]
        if not below[node]:
            return values[node] * share_inside(nodes[node], box)
        return sum(answer(child) for child in below[node])

    return answer(0)
