"""Uploads of reports: a raw ASGI path in front of the framework. docs/wire.md has the form and the order of checks."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ahead_ldp.device.frames import HEADER_LENGTH, ID_LENGTH, VERSION
from ahead_ldp.device.refusals import Reason, ReportRejected
from ahead_ldp.device.tokens import NONCE_LENGTH, PANEL_WAVE, report_id, token_group
from ahead_ldp.server.committing import Committer
from ahead_ldp.server.config import Settings
from ahead_ldp.server.directory import Directory, Target
from ahead_ldp.server.limits import RateLimit
from ahead_ldp.server.logs import LOGGER
from ahead_ldp.server.metrics import Metrics
from ahead_ldp.server.problems import Problem
from ahead_ldp.server.store.interface import StoreUnavailable
from ahead_ldp.server.store.rows import Batch, Outcome
from ahead_ldp.server.tokens import verify

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

PREFIX, SUFFIX = "/v1/campaigns/", "/reports"
MEDIA_TYPE = b"application/octet-stream"
_FEW = 4  # below this, one by one is faster than arrays
_MOST_STARTS = 1000
_REASONS: dict[int, Reason] = {
    Outcome.REPLAYED: Reason.REPLAYED,
    Outcome.WITHDRAWN: Reason.WITHDRAWN,
    Outcome.CLOSED: Reason.CLOSED,
}


@dataclass(slots=True)
class Upload:
    """A parsed batch: the frames that have the right form, and those that have not, with the reason of each."""

    target: Target
    n: int
    batches: list[Batch]
    places: list[list[int]]  # of each batch's reports among the frames
    bad: dict[int, Reason]

    def answer(self, outcomes: list[bytes]) -> tuple[int, list[tuple[int, Reason]]]:
        """How many were accepted, and the refusals in order."""
        refused: list[tuple[int, Reason]] = []
        for places, found in zip(self.places, outcomes, strict=True):
            if max(found) > Outcome.KNOWN:
                refused += [
                    (place, _REASONS.get(outcome) or self.bad[place])
                    for place, outcome in zip(places or range(self.n), found, strict=True)
                    if outcome > Outcome.KNOWN
                ]
        return self.n - len(refused), sorted(refused)


def parse_upload(target: Target, body: bytes, max_batch: int) -> Upload:
    """Cut a batch into frames and check the form of each; a body that is no batch is a ``Problem``."""
    size = target.frame_length
    n, rest = divmod(len(body) - HEADER_LENGTH, size)
    if rest or n < 1:
        raise Problem("truncated", "frames of this question have one length")
    if n > max_batch:
        raise Problem("too_large", f"at most {max_batch} reports in one upload")
    starts = range(HEADER_LENGTH, len(body), size)
    end = ID_LENGTH + target.payload_length
    ids, hashes, payloads = _columns(body, starts, size, end)
    bad = _bad_forms(target, payloads, n)
    if target.has_tokens:
        parts = [body[i + end : i + size] for i in starts]
        bad |= _bad_tokens(target, ids, parts, [k for k in range(n) if k not in bad])
    where = (target.terms.digest, target.wave, target.group)
    if not bad:
        return Upload(target, n, [Batch(*where, ids, hashes, payloads)], [[]], bad)
    good = [k for k in range(n) if k not in bad]
    batches, places = [], []
    for some, insert in ((good, True), (sorted(bad), False)):
        if some:
            rows = payloads if insert else b""
            batches.append(
                Batch(
                    *where,
                    _take(ids, some, ID_LENGTH),
                    _take(hashes, some, 32),
                    _take(rows, some, target.payload_length) if insert else b"",
                    insert,
                )
            )
            places.append(some)
    return Upload(target, n, batches, places, bad)


def _columns(body: bytes, starts: range, size: int, end: int) -> tuple[bytes, bytes, bytes]:
    """Ids, hashes of whole frames, and payloads, each joined."""
    sha256, n = hashlib.sha256, len(starts)
    if n == 1:
        i = starts[0]
        return body[i : i + ID_LENGTH], sha256(body[i:]).digest(), body[i + ID_LENGTH : i + end]
    view = memoryview(body)
    hashes = b"".join([sha256(view[i : i + size]).digest() for i in starts])
    frames = np.frombuffer(body, np.uint8, offset=HEADER_LENGTH).reshape(n, size)
    return frames[:, :ID_LENGTH].tobytes(), hashes, frames[:, ID_LENGTH:end].tobytes()


def _take(joined: bytes, places: list[int], length: int) -> bytes:
    return b"".join([joined[k * length : (k + 1) * length] for k in places])


def _bad_forms(target: Target, payloads: bytes, n: int) -> dict[int, Reason]:
    """The frames whose payload no device could have made."""
    length, law = target.payload_length, target.oracle.law
    if n < _FEW:
        suspects = list(range(n))
    else:
        rows = np.frombuffer(payloads, np.uint8).reshape(n, length)
        suspects = np.flatnonzero(~target.oracle.valid(rows)).tolist()
    bad = {}
    for k in suspects:
        try:
            law.check_payload(payloads[k * length : (k + 1) * length])
        except ReportRejected as rejected:
            bad[k] = rejected.reason
    return bad


def _bad_tokens(target: Target, ids: bytes, parts: list[bytes], places: list[int]) -> dict[int, Reason]:
    """Of these frames those whose token is not the issuer's, not the id's, or of another group."""
    campaign = target.terms.campaign
    assert campaign.key is not None
    nonces = [parts[k][:NONCE_LENGTH] for k in places]
    signatures = [parts[k][NONCE_LENGTH:] for k in places]
    wave = PANEL_WAVE if campaign.enrolment == "panel" else target.wave
    mask = verify(campaign.key, nonces, signatures)
    bad = {}
    for k, valid, nonce, signature in zip(places, mask, nonces, signatures, strict=True):
        if not valid or report_id(nonce) != ids[k * ID_LENGTH : (k + 1) * ID_LENGTH]:
            bad[k] = Reason.TOKEN
        elif token_group(signature, campaign.digest, wave, target.groups) != target.group:
            bad[k] = Reason.GROUP
    return bad


@dataclass(slots=True)
class Ingest:
    """The ASGI application of one route, ``POST /v1/campaigns/{campaign}/reports``."""

    directory: Directory
    committer: Committer
    metrics: Metrics
    settings: Settings
    limit: RateLimit
    headers: list[tuple[bytes, bytes]]
    refusals: Counter[tuple[str, int, str]] = field(default_factory=Counter)  # for the store, flushed now and then
    uploads: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    _starts: dict[int, MutableMapping[str, Any]] = field(default_factory=dict)

    @staticmethod
    def takes(scope: Scope) -> bool:
        """Whether a request is an upload."""
        path = scope["path"]
        return scope["method"] == "POST" and path.endswith(SUFFIX) and path.startswith(PREFIX)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one upload."""
        try:
            body = await self._body(scope, receive)
            answer = await self._take(scope["path"][len(PREFIX) : -len(SUFFIX)], body)
            start = self._starts.get(len(answer)) or self._start(200, [(b"content-type", b"application/json")], answer)
            self.uploads["200"] += 1
        except Problem as problem:
            answer = problem.body()
            headers = [(k.encode(), v.encode()) for k, v in problem.headers().items()]
            start = self._start(problem.status, headers, answer)
            self.metrics.problems.labels(problem.kind).inc()
            self.uploads[str(problem.status)] += 1
        await send(start)
        await send({"type": "http.response.body", "body": answer})

    def _start(self, status: int, headers: list[tuple[bytes, bytes]], answer: bytes) -> MutableMapping[str, Any]:
        length = (b"content-length", str(len(answer)).encode())
        start = {"type": "http.response.start", "status": status, "headers": [*headers, length, *self.headers]}
        if status == 200 and len(self._starts) < _MOST_STARTS:
            self._starts[len(answer)] = start
        return start

    def flush_metrics(self) -> None:
        """Move what was counted in plain numbers, which is cheaper for each upload, to the metrics."""
        for status, count in self.uploads.items():
            self.metrics.uploads.labels(status).inc(count)
        self.metrics.accepted.inc(self.accepted)
        self.uploads.clear()
        self.accepted = 0

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        client = scope.get("client")
        if client is not None and not self.limit.allows(client[0]):
            raise Problem("too_many_requests")
        largest, announced = self.settings.max_body_bytes, None
        for name, value in scope["headers"]:
            if name == b"content-length":
                announced = int(value) if value.isdigit() else largest + 1
            elif name == b"content-type" and value.partition(b";")[0].strip().lower() != MEDIA_TYPE:
                raise Problem("unsupported_media_type", "application/octet-stream is taken")
        if announced is not None and announced > largest:
            raise Problem("too_large")
        message = await receive()
        body = message.get("body", b"")
        while message.get("more_body"):
            if len(body) > largest:
                raise Problem("too_large")
            message = await receive()
            body += message.get("body", b"")
        if message["type"] == "http.disconnect":
            raise Problem("truncated")
        if len(body) > largest:
            raise Problem("too_large")
        return body

    async def _take(self, campaign: str, body: bytes) -> bytes:
        if len(body) < HEADER_LENGTH:
            raise Problem("truncated")
        if body[0] != VERSION:
            raise Problem("unknown_version")
        if body[1:33].hex() != campaign:
            raise Problem("wrong_campaign")
        try:
            key = body[1:HEADER_LENGTH]
            target = self.directory.cached_target(key) or await self._load_target(key)
            if target.has_tokens:
                upload = await asyncio.to_thread(parse_upload, target, body, self.settings.max_batch)
            else:
                upload = parse_upload(target, body, self.settings.max_batch)
            outcomes = await self.committer.submit(upload.batches, upload.n)
        except StoreUnavailable:
            raise Problem("unavailable") from None
        except Problem:
            raise
        except Exception:
            LOGGER.exception("upload_failed")
            raise Problem("internal") from None
        return self._answer(upload, outcomes)

    async def _load_target(self, key: bytes) -> Target:
        target = await asyncio.to_thread(self.directory.target, key)
        if target is None:
            raise Problem("wrong_question")
        return target

    def _answer(self, upload: Upload, outcomes: list[bytes]) -> bytes:
        accepted, refused = upload.answer(outcomes)
        self.accepted += accepted
        if not refused:
            return b'{"accepted":%d,"refused":[]}' % accepted
        for reason, count in Counter(reason for _, reason in refused).items():
            self.metrics.refused.labels(reason.value).inc(count)
            self.refusals[upload.target.terms.digest, upload.target.wave, reason.value] += count
        listed = ",".join(f'{{"index":{k},"reason":"{reason.value}"}}' for k, reason in refused)
        return f'{{"accepted":{accepted},"refused":[{listed}]}}'.encode()
