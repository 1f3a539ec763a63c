"""What a whole campaign leaves with those who watch it: the log, an OpenTelemetry collector, a webhook's receiver."""

import importlib.util
import json
import os
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.attacks.plain_http import Running
from tests.attacks.test_edge import until
from tests.attacks.test_forgetting import OUE, Campaign, all_files
from tests.needs import needed


class Watcher:
    """Takes whatever is posted to it, and keeps it."""

    def __init__(self):
        got = self.got = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                head = f"{self.path} {dict(self.headers)}".encode()
                got.append(head + self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def watchers():
    made = Watcher(), Watcher()
    yield made
    for one in made:
        one.close()


class Browser:
    """An operator at the pages, without a browser."""

    def __init__(self, server):
        self.server, self.cookie = server, ""
        _, head = self.ask("POST", "/login", f"token={server.token}")
        self.cookie = re.search(r"(?i)set-cookie: ([^;]+)", head)[1]
        page, _ = self.ask("GET", "/")
        self.word = re.search(r'name="csrf" value="(\w+)"', page)[1]

    def ask(self, method, path, body=""):
        head = [f"{method} {path} HTTP/1.1", "Host: attacked", "Connection: close", f"Content-Length: {len(body)}"]
        head += [f"Cookie: {self.cookie}"] * bool(self.cookie)
        head += ["Content-Type: application/x-www-form-urlencoded"] * bool(body)
        with self.server.connect() as connection:
            connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body.encode())
            answer = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
        head, _, page = answer.partition("\r\n\r\n")
        return page, head

    def share(self, campaign):
        page, _ = self.ask("POST", f"/campaigns/{campaign}/share", f"csrf={self.word}&days=3")
        return re.search(r"/shared/[0-9a-f]{64}/([\w-]+)", page)


def test_whoever_watches_learns_no_secret_and_no_report(tmp_path, watchers):
    """An operator signs in, shares results and asks; devices send, repeat and withdraw; a closing is told."""
    needed(importlib.util.find_spec("opentelemetry"), "opentelemetry-sdk", "pip install 'ahead-ldp[telemetry]'")
    collector, hook = watchers
    (tmp_path / "hook.key").write_bytes(os.urandom(32).hex().encode())
    told = {"webhook": f"{hook.url}/hook", "webhook_key": tmp_path / "hook.key", "notify_private": "true"}
    with Running(tmp_path, closer_interval_s=0.05, telemetry=collector.url, **told) as server:
        operator, campaign = Browser(server), Campaign(server, OUE, 32)
        campaign.send(*(i + bytes(32) for i in campaign.sent))
        made = server.operate("POST", "/tokens", {"role": "analyst", "name": "reader"})["token"]
        server.finish(campaign.name)
        shared = operator.share(campaign.name)
        for path in (shared[0], f"{shared[0]}/download?attribute=y", f"/campaigns/{campaign.name}/results"):
            assert "200" in operator.ask("GET", path)[1].splitlines()[0]
        server.ask(
            "POST", f"/v1/campaigns/{campaign.name}/queries", b'{"queries": ["y < 7"]}', "application/json", made
        )
        server.ask("GET", f"{shared[0]}x")
        server.wait_for("reports_deleted", campaign.name)
        assert until(lambda: len(hook.got) >= 1)
        server.stop()  # it sends what waits
    seen = {"log": (tmp_path / "server.log").read_bytes()}
    seen |= {"collector": b"".join(collector.got), "webhook": b"".join(hook.got)}
    assert b"reports_deleted" in seen["log"]
    assert b"/v1/campaigns/{campaign}/queries" in seen["collector"]
    assert b"ahead_reports_accepted" in seen["collector"]
    assert json.loads(hook.got[0].partition(b"}")[2] or b"{}")["event"] == "campaign_finished"

    secrets = {"token": server.token, "analyst": made, "cookie": operator.cookie.partition("=")[2]}
    secrets |= {"link": shared[1], "word": operator.word, "key": (tmp_path / "hook.key").read_text()}
    for who, data in seen.items():
        for name, secret in secrets.items():
            assert secret.encode() not in data, (who, name)
        for i, payload in campaign.sent.items():
            for part in (i, payload[:8]):
                assert part not in data, who
                assert part.hex().encode() not in data, who
    assert campaign.name.encode() not in seen["collector"]
    disk = all_files(tmp_path).replace((tmp_path / "hook.key").read_bytes(), b"")
    for name, secret in secrets.items():
        assert secret.encode() not in disk, name
