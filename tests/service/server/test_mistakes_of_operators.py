"""What somebody types wrongly on the machine of a server: one line each, that says what was expected and what came."""

import stat

import pytest

from ahead_ldp.cli import main
from ahead_ldp.service.edge.server import Server
from ahead_ldp.service.store import open_store
from tests.service.edge.serving import app

WEBHOOK = ["--set", "webhook_key=hook.key", "--set", "webhook={}"]
SMTP = ["--set", "mail_from=a@x.org", "--set", "mail_to=b@x.org", "--set", "smtp={}"]


def with_address(words, address):
    return [word.format(address) for word in words]


MISTAKES = {
    "a number": (["--set", "port=abc"], "expected port to be of type int, got 'abc'"),
    "yes or no": (["--set", "metrics=yes"], "expected metrics to be true or false, got 'yes'"),
    "budgets": (["--set", "max_held_bytes=1000"], "expected max_held_bytes >= max_body_bytes, got 1000 and 4194304"),
    "quotes": (["--set", 'counter="a b'], "expected counter to be a command, got '\"a b': No closing quotation"),
    "no command": (["--set", "counter=''"], "expected counter to be a command, got \"''\""),
    "collector": (["--set", "telemetry=http://"], "expected telemetry to be an address like"),
    "webhook's port": (with_address(WEBHOOK, "https://x.org:99999/"), "expected webhook to be an address like"),
    "webhook's name": (with_address(WEBHOOK, "https://.x.org/"), "expected webhook to be an address like"),
    "webhook's letters": (with_address(WEBHOOK, "https://x.org/\u00fc"), "expected webhook to be an address like"),
    "webhook's key": (with_address(WEBHOOK, "https://x.org/"), "expected webhook_key to be a readable file, got 'hook"),
    "mail's port": (with_address(SMTP, "smtp://x.org:abc"), "expected smtp to be like smtps://user@host"),
    "mail's password": (
        [*with_address(SMTP, "smtps://me@x.org"), "--set", "smtp_password=mail.key"],
        "expected smtp_password to be a readable file, got 'mail.key': No such file",
    ),
    "keys": (["--set", "keys=a.db"], "expected keys to be a directory that this user may read and write, got 'a.db'"),
    "no folder": (["--set", "store=none/a.db"], "the store 'none/a.db' cannot be opened: "),
    "another database": (
        ["--set", "store=mysql://me:secret@x.org/y"],
        "expected a store to be a file or postgresql://..., got mysql",
    ),
}


@pytest.mark.parametrize(("words", "said"), MISTAKES.values(), ids=MISTAKES)
def test_settings_that_cannot_work_are_named_before_anything_starts(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Server, "run", lambda server: None)
    open_store("a.db").close()
    code = main(["serve", "--set", "store=a.db", "--set", "port=0", *words])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {said}")
    assert err.count("\n") == 1
    assert "secret" not in err


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("no.such.host.invalid", 0, "expected host to be an address of this machine, got 'no.such.host.invalid'"),
        ("192.0.2.1", 0, "expected host to be an address of this machine, got '192.0.2.1'"),
        ("127.0.0.1", 99_999, "expected port in 0..65535, got 99999"),
    ],
)
def test_an_address_that_is_not_this_machines_is_named(host, port, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        Server(app, host, port).run()


def test_the_issuer_says_how_its_own_port_is_chosen(tmp_path, capsys):
    office = str(tmp_path / "office")
    assert main(["issue", "create", office]) == 0
    running = Server(app, "127.0.0.1", 0)
    thread = running.start_thread()
    try:
        capsys.readouterr()
        assert main(["issue", "serve", office, "--port", str(running.port)]) == 2
        err = capsys.readouterr().err
        assert f"port {running.port}: " in err
        assert "Take another one, as in --port " in err
        assert "issuing at" not in err
    finally:
        running.ask_to_stop()
        thread.join()
    assert main(["issue", "serve", office, "--port", "99999"]) == 2
    assert main(["issue", "serve", office, "--allowed-origin", "example.org"]) == 2
    err = capsys.readouterr().err
    assert "expected port in 0..65535, got 99999" in err
    assert "expected --allowed-origin like https://example.org, got 'example.org'" in err


def test_an_office_that_cannot_be_used_and_a_file_that_is_not_there_are_named(tmp_path, capsys):
    office = tmp_path / "office"
    assert main(["issue", "create", str(office)]) == 0
    capsys.readouterr()
    assert main(["issue", "enrol", str(office), "--secrets", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}/none: No such file or directory\n"
    (office / "roster.db").write_bytes(b"no roster" * 1000)
    assert main(["issue", "status", str(office)]) == 2
    said = f"error: expected a roster that can be used in '{office}': file is not a database\n"
    assert capsys.readouterr().err == said


def test_a_token_is_made_in_a_store_that_is_there_and_under_a_name_that_can_be_revoked(tmp_path, capsys):
    missing, store = tmp_path / "missing.db", tmp_path / "store.db"
    open_store(str(store)).close()

    def make(name, file=store):
        code = main(["token", "--role", "operator", "--name", name, "--set", f"store={file}"])
        return code, *capsys.readouterr()

    code, out, err = make("ann", missing)
    assert (code, out) == (2, "")
    assert f"expected the store of a server, but there is no file {missing}" in err
    assert not missing.exists()
    for name in ("", "a b", "a/b", "\u00fc", "a\n", "a" * 101):
        code, out, err = make(name)
        assert (code, out) == (2, "")
        assert "expected --name to be 1 to 100 letters" in err
    code, out, _ = make("ann.smith-2")
    assert code == 0
    assert out.startswith("ahead_")
    assert main(["token", "--name", "bob", "--set", f"store={store}"]) == 2
    assert "expected --role to be one of operator, analyst, monitor, got 'none'" in capsys.readouterr().err
    for code in (0, 2):  # whoever revokes knows the name; the role is of no use
        assert main(["token", "--revoke", "--name", "ann.smith-2", "--set", f"store={store}"]) == code
    assert "expected the name of a token that is not revoked, got 'ann.smith-2'" in capsys.readouterr().err


def test_a_store_that_was_cut_off_to_nothing_is_not_taken_for_a_new_one(tmp_path, capsys):
    """Its server began again with epoch 1, and every report that it had counted was new to it."""
    empty = tmp_path / "store.db"
    empty.write_bytes(b"")
    for words in (
        ["serve", "--set", f"store={empty}", "--set", "port=0"],
        ["token", "--role", "operator", "--name", "ann", "--set", f"store={empty}"],
        ["store", "check", str(empty)],
        ["store", "backup", str(empty), str(tmp_path / "backup")],
    ):
        assert main(words) == 2
        assert "an empty file" in capsys.readouterr().err
        assert empty.stat().st_size == 0
    assert list(tmp_path.iterdir()) == [empty]


def test_paths_and_numbers_of_backups_are_named(tmp_path, capsys):
    store, backup = tmp_path / "store.db", tmp_path / "backup"
    open_store(str(store)).close()
    assert main(["store", "backup", str(store), str(backup)]) == 0
    capsys.readouterr()
    for words, said in [
        (["backup", store, backup], f"expected a path where nothing is yet, got '{backup}'"),
        (["backup", store, tmp_path / "no" / "b"], f"expected a path in a folder that is there, got '{tmp_path}/no/b'"),
        (["restore", backup, tmp_path / "no" / "b"], f"expected a path in a folder that is there, got '{tmp_path}/no"),
        (["restore", backup, store], f"expected a path where nothing is yet, got '{store}'"),
        (["restore", tmp_path / "none", tmp_path / "b"], f"expected a backup file, got '{tmp_path}/none'"),
        (
            ["restore", backup, tmp_path / "b", "--keep", "abc"],
            "expected campaigns to keep that are in the backup, got a",
        ),
        (["restore", backup, tmp_path / "b", "--epoch", "-5"], "expected 0 <= epoch < 2^53, got -5"),
        (["restore", backup, tmp_path / "b", "--epoch", str(2**64)], "expected 0 <= epoch < 2^53, got 1844"),
    ]:
        assert main(["store", *map(str, words)]) == 2
        assert capsys.readouterr().err.startswith(f"error: {said}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "store.db"]


def test_a_folder_is_no_ledger_and_keeps_its_rights(tmp_path, capsys):
    """It became 0600: a folder that its owner could not enter any more. Then there was a traceback."""
    folder = tmp_path / "documents"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    words = ["respond", "http://127.0.0.1:1", "a" * 64, "--yes", "--value", "x=1", "--ledger", str(folder)]
    assert main(words) == 2
    assert capsys.readouterr().err == f"error: expected the ledger to be a file, got '{folder}'\n"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert sorted(tmp_path.iterdir()) == [folder]
