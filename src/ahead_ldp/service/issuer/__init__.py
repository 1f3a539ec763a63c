"""The issuer of tokens: a process and a key apart from the collector's. It signs once for every enrolled person."""

from ahead_ldp.service.issuer.app import make_app
from ahead_ldp.service.issuer.office import Office
from ahead_ldp.service.issuer.roster import Roster, SecretRefused
from ahead_ldp.service.issuer.signing import SigningKey

__all__ = ["Office", "Roster", "SecretRefused", "SigningKey", "make_app"]
