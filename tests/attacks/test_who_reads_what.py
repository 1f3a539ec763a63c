"""Who can read what, alone or together: the table in docs/tokens.md, played by stranger, issuer and collector.

The issuer keeps every message it signed, with the name of the person. The collector keeps what its disk holds; one that
is out for more also writes down what arrives.
"""

import hashlib
import json
import os
import random
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from ahead_ldp.device.tokens import PublicKey, blind, encode_pss, token_message, unblind
from tests.attacks.plain_http import Running, header
from tests.attacks.test_forgetting import CELLS, GRR, all_files, canonical_digest

NAMES = ("ann", "ben", "cem", "dee", "eva", "fay", "gus")


class Issuer:
    """Signs one message a person, and writes down whose it was."""

    def __init__(self):
        private = rsa.generate_private_key(65537, 2048).private_numbers()
        self.key, self._d = PublicKey(private.public_numbers.n, 65537), private.d
        self.book = {}

    def sign(self, number):
        return pow(number, self._d, self.key.n).to_bytes(self.key.length, "big")

    def encoded(self, message):
        return int.from_bytes(encode_pss(message, self.key.n.bit_length() - 1), "big")

    def signature_for(self, name, message, tier):
        """What the device gets, by the tier's protocol; what the issuer saw goes into its book."""
        if tier == "signed":
            self.book[name] = message
            return self.sign(self.encoded(message))
        blinded = blind(self.key, message)
        self.book[name] = blinded.message
        answer = self.sign(int.from_bytes(blinded.message, "big"))
        return unblind(self.key, message, answer, blinded.inverse)


class World:
    """A campaign of one tier in which everybody has answered, and all that the parties know."""

    def __init__(self, server, tier):
        self.server, self.tier, self.issuer = server, tier, Issuer()
        token = {"tier": tier}
        if tier != "none":
            token |= {"version": 2, "n": f"{self.issuer.key.n:x}", "e": 65537}
        self.name = server.opened(**GRR, token=token)
        (question,) = server.questions(self.name)
        self.group, self.header = question["group"], header(self.name, canonical_digest(question))
        self.truth, self.tails, frames = {}, {}, []
        for name in NAMES:
            nonce, payload = os.urandom(32), bytes([random.randrange(CELLS)])
            i = hashlib.sha256(nonce).digest()[:16]
            message = token_message(self.name, nonce)
            tail = b"" if tier == "none" else nonce + self.issuer.signature_for(name, message, tier)
            self.truth[name], self.tails[i] = (i, payload), tail
            frames.append(i + payload + tail)
        random.shuffle(frames)
        assert [self.send(frame)["accepted"] for frame in frames] == [1] * len(NAMES)

    def send(self, *frames):
        status, answer = self.server.upload(self.name, self.header + b"".join(frames))
        assert status == 200
        return json.loads(answer)

    def knows(self, i, tail=None):
        """Whether the server knows an id: anybody can ask, who has it."""
        tail = bytes(len(next(iter(self.tails.values())))) if tail is None else tail
        return self.send(i + b"\xff" + tail)["accepted"] == 1

    def forget(self):
        self.server.finish(self.name)
        self.server.wait_for("reports_deleted", self.name)

    # What each of them can do

    def stranger(self):
        """Everything public; and questions about ids that were made up."""
        paths = ("", "/state", "/chain", "/waves/1")
        public = b"".join(self.server.ask("GET", f"/v1/campaigns/{self.name}{path}")[1] for path in paths)
        ids = [i for i, _ in self.truth.values() if i in public or i.hex().encode() in public]
        return ids + [i for i in (os.urandom(16) for _ in range(100)) if self.knows(i)]

    def issuer_alone(self):
        """Of each person: whether they took part, and which payloads the answers of the server single out."""
        learnt = {}
        for name, message in self.issuer.book.items():
            i = hashlib.sha256(message).digest()[:16]
            tail = self.tails.get(i, bytes(len(next(iter(self.tails.values())))))
            answers = {g: json.dumps(self.send(i + bytes([g]) + tail)) for g in range(CELLS)}
            learnt[name] = (self.knows(i), len(set(answers.values())) > 1)
        return learnt

    def collector_alone(self):
        """The stored reports by id; and whether its disk names anybody."""
        path = f"/v1/campaigns/{self.name}/waves/1/reports?group={quote(self.group)}"
        data = _unchunked(self.server.ask("GET", path, token=self.server.token)[1])[65:]
        disk = all_files(self.server.folder)
        named = [m for name, message in self.issuer.book.items() for m in (name.encode() * 3, message) if m in disk]
        return {data[k : k + 16]: data[k + 16 : k + 17] for k in range(0, len(data), 17)}, named

    def together(self):
        """Names from the issuer's book, payloads from the collector's store, joined in the one way there is: by id."""
        stored, _ = self.collector_alone()
        ids = {name: hashlib.sha256(message).digest()[:16] for name, message in self.issuer.book.items()}
        return {name: stored[i] for name, i in ids.items() if i in stored}

    def together_with_nonces(self):
        """The same, and the collector wrote down the nonces that came: who took part, and what the store still has."""
        stored, _ = self.collector_alone()
        names = {message: name for name, message in self.issuer.book.items()}
        came = {i: names.get(token_message(self.name, tail[:32])) for i, tail in self.tails.items() if tail}
        took_part = {name: i for i, name in came.items() if name is not None and self.knows(i)}
        return took_part.keys(), {name: stored[i] for name, i in took_part.items() if i in stored}


def _unchunked(body):
    """The content of a body in chunks."""
    content = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        n = int(size, 16)
        content, body = content + body[:n], body[n + 2 :]
        if not n:
            break
    return content


@pytest.fixture(params=["none", "signed", "blind"])
def world(request, tmp_path):
    with Running(tmp_path, closer_interval_s=0.05) as server:
        yield World(server, request.param)


def test_who_reads_what(world):
    tier, payloads = world.tier, {name: payload for name, (_, payload) in world.truth.items()}
    by_id = dict(world.truth.values())

    assert world.stranger() == []
    stored, named = world.collector_alone()
    assert (stored, named) == (by_id, [])  # all reports, of nobody in particular
    learnt = world.issuer_alone()
    assert learnt == dict.fromkeys(world.issuer.book, (False, False))  # neither who took part nor what was sent
    assert world.together() == {}
    linked = payloads if tier == "signed" else {}
    assert world.together_with_nonces() == (linked.keys(), linked)

    world.forget()
    assert world.stranger() == []
    assert world.collector_alone() == ({}, [])
    assert world.issuer_alone() == learnt
    assert world.together() == {}
    assert world.together_with_nonces() == (linked.keys(), {})
    assert all(world.knows(i) for i in by_id)  # that somebody took part is what remains
