"""Reports on their way through the proxy as it is shipped: whatever stalls or crashes, no disk gets them."""

import contextlib
import os
import re
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from tests.attacks.plain_http import Running
from tests.attacks.test_edge import until
from tests.attacks.test_forgetting import OUE, Campaign
from tests.certificates import Authority
from tests.needs import needed
from tests.service.system.proxy import _AROUND, program, shipped

PEOPLE = 60_000  # 32 bytes of payload and 16 of id: a body far beyond what a proxy keeps in memory


@pytest.fixture
def passed_on(tmp_path):
    """A server with nginx in front of it on loopback; a connection through it."""
    needed(program(), "nginx", "apt-get install nginx-light")
    with Running(tmp_path, closer_interval_s=0.05, rate_burst=10_000) as server:
        folder = tmp_path / "nginx"
        folder.mkdir()
        authority = Authority(folder)
        text = shipped([f"127.0.0.1:{server.port}"], *authority.issue("127.0.0.1"), folder / "error.log")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        text = text.replace("listen [::]:443 ssl;", "").replace("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;")
        (folder / "ahead.conf").write_text(text)
        around = re.sub(r"(client_body|proxy)_temp_path [^;]+;", "", _AROUND)  # those of the sample, or nginx's own
        (folder / "nginx.conf").write_text(around.format(folder=folder))
        command, nothing = [program(), "-p", folder, "-c", folder / "nginx.conf"], subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=nothing, stderr=nothing)
        context = ssl.create_default_context(cafile=authority.file)

        def connect():
            plain = socket.socket()
            plain.settimeout(60)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # who reads slowly leaves much unread
            try:
                plain.connect(("127.0.0.1", port))
            except OSError:
                plain.close()
                raise
            return context.wrap_socket(plain, server_hostname="127.0.0.1")

        def listens():
            with contextlib.suppress(OSError):
                connect().close()
                return True

        assert until(listens, 60)
        yield server, process.pid, connect
        process.terminate()
        process.wait(60)


def open_files(pid):
    """Regular files that a process and its children have open, those too that have no name any more."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = set()
    for one in (str(pid), *children):
        for handle in Path(f"/proc/{one}/fd").iterdir():
            with contextlib.suppress(OSError):
                if handle.is_file():
                    found.add(os.readlink(handle).removesuffix(" (deleted)"))
    return found


def in_memory(path):
    """Whether a path is on a file system that has no disk."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    place = max((at for at, _ in mounts if path.startswith(at.rstrip("/") + "/")), key=len)
    return dict(mounts)[place] == "tmpfs"


def temporary(pid):
    return {path for path in open_files(pid) if not path.endswith((".log", ".conf", "/said"))}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are read through Linux's /proc")
def test_a_body_that_waits_in_the_proxy_is_on_no_disk(passed_on):
    """nginx keeps what is beyond 16 kB of a body in a file, as it came, and a crash leaves it there."""
    server, pid, connect = passed_on
    campaign = Campaign(server, OUE, 32)
    body = campaign.header + os.urandom(48 * PEOPLE)
    head = f"POST /v1/campaigns/{campaign.name}/reports HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with connect() as connection:
        connection.sendall(head.encode() + body[:-1])
        until(lambda: temporary(pid), 3)
        time.sleep(0.2)
        assert [path for path in temporary(pid) if not in_memory(path)] == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are read through Linux's /proc")
def test_reports_that_an_operator_reads_slowly_are_on_no_disk(passed_on):
    """What the server sends faster than it is read went into a file of the proxy, up to a gigabyte of it."""
    server, pid, connect = passed_on
    campaign = Campaign(server, OUE, 32)
    for _ in range(20):
        status, _ = server.upload(campaign.name, campaign.header + os.urandom(48 * 10_000))
        assert status == 200
    head = f"GET /v1/campaigns/{campaign.name}/waves/1/reports?group=1 HTTP/1.1\r\nHost: x\r\n"
    with connect() as connection:
        connection.sendall(f"{head}Authorization: Bearer {server.token}\r\n\r\n".encode())
        assert b"200 OK" in connection.recv(100)
        until(lambda: temporary(pid), 3)
        assert [path for path in temporary(pid) if not in_memory(path)] == []
