"""A file of members becomes links that work once; reminders go to those who have not fetched their token."""

import csv
import stat

import pytest

from ahead_ldp.cli import main
from ahead_ldp.device.tokens import NONCE_LENGTH
from ahead_ldp.service.issuer import Office
from ahead_ldp.service.issuer.invitations import invite, remind
from ahead_ldp.service.issuer.roster import Roster, SecretRefused

PAGE = f"https://collector.example.org/c/{'0123456789abcdef' * 2}"
MEMBERS = '\ufeffname,mail\nAda,ada@example.org\n"Lovelace, B.",b@example.org\nÇelik,c@example.org\n'


@pytest.fixture
def roster(tmp_path):
    (tmp_path / "members.csv").write_text(MEMBERS, "utf-8")
    return Roster(tmp_path / "roster.db")


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def secret(row):
    return row["link"].partition("#")[2]


def test_everybody_has_a_link_of_their_own_and_only_hashes_are_kept(roster, tmp_path):
    out = tmp_path / "invitations.csv"
    assert invite(roster, tmp_path / "members.csv", PAGE, out) == 3
    written = rows(out)
    assert [row["name"] for row in written] == ["Ada", "Lovelace, B.", "Çelik"]
    assert all(row["link"].startswith(f"{PAGE}#") for row in written)  # the secret is behind the #, and nowhere else
    assert len({secret(row) for row in written}) == 3
    assert all(len(secret(row)) >= 24 for row in written)  # 144 bits
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    kept = (tmp_path / "roster.db").read_bytes()
    assert not any(secret(row).encode() in kept or row["mail"].encode() in kept for row in written)
    assert roster.count() == (3, 0)


def test_a_link_works_once_and_reminders_leave_out_who_came(roster, tmp_path):
    out = tmp_path / "invitations.csv"
    invite(roster, tmp_path / "members.csv", PAGE, out)
    first = rows(out)[0]
    roster.redeem(secret(first), bytes(NONCE_LENGTH))
    with pytest.raises(SecretRefused, match="used before"):
        roster.redeem(secret(first), b"\1" * NONCE_LENGTH)
    assert remind(roster, out, tmp_path / "again.csv") == (2, 3)
    assert [row["name"] for row in rows(tmp_path / "again.csv")] == ["Lovelace, B.", "Çelik"]
    assert rows(tmp_path / "again.csv")[0] == rows(out)[1]  # the same link as before


@pytest.mark.parametrize(
    "page",
    [
        "http://x/c/0123",  # too little of the digest
        f"{PAGE}#x",
        f"{PAGE}?who=1",  # a mark that the collector would see
        "https://x/campaigns/" + "0" * 64,
        "",
    ],
)
def test_other_links_are_refused(roster, tmp_path, page):
    with pytest.raises(ValueError, match="expected the link for people"):
        invite(roster, tmp_path / "members.csv", page, tmp_path / "out.csv")
    assert roster.count() == (0, 0)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "different column names"),
        ("name\n", "at least one person"),
        ("name,name\nA,B\n", "different column names"),
        ("name,link\nA,B\n", "without a column"),
        ("name,mail\nA\n", "as many entries"),
        (b"\xff\xfe", "CSV file in UTF-8"),
    ],
)
def test_other_files_are_refused_before_anybody_is_enrolled(roster, tmp_path, text, rule):
    (tmp_path / "x.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=rule):
        invite(roster, tmp_path / "x.csv", PAGE, tmp_path / "out.csv")
    assert roster.count() == (0, 0)


def test_nobody_is_enrolled_whose_link_cannot_be_written(roster, tmp_path):
    (tmp_path / "members.csv").write_text("name\nann\nbob\n")
    with pytest.raises(ValueError, match=r"expected a new file, got '.*none/out\.csv': No such file"):
        invite(roster, tmp_path / "members.csv", PAGE, tmp_path / "none" / "out.csv")
    assert roster.count() == (0, 0)


def test_a_file_is_never_overwritten_and_reminders_need_links_of_this_office(roster, tmp_path):
    members, out = tmp_path / "members.csv", tmp_path / "out.csv"
    with pytest.raises(ValueError, match="expected a new file"):
        invite(roster, members, PAGE, members)
    with pytest.raises(ValueError, match="made by `ahead issue invite`"):
        remind(roster, members, out)
    (tmp_path / "other.csv").write_text(f"name,link\nA,{PAGE}#{'x' * 24}\n")
    with pytest.raises(ValueError, match="secrets that this roster has enrolled"):
        remind(roster, tmp_path / "other.csv", out)


def test_the_commands(roster, tmp_path, capsys):
    Office.create(tmp_path / "office", "blind")
    made, again = tmp_path / "invitations.csv", tmp_path / "again.csv"
    office_at, members = str(tmp_path / "office"), str(tmp_path / "members.csv")
    assert main(["issue", "invite", office_at, members, "--link", PAGE, "--out", str(made)]) == 0
    assert "3 links written" in capsys.readouterr().err
    assert main(["issue", "remind", office_at, str(made), "--out", str(again)]) == 0
    assert "3 of 3 people have not fetched their token" in capsys.readouterr().err
    assert rows(again) == rows(made)
