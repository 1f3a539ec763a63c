"""The edge over TLS: the same answers, and whoever trusts another authority gets none."""

import socket
import ssl

import pytest

from ahead_ldp.service.edge.server import Server
from ahead_ldp.service.server.config import Settings
from tests.certificates import Authority
from tests.service.edge.serving import get, last, rest


async def scheme(scope, receive, send):
    """Says over what a request came."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["scheme"].encode()})


def ask(port, context, data):
    plain = socket.create_connection(("127.0.0.1", port), 20)
    with plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
        connection.sendall(data)
        return rest(connection)


def test_requests_over_tls(tmp_path):
    ours, other = Authority(tmp_path), Authority(tmp_path, "other")
    certificate, key = ours.issue("127.0.0.1")
    settings = Settings(tls_certificate=str(certificate), tls_key=str(key))
    server = Server(scheme, "127.0.0.1", 0, tls=settings.tls(), shutdown_s=5)
    thread = server.start_thread()
    try:
        friend = ssl.create_default_context(cafile=str(ours.file))
        assert ask(server.port, friend, get("/") + last("/")).count(b"https") == 2
        refused = ask(server.port, friend, b"GET / HTTP/1.1\r\n\r\n")  # which ends the connection, whole
        assert refused.startswith(b"HTTP/1.1 400")
        with pytest.raises(ssl.SSLCertVerificationError):
            ask(server.port, ssl.create_default_context(cafile=str(other.file)), last("/"))
    finally:
        server.ask_to_stop()
        thread.join()


def test_half_of_a_certificate_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected tls_certificate and tls_key, or neither"):
        Settings(tls_key="x")
    with pytest.raises(ValueError, match="expected tls_certificate and tls_key to be PEM files"):
        Settings(tls_certificate=str(tmp_path / "a"), tls_key=str(tmp_path / "b")).tls()
