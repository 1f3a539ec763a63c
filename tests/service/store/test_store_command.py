"""`ahead store`: check, back up, restore, migrate, in one line each, and one line when it cannot be."""

import json
import time

import pytest

from ahead_ldp.cli import main
from ahead_ldp.service.store import RoleToken, open_store
from tests.service.store.support import CAMPAIGN, batch, frames, open_campaign, stored


@pytest.fixture
def filled(url):
    store = open_store(url)
    open_campaign(store)
    store.add_reports([batch("abc")])
    store.add_event(b"event", 10)
    store.close()
    return url


def run(capsys, *arguments):
    code = main(["store", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_check_backup_and_restore(filled, new_url, tmp_path, capsys):
    code, out, _ = run(capsys, "check", filled, "--json")
    found = json.loads(out)
    assert (code, found["epoch"], found["events"]) == (0, 1, 1)
    assert found["campaigns"] == [{"campaign": CAMPAIGN, "state": "open", "waves": 1, "reports": 3}]
    backup = str(tmp_path / "backup")
    assert run(capsys, "backup", filled, backup)[0] == 0
    ended, kept = new_url(), new_url()
    code, out, _ = run(capsys, "restore", backup, ended)
    assert code == 0
    assert "epoch 2" in out
    assert "is void; wave 1 is void, 3 reports deleted" in out
    code, out, _ = run(capsys, "restore", backup, kept, "--keep", CAMPAIGN, "--epoch", "5", "--json")
    assert json.loads(out) == {"epoch": 5, "ended": [], "forgotten": 0, "tokens": []}
    store = open_store(kept)
    assert stored(store) == frames("abc")
    store.close()
    code, out, _ = run(capsys, "check", kept)
    assert "epoch 5, 2 events in an unbroken chain" in " ".join(out.split())
    assert run(capsys, "migrate", kept)[0] == 0


def test_a_restore_says_which_tokens_hold_again(url, new_url, tmp_path, capsys):
    """One that was revoked after the backup, because somebody had stolen it, was an operator's again without a word."""
    now = int(time.time())
    store = open_store(url)
    for k, (name, expires, revoked) in enumerate(
        [("stolen", None, None), ("ann", now + 3600, None), ("old", now - 1, None), ("gone", None, now)]
    ):
        store.add_role_token(RoleToken(bytes([k]) * 32, "operator", name, now - 60 + k, expires, revoked))
    backup = str(tmp_path / "backup")
    store.backup(backup)
    store.revoke_role_token("stolen", now)
    store.close()
    code, out, _ = run(capsys, "restore", backup, new_url())
    assert code == 0
    said = "tokens that hold, also if they were revoked since the backup: stolen (operator), ann (operator)"
    assert said in " ".join(out.split())
    _, out, _ = run(capsys, "restore", backup, new_url(), "--json")
    assert [token["name"] for token in json.loads(out)["tokens"]] == ["stolen", "ann"]


def test_what_cannot_be_is_said_in_one_line(tmp_path, capsys):
    (tmp_path / "text").write_bytes(b"not a store at all" * 100)
    for arguments in (
        ("check", str(tmp_path / "nothing")),
        ("check", str(tmp_path / "text")),
        ("backup", str(tmp_path / "nothing"), str(tmp_path / "backup")),
        ("restore", str(tmp_path / "nothing"), str(tmp_path / "restored")),
        ("restore", str(tmp_path / "text"), str(tmp_path / "restored")),
        ("migrate", str(tmp_path / "text")),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["text"]
