"""The program itself: a server process, the commands against it, and how it stops."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from ahead_ldp.cli import main
from ahead_ldp.cli.campaign import find
from ahead_ldp.cli.remote import Remote
from ahead_ldp.device.campaign import Campaign, check_wave
from ahead_ldp.device.frames import encode_batch
from ahead_ldp.device.question import Policy
from ahead_ldp.service.server import embedded
from ahead_ldp.service.server.config import NO_RATES, Settings
from ahead_ldp.service.store import SQLiteStore
from tests.engines.test_folders import assert_everything_reads
from tests.service.server.harness import TEXTS, ages

CAMPAIGN = """
title = "Ages"
purpose = "a test"
controller = "Example"
contact = "someone@example.org"
attributes = ["age=integer,0,15"]
epsilon = "2"
minimum = 20
closing = {{ kind = "manual" }}
{more}
"""


@contextmanager
def process(folder, *words, **environment):
    """`ahead serve` in a process of its own: the process, its token, its address."""
    command = [sys.executable, "-m", "ahead_ldp", "serve", "--set", "port=0", "--set", f"store={folder}/x.db", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as running:
        try:
            token = running.stdout.readline().strip() if {"--init", "--sign-in"} & {*words} else ""
            port = 0
            while not port:
                line = running.stderr.readline()
                assert line, "the server did not start"
                port = json.loads(line).get("port", 0) if line.startswith("{") else 0
            yield running, token, f"http://127.0.0.1:{port}"
        finally:
            running.kill()
            running.communicate()


def test_a_signal_drains_and_exits_with_0(tmp_path):
    with process(tmp_path, "--init") as (running, token, url):
        assert re.fullmatch(r"ahead_[\w-]{43}", token)
        assert ask(url, "/v1/health")["status"] == "ok"
        running.send_signal(signal.SIGTERM)
        _, errors = running.communicate(timeout=60)
        assert running.returncode == 0
        assert json.loads(errors.strip().splitlines()[-1])["event"] == "stopped" or '"stopped"' in errors
    with process(tmp_path) as (running, _, url):  # what was stored is there again
        assert ask(url, "/v1/ready") == {"status": "ready", "epoch": 1}


def ask(url, path):
    import urllib.request

    with urllib.request.urlopen(url + path, timeout=30) as answer:
        return json.loads(answer.read())


def test_settings_come_from_the_environment_too(tmp_path):
    with process(tmp_path, AHEAD_METRICS="false") as (_, _, url), pytest.raises(OSError, match="404"):
        ask(url, "/metrics")


def test_the_table_of_settings_is_printed(capsys):
    assert main(["serve", "--settings"]) == 0
    assert "AHEAD_MAX_BATCH" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "--set", "no_such=1"],
        ["serve", "--set", "port"],
        ["serve", "--config", "/no/such/file.toml"],
        ["serve", "--set", "store=/no/such/folder/x.db"],
        ["token", "--role", "king", "--name", "x"],
        ["token", "--role", "analyst", "--name", "x", "--days", "0"],
        ["audit", "http://127.0.0.1:1/c/" + "0" * 64],
        ["campaign", "open", "x", "--server", "nonsense"],
        ["campaign", "open", "x", "--server", "http://127.0.0.1:1"],
    ],
)
def test_bad_input_is_one_line_and_2(words, capsys):
    assert main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_tokens_are_made_and_revoked_beside_the_store(tmp_path, capsys):
    store = ["--set", f"store={tmp_path}/x.db"]
    SQLiteStore(tmp_path / "x.db").close()
    assert main(["token", "--role", "analyst", "--name", "reader", *store]) == 0
    assert capsys.readouterr().out.startswith("ahead_")
    assert main(["token", "--role", "analyst", "--name", "reader", *store]) == 2
    assert main(["token", "--role", "analyst", "--name", "reader", "--revoke", *store]) == 0
    assert main(["token", "--role", "analyst", "--name", "reader", "--revoke", *store]) == 2


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server over HTTP whose closer runs fast, and the operator's environment."""
    store = SQLiteStore(tmp_path / "x.db")
    with embedded.start(store, Settings(port=0, closer_interval_s=0.02, **NO_RATES)) as running:
        monkeypatch.setenv("AHEAD_SERVER", running.url)
        monkeypatch.setenv("AHEAD_TOKEN", running.service.add_token("operator", "op"))
        yield running
    store.close()


def answer(server, campaign, number, people):
    import urllib.request

    base = f"{server.url}/v1/campaigns/{campaign}"
    record = Campaign.from_bytes(urllib.request.urlopen(base).read(), campaign)
    data = urllib.request.urlopen(f"{base}/waves/{number}").read()
    for question in check_wave(data, record, number, Policy("64")).values():
        body = encode_batch(question.header, (question.report(person) for person in people))
        request = urllib.request.Request(f"{base}/reports", body, {"content-type": "application/octet-stream"})
        assert json.loads(urllib.request.urlopen(request).read())["accepted"] == len(people)


def test_a_campaign_by_commands_over_http(server, tmp_path, capsys):
    """Create, open, answer, close, query, export, audit: what docs/campaigns.md shows."""
    file = tmp_path / "campaign.toml"
    file.write_text(CAMPAIGN.format(more='method = { name = "hio" }'))
    assert main(["campaign", "create", str(file)]) == 0
    campaign = capsys.readouterr().out.strip()
    assert main(["campaign", "open", campaign]) == 0
    answer(server, campaign, 1, ages(60))
    assert main(["campaign", "progress", campaign]) == 0
    assert "reports" in capsys.readouterr().out
    assert main(["campaign", "extend", campaign, "--seconds", "600"]) == 0
    assert main(["campaign", "close", campaign]) == 0
    assert "campaign_state finished" in capsys.readouterr().out
    assert main(["campaign", "query", campaign, "age in 3..7", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["queries"][0]
    assert found["low"] <= found["share"] <= found["high"]
    for words in (["results", campaign], ["query", campaign, "age in 3..7"], ["list"]):
        assert main(["campaign", *words]) == 0
    (tmp_path / "wire").mkdir(mode=0o755)  # there, and open to everybody
    assert main(["campaign", "export", campaign, "--out", str(tmp_path / "wire")]) == 0
    assert main(["campaign", "export", campaign, "--out", str(tmp_path / "parquet"), "--parquet"]) == 0
    assert list((tmp_path / "wire" / "reports").rglob("*.bin"))
    assert list((tmp_path / "parquet" / "reports").rglob("*.parquet"))
    for folder in ("wire", "parquet"):  # reports: nobody else on the machine can read them
        paths = [path for path in (tmp_path / folder).rglob("*") if path.is_file()]
        assert not any(path.stat().st_mode & 0o077 for path in paths)
    capsys.readouterr()
    for folder in ("wire", "parquet"):
        assert_everything_reads(tmp_path / folder, "age in 3..7", 120, capsys)
        assert main(["query", str(tmp_path / folder), "age in 3..7", "--recount", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["results"][0]["share"] == pytest.approx(found["share"], abs=1e-9)
    assert main(["audit", f"{server.url}/v1/campaigns/{campaign}"]) == 0
    assert capsys.readouterr().out.count("matched") == 5
    assert main(["campaign", "close", campaign]) == 2


def test_a_campaign_is_known_by_its_name_and_by_the_beginning_of_its_digest(server, tmp_path, capsys):
    file, names = tmp_path / "campaign.toml", []
    for days in (5, 6):
        people = "users = 2000" if days == 6 else ""
        file.write_text(CAMPAIGN.format(more=f'retention_days = {days}\n{people}\nmethod = {{ name = "hio" }}'))
        assert main(["campaign", "create", str(file), "--json"]) == 0
        out, notes = capsys.readouterr()
        names.append(json.loads(out))
        expected = (
            "2,000 people expected, in 2 groups; people per wave: 2,000"
            if people
            else "does not say how many people you expect"
        )
        assert expected in notes
        assert f"next: ahead campaign open {names[-1]['name']}" in notes
    first, second = names
    assert first["name"].endswith(first["campaign"][:6])
    assert main(["campaign", "list"]) == 0
    listed = capsys.readouterr().out
    for made in names:
        assert made["name"] in listed
        assert made["campaign"] in listed
    assert main(["campaign", "progress", first["name"]]) == 0
    said = capsys.readouterr().out
    assert said == f"draft: nobody is asked yet; next: ahead campaign open {first['name']}\n"  # no table without rows
    for word in (first["name"], first["campaign"][:6], first["campaign"]):
        assert main(["campaign", "progress", word, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["state"] == "draft"
    assert main(["campaign", "open", second["name"]]) == 0
    assert server.service.row(second["campaign"]).state == "open"
    assert server.service.row(first["campaign"]).state == "draft"
    for word in ("abc", "nobody-knows-it", "zz" * 32):
        assert main(["campaign", "progress", word]) == 2
    assert "see `ahead campaign list`" in capsys.readouterr().err


def test_an_ambiguous_beginning_is_refused_with_the_names():
    class Two:
        def get(self, path):
            return [{"campaign": "abcd" + digit * 60, "name": f"pay-{digit}"} for digit in "12"]

    assert find(Two(), "abcd1") == "abcd" + "1" * 60
    assert find(Two(), "pay-2") == "abcd" + "2" * 60
    assert find(Two(), "abcd2") == find(Two(), "pay-2")
    with pytest.raises(ValueError, match="which may be pay-1"):
        find(Two(), "pay-")  # the beginning of both names
    with pytest.raises(ValueError, match="at least 4 letters"):
        find(Two(), "pa")
    with pytest.raises(ValueError, match=r"which may be pay-1 .*, pay-2"):
        find(Two(), "abcd")


def test_the_server_says_where_it_is_and_what_is_next(tmp_path):
    with process(tmp_path, "--init") as (running, token, url):
        lines = [running.stdout.readline().strip() for _ in range(3)]
    assert lines[:2] == [f"serving at {url}", f"the dashboard: {url}/login#{token}"]
    assert lines[2].startswith("next: ")
    assert f"ahead campaign new --server {url}" in lines[2]


def test_who_starts_a_server_again_can_sign_in(tmp_path):
    """With --init the second start printed no token, so whoever had lost the first one stood before a closed door."""
    with process(tmp_path, "--init") as (running, first, _):
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=60)
    with process(tmp_path, "--sign-in") as (running, second, url):
        lines = [running.stdout.readline().strip() for _ in range(2)]
        assert lines[1] == f"the dashboard: {url}/login#{second}"
        assert second != first
        for token in (first, second):
            Remote(url, token).get("/campaigns")
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=60)
    command = [
        sys.executable,
        "-m",
        "ahead_ldp",
        "serve",
        "--init",
        "--set",
        "port=0",
        "--set",
        f"store={tmp_path}/x.db",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as running:
        said = running.stderr.readline()
        running.kill()
    assert "`ahead serve --sign-in` prints another, and so does `ahead token --role operator --name NAME`" in said


def test_review_void_and_finish_by_commands(server, tmp_path, capsys):
    file = tmp_path / "campaign.toml"
    file.write_text(CAMPAIGN.format(more='review = true\nmethod = { name = "ahead" }'))
    assert main(["campaign", "create", str(file)]) == 0
    campaign = capsys.readouterr().out.strip()
    assert main(["campaign", "open", campaign]) == 0
    answer(server, campaign, 1, ages(30))
    assert main(["campaign", "close", campaign]) == 0
    assert main(["campaign", "approve", campaign]) == 0
    assert main(["campaign", "close", campaign]) == 2  # nobody has answered
    answer(server, campaign, 2, ages(30))
    assert main(["campaign", "void", campaign]) == 0
    assert main(["campaign", "approve", campaign]) == 0
    assert main(["campaign", "finish", campaign]) == 0
    assert server.service.row(campaign).state == "finished"
    assert [q.n for q in server.service.store.questions(campaign)] == [30, 0, 0]
    file.write_text(CAMPAIGN.format(more='retention_days = 5\nmethod = { name = "hio" }'))
    capsys.readouterr()
    assert main(["campaign", "create", str(file)]) == 0
    other = capsys.readouterr().out.strip()
    assert main(["campaign", "open", other]) == 0
    group = server.service.store.questions(other)[0].group
    assert main(["campaign", "void", other, "--group", group]) == 0
    assert main(["campaign", "void", other, "--whole"]) == 0
    assert server.service.row(other).state == "void"


def test_enough_reports_close_waves_without_anybody(server, tmp_path, monkeypatch):
    """The background closer of a running server."""
    from ahead_ldp.cli.remote import Remote

    remote = Remote(server.url, os.environ["AHEAD_TOKEN"])
    draft = {**TEXTS, "attributes": ["age=integer,0,7"], "epsilon": "2", "minimum": 20}
    draft |= {"closing": {"kind": "reports", "reports": 30}, "method": {"name": "ahead"}}
    campaign = remote.post("/campaigns", draft)["campaign"]
    remote.post(f"/campaigns/{campaign}/open")
    for number in range(1, 4):
        answer(server, campaign, number, ages(30, top=7))
        for _ in range(3000):
            state = remote.get(f"/campaigns/{campaign}/state")
            if state["state"] == "finished" or state["wave"] > number:
                break
            time.sleep(0.01)
    assert state["state"] == "finished"


def test_an_export_stays_in_its_folder(server, tmp_path, monkeypatch, capsys):
    """A server that names a group like a path has nothing written elsewhere."""
    file = tmp_path / "campaign.toml"
    file.write_text(CAMPAIGN.format(more='method = { name = "hio" }'))
    assert main(["campaign", "create", str(file)]) == 0
    record = server.service.store.campaigns()[0].digest
    assert main(["campaign", "open", record]) == 0
    plain, read = Remote.get, Remote.read

    def renamed(remote, path):
        found = plain(remote, path)
        if path.endswith("/chain"):
            for asked in found["waves"][0]["groups"]:
                asked["group"] = "../../../outside/x"
        return found

    monkeypatch.setattr(Remote, "get", renamed)
    monkeypatch.setattr(Remote, "read", lambda remote, at: b"planted" if "/reports?" in at else read(remote, at))
    out = tmp_path / "a" / "b" / "c" / "out"
    assert main(["campaign", "export", record, "--out", str(out)]) == 2
    assert not list(tmp_path.rglob("outside"))
    assert "a group's name" in capsys.readouterr().err
