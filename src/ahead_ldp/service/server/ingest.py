"""Uploads of reports: a raw ASGI path in front of the framework. docs/wire.md has the form and the order of checks."""

from __future__ import annotations

import asyncio
from binascii import hexlify
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ahead_ldp.device.frames import HEADER_LENGTH, ID_LENGTH, VERSION
from ahead_ldp.device.refusals import Reason, ReportRejected
from ahead_ldp.device.tokens import NONCE_LENGTH, PANEL_WAVE, report_id, token_group
from ahead_ldp.service.campaigns.directory import Directory, Target
from ahead_ldp.service.campaigns.logs import LOGGER
from ahead_ldp.service.campaigns.outages import Outages
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.edge.answers import Lines
from ahead_ldp.service.edge.house import Reply
from ahead_ldp.service.edge.requests import Request
from ahead_ldp.service.server.committing import Committer, Part
from ahead_ldp.service.server.config import Settings
from ahead_ldp.service.server.limits import RateLimit, Receive, Scope, Send, check_length, limited
from ahead_ldp.service.server.metrics import Metrics
from ahead_ldp.service.server.tokens import verify
from ahead_ldp.service.store.interface import KeyMissing, StoreUnavailable
from ahead_ldp.service.store.rows import Outcome

PREFIX, SUFFIX = "/v1/campaigns/", "/reports"
MEDIA_TYPE = b"application/octet-stream"
_BEFORE, _AFTER = PREFIX.encode(), SUFFIX.encode()
_TARGET_LENGTH = len(_BEFORE) + 64 + len(_AFTER)
_ACCEPTED = int(Outcome.KNOWN)  # outcomes up to here
_FEW = 4  # up to this, one by one is faster than arrays, and signatures are checked faster than handed over
_REASONS: dict[int, Reason] = {
    Outcome.WITHDRAWN: Reason.WITHDRAWN,
    Outcome.CLOSED: Reason.CLOSED,
}


@dataclass(slots=True)
class Upload:
    """A parsed batch: the frames that have the right form, and those that have not, with the reason of each."""

    target: Target
    n: int
    parts: list[Part]
    places: list[Sequence[int]]  # of each part's reports among the frames
    bad: dict[int, Reason]

    def answer(self, outcomes: list[bytes]) -> tuple[int, list[tuple[int, Reason]]]:
        """How many were accepted, and the refusals in order."""
        refused: list[tuple[int, Reason]] = []
        if all(max(of_part) <= _ACCEPTED for of_part in outcomes):
            return self.n, refused
        for places, of_part in zip(self.places, outcomes, strict=True):
            refused += [
                (place, _REASONS.get(outcome) or self.bad[place])
                for place, outcome in zip(places, of_part, strict=True)
                if outcome > _ACCEPTED
            ]
        return self.n - len(refused), sorted(refused)


def frames_of(target: Target, body: bytes, max_batch: int) -> int:
    """How many frames a batch has; a body that is no batch is a ``Problem``."""
    n, rest = divmod(len(body) - HEADER_LENGTH, target.frame_length)
    if rest or n < 1:
        raise Problem("truncated", "frames of this question have one length")
    if n > max_batch:
        raise Problem("too_large", f"at most {max_batch} reports in one upload")
    return n


def parse_upload(target: Target, body: bytes, n: int) -> Upload:
    """Cut a batch into its frames and check the form of each."""
    ids, payloads = _columns(target, body, n)
    bad = _bad_forms(target, payloads, n)
    if target.has_tokens:
        bad |= _bad_tokens(target, ids, body, [k for k in range(n) if k not in bad])
    if not bad:
        return Upload(target, n, [Part(target.entering, ids, payloads)], [range(n)], bad)
    parts: list[Part] = []
    places: list[Sequence[int]] = []
    for some, key in (([k for k in range(n) if k not in bad], target.entering), (sorted(bad), target.asking)):
        if some:
            rows = _take(payloads, some, target.payload_length) if key is target.entering else b""
            parts.append(Part(key, _take(ids, some, ID_LENGTH), rows))
            places.append(some)
    return Upload(target, n, parts, places, bad)


def _columns(target: Target, body: bytes, n: int) -> tuple[bytes, bytes]:
    """Ids and payloads, each joined."""
    end = ID_LENGTH + target.payload_length
    if n == 1:
        frame = body[HEADER_LENGTH:]
        return frame[:ID_LENGTH], frame[ID_LENGTH:end]
    frames = np.frombuffer(body, np.uint8, offset=HEADER_LENGTH).reshape(n, target.frame_length)
    return frames[:, :ID_LENGTH].tobytes(), frames[:, ID_LENGTH:end].tobytes()


def _take(joined: bytes, places: list[int], length: int) -> bytes:
    return b"".join([joined[k * length : (k + 1) * length] for k in places])


def _bad_forms(target: Target, payloads: bytes, n: int) -> dict[int, Reason]:
    """The frames whose payload no device could have made."""
    length, check = target.payload_length, target.oracle.law.check_payload
    suspects: Sequence[int] = range(n)
    if n > _FEW:
        rows = np.frombuffer(payloads, np.uint8).reshape(n, length)
        suspects = np.flatnonzero(~target.oracle.valid(rows)).tolist()
    bad = {}
    for k in suspects:
        try:
            check(payloads[k * length : (k + 1) * length])
        except ReportRejected as rejected:
            bad[k] = rejected.reason
    return bad


def _bad_tokens(target: Target, ids: bytes, body: bytes, places: list[int]) -> dict[int, Reason]:
    """Of these frames those whose token is not the issuer's, not the id's, or of another group."""
    size, end = target.frame_length, ID_LENGTH + target.payload_length
    parts = {k: body[HEADER_LENGTH + k * size + end : HEADER_LENGTH + (k + 1) * size] for k in places}
    campaign = target.terms.campaign
    if campaign.key is None:
        return dict.fromkeys(places, Reason.TOKEN)
    nonces = [part[:NONCE_LENGTH] for part in parts.values()]
    signatures = [part[NONCE_LENGTH:] for part in parts.values()]
    wave = PANEL_WAVE if campaign.enrolment == "panel" else target.wave
    mask = verify(campaign.key, [campaign.token_message(nonce) for nonce in nonces], signatures)
    bad = {}
    for k, valid, nonce, signature in zip(places, mask, nonces, signatures, strict=True):
        if not valid or report_id(nonce) != ids[k * ID_LENGTH : (k + 1) * ID_LENGTH]:
            bad[k] = Reason.TOKEN
        elif token_group(signature, campaign.digest, wave, target.groups) != target.group:
            bad[k] = Reason.GROUP
    return bad


def is_plain(request: Request, other_sites: bool) -> bool:
    """Whether a request is an upload that asks for nothing special; a page of another site does."""
    target = request.target
    if len(target) != _TARGET_LENGTH or not target.startswith(_BEFORE) or not target.endswith(_AFTER):
        return False
    for name, value in request.headers:
        if (name == b"content-type" and value != MEDIA_TYPE) or (other_sites and name == b"origin"):
            return False
    return request.method == "POST"


@dataclass(slots=True)
class Ingest:
    """The ASGI application of one route, ``POST /v1/campaigns/{campaign}/reports``."""

    directory: Directory
    committer: Committer
    metrics: Metrics
    settings: Settings
    limit: RateLimit
    headers: list[tuple[bytes, bytes]]
    outages: Outages
    refusals: Counter[tuple[str, int, str]] = field(default_factory=Counter)  # for the store, flushed now and then
    uploads: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    checking: int = 0  # reports whose signatures are checked in the thread, or wait for it
    checker: Executor = field(default_factory=lambda: ThreadPoolExecutor(1, "ahead-tokens"))  # of many signatures
    plain: list[tuple[bytes, bytes]] = field(init=False)  # the headers of an answer

    def __post_init__(self) -> None:
        """What does not change is made once."""
        self.plain = [(b"content-type", b"application/json"), *self.headers]

    @staticmethod
    def takes(scope: Scope) -> bool:
        """Whether a request is an upload."""
        path = scope["path"]
        return scope["method"] == "POST" and path.endswith(SUFFIX) and path.startswith(PREFIX)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one upload."""
        try:
            body = await self._body(scope, receive)
            status, headers = 200, self.plain
            answer = await self._take(scope["path"][len(PREFIX) : -len(SUFFIX)], body)
        except Problem as problem:
            status, headers, answer = self.refusal(problem)
        length = (b"content-length", str(len(answer)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": answer})

    def take(self, request: Request, reply: Reply, headers: Lines) -> bool:
        """Answer a plain upload when it is durable, without a task; False if something is to be looked up or refused.

        ``headers`` are in every answer beside the usual ones.
        """
        try:
            allowed = partial(self.limit.admits, request.client)
            upload = self.ready(request.target[len(_BEFORE) : -len(_AFTER)], request.body, allowed)
            if upload is None:
                return False
            self.committer.take(upload.parts, upload.n, partial(self._settled, upload, reply, headers))
        except Exception:  # a problem, or our own mistake: the long way meets it again, tells the peer and logs it
            return False
        return True

    def _settled(self, upload: Upload, reply: Reply, headers: Lines, result: list[bytes] | BaseException) -> None:
        """The commit of an upload on the short way has ended."""
        try:
            if isinstance(result, BaseException):
                raise self.problem(result)
            reply(200, [*self.plain, *headers], self.answer(upload, result))
        except Problem as problem:
            status, own, body = self.refusal(problem)
            reply(status, [*own, *headers], body)

    def ready(self, campaign: bytes, body: bytes, allowed: Callable[[], bool]) -> Upload | None:
        """An upload whose question is known already, parsed; None where something is to be looked up or refused.

        ``allowed`` counts the request, so it is asked only if nothing else is in the way, a full queue included.
        """
        target = self.directory.cached_target(body[1:HEADER_LENGTH])
        if target is None or body[0] != VERSION or hexlify(body[1:33]) != campaign:
            return None
        n = frames_of(target, body, self.settings.max_batch)
        if (target.has_tokens and n > _FEW) or not self.committer.has_room(n) or not allowed():
            return None
        return parse_upload(target, body, n)

    def flush_metrics(self) -> None:
        """Move what was counted in plain numbers, which is cheaper for each upload, to the metrics."""
        for status, count in self.uploads.items():
            self.metrics.uploads.labels(status).inc(count)
        self.metrics.accepted.inc(self.accepted)
        self.uploads.clear()
        self.accepted = 0

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        self.limit.check(scope)
        for name, value in scope["headers"]:
            if name == b"content-type" and value.partition(b";")[0].strip().lower() != MEDIA_TYPE:
                raise Problem("unsupported_media_type", "application/octet-stream is taken")
        largest = self.settings.max_body_bytes
        check_length(scope, largest)
        take = limited(receive, largest)
        message = await take()
        body = message.get("body", b"")
        while message.get("more_body"):
            message = await take()
            body += message.get("body", b"")
        if message["type"] == "http.disconnect":
            raise Problem("truncated")
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
            n = frames_of(target, body, self.settings.max_batch)
            if target.has_tokens and n > _FEW:
                upload = await self._check_signatures(target, body, n)
            else:
                upload = parse_upload(target, body, n)
            outcomes = await self.committer.submit(upload.parts, upload.n)
        except Exception as error:
            raise self.problem(error) from None
        return self.answer(upload, outcomes)

    async def _check_signatures(self, target: Target, body: bytes, n: int) -> Upload:
        """Parse in the thread, whose queue is part of the bounded one."""
        if self.checking and self.checking + n > self.settings.queue_reports:
            raise Problem("busy")
        self.checking += n
        try:
            return await asyncio.get_running_loop().run_in_executor(self.checker, parse_upload, target, body, n)
        finally:
            self.checking -= n

    async def _load_target(self, key: bytes) -> Target:
        target = await asyncio.to_thread(self.directory.target, key)
        if target is None:
            raise Problem("wrong_question")
        return target

    def answer(self, upload: Upload, outcomes: list[bytes]) -> bytes:
        """The body of an answer to those whose commit has ended."""
        accepted, refused = upload.answer(outcomes)
        self.accepted += accepted
        self.uploads["200"] += 1
        if not refused:
            return b'{"accepted":%d,"refused":[]}' % accepted
        for reason, count in Counter(reason for _, reason in refused).items():
            self.metrics.refused.labels(reason.value).inc(count)
            self.refusals[upload.target.terms.digest, upload.target.wave, reason.value] += count
        listed = ",".join(f'{{"index":{k},"reason":"{reason.value}"}}' for k, reason in refused)
        return f'{{"accepted":{accepted},"refused":[{listed}]}}'.encode()

    def problem(self, error: BaseException) -> Problem:
        """What to say about an error; one that nobody expected is logged."""
        if isinstance(error, Problem):
            return error
        if isinstance(error, StoreUnavailable):
            self.outages.tell(error)
            return Problem("key_missing" if isinstance(error, KeyMissing) else "unavailable")
        LOGGER.error("upload_failed", exc_info=error)
        return Problem("internal")

    def refusal(self, problem: Problem) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Status, headers and body of a refused upload, which is counted."""
        self.metrics.problems.labels(problem.kind).inc()
        self.uploads[str(problem.status)] += 1
        headers = [(k.encode(), v.encode()) for k, v in problem.headers().items()]
        return problem.status, [*headers, *self.headers], problem.body()
