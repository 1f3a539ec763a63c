"""Reverse proxies that are believed: which address a request really comes from, and whether it came over TLS."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Peer = tuple[str, int]


def plain_address(text: str) -> IPv4Address | IPv6Address | None:
    """The address that a text names, None if it names none.

    A socket for both families calls a peer of IPv4 ``::ffff:192.0.2.1``. It is that peer, and none of IPv6.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


class Proxies:
    """The addresses and networks of a list with commas. Nobody else's ``X-Forwarded-`` headers are looked at."""

    def __init__(self, text: str) -> None:
        """``ValueError`` for what is no address or network."""
        self._networks: list[IPv4Network | IPv6Network] = []
        for part in filter(None, (part.strip() for part in text.split(","))):
            try:
                self._networks.append(_plain_network(part))
            except ValueError:
                raise ValueError(
                    f"expected trusted_proxies to be addresses or networks like 10.0.0.0/8, got {part!r}"
                ) from None

    def __bool__(self) -> bool:
        return bool(self._networks)

    def trusts(self, host: str) -> bool:
        """Whether the address is that of a proxy of ours."""
        address = plain_address(host)
        return address is not None and any(address in network for network in self._networks)

    def origin(self, peer: Peer | None, scheme: str, headers: Iterable[tuple[bytes, bytes]]) -> tuple[Peer | None, str]:
        """Address and scheme of a request: what the nearest proxy that is ours says of them, else the peer's own.

        Of a chain of addresses the last that is no proxy of ours counts: everything before it can be made up.
        """
        if peer is None or not self.trusts(peer[0]):
            return peer, scheme
        hosts: list[str] = []
        for name, value in headers:
            if name == b"x-forwarded-for":
                hosts += [_without_port(part.strip()) for part in value.decode("latin-1").split(",")]
            elif name == b"x-forwarded-proto":
                said = value.decode("latin-1").rpartition(",")[2].strip().lower()
                scheme = said if said in ("http", "https") else scheme
        for host in reversed(hosts):
            if not self.trusts(host):
                return (host, 0), scheme
        return ((hosts[0], 0) if hosts else peer), scheme


def _without_port(text: str) -> str:
    """An address as some proxies write it, with the port of the connection: one that changes is not another peer."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text


def _plain_network(text: str) -> IPv4Network | IPv6Network:
    """The network that a text names; one of IPv4 that is written as IPv6 is one of IPv4."""
    network = ip_network(text)
    inner = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    return network if inner is None or network.prefixlen < 96 else IPv4Network((inner, network.prefixlen - 96))
