"""The issuer at work: a directory with one key and one roster, for one kind of token."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from ahead_ldp.device.canonical import Record, expect
from ahead_ldp.service.issuer.roster import Roster
from ahead_ldp.service.issuer.signing import SigningKey

TIERS = ("signed", "blind")
KEY, ROSTER = "key.pem", "roster.db"
_MOST_SIGNED = 4096  # signatures in memory


@dataclass(frozen=True, slots=True)
class Office:
    """Signs one message for every enrolled person. A key serves one campaign and one tier, never both tiers."""

    key: SigningKey
    roster: Roster
    tier: str
    signed: dict[int, bytes] = field(
        default_factory=dict, repr=False, compare=False
    )  # lately: asked again, it is there
    signing: Lock = field(default_factory=Lock, repr=False, compare=False)

    @classmethod
    def create(cls, directory: Path, tier: str, bits: int = 2048) -> Office:
        """A new key and an empty roster in a new directory that its owner alone can read."""
        expect(tier in TIERS, f"the tier to be one of {', '.join(TIERS)}, got {tier!r}")
        expect(not (directory / KEY).exists(), f"a directory without a key, got {str(directory)!r}")
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = SigningKey.generate(bits)
        key.save(directory / KEY)
        roster = Roster(directory / ROSTER)
        roster.tier = tier
        return cls(key, roster, tier)

    @classmethod
    def open(cls, directory: Path) -> Office:
        """The office in a directory that ``create`` made."""
        complete = (directory / KEY).exists() and (directory / ROSTER).exists()
        expect(complete, f"a directory made by `ahead issue create`, got {str(directory)!r}")
        try:
            roster = Roster(directory / ROSTER)
            tier = roster.tier
        except sqlite3.DatabaseError as error:
            raise ValueError(f"expected a roster that can be used in {str(directory)!r}: {error}") from None
        if tier not in TIERS:
            raise ValueError(f"expected a roster with a tier in {str(directory)!r}")
        return cls(SigningKey.load(directory / KEY), roster, tier)

    @property
    def token_record(self) -> Record:
        """The field ``token`` of the campaign."""
        return self.key.token_record(self.tier)

    def sign(self, secret: str, message: bytes) -> bytes:
        """The signature for the owner of a secret: on a nonce, or on a blinded one, by the office's tier.

        The form is checked first and the secret bound durably before anything is signed: nobody gets two. Who asks
        again and again has nothing signed again: a signature is 10 to 30 ms of a processor.
        """
        number = self.key.number(message, self.tier)
        self.roster.redeem(secret, message)
        with self.signing:  # it is all processor: two at once are no faster
            if number not in self.signed:
                self.signed[number] = self.key.sign(number)
                for oldest in list(self.signed)[:-_MOST_SIGNED]:
                    del self.signed[oldest]
            return self.signed[number]
