"""Attacks on a server that speaks TLS itself, by those who never finish a handshake."""

import contextlib
import socket
import ssl
import time

import pytest

from ahead_ldp.service.edge.limits import Limits
from ahead_ldp.service.edge.server import Server
from ahead_ldp.service.server.config import Settings
from tests.attacks.target import ended, read_all
from tests.certificates import Authority

ASK = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


async def app(scope, receive, send):
    """Says who asks, over what."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": f"{scope['scheme']} {scope['client'][0]}".encode()})


@pytest.fixture(params=["uvloop", "the standard library"])
def tls(request, tmp_path, monkeypatch):
    """A server for five connections, and what a client needs to trust it."""
    if request.param != "uvloop":
        monkeypatch.setattr("ahead_ldp.service.edge.server._loop_factory", lambda: None)
    authority = Authority(tmp_path)
    certificate, key = authority.issue("127.0.0.1")
    settings = Settings(tls_certificate=str(certificate), tls_key=str(key))
    limits = Limits(connections=5, header_s=2)
    server = Server(app, "127.0.0.1", 0, tls=settings.tls(), limits=limits, shutdown_s=5)
    thread = server.start_thread()
    yield server, ssl.create_default_context(cafile=str(authority.file))
    server.ask_to_stop()
    thread.join()


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), 20)


def hello(context):
    """What a client says first."""
    out = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="127.0.0.1").do_handshake()
    return out.read()


def until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("says", [b"", b"\x16\x03\x01", None], ids=["nothing", "a little", "hello"])
def test_half_a_handshake_is_a_connection_like_any_other(tls, says):
    """They did not count: as many were open, with 57 KB of memory each, as there were files."""
    server, context = tls
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(connect(server)) for _ in range(30)]
        for connection in crowd:
            with contextlib.suppress(OSError):  # it had to go
                connection.sendall(hello(context) if says is None else says)
        until(lambda: server.house.refused["connections"] >= 25)
        assert len(server.house.everybody) == 5
        until(lambda: sum(ended(connection) for connection in crowd) == 25)
        with connect(server) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as friend:
            friend.sendall(ASK)
            assert read_all(friend).endswith(b"https 127.0.0.1")
        until(lambda: not server.house.everybody)  # the deadline of headers holds for handshakes, too
        assert all(ended(connection) for connection in crowd)


def test_what_is_no_tls_ends_at_once(tls):
    server, _ = tls
    with connect(server) as connection:
        connection.sendall(ASK)
        assert b"HTTP" not in read_all(connection)
    until(lambda: not server.house.everybody)


def test_a_server_that_stops_waits_for_no_handshake(tls):
    server, _ = tls
    with connect(server) as connection:
        until(lambda: server.house.everybody)
        server.ask_to_stop()
        assert read_all(connection) == b""
        with pytest.raises(OSError):
            connect(server)
