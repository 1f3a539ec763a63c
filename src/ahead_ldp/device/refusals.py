"""What a device and a collector say no to: one enum of reasons each, never a private value."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a report was not accepted. The texts are part of the protocol: they are counted and answered."""

    TRUNCATED = "truncated"
    VERSION = "unknown_version"
    CAMPAIGN = "wrong_campaign"
    QUESTION = "wrong_question"
    LENGTH = "wrong_length"
    PADDING = "padding_not_zero"
    RANGE = "out_of_range"
    WEIGHT = "wrong_weight"
    CLOSED = "wave_closed"
    TOKEN = "token_invalid"
    GROUP = "wrong_group"
    WITHDRAWN = "report_withdrawn"


class ReportRejected(Exception):
    """A peer's report does not have the form that its question demands."""

    def __init__(self, reason: Reason) -> None:
        """Keep the reason; there is nothing else to know about a rejected report."""
        super().__init__(reason.value)
        self.reason = reason


class QuestionRefused(Exception):
    """A device will not answer this question, whatever the private value is."""


class ValueRefused(ValueError):
    """A private value does not fit the declared attribute. The message never holds the value."""
