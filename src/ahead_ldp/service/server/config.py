"""Settings of the server: from a TOML file, the environment (AHEAD_...) and flags, later ones winning."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import ssl
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from ahead_ldp.service.campaigns.elsewhere import Counter
from ahead_ldp.service.edge.limits import Limits
from ahead_ldp.service.edge.proxies import Proxies
from ahead_ldp.service.server.cors import parse_origins

PREFIX = "AHEAD_"
# For demos and tests, where all requests come from one machine.
NO_RATES: dict[str, Any] = {"rate_per_s": 0.0}

_UNSAID = (
    "store",
    "host",
    "port",
    "tls_certificate",
    "tls_key",
    "counter",
    "counter_folder",
    "telemetry",
    "webhook",
    "webhook_key",
    "smtp",
    "smtp_password",
    "mail_from",
    "mail_to",
)


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"text": text})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set. Campaigns carry their own terms; no setting changes them."""

    host: str = _setting("127.0.0.1", "address to listen on")
    port: int = _setting(8440, "port to listen on; 0 takes a free one")
    tls_certificate: str = _setting("", "file with the certificate chain, to speak TLS without a proxy or with one")
    tls_key: str = _setting("", "file with the key of that certificate")
    store: str = _setting("ahead.db", "a file for SQLite, or postgresql://...")
    keys: str = _setting("ahead.keys", "directory of the waves' keys: outside every backup, the same for all processes")
    max_body_bytes: int = _setting(4 << 20, "largest body of a request")
    max_batch: int = _setting(10_000, "most reports in one upload")
    max_cells: int = _setting(1 << 16, "most cells of a question; a campaign that needs more is refused")
    queue_reports: int = _setting(50_000, "reports that may wait for the store; beyond it 429")
    window_ms: float = _setting(2.0, "how long uploads wait to be committed together")
    rate_per_s: float = _setting(20.0, "requests per second of one address; 0 is no limit")
    rate_burst: int = _setting(200, "requests that one address may send at once")
    header_s: float = _setting(10.0, "how long the headers of a request may take")
    body_s: float = _setting(30.0, "how long the body of a request may take")
    idle_s: float = _setting(60.0, "how long a connection may stay without a request")
    answer_s: float = _setting(30.0, "how long an answer may be left unread")
    max_connections: int = _setting(4096, "connections at once; beyond it the one waited for longest is closed")
    max_requests: int = _setting(256, "requests worked on at once, uploads on the short way aside; beyond it 503")
    max_held_bytes: int = _setting(128 << 20, "bytes of bodies and unread answers in memory")
    trusted_proxies: str = _setting("", "addresses and networks whose X-Forwarded-For and -Proto are believed")
    allowed_origins: str = _setting("", "sites that may embed the participant's element, with commas; * is every site")
    issuer: str = _setting("", "address of the issuer that the participant's page asks for tokens")
    closer_interval_s: float = _setting(1.0, "how often waves are looked at for closing; 0 is never")
    lease_s: int = _setting(60, "how long a process that closes a wave is trusted to be alive")
    counter: str = _setting("", "command that counts large waves, like `ahead tally --no-dedup --verify --json`")
    counter_folder: str = _setting(
        "", "where it finds them: outside every backup; the system's place if nothing is said"
    )
    counter_reports: int = _setting(10_000_000, "reports of a wave that is large")
    hold_z: float = _setting(6.0, "a screen beyond this many standard deviations holds the wave")
    shutdown_s: float = _setting(10.0, "how long a stopping server finishes what was begun")
    log_level: str = _setting("info", "debug, info, warning or error")
    webhook: str = _setting("", "address that is told when a round is counted, held or the last: https://...")
    webhook_key: str = _setting("", "file with the key that signs what the webhook is sent, at least 16 bytes")
    notify_private: bool = _setting(False, "let the webhook be http, or an address that is not public")
    smtp: str = _setting("", "mail server for the same: smtps://user@host, smtp+starttls://user@host or smtp://host:25")
    smtp_password: str = _setting("", "file with the password of the mail server's user")
    mail_from: str = _setting("", "sender of these mails")
    mail_to: str = _setting("", "who gets these mails; several with commas")
    telemetry: str = _setting(
        "", "address of an OpenTelemetry collector that gets traces and metrics, like http://127.0.0.1:4318"
    )
    metrics: bool = _setting(True, "serve /metrics, to bearers of a token of the role monitor")

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the setting."""
        for name in ("max_batch", "max_cells", "queue_reports", "rate_burst", "lease_s", "counter_reports"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected {name} >= 1, got {getattr(self, name)}")
        for name in ("window_ms", "rate_per_s", "closer_interval_s", "shutdown_s"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"expected {name} >= 0, got {getattr(self, name)}")
        if not 0 <= self.port <= 65_535:
            raise ValueError(f"expected port in 0..65535, got {self.port}")
        if not self.hold_z > 0:
            raise ValueError(f"expected hold_z > 0, got {self.hold_z}")
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise ValueError("expected tls_certificate and tls_key, or neither")
        parse_origins(self.allowed_origins)
        Proxies(self.trusted_proxies)
        self.limits()
        if self.issuer and not re.fullmatch(r"https?://[A-Za-z0-9.\-\[\]:]+(/[A-Za-z0-9._~\-/]*)?", self.issuer):
            raise ValueError("expected issuer to be an address like https://issuer.example.org")
        collector = urlsplit(self.telemetry)
        if self.telemetry and (collector.scheme not in ("http", "https") or not collector.hostname):
            raise ValueError("expected telemetry to be an address like http://127.0.0.1:4318")
        if self.max_held_bytes < self.max_body_bytes:
            held, body = self.max_held_bytes, self.max_body_bytes
            raise ValueError(f"expected max_held_bytes >= max_body_bytes, got {held} and {body}")
        self._check_counter()
        self._check_notices()
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise ValueError(f"expected log_level to be debug, info, warning or error, got {self.log_level!r}")

    def _check_counter(self) -> None:
        try:
            words = shlex.split(self.counter)
        except ValueError as error:
            raise ValueError(f"expected counter to be a command, got {self.counter!r}: {error}") from None
        if self.counter and not any(words[:1]):
            raise ValueError(f"expected counter to be a command, got {self.counter!r}")

    def _check_notices(self) -> None:
        place = urlsplit(self.webhook)
        strange = place.scheme not in ("https", "http") or not place.hostname or place.username
        if self.webhook and (strange or not _reachable(self.webhook)):
            raise ValueError("expected webhook to be an address like https://example.org/hook")
        if place.scheme == "http" and not self.notify_private:
            raise ValueError("expected webhook to begin with https://, unless notify_private is true")
        if self.webhook and not self.webhook_key:
            raise ValueError("expected webhook_key, a file with the key that signs what the webhook is sent")
        server = urlsplit(self.smtp)
        strange = server.scheme not in ("smtp", "smtps", "smtp+starttls") or not server.hostname or server.password
        if self.smtp and (strange or not _reachable(self.smtp)):
            raise ValueError("expected smtp to be like smtps://user@host, with the password in a file")
        if self.smtp and (server.username is None) != (not self.smtp_password):
            raise ValueError("expected smtp_password, a file, if smtp names a user, and only then")
        for name in ("mail_from", "mail_to"):
            text = getattr(self, name)
            if (self.smtp and not text) or any(ord(c) < 32 for c in text):
                raise ValueError(f"expected {name} to be an address of mail")

    def changed(self) -> dict[str, str]:
        """The settings that differ from the defaults, as the audit chain has them; addresses are no one's."""
        names = [f.name for f in dataclasses.fields(self) if f.name not in _UNSAID]
        given = {name: getattr(self, name) for name in names}
        return {name: str(value) for name, value in given.items() if value != getattr(Settings(), name)}

    def limits(self) -> Limits:
        """The deadlines and budgets of the edge."""
        same = {name: getattr(self, name) for name in ("header_s", "body_s", "idle_s", "answer_s")}
        most = {name: getattr(self, f"max_{name}") for name in ("connections", "requests", "body_bytes", "held_bytes")}
        return Limits(**same, **most)

    def large_counter(self) -> Counter | None:
        """Who counts large waves, if somebody does."""
        if not self.counter:
            return None
        folder = Path(self.counter_folder or tempfile.gettempdir()).absolute()
        return Counter(tuple(shlex.split(self.counter)), folder, self.counter_reports)

    def tls(self) -> ssl.SSLContext | None:
        """What TLS needs, if it is spoken. A file that cannot be used is a ``ValueError``."""
        if not self.tls_certificate:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.tls_certificate, self.tls_key)
        except OSError as error:
            raise ValueError(
                f"expected tls_certificate and tls_key to be PEM files of one certificate: {error.strerror or error}"
            ) from None
        return context

    @classmethod
    def load(
        cls,
        path: Path | None = None,
        environment: Mapping[str, str] | None = None,
        flags: Mapping[str, str] | None = None,
    ) -> Self:
        """The settings of a file, overridden by the environment, overridden by flags."""
        values = {} if path is None else _from_file(path)
        for key, text in (os.environ if environment is None else environment).items():
            name = key.removeprefix(PREFIX).lower()
            if key.startswith(PREFIX) and name in _kinds():
                values[name] = _parse(name, text, key)
        for name, text in (flags or {}).items():
            if name not in _kinds():
                raise ValueError(f"expected a setting among {', '.join(_kinds())}, got {name!r}")
            values[name] = _parse(name, text, name)
        return cls(**values)


def _reachable(address: str) -> bool:
    """Whether an address is in the letters of addresses, with a port and a host that there can be."""
    try:
        place = urlsplit(address)
        (place.hostname or "").encode("idna")  # which is what the resolver does with it
        return address.isascii() and place.port != 0
    except ValueError:
        return False


def settings_table() -> str:
    """Name, variable, default and meaning of every setting: the table in docs/deploy.md."""
    rows = [("setting", "environment", "default", "what it is")]
    for f in dataclasses.fields(Settings):
        default = str(f.default).lower() if isinstance(f.default, bool) else str(f.default)
        rows.append((f.name, PREFIX + f.name.upper(), default or '""', f.metadata["text"]))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return "\n".join("  ".join([*(c.ljust(w) for c, w in zip(r, widths, strict=False)), r[3]]) for r in rows)


def _kinds() -> dict[str, type]:
    return {f.name: type(f.default) for f in dataclasses.fields(Settings)}


def _from_file(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ValueError(f"expected a readable file of settings, got {str(path)!r}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"expected TOML in {str(path)!r}: {error}") from None
    kinds = _kinds()
    if unknown := sorted(set(values) - set(kinds)):
        raise ValueError(f"expected settings among {', '.join(kinds)}, got {', '.join(unknown)}")
    for name, value in values.items():
        if kinds[name] is float and type(value) is int:
            values[name] = float(value)
        elif type(value) is not kinds[name]:
            raise ValueError(f"expected {name} to be of type {kinds[name].__name__}, got {type(value).__name__}")
    return values


def _parse(name: str, text: str, where: str) -> Any:
    kind = _kinds()[name]
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"expected {where} to be true or false, got {text!r}")
        return text.lower() == "true"
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"expected {where} to be of type {kind.__name__}, got {text!r}") from None
