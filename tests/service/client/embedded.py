"""The real server on a loopback port, an operator who drives it over HTTP, and an issuer beside it."""

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ahead_ldp.device.campaign import Campaign
from ahead_ldp.service.client import HttpTransport
from ahead_ldp.service.edge.server import Server
from ahead_ldp.service.issuer import Office, make_app
from ahead_ldp.service.server.config import NO_RATES, Settings
from ahead_ldp.service.server.embedded import Embedded, start
from ahead_ldp.service.store import SQLiteStore


class Operator:
    """What an operator and an analyst do, over HTTP with their tokens."""

    def __init__(self, server: Embedded) -> None:
        self.url = server.url
        self.tokens = {role: server.service.add_token(role, f"{role} of the test") for role in ("operator", "analyst")}

    def call(self, method: str, path: str, body: Any = None, role: str = "operator") -> tuple[int, Any]:
        host = self.url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=60)
        headers = {"Authorization": f"Bearer {self.tokens[role]}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        got = connection.getresponse()
        data = got.read()
        connection.close()
        return got.status, json.loads(data) if data else None

    def open(self, campaign: Campaign) -> str:
        status, made = self.call("POST", "/v1/campaigns/records", campaign.record)
        assert status in (200, 201), made
        assert made["campaign"] == campaign.digest
        status, made = self.call("POST", f"/v1/campaigns/{campaign.digest}/open")
        assert status == 200, made
        return campaign.digest

    def closer(self, campaign: Campaign):
        def close(number: int) -> None:
            path, status = f"/v1/campaigns/{campaign.digest}/waves/{number}/close?wait=60", 429
            while status == 429:  # the people, who have the same address, have used up its requests
                status, job = self.call("POST", path)
                time.sleep(0.05 if status == 429 else 0.0)
            assert status in (200, 202), job
            assert job["state"] == "done", job

        return close


@contextmanager
def running(tmp_path: Path, **settings: Any) -> Iterator[tuple[Embedded, Operator, HttpTransport]]:
    store = SQLiteStore(tmp_path / "server.db")
    with start(store, Settings(**{"port": 0, "closer_interval_s": 0.05, **NO_RATES, **settings})) as server:
        yield server, Operator(server), HttpTransport(server.url)
    store.close()


@contextmanager
def issuing(office: Office) -> Iterator[str]:
    """The issuer in a thread of its own; its address."""
    server = Server(make_app(office), "127.0.0.1", 0)
    thread = server.start_thread()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.ask_to_stop()
        thread.join()
