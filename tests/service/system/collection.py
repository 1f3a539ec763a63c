"""Several campaigns under load: what the client was told is compared with what is stored, counted and published."""

import time
from urllib.parse import quote

from ahead_ldp.device.frames import HEADER_LENGTH
from ahead_ldp.device.laws import law_from_record
from ahead_ldp.service.campaigns.audit import audit
from tests.service.server.harness import TEXTS
from tests.service.system.bookkeeping import ABSENT, IN, Book, Sent, check
from tests.service.system.processes import request

CODES = 64  # 6 waves of AHEAD
PATIENCE_S = 60


class Collection:
    """Campaigns on a server that gets killed: some close waves by themselves, one stays open.

    ``server`` has a url and an operator's token. A patient one asks again when a proxy has nobody to ask; without a
    proxy every answer must be good at once.
    """

    def __init__(self, server, campaigns, patient=False):
        self.server, self.patience_s = server, PATIENCE_S if patient else 0.0
        closings = [{"kind": "manual"}] + [{"kind": "reports", "reports": 60}] * campaigns
        self.books = [self.opened(number, closing) for number, closing in enumerate(closings)]

    def ask(self, method, path, **options):
        """An answer; with patience, what fails on the way or is not to be had now is asked for again."""
        until = time.monotonic() + self.patience_s
        while True:
            try:
                answer = request(self.server.url, method, path, self.server.token, **options)
                if answer.status_code not in (502, 503, 504) or time.monotonic() > until:
                    break
            except OSError:
                if time.monotonic() > until:
                    raise
            time.sleep(0.05)
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

    def size(self):
        """How many reports are stored, and how many waves were counted."""
        reports = sum(sent.status == IN for book in self.books for sent in book.reports.values())
        return reports, sum(len(book.closed) for book in self.books)
