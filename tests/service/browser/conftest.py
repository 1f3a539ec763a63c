"""A real server and a real Chromium for the pages."""

import json
import os
import shutil
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from ahead_ldp.cli.remote import Remote
from ahead_ldp.device.campaign import check_wave
from ahead_ldp.device.frames import encode_batch
from ahead_ldp.device.question import Policy
from ahead_ldp.service.client import OwnerPolicy
from ahead_ldp.service.client.crowd import Crowd, Visits
from ahead_ldp.service.client.fleet import run_fleet_async
from ahead_ldp.service.client.transport import HttpTransport
from ahead_ldp.service.client.views import fetch_campaign
from ahead_ldp.service.dashboard import make_pages
from ahead_ldp.service.server.config import Settings
from ahead_ldp.service.server.embedded import start
from ahead_ldp.service.store import open_store
from tests.needs import needed
from tools import system

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
SHOTS = Path(__file__).resolve().parents[3] / "docs" / "img"


@dataclass
class Site:
    """A running service, its tokens, and how campaigns are made on it."""

    server: object
    tokens: dict

    @property
    def url(self):
        return self.server.url

    def remote(self, role="operator"):
        return Remote(self.url, self.tokens[role])

    def campaign(self, attributes=("age=integer,18,99",), opened=True, **change):
        draft = {
            "title": "Travel to work",
            "purpose": "To plan the buses of the coming year.",
            "controller": "The town of Sampletown",
            "contact": "buses@sampletown.example",
            "attributes": list(attributes),
            "epsilon": "1",
            "method": {"name": "ahead"},
            "minimum": 10,
            "closing": {"kind": "manual"},
        }
        name = self.remote().post("/campaigns", {**draft, **change})["campaign"]
        if opened:
            self.remote().post(f"/campaigns/{name}/open")
        return name

    def answers(self, name, wave, people):
        """As many people answer every question of a wave as its group needs."""
        campaign = fetch_campaign(HttpTransport(self.url), name)
        path = f"{self.url}/v1/campaigns/{name}"
        with urllib.request.urlopen(f"{path}/waves/{wave}") as found:
            questions = check_wave(found.read(), campaign, wave, Policy("64"))
        for question in questions.values():
            body = encode_batch(question.header, (question.report(person) for person in people))
            headers = {"content-type": "application/octet-stream"}
            urllib.request.urlopen(urllib.request.Request(f"{path}/reports", body, headers)).close()

    def fill(self, name, records, waves=1):
        """Everybody answers, each in one of the waves, until the campaign is finished."""
        campaign = fetch_campaign(HttpTransport(self.url), name)
        crowd = Crowd(campaign, records, OwnerPolicy(campaign.epsilon))
        visits = Visits.draw(len(records), [1] * waves, returning=0)

        def close(number):
            self.remote().post(f"/campaigns/{name}/waves/{number}/close?wait=60")

        with ThreadPoolExecutor(1) as apart:  # the browser's driver has an event loop in this thread
            return apart.submit(run_fleet_async, self.url, crowd, visits, close, batch=100, connections=4).result()


@contextmanager
def running(folder, **settings):
    """A service with its pages on a free port, with these settings."""
    store = open_store(str(folder / "site.db"))
    given = {"port": 0, "closer_interval_s": 0.2, "rate_per_s": 10_000, "rate_burst": 10_000, **settings}
    with start(store, Settings(**given)) as server:
        server.app.pages = make_pages(server.service)
        tokens = {role: server.service.add_token(role, role) for role in ("operator", "analyst")}
        yield Site(server, tokens)
    store.close()


@pytest.fixture
def site(tmp_path):
    with running(tmp_path) as made:
        yield made


class Elsewhere:
    """Another origin on this machine: static pages, each by its path."""

    def __init__(self):
        pages = self.pages = {}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                body = pages.get(self.path, "").encode()
                self.send_response(200 if body else 404)
                self.send_header("content-type", "text/html; charset=utf-8")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def elsewhere():
    made = Elsewhere()
    yield made
    made.stop()


def slowness():
    """How many times slower pages compute than they could; where they are slow, a test that looks too early fails."""
    return float(os.environ.get("AHEAD_SLOW_PAGES", "1"))


def slow_pages(browser, rate):
    """Every page of the browser computes this many times slower, as on a busy machine."""
    contexts = browser.new_context

    def new_context(**given):
        context = contexts(**given)
        pages = context.new_page

        def new_page():
            page = pages()
            context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": rate})
            return page

        context.new_page = new_page
        return context

    browser.new_context = new_context


@pytest.fixture(scope="module")  # its event loop must end before other tests of the worker begin
def chromium():
    path = needed(shutil.which("chromium"), "Chromium", system.how_to_install("chromium"))
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        if slowness() > 1:
            slow_pages(browser, slowness())
        yield browser
        browser.close()


@dataclass
class Window:
    """A browser profile that remembers everything it was asked to load and everything it was told."""

    context: object
    requests: list
    console: list

    def page(self):
        page = self.context.new_page()
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(f"error: {error}"))
        return page


@pytest.fixture
def window(chromium):
    """A fresh profile: 360 pixels wide, as on a phone."""
    made = []

    def make(width=360, scheme="light", locale="en-US"):
        size = {"width": width, "height": 800}
        context = chromium.new_context(viewport=size, color_scheme=scheme, locale=locale)
        context.set_default_timeout(30_000)
        made.append(context)
        return Window(context, [], [])

    yield make
    for context in made:
        context.close()


def sign_in(page, site, role="operator"):
    page.goto(f"{site.url}/login")
    page.fill("#token", site.tokens[role])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{site.url}/")


def ages(n, seed=1):
    return np.clip(np.random.default_rng(seed).normal(40, 12, n), 18, 99).astype(int).reshape(-1, 1) - 18


def stored(page):
    """Everything that the page's origin keeps, as one text."""
    found = page.evaluate(
        """async () => {
          const kept = [JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie];
          for (const { name } of await indexedDB.databases()) {
            const opened = indexedDB.open(name);
            const database = await new Promise((ok) => { opened.onsuccess = () => ok(opened.result); });
            for (const store of database.objectStoreNames) {
              const all = database.transaction(store).objectStore(store).getAll();
              kept.push(await new Promise((ok) => { all.onsuccess = () => ok(JSON.stringify(all.result)); }));
            }
            database.close();
          }
          return kept;
        }"""
    )
    return json.dumps(found)
