"""One connection: whole requests in, answers in order, and what becomes of everything else."""

import json
import socket
import threading
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahead_ldp.service.edge.connection import MOST_QUEUED, Connection
from ahead_ldp.service.edge.limits import Limits
from ahead_ldp.service.edge.proxies import Proxies
from ahead_ldp.service.edge.server import Server
from tests.service.edge.serving import BIG, PART, app, get, last, rest, serving


@pytest.fixture(scope="module")
def edge():
    with serving() as made:
        yield made


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def echoed(data):
    return json.loads(data.partition(b"\r\n\r\n")[2])


def test_a_request_is_seen_whole(edge):
    data = edge.exchange(last("/echo?a=1&b=%20", body=b"x" * 70_000, method="POST"))
    assert data.startswith(b"HTTP/1.1 200 OK\r\ndate: ")
    assert b"connection: close\r\n" in data
    said = echoed(data)
    client = said.pop("client")
    assert client[0] == "127.0.0.1"
    wanted = {"method": "POST", "path": "/echo", "scheme": "http", "http_version": "1.1", "body": 70_000}
    assert said == {**wanted, "query": "a=1&b=%20"}


def test_chunked_bodies_are_joined_and_trailers_left_out(edge):
    head = b"POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    assert echoed(edge.exchange(head + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nhost: y\r\n\r\n"))["body"] == 5


def test_a_body_that_waits_for_a_word_is_asked_for(edge):
    with edge.connect() as connection:
        connection.sendall(b"POST /echo HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"abc")
        assert b"200 OK" in connection.recv(1000)


@pytest.mark.parametrize(
    ("path", "method", "body"),
    [("/echo", "HEAD", b""), ("/empty", "GET", b""), ("/announced", "GET", b"abcde"), ("/announced", "HEAD", b"")],
)
def test_answers_have_the_bytes_that_they_announce(edge, path, method, body):
    data = edge.exchange(get(path, method=method) + last("/empty"))
    first, _, second = data.partition(b"\r\n\r\n")
    assert second.startswith(body + b"HTTP/1.1 204 ")
    assert (b"content-length" in first) == (path == "/announced")


def test_a_stream_is_chunked_and_for_an_old_client_ends_with_the_connection(edge):
    data = edge.exchange(last("/stream"))
    assert b"transfer-encoding: chunked" in data
    assert data.endswith(b"\r\n0\r\n\r\n")
    old = edge.exchange(get("/stream", "connection: keep-alive", version="1.0"))
    head, _, body = old.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert b"transfer-encoding" not in head
    assert len(body) == 80 * len(PART)


@pytest.mark.parametrize("path", ["/fails", "/split", "/nothing-is-said"])
def test_an_application_that_fails_is_a_problem_and_a_close(edge, path, caplog):
    data = edge.exchange(get(path))
    assert data.startswith(b"HTTP/1.1 500 ")
    assert b"application/problem+json" in data
    assert b"secret" not in data
    assert b"x-c: d" not in data


@pytest.mark.parametrize("path", ["/half", "/too-little"])
def test_half_an_answer_does_not_look_like_a_whole_one(edge, path, caplog):
    data = edge.exchange(get(path) + get("/echo"))
    assert not data.endswith(b"0\r\n\r\n")
    assert data.count(b"HTTP/1.1") <= 1


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_answers_come_in_order_however_requests_are_cut_and_queued(edge, data):
    sizes = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=MOST_QUEUED))
    made = b"".join(get(f"/echo?{i}", body=b"x" * n, method="POST") for i, n in enumerate(sizes)) + last("/empty")
    cuts = sorted(data.draw(st.sets(st.integers(1, len(made) - 1), max_size=5)))
    with edge.connect() as connection:
        for i, j in zip([0, *cuts], [*cuts, len(made)], strict=True):
            connection.sendall(made[i:j])
        answers = rest(connection).split(b"HTTP/1.1 ")[1:]
    assert len(answers) == len(sizes) + 1 or len(sizes) == MOST_QUEUED
    for i, (n, answer) in enumerate(zip(sizes, answers, strict=False)):
        assert (echoed(answer)["query"], echoed(answer)["body"]) == (str(i), n)


def test_more_requests_at_once_than_are_queued_end_the_connection(edge):
    data = edge.exchange(get("/echo") * 500)
    assert 2 <= data.count(b"HTTP/1.1 200") <= MOST_QUEUED + 2
    assert b"connection: close" in data.rpartition(b"HTTP/1.1 200")[2]


def test_long_headers_of_requests_that_wait_end_the_connection(edge):
    """What waits behind an answer is small: sixteen requests of 16 KB, and what Python keeps of them, were 330 KB."""
    long = get("/echo", *(f"x-{i}: {'v' * 140}" for i in range(90)))
    assert edge.exchange(get("/wait") + long * 8).count(b"HTTP/1.1 200 ") == 2
    assert edge.exchange(long * 8 + last("/echo")).count(b"HTTP/1.1 200 ") == 2
    assert edge.exchange(get("/wait") + get("/echo") * 8 + last("/echo")).count(b"HTTP/1.1 200 ") == 10
    with edge.connect() as connection:  # one after the other is any number
        for _ in range(8):
            connection.sendall(long)
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        connection.sendall(last("/echo"))
        assert b"200 OK" in rest(connection)


@pytest.mark.parametrize("line", ["content-length: 5 ", "content-length:5\t", "content-length: \t5 \t "])
def test_white_space_around_a_value_is_no_part_of_it(edge, line):
    answer = edge.exchange(last("/echo", line, method="POST") + b"abcde")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"body": 5' in answer


def test_a_peer_that_is_done_sending_still_gets_its_answer(edge):
    with edge.connect() as connection:
        connection.sendall(get("/wait"))
        connection.shutdown(1)
        assert rest(connection).endswith(b"waited")


def test_what_was_held_is_given_back(edge):
    with edge.connect() as one, edge.connect() as two:
        one.sendall(
            get("/wait", body=b"x" * 3000, method="POST") + b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nab"
        )
        two.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc")
        assert until(lambda: edge.house.held == 3005)
        assert one.recv(1000).endswith(b"waited")
        assert until(lambda: edge.house.held == 5)
    assert until(lambda: edge.house.held == 0)
    assert until(lambda: edge.house.working == 0)
    assert until(lambda: not edge.house.everybody)
    assert not edge.house.waiting
    assert not edge.house.bodies


# Deadlines and budgets


@pytest.mark.parametrize(
    ("sent", "limit", "status"),
    [
        (b"", "header_s", b""),
        (b"GET / HTT", "header_s", b"408"),
        (b"GET / HTTP/1.1\r\nhost: x\r\nx: ", "header_s", b"408"),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nabc", "body_s", b"408"),
        (b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc", "body_s", b"408"),
        (get("/echo"), "idle_s", b"200"),
    ],
)
def test_every_deadline_ends_the_connection_it_is_for(sent, limit, status):
    with serving(**{limit: 0.3}) as edge:
        start = time.monotonic()
        data = edge.exchange(sent)
        assert 0.25 < time.monotonic() - start < 5
    assert data[9:12] == status


def test_a_connection_in_a_state_that_nobody_thought_of_ends_as_idle():
    """Decision 018 promises it; a state without a branch of its own had no deadline."""
    with serving(header_s=0.3, idle_s=0.3) as edge, edge.connect() as connection:
        connection.sendall(get("/echo"))
        assert b"200 OK" in connection.recv(1000)
        (held,) = edge.house.everybody
        held._reading = 99
        assert rest(connection) == b""
        assert edge.house.refused["idle"] == 1


def test_the_deadlines_of_all_others_hold_if_one_connection_cannot_be_looked_at(monkeypatch, caplog):
    """The one task that looks ended with the first error, and every deadline with it."""
    look = Connection.look

    def fails(connection, now):
        if connection.peer == broken:
            raise RuntimeError("secret")
        return look(connection, now)

    with serving(header_s=0.5, idle_s=0.5) as edge, edge.connect() as one, edge.connect() as other:
        broken = one.getsockname()
        monkeypatch.setattr(Connection, "look", fails)
        assert rest(one) == rest(other) == b""
        assert (edge.house.refused["failed"], edge.house.refused["idle"]) == (1, 1)
        assert not edge.house.everybody


def test_a_deadline_of_one_kind_leaves_the_others_alone():
    with serving(header_s=0.5, body_s=10.0, idle_s=10.0) as edge, edge.connect() as connection:
        connection.sendall(get("/echo"))
        assert b"200 OK" in connection.recv(1000)
        time.sleep(0.7)  # idle
        connection.sendall(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n")
        time.sleep(0.7)  # a slow body
        connection.sendall(b"abc")
        assert b"200 OK" in connection.recv(1000)


@pytest.mark.parametrize("path", ["/big", "/stream"])
def test_an_answer_that_is_left_unread_ends_the_connection(path, caplog):
    with serving(answer_s=0.3) as edge, edge.connect(small=True) as connection:
        connection.sendall(get(path))
        assert until(lambda: edge.house.everybody)
        assert until(lambda: not edge.house.everybody)
        assert edge.house.refused["answer_deadline"] == 1
        assert until(lambda: not edge.house.working)


def test_an_answer_that_is_read_slowly_comes_through():
    with serving(answer_s=1.0) as edge, edge.connect() as connection:
        start, n = time.monotonic(), 0
        connection.sendall(last("/big"))
        while data := connection.recv(1 << 20):
            n += len(data)
            time.sleep(2.0 * len(data) / BIG)  # twice as long as one may leave it unread
        assert time.monotonic() - start > 1.5
        assert n > BIG


def test_unread_answers_are_part_of_the_budget():
    with serving(held_bytes=2 * BIG) as edge:
        readers = [edge.connect(small=True) for _ in range(6)]
        for connection in readers:
            connection.sendall(get("/big"))
        assert until(lambda: edge.house.refused["unread"] >= 1)
        left = len(edge.house.everybody)
        assert 1 <= left < 6
        time.sleep(0.5)
        assert len(edge.house.everybody) == left  # those within the budget stay
        for connection in readers:
            connection.close()


def test_the_oldest_that_waits_makes_room_for_a_new_connection():
    with serving(connections=3) as edge:
        first, second, third = (edge.connect() for _ in range(3))
        assert until(lambda: len(edge.house.everybody) == 3)
        first.sendall(get("/wait"))
        assert until(lambda: edge.house.working == 1)
        assert b"200 OK" in edge.exchange(last("/echo"))
        assert rest(second) == b""
        assert b"waited" in first.recv(1000)
        for connection in (first, second, third):
            connection.close()
        assert edge.house.refused["connections"] == 1


def test_a_house_full_of_work_takes_nobody():
    with serving(connections=2) as edge, edge.connect() as one, edge.connect() as two:
        for connection in (one, two):
            connection.sendall(get("/wait"))
        assert until(lambda: edge.house.working == 2)
        assert edge.exchange(last("/echo")) == b""
        assert b"waited" in one.recv(1000)
        assert b"waited" in two.recv(1000)


def test_the_oldest_incomplete_body_makes_room():
    with serving(held_bytes=1000) as edge, edge.connect() as old, edge.connect() as young:
        for connection, n in ((old, 400), (young, 500)):
            connection.sendall(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 600\r\n\r\n" + b"x" * n)
            assert until(lambda n=n: edge.house.held >= n)
        assert until(lambda: edge.house.held == 900)
        assert b"200 OK" in edge.exchange(last("/echo", body=b"x" * 300, method="POST"))
        assert rest(old).startswith(b"HTTP/1.1 503 ")
        young.sendall(b"x" * 100)
        assert b"200 OK" in young.recv(1000)


def test_more_requests_than_are_worked_on_are_told_to_come_back():
    with serving(requests=1) as edge, edge.connect() as one:
        one.sendall(get("/wait"))
        assert until(lambda: edge.house.working == 1)
        refused = edge.exchange(last("/echo"))
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in refused
        assert b"waited" in one.recv(1000)
        assert b"200 OK" in edge.exchange(last("/echo"))


@pytest.mark.parametrize("path", ["/big", "/stream"])
@pytest.mark.parametrize("short", [{"requests": 3}, {"connections": 3}], ids=["requests", "connections"])
def test_who_reads_slowly_makes_room_for_a_newcomer(path, short):
    """The one that has been waited for longest goes; who is only being worked for stays."""
    with serving(**short) as edge:
        working = edge.connect()
        readers = [edge.connect(small=True) for _ in range(2)]
        for k, connection in enumerate(readers):
            connection.sendall(get(path))
            assert until(lambda k=k: len(edge.house.readers) == k + 1)
        working.sendall(get("/wait"))
        assert until(lambda: edge.house.working == 3)
        assert b"200 OK" in edge.exchange(last("/echo"))
        assert len(rest(readers[0])) < BIG
        assert b"waited" in working.recv(1000)
        assert sum(edge.house.refused[reason] for reason in ("unread", "connections")) == 1
        data = b""
        while not data.endswith(b"\r\n0\r\n\r\n") and len(data) < BIG:
            data += readers[1].recv(1 << 20)  # the other one can still read on, to the end
        for connection in (working, *readers):
            connection.close()


@pytest.mark.parametrize("length", [True, False])
def test_a_body_beyond_the_limit_is_refused_while_it_comes(length):
    with serving(body_bytes=1000) as edge, edge.connect() as connection:
        head = b"content-length: 1001" if length else b"transfer-encoding: chunked"
        body = b"" if length else b"3e9\r\n" + b"x" * 1001
        connection.sendall(b"POST /echo HTTP/1.1\r\nhost: x\r\n" + head + b"\r\n\r\n" + body)
        assert rest(connection).startswith(b"HTTP/1.1 413 ")


def test_chunks_that_are_all_frame_are_refused():
    with serving(body_bytes=1000) as edge, edge.connect() as connection:
        connection.sendall(b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        sender = threading.Thread(target=lambda: _ignore(connection, b"1;" + b"x" * 400 + b"\r\na\r\n"))
        sender.start()
        assert rest(connection).startswith(b"HTTP/1.1 413 ")
        sender.join()


def test_a_body_in_the_smallest_chunks_weighs_what_it_holds():
    """Kept piece by piece, two bytes weighed 64, and the budget of bytes in hand counted two."""
    with serving() as edge, edge.connect() as connection:
        connection.sendall(b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n")
        assert until(lambda: edge.house.held == 2)
        tracemalloc.start()
        try:
            connection.sendall(b"2\r\nab\r\n" * 50_000)
            assert until(lambda: edge.house.held == 100_002)
            assert tracemalloc.get_traced_memory()[0] < 5 * edge.house.held
        finally:
            tracemalloc.stop()
        connection.sendall(b"0\r\n\r\n")
        assert echoed(connection.recv(1000))["body"] == 100_002


def _ignore(connection, data):
    try:
        for _ in range(60):
            connection.sendall(data)
            time.sleep(0.01)
    except OSError:
        pass


@pytest.mark.parametrize("name", Limits.__slots__)
def test_limits_that_cannot_work_are_refused_by_name(name):
    with pytest.raises(ValueError, match=f"expected {name} > 0, got 0"):
        Limits(**{name: 0})


# The short way, stopping, proxies


def test_the_short_way_takes_what_it_wants_and_replies_later():
    def short_way(request, reply):
        if request.target != b"/short":
            return False
        threading.Timer(
            0.1, lambda: edge.house.loop.call_soon_threadsafe(reply, 200, [(b"x-a", b"b")], b"short")
        ).start()
        return True

    with serving(short_way=short_way) as edge:
        data = edge.exchange(get("/short") + get("/echo") + last("/short"))
    assert [part[:3] for part in data.split(b"HTTP/1.1 ")[1:]] == [b"200"] * 3
    assert data.count(b"short") == 2
    assert data.endswith(b"short")


def test_a_server_that_stops_answers_what_it_took_and_takes_nothing_new():
    with serving() as edge, edge.connect() as busy, edge.connect() as idle:
        busy.sendall(get("/wait"))
        assert until(lambda: edge.house.working == 1)
        edge.server.ask_to_stop()
        assert rest(idle) == b""
        data = rest(busy)
        assert data.endswith(b"waited")
        assert b"connection: close" in data
        with pytest.raises(OSError):
            edge.connect()


def test_an_application_hears_that_the_peer_has_gone(caplog):
    with serving() as edge:
        with edge.connect() as connection:
            connection.sendall(get("/gone"))
            assert until(lambda: edge.house.working == 1)
        assert until(lambda: edge.house.working == 0)


@pytest.mark.parametrize(
    ("trusted", "lines", "client", "scheme"),
    [
        ("", ["x-forwarded-for: 192.0.2.1", "x-forwarded-proto: https"], "127.0.0.1", "http"),
        ("10.0.0.0/8", ["x-forwarded-for: 192.0.2.1", "x-forwarded-proto: https"], "127.0.0.1", "http"),
        ("127.0.0.1", ["x-forwarded-for: 192.0.2.1", "x-forwarded-proto: https"], "192.0.2.1", "https"),
        ("127.0.0.1, 10.0.0.0/8", ["x-forwarded-for: 1.2.3.4, 192.0.2.1, 10.1.1.1"], "192.0.2.1", "http"),
        ("127.0.0.1", ["x-forwarded-for: 1.2.3.4", "x-forwarded-for: 192.0.2.1"], "192.0.2.1", "http"),
        ("127.0.0.1", ["x-forwarded-for: 1.2.3.4, 192.0.2.1:51000"], "192.0.2.1", "http"),
        ("127.0.0.1,10.0.0.0/8", ["x-forwarded-for: [2001:db8::1]:51000, 10.1.1.1:443"], "2001:db8::1", "http"),
        ("127.0.0.1", ["x-forwarded-for: 2001:db8::1"], "2001:db8::1", "http"),
        ("127.0.0.1", ["x-forwarded-proto: gopher"], "127.0.0.1", "http"),
        ("127.0.0.1", ["x-forwarded-proto: https, http"], "127.0.0.1", "http"),
        ("127.0.0.1,::1", ["x-forwarded-for: 127.0.0.1"], "127.0.0.1", "http"),
    ],
)
def test_only_a_trusted_proxy_says_where_a_request_comes_from(trusted, lines, client, scheme):
    with serving(proxies=Proxies(trusted)) as edge:
        said = echoed(edge.exchange(last("/echo", *lines)))
    assert (said["client"][0], said["scheme"]) == (client, scheme)


@pytest.mark.parametrize("trusted", ["10.0.0.0/8", "::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "::1, 10.0.0.1"])
@pytest.mark.parametrize("peer", ["10.0.0.1", "::ffff:10.0.0.1", "::ffff:a00:1"])
def test_a_proxy_is_known_by_both_names_of_its_address(trusted, peer):
    lines = [(b"x-forwarded-for", b"192.0.2.1, ::ffff:10.0.0.1")]
    assert Proxies(trusted).origin((peer, 1), "http", lines)[0] == ("192.0.2.1", 0)
    assert not Proxies(trusted).trusts("::ffff:192.0.2.1")
    assert not Proxies("::fffe:0:0/95").trusts("10.0.0.1")  # more than all of IPv4, so it is said of IPv6


@pytest.mark.parametrize("text", ["localhost", "1.2.3", "127.0.0.1/33", "10.0.0.1/8"])
def test_proxies_are_addresses_or_networks(text):
    with pytest.raises(ValueError, match="expected trusted_proxies"):
        Proxies(text)


def test_an_address_in_use_is_said_by_name_with_a_way_out():
    with serving() as edge, pytest.raises(ValueError, match=rf"port {edge.server.port}: .* --set port=\d+"):
        Server(app, "127.0.0.1", edge.server.port).run()


def test_a_server_whose_application_does_not_start_says_so_and_frees_its_port(caplog):
    async def broken():
        raise RuntimeError("no store")

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(RuntimeError, match="no store"):
        Server(app, "127.0.0.1", port, start=broken).run()
    socket.create_server(("127.0.0.1", port)).close()


def test_it_runs_on_the_loop_of_the_standard_library_too(monkeypatch):
    monkeypatch.setattr("ahead_ldp.service.edge.server._loop_factory", lambda: None)
    with serving(header_s=0.3) as edge:
        assert b"200 OK" in edge.exchange(last("/echo", body=b"x" * 300_000, method="POST"))
        assert edge.exchange(b"GET / HT").startswith(b"HTTP/1.1 408 ")
        assert len(edge.exchange(last("/big"))) > BIG
        assert edge.exchange(last("/stream")).endswith(b"\r\n0\r\n\r\n")
        assert edge.exchange(get("/echo", "upgrade: x")).startswith(b"HTTP/1.1 400 ")
