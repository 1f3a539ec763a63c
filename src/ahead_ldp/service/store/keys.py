"""Keys of waves: 256 random bits each, in a directory that is no part of the store, its log, replicas or backups.

Payloads are stored under the key of their wave. When the key is destroyed, every copy of them is forgotten, wherever
it lies. Nothing is kept in memory: whoever needs a key reads its file, so a key that was destroyed is gone for every
process, and one that is lost is noticed by the next upload, before anything is acknowledged.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from ahead_ldp.service.store.interface import KeyMissing, StoreUnavailable

DEFAULT = "ahead.keys"  # below the working directory, as the store's own default
ENVIRONMENT = "AHEAD_KEYS"
LENGTH = 32
_NONCE = 12
_NAME = re.compile("[0-9a-f]{32}")


class Cipher:
    """AES-256-GCM under the key of one wave. The ids that stand beside the payloads are authenticated with them."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._aead = AESGCM(key)

    def seal(self, payloads: bytes, ids: bytes) -> bytes:
        """A nonce of 12 random bytes, then the encrypted payloads and their tag of 16 bytes."""
        nonce = os.urandom(_NONCE)
        return nonce + self._aead.encrypt(nonce, payloads, ids)

    def unseal(self, sealed: bytes, ids: bytes) -> bytes:
        """The payloads; ``StoreUnavailable`` if they were not sealed with this key and these ids."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._aead.decrypt(sealed[:_NONCE], sealed[_NONCE:], ids)
        except InvalidTag:
            raise StoreUnavailable("a chunk of reports is damaged: its wave's key does not fit it") from None


class Keys:
    """The directory of keys. Names are random, so that any number of stores and processes can share one."""

    def __init__(self, folder: str | Path | None = None) -> None:
        """Nothing is made before a wave is opened. None: $AHEAD_KEYS, else ``ahead.keys`` in the working directory."""
        self.folder = Path(folder or os.environ.get(ENVIRONMENT) or DEFAULT).absolute()

    def create(self) -> str:
        """A new key; its name when file and directory are synced. What cannot be written is ``StoreUnavailable``."""
        name = secrets.token_hex(16)
        try:
            new = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(handle, "wb") as file:
                file.write(secrets.token_bytes(LENGTH))
                file.flush()
                os.fsync(file.fileno())
            sync_file(self.folder)
            for folder in new or [self.folder]:  # a folder is there for good when the one above it is synced
                sync_file(folder.parent)
        except OSError as error:
            raise StoreUnavailable(f"the key directory {self.folder} cannot be written: {error.strerror}") from error
        return name

    def has(self, name: str | None) -> bool:
        """Whether a key is there, whole."""
        return self._read(name) is not None

    def cipher(self, name: str | None) -> Cipher:
        """The cipher of a key; ``KeyMissing`` if there is none of this name."""
        key = self._read(name)
        if key is None:
            raise KeyMissing(
                f"the key of a wave is not in the key directory {self.folder}: bring the directory back, or name"
                f" another with the setting keys or ${ENVIRONMENT}; without it the wave's reports cannot be read"
            )
        return Cipher(key)

    def destroy(self, name: str) -> None:
        """Overwrite a key, sync, remove it, sync; nothing where there is none."""
        path = self._path(name)
        try:
            with path.open("r+b") as file:
                file.write(bytes(LENGTH))
                file.flush()
                os.fsync(file.fileno())
            path.unlink()
            sync_file(self.folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreUnavailable(f"a key in {self.folder} cannot be removed: {error.strerror}") from error

    def _read(self, name: str | None) -> bytes | None:
        """The key of a name. One that was overwritten is none, if a crash came before its file was removed."""
        with suppress(OSError):
            key = self._path(name).read_bytes()
            return key if len(key) == LENGTH and any(key) else None
        return None

    def _path(self, name: str | None) -> Path:
        """Of a name that ``create`` gave; what else a table may hold leads nowhere."""
        return self.folder / (f"{name}.key" if name and _NAME.fullmatch(name) else "none")


def sync_file(path: Path) -> None:
    """Sync a file, or the names in a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
