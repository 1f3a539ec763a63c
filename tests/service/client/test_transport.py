"""HTTP by the standard library: what is refused, not followed, not remembered; and streams that are kept alive."""

import asyncio
import socket
import socketserver
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest

from ahead_ldp.service.client import HttpTransport, Unreachable, transport
from ahead_ldp.service.client.streams import Connection


@contextmanager
def serving(*answers: bytes, keep: bool = False):
    """A server that gives these answers, one a request, and what it was sent."""
    requests: list[bytes] = []
    connections: list[object] = []
    left = list(answers)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            connections.append(self.client_address)
            while left:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    byte = self.rfile.read(1)
                    if not byte:
                        return
                    head += byte
                length = [int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length")]
                requests.append(head + self.rfile.read(length[0] if length else 0))
                self.wfile.write(left.pop(0))
                self.wfile.flush()
                if not keep:
                    return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", requests, connections
        server.shutdown()
        thread.join()


def http(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org",
        "example.org",
        "https://",
        "https://user:word@example.org",
        "https://example.org/?q=1",
        "https://example.org/#x",
        "http://example.org",
        "http://10.0.0.1",
        "",
    ],
)
def test_addresses_that_are_refused(url):
    with pytest.raises(ValueError, match="expected"):
        HttpTransport(url)


@pytest.mark.parametrize("url", ["https://example.org", "http://localhost:1", "http://127.0.0.1", "http://[::1]:80/x"])
def test_addresses_that_are_taken(url):
    assert HttpTransport(url).url == url
    assert HttpTransport("http://example.org", allow_http=True)


def test_requests_carry_nothing_but_what_they_must():
    with serving(http("200 OK", b"hello", "X-A: b")) as (url, requests, _):
        answer = HttpTransport(url + "/base/").request("POST", "/v1/x", b"body")
    assert (answer.status, answer.body, answer.headers["x-a"]) == (200, b"hello", "b")
    head, _, body = requests[0].partition(b"\r\n\r\n")
    assert body == b"body"
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /base/v1/x HTTP/1.1"
    names = {line.split(":")[0].lower() for line in lines[1:]}
    assert names == {"host", "accept-encoding", "content-length", "accept", "user-agent", "connection", "content-type"}
    assert "User-Agent: ahead-ldp" in lines  # the same for everybody


def test_every_request_has_a_connection_of_its_own():
    with serving(http("200 OK"), http("200 OK"), keep=True) as (url, _, connections):
        way = HttpTransport(url)
        way.request("GET", "/a")
        way.request("GET", "/b")
    assert len(connections) == 2


def test_redirects_are_not_followed():
    with serving(http("302 Found", b"", "Location: /elsewhere")) as (url, requests, _):
        assert HttpTransport(url).request("GET", "/v1/x").status == 302
    assert len(requests) == 1


@pytest.mark.parametrize(
    "answer",
    [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"],
    ids=["none", "no", "cut"],
)
def test_answers_that_are_none(answer):
    with serving(answer) as (url, _, _), pytest.raises(Unreachable):
        HttpTransport(url).request("GET", "/v1/x")

    async def over_a_stream(url):
        async with Connection(url) as connection:
            await connection.request("GET", "/v1/x")

    with serving(answer) as (url, _, _), pytest.raises(Unreachable):
        asyncio.run(over_a_stream(url))


def test_an_answer_without_an_end_is_cut(monkeypatch):
    monkeypatch.setattr(transport, "LONGEST_ANSWER", 100)
    with serving(http("200 OK", bytes(101))) as (url, _, _), pytest.raises(Unreachable, match="does not end"):
        HttpTransport(url).request("GET", "/v1/x")


def test_an_answer_that_drips_is_cut(monkeypatch):
    moments = iter(range(1000))
    monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=lambda: float(next(moments))))
    with serving(http("200 OK", bytes(10 * transport._PART))) as (url, _, _), pytest.raises(Unreachable, match="end"):
        HttpTransport(url, timeout_s=3).request("GET", "/v1/x")


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n"], ids=["status", "headers"])
def test_a_head_that_drips_is_cut(said):
    """Every byte began the timeout anew: one server could hold a device, and its ledger, for hours."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sent = []

        def drip():
            peer, _ = listening.accept()
            with peer, suppress(OSError):
                peer.recv(4096)
                peer.sendall(said)
                while len(sent) < 200:
                    peer.sendall(b"H")
                    sent.append(time.sleep(0.05))

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(Unreachable):
            HttpTransport(url, timeout_s=0.5).request("GET", "/v1/x")
        thread.join()
        assert len(sent) < 200


def test_a_server_that_does_not_answer_in_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unreachable):
            HttpTransport(url, timeout_s=0.1).request("GET", "/v1/x")

        async def wait():
            async with Connection(url, timeout_s=0.1) as connection:
                await connection.request("GET", "/v1/x")

        with pytest.raises(Unreachable):
            asyncio.run(wait())


def test_a_stream_keeps_its_connection_and_comes_back_after_a_close():
    async def three(url):
        async with Connection(url) as connection:
            return [await connection.request("POST", "/x", bytes([i])) for i in range(3)]

    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    answers = (http("200 OK", b"one"), chunked, http("503 No", b"", "Retry-After: 1", "Connection: close"))
    with serving(*answers, keep=True) as (url, requests, connections):
        got = asyncio.run(three(url))
    assert [a.body for a in got] == [b"one", b"abcde", b""]
    assert got[2].headers["retry-after"] == "1"
    assert len(connections) == 1
    assert [r[-1:] for r in requests] == [b"\x00", b"\x01", b"\x02"]

    async def broken(url):
        async with Connection(url) as connection:
            await connection.request("GET", "/x")
            with pytest.raises(Unreachable):
                await connection.request("GET", "/x")  # the server has let go
            return await connection.request("GET", "/x")

    with serving(http("200 OK"), http("200 OK"), keep=False) as (url, _, connections):
        assert asyncio.run(broken(url)).status == 200
        assert len(connections) == 2


@pytest.mark.parametrize("url", ["http://example.org", "ftp://x", "x"])
def test_streams_refuse_the_same_addresses(url):
    with pytest.raises(ValueError, match="expected"):
        Connection(url)


def test_the_client_is_the_standard_library_and_the_device():
    """Everything of ``ahead_ldp.service.client`` loads where nothing else can be imported."""
    code = """
import sys
class Only:
    def find_spec(self, name, path=None, target=None):
        own = name in ("ahead_ldp", "ahead_ldp.estimates", "ahead_ldp.estimates.pictures", "ahead_ldp.service")
        own = own or (name + ".").startswith(("ahead_ldp.device.", "ahead_ldp.service.client."))
        if not own and name.partition(".")[0] not in sys.stdlib_module_names:
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Only())
import pkgutil, importlib, ahead_ldp.service.client
found = [m.name for m in pkgutil.iter_modules(ahead_ldp.service.client.__path__)]
for name in found:
    importlib.import_module("ahead_ldp.service.client." + name)
print(len(found))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 8
