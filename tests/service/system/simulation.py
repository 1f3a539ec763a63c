"""A seeded life of a server: people who send, resend, lie and withdraw, operators, closers, clocks and crashes.

Every step is drawn from one seed, so a failure is run again by its seed; what it found is kept in test_found.py.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any
from urllib.parse import quote

from ahead_ldp.device.canonical import digest
from ahead_ldp.device.frames import HEADER_LENGTH, Header
from ahead_ldp.device.laws import law_from_record
from ahead_ldp.service.campaigns.audit import audit
from ahead_ldp.service.store import check_chain
from tests.service.server.harness import BINARY, TEXTS
from tests.service.system.bookkeeping import ABSENT, DAY_S, GONE, IN, MAYBE, WITHDRAWN, Book, Sent, Violation, check

LIVE = 3  # campaigns at a time
SHAPES: list[dict[str, Any]] = [
    {"method": {"name": "ahead", "choices": {"oracle": "oue"}}, "closing": {"kind": "manual"}},
    {"method": {"name": "hio", "choices": {"oracle": "oue"}}, "closing": {"kind": "manual"}},
    {"method": {"name": "ahead", "choices": {"oracle": "oue"}}, "closing": {"kind": "reports", "reports": 9}},
    {"method": {"name": "hio", "choices": {"oracle": "oue"}}, "closing": {"kind": "reports", "reports": 9}},
    {"method": {"name": "ahead", "choices": {"oracle": "oue"}}, "closing": {"kind": "deadline", "seconds": 600}},
    {"method": {"name": "hio", "choices": {"oracle": "oue"}}, "closing": {"kind": "deadline", "seconds": 600}},
]


class SeededWords:
    """Noise from a seed: this is a simulation."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def take(self, bits: int) -> int:
        return self.rng.getrandbits(bits)


class Simulation:
    """One life. ``world`` says where requests go, and what of crashes, clocks and restores there is."""

    extensions: tuple[int, ...] = (1, 60, 900)  # seconds, which a simulated clock passes

    def __init__(self, world: Any, rng: Random, shapes: list[dict[str, Any]] | None = None) -> None:
        self.world, self.rng = world, rng
        self.shapes = SHAPES if shapes is None else shapes
        self.books: dict[str, Book] = {}
        self.saved: tuple[Any, dict[str, Book]] | None = None
        self.epoch = 1
        self.done: Counter[str] = Counter()
        self.latest = world.now
        self.log: list[str] = []

    def steps(self) -> dict[Callable[[], Awaitable[None]], float]:
        """What can happen, and how often."""
        found: dict[Callable[[], Awaitable[None]], float] = {
            self.upload_new: 30, self.resend: 10, self.change_bytes: 4, self.wrong_wave: 4, self.stale_digest: 2,
            self.bad_form: 3, self.lost_request: 3, self.withdraw: 4, self.withdraw_unsent: 1,
            self.send_to_another_question: 2, self.close: 6, self.burst: 6, self.extend: 1, self.void_group: 1,
            self.void_wave: 0.5, self.finish: 0.5, self.void_campaign: 0.2, self.look: 4, self.settle_held: 2,
        }  # fmt: skip
        if self.world.can_crash:
            found |= {
                self.lost_answer: 5, self.round: 8, self.pass_time: 5, self.fail: 3, self.crash: 1.5,
                self.quiet_crash: 0.5, self.back_up: 1, self.restore: 0.7, self.run_again: 2,
            }  # fmt: skip
        return found

    async def run(self, operations: int) -> None:
        """Live for so many operations, then check everything."""
        steps = self.steps()
        for _ in range(operations):
            if sum(book.live for book in self.books.values()) < LIVE:
                await self.create()
            (step,) = self.rng.choices(list(steps), list(steps.values()))
            self.done[step.__name__] += 1
            self.log.append(step.__name__)
            await step()
        await self.end()

    # Requests

    async def ask(self, method: str, path: str, *allowed: int, **options: Any) -> Any:
        """An answer with an allowed status."""
        answer = await self.world.ask(method, path, **options)
        check(answer.status_code in allowed, method, path, answer.status_code, answer.content)
        return answer

    async def change(self, path: str, body: Any = None) -> Any:
        """An operator's request, which may come too late; a server that cannot write says so."""
        return await self.ask("POST", path, 200, 202, 404, 409, 503, json={} if body is None else body)

    async def send(self, book: Book, where: tuple[int, str], frames: list[bytes]) -> list[str | None] | None:
        """What became of each frame: None is accepted, else the reason. None in all if nobody can know."""
        question = digest(book.questions[where])
        body = Header(book.campaign, question).encode() + b"".join(frames)
        path = f"/campaigns/{book.campaign}/reports"
        answer = await self.ask("POST", path, 200, 503, content=body, headers=BINARY)
        if answer.status_code == 503:
            return None
        found = answer.json()
        reasons: list[str | None] = [None] * len(frames)
        for refusal in found["refused"]:
            reasons[refusal["index"]] = refusal["reason"]
        check(found["accepted"] == len(frames) - len(found["refused"]), found)
        return reasons

    async def upload(self, book: Book, where: tuple[int, str], items: list[tuple[Sent, bytes, str | None]]) -> None:
        """Send alone, and check every answer."""
        reasons = await self.send(book, where, [frame for _, frame, _ in items])
        for i, (sent, frame, bad) in enumerate(items):
            if reasons is None:
                unknown(sent, frame, where)
            else:
                book.upload(sent, frame, where, reasons[i], bad)

    # People

    def live(self) -> Book:
        return self.rng.choice([book for book in self.books.values() if book.live])

    def new_report(self, book: Book, where: tuple[int, str]) -> Sent:
        law = law_from_record(book.questions[where]["oracle"])
        nonce = self.rng.randbytes(32)
        payload = law.draw(self.rng.randrange(law.cells), SeededWords(self.rng))
        sent = Sent(nonce, hashlib.sha256(nonce).digest()[:16] + payload, *where)
        book.reports[sent.id] = sent
        return sent

    def open_question(self, book: Book) -> tuple[int, str] | None:
        found = [name for name in book.groups if book.takes(*name)]
        return self.rng.choice(found) if found else None

    def pick(self, book: Book, *statuses: str) -> Sent | None:
        found = [sent for sent in book.reports.values() if sent.status in statuses]
        return self.rng.choice(found) if found else None

    async def upload_new(self) -> None:
        book = self.live()
        if (where := self.open_question(book)) is not None:
            made = [self.new_report(book, where) for _ in range(self.rng.randint(1, 6))]
            items: list[tuple[Sent, bytes, str | None]] = [(sent, sent.frame, None) for sent in made]
            if self.rng.random() < 0.2:
                items.append(items[0])  # twice in one batch
            await self.upload(book, where, items)

    async def resend(self) -> None:
        """The same bytes again, whenever: from an outbox that never heard, or for no reason."""
        book = self.rng.choice(list(self.books.values()))
        statuses = ((MAYBE, ABSENT), (IN, MAYBE, ABSENT, WITHDRAWN, "deleted"))[self.rng.random() < 0.5]
        if (sent := self.pick(book, *statuses)) is not None and (sent.wave, sent.group) in book.questions:
            await self.upload(book, (sent.wave, sent.group), [(sent, sent.frame, None)])

    async def change_bytes(self) -> None:
        """Other bytes under an id that was sent before."""
        book = self.rng.choice(list(self.books.values()))
        sent = self.pick(book, IN, ABSENT, WITHDRAWN, "deleted")
        if sent is not None and (sent.wave, sent.group) in book.questions:
            await self.upload(book, (sent.wave, sent.group), [(sent, changed(sent.frame), None)])

    async def send_to_another_question(self) -> None:
        """A frame goes to a question that it was not made for; its form may fit."""
        book = self.live()
        sent, where = self.pick(book, IN, "deleted", WITHDRAWN), self.open_question(book)
        if sent is not None and where is not None:
            law = law_from_record(book.questions[where]["oracle"])
            if law.payload_length == len(sent.frame) - 16:
                await self.upload(book, where, [(sent, sent.frame, None)])

    async def wrong_wave(self) -> None:
        book = self.live()
        past = [name for name in book.questions if not book.takes(*name)]
        if past:
            where = self.rng.choice(past)
            sent = self.new_report(book, where)
            await self.upload(book, where, [(sent, sent.frame, None)])

    async def stale_digest(self) -> None:
        """A question that no wave has, or another campaign's."""
        book, other = self.live(), self.live()
        question = self.rng.choice([digest(q) for q in other.questions.values()] or ["1" * 64])
        if other is book:
            question = self.rng.randbytes(32).hex()
        body = Header(book.campaign, question).encode() + self.rng.randbytes(17)
        answer = await self.ask("POST", f"/campaigns/{book.campaign}/reports", 409, 503, content=body, headers=BINARY)
        check(answer.status_code == 503 or answer.json()["type"].endswith("wrong_question"), answer.content)

    async def bad_form(self) -> None:
        """Padding that is not zero, among reports that are well."""
        book = self.live()
        if (where := self.open_question(book)) is None:
            return
        law = law_from_record(book.questions[where]["oracle"])
        if law.cells % 8 == 0:
            return
        good, bad = self.new_report(book, where), self.new_report(book, where)
        frame = bad.frame[:-1] + b"\xff"
        items: list[tuple[Sent, bytes, str | None]] = [(good, good.frame, None), (bad, frame, "padding_not_zero")]
        self.rng.shuffle(items)
        await self.upload(book, where, items)

    async def lost_request(self) -> None:
        """It never arrives; the device keeps it in its outbox."""
        book = self.live()
        if (where := self.open_question(book)) is not None:
            self.new_report(book, where)

    async def lost_answer(self) -> None:
        """The device hangs up somewhere on the way."""
        book = self.live()
        if (where := self.open_question(book)) is None:
            return
        made = [self.new_report(book, where) for _ in range(self.rng.randint(1, 3))]
        task = asyncio.ensure_future(self.send(book, where, [sent.frame for sent in made]))
        for _ in range(self.rng.randint(0, 12)):
            await asyncio.sleep(0)
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(ended, Violation):
            raise ended
        await self.world.idle()
        for sent in made:
            unknown(sent, sent.frame, where)

    async def withdraw(self) -> None:
        book = self.rng.choice(list(self.books.values()))
        if (sent := self.pick(book, IN, MAYBE, WITHDRAWN, "deleted")) is not None:
            await self.take_back(book, sent)

    async def withdraw_unsent(self) -> None:
        """A receipt whose report has not come: there is nothing to withdraw, and it may come later."""
        book = self.live()
        if (where := self.open_question(book)) is not None:
            await self.take_back(book, self.new_report(book, where))

    async def take_back(self, book: Book, sent: Sent) -> None:
        """Withdraw, again and again until an answer comes."""
        path, body = f"/campaigns/{book.campaign}/withdrawals", {"nonce": sent.nonce.hex()}
        answer = await self.ask("POST", path, 200, 404, 409, 503, json=body)
        while answer.status_code == 503:
            answer = await self.ask("POST", path, 200, 404, 409, 503, json=body)
        book.withdrawal(sent, answer.status_code)

    # The operator

    async def create(self) -> None:
        shape = self.rng.choice(self.shapes)
        draft = {
            **TEXTS, "title": f"{len(self.books)} {self.rng.getrandbits(64)}", "attributes": ["age=integer,0,7"],
            "epsilon": "2", "minimum": self.rng.randint(3, 8), "review": self.rng.random() < 0.2,
            "retention_days": self.rng.randint(0, 3), **shape,
        }  # fmt: skip
        answer = await self.ask("POST", "/campaigns", 201, json=draft)
        campaign = answer.json()["campaign"]
        book = Book(campaign, draft["minimum"], draft["closing"].get("seconds"), draft["retention_days"])
        self.books[campaign] = book
        await self.ask("POST", f"/campaigns/{campaign}/open", 200)
        await self.observe(book)
        check(book.state == "open", book.state)

    async def close(self) -> None:
        book = self.live()
        if book.wave:
            await self.change(f"/campaigns/{book.campaign}/waves/{book.wave}/close" + self.world.wait)
            if self.rng.random() < 0.7:
                await self.round()
            await self.observe(book)
            if book.state == "review":
                await self.change(f"/campaigns/{book.campaign}/approve")
                await self.observe(book)

    async def settle_held(self) -> None:
        book = self.live()
        if book.waves.get(book.wave) == "held":
            action = self.rng.choice(("release", "void"))
            if action == "void":
                book.asked_void |= {name for name in book.groups if name[0] == book.wave}
            await self.change(f"/campaigns/{book.campaign}/waves/{book.wave}/{action}" + self.world.wait)
            await self.round()

    async def extend(self) -> None:
        book = self.live()
        if book.wave:
            book.extended.add(book.wave)
            path = f"/campaigns/{book.campaign}/waves/{book.wave}/extend"
            await self.change(path, {"seconds": self.rng.choice(self.extensions)})

    async def void_group(self) -> None:
        book = self.live()
        if (where := self.open_question(book)) is not None:
            book.asked_void.add(where)
            await self.change(f"/campaigns/{book.campaign}/waves/{where[0]}/void-group", {"group": where[1]})
            await self.observe(book)

    async def void_wave(self) -> None:
        book = self.live()
        if book.wave:
            book.asked_void |= {name for name in book.groups if name[0] == book.wave}
            await self.change(f"/campaigns/{book.campaign}/waves/{book.wave}/void" + self.world.wait)
            await self.round()

    async def finish(self) -> None:
        """Early: what is there is counted, short groups are given up."""
        book = self.live()
        book.asked_finish = True
        await self.change(f"/campaigns/{book.campaign}/finish" + self.world.wait)
        await self.round()

    async def void_campaign(self) -> None:
        book = self.live()
        await self.change(f"/campaigns/{book.campaign}/void")
        await self.observe(book)

    # The machine

    async def round(self) -> None:
        await self.world.round(self.rng.randint(1, 3))
        await self.observe_all()

    async def run_again(self) -> None:
        """A closer that was asleep does its job once more: nothing changes."""
        book = self.rng.choice(list(self.books.values()))
        if book.closed:
            before = await self.fingerprint(book)
            await self.world.close_again(book.campaign, self.rng.choice(list(book.closed)))
            check(await self.fingerprint(book) == before, "a job that ran again changed something")

    async def pass_time(self) -> None:
        """Forward, and now and then back: clocks are set."""
        self.world.clock.pass_(self.rng.choice((1, 30, 61, 61, 301, 301, 700, DAY_S, -1, -30, -300)))
        self.latest = max(self.latest, self.world.now)

    async def fail(self) -> None:
        """The store cannot be reached for one call, while much is going on."""
        self.world.arm(self.rng.randint(0, 25), self.rng.random() < 0.5, False)
        await self.burst()

    async def crash(self) -> None:
        """The process dies at some call of the store, while much is going on."""
        self.world.arm(self.rng.randint(0, 40), self.rng.random() < 0.5, True)
        await self.burst(crash=True)

    async def quiet_crash(self) -> None:
        """The process dies while nothing goes on: what comes back is the same, byte for byte."""
        before = [await self.fingerprint(book) for book in self.books.values()]
        await self.world.crash()
        check([await self.fingerprint(book) for book in self.books.values()] == before, "replay differs")

    async def burst(self, crash: bool = False) -> None:
        """Many requests at once: reports twice, changed bytes, withdrawals, and closers in between."""
        book = self.live()
        where, work = self.open_question(book), []
        same: list[Sent] = []
        pairs: list[tuple[Sent, bytes]] = []
        gone: list[Sent] = []
        if where is not None:
            same = [self.new_report(book, where) for _ in range(self.rng.randint(1, 4))]
            pairs = [
                (s, s.frame[:16] + bytes([s.frame[16] ^ 1]) + s.frame[17:]) for s in [self.new_report(book, where)]
            ]
            gone = [s for s in [self.pick(book, IN)] if s is not None]
            frames = [sent.frame for sent in same]
            work = [self.send(book, where, frames), self.send(book, where, frames)]
            work += [self.send(book, where, [f]) for s, other in pairs for f in (s.frame, other)]
            work += [self.try_to_take_back(book, sent) for sent in gone]
        closers = self.rng.randint(0, 3)
        if closers and book.wave:
            await self.change(f"/campaigns/{book.campaign}/waves/{book.wave}/close")
        rounds = self.world.round(closers) if closers else asyncio.sleep(0)
        found = await asyncio.gather(*work, rounds)
        self.world.disarm()
        if crash:
            await self.world.crash()
        if where is not None:
            _judge_same(same, where, found[0], found[1])
            for k, (sent, other) in enumerate(pairs):
                answers = found[2 + 2 * k], found[3 + 2 * k]
                if None in answers:  # one was lost: the device asks again
                    answers = await self.send(book, where, [sent.frame]), answers[1]
                _judge_pair(sent, other, *answers)
        for sent, status in zip(gone, found[-1 - len(gone) : -1], strict=True):
            if status == 200 or (status == 503 and await self.try_to_take_back(book, sent) == 200):
                sent.status = WITHDRAWN
        await self.observe_all()
        for sent in gone:
            if sent.status == WITHDRAWN and book.groups[sent.wave, sent.group] == "void":
                sent.status = GONE  # withdrawn or given up, whichever came first

    async def try_to_take_back(self, book: Book, sent: Sent) -> int:
        path, body = f"/campaigns/{book.campaign}/withdrawals", {"nonce": sent.nonce.hex()}
        answer = await self.ask("POST", path, 200, 409, 503, json=body)
        return int(answer.status_code)

    async def back_up(self) -> None:
        await self.observe_all()
        for book in self.books.values():
            await self.compare(book)
        self.saved = (self.world.backup(), {campaign: book.copy() for campaign, book in self.books.items()})

    async def restore(self) -> None:
        """The machine burns; a backup is restored, and who compared the chains vouches for what did not move on."""
        if self.saved is None:
            return
        path, old = self.saved
        await self.observe_all()
        keep = [c for c, book in old.items() if book.live and self._unmoved(book, self.books[c])]
        keep = [campaign for campaign in keep if self.rng.random() < 0.8]
        self.epoch += 1
        await self.world.restore(path, keep, self.epoch)
        for campaign, book in old.items():
            if book.live and campaign not in keep:
                book.end_by_restore()
            for sent in self.books[campaign].reports.values():
                if sent.id not in book.reports and (sent.wave, sent.group) in book.questions:
                    sent.status, sent.also = ABSENT, None  # lost with the machine; the device still has its bytes
                    book.reports[sent.id] = sent
        self.books, self.saved = old, None
        check((await self.ask("GET", "/ready", 200)).json()["epoch"] == self.epoch, "the epoch")
        for book in self.books.values():
            await self.compare(book)

    @staticmethod
    def _unmoved(old: Book, new: Book) -> bool:
        return (old.state, old.waves, old.groups) == (new.state, new.waves, new.groups)

    # Looking

    async def look(self) -> None:
        await self.compare(self.rng.choice(list(self.books.values())))

    async def fetch_chain(self, book: Book) -> dict[str, Any]:
        found: dict[str, Any] = (await self.ask("GET", f"/campaigns/{book.campaign}/chain", 200)).json()
        return found

    async def observe(self, book: Book, chain: dict[str, Any] | None = None) -> None:
        """Compare what is public with the book, and learn what became of reports whose answer was lost."""
        book.observe(await self.fetch_chain(book) if chain is None else chain, self.world.now)
        if not book.live:  # its reports may be erased: who lost an answer asks again
            for sent in [s for s in book.reports.values() if s.status == MAYBE]:
                await self.upload(book, (sent.wave, sent.group), [(sent, sent.frame, None)])
        for name in book.unsettled():
            await self.compare_group(book, *name)
        book.recount(self.latest)

    async def observe_all(self) -> None:
        """Every campaign that moved, and others now and then."""
        for book in self.books.values():
            if (book.live and not self.world.stands(book)) or self.rng.random() < 0.05:
                await self.observe(book)

    async def compare(self, book: Book) -> None:
        """The stored reports of every group, frame by frame."""
        await self.observe(book)
        for name in book.questions:
            await self.compare_group(book, *name)

    async def compare_group(self, book: Book, wave: int, group: str) -> None:
        path = f"/campaigns/{book.campaign}/waves/{wave}/reports?group={quote(group)}"
        data = (await self.ask("GET", path, 200)).content[HEADER_LENGTH:]
        size = 16 + law_from_record(book.questions[wave, group]["oracle"]).payload_length
        frames = [data[i : i + size] for i in range(0, len(data), size)]
        book.compare_stored(wave, group, frames, not book.live)

    async def fingerprint(self, book: Book) -> list[bytes]:
        """Everything that others can see of a campaign."""
        paths = ["", "/chain", "/state", *(f"/waves/{number}" for number in book.waves)]
        return [(await self.ask("GET", f"/campaigns/{book.campaign}{p}", 200)).content for p in paths]

    async def end(self) -> None:
        """Let everything that hangs go on; then all is checked, and audited from outside."""
        self.world.disarm()
        for book in self.books.values():
            await self.compare(book)
            documents = dict(zip(["", "/chain", "/state"], await self.fingerprint(book), strict=False))
            for number in book.waves:
                path = f"/waves/{number}"
                documents[path] = (await self.ask("GET", f"/campaigns/{book.campaign}{path}", 200)).content
            found = audit(book.campaign, documents.__getitem__)
            check(found.matched, [c.detail for c in found.checks if not c.matched])
        if (events := self.world.events()) is not None:
            check_chain(events)


def changed(frame: bytes) -> bytes:
    """Other bytes under the same id: one bit of the answer is another."""
    return frame[:16] + bytes([frame[16] ^ 1]) + frame[17:]


def unknown(sent: Sent, frame: bytes, where: tuple[int, str]) -> None:
    """An answer was lost on the way."""
    if sent.status == ABSENT:
        sent.status, sent.frame, (sent.wave, sent.group) = MAYBE, frame, where


Reasons = list[str | None] | None


def _judge_same(sent: list[Sent], where: tuple[int, str], first: Reasons, second: Reasons) -> None:
    """The same bytes twice at once: accepted by one means stored once."""
    for i, one in enumerate(sent):
        answers = [found[i] for found in (first, second) if found is not None]
        check(set(answers) <= {None, "wave_closed"}, answers)
        if None in answers:
            one.status = IN
        elif len(answers) < 2:
            unknown(one, one.frame, where)


def _judge_pair(sent: Sent, other: bytes, first: Reasons, second: Reasons) -> None:
    """Other bytes under one id at once: one of them is stored, and the answers do not say which."""
    answers = [found[0] for found in (first, second) if found is not None]
    check(set(answers) <= {None, "wave_closed"}, answers)
    check(first is not None, "no answer after everything was quiet again")
    assert first is not None
    if first[0] is None:
        sent.status = IN
        if second is None or second[0] is None:
            sent.also = other
    elif second is not None and second[0] is None:
        sent.frame, sent.status = other, IN  # the wave was open again for a moment


__all__ = ["SHAPES", "Simulation", "Violation"]
