"""Answers as bytes: status line, headers and a body whose length is announced."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from email.utils import formatdate
from http import HTTPStatus

Lines = Sequence[tuple[bytes, bytes]]

_STATUS = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_BODILESS = frozenset([204, 304])
_MOST_KEPT, _SHORT = 1_000, 100  # answers that are kept made, and bytes of the body of one
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Answers:
    """Heads of answers, and whole short ones: most uploads get the same bytes until the date changes."""

    def __init__(self) -> None:
        """The date is now."""
        self._kept: dict[tuple[int, bytes], bytes] = {}
        self.date = b""
        self.renew()

    def renew(self) -> None:
        """Look at the clock; called once a second."""
        date = b"date: %b\r\n" % formatdate(time.time(), usegmt=True).encode()
        if date != self.date:
            self.date, self._kept = date, {}

    def head(self, status: int, headers: Lines, close: bool) -> bytes:
        """Status line and headers, with the empty line after them."""
        lines = [_STATUS.get(status) or b"HTTP/1.1 %d \r\n" % status, self.date]
        for name, value in headers:
            if b"\n" in value or b"\r" in value or b"\n" in name or b"\r" in name:
                raise ValueError("expected headers without line breaks")
            lines.append(b"%b: %b\r\n" % (name, value))
        if close:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        return b"".join(lines)

    def whole(self, status: int, headers: Lines, body: bytes, close: bool) -> bytes:
        """A whole answer whose headers follow from status and body, as on the short way they do."""
        usual = status == 200 and not close and len(body) <= _SHORT
        if usual and (kept := self._kept.get((status, body))) is not None:
            return kept
        made = self.head(status, [*headers, (b"content-length", b"%d" % len(body))], close) + body
        if usual and len(self._kept) < _MOST_KEPT:
            self._kept[status, body] = made
        return made


def has_body(status: int, method: str) -> bool:
    """Whether bytes may follow the headers of an answer."""
    return method != "HEAD" and status not in _BODILESS and status >= 200


def announced(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The length that the headers announce."""
    for name, value in headers:
        if name.lower() == b"content-length":
            return int(value)
    return None
