"""Into which cells a campaign's questions divided an attribute, wave by wave: for the page of the checks."""

from __future__ import annotations

from collections.abc import Sequence

from ahead_ldp.protocol.mechanism import Question
from ahead_ldp.service.screening.manipulation import AskedWave


def asked_cells(waves: Sequence[AskedWave], attribute: int) -> list[list[int]]:
    """For each closed wave the inner borders of the finest cells that were asked about on an attribute."""
    finest = [max((_inner_borders(q, attribute) for q, _ in wave), key=len, default=[]) for wave in waves]
    return [inner for inner in finest if inner]


def _inner_borders(question: Question, attribute: int) -> list[int]:
    if attribute not in question.attributes:
        return []
    at = question.attributes.index(attribute)
    return sorted({int(x) for x in question.partition.lo[:, at]} - {0})
