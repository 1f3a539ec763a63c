"""Reports on the wire: a header that binds a batch to one question, then frames of one fixed length.

Header, 65 bytes: version (1 byte), campaign digest (32), question digest (32).
Frame: report id (16 bytes), payload of the length that the question's law fixes. Frames stand back to back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ahead_ldp.device.canonical import check_digest
from ahead_ldp.device.laws.base import Law
from ahead_ldp.device.refusals import Reason, ReportRejected

VERSION = 1
ID_LENGTH = 16
HEADER_LENGTH = 65


@dataclass(frozen=True, slots=True)
class Header:
    """What a batch of reports answers to."""

    campaign: str
    question: str

    def encode(self) -> bytes:
        """The 65 bytes of the header."""
        campaign, question = check_digest(self.campaign, "campaign"), check_digest(self.question, "question")
        return bytes([VERSION]) + bytes.fromhex(campaign) + bytes.fromhex(question)

    @classmethod
    def decode(cls, data: bytes) -> Header:
        """The header at the start of a batch."""
        if len(data) < HEADER_LENGTH:
            raise ReportRejected(Reason.TRUNCATED)
        if data[0] != VERSION:
            raise ReportRejected(Reason.VERSION)
        return cls(data[1:33].hex(), data[33:65].hex())


@dataclass(frozen=True, slots=True)
class Report:
    """One person's noisy answer, and the name that nobody can link to them (``tokens.report_id``)."""

    report_id: bytes
    payload: bytes


def encode_batch(header: Header, reports: Iterable[Report]) -> bytes:
    """Header and frames of one batch."""
    return header.encode() + b"".join(r.report_id + r.payload for r in reports)


def split_batch(data: bytes, header: Header, law: Law) -> tuple[list[bytes], bytes]:
    """Ids and joined payloads of a batch that must carry this header; payloads are not looked into."""
    sent = Header.decode(data)
    if sent.campaign != header.campaign:
        raise ReportRejected(Reason.CAMPAIGN)
    if sent.question != header.question:
        raise ReportRejected(Reason.QUESTION)
    size = ID_LENGTH + law.payload_length
    body = memoryview(data)[HEADER_LENGTH:]
    if not body or len(body) % size:
        raise ReportRejected(Reason.TRUNCATED)
    starts = range(0, len(body), size)
    return [bytes(body[i : i + ID_LENGTH]) for i in starts], b"".join(body[i + ID_LENGTH : i + size] for i in starts)


def decode_batch(data: bytes, header: Header, law: Law) -> list[Report]:
    """The reports of a batch, each checked against the law; the first bad one rejects the batch."""
    ids, payloads = split_batch(data, header, law)
    size = law.payload_length
    reports = [Report(i, payloads[k * size : (k + 1) * size]) for k, i in enumerate(ids)]
    for report in reports:
        law.check_payload(report.payload)
    return reports
