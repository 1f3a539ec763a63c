"""Where each method comes from: what `ahead methods` says beside its name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A method in a few words, and the paper that it is from."""

    idea: str
    paper: str


_AHEAD = "Du et al., CCS 2021"
_CORMODE = "Cormode et al., VLDB 2019"
_YANG = "Yang et al., VLDB 2020"

SOURCES: dict[str, Source] = {
    "ahead": Source("one adaptive tree over all attributes", _AHEAD),
    "lle": Source("an adaptive tree for each pair of attributes", _AHEAD),
    "uni": Source("every value equally likely, nobody is asked", f"baseline in {_AHEAD}"),
    "flat": Source("one question on all cells, no hierarchy", "Wang et al., USENIX Security 2017"),
    "hio": Source("a full tree, minimal covers, no consistency", "Wang et al., SIGMOD 2019"),
    "hh": Source("a full tree with constrained inference", _CORMODE),
    "dht": Source("Haar coefficients by Hadamard response", _CORMODE),
    "calm": Source("whole marginals of a few attributes", "Zhang et al., CCS 2018"),
    "tdg": Source("a grid for each pair of attributes", _YANG),
    "hdg": Source("grids of pairs and of single attributes", _YANG),
    "sw": Source("reports near the value, read by EM", "Li et al., SIGMOD 2020"),
    "privnud": Source("a tree whose nodes choose their fanout", "Wang et al., ICDE 2023"),
    "adaptive": Source("partitions of every scale, shrinkage on a tree", "this project, docs/methods/adaptive.md"),
    "fused": Source("trees of single attributes and grids of pairs", "this project, docs/methods/fused.md"),
    "pripl": Source("a tree on a piecewise-linear density", "Wang et al., VLDB 2024"),
}
