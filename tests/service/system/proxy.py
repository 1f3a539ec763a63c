"""nginx as it is shipped: deploy/nginx.conf with the addresses and files of a test, in front of some servers."""

from __future__ import annotations

import re
import shutil
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from tests.certificates import Authority
from tests.hosts import Hosts

SHIPPED = Path(__file__).resolve().parents[3] / "deploy" / "nginx.conf"
_START_S = 60
_AROUND = """
daemon off; user root; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 512; }}
http {{
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    include {folder}/ahead.conf;
}}
"""


def program() -> str | None:
    """Where nginx is."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def shipped(servers: Sequence[str], certificate: Path, key: Path, log: Path) -> str:
    """The sample, with these in place of what an operator has to change, and nothing else."""
    text = SHIPPED.read_text()
    for found, put in (
        (r"    server 127\.0\.0\.1:8440( .*;)", "\n".join(rf"    server {server}\1" for server in servers)),
        (r"/etc/ssl/ahead/fullchain\.pem", str(certificate)),
        (r"/etc/ssl/ahead/privkey\.pem", str(key)),
        (r"/var/log/nginx/ahead-error\.log", str(log)),
    ):
        text, times = re.subn(found, put, text)
        assert times == 1, found
    return text


class Proxy:
    """nginx on a host, over TLS by an authority of our own. With ``inner`` the servers speak TLS too, by that one."""

    def __init__(
        self,
        folder: Path,
        at: tuple[Hosts, int],
        servers: Sequence[str],
        authority: Authority,
        inner: Authority | None = None,
    ) -> None:
        hosts, host = at
        self.folder, self.url = folder, f"https://{hosts.address(host)}"
        text = shipped(servers, *authority.issue(hosts.address(host)), folder / "ahead-error.log")
        if inner is not None:  # as the comment in the sample says
            said = f"proxy_ssl_verify on; proxy_ssl_trusted_certificate {inner.file}; proxy_ssl_name ahead.internal;"
            text = text.replace("http://ahead", "https://ahead").replace(
                "    proxy_http_version", f"    {said}\n    proxy_http_version"
            )
        (folder / "ahead.conf").write_text(text)
        (folder / "nginx.conf").write_text(_AROUND.format(folder=folder))
        with open(folder / "said", "wb") as said_file:
            hosts.start(host, [program(), "-c", folder / "nginx.conf"], stdout=said_file, stderr=said_file)
        until = time.monotonic() + _START_S
        while True:
            try:
                socket.create_connection((hosts.address(host), 443), 1).close()
                return
            except OSError:
                assert time.monotonic() < until, (folder / "said").read_text()
                time.sleep(0.05)
