"""Synthetic people for any questions, and the truth about them, which nobody has who asks real ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.schema.arrays import Floats, Ints
from ahead_ldp.schema.units import centres, numbers_at, spoken, text
from ahead_ldp.schema.workloads import Workload, true_answers_from_records

_SHARED = 0.6  # how much of a person's place in one attribute is their place in all of them
_LEAN, _SPREAD = -0.35, 0.85  # of ordered values: most below the middle, few near the ends
_SILENT = 0.05  # of the people have no value, where a question allows it


def synthetic_people(schema: Schema, count: int, rng: Generator) -> Ints:  # -> (count, attributes)
    """Codes of made-up people: skewed bumps that hang together, and categories of which some are rare."""
    everything = rng.standard_normal(count)
    columns = []
    for attribute in schema.attributes:
        own = _SHARED * everything + np.sqrt(1 - _SHARED**2) * rng.standard_normal(count)
        codes = _categories(attribute, own) if attribute.kind == "nominal" else _ordered(attribute, own)
        if attribute.missing == "cell":
            codes = np.where(rng.random(count) < _SILENT, attribute.ordered_size, codes)
        columns.append(codes)
    return np.stack(columns, axis=1).astype(np.int64)


def _ordered(attribute: Attribute, own: Floats) -> Ints:
    place = 1 / (1 + np.exp(-(_LEAN + _SPREAD * own)))
    return np.minimum(attribute.ordered_size * place, attribute.ordered_size - 1).astype(np.int64)


def _categories(attribute: Attribute, own: Floats) -> Ints:
    weights = 1 / np.arange(1, attribute.ordered_size + 1)
    borders = np.cumsum(weights)[:-1] / weights.sum()
    return np.searchsorted(borders, ndtr(own), side="right")


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """What a rehearsal's answers should have been."""

    schema: Schema
    codes: Ints  # (people, attributes)

    @property
    def people(self) -> int:
        """How many they are."""
        return len(self.codes)

    def shares(self, workload: Workload) -> Floats:
        """The share of the people in each query."""
        return true_answers_from_records(workload, self.codes)

    def share(self, query: str) -> float:
        """The share of the people in one query, in the words of `docs/schema.md`."""
        return float(self.shares(Workload.from_queries(self.schema, [query]))[0])

    def quantile(self, name: str, level: float) -> float:
        """The number below which a share of those lies who have a value; inside a bucket people lie evenly."""
        at = self.schema.index(name)
        attribute = self.schema.attributes[at]
        counts = np.bincount(self.codes[:, at], minlength=attribute.size)[: attribute.ordered_size]
        curve = np.concatenate([[0.0], np.cumsum(counts) / max(int(counts.sum()), 1)])
        place = float(np.interp(level, curve, np.arange(curve.size)))
        return float(numbers_at(attribute, np.array([place]))[0])

    def mean(self, name: str) -> float:
        """The average of those who have a value; everybody stands in the middle of their bucket."""
        at = self.schema.index(name)
        attribute, codes = self.schema.attributes[at], self.codes[:, at]
        having = codes[codes < attribute.ordered_size]
        return float(centres(attribute, having, having).mean()) if having.size else 0.0

    def quantile_text(self, name: str, level: float) -> str:
        """The same as people read it."""
        attribute, number = self.schema.attributes[self.schema.index(name)], self.quantile(name, level)
        if attribute.kind == "integer":
            number = float(spoken(attribute, np.array([number]))[0])
        return text(attribute, number)
