"""Servers, a database and the shipped nginx, each on a host of its own: hosts die, links are cut, late and doubled.

Every upload ends with an answer, because the client sends the same bytes until there is one. So at the end the stored
reports must be exactly the acknowledged ones, and every published tally their count.
"""

import asyncio
import http.client
import random
import re
import shutil
import ssl
import threading
import time
from dataclasses import dataclass
from random import Random

import httpx
import pytest

from tests.certificates import Authority
from tests.hosts import Hosts, NoHosts
from tests.needs import needed
from tests.service.server.asgi import Answer
from tests.service.store.postgres_server import NoPostgres, PostgresServer, quick_folder
from tests.service.system import proxy
from tests.service.system.bookkeeping import Violation
from tests.service.system.collection import Collection
from tests.service.system.processes import Load, Server, request
from tests.service.system.test_two_servers import MANUAL, HttpWorld, Together
from tools import system

DATABASE, FIRST, SECOND, FRONT, REPLICA = range(1, 6)


@dataclass
class Front:
    """What people know of the service."""

    url: str
    token: str


class Site:
    """Two servers, PostgreSQL and nginx. Numbers of hosts are those above."""

    def __init__(self, folder, monkeypatch, replica=False, **settings):
        self.hosts, self.databases, self.servers = Hosts(REPLICA if replica else FRONT), [], {}
        try:
            self.authority = Authority(folder)
            monkeypatch.setenv("SSL_CERT_FILE", str(self.authority.file))
            self.databases.append(PostgresServer(quick_folder(), at=(self.hosts, DATABASE), max_connections="40"))
            store = self.databases[0].new_database()
            if replica:
                store = self._replicate(store)
            settings |= {"trusted_proxies": self.hosts.address(FRONT), **self._inner(folder, settings)}
            for host in (FIRST, SECOND):
                own = {name: str(value).replace("HOST", self.hosts.address(host)) for name, value in settings.items()}
                self.servers[host] = Server(store, init=host == FIRST, at=(self.hosts, host), **own)
            backends = [f"{self.hosts.address(host)}:8440" for host in (FIRST, SECOND)]
            self.proxy = proxy.Proxy(folder, (self.hosts, FRONT), backends, self.authority, self.inner)
            self.front = Front(self.proxy.url, self.servers[FIRST].token)
        except BaseException:
            self.remove()
            raise

    def _inner(self, folder, settings):
        """The servers' own certificates, by another authority, if they speak TLS."""
        self.inner = None
        if not settings.pop("inner_tls", False):
            return {}
        self.inner = Authority(folder, "inner authority")
        for host in (FIRST, SECOND):
            self.inner.issue(self.hosts.address(host), "ahead.internal")
        return {"tls_certificate": f"{folder}/HOST.pem", "tls_key": f"{folder}/HOST.key"}

    def _replicate(self, store):
        """A replica that every acknowledgement waits for, as docs/operations.md has it; the address of both."""
        primary = self.databases[0]
        self.databases.append(PostgresServer(quick_folder(), primary=primary, at=(self.hosts, REPLICA)))
        for sql in ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"):
            primary.ask(sql)
        both = ",".join(self.hosts.address(host) for host in (DATABASE, REPLICA))
        return f"postgresql://postgres@{both}/{store.rpartition('/')[2]}?target_session_attrs=read-write"

    def fail_over(self):
        """By hand, as docs/operations.md says: the primary is off for good, the replica takes its place."""
        self.hosts.kill(DATABASE)
        self.databases[1].ask("SELECT pg_promote()")

    def remove(self):
        for server in self.servers.values():
            server.stop()
        self.hosts.remove()
        for database in self.databases:
            database.remove()


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Makes a site; it is taken down at the end."""
    made = []
    needed(proxy.program(), "nginx", system.how_to_install("nginx"))
    needed(shutil.which("ip"), "ip", system.how_to_install("ip"))

    def make(**options):
        try:
            made.append(Site(tmp_path, monkeypatch, **options))
        except (NoHosts, NoPostgres) as reason:
            pytest.skip(str(reason))  # a right that nothing installs
        return made[-1]

    yield make
    for one in made:
        one.remove()


def live(site, seed, trouble, campaigns=2):
    """Send without pause while there is trouble; then everything is checked. What the client was told."""
    collection = Collection(site.front, campaigns, patient=True)
    load = Load(site.front.url, [book.campaign for book in collection.books], seed, proxied=True)
    try:
        load.wait_for(20)
        trouble(load)
        load.wait_for(20)
        told = load.stop()
    finally:
        load.kill()
    collection.settle(told)
    collection.quiet()
    collection.check()
    assert not [line for server in site.servers.values() for line in server.log if "Traceback" in line]
    return collection, told


def test_a_server_dies_and_both_are_replaced_behind_the_shipped_nginx(site, monkeypatch):
    """TLS from the device to nginx and from nginx to the servers, each by an authority of our own."""
    here = site(inner_tls=True)

    def trouble(load):
        here.servers[SECOND].kill()
        load.wait_for(30)
        here.servers[SECOND].start()
        time.sleep(1.1)
        for server in here.servers.values():  # a new version, one server after the other
            assert server.stop() == 0
            load.wait_for(10)
            server.start()
            time.sleep(1.1)  # as docs/deploy.md says: nginx looks again after a second
            load.wait_for(10)

    collection, _ = live(here, 1, trouble)
    assert collection.size()[0] > 50
    monkeypatch.setenv("SSL_CERT_FILE", str(here.inner.file))  # a device that trusts another authority
    with pytest.raises(ssl.SSLCertVerificationError):
        request(here.front.url, "GET", "/health")


def test_a_rehearsal_is_found_again_by_whoever_began_it(site):
    """It is in the memory of one of the servers: half of its pages used to be answered by the other, as gone."""
    here = site()
    asked = {"attributes": ["age=integer,0,15"], "epsilon": "1", "minimum": 10, "users": 500, **MANUAL[0]}
    words = {"title": "Age", "purpose": "A test.", "controller": "The tests", "contact": "tests@survey.example"}
    draft = request(here.front.url, "POST", "/campaigns", here.front.token, json=asked | words).json()
    trusted = ssl.create_default_context(cafile=str(here.authority.file))
    with httpx.Client(base_url=here.front.url, verify=trusted, follow_redirects=True, timeout=60) as browser:
        browser.post("/login", data={"token": here.front.token}).raise_for_status()
        campaign = browser.get(f"/campaigns/{draft['campaign']}")
        form = {"csrf": re.search('name="csrf" value="([^"]+)"', campaign.text)[1]}
        began = browser.post(f"{campaign.url.path}/rehearse", data=form).raise_for_status().url.path
        while not browser.get(f"{began}/live").raise_for_status().json()["done"]:
            time.sleep(0.2)
        for _ in range(10):
            assert "This is a rehearsal." in browser.get(began).raise_for_status().text


class Troubles:
    """What can happen to a site, and how it is mended. Nothing of it may lose or double an acknowledged report."""

    def __init__(self, site, rng):
        self.site, self.rng, self.moved = site, rng, len(site.databases) < 2

    def begin(self):
        """Something happens; the function that mends it."""
        return self.rng.choice([self.die, self.cut_server, self.cut_database, self.bad_link, self.fail_over])()

    def die(self):
        server = self.site.servers[self.rng.choice((FIRST, SECOND))]
        server.kill()
        return server.start

    def cut_server(self):
        return self._cut(self.rng.choice((FIRST, SECOND)))

    def cut_database(self):
        return self._cut(REPLICA if len(self.site.databases) > 1 and self.moved else DATABASE)

    def _cut(self, host):
        self.site.hosts.cut(host)
        return lambda: self.site.hosts.mend(host)

    def bad_link(self):
        host = self.rng.choice((FIRST, SECOND, FRONT))
        self.site.hosts.worsen(host, late_s=0.05, twice=0.3)
        return lambda: self.site.hosts.better(host)

    def fail_over(self):
        """Once: then there is no replica any more."""
        if self.moved:
            return self.die()
        self.moved = True
        self.site.fail_over()
        return lambda: None


@pytest.mark.soak
@pytest.mark.parametrize("part", range(5))
def test_much_trouble(part, site):
    here, rng = site(replica=True), random.Random()
    troubles = Troubles(here, rng)

    def trouble(load):
        for _ in range(6):
            mend = troubles.begin()
            time.sleep(rng.random() * 3)
            mend()
            load.wait_for(rng.randrange(1, 40))
        if not troubles.moved:
            troubles.fail_over()

    collection, _ = live(here, rng.getrandbits(32), trouble, campaigns=6)
    assert collection.size()[1] > 1


@pytest.mark.soak
def test_a_database_is_failed_over_by_hand(site):
    here = site(replica=True)
    collection, told = live(here, 7, lambda load: (here.fail_over(), load.wait_for(50)))
    assert collection.size()[0] > 50
    assert here.databases[1].ask("SELECT pg_is_in_recovery()") == [(False,)]
    assert max(upload["again"] for upload in told) > 0  # it was noticed, and what was acknowledged is there


class HostsWorld(HttpWorld):
    """A site in which something happens during a burst, and is mended a moment later."""

    def __init__(self, site, rng):
        super().__init__(site.front.url, site.front.token)
        self.troubles, self.rng, self._mending = Troubles(site, rng), rng, None

    async def ask(self, method, path, **options):
        """A device hears 503 where nobody can know; an operator asks again until there is an answer."""
        device, until = path.endswith(("/reports", "/withdrawals")) and method == "POST", time.monotonic() + 120
        while True:
            try:
                answer = await super().ask(method, path, **options)
            except (OSError, http.client.HTTPException):
                answer = Answer(504, {}, b"")
            if answer.status_code not in (502, 503, 504):
                return answer
            if device:
                return Answer(503, {}, b"")
            assert time.monotonic() < until, (method, path)
            await asyncio.sleep(0.1)

    def arm(self):
        mend = self.troubles.begin()
        self._mending = threading.Timer(self.rng.random() * 3, mend)
        self._mending.start()

    def disarm(self):
        """Mended, and every server answers."""
        if self._mending is not None:
            self._mending.join()
            self._mending = None
            until = time.monotonic() + 120
            while not all(self._ready(server) for server in self.troubles.site.servers.values()):
                assert time.monotonic() < until
                time.sleep(0.2)

    @staticmethod
    def _ready(server):
        try:
            return request(server.url, "GET", "/ready").status_code == 200
        except OSError:
            return False


class InTrouble(Together):
    """The life of test_two_servers.py, in which hosts die and links are cut."""

    def steps(self):
        return {**super().steps(), self.trouble: 3}

    async def trouble(self):
        self.world.arm()
        await self.burst()


@pytest.mark.soak
@pytest.mark.parametrize("part", range(5))
def test_the_books_stay_right_in_trouble(part, site):
    seed = random.randrange(2**32)
    here = site(replica=True)

    async def life():
        simulation = InTrouble(HostsWorld(here, Random(seed)), Random(seed), MANUAL)
        try:
            await simulation.run(200)
        except Violation as found:
            raise Violation(f"seed {seed}", *found.args, simulation.log[-5:]) from found
        return simulation

    simulation = asyncio.run(life())
    assert simulation.done["trouble"] > 0
    assert sum(len(book.closed) for book in simulation.books.values()) > 1
