"""Uploads with tokens: the issuer's signature, the id and the group are checked, and a token is spent once."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from ahead_ldp.device.frames import Header
from ahead_ldp.device.tokens import PANEL_WAVE, report_id, token_group
from ahead_ldp.service.server import ingest
from tests.service.server.harness import ages, bench, problem, refusals

KEY = rsa.generate_private_key(65537, 2048)
OTHER = rsa.generate_private_key(65537, 2048)
TOKEN = {"tier": "signed", "version": 2, "n": f"{KEY.public_key().public_numbers().n:x}", "e": 65537}
HIO = {"name": "hio"}


def sign(message, key=KEY):
    return key.sign(message, padding.PSS(padding.MGF1(hashes.SHA384()), 0), hashes.SHA384())


@pytest.fixture
def service(tmp_path):
    with bench(tmp_path) as made:
        yield made


@pytest.fixture(params=["panel", "walk_in"])
def campaign(service, request):
    return service.opened(token=TOKEN, enrolment=request.param, method=HIO, minimum=1)


def spend(service, campaign, key=KEY, group=None, id_of=report_id):
    """A token with its question: nonce, signature, question and whole frame."""
    terms = service.service.directory.terms(campaign).campaign
    questions = service.questions(campaign, 1)
    wave = PANEL_WAVE if terms.enrolment == "panel" else 1
    while True:
        nonce = os.urandom(32)
        signature = sign(terms.token_message(nonce), key)
        own = token_group(signature, campaign, wave, [g for g in terms.groups if g[0] in questions])
        if group is None or own != group:
            question = questions[group or own]
            payload = question.report(ages(1)[0]).payload
            return question, id_of(nonce) + payload + nonce + signature


def send(service, campaign, question, *frames):
    return service.upload(campaign, Header(campaign, question.digest).encode() + b"".join(frames))


def test_a_token_is_accepted_and_the_same_bytes_again(service, campaign):
    question, frame = spend(service, campaign)
    for _ in range(2):
        assert send(service, campaign, question, frame).json() == {"accepted": 1, "refused": []}
    assert sum(service.store.counts(campaign, 1).values()) == 1


def test_a_token_is_spent_once(service, campaign):
    question, frame = spend(service, campaign)
    send(service, campaign, question, frame)
    changed = frame[:16] + bytes([frame[16] ^ 1]) + frame[17:]
    assert send(service, campaign, question, changed).json() == {"accepted": 1, "refused": []}  # the first one counts
    (chunk,) = service.store.reports(campaign, 1, question.group)
    assert chunk.payloads == frame[16 : 16 + question.law.payload_length]


def test_another_issuer_is_refused(service, campaign):
    question, frame = spend(service, campaign, key=OTHER)
    assert refusals(send(service, campaign, question, frame)) == [(0, "token_invalid")]


def test_an_id_of_another_nonce_is_refused(service, campaign):
    question, frame = spend(service, campaign, id_of=lambda nonce: os.urandom(16))
    assert refusals(send(service, campaign, question, frame)) == [(0, "token_invalid")]


def test_a_chosen_group_is_refused(service, campaign):
    group = next(iter(service.questions(campaign, 1)))
    question, frame = spend(service, campaign, group=group)
    assert refusals(send(service, campaign, question, frame)) == [(0, "wrong_group")]


def test_a_batch_is_judged_frame_by_frame(service, campaign):
    question, good = spend(service, campaign)
    while True:
        other, bad = spend(service, campaign, key=OTHER)
        if other.group == question.group:
            break
    broken = bytearray(good)
    broken[-1] ^= 1
    broken[:16] = os.urandom(16)
    answer = send(service, campaign, question, bad, good, bytes(broken))
    assert answer.json()["accepted"] == 1
    assert refusals(answer) == [(0, "token_invalid"), (2, "token_invalid")]


def test_frames_without_a_token_are_no_batch(service, campaign):
    question, frame = spend(service, campaign)
    answer = send(service, campaign, question, frame[: 16 + question.law.payload_length])
    assert problem(answer) == "truncated"


def test_finding_19_signatures_wait_in_a_bounded_queue(tmp_path, monkeypatch):
    """Large batches used to wait for the thread that checks signatures in a queue without end."""
    entered, go, parse = threading.Event(), threading.Event(), ingest.parse_upload

    def slow(*args):
        entered.set()
        assert go.wait(30)
        return parse(*args)

    monkeypatch.setattr(ingest, "parse_upload", slow)
    with bench(tmp_path, queue_reports=12) as service, ThreadPoolExecutor(3) as pool:
        campaign = service.opened(token=TOKEN, method=HIO, minimum=1)
        question, frame = spend(service, campaign)
        asked = [pool.submit(send, service, campaign, question, *[frame] * 6)]
        assert entered.wait(30)
        asked.append(pool.submit(send, service, campaign, question, *[frame] * 6))
        while service.app.ingest.checking < 12:
            time.sleep(0.01)
        answer = send(service, campaign, question, *[frame] * 6)
        assert (answer.status_code, problem(answer)) == (429, "busy")
        go.set()
        assert [one.result(30).status_code for one in asked] == [200, 200]
        assert service.app.ingest.checking == 0
