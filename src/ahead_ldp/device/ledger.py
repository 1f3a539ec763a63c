"""What a device remembers: every report it ever promised, charged to the owner's fields, written before it is sent.

One SQLite file, readable by its owner alone. A report moves through ``reserved`` (charged, the value not yet read),
``drawn`` (its exact bytes are in the outbox), ``sent`` (they may have left) and ``acknowledged``. A crash at any point
leaves a state from which the same bytes, or nothing, can follow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from ahead_ldp.device.budget import Charge, Limits, Statement, check_charge, make_statement
from ahead_ldp.device.entries import MOVES, Asker, Entry, LedgerRefused, Place, State, Token
from ahead_ldp.device.ledger_files import locked, open_database, refusing
from ahead_ldp.device.texts import check_name
from ahead_ldp.device.tokens import new_nonce

_UNSURE = ""  # how a field that the owner is not sure about is stored; no field has this name


class Ledger:
    """The durable ledger in a file, or one in memory for simulated people (``path=None``).

    Guarantees:
        one      a campaign gets at most one report; its bytes never change once they are drawn
        limits   a field is charged once, or up to its explicit lifetime limit, and never relieved; a charge without a
                 field counts against all of them; everything together stays within the limit of a lifetime
        durable  what a method has written survives a crash of the process and of the machine

    An object is for one thread; any number of processes may have the same file.
    """

    def __init__(self, path: str | Path | None) -> None:
        self._lock = None if path is None else Path(f"{path}.lock")
        self._database = open_database(None if path is None else Path(path), self._lock)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """While this lasts no other process answers with this ledger; ``LedgerBusy`` if one does. A crash frees it."""
        if self._lock is None:
            yield
            return
        with locked(self._lock):
            yield

    def check_view(self, campaign: str, wave: int, digest: str) -> None:
        """Remember what was seen of a wave; refuse if an earlier look showed something else."""
        if self._first("view", "digest", campaign, wave, digest) != digest:
            raise LedgerRefused("this wave was shown with other questions before")

    def token(self, campaign: str) -> Token:
        """The campaign's nonce, drawn at the first call."""
        with self._transaction():
            self._database.execute(
                "INSERT OR IGNORE INTO token (campaign, nonce) VALUES (?, ?)", (campaign, new_nonce())
            )
            ((nonce, inverse, signature),) = self._all(
                "SELECT nonce, inverse, signature FROM token WHERE campaign = ?", campaign
            )
        return Token(nonce, None if inverse is None else int(inverse, 16), signature)

    def keep_inverse(self, campaign: str, inverse: int) -> None:
        """Keep the blinding, so that an issuer's answer is not lost with a crash."""
        self._change("UPDATE token SET inverse = ? WHERE campaign = ?", f"{inverse:x}", campaign)

    def keep_signature(self, campaign: str, signature: bytes) -> None:
        """Keep the issuer's signature; the blinding is no longer needed."""
        self._change("UPDATE token SET signature = ?, inverse = NULL WHERE campaign = ?", signature, campaign)

    def keep_group(self, campaign: str, wave: int, drawn: str) -> str:
        """The group of a wave (0: of a panel): the first one ever drawn, whatever is drawn later."""
        return self._first("membership", "member", campaign, wave, drawn)

    def check_budget(self, campaign: str, fields: Collection[str | None], epsilon: Fraction, limits: Limits) -> None:
        """Refuse a report that would charge a field, or a lifetime, more than the owner allows (``check_charge``)."""
        if self.opted_out:
            raise LedgerRefused("the owner of this device has opted out")
        check_charge(self.charges(), campaign, fields, epsilon, limits)

    def reserve(
        self, asker: Asker, place: Place, fields: Collection[str | None], epsilon: Fraction, limits: Limits
    ) -> None:
        """Charge the fields and promise the one report of a campaign. What is drawn already cannot be promised again.

        A promise that was made but never drawn (a crash, a value that could not be read) may move to another question.
        """
        campaign = asker.campaign
        if not fields:
            raise LedgerRefused("expected at least one field that the report is about")
        stored = sorted({_stored(name) for name in fields})
        with self._transaction():
            self.check_budget(campaign, fields, epsilon, limits)
            if self._one("SELECT state FROM report WHERE campaign = ?", campaign) not in (None, (State.RESERVED,)):
                raise LedgerRefused("this campaign has its report already")
            self._database.execute("INSERT OR REPLACE INTO asker VALUES (?, ?, ?)", asker)
            self._database.executemany(
                "INSERT OR IGNORE INTO charge VALUES (?, ?, ?)", [(campaign, name, str(epsilon)) for name in stored]
            )
            self._database.execute(
                "INSERT OR REPLACE INTO report (campaign, state, wave, member, question) VALUES (?, ?, ?, ?, ?)",
                (campaign, State.RESERVED, *place),
            )

    def keep_drawn(self, campaign: str, question: str, batch: bytes, not_before: int) -> None:
        """Put the exact bytes into the outbox: from here on they are this campaign's report, and no others."""
        sql = "UPDATE report SET state = ?, batch = ?, not_before = ? WHERE campaign = ? AND question = ? AND state = ?"
        if self._change(sql, State.DRAWN, batch, not_before, campaign, question, State.RESERVED) != 1:
            raise LedgerRefused("expected a report that is promised and not yet drawn")

    def move(self, campaign: str, state: State) -> None:
        """Take the report to its next state; a move that the protocol does not have is refused."""
        sources = [old for old, news in MOVES.items() if state in news]
        marks = ", ".join("?" for _ in sources)
        sql = f"UPDATE report SET state = ? WHERE campaign = ? AND state IN ({marks})"
        if self._change(sql, state, campaign, *sources) != 1:
            raise LedgerRefused(f"expected a report that can become {state.value}")

    def entry(self, campaign: str) -> Entry | None:
        """The report of a campaign, if one was ever promised."""
        return next(iter(self._entries("WHERE campaign = ?", campaign)), None)

    def entries(self) -> list[Entry]:
        """Every report ever promised."""
        return self._entries("ORDER BY campaign")

    def outbox(self, now: int | None = None) -> list[Entry]:
        """Reports that are drawn and not acknowledged; with ``now`` only those whose time has come."""
        unsent = self._entries("WHERE state IN (?, ?) AND batch IS NOT NULL", State.DRAWN, State.SENT)
        return [entry for entry in unsent if now is None or entry.not_before <= now]

    def charges(self) -> list[Charge]:
        """Everything that was ever charged."""
        rows = self._all("SELECT campaign, field, epsilon FROM charge ORDER BY rowid")
        return [Charge(campaign, field or None, Fraction(epsilon)) for campaign, field, epsilon in rows]

    def statement(self, limits: Limits) -> Statement:
        """What was given away so far and what is left, for its owner to see."""
        return make_statement(self.charges(), limits)

    def askers(self) -> dict[str, Asker]:
        """Who asked, by campaign, as far as this version of the ledger has charged for them."""
        return {row[0]: Asker(*row) for row in self._all("SELECT campaign, title, controller FROM asker")}

    def mapping(self, campaign: str) -> dict[str, str | None]:
        """The owner's field of every attribute of a campaign that was mapped; None where the owner was not sure."""
        rows = self._all("SELECT attribute, field FROM mapping WHERE campaign = ? ORDER BY rowid", campaign)
        return {attribute: field or None for attribute, field in rows}

    def keep_mapping(self, campaign: str, fields: Mapping[str, str | None]) -> None:
        """Remember the owner's word on what the attributes of one campaign are; the first word on each stays."""
        rows = [(campaign, attribute, _stored(field)) for attribute, field in fields.items()]
        with self._transaction():
            self._database.executemany("INSERT OR IGNORE INTO mapping VALUES (?, ?, ?)", rows)

    def names(self) -> dict[str, str]:
        """Every field by its own name, and by the names that campaigns had for it, as the owner said last.

        Only to be offered: what a name means in another campaign, the owner says again.
        """
        fields = self._all("SELECT field FROM charge UNION SELECT field FROM mapping ORDER BY field")
        own = {name: name for (name,) in fields if name != _UNSURE}
        said = self._all("SELECT attribute, field FROM mapping WHERE field != ? ORDER BY rowid", _UNSURE)
        return own | {name: field for name, field in said if name not in own}

    @property
    def opted_out(self) -> bool:
        """Whether the owner has said no to everything."""
        return self._one("SELECT value FROM choice WHERE name = 'opted_out'") == (1,)

    def opt_out(self) -> None:
        """Stop: nothing is answered any more and the outbox is overwritten. The ledger of what was charged stays."""
        with self._transaction():
            self._database.execute("INSERT OR REPLACE INTO choice VALUES ('opted_out', 1)")
            self._database.execute(
                "UPDATE report SET state = ? WHERE state IN (?, ?, ?)",
                (State.WIPED, State.RESERVED, State.DRAWN, State.SENT),
            )
            self._database.execute("UPDATE report SET batch = NULL")
            self._database.execute("DELETE FROM token")

    def opt_in(self) -> None:
        """Answer again, within what the ledger still allows."""
        self._change("DELETE FROM choice WHERE name = 'opted_out'")

    def _entries(self, condition: str, *values: object) -> list[Entry]:
        columns = "campaign, state, wave, member, question, batch, not_before"
        rows = self._all(f"SELECT {columns} FROM report {condition}", *values)
        return [Entry(c, State(s), w, g, q, b, t) for c, s, w, g, q, b, t in rows]

    def _all(self, sql: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        with refusing():
            return self._database.execute(sql, values).fetchall()

    def _one(self, sql: str, *values: object) -> tuple | None:  # type: ignore[type-arg]
        return next(iter(self._all(sql, *values)), None)

    def _change(self, sql: str, *values: object) -> int:
        """One statement in a transaction of its own; how many rows it changed."""
        with self._transaction():
            return self._database.execute(sql, values).rowcount

    def _first(self, table: str, column: str, campaign: str, wave: int, value: str) -> str:
        """What was written first for a wave of a campaign: the value, unless another one was before it."""
        with self._transaction():
            self._database.execute(f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?)", (campaign, wave, value))
            (row,) = self._all(f"SELECT {column} FROM {table} WHERE campaign = ? AND wave = ?", campaign, wave)
        return str(row[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with refusing():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            finally:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")


def _stored(field: str | None) -> str:
    return _UNSURE if field is None else check_name(field, "the name of a field")
