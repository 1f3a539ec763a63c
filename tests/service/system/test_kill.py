"""kill -9 of a real server, and of its PostgreSQL, at random moments while a client process sends without pause.

Every upload ends with an answer, because the client sends the same bytes until there is one. So at the end the stored
reports must be exactly the acknowledged ones, and every published tally their count.
"""

import random
import time
from urllib.parse import quote

import pytest

from ahead_ldp.device.frames import HEADER_LENGTH
from ahead_ldp.device.laws import law_from_record
from ahead_ldp.service.campaigns.audit import audit
from tests.service.server.harness import TEXTS
from tests.service.store.postgres_server import NoPostgres, PostgresServer
from tests.service.system.bookkeeping import ABSENT, IN, Book, Sent, check
from tests.service.system.processes import Load, Server, request

CYCLES, SOAK_CYCLES = 10, 100
CODES = 64  # 6 waves of AHEAD


@pytest.fixture
def fragile():
    try:
        server = PostgresServer(wal_writer_delay="10s")  # only commits flush the log
    except NoPostgres as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


class Collection:
    """Campaigns on a server that gets killed: some close waves by themselves, one stays open."""

    def __init__(self, server, campaigns):
        self.server = server
        closings = [{"kind": "manual"}] + [{"kind": "reports", "reports": 60}] * campaigns
        self.books = [self.opened(number, closing) for number, closing in enumerate(closings)]

    def ask(self, method, path, **options):
        answer = request(self.server.url, method, path, self.server.token, **options)
        check(answer.status_code in (200, 201), method, path, answer.status_code, answer.content)
        return answer

    def opened(self, number, closing):
        draft = {
            **TEXTS, "title": f"campaign {number}", "attributes": [f"age=integer,0,{CODES - 1}"], "epsilon": "2",
            "minimum": 5, "method": {"name": "ahead", "choices": {"oracle": "oue"}}, "closing": closing,
        }  # fmt: skip
        campaign = self.ask("POST", "/campaigns", json=draft).json()["campaign"]
        self.ask("POST", f"/campaigns/{campaign}/open", json={})
        return Book(campaign, draft["minimum"], None, 30)

    def observe(self):
        """What was published stays, whatever was killed."""
        for book in self.books:
            book.observe(self.ask("GET", f"/campaigns/{book.campaign}/chain").json(), 0)

    def settle(self, told):
        """The books from what the client was told."""
        books = {book.campaign: book for book in self.books}
        for upload in told:
            book = books[upload["campaign"]]
            where = (upload["wave"], upload["group"])
            for text in upload["accepted"]:
                frame = bytes.fromhex(text)
                book.reports[frame[:16]] = Sent(b"", frame, *where, IN)
            for text, reason in upload["refused"]:
                check(reason == "wave_closed", reason)
                frame = bytes.fromhex(text)
                book.reports[frame[:16]] = Sent(b"", frame, *where, ABSENT)

    def check(self):
        """Stored is acknowledged, frame by frame; counted is stored; the public chain can be recomputed."""
        self.observe()
        for book in self.books:
            for (wave, group), question in book.questions.items():
                path = f"/campaigns/{book.campaign}/waves/{wave}/reports?group={quote(group)}"
                data = self.ask("GET", path).content[HEADER_LENGTH:]
                size = 16 + law_from_record(question["oracle"]).payload_length
                book.compare_stored(wave, group, [data[i : i + size] for i in range(0, len(data), size)], False)
            book.recount(0)
            found = audit(
                book.campaign, lambda path, book=book: self.ask("GET", f"/campaigns/{book.campaign}{path}").content
            )
            assert found.matched, found

    def fingerprint(self):
        paths = ("", "/chain", "/state", "/progress")
        return [self.ask("GET", f"/campaigns/{book.campaign}{path}").content for book in self.books for path in paths]

    def quiet(self):
        """Wait until no wave is being closed."""
        deadline = time.monotonic() + 60
        while True:
            self.observe()
            if not any("held" in book.waves.values() for book in self.books):
                return
            assert time.monotonic() < deadline, "a wave stays held"
            time.sleep(0.05)


def survive(store, cycles, seed, kill=None):
    """Kill so many times under load; then everything is checked. How many reports and waves there were."""
    rng = random.Random(seed)
    server = Server(store)
    try:
        collection = Collection(server, 2 + cycles // 5)
        load = Load(server.url, [book.campaign for book in collection.books], seed)
        try:
            for _ in range(cycles):
                load.wait_for(rng.randrange(1, 40))
                time.sleep(rng.random() * 0.05)
                if kill is None:
                    server.kill()
                    server.start()
                else:
                    kill()
                collection.observe()
            load.wait_for(5)
            told = load.stop()
        finally:
            load.kill()
        collection.settle(told)
        collection.quiet()
        collection.check()
        before = collection.fingerprint()
        server.kill()
        server.start()
        assert collection.fingerprint() == before
        assert not [line for line in server.log if "Traceback" in line]
    finally:
        server.stop()
    reports = sum(sent.status == IN for book in collection.books for sent in book.reports.values())
    return reports, sum(len(book.closed) for book in collection.books)


def test_nothing_is_lost_or_doubled_when_the_server_is_killed(tmp_path):
    reports, waves = survive(tmp_path / "store.db", CYCLES, 1)
    assert reports > 100
    assert waves > 1


def test_nothing_is_lost_or_doubled_when_a_server_on_postgres_is_killed(fragile):
    reports, waves = survive(fragile.new_database(), CYCLES, 2)
    assert reports > 100
    assert waves > 1


def test_nothing_is_lost_or_doubled_when_postgres_is_killed(fragile):
    def kill():
        fragile.kill()
        fragile.start()

    reports, waves = survive(fragile.new_database(), CYCLES, 3, kill)
    assert reports > 100
    assert waves > 1


@pytest.mark.soak
def test_many_kills_of_the_server(tmp_path):
    assert survive(tmp_path / "store.db", SOAK_CYCLES, random.randrange(2**32))[1] > 10


@pytest.mark.soak
def test_many_kills_of_a_server_on_postgres(fragile):
    assert survive(fragile.new_database(), SOAK_CYCLES, random.randrange(2**32))[1] > 10


@pytest.mark.soak
def test_many_kills_of_postgres(fragile):
    def kill():
        fragile.kill()
        fragile.start()

    assert survive(fragile.new_database(), SOAK_CYCLES, random.randrange(2**32), kill)[1] > 10
