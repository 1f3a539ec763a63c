"""Certificates of an authority of our own, for tests of TLS."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates of addresses. ``file`` is what its friends trust; name it in SSL_CERT_FILE."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self.folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        own = self._certificate(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0), [])
        self.file = folder / f"{name.replace(' ', '-')}.pem"
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def issue(self, address: str, *names: str) -> tuple[Path, Path]:
        """Files with the certificate of an address and of names, and with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
        whom: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address(address)), *map(x509.DNSName, names)]
        made = self._certificate(name, key, x509.BasicConstraints(ca=False, path_length=None), whom)
        files = self.folder / f"{address}.pem", self.folder / f"{address}.key"
        files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
        plain = serialization.NoEncryption()
        files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
        return files

    def _certificate(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        constraints: x509.BasicConstraints,
        whom: list[x509.GeneralName],
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder(self._name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
            .add_extension(constraints, critical=True)
        )
        if whom:
            builder = builder.add_extension(x509.SubjectAlternativeName(whom), critical=False)
        return builder.sign(self._key, hashes.SHA256())
