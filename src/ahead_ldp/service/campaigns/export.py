"""What leaves the service as files: raw reports in the wire form, tallies as one record, both for others to recount."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from ahead_ldp.device.canonical import Record
from ahead_ldp.device.frames import HEADER_LENGTH, ID_LENGTH, Header
from ahead_ldp.engines.files import Asked
from ahead_ldp.engines.writer import ReportWriter
from ahead_ldp.service.campaigns.operations import Campaigns
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.store.rows import Chunk


def report_stream(service: Campaigns, campaign: str, number: int, group: str) -> Iterator[bytes]:
    """The stored reports of one group: header, then frames of id and payload. Tokens are not kept, so not here."""
    service.wave(campaign, number)
    digests = {row.group: row.digest for row in service.store.questions(campaign, number)}
    if group not in digests:
        raise Problem("not_found", "no such group in this wave")
    header = Header(campaign, digests[group]).encode()
    return chain([header], map(frames, service.store.reports(campaign, number, group)))


def frames(chunk: Chunk) -> bytes:
    """The frames of a chunk, back to back."""
    ids = np.frombuffer(chunk.ids, np.uint8).reshape(chunk.n, ID_LENGTH)
    return np.hstack([ids, np.frombuffer(chunk.payloads, np.uint8).reshape(chunk.n, -1)]).tobytes()


def tallies_record(service: Campaigns, campaign: str) -> Record:
    """Schema, method, every frozen tally with the digest of its question, and the chain's end."""
    return service.closed_session(campaign).finish().record()


def write_parquet(root: Path, groups: Iterable[tuple[bytes, bytes]]) -> None:
    """Reports as Parquet files below ``root``: for each group its question's bytes and its reports in the wire form."""
    with ReportWriter(root, name="service") as writer:
        for question, data in groups:
            asked = Asked.of(question)
            length = ID_LENGTH + asked.oracle.report_bytes
            body = np.frombuffer(data, np.uint8, offset=HEADER_LENGTH).reshape(-1, length)
            if len(body):
                writer.add(asked, body[:, :ID_LENGTH].copy(), body[:, ID_LENGTH:].copy())
