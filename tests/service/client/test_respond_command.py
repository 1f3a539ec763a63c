"""`ahead respond` and `ahead issue`: for people at a terminal and for scripts, against the real server."""

import http.client
import inspect
import io
import json
import os
import pty
import re
import select
import socket
import stat
import subprocess
import sys
import termios
import time
from fractions import Fraction

import pytest

from ahead_ldp.cli import main
from ahead_ldp.cli.participant import introduction, parse_value
from ahead_ldp.cli.respond import respond
from ahead_ldp.cli.spending import lines
from ahead_ldp.device.budget import LIFETIME, Limits
from ahead_ldp.device.campaign import check_wave
from ahead_ldp.device.entries import Asker, Place
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.refusals import ValueRefused
from ahead_ldp.schema.attributes import as_schema
from ahead_ldp.service.client import OwnerPolicy
from ahead_ldp.service.client.offers import Offer
from tests.service.client.embedded import issuing, running
from tests.service.client.fake import FakeServer, make_campaign, make_office, spent

CANARY = 13
FAST = ["--jitter", "0", "--json"]
PAY = ["--field", "pay=pay"]


def run(capsys, *words):
    code = main([str(word) for word in words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def service(tmp_path):
    with running(tmp_path) as (server, operator, _):
        yield server, operator


def test_a_script_answers_withdraws_and_opts_out(service, tmp_path, capsys):
    server, operator = service
    campaign = make_campaign(epsilon="4")
    operator.open(campaign)
    ledger = ["--ledger", tmp_path / "ledger.db"]
    respond = ["respond", server.url, campaign.digest, *ledger, *FAST, *PAY]
    code, out, err = run(capsys, *respond, "--value", f"pay={CANARY}", "--yes")
    assert code == 0, err
    found = json.loads(out)
    assert found["status"] == "acknowledged"
    assert re.fullmatch("[0-9a-f]{64}", found["receipt"]["nonce"])
    assert str(CANARY) not in err
    assert stat.S_IMODE((tmp_path / "ledger.db").stat().st_mode) == 0o600
    again = json.loads(run(capsys, *respond, "--value", "pay=2", "--yes")[1])
    assert again == found  # never drawn again
    assert json.loads(run(capsys, *respond, "--withdraw")[1])["status"] == "withdrawn"
    assert json.loads(run(capsys, *respond, "--opt-out")[1])["status"] == "wiped"
    other = make_campaign(epsilon="4", created="2026-05-05")
    operator.open(other)
    code, _, err = run(capsys, "respond", server.url, other.digest, *ledger, *FAST, *PAY, "--value", "pay=1", "--yes")
    assert code == 2
    assert "opted out" in err
    code, _, err = run(
        capsys, "respond", server.url, other.digest, *ledger, *FAST, *PAY, "--value", "pay=1", "--yes", "--opt-in"
    )
    assert code == 2
    assert "reported before" in err


def test_a_script_says_for_each_campaign_which_field_it_is_about(service, tmp_path, capsys):
    """By --field for the campaign that it answers, or in a file for many; what it said of one holds for no other."""
    server, operator = service
    first = make_campaign(epsilon="4")
    second = make_campaign(epsilon="4", schema=as_schema("wage=integer,0,15"))
    third = make_campaign(epsilon="4", schema=as_schema("age=integer,0,15"))
    for campaign in (first, second, third):
        operator.open(campaign)
    rest = ["--ledger", tmp_path / "ledger.db", *FAST, "--yes"]
    code, _, err = run(capsys, "respond", server.url, first.digest, "--value", "pay=1", *rest)
    assert code == 2
    assert "--field pay=FIELD" in err
    assert first.digest in err
    assert run(capsys, "respond", server.url, first.digest, "--value", "pay=1", *PAY, *rest)[0] == 0
    code, _, err = run(capsys, "respond", server.url, second.digest, "--value", "wage=1", *PAY, *rest)
    assert code == 2
    assert "--field wage=FIELD" in err
    mappings = {first.digest: {"pay": "pay"}, second.digest: {"wage": "pay"}, third.digest: {"age": "age"}}
    (tmp_path / "fields.json").write_text(json.dumps(mappings))
    rest += ["--fields", tmp_path / "fields.json"]
    code, _, err = run(capsys, "respond", server.url, second.digest, "--value", "wage=1", *rest)
    assert code == 2
    assert "reported before" in err
    limit = ["--limit", "pay=8"]
    assert run(capsys, "respond", server.url, second.digest, "--value", "wage=1", *limit, *rest)[0] == 0
    code, out, _ = run(capsys, "respond", server.url, third.digest, "--value", "age=1", *limit, *rest)
    budget = json.loads(out)["budget"]
    assert (budget["spent"], budget["left"]) == (12, 8)
    found = {line["field"]: (line["spent"], line["left"]) for line in budget["fields"]}
    assert found == {"age": (4, 0), "pay": (8, 0)}
    assert [c["controller"] for c in budget["fields"][1]["campaigns"]] == ["The Institute"] * 2
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert {name: len(line.charges) for name, line in spent(ledger).items()} == {"pay": 2, "age": 1}


DEEP = 100_000 * "["


@pytest.mark.parametrize(
    "text", ["", "[]", '{"x": {}}', '{"%s": "pay"}', '{"%s": {"pay": " pay"}}', '{"%s": {"pay": 3}}', DEEP]
)
def test_a_file_of_fields_in_another_form_is_named(service, tmp_path, capsys, text):
    server, operator = service
    campaign = make_campaign(epsilon="4")
    operator.open(campaign)
    (tmp_path / "fields.json").write_text(text.replace("%s", campaign.digest))
    words = ["--value", "pay=1", "--yes", "--ledger", tmp_path / "l.db", "--fields", tmp_path / "fields.json", *FAST]
    code, _, err = run(capsys, "respond", server.url, campaign.digest, *words)
    assert code == 2
    assert "expected" in err


def test_a_file_of_answers_that_is_too_deep_is_named(tmp_path, capsys):
    (tmp_path / "values.json").write_text(DEEP)
    words = ["--values", tmp_path / "values.json", "--yes", "--ledger", tmp_path / "l.db", *FAST]
    code, _, err = run(capsys, "respond", "http://127.0.0.1:9", "0" * 64, *words)
    assert (code, "expected --values to be a JSON object" in err) == (2, True)


def test_the_default_lifetime_is_the_devices():
    assert inspect.signature(respond).parameters["lifetime"].default == str(LIFETIME)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--value", "age=3"], "a value for pay"),
        (["--value", "pay"], "NAME="),
        (["--values", "no-such-file"], "no-such-file"),
        (["--value", "pay=3", "--max-epsilon", "1"], "epsilon"),
        (["--value", "pay=3", "--min-group", "1000"], "groups of at least"),
        (["--value", "pay=3", "--jitter", "-1"], "--jitter"),
        (["--value", "pay=3", "--issuer", "http://localhost:1"], "--secret"),
    ],
)
def test_what_a_script_may_not_is_named_without_the_value(service, tmp_path, capsys, words, message):
    server, operator = service
    campaign = make_campaign(epsilon="4")
    operator.open(campaign)
    code, out, err = run(
        capsys, "respond", server.url, campaign.digest, "--ledger", tmp_path / "l.db", "--yes", *FAST, *words
    )
    assert code == 2
    assert message in err
    assert str(CANARY) not in out + err
    _, progress = operator.call("GET", f"/v1/campaigns/{campaign.digest}/progress", role="analyst")
    assert sum(group["reports"] for group in progress["groups"]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [(f"{CANARY}00", "outside the declared range"), (f"x{CANARY}x", "not a value of kind integer")],
)
def test_a_value_that_does_not_fit(service, tmp_path, capsys, text, message):
    """Whoever is there is told before anything is promised; unattended it is answered, with a note on this side."""
    server, operator = service
    campaign = make_campaign(epsilon="4")
    operator.open(campaign)
    words = [
        "respond",
        server.url,
        campaign.digest,
        "--ledger",
        tmp_path / "l.db",
        *FAST,
        *PAY,
        "--value",
        f"pay={text}",
    ]

    def arrived():
        _, progress = operator.call("GET", f"/v1/campaigns/{campaign.digest}/progress", role="analyst")
        return sum(group["reports"] for group in progress["groups"])

    code, out, err = run(capsys, *words)
    assert (code, arrived()) == (2, 0)
    assert message in err
    assert str(CANARY) not in out + err
    code, _, err = run(capsys, *words, "--yes")
    assert (code, arrived()) == (0, 1)
    assert "another was reported" in err
    assert str(CANARY) not in err  # the receipt on the other stream has any digits


def test_values_from_standard_input(service, tmp_path, capsys, monkeypatch):
    server, operator = service
    campaign = make_campaign(epsilon="4")
    operator.open(campaign)
    monkeypatch.setattr("sys.stdin", io.StringIO('{"pay": 3}'))
    words = ["--values", "-", "--yes", "--ledger", tmp_path / "l.db", *FAST, *PAY]
    assert run(capsys, "respond", server.url, campaign.digest, *words)[0] == 0


def test_a_server_that_is_not_there(tmp_path, capsys):
    words = ["--value", "pay=1", "--yes", "--ledger", tmp_path / "l.db", *FAST]
    code, _, err = run(capsys, "respond", "http://127.0.0.1:9", "ab" * 32, *words)
    assert code == 2
    assert "cannot be reached" in err
    code, _, err = run(capsys, "respond", "http://example.org", "ab" * 32, *words)
    assert code == 2
    assert "https" in err


HIDDEN = "(not shown):"


def talk(command: list[str], turns: list[tuple[str, str]]) -> tuple[int, str]:
    """Run a command at a terminal; after each expected text, type the answer. Everything shown is returned."""
    terminal, theirs = pty.openpty()
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    shown, position, end = "", 0, time.monotonic() + 60
    for expected, typed in [*turns, ("", "")]:
        while expected not in shown[position:] or not expected:
            assert time.monotonic() < end, shown
            if not select.select([terminal], [], [], 1.0)[0]:
                continue
            try:
                data = os.read(terminal, 4096)
            except OSError:
                data = b""
            if not data:
                os.close(terminal)
                return child.wait(), shown
            shown += data.decode()
        position = shown.index(expected, position) + len(expected)
        hidden = expected == HIDDEN
        while hidden and termios.tcgetattr(terminal)[3] & termios.ECHO:  # switched off just after the prompt
            assert time.monotonic() < end, shown
            time.sleep(0.01)
        os.write(terminal, typed.encode() + b"\n")
    raise AssertionError


def test_a_person_at_a_terminal(service, tmp_path):
    """Who, why and the price first; then yes; then the answer, which the terminal never shows."""
    server, operator = service
    campaign = make_campaign(epsilon="2", texts={"consent": "Please help us."})
    operator.open(campaign)
    ahead = [sys.executable, "-m", "ahead_ldp", "respond", server.url, campaign.digest]
    ahead += ["--ledger", str(tmp_path / "l.db"), "--jitter", "0"]
    turns = [("Take part?", "y"), ("pay [pay]:", "salary"), (HIDDEN, "4711"), (HIDDEN, "7")]
    code, shown = talk(ahead, turns)
    assert code == 0, shown
    for text in ("The Institute", "to know how pay is spread", "privacy@example.org", "Please help us.", "88 %"):
        assert text in shown.split("Take part?")[0]
    assert "a number from 0 to 15" in shown
    assert "outside the declared range" in shown
    assert "4711" not in shown
    assert "was received" in shown
    assert "salary: 2, not again" in shown.split("was received")[1]
    again = make_campaign(epsilon="2", title="Pay, again", schema=as_schema("pay_2=integer,0,15"))
    operator.open(again)
    ahead[5] = again.digest
    code, shown = talk([*ahead, "--limit", "salary=4"], [("Take part?", "y"), ("pay_2 [salary]:", ""), (HIDDEN, "7")])
    assert code == 0, shown
    before, after = shown.split("Take part?")
    assert "2 of 20, 18 left" in before  # what was given away, on what, to whom, and what is left
    assert "salary: 2, 2 of 4 left" in before
    assert "2 to The Institute (Pay)" in before
    assert "salary: 4, 0 of 4 left" in after
    assert "2 to The Institute (Pay, again)" in after


def test_a_person_who_says_no_is_not_asked(service, tmp_path):
    server, operator = service
    campaign = make_campaign(epsilon="2")
    operator.open(campaign)
    ahead = [sys.executable, "-m", "ahead_ldp", "respond", server.url, campaign.digest]
    code, shown = talk([*ahead, "--ledger", str(tmp_path / "l.db"), "--jitter", "0"], [("Take part?", "n")])
    assert code == 0
    assert "nothing was sent" in shown
    assert "(not shown)" not in shown


def test_the_issuers_commands(service, tmp_path, capsys):
    """Create, enrol, open a campaign with the printed key, issue in a process of its own, respond, count."""
    server, operator = service
    office = tmp_path / "office"
    code, out, err = run(capsys, "issue", "create", office, "--tier", "blind")
    assert code == 0, err
    token = json.loads(out)
    assert stat.S_IMODE((office / "key.pem").stat().st_mode) == 0o600
    secrets = run(capsys, "issue", "enrol", office, "--count", "2")[1].split()
    assert len(set(secrets)) == 2
    (tmp_path / "own").write_text("a secret of sixteen\n")
    assert run(capsys, "issue", "enrol", office, "--secrets", tmp_path / "own")[0] == 0
    campaign = make_campaign(epsilon="4", token=token)
    operator.open(campaign)
    (tmp_path / "secret").write_text(secrets[0] + "\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "ahead_ldp", "issue", "serve", str(office), "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        words = ["--value", "pay=3", "--yes", "--issuer", f"http://127.0.0.1:{port}", "--secret", tmp_path / "secret"]
        words += ["--ledger", tmp_path / "l.db", *FAST, *PAY]
        for _ in range(100):
            code, out, err = run(capsys, "respond", server.url, campaign.digest, *words)
            if "cannot be reached" not in err:
                break
            time.sleep(0.1)
        assert code == 0, err
        assert json.loads(out)["status"] == "acknowledged"
        second = ["--ledger", tmp_path / "l2.db", *words[:7], *FAST]
        code, _, err = run(capsys, "respond", server.url, campaign.digest, *second)
        assert code == 2
        assert "used before" in err
    finally:
        process.terminate()
        process.communicate()
    assert json.loads(run(capsys, "issue", "status", office, "--json")[1]) == {
        "tier": "blind",
        "enrolled": 3,
        "used": 1,
    }
    assert json.loads(run(capsys, "issue", "key", office)[1]) == token
    for words, message in {
        ("create", office): "without a key",
        ("create", tmp_path / "x", "--tier", "open"): "tier",
        ("create", tmp_path / "y", "--bits", "1024"): "bits",
        ("enrol", office): "--count or --secrets",
        ("key", tmp_path): "ahead issue create",
    }.items():
        code, _, err = run(capsys, "issue", *words)
        assert code == 2
        assert message in err


def test_introduction_says_what_was_spent():
    server = FakeServer(make_campaign())
    question = check_wave(server.wave(), server.campaign, 1, OwnerPolicy("1"))["1"]
    with Ledger(None) as ledger:
        asker = Asker("aa" * 32, "Wages", "The Bureau")
        ledger.reserve(asker, Place(1, "g", "q"), ["salary"], question.epsilon, Limits())
        offer = Offer(server.campaign, question, ("salary",), ledger.statement(Limits()), ledger.askers())
        text = introduction(offer)
    assert "1 of 20, 19 left" in text
    assert "salary: 1, not again" in text
    assert "1 to The Bureau (Wages)" in text
    assert "kept for 30 days" in text


def test_a_title_cannot_write_lines_of_the_statement():
    with Ledger(None) as ledger:
        asker = Asker("aa" * 32, "Pay\n  salary: 0, 20 of 20 left", "The\nBureau")
        ledger.reserve(asker, Place(1, "g", "q"), ["salary", None], Fraction(1), Limits())
        shown = lines(ledger.statement(Limits()), ledger.askers())
    assert not any("\n" in line for line in shown)
    assert [line for line in shown if not line.startswith("    ")] == [
        "Given away on this device so far, in epsilon: 1 of 20, 19 left.",
        "  salary: 1, not again",
        "  not sure which, so it counts against all: 1, not again",
    ]


@pytest.mark.parametrize(
    ("attribute", "text", "value"),
    [
        ("a=integer,0,9", " 7 ", 7),
        ("a=real,0,9,3", "1.5", 1.5),
        ("a=category,S|M", "M", "M"),
        ("a=integer,0,9", "", None),
        ("a=integer,0,9", "7.0", ValueRefused),
        ("a=real,0,9,3", "x", ValueRefused),
    ],
)
def test_typed_values(attribute, text, value):
    declared = as_schema(attribute).attributes[0]
    if value is ValueRefused:
        with pytest.raises(ValueRefused):
            parse_value(declared, text)
    else:
        assert parse_value(declared, text) == value


def test_the_issuer_says_no(tmp_path):
    office = make_office(tmp_path, "blind")
    secret = office.roster.enrol(1)[0]
    with issuing(office) as url:
        for body, status in {
            b"": 400,
            b"[]": 400,
            b"{}": 400,
            b"x" * 5000: 413,
            json.dumps({"secret": secret, "message": "zz"}).encode(): 400,
            json.dumps({"secret": secret, "message": "00"}).encode(): 422,
            json.dumps({"secret": "unknown secret 123", "message": "02" * 256}).encode(): 403,
            json.dumps({"secret": secret, "message": "02" * 256}).encode(): 200,
            json.dumps({"secret": secret, "message": "03" * 256}).encode(): 403,
            json.dumps({"secret": secret, "message": "02" * 256, "x": 1}).encode(): 400,
        }.items():
            connection = http.client.HTTPConnection(url.removeprefix("http://"))
            connection.request("POST", "/v1/signatures", body)
            got = connection.getresponse()
            text = got.read().decode()
            connection.close()
            assert got.status == status, body
            assert secret not in text
        connection = http.client.HTTPConnection(url.removeprefix("http://"))
        connection.request("GET", "/v1/key")
        assert json.loads(connection.getresponse().read()) == office.token_record
        connection.close()
    data = (tmp_path / "roster-blind.db").read_bytes()
    assert secret.encode() not in data
