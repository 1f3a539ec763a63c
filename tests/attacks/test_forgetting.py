"""Attacks on what was deleted: the upload route as an oracle, the files of the store as something to guess against."""

import hashlib
import hmac
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.attacks.plain_http import Running, header

CELLS = 100
PEOPLE = 12
GRR = {
    "attributes": [f"x=integer,0,{CELLS - 1}"],
    "epsilon": "1",
    "method": {"name": "flat", "choices": {"oracle": "grr"}},
}
OUE = {"attributes": ["y=integer,0,255"], "epsilon": "1", "method": {"name": "flat", "choices": {"oracle": "oue"}}}


def canonical_digest(record):
    """A record's name: SHA-256 of its JSON with sorted keys and no spaces."""
    return hashlib.sha256(
        json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    ).digest()


@pytest.fixture
def server(tmp_path):
    with Running(tmp_path, closer_interval_s=0.05) as running:
        yield running


class Campaign:
    """A campaign on a server, and the reports of its people: 16 bytes of id, one payload each."""

    def __init__(self, server, draft, length, seed=1):
        rng = random.Random(seed)
        self.server, self.name = server, server.opened(**draft)
        (question,) = server.questions(self.name)
        self.header = header(self.name, canonical_digest(question))
        top = CELLS if length == 1 else 256
        self.sent = {rng.randbytes(16): bytes(rng.randrange(top) for _ in range(length)) for _ in range(PEOPLE)}
        status, answer = self.send(*(i + payload for i, payload in self.sent.items()))
        assert (status, json.loads(answer)) == (200, {"accepted": PEOPLE, "refused": []})

    def send(self, *frames):
        return self.server.upload(self.name, self.header + b"".join(frames))


def guess_by_asking(campaign):
    """For each id, ask about every payload there is; what the answers single out."""
    singled = {}
    for i in campaign.sent:
        guesses = [bytes([g]) for g in range(256)]  # also such that no device could send
        status, together = campaign.send(*(i + g for g in guesses))
        refused = {r["index"]: r["reason"] for r in json.loads(together)["refused"]}
        by_answer = {}
        for k, g in enumerate(guesses):
            by_answer.setdefault((status, refused.get(k)), []).append(g)
        alone = {g: campaign.send(i + g) for g in random.Random(2).sample(guesses[:CELLS], 8)}
        alone[campaign.sent[i]] = campaign.send(i + campaign.sent[i])
        for g, answer in alone.items():
            by_answer.setdefault(answer, []).append(g)
        singled[i] = [some for some in by_answer.values() if len(some) < 9]
    return singled


def test_finding_2_the_upload_route_tells_nothing_about_a_report_that_it_knows(server):
    """Finding 2: whoever knew an id read the report, open or closed or erased, with one request."""
    campaign = Campaign(server, GRR, 1)
    nothing = {i: [] for i in campaign.sent}
    assert guess_by_asking(campaign) == nothing
    server.operate("POST", f"/campaigns/{campaign.name}/waves/1/close?wait=60")
    assert guess_by_asking(campaign) == nothing
    server.wait_for("reports_deleted", campaign.name)
    assert guess_by_asking(campaign) == nothing
    server.stop(signal.SIGKILL)
    server.start()
    assert guess_by_asking(campaign) == nothing
    late = os.urandom(16) + b"\0"
    assert json.loads(campaign.send(late)[1])["refused"] == [{"index": 0, "reason": "wave_closed"}]


def test_a_known_id_gets_one_answer_wherever_and_whenever_it_is_sent(server):
    """Byte for byte: alone or among others, well-formed or not, before and after the close and the erasure."""
    campaign = Campaign(server, GRR, 1)
    i, payload = next(iter(campaign.sent.items()))
    frames = [i + payload, i + bytes([(payload[0] + 1) % CELLS]), i + b"\xff"]
    answers = {campaign.send(frame) for frame in frames}
    server.finish(campaign.name)
    answers |= {campaign.send(frame) for frame in frames}
    server.wait_for("reports_deleted", campaign.name)
    answers |= {campaign.send(frame) for frame in frames}
    assert answers == {(200, b'{"accepted":1,"refused":[]}')}


def derived(i, payload):
    """What a program might keep of a report, to know it again."""
    for name in ("md5", "sha1", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s"):
        for data in (i + payload, payload + i, payload, i.hex().encode() + payload.hex().encode()):
            yield hashlib.new(name, data).digest()
        yield hmac.digest(i, payload, name)
        yield hmac.digest(payload, i, name)


def guess_from_bytes(campaign, data):
    """The ids and payloads of which the data hold something that was computed from both."""
    values = {data[k : k + 8] for k in range(len(data) - 7)}
    texts = {bytes.fromhex(t.decode()) for t in values if all(c in b"0123456789abcdef" for c in t)}
    found = []
    for i in campaign.sent:
        for g in range(CELLS):
            for digest in derived(i, bytes([g])):
                if digest[:8] in values or digest[:4] in texts:
                    found.append((i, bytes([g])))
    return found


def all_files(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def command(*words):
    done = subprocess.run(
        [sys.executable, "-m", "ahead_ldp", *map(str, words)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_finding_1_no_file_of_the_store_confirms_a_guess_once_reports_are_deleted(server, tmp_path):
    """Finding 1: id and SHA-256(id, payload) stayed for ever, and 13 of 13 payloads were guessed from them.

    Looked through: database, log, free pages, a backup made before, the server's own log, what is left of the keys.
    """
    campaign = Campaign(server, GRR, 1)
    command("store", "backup", tmp_path / "store.db", tmp_path / "backup", "--json")
    server.finish(campaign.name)
    server.wait_for("reports_deleted", campaign.name)
    keys = tmp_path / "keys"
    wait_until(lambda: list(keys.iterdir()) == [])  # a moment after the event, which is one step with the deletion
    server.stop(signal.SIGKILL)
    data = all_files(tmp_path)
    assert all(i in data for i in campaign.sent)
    (one, payload), *_ = campaign.sent.items()
    planted = hashlib.sha256(one + payload).digest()
    assert (one, payload) in guess_from_bytes(campaign, data + planted)  # it would be found
    assert (one, payload) in guess_from_bytes(campaign, data + planted.hex().encode())
    found = guess_from_bytes(campaign, data)
    assert [guess for guess in found if campaign.sent[guess[0]] == guess[1]] == []


def test_no_payload_is_in_any_file_before_or_after(server, tmp_path):
    """Payloads of 32 bytes, which do not occur by accident."""
    campaign = Campaign(server, OUE, 32)
    command("store", "backup", tmp_path / "store.db", tmp_path / "backup", "--json")
    before = all_files(tmp_path)
    server.finish(campaign.name)
    server.wait_for("reports_deleted", campaign.name)
    server.stop()
    after = all_files(tmp_path)
    for i, payload in campaign.sent.items():
        for data in (before, after):
            assert i in data
            for part in (payload, payload[:8], payload.hex().encode()):
                assert part not in data


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="memory is read through Linux's /proc")
def test_the_memory_of_a_restarted_server_holds_no_report(server):
    campaign = Campaign(server, OUE, 32)
    assert any(payload in data for data in [server.memory()] for payload in campaign.sent.values())  # it would be found
    server.finish(campaign.name)
    server.wait_for("reports_deleted", campaign.name)
    server.stop()
    server.start()
    status, _ = campaign.send(*(i + bytes(32) for i in campaign.sent))
    memory = server.memory()
    assert status == 200
    assert any(i in memory for i in campaign.sent)
    assert not any(payload in memory for payload in campaign.sent.values())


@pytest.mark.parametrize("after", ["finish", "void"])
def test_a_wave_that_was_handed_out_is_forgotten_although_the_server_was_killed(tmp_path, after):
    """Killed while another program counts, and started without it, as docs/operations.md says: 12 of 12 stayed."""
    folder = tmp_path / "counting"
    with Running(tmp_path, closer_interval_s=0.05, lease_s=1) as server:
        plain = dict(server.settings)
        server.stop()
        waits = """sh -c 'while [ -d "$0" ]; do sleep 0.1; done'"""  # for as long as it has something to count
        server.settings |= {"counter": waits, "counter_folder": folder, "counter_reports": 1}
        server.start()
        campaign = Campaign(server, OUE, 32)
        server.operate("POST", f"/campaigns/{campaign.name}/finish")
        wait_until(lambda: list(folder.rglob("*.parquet")))
        handed_out = all_files(folder)
        assert all(payload in handed_out for payload in campaign.sent.values())  # it would be found
        server.stop(signal.SIGKILL)
        server.settings = plain
        server.start()
        if after == "void":
            server.operate("POST", f"/campaigns/{campaign.name}/void")
        else:
            server.wait_for("reports_deleted", campaign.name)
        wait_until(lambda: not list(folder.iterdir()))
        server.stop()
        left = all_files(tmp_path)
        assert not any(payload in left for payload in campaign.sent.values())


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_backup_made_before_forgets_too(server, tmp_path):
    campaign = Campaign(server, OUE, 32)
    command("store", "backup", tmp_path / "store.db", tmp_path / "backup", "--json")
    keys = ("--keys", tmp_path / "keys", "--json")
    kept = command("store", "restore", tmp_path / "backup", tmp_path / "before.db", "--keep", campaign.name, *keys)
    assert kept["ended"] == []
    assert command("store", "check", tmp_path / "before.db", *keys)["campaigns"][0]["reports"] == PEOPLE
    server.finish(campaign.name)
    server.wait_for("reports_deleted", campaign.name)
    for words in (
        ("check", tmp_path / "before.db"),
        ("restore", tmp_path / "backup", tmp_path / "x.db", "--keep", campaign.name),
    ):
        with pytest.raises(subprocess.CalledProcessError) as error:
            command("store", *words, *keys)
        assert "the key of a wave is not in the key directory" in error.value.stderr


def test_the_published_digest_confirms_no_last_report(server):
    """Who knows all reports of a group but one could try payloads for the last one against the published digest."""
    campaign = Campaign(server, GRR, 1)
    server.finish(campaign.name)
    chain = json.loads(server.ask("GET", f"/v1/campaigns/{campaign.name}/chain")[1])
    (group,) = chain["waves"][0]["groups"]

    def bound(entries):
        buckets = (b"".join(sorted(e for e in entries if e[0] == first)) for first in range(256))
        return hashlib.sha256(b"".join(hashlib.sha256(bucket).digest() for bucket in buckets)).hexdigest()

    last, *others = campaign.sent
    known = [i + hashlib.sha256(i + campaign.sent[i]).digest() for i in others]
    guesses = [bound([*known, last + hashlib.sha256(last + bytes([g])).digest()]) for g in range(CELLS)]
    assert group["reports"] not in guesses
    assert group["reports"] == bound(list(campaign.sent))
    events = server.operate("GET", "/events")
    assert not any(guess in json.dumps(events) for guess in guesses)


def test_finding_8_made_up_withdrawals_write_nothing(server, tmp_path):
    """Finding 8: each was a row on disk and an entry in memory, from anybody."""
    campaign = Campaign(server, GRR, 1)
    log = tmp_path / "store.db-wal"
    before = log.stat().st_size
    for _ in range(50):
        body = json.dumps({"nonce": os.urandom(32).hex()}).encode()
        status, _ = server.ask("POST", f"/v1/campaigns/{campaign.name}/withdrawals", body, "application/json")
        assert status == 404
    assert log.stat().st_size == before


def test_nothing_about_a_report_is_logged(server, tmp_path):
    campaign = Campaign(server, OUE, 32)
    i, payload = next(iter(campaign.sent.items()))
    campaign.send(i + payload[::-1])
    campaign.send(os.urandom(5))
    server.finish(campaign.name)
    server.wait_for("reports_deleted", campaign.name)
    server.stop()
    log = (tmp_path / "server.log").read_bytes()
    assert b"reports_deleted" in log
    for i, payload in campaign.sent.items():
        for secret in (i, payload):
            assert secret.hex().encode() not in log
            assert repr(secret)[2:-1].encode() not in log
