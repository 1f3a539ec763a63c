"""The holder's side of a perturbation: a secret per campaign, and a ledger of what was answered from a table.

    JOB/job.json            which fields were reported on, in which campaign, wave and group
    JOB/CAMPAIGN.key        32 bytes from the operating system, mode 0600; gone when the campaign has ended

The ledger is written before the first report is. It refuses a second campaign on a field, a second answer in a wave,
and a wave that was begun with other questions or other values.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ahead_ldp.device.canonical import Record, fields, integer
from ahead_ldp.engines.draws import KEY_LENGTH
from ahead_ldp.engines.layout import read_record, write_record

_FIELDS = "type version id campaigns"


class Job:
    """The ledger and the secrets of one table, in a directory of the holder's. Never send it anywhere."""

    def __init__(self, directory: str | Path) -> None:
        self.root = Path(directory)
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.root / "job.json"
        if not path.exists():
            write_record(path, {"type": "perturbation", "version": 1, "id": secrets.token_hex(4), "campaigns": []})
        self._record = fields(read_record(path, "a job's directory"), _FIELDS, "the job")
        integer(self._record["version"], "version of the job", 1, 1)

    @property
    def name(self) -> str:
        """The name of the files that this job writes, unlike that of any other holder's."""
        return f"holder-{self._record['id']}"

    def begin(
        self, campaign: str, columns: Sequence[str], wave: int, questions: Mapping[str, str], table: str
    ) -> bytes:
        """Enter that a wave (group -> digest of its question) is being answered, and give the key of the campaign.

        ``table`` is a digest of the values: after a crash the same wave may be answered again from the same ones only,
        for then the bytes are the same.
        """
        entry = self._campaign(campaign, columns)
        if entry["ended"]:
            raise ValueError("expected an open campaign: this one has ended here, and its key is destroyed")
        asked = [{"group": group, "question": questions[group]} for group in sorted(questions)]
        for before in entry["waves"]:
            if before["wave"] == wave:
                self._check_again(before, asked, table)
                return self._key(campaign)
            answered = {x["group"] for x in before["asked"]} & set(questions)
            if answered:
                raise ValueError(f"expected new groups, group {min(answered)} has answered in wave {before['wave']}")
        entry["waves"].append({"wave": wave, "asked": asked, "table": table, "state": "begun"})
        key = self._key(campaign)
        self._write()
        return key

    def _check_again(self, before: Record, asked: list[Record], table: str) -> None:
        if before["state"] == "done":
            raise ValueError(
                f"refused: wave {before['wave']} has been answered from this table, and each row answers once"
            )
        if before["asked"] != asked:
            raise ValueError(f"refused: wave {before['wave']} was begun with other questions")
        if before["table"] != table:
            raise ValueError(f"refused: the table has changed since wave {before['wave']} was begun")

    def done(self, campaign: str, wave: int, groups: Sequence[str]) -> bool:
        """Enter that a wave is answered. When all groups of the campaign have answered, it ends here: True."""
        entry = self._find(campaign)
        assert entry is not None
        for known in entry["waves"]:
            if known["wave"] == wave:
                known["state"] = "done"
        self._write()
        answered = {x["group"] for w in entry["waves"] if w["state"] == "done" for x in w["asked"]}
        if answered >= set(groups):
            self.end(campaign)
        return bool(entry["ended"])

    def end(self, campaign: str) -> None:
        """Destroy the key: from here on nobody can make or check this campaign's noise again."""
        entry = self._find(campaign)
        if entry is None:
            raise ValueError("expected a campaign that this job has answered, got another")
        path = self._key_path(campaign)
        if path.exists():
            with path.open("r+b") as file:
                file.write(bytes(KEY_LENGTH))
                file.flush()
                os.fsync(file.fileno())
            path.unlink()
        entry["ended"] = True
        self._write()

    def _find(self, campaign: str) -> Record | None:
        return next((x for x in self._record["campaigns"] if x["campaign"] == campaign), None)

    def _campaign(self, campaign: str, columns: Sequence[str]) -> Any:
        for other in self._record["campaigns"]:
            twice = sorted(set(other["fields"]) & set(columns))
            if other["campaign"] != campaign and twice:
                raise ValueError(
                    f"refused: {', '.join(twice)} of this table was reported on in campaign {other['campaign'][:12]}; "
                    "a second report adds to what the first tells about the same people"
                )
        entry = self._find(campaign)
        if entry is None:
            entry = {"campaign": campaign, "fields": list(columns), "ended": False, "waves": []}
            self._record["campaigns"].append(entry)
        elif entry["fields"] != list(columns):
            raise ValueError(f"expected the columns {', '.join(entry['fields'])}, as before, got {', '.join(columns)}")
        return entry

    def _key_path(self, campaign: str) -> Path:
        return self.root / f"{campaign[:32]}.key"

    def _key(self, campaign: str) -> bytes:
        """The campaign's key, drawn on first use."""
        path = self._key_path(campaign)
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(KEY_LENGTH))
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            pass
        key = path.read_bytes()
        if len(key) != KEY_LENGTH or path.stat().st_mode & 0o077:
            raise ValueError(f"expected {KEY_LENGTH} bytes that only their owner may read in {str(path)!r}")
        return key

    def _write(self) -> None:
        write_record(self.root / "job.json", self._record)
