"""How long a peer may take, and how much of the server all of them may hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Deadlines in seconds and budgets of one server process.

    ``header_s`` counts from the first byte of a request, or from the connection if nothing comes; ``body_s`` from the
    end of the headers; ``idle_s`` from the last answer. ``answer_s`` is how long a peer may leave an answer unread.
    """

    header_s: float = 10.0
    body_s: float = 30.0
    idle_s: float = 60.0
    answer_s: float = 30.0
    connections: int = 4096
    requests: int = 256  # that are worked on at once, uploads on the short way aside
    body_bytes: int = 4 << 20  # of one request
    held_bytes: int = 128 << 20  # of all requests that are incomplete or worked on, and of unread answers

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the limit."""
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ValueError(f"expected {name} > 0, got {getattr(self, name)}")
