"""A client process: ``python -m tests.service.system.load URL SEED THREADS LATER CAMPAIGN ...``

LATER are the answers after which the same is sent again, separated by commas.

Threads that send small batches to whatever wave is open, and send the same bytes again until there is an answer. One
line of JSON for each upload that was answered. It stops when its input ends, after every upload has its answer.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import threading
import time
from random import Random
from typing import Any
from urllib.parse import urlsplit

from ahead_ldp.device.canonical import digest
from ahead_ldp.device.frames import Header
from ahead_ldp.device.laws import law_from_record

_BINARY = {"content-type": "application/octet-stream"}


class Words:
    """Noise from a seed: this is a simulation."""

    def __init__(self, rng: Random) -> None:
        self.take = rng.getrandbits


class Sender:
    """One thread: a connection, and the questions of the waves that it saw open."""

    def __init__(self, url: str, campaigns: list[str], rng: Random, stop: threading.Event, later: set[int]) -> None:
        split = urlsplit(url)
        kind = http.client.HTTPSConnection if split.scheme == "https" else http.client.HTTPConnection
        self.connection = kind(split.hostname or "", split.port, timeout=20)
        self.campaigns, self.rng, self.stop, self.later = list(campaigns), rng, stop, later
        self.questions: dict[str, list[dict[str, Any]]] = {}
        self.again = 0  # how often a request was sent again

    def run(self) -> None:
        while not self.stop.is_set() and self.campaigns:
            campaign = self.rng.choice(self.campaigns)
            if campaign not in self.questions and not self.look(campaign):
                continue
            question = self.rng.choice(self.questions[campaign])
            self.upload(campaign, question)

    def look(self, campaign: str) -> bool:
        """Find the open wave; a campaign that ended is left alone from now on."""
        state = json.loads(self.ask("GET", f"/v1/campaigns/{campaign}/state")[1])
        if state["state"] in ("finished", "void"):
            self.campaigns.remove(campaign)
            return False
        wave = json.loads(self.ask("GET", f"/v1/campaigns/{campaign}/waves/{state['wave']}")[1])
        self.questions[campaign] = wave["questions"]
        return True

    def upload(self, campaign: str, question: dict[str, Any]) -> None:
        law = law_from_record(question["oracle"])
        words = Words(self.rng)
        frames = [
            self.rng.randbytes(16) + law.draw(self.rng.randrange(law.cells), words)
            for _ in range(self.rng.randint(1, 4))
        ]
        body = Header(campaign, digest(question)).encode() + b"".join(frames)
        before = self.again
        _, data = self.ask("POST", f"/v1/campaigns/{campaign}/reports", body)
        refused = {r["index"]: r["reason"] for r in json.loads(data)["refused"]}
        if refused:
            self.questions.pop(campaign, None)
            time.sleep(0.02)  # the wave is being closed
        told = {
            "campaign": campaign, "wave": question["wave"], "group": question["group"],
            "accepted": [f.hex() for i, f in enumerate(frames) if i not in refused],
            "refused": [[f.hex(), refused[i]] for i, f in enumerate(frames) if i in refused],
            "again": self.again - before,
        }  # fmt: skip
        os.write(1, json.dumps(told).encode() + b"\n")

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """An answer that says something: whatever fails is sent again, the same bytes."""
        while True:
            try:
                self.connection.request(method, path, body, _BINARY if body else {})
                answer = self.connection.getresponse()
                data = answer.read()
                if answer.status == 200:
                    return answer.status, data
                assert answer.status in self.later, (path, answer.status, data)
            except (OSError, http.client.HTTPException):
                self.connection.close()
            self.again += 1
            time.sleep(0.01)


def main(url: str, seed: str, threads: str, later: str, *campaigns: str) -> None:
    """Send until the input ends."""
    stop, codes = threading.Event(), set(map(int, later.split(",")))
    senders = [Sender(url, list(campaigns), Random(f"{seed} {k}"), stop, codes) for k in range(int(threads))]
    running = [threading.Thread(target=sender.run) for sender in senders]
    for thread in running:
        thread.start()
    sys.stdin.read()
    stop.set()
    for thread in running:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
