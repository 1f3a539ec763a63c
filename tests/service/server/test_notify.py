"""Notices by webhook and mail, to real servers on loopback: signed, retried, with no results and no token."""

import contextlib
import hashlib
import hmac
import importlib.util
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ahead_ldp.service.campaigns import notices
from ahead_ldp.service.campaigns.notices import NotDelivered, Notice, wait_s
from ahead_ldp.service.server import notify
from ahead_ldp.service.server.config import Settings
from ahead_ldp.service.store.rows import JobState
from tests.needs import needed
from tests.service.server.harness import bench

KEY = b"0123456789abcdef0123"
NOTICE = Notice("notify/webhook/round_counted/0/aa/1/told", "round_counted", "aa" * 32, 1, 1_700_000_000)


class Receiver:
    """A web server that keeps what it is sent, and answers as it is told."""

    def __init__(self):
        got = self.got = []
        answers = self.answers = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                got.append((self.path, dict(self.headers), body))
                status, headers = answers.pop(0) if answers else (204, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?x=1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def key(tmp_path):
    (tmp_path / "hook.key").write_bytes(KEY + b"\n")
    return str(tmp_path / "hook.key")


def settings(url, key, **more):
    return Settings(webhook=url, webhook_key=key, **{"notify_private": True, **more})


def test_a_webhook_is_signed_and_says_what_happened_and_no_more(receiver, key):
    notify.send_webhook(settings(receiver.url, key), KEY, NOTICE, 1_700_000_005)
    path, headers, body = receiver.got[0]
    assert path == "/hook?x=1"
    at, given = (part.partition("=")[2] for part in headers[notify.SIGNATURE].split(","))
    assert at == "1700000005"
    assert given == hmac.new(KEY, at.encode() + b"." + body, hashlib.sha256).hexdigest()
    said = json.loads(body)
    assert set(said) == {"id", "event", "campaign", "round", "at", "text"}
    assert (said["event"], said["campaign"], said["round"]) == ("round_counted", "aa" * 32, 1)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirection_is_not_followed(receiver, key, status):
    receiver.answers.append((status, {"location": receiver.url}))
    with pytest.raises(NotDelivered, match="redirected"):
        notify.send_webhook(settings(receiver.url, key), KEY, NOTICE, 1)
    assert len(receiver.got) == 1


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "10.0.0.1", "192.168.1.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]",
             "[fe80::1]", "[fc00::1]", "0.0.0.0", "100.64.0.1", "224.0.0.1", "[2002:7f00:1::]",
             "2130706433", "0x7f000001", "127.1", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::1]",
             "[::ffff:0:7f00:1]", "[fec0::1]", "192.0.0.8"],
)  # fmt: skip
def test_private_addresses_are_refused_unless_they_are_allowed(receiver, key, host):
    port = receiver.server.server_port
    with pytest.raises(NotDelivered, match="private_address"):
        notify.send_webhook(settings(f"https://{host}:{port}/", key, notify_private=False), KEY, NOTICE, 1)
    assert receiver.got == []


@pytest.mark.parametrize("text", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "::ffff:93.184.216.34"])
def test_public_addresses_are_taken(text):
    assert notify._is_public(text)


@pytest.mark.parametrize("secure", [False, True])
def test_who_answers_a_byte_at_a_time_is_not_waited_for(key, monkeypatch, secure):
    """Each byte came in time, and a round of the closer lasted for as long as the receiver liked."""
    monkeypatch.setattr(notify, "_LONGEST_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def trickle():
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                while not ended.wait(0.05):
                    connection.sendall(b"\x16" if secure else b"H")

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        url = f"http{'s' if secure else ''}://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(NotDelivered, match="unreachable"):
            notify.send_webhook(settings(url, key), KEY, NOTICE, 1)
        ended.set()
        thread.join()


def test_a_name_with_one_private_address_is_refused_and_the_checked_one_is_used(receiver, key, monkeypatch):
    port = receiver.server.server_port
    both = [(2, 1, 6, "", ("93.184.216.34", port)), (2, 1, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(notify.socket, "getaddrinfo", lambda *_, **__: both)
    with pytest.raises(NotDelivered, match="private_address"):
        notify.send_webhook(settings("https://hook.example/", key, notify_private=False), KEY, NOTICE, 1)


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"webhook": "ftp://x.example/", "webhook_key": "k"}, "webhook"),
        ({"webhook": "http://x.example/", "webhook_key": "k"}, "https"),
        ({"webhook": "https://u:p@x.example/", "webhook_key": "k"}, "webhook"),
        ({"webhook": "https://x.example/"}, "webhook_key"),
        ({"smtp": "smtps://user:word@x.example", "mail_from": "a@b", "mail_to": "a@b"}, "password in a file"),
        ({"smtp": "smtps://user@x.example", "mail_from": "a@b", "mail_to": "a@b"}, "smtp_password"),
        ({"smtp": "smtp://x.example", "mail_from": "a@b"}, "mail_to"),
        ({"smtp": "smtp://x.example", "mail_from": "a@b\r\nBcc: c@d", "mail_to": "a@b"}, "mail_from"),
    ],
)
def test_settings_that_cannot_work_are_named(wrong, said):
    with pytest.raises(ValueError, match=said):
        Settings(**wrong)


def test_addresses_and_keys_stay_out_of_the_audit_chain(receiver, key):
    said = settings(receiver.url, key).changed()
    assert set(said) == {"notify_private"}


def test_waits_grow():
    assert [wait_s(n) for n in (1, 2, 3, 20)] == [30, 60, 120, 3600]


def jobs_of(service):
    return [job for job in service.service.store.jobs() if job.kind == notices.NOTIFY]


def test_a_notice_that_fails_in_a_way_that_nobody_thought_of_is_tried_again_and_stops_no_round(tmp_path, caplog):
    """It ended every round, and with it whatever other work came after the notice."""
    with bench(tmp_path) as service:

        def fail(notice):
            raise UnicodeError("a label that the resolver does not take")

        service.app.jobs.channels = {"webhook": fail}
        name = service.opened(attributes=["age=integer,0,15"], method={"name": "hh"}, minimum=1)
        service.answer(name, 1, [{"age": i % 16} for i in range(60)])
        assert service.close(name, 1)["state"] == "done"
        service.app.round()
        (job,) = jobs_of(service)
        assert (job.state, job.attempts) == (JobState.QUEUED, 1)
        assert job.not_before > service.clock.now
        assert "round_failed" not in caplog.text
        assert "not_told" in caplog.text


def test_a_counted_round_is_told_once_and_again_until_it_arrives(tmp_path, receiver, key):
    with bench(tmp_path, webhook=receiver.url, webhook_key=key, notify_private=True) as service:
        name = service.opened(attributes=["age=integer,0,15"], method={"name": "hh"}, minimum=1)
        service.answer(name, 1, [{"age": i % 16} for i in range(60)])
        receiver.answers += [(500, {}), (302, {"location": "http://127.0.0.1/"})]
        assert service.close(name, 1)["state"] == "done"
        assert service.state(name)["state"] == "finished"  # whoever does not listen holds nothing up
        for _ in range(4):
            service.app.round()
            service.clock.now += 200
        assert len(receiver.got) == 3
        said = [json.loads(body) for _, _, body in receiver.got]
        assert {one["event"] for one in said} == {"campaign_finished"}
        assert len({one["id"] for one in said}) == 1
        assert [job.state for job in jobs_of(service)] == [JobState.DONE]
        tokens = (service.operator, service.analyst)
        for _, headers, body in receiver.got:
            text = json.dumps(headers) + body.decode()
            assert not any(token in text for token in tokens)


def test_a_receiver_that_never_listens_is_given_up(tmp_path, receiver, key):
    with bench(tmp_path, webhook=receiver.url, webhook_key=key, notify_private=True) as service:
        receiver.answers += [(500, {})] * 50
        notices.announce(service.service.store, ["webhook", "gone"], "round_counted", "aa" * 32, 1, service.clock())
        for _ in range(20):
            service.app.round()
            service.clock.now += 4000
        assert len(receiver.got) == notices.MOST_ATTEMPTS
        assert {job.state for job in jobs_of(service)} == {JobState.FAILED}


def test_mail_goes_through_a_real_server(tmp_path):
    found = importlib.util.find_spec("aiosmtpd")
    needed(found, "aiosmtpd", "pip install -e '.[dev]'")
    from aiosmtpd.controller import Controller

    class Inbox:
        def __init__(self):
            self.got = []

        async def handle_DATA(self, server, session, envelope):
            self.got.append(envelope)
            return "250 OK"

    inbox = Inbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(inbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        given = Settings(
            smtp=f"smtp://127.0.0.1:{port}", mail_from="survey@x.example", mail_to="a@x.example, b@x.example"
        )
        notify.send_mail(given, "Pay <b>and\nBcc: c@d</b>", NOTICE)
    finally:
        controller.stop()
    envelope = inbox.got[0]
    assert envelope.rcpt_tos == ["a@x.example", "b@x.example"]
    text = envelope.content.decode()
    assert "Subject: Pay <b>and Bcc: c@d</b>: round counted" in text
    assert "\nBcc: c@d" not in text.partition("\r\n\r\n")[0]
    assert "A round was counted." in text
    with pytest.raises(NotDelivered, match="mail_refused"):
        notify.send_mail(given, "Pay", NOTICE)  # nobody is there any more
