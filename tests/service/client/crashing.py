"""Kill a device at every point of answering, let it come back, and look at what ever left it.

Run as a program: every statement of the ledger, every request and every callback is a point. A fork answers and is
killed with SIGKILL at point k; a second fork finishes the job; k grows until nothing is left to kill.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from ahead_ldp.device.entries import Asker, Place, State
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.service.client import Answer, Client, OwnerPolicy, respondent
from ahead_ldp.service.issuer import SigningKey


class Killer:
    """Counts points and kills its process at the chosen one."""

    def __init__(self, at: int) -> None:
        self.at, self.points = at, 0

    def point(self, *_: Any) -> None:
        self.points += 1
        if self.points == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


class Canned:
    """A server from files; what arrives is appended to one, and survives."""

    def __init__(self, directory: Path, shown: dict[str, str], killer: Killer) -> None:
        self.directory, self.shown, self.killer = directory, shown, killer

    def request(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> Answer:
        self.killer.point()
        if method == "GET":
            answer = Answer(200, self.shown[path].encode())
        else:
            with (self.directory / "uploads").open("a") as file:
                file.write(body.hex() + "\n")
            answer = Answer(200, b'{"accepted":1,"refused":[]}')
        self.killer.point()
        return answer


class Signer:
    def __init__(self, directory: Path, key: SigningKey, tier: str, killer: Killer) -> None:
        self.directory, self.key, self.tier, self.killer = directory, key, tier, killer

    def sign(self, message: bytes) -> bytes:
        self.killer.point()
        with (self.directory / "signed").open("a") as file:
            file.write(message.hex() + "\n")
        answer = self.key.sign(self.key.number(message, self.tier))
        self.killer.point()
        return answer


class SendsFirst(Client):
    """A mutant: the bytes leave before they are in the outbox."""

    def _draw(self, offer, values, fields):
        digest, question, limits = offer.campaign.digest, offer.question, self._policy.exact_limits()
        place = Place(question.wave, question.group, question.digest)
        self._ledger.reserve(Asker(digest, "", ""), place, offer.fields, question.epsilon, limits)
        payload = question.report(values(offer)).payload
        batch = respondent.batch_of_one(offer, self._ledger.token(digest), payload)
        self._transport.request("POST", f"/v1/campaigns/{digest}/reports", batch)
        self._ledger.keep_drawn(digest, question.digest, batch, 0)


class ForgetfulLedger(Ledger):
    """A mutant: nothing is written before the answer has come."""

    def keep_drawn(self, campaign, question, batch, not_before):
        self.pending = (campaign, question, batch, not_before)

    def entry(self, campaign):
        if hasattr(self, "pending") and self.pending is not None:
            pending, self.pending = self.pending, None
            super().keep_drawn(*pending)
            found = super().entry(campaign)
            self._database.execute("UPDATE report SET state = 'reserved', batch = NULL")
            return found
        return super().entry(campaign)

    def move(self, campaign, state):
        if state == State.ACKNOWLEDGED:
            self._database.execute("UPDATE report SET state = 'sent'")
            super().move(campaign, state)


CLIENTS = {"": (Client, Ledger), "sends first": (SendsFirst, Ledger), "forgets": (Client, ForgetfulLedger)}


def answer_once(directory: Path, given: dict[str, Any], at: int) -> int:
    """Answer with a kill at a point; the number of points if it was not reached."""
    killer = Killer(at)
    make_client, make_ledger = CLIENTS[given["mutant"]]
    ledger = make_ledger(directory / "ledger.db")
    ledger._database.execute("PRAGMA synchronous = OFF")  # a killed process loses no pages; syncing is slow here
    ledger._database.set_trace_callback(killer.point)
    tier = given["tier"]
    signer = None if tier == "none" else Signer(directory, SigningKey(*map(int, given["key"])), tier, killer)
    policy = OwnerPolicy("1", fields={given["campaign"]: {"pay": "salary"}})
    mine = make_client(Canned(directory, given["shown"], killer), ledger, policy, signer=signer, jitter_s=0)

    def consent(_: Any) -> bool:
        killer.point()
        return True

    def values(_: Any) -> dict[str, int]:
        killer.point()
        return {"pay": 5}

    outcome = mine.answer(given["campaign"], consent, values)
    killer.point()
    assert outcome.status == "acknowledged", outcome
    return killer.points


def in_fork(directory: Path, given: dict[str, Any], at: int) -> int:
    """The exit status of a fork that answers."""
    child = os.fork()
    if child == 0:
        try:
            answer_once(directory, given, at)
            os._exit(0)
        except BaseException as error:
            print(type(error).__name__, error, file=sys.stderr)
            os._exit(1)
    return os.waitpid(child, 0)[1]


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def check(directory: Path, at: int) -> str | None:
    """What is wrong after the second life, if anything."""
    with Ledger(directory / "ledger.db") as ledger:
        entries, charges = ledger.entries(), ledger.charges()
    if len(set(lines(directory / "uploads"))) != 1:
        return f"killed at {at}: {len(set(lines(directory / 'uploads')))} different reports left the device"
    if len(set(lines(directory / "signed"))) > 1:
        return f"killed at {at}: the issuer saw two messages"
    if [e.state for e in entries] != [State.ACKNOWLEDGED] or [c.field for c in charges] != ["salary"]:
        return f"killed at {at}: {entries} {charges}"
    return None


def main() -> None:
    """Read the setting from standard input, print what was found."""
    given, base = json.load(sys.stdin), Path(sys.argv[1])
    killed, problems, at = 0, [], 0
    while True:
        at += given.get("step", 1)
        directory = base / str(at)
        directory.mkdir()
        status = in_fork(directory, given, at)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            killed += 1
        elif status:
            problems.append(f"failed at {at}")
        if in_fork(directory, given, 0):
            problems.append(f"the second life failed after {at}")
        elif problem := check(directory, at):
            problems.append(problem)
        shutil.rmtree(directory)
        if not os.WIFSIGNALED(status):
            break
    print(json.dumps({"killed": killed, "problems": problems}))


if __name__ == "__main__":
    main()
