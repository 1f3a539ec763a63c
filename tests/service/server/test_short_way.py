"""Uploads over real connections: what goes the short way, and that its answers are the long way's."""

import os
import socket
import threading
import time
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahead_ldp.device.campaign import Campaign, check_wave
from ahead_ldp.device.frames import HEADER_LENGTH, Report, encode_batch
from ahead_ldp.device.question import Policy
from ahead_ldp.service.campaigns.campaign import draft
from ahead_ldp.service.server import application
from ahead_ldp.service.server.committing import Committer
from ahead_ldp.service.server.config import NO_RATES, Settings
from ahead_ldp.service.server.embedded import start
from ahead_ldp.service.server.ingest import Ingest
from ahead_ldp.service.store import SQLiteStore, StoreUnavailable
from tests.service.server.harness import TEXTS

WAIT_S = 30


class Running:
    """A listening server with one open campaign, and how its uploads went."""

    def __init__(self, server):
        self.server, self.store = server, server.service.store
        terms = draft(
            {**TEXTS, "schema": ["age=integer,0,4"], "epsilon": "2", "minimum": 2, "created": "2026-11-15",
             "closing": {"kind": "manual"}, "method": {"name": "flat", "choices": {"oracle": "oue"}}}
        )  # fmt: skip
        server.service.create(terms)
        self.campaign = terms.digest
        server.service.open(self.campaign)
        record = Campaign.from_bytes(self.store.campaign(self.campaign).record, self.campaign)
        answers = self.exchange(b"GET /v1/campaigns/%b/waves/1 HTTP/1.1\r\nhost: x\r\n\r\n" % self.name)
        (self.question,) = check_wave(answers[0].body, record, 1, Policy("64")).values()
        self.post(self.body(1))  # the question is known from here on

    @property
    def name(self):
        return self.campaign.encode()

    @property
    def stored(self):
        return sum(self.store.counts(self.campaign, 1).values())

    def body(self, n=1):
        return encode_batch(self.question.header, [Report(os.urandom(16), b"\1") for _ in range(n)])

    def request(self, body, *lines, path=b"", version=b"1.1", length=True, kind=b"application/octet-stream"):
        head = [b"POST /v1/campaigns/%b/reports%b HTTP/%b" % (self.name, path, version), b"host: x", *lines]
        head += [b"content-type: " + kind] if kind else []
        head += [b"content-length: %d" % len(body)] if length else []
        return b"\r\n".join(head) + b"\r\n\r\n" + body

    def post(self, body, *lines, **options):
        return self.exchange(self.request(body, *lines, **options))[0]

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.server.server.port), WAIT_S)

    def exchange(self, data, n=1, cuts=()):
        """Send in pieces; the first n answers."""
        with self.connect() as connection:
            for i, j in zip([0, *cuts], [*cuts, len(data)], strict=True):
                connection.sendall(data[i:j])
            return read(connection, n)


class Answer:
    def __init__(self, head, body):
        first, *lines = head.split(b"\r\n")
        self.status, self.body = int(first.split()[1]), body
        self.headers = sorted(line for line in lines if not line.startswith(b"date:"))

    def __eq__(self, other):
        return (self.status, self.headers, self.body) == (other.status, other.headers, other.body)


def read(connection, n):
    data, found = b"", []
    while len(found) < n:
        head, end, rest = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if end and len(rest) >= length:
            if b" 100 " not in head.partition(b"\r\n")[0]:
                found.append(Answer(head, rest[:length]))
            data = rest[length:]
            continue
        more = connection.recv(65_536)
        assert more, data
        data += more
    return found


@contextmanager
def serving(folder, **options):
    store = SQLiteStore(folder / "service.db")
    with start(
        store, Settings(port=0, **{"closer_interval_s": 0.0, "window_ms": 0.0, **NO_RATES, **options})
    ) as server:
        yield Running(server)
    store.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("direct"), max_batch=50) as made:
        yield made


@pytest.fixture
def ways(monkeypatch):
    """Which way uploads went."""
    gone, take, call = [], Ingest.take, Ingest.__call__

    async def long(self, *args):
        gone.append("long")
        await call(self, *args)

    def short(self, *args):
        taken = take(self, *args)
        gone.extend(["short"] * taken)
        return taken

    monkeypatch.setattr(Ingest, "__call__", long)
    monkeypatch.setattr(Ingest, "take", short)
    return gone


def chunked(body):
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:])) + b"0\r\n\r\n"


def special(running, kind, n=1):
    """A whole upload that asks for something special."""
    body = running.body(n)
    if kind == "chunked":
        return running.request(chunked(body), b"transfer-encoding: chunked", length=False)
    return running.request(
        body,
        *([b"expect: 100-continue"] if kind == "expect" else []),
        path=b"?x=1" if kind == "query" else b"",
        kind=b"application/octet-stream; x=y" if kind == "parameter" else b"application/octet-stream",
    )


LONG, OTHER = ("query", "parameter"), ("chunked", "expect")  # the way of these; other forms of a plain upload


def test_a_plain_upload_goes_the_short_way_and_the_answers_are_the_same(shared, ways):
    before = shared.stored
    answers = [shared.post(shared.body()), shared.post(shared.body(), kind=None)]
    answers.append(shared.post(shared.body(), b"origin: https://example.org"))  # as a page of this server has it
    answers += [shared.exchange(special(shared, kind))[0] for kind in OTHER]
    assert ways == ["short"] * 5
    answers += [shared.exchange(special(shared, kind))[0] for kind in LONG]
    assert ways == ["short"] * 5 + ["long"] * 2
    assert all(answer == answers[0] for answer in answers)
    assert b"x-content-type-options: nosniff" in answers[0].headers
    assert answers[0].body == b'{"accepted":1,"refused":[]}'
    assert shared.stored == before + len(answers)


def test_refusals_of_single_reports_are_the_same(shared, ways):
    body = shared.body(3)
    body = body[:-1] + b"\xff"  # padding that is not zero
    first = shared.post(body)
    again = shared.post(body, path=b"?x=1")
    assert ways == ["short", "long"]
    assert first == again
    assert first.body == b'{"accepted":2,"refused":[{"index":2,"reason":"padding_not_zero"}]}'


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda body: body[:10], 400),
        (lambda body: b"", 400),
        (lambda body: body[:-1], 400),
        (lambda body: b"\2" + body[1:], 400),
        (lambda body: body[:1] + bytes(32) + body[33:], 400),
        (lambda body: body[:33] + bytes(32) + body[65:], 409),
        (lambda body: body + body[HEADER_LENGTH:] * 50, 413),
    ],
)
def test_what_is_refused_as_a_whole_goes_the_long_way(shared, ways, change, status):
    body = change(shared.body())
    answer = shared.post(body)
    assert ways == ["long"]
    assert answer.status == status
    assert answer == shared.post(body, path=b"?x=1")


def test_connections_that_end_are_said_to_end(shared, ways):
    for options in ({"version": b"1.0"}, {"version": b"1.1"}):
        with shared.connect() as connection:
            connection.sendall(shared.request(shared.body(), b"connection: close", **options))
            (answer,) = read(connection, 1)
            assert (answer.status, connection.recv(1)) == (200, b"")
            assert b"connection: close" in answer.headers
    assert ways == ["short", "short"]


def test_garbage_after_an_upload_is_a_bad_request(shared):
    with shared.connect() as connection:
        connection.sendall(shared.request(shared.body()))
        assert read(connection, 1)[0].status == 200
        connection.sendall(b"\0garbage\r\n\r\n")
        assert read(connection, 1)[0].status == 400
        assert connection.recv(1) == b""


@settings(max_examples=40)
@given(data=st.data())
def test_answers_come_in_order_however_requests_are_cut_and_queued(shared, data):
    """Several requests on one connection without waiting, the bytes in any pieces: sizes tell the answers apart."""
    kinds = data.draw(
        st.lists(st.sampled_from(["plain", "plain", "plain", *LONG, *OTHER, "bad", "get"]), min_size=1, max_size=8)
    )
    made, wanted, before = b"", [], shared.stored
    for k, kind in enumerate(kinds, start=1):
        if kind == "get":
            made += b"GET /v1/healthz HTTP/1.1\r\nhost: x\r\n\r\n"
            wanted.append((404, None))
        elif kind == "bad":
            made += shared.request(shared.body(k)[:-1])
            wanted.append((400, None))
        else:
            made += shared.request(shared.body(k)) if kind == "plain" else special(shared, kind, k)
            wanted.append((200, b'{"accepted":%d,"refused":[]}' % k))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(made) - 1), max_size=6)))
    answers = shared.exchange(made, len(wanted), cuts)
    assert [(a.status, a.body if a.status == 200 else None) for a in answers] == wanted
    assert shared.stored == before + sum(k for k, (status, _) in enumerate(wanted, start=1) if status == 200)


# What happens around it


class Gate:
    """A store that commits when it may, and fails when it is told to; it sees every upload come to the queue."""

    def __init__(self, store, monkeypatch, error=None):
        self.open, self.reached, add = threading.Event(), threading.Event(), type(store).add_reports
        self._queued, take = threading.Semaphore(0), Committer.take

        def gated(_, batches):
            self.reached.set()
            assert self.open.wait(WAIT_S)
            if error is not None:
                raise error
            return add(store, batches)

        def seen(*args):
            take(*args)
            self._queued.release()

        monkeypatch.setattr(type(store), "add_reports", gated)
        monkeypatch.setattr(Committer, "take", seen)

    def queued(self, uploads):
        """Whether so many uploads come to the queue in time."""
        return all(self._queued.acquire(timeout=WAIT_S) for _ in range(uploads))


def test_nothing_is_answered_before_the_commit(shared, monkeypatch):
    gate = Gate(shared.store, monkeypatch)
    with shared.connect() as connection:
        connection.sendall(shared.request(shared.body()))
        assert gate.reached.wait(WAIT_S)
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        gate.open.set()
        connection.settimeout(WAIT_S)
        assert read(connection, 1)[0].status == 200


@pytest.mark.parametrize(("error", "status"), [(StoreUnavailable("disk full"), 503), (RuntimeError("secret"), 500)])
def test_a_store_that_fails_is_a_problem_and_the_connection_lives(shared, ways, monkeypatch, error, status):
    with monkeypatch.context() as patch, shared.connect() as connection:
        Gate(shared.store, patch, error).open.set()
        body = shared.body()
        connection.sendall(shared.request(body))
        (answer,) = read(connection, 1)
        assert answer.status == status
        assert b"secret" not in answer.body
        assert b"content-type: application/problem+json" in answer.headers
        assert (b"retry-after: 5" in answer.headers) == (status == 503)
        patch.undo()
        connection.sendall(shared.request(body))
        assert read(connection, 1)[0].status == 200
    assert ways[0] == "short"


def test_our_own_mistake_is_a_problem_too(shared, ways, monkeypatch, caplog):
    with monkeypatch.context() as patch, shared.connect() as connection:
        patch.setattr("ahead_ldp.service.server.ingest.parse_upload", lambda *_: 1 / 0)
        body = shared.body()
        connection.sendall(shared.request(body))
        (answer,) = read(connection, 1)
        assert (answer.status, b"division" in answer.body) == (500, False)
        assert b"content-type: application/problem+json" in answer.headers
        patch.undo()
        connection.sendall(shared.request(body))
        assert read(connection, 1)[0].status == 200
    assert ways == ["long", "short"]


def test_whoever_hangs_up_is_counted_nevertheless(shared, monkeypatch):
    before, gate = shared.stored, Gate(shared.store, monkeypatch)
    with shared.connect() as connection:
        connection.sendall(shared.request(shared.body()))
        assert gate.reached.wait(WAIT_S)
    gate.open.set()
    deadline = time.monotonic() + WAIT_S
    while shared.stored != before + 1:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert shared.post(shared.body()).status == 200


def test_a_full_queue_refuses_the_short_way_too(tmp_path, monkeypatch):
    with serving(tmp_path, queue_reports=3) as running, running.connect() as first, running.connect() as second:
        gate = Gate(running.store, monkeypatch)
        first.sendall(running.request(running.body(2)))
        assert gate.reached.wait(WAIT_S)
        second.sendall(running.request(running.body(1)))
        assert gate.queued(2)
        answer = running.post(running.body(1))
        assert (answer.status, b"busy" in answer.body) == (429, True)
        gate.open.set()
        assert [read(c, 1)[0].status for c in (first, second)] == [200, 200]


def test_a_server_that_stops_answers_what_it_took(tmp_path, monkeypatch):
    with serving(tmp_path) as running, running.connect() as connection:
        gate = Gate(running.store, monkeypatch)
        connection.sendall(running.request(running.body()))
        assert gate.reached.wait(WAIT_S)
        running.server.server.ask_to_stop()
        threading.Timer(0.5, gate.open.set).start()
        (answer,) = read(connection, 1)
        assert answer.status == 200
        assert b"connection: close" in answer.headers
        assert connection.recv(1) == b""


def test_the_rate_limit_counts_every_request_once(tmp_path):
    with serving(tmp_path, rate_per_s=0.001, rate_burst=7) as running:  # two are spent on the way here
        assert running.post(running.body()[:-1]).status == 400
        assert running.post(running.body()).status == 200
        assert running.exchange(special(running, "chunked"))[0].status == 200
        assert [running.post(running.body()).status for _ in range(3)] == [200, 200, 429]
        assert running.post(running.body()[:-1]).status == 429


def test_a_full_queue_spends_the_rate_limit_once(tmp_path, monkeypatch):
    with (
        serving(tmp_path, queue_reports=3, rate_per_s=0.001, rate_burst=6) as running,  # two are spent on the way here
        running.connect() as first,
        running.connect() as second,
    ):
        gate = Gate(running.store, monkeypatch)
        first.sendall(running.request(running.body()))
        assert gate.reached.wait(WAIT_S)
        second.sendall(running.request(running.body()))
        assert gate.queued(2)
        assert b"busy" in running.post(running.body(3)).body
        gate.open.set()
        assert [read(connection, 1)[0].status for connection in (first, second)] == [200, 200]
        assert [running.post(running.body()).status for _ in range(2)] == [200, 429]


def test_behind_a_proxy_people_are_counted_and_not_the_proxy(tmp_path, ways):
    with serving(tmp_path, rate_per_s=0.001, rate_burst=2, trusted_proxies="127.0.0.1") as running:
        ways.clear()
        for person in (b"192.0.2.1", b"192.0.2.2"):
            statuses = [running.post(running.body(), b"x-forwarded-for: " + person).status for _ in range(3)]
            assert statuses == [200, 200, 429]
        assert ways == ["short", "short", "long"] * 2


def test_sites_that_may_embed_are_named_in_every_answer(tmp_path, ways):
    with serving(tmp_path, allowed_origins="https://example.org") as running:
        ways.clear()
        plain = running.post(running.body())
        other = running.exchange(special(running, "query"))[0]
        assert ways == ["short", "long"]
        assert plain == other
        assert b"vary: origin" in plain.headers
        opened = running.post(running.body(), b"origin: https://example.org")
        assert ways == ["short", "long", "long"]
        assert b"access-control-allow-origin: https://example.org" in opened.headers


@pytest.mark.parametrize("origins", ["", "https://example.org"])
def test_a_wave_gets_the_same_answer_on_both_ways(tmp_path, monkeypatch, origins):
    long, send = [], application.send_wave

    async def noted(*args):
        long.append(1)
        await send(*args)

    monkeypatch.setattr(application, "send_wave", noted)
    with serving(tmp_path, allowed_origins=origins) as running:

        def get(*lines, path=b""):
            head = [b"GET /v1/campaigns/%b/waves/1%b HTTP/1.1" % (running.name, path), b"host: x", *lines]
            return running.exchange(b"\r\n".join(head) + b"\r\n\r\n")[0]

        plain, queued = get(), running.exchange(
            2 * (b"GET /v1/campaigns/%b/waves/1 HTTP/1.1\r\nhost: x\r\n\r\n" % running.name), 2
        )  # fmt: skip
        assert long == []
        assert plain.status == 200
        assert get(path=b"?x=1") == get(b'if-none-match: "other"') == queued[0] == queued[1] == plain
        assert long == [1, 1]
        assert (b"vary: origin" in plain.headers) == bool(origins)
        etag = next(line for line in plain.headers if line.startswith(b"etag: ")).removeprefix(b"etag: ")
        same = get(b"if-none-match: " + etag)
        assert (same.status, same.body) == (304, b"")
        opened = get(b"origin: https://example.org")
        assert (b"access-control-allow-origin: https://example.org" in opened.headers) == bool(origins)


def test_the_rate_limit_counts_a_wave_once(tmp_path):
    with serving(tmp_path, rate_per_s=0.001, rate_burst=5) as running:  # two are spent on the way here
        get = b"GET /v1/campaigns/%b/waves/1 HTTP/1.1\r\nhost: x\r\n\r\n" % running.name
        assert [running.exchange(get)[0].status for _ in range(4)] == [200, 200, 200, 429]
