"""The ledger: one report a campaign, one charge a field or its limit, states that only move forward, all durable."""

import sqlite3
import stat
import subprocess
import sys
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device.budget import Limits
from ahead_ldp.device.entries import MOVES, Asker, LedgerBusy, LedgerRefused, Place, State
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.ledger_files import VERSION

ONE = Fraction(1)
A, B, C = "aa" * 32, "bb" * 32, "cc" * 32


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.db") as made:
        yield made


def reserve(ledger, campaign=A, fields=("pay",), epsilon=ONE, limits=(), question="q1", wave=1):
    asker = Asker(campaign, "Pay", "The Institute")
    ledger.reserve(asker, Place(wave, "g0", question), fields, epsilon, Limits(fields=dict(limits)))


def spent(ledger):
    return {line.field: line for line in ledger.statement(Limits()).lines}


def to_state(ledger, state, campaign=A):
    """Bring a report to a state by the shortest legal way."""
    ways = {
        State.RESERVED: [],
        State.DRAWN: [],
        State.SENT: [State.SENT],
        State.ACKNOWLEDGED: [State.SENT, State.ACKNOWLEDGED],
        State.LATE: [State.SENT, State.LATE],
        State.REJECTED: [State.SENT, State.REJECTED],
        State.WITHDRAWN: [State.SENT, State.WITHDRAWN],
        State.WIPED: [State.WIPED],
    }
    reserve(ledger, campaign)
    if state != State.RESERVED:
        ledger.keep_drawn(campaign, "q1", b"bytes", 0)
        for step in ways[state]:
            ledger.move(campaign, step)


def test_commits_are_synced_and_deletions_overwritten(ledger, tmp_path):
    """SQLite's EXTRA: journal, file and directory are synced before a commit returns."""
    for pragma, wanted in {"synchronous": 3, "secure_delete": 1, "journal_mode": "delete"}.items():
        assert ledger._database.execute(f"PRAGMA {pragma}").fetchone() == (wanted,)
    modes = {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    assert modes == {0o600}


def test_an_open_file_is_made_private_again(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger(path).close()
    path.chmod(0o644)
    Ledger(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_everything_survives_reopening(tmp_path):
    with Ledger(tmp_path / "l.db") as first:
        nonce = first.token(A).nonce
        first.keep_inverse(A, 12345)
        first.check_view(A, 1, "d1")
        first.keep_group(A, 0, "g3")
        reserve(first)
        first.keep_drawn(A, "q1", b"exact bytes", 77)
    with Ledger(tmp_path / "l.db") as again:
        assert again.token(A).nonce == nonce
        assert again.token(A).inverse == 12345
        assert again.keep_group(A, 0, "g1") == "g3"
        entry = again.entry(A)
        assert (entry.state, entry.batch, entry.not_before) == (State.DRAWN, b"exact bytes", 77)
        assert spent(again)["pay"].spent == 1
        with pytest.raises(LedgerRefused, match="other questions"):
            again.check_view(A, 1, "d2")
        again.keep_signature(A, b"sig")
        assert again.token(A).signature == b"sig"
        assert again.token(A).inverse is None


def test_another_version_is_refused(tmp_path):
    Ledger(tmp_path / "l.db").close()
    database = sqlite3.connect(tmp_path / "l.db")
    database.execute(f"PRAGMA user_version = {VERSION + 1}")
    database.close()
    with pytest.raises(LedgerRefused, match="version"):
        Ledger(tmp_path / "l.db")


@pytest.mark.parametrize(("old", "new"), list(product(State, State)), ids=lambda s: s.value)
def test_states_move_forward_only(old, new):
    with Ledger(None) as ledger:
        to_state(ledger, old)
        if new in MOVES.get(old, ()):
            ledger.move(A, new)
            assert ledger.entry(A).state == new
        else:
            with pytest.raises(LedgerRefused):
                ledger.move(A, new)
            assert ledger.entry(A).state == old


@pytest.mark.parametrize("state", [s for s in State if s != State.RESERVED], ids=lambda s: s.value)
def test_what_was_drawn_is_never_drawn_again(state):
    with Ledger(None) as ledger:
        to_state(ledger, state)
        with pytest.raises(LedgerRefused):
            reserve(ledger)
        with pytest.raises(LedgerRefused):
            ledger.keep_drawn(A, "q1", b"others", 0)
        assert ledger.entry(A).batch in (b"bytes", None)


def test_a_promise_that_was_never_drawn_may_move_to_the_next_wave(ledger):
    reserve(ledger, question="q1")
    reserve(ledger, question="q2", wave=2, fields=("pay", "age"))
    with pytest.raises(LedgerRefused):
        ledger.keep_drawn(A, "q1", b"x", 0)
    ledger.keep_drawn(A, "q2", b"x", 0)
    assert {name: len(line.charges) for name, line in spent(ledger).items()} == {"age": 1, "pay": 1}


def test_a_field_is_reported_once_unless_a_limit_allows_more(ledger):
    reserve(ledger, A)
    with pytest.raises(LedgerRefused, match="reported before"):
        reserve(ledger, B)
    reserve(ledger, B, limits={"pay": Fraction(2)})
    with pytest.raises(LedgerRefused, match="lifetime limit"):
        reserve(ledger, C, epsilon=Fraction(1, 10**9), limits={"pay": Fraction(2)})
    assert ledger.entry(C) is None
    reserve(ledger, C, fields=("age",))


def test_a_refused_report_charges_none_of_its_fields(ledger):
    reserve(ledger, A, fields=("pay",))
    with pytest.raises(LedgerRefused):
        reserve(ledger, B, fields=("age", "pay"))
    assert set(spent(ledger)) == {"pay"}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["f", "g"]), st.integers(1, 30)), max_size=12))
def test_no_order_of_reports_exceeds_a_limit(steps):
    """The sum of what a field was charged stays within its limit, and a field without one is charged once."""
    limits = Limits(fields={"f": Fraction(3)})
    with Ledger(None) as ledger:
        for campaign, field, tenths in steps:
            try:
                asker = Asker(campaign * 64, "", "")
                ledger.reserve(asker, Place(1, "g", "q"), [field], Fraction(tenths, 10), limits)
                ledger.keep_drawn(campaign * 64, "q", b"x", 0)
            except LedgerRefused:
                continue
        found = spent(ledger)
        assert found["f"].spent <= 3 if "f" in found else True
        assert len(found["g"].charges) == 1 if "g" in found else True


def test_the_outbox_holds_what_is_due_and_not_acknowledged(ledger):
    for campaign, moment in ((A, 10), (B, 20)):
        reserve(ledger, campaign, fields=(campaign[:2],))
        ledger.keep_drawn(campaign, "q1", b"x", moment)
    assert {e.campaign for e in ledger.outbox()} == {A, B}
    assert {e.campaign for e in ledger.outbox(15)} == {A}
    ledger.move(A, State.SENT)
    assert {e.campaign for e in ledger.outbox(15)} == {A}
    ledger.move(A, State.ACKNOWLEDGED)
    assert ledger.outbox(15) == []


def test_opting_out_and_in_again(ledger, tmp_path):
    secret = b"bytes that must not be found on the disk"
    reserve(ledger)
    ledger.keep_drawn(A, "q1", secret, 0)
    nonce = ledger.token(A).nonce
    ledger.opt_out()
    assert ledger.outbox() == []
    with pytest.raises(LedgerRefused, match="opted out"):
        reserve(ledger, B, fields=("age",))
    data = (tmp_path / "ledger.db").read_bytes()
    assert secret not in data
    assert nonce not in data
    ledger.opt_in()
    reserve(ledger, B, fields=("age",))
    with pytest.raises(LedgerRefused):
        reserve(ledger, C, fields=("pay",))  # what was charged stays charged


def test_one_answer_at_a_time(ledger, tmp_path):
    other = Ledger(tmp_path / "ledger.db")
    with ledger.answering():
        with pytest.raises(LedgerBusy), other.answering():
            raise AssertionError
        reserve(ledger)  # the lock is not the ledger's own: writing goes on
    with other.answering():
        pass
    other.close()


def test_a_full_disk_refuses_and_breaks_nothing(ledger):
    """SQLite's own limit of pages stands in for the disk's."""
    reserve(ledger)
    pages = ledger._database.execute("PRAGMA page_count").fetchone()[0]
    ledger._database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LedgerRefused, match="cannot be used"):
        ledger.keep_drawn(A, "q1", bytes(100_000), 0)
    assert ledger.entry(A).state == State.RESERVED
    ledger._database.execute("PRAGMA max_page_count = 1000000")
    ledger.keep_drawn(A, "q1", bytes(100_000), 0)
    assert ledger.entry(A).state == State.DRAWN


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    (tmp_path / "l.db").write_bytes(b"these are not the bytes of a database" * 100)
    with pytest.raises(LedgerRefused, match="cannot be used"):
        Ledger(tmp_path / "l.db")


def test_finding_17_a_ledger_of_no_bytes_is_damage_and_not_a_new_one(tmp_path):
    path = tmp_path / "l.db"
    with Ledger(path) as ledger:
        reserve(ledger)
    path.write_bytes(b"")
    with pytest.raises(LedgerRefused, match="damaged"):
        Ledger(path)
    assert path.read_bytes() == b""  # nothing was put in its place


def test_a_ledger_that_was_cut_off_anywhere_is_refused(tmp_path):
    path = tmp_path / "l.db"
    with Ledger(path) as ledger:
        for i in range(30):
            reserve(ledger, f"{i:064x}", fields=(f"field {i}",), epsilon=Fraction(1, 100))
    whole = path.read_bytes()
    assert len(whole) > 8192
    for length in sorted({*range(0, len(whole), 512), 1, 99, 100, 101, len(whole) - 1}):
        path.write_bytes(whole[:length])
        with pytest.raises(LedgerRefused):
            Ledger(path)
    path.write_bytes(whole)
    with Ledger(path) as ledger:
        assert len(ledger.charges()) == 30


def test_a_crash_while_a_ledger_is_made_leaves_none(tmp_path):
    """It has its name only once it is whole; what an earlier attempt left beside is made anew."""
    path = tmp_path / "l.db"
    (tmp_path / "l.db.new").write_bytes(b"half")
    (tmp_path / "l.db.new-journal").write_bytes(b"")
    with Ledger(path) as ledger:
        reserve(ledger)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["l.db", "l.db.lock"]


VERSION_1 = """
CREATE TABLE view (campaign TEXT, wave INTEGER, digest TEXT NOT NULL, PRIMARY KEY (campaign, wave));
CREATE TABLE token (campaign TEXT PRIMARY KEY, nonce BLOB NOT NULL, inverse TEXT, signature BLOB);
CREATE TABLE membership (campaign TEXT, wave INTEGER, member TEXT NOT NULL, PRIMARY KEY (campaign, wave));
CREATE TABLE charge (campaign TEXT, field TEXT, epsilon TEXT NOT NULL, PRIMARY KEY (campaign, field));
CREATE TABLE report (campaign TEXT PRIMARY KEY, state TEXT NOT NULL, wave INTEGER NOT NULL, member TEXT NOT NULL,
  question TEXT NOT NULL, batch BLOB, not_before INTEGER NOT NULL DEFAULT 0);
CREATE TABLE choice (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE name (attribute TEXT PRIMARY KEY, field TEXT NOT NULL);
PRAGMA application_id = 0x41484C44;
PRAGMA user_version = 1;
"""


def test_a_ledger_of_version_1_goes_on(tmp_path):
    """Charges, reports and bytes stay. Names that were made into fields before anybody agreed are forgotten."""
    path = tmp_path / "l.db"
    database = sqlite3.connect(path)
    database.executescript(VERSION_1)
    database.execute("INSERT INTO charge VALUES (?, 'pay', '3/2')", (A,))
    database.execute("INSERT INTO report VALUES (?, 'drawn', 1, 'g0', 'q1', ?, 77)", (A, b"exact bytes"))
    database.executemany("INSERT INTO name VALUES (?, ?)", [("pay", "pay"), ("age", "age"), ("age_0", "age_0")])
    database.commit()
    database.close()
    with Ledger(path) as ledger:
        assert ledger.entry(A).batch == b"exact bytes"
        assert (spent(ledger)["pay"].spent, ledger.names()) == (Fraction(3, 2), {"pay": "pay"})
        assert ledger.askers() == {}
        with pytest.raises(LedgerRefused, match="reported before"):
            reserve(ledger, B)
        reserve(ledger, B, fields=("age",))
    with Ledger(path) as again:
        assert set(spent(again)) == {"age", "pay"}


def test_a_mapping_holds_for_one_campaign_and_is_not_changed(ledger):
    ledger.keep_mapping(A, {"age": "age", "x": None})
    ledger.keep_mapping(A, {"age": "pay", "y": "pay"})
    assert ledger.mapping(A) == {"age": "age", "x": None, "y": "pay"}
    assert ledger.mapping(B) == {}
    assert ledger.names() == {"age": "age", "pay": "pay", "y": "pay"}
    ledger.keep_mapping(B, {"age": "pay", "y": "height"})
    assert ledger.names() == {"age": "age", "height": "height", "pay": "pay", "y": "height"}  # a field is itself
    with pytest.raises(ValueError, match="field"):
        ledger.keep_mapping(A, {"z": " age"})


def test_the_ledger_says_for_whom(ledger):
    reserve(ledger)
    assert ledger.askers()[A] == (A, "Pay", "The Institute")


RACE = """
import sys
from fractions import Fraction
from ahead_ldp.device.budget import Limits
from ahead_ldp.device.ledger import Ledger
from ahead_ldp.device.entries import Asker, LedgerRefused, Place
ledger, won = Ledger(sys.argv[1]), 0
sys.stdin.readline()
for i in range(20):
    try:
        asker = Asker("%064x" % i, "", "")
        ledger.reserve(asker, Place(1, "g", "q"), ["f%d" % i], Fraction(1), Limits())
        ledger.keep_drawn("%064x" % i, "q", sys.argv[2].encode(), 0)
        won += 1
    except LedgerRefused:
        pass
print(won)
"""


def test_two_processes_draw_each_report_once(tmp_path):
    """Even without the lock: of two draws the ledger takes one, and the other's bytes are never in the outbox."""
    path = tmp_path / "l.db"
    Ledger(path).close()
    command = [sys.executable, "-c", RACE, str(path)]
    both = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in "xy"
    ]
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    won = [int(process.communicate()[0]) for process in both]
    assert sum(won) == 20
    with Ledger(path) as ledger:
        entries = ledger.entries()
        assert len(entries) == 20
        assert sorted([e.batch for e in entries].count(name) for name in (b"x", b"y")) == sorted(won)


def test_a_crash_frees_the_lock(tmp_path):
    path = tmp_path / "l.db"
    code = (
        "import os, signal, sys\nfrom ahead_ldp.device.ledger import Ledger\n"
        "with Ledger(sys.argv[1]).answering():\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == -9
    with Ledger(path) as ledger, ledger.answering():
        pass
