"""Notices by webhook and by mail.

A webhook is signed, goes to the address that was checked and nowhere else, and follows no redirection. Private
addresses are refused unless the settings allow them, so a name that is turned to an inner machine reaches nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import smtplib
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from threading import Timer
from urllib.parse import unquote, urlsplit

from ahead_ldp.service.campaigns.notices import Channel, NotDelivered, Notice
from ahead_ldp.service.server.config import Settings

SIGNATURE = "Ahead-Signature"
_TIMEOUT_S = 10.0  # for a single byte
_LONGEST_S = 30.0  # for everything
_EMBEDDED = IPv6Network("64:ff9b::/96")  # the last 32 bits are an address of IPv4, which a gateway connects to
_PROTOCOLS = IPv4Network("192.0.0.0/24")  # for protocols, some of them within one site
_UNICAST = IPv6Network("2000::/3")  # nothing else of IPv6 is out in the world


def channels(settings: Settings, title: Callable[[str], str], clock: Callable[[], int]) -> dict[str, Channel]:
    """The channels that are set up. ``title`` is of a campaign."""
    made: dict[str, Channel] = {}
    if settings.webhook:
        key = _read("webhook_key", settings.webhook_key)
        if len(key) < 16:
            raise ValueError(f"expected webhook_key to be a file with at least 16 bytes, got {settings.webhook_key!r}")
        made["webhook"] = lambda notice: send_webhook(settings, key, notice, clock())
    if settings.smtp:
        if settings.smtp_password:
            _read("smtp_password", settings.smtp_password)  # it is read again for every mail; today it must be there
        made["mail"] = lambda notice: send_mail(settings, title(notice.campaign), notice)
    return made


def _read(name: str, path: str) -> bytes:
    """What stands in the file of a setting."""
    try:
        return Path(path).read_bytes().strip()
    except OSError as error:
        raise ValueError(f"expected {name} to be a readable file, got {path!r}: {error.strerror}") from None


def signature(key: bytes, at: int, body: bytes) -> str:
    """What a receiver compares: HMAC-SHA-256 of the time, a point and the body."""
    return f"t={at},v1={hmac.new(key, b'%d.' % at + body, hashlib.sha256).hexdigest()}"


def body_of(notice: Notice) -> bytes:
    """What happened, as JSON: no results, no title, no link with a secret."""
    said = {"id": hashlib.sha256(notice.key.encode()).hexdigest(), "event": notice.what, "campaign": notice.campaign}
    return json.dumps({**said, "round": notice.round, "at": notice.at, "text": notice.sentence}).encode()


def send_webhook(settings: Settings, key: bytes, notice: Notice, now: int) -> None:
    """Post a notice; anything but a 2xx is ``NotDelivered``."""
    place = urlsplit(settings.webhook)
    secure, body = place.scheme == "https", body_of(notice)
    address = _checked_address(place.hostname or "", place.port or (443 if secure else 80), settings.notify_private)
    path = (place.path or "/") + (f"?{place.query}" if place.query else "")
    headers = {"Content-Type": "application/json", "Host": place.netloc, SIGNATURE: signature(key, now, body)}
    try:
        with (
            socket.create_connection(address, timeout=_TIMEOUT_S) as plain,
            _for_at_most(plain, _LONGEST_S),
            _wrapped(plain, place.hostname or "") if secure else plain as wrapped,
        ):
            connection = http.client.HTTPConnection(place.hostname or "", timeout=_TIMEOUT_S)
            connection.sock = wrapped
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
    except (OSError, http.client.HTTPException):
        raise NotDelivered("unreachable") from None
    if not 200 <= status < 300:  # a redirection too: where it leads was not checked
        raise NotDelivered("redirected" if 300 <= status < 400 else "refused")


@contextmanager
def _for_at_most(connection: socket.socket, seconds: float) -> Iterator[None]:
    """End a connection after a while, whatever goes on in it: closings of waves wait for whoever answers slowly."""
    same = connection.dup()  # TLS takes the other one over

    def end() -> None:
        """Wake up whoever reads or writes."""
        with suppress(OSError):
            same.shutdown(socket.SHUT_RDWR)

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        same.close()


def _wrapped(plain: socket.socket, host: str) -> ssl.SSLSocket:
    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


def _checked_address(host: str, port: int, private: bool) -> tuple[str, int]:
    """The address behind a name, all of whose addresses must be public ones; it is what is connected to."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise NotDelivered("unknown_host") from None
    addresses = [str(one[4][0]) for one in found]
    if not private and not all(_is_public(address) for address in addresses):
        raise NotDelivered("private_address")
    return addresses[0], port


def _is_public(text: str) -> bool:
    address: IPv4Address | IPv6Address | None = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _EMBEDDED:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        address = inner or (address if address in _UNICAST else None)
    if address is None or address in _PROTOCOLS:
        return False
    return address.is_global and not address.is_multicast


def send_mail(settings: Settings, title: str, notice: Notice) -> None:
    """Send a notice by the configured server; what that refuses is ``NotDelivered``."""
    mail = EmailMessage()
    mail["Subject"] = f"{' '.join(title.split())[:150]}: {notice.what.replace('_', ' ')}"
    mail["From"], mail["To"] = settings.mail_from, settings.mail_to
    mail["Date"] = format_datetime(datetime.fromtimestamp(notice.at, UTC))
    mail["Message-ID"] = f"<{hashlib.sha256(notice.key.encode()).hexdigest()[:32]}@ahead.invalid>"  # of every attempt
    mail.set_content(f"{title}\n\n{notice.sentence}\n\nRound {notice.round}. Campaign {notice.campaign}\n")
    place = urlsplit(settings.smtp)
    try:
        kind = smtplib.SMTP_SSL if place.scheme == "smtps" else smtplib.SMTP
        with kind(
            place.hostname or "", place.port or (465 if place.scheme == "smtps" else 587), timeout=_TIMEOUT_S
        ) as to:
            assert to.sock is not None
            with _for_at_most(to.sock, _LONGEST_S):
                if place.scheme == "smtp+starttls":
                    to.starttls(context=ssl.create_default_context())
                if place.username:
                    to.login(unquote(place.username), Path(settings.smtp_password).read_text("utf-8").strip())
                to.send_message(mail)
    except (OSError, smtplib.SMTPException, UnicodeError):
        raise NotDelivered("mail_refused") from None
