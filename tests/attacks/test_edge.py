"""Attacks on the edge with sockets of their own: desync, slow senders and readers, floods, anonymous writes."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time

import pytest

from tests.attacks.target import attacked, ended, read_all, read_answer

SHORT = {"header_s": 1, "body_s": 1, "idle_s": 2, "answer_s": 1}
BODY = 4 << 20


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """With short deadlines, small budgets, and no limit per address: all attackers here have one."""
    options = {**SHORT, "rate_per_s": 0, "max_connections": 150, "max_held_bytes": 4 * BODY}
    with attacked(tmp_path_factory.mktemp("edge"), **options) as made:
        yield made


@pytest.fixture
def crowd():
    """Many connections, closed at the end."""
    with contextlib.ExitStack() as stack:

        def connect(target, n):
            return [stack.enter_context(target.connect()) for _ in range(n)]

        yield connect


def until(condition, seconds=15.0):
    """Whether a condition comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


# Finding 5: another protocol, and what else could make two readers disagree about where a request ends

SMUGGLED = b"GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.mark.parametrize("path", ["/v1/health", "/v1/campaigns/{}/reports"])
def test_finding_5_the_late_body_of_an_upgrade_is_not_a_second_request(target, path):
    head = f"POST {path.format(target.campaign)} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: other\r\n"
    with target.connect() as connection:
        connection.sendall(f"{head}content-length: {len(SMUGGLED)}\r\n\r\n".encode())
        time.sleep(0.3)
        connection.sendall(SMUGGLED)
        data = read_all(connection)
    assert data.count(b"HTTP/1.1 ") == 1
    assert data.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in data
    assert b'"status":"ok"' not in data


NOT_OURS = {
    "two lengths": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
    "length and chunks": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
    "signed length": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: +5\r\n\r\n",
    "other coding": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "folded header": b"POST / HTTP/1.1\r\nhost: x\r\nx-a: b\r\n c: d\r\ncontent-length: 0\r\n\r\n",
    "space before colon": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length : 5\r\n\r\n",
    "bare line feeds": b"GET / HTTP/1.1\nhost: x\n\n",
    "no host": b"GET /v1/health HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /v1/health HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
    "connect": b"CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n",
    "trace": b"TRACE /v1/health HTTP/1.1\r\nhost: x\r\n\r\n",
    "unknown method": b"BREW /v1/health HTTP/1.1\r\nhost: x\r\n\r\n",
    "whole address": b"GET http://elsewhere/v1/health HTTP/1.1\r\nhost: x\r\n\r\n",
    "upgrade alone": b"GET /v1/health HTTP/1.1\r\nhost: x\r\nupgrade: h2c\r\n\r\n",
    "http 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "http 2 in name": b"GET /v1/health HTTP/2.0\r\nhost: x\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
    "long header": b"GET /v1/health HTTP/1.1\r\nhost: x\r\nx-a: " + b"a" * 20_000 + b"\r\n\r\n",
    "many headers": b"GET /v1/health HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 200 + b"\r\n",
    "long target": b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    "too large": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999\r\n\r\n",
}


@pytest.mark.parametrize("request_", NOT_OURS.values(), ids=NOT_OURS)
def test_what_is_not_ours_gets_one_refusal_and_a_close(target, request_):
    with target.connect() as connection:
        connection.sendall(request_)
        time.sleep(0.05)
        with contextlib.suppress(OSError):  # closed already
            connection.sendall(SMUGGLED)
        data = read_all(connection)
    assert data.count(b"HTTP/1.1 ") == 1
    assert data.split()[1] in (b"400", b"405", b"413", b"431")
    assert b"connection: close" in data
    assert b'"status":"ok"' not in data


# Finding 7: who keeps the server waiting


def test_finding_7_half_open_connections_end_and_uploads_go_on(target, crowd):
    silent, begun = crowd(target, 100), crowd(target, 200)
    for connection in begun:
        connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\nx-")
    assert all(target.counts_an_upload() for _ in range(20))  # although twice as many wait as may be there
    assert until(lambda: all(ended(connection) for connection in silent + begun), 6)


def test_a_trickle_of_header_bytes_does_not_help(target):
    with target.connect() as connection:
        connection.settimeout(0.1)
        data, start = b"", time.monotonic()
        connection.sendall(b"GET /v1/health HTTP/1.1\r\n")
        while time.monotonic() < start + 6:
            try:
                connection.sendall(b"x")
                if not (more := connection.recv(4096)):
                    break
                data += more
            except TimeoutError:
                continue
            except OSError:
                break
        assert time.monotonic() < start + 5
    assert data.startswith(b"HTTP/1.1 408 ")


def stall(target, connections):
    """Send bodies of which the last byte does not come."""
    for connection in connections:
        connection.settimeout(1)
        with contextlib.suppress(OSError):  # thrown out before it was through
            connection.sendall(target.upload(bytes(BODY))[:-1])


def test_finding_7_stalled_bodies_hold_bounded_memory_and_uploads_go_on(target, crowd):
    before, waiting = target.resident_mb(), crowd(target, 24)
    stall(target, waiting)
    assert all(target.counts_an_upload() for _ in range(20))
    assert target.resident_mb() - before < 80  # four bodies are held at most, and what the allocator keeps
    assert until(lambda: all(ended(connection) for connection in waiting), 6)


def test_answers_that_nobody_reads_end(target, crowd):
    """The OpenAPI document is large; asked for again and again it fills every buffer on the way."""
    ask = b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n"
    before, readers = target.resident_mb(), crowd(target, 20)
    for connection in readers:
        connection.settimeout(1)
        with contextlib.suppress(OSError):
            connection.sendall(ask * 200)
    assert all(target.counts_an_upload() for _ in range(20))
    assert target.resident_mb() - before < 60

    def over(connection):
        try:
            connection.sendall(ask)
        except OSError:
            return True
        return False

    assert until(lambda: all(over(connection) for connection in readers), 10)


def test_requests_that_wait_behind_an_answer_hold_bounded_memory(tmp_path, crowd):
    """Their headers were in no budget: 330 KB for each connection, with 4,096 of them more than a gigabyte."""
    lines = b"".join(b"a%d: %b\r\n" % (i, b"v" * 140) for i in range(97))
    many = b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n"
    many += (b"GET /v1/health HTTP/1.1\r\nhost: x\r\n" + lines + b"\r\n") * 15
    with attacked(tmp_path, rate_per_s=0, max_held_bytes=8 << 20) as target:
        assert target.counts_an_upload()
        target.ask("GET", "/v1/openapi.json")
        target.forget_peak()
        before = target.resident_mb()
        for connection in crowd(target, 200):
            connection.settimeout(0.2)
            with contextlib.suppress(OSError):
                connection.sendall(many)
        assert target.counts_an_upload()
        assert target.peak_mb() - before < 25


def test_slow_readers_do_not_take_the_place_of_those_who_ask(tmp_path):
    """Each kept one of the requests that are worked on at once, for as long as it read a little: 256 kept all."""
    ask = b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n"
    with attacked(tmp_path, rate_per_s=0, max_requests=4) as target, contextlib.ExitStack() as stack:
        readers = []
        for _ in range(4):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)  # small buffers on the other side, too
            connection.connect(("127.0.0.1", target.port))
            readers.append(connection)
        for _ in range(40):  # one after the other: the server stops to listen to who sends many at once
            for connection in readers:
                with contextlib.suppress(OSError):  # it had to go
                    connection.sendall(ask)
            time.sleep(0.05)
            assert talk(target, path="/v1/health")[0] == 200
        _, _, metrics = talk(target, f"authorization: Bearer {target.token}", path="/metrics")
        assert 'ahead_edge_ended_total{reason="unread"}' in metrics


@pytest.mark.parametrize("path", ["", "/{}/withdrawals", "/{}/queries"])
@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
def test_what_a_stranger_sends_as_json_is_not_read(target, path, chunked):
    """Four megabytes of empty lists are ninety in memory; they were read before anybody looked at the token."""
    lists = b'{"nonce":[' + b"[]," * 1_300_000 + b"[]]}"
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(lists), lists) if chunked else lists
    lines = ["transfer-encoding: chunked" if chunked else f"content-length: {len(body)}", "connection: close"]
    lines += ["content-type: application/json", "host: x", "authorization: Bearer ahead_nothing"]
    head = f"POST /v1/campaigns{path.format(target.campaign)} HTTP/1.1\r\n" + "\r\n".join(lines)
    before = target.resident_mb()
    target.forget_peak()
    with target.connect() as connection:
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        assert read_all(connection).startswith(b"HTTP/1.1 401 ")
    assert target.peak_mb() - before < 40


def test_only_operators_send_long_json(target):
    made = json.loads(target.ask("POST", "/v1/tokens", {"role": "analyst", "name": "reader"}))
    analyst, operator = (f"authorization: Bearer {token}" for token in (made["token"], target.token))
    path, kind = f"/v1/campaigns/{target.campaign}/queries", "application/json"
    statuses = []
    for bearer, size in ((analyst, 100_000), (analyst, 300_000), (operator, 300_000), (operator, BODY + 1)):
        body = b'{"queries":["' + b"x" * (size - 15) + b'"]}'
        statuses.append(talk(target, bearer, method="POST", path=path, body=body, kind=kind)[0])
    assert statuses == [409, 413, 409, 413]  # 409: nothing has been counted yet


def test_idle_connections_end(target):
    with target.connect() as connection:
        connection.sendall(target.upload(target.batch()))
        assert b"200 OK" in read_answer(connection)
        assert not ended(connection)
        assert until(lambda: ended(connection), 6)


def test_finding_7_one_address_is_limited_by_default(tmp_path):
    with attacked(tmp_path) as target, target.connect() as connection:
        statuses = []
        for _ in range(400):
            connection.sendall(b"GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n")
            statuses.append(read_answer(connection).split()[1])
        assert statuses[0] == b"200"
        assert b"429" in statuses


def test_who_asks_too_often_over_ipv4_shuts_nobody_else_out_of_a_server_for_both_families(tmp_path):
    """Such a socket calls every peer of IPv4 ::ffff:a.b.c.d, and all of these share their first 64 bits."""

    def status(target, source):
        with socket.socket() as connection:
            connection.settimeout(20)
            connection.bind((source, 0))
            connection.connect(("127.0.0.1", target.port))
            connection.sendall(b"GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n")
            return read_answer(connection).split()[1]

    with attacked(tmp_path, host="::", rate_per_s=0.01, rate_burst=5) as target:
        assert until(lambda: status(target, "127.0.0.2") == b"429")
        assert status(target, "127.0.0.3") == b"200"


# Findings 9, 12 and 19: what an open door gives away


def talk(target, *lines, method="GET", path="/", body=b"", kind="application/x-www-form-urlencoded"):
    """One request on a connection of its own: status, head and body of the answer."""
    head = [f"{method} {path} HTTP/1.1", "host: x", "connection: close", *lines]
    head += [f"content-type: {kind}", f"content-length: {len(body)}"] if body else []
    with target.connect() as connection:
        connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        data = read_all(connection)
    head, _, text = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), text.decode()


def sign_in(target, *lines):
    status, head, _ = talk(target, *lines, method="POST", path="/login", body=f"token={target.token}".encode())
    assert status == 303
    return re.search(r"set-cookie: ([^=]+=[^;]+)(.*)", head).groups()


def test_finding_9_a_copied_cookie_is_worth_nothing_after_sign_out(target):
    cookie, _ = sign_in(target)
    assert target.token not in cookie
    status, _, page = talk(target, f"cookie: {cookie}")
    assert status == 200
    word = re.search(r'name="csrf" value="(\w+)"', page)[1]
    assert talk(target, f"cookie: {cookie}", method="POST", path="/logout", body=f"csrf={word}".encode())[0] == 303
    assert talk(target, f"cookie: {cookie}")[0] == 303  # to the login
    assert talk(target, f"cookie: ahead_session={target.token}")[0] == 303


def test_finding_9_cookies_are_secure_behind_a_proxy_that_says_so(tmp_path, target):
    over_tls = ("x-forwarded-proto: https", "x-forwarded-for: 192.0.2.7")
    assert "secure" not in sign_in(target, *over_tls)[1].lower()  # this server trusts nobody
    with attacked(tmp_path, trusted_proxies="127.0.0.1") as behind:
        cookie, rest = sign_in(behind, *over_tls)
        assert "secure" in rest.lower()
        assert cookie.startswith("__Host-")
        assert talk(behind, f"cookie: {cookie}", *over_tls)[0] == 200
        assert talk(behind, f"cookie: {cookie}")[0] == 303  # not over a plain connection


def test_finding_9_the_first_token_is_valid_for_a_day(target):
    (first,) = [token for token in json.loads(target.ask("GET", "/v1/tokens")) if token["name"] == "first"]
    assert first["expires_at"] == first["created_at"] + 86_400


def test_finding_12_a_token_made_or_revoked_beside_the_store_is_in_the_audit_chain(tmp_path):
    store = ["--set", f"store={tmp_path}/attacked.db"]
    with attacked(tmp_path) as target:
        for more in ([], ["--revoke"]):
            command = [
                sys.executable,
                "-m",
                "ahead_ldp",
                "token",
                "--role",
                "analyst",
                "--name",
                "reader",
                *more,
                *store,
            ]
            subprocess.run(command, check=True, capture_output=True)
        events = [e["event"] for e in json.loads(target.ask("GET", "/v1/events"))]
    about = [(e["event"], e["name"]) for e in events if e.get("name") == "reader"]
    assert about == [("token_added", "reader"), ("token_revoked", "reader")]
    settings = [e["settings"] for e in events if e["event"] == "settings"]
    assert settings == [{"closer_interval_s": "0.0", "keys": os.environ["AHEAD_KEYS"]}]


def test_finding_19_metrics_are_private(target):
    for lines in ((), ("x-forwarded-for: 127.0.0.1",), ("authorization: Bearer ahead_nothing",)):
        status, _, text = talk(target, *lines, path="/metrics")
        assert (status, "ahead_reports" in text) == (401, False)
    made = json.loads(target.ask("POST", "/v1/tokens", {"role": "monitor", "name": "prometheus"}))
    bearer = f"authorization: Bearer {made['token']}"
    status, _, text = talk(target, bearer, path="/metrics")
    assert (status, "ahead_reports_accepted_total" in text) == (200, True)
    assert "ahead_connections " in text
    assert talk(target, bearer, path="/v1/campaigns")[0] == 403


def test_nobody_writes_durably_by_asking_whether_the_server_is_ready(target):
    """Readiness is a real write. Whoever asks for it all the time gets the answer of a moment ago."""
    before, started = target.written_bytes(), time.monotonic()
    with target.connect() as connection:
        for _ in range(500):
            connection.sendall(b"GET /v1/ready HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b"200 OK" in read_answer(connection)
    commits = (target.written_bytes() - before) / 4096
    assert commits < 20 + 6 * (time.monotonic() - started)


@pytest.mark.soak
def test_5000_half_open_connections_and_200_stalled_bodies(tmp_path, crowd):
    """With the defaults, but for the limit per address: memory is bounded, and uploads go on."""
    with attacked(tmp_path, rate_per_s=0) as target:
        assert target.counts_an_upload()
        before = target.resident_mb()
        half = crowd(target, 5000)
        for connection in half:
            with contextlib.suppress(OSError):  # the oldest have gone already
                connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\nx-")
        assert all(target.counts_an_upload() for _ in range(50))
        with_half = target.resident_mb()
        waiting = crowd(target, 200)
        stall(target, waiting)
        assert all(target.counts_an_upload() for _ in range(50))
        with_bodies = target.resident_mb()
        print(f"resident {before:.0f} MB, half-open {with_half:.0f} MB, stalled bodies {with_bodies:.0f} MB")
        assert with_half - before < 100
        assert with_bodies - before < 128 * 1.05 + 200
        assert until(lambda: all(ended(connection) for connection in half), 20)
        assert until(lambda: all(ended(connection) for connection in waiting), 45)
