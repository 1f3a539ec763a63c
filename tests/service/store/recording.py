"""A disk that can lose its power: SQLite's own file system layer, with every write and sync written down.

SQLite reaches files through a table of functions (a VFS). The one of the system is copied, and its write, truncate and
sync are wrapped. From the record one can build what a disk holds after the power went: everything that was synced, and
of the later writes any part.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import random
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from ahead_ldp.service.store import SQLiteStore

_P = ctypes.c_void_p
_Open = ctypes.CFUNCTYPE(ctypes.c_int, _P, _P, _P, ctypes.c_int, _P)
_Delete = ctypes.CFUNCTYPE(ctypes.c_int, _P, _P, ctypes.c_int)
_Write = ctypes.CFUNCTYPE(ctypes.c_int, _P, _P, ctypes.c_int, ctypes.c_int64)
_Truncate = ctypes.CFUNCTYPE(ctypes.c_int, _P, ctypes.c_int64)
_Sync = ctypes.CFUNCTYPE(ctypes.c_int, _P, ctypes.c_int)
_METHODS = """close read write truncate sync size lock unlock reserved control sector device
 map shared barrier unmap fetch unfetch"""
_FUNCTIONS = """open delete access full dl_open dl_error dl_sym dl_close randomness sleep time error
 time64 set_call get_call next_call"""


class _Methods(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), *((name, _P) for name in _METHODS.split())]


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", _P),
        ("name", ctypes.c_char_p),
        ("data", _P),
        *((name, _P) for name in _FUNCTIONS.split()),
    ]


class NoVfs(Exception):
    """Python's SQLite is not a shared library here; the message says so."""


@dataclass
class Disk:
    """What reached the disk for certain, and what is under way, by file."""

    synced: dict[str, bytearray] = field(default_factory=dict)
    pending: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)  # None: cut off there
    syncs: int = 0

    def write(self, name: str, at: int, data: bytes | None) -> None:
        self.pending.setdefault(name, []).append((at, data))

    def sync(self, name: str) -> None:
        self.syncs += 1
        self.synced[name] = _applied(self.synced.get(name, bytearray()), self.pending.pop(name, []))

    def delete(self, name: str) -> None:
        self.synced.pop(name, None)
        self.pending.pop(name, None)

    def after_power_loss(self, rng: random.Random, share: float) -> dict[str, bytes]:
        """Files as they may be found: of what was under way this share has made it, in any combination."""
        found = {}
        for name in {*self.synced, *self.pending}:
            made_it = [write for write in self.pending.get(name, []) if rng.random() < share]
            found[name] = bytes(_applied(bytearray(self.synced.get(name, b"")), made_it))
        return found


class RecordingVfs:
    """Registers the VFS ``recording``; every file opened through it is written down in ``disk``."""

    def __init__(self) -> None:
        path = ctypes.util.find_library("sqlite3")
        self._sqlite = ctypes.CDLL(path) if path else None
        if self._sqlite is None or not hasattr(self._sqlite, "sqlite3_vfs_find"):
            raise NoVfs("there is no shared SQLite library to wrap")
        self._sqlite.sqlite3_libversion.restype = ctypes.c_char_p
        if self._sqlite.sqlite3_libversion().decode() != sqlite3.sqlite_version:
            raise NoVfs("Python's SQLite is not the shared library of the system")
        self._sqlite.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self.disk = Disk()
        self._names: dict[int, str] = {}
        self._methods: dict[int, _Methods] = {}
        self._kept: list[object] = []  # callbacks must outlive the library's use of them
        self._system = self._sqlite.sqlite3_vfs_find(None)
        self._vfs = _Vfs.from_buffer_copy(self._system.contents)
        self._vfs.name, self._vfs.next = b"recording", None
        self._vfs.open = self._callback(_Open(self._open))
        self._vfs.delete = self._callback(_Delete(self._delete))
        self._sqlite.sqlite3_vfs_register(ctypes.byref(self._vfs), 0)

    def remove(self) -> None:
        self._sqlite.sqlite3_vfs_unregister(ctypes.byref(self._vfs))

    def _callback(self, function) -> int:
        self._kept.append(function)
        return ctypes.cast(function, _P).value

    def _open(self, vfs, name, file, flags, out) -> int:
        result = _Open(self._system.contents.open)(ctypes.cast(self._system, _P), name, file, flags, out)
        methods = ctypes.cast(file, ctypes.POINTER(_P))
        if result == 0 and name and methods[0]:
            self._names[file] = Path(ctypes.string_at(name).decode()).name
            methods[0] = ctypes.addressof(self._wrapped(methods[0]))
        return result

    def _delete(self, vfs, name, sync) -> int:
        result = _Delete(self._system.contents.delete)(ctypes.cast(self._system, _P), name, sync)
        if result == 0:
            self.disk.delete(Path(ctypes.string_at(name).decode()).name)
        return result

    def _wrapped(self, address: int) -> _Methods:
        """The system's methods with three of them wrapped; one copy for each table of methods."""
        if address in self._methods:
            return self._methods[address]
        system = _Methods.from_address(address)
        write, truncate, sync = _Write(system.write), _Truncate(system.truncate), _Sync(system.sync)

        def on_write(file, data, n, at):
            self.disk.write(self._names[file], at, ctypes.string_at(data, n))
            return write(file, data, n, at)

        def on_truncate(file, size):
            self.disk.write(self._names[file], size, None)
            return truncate(file, size)

        def on_sync(file, flags):
            result = sync(file, flags)
            self.disk.sync(self._names[file])
            return result

        made = _Methods.from_buffer_copy(system)
        made.write = self._callback(_Write(on_write))
        made.truncate = self._callback(_Truncate(on_truncate))
        made.sync = self._callback(_Sync(on_sync))
        self._methods[address] = made
        return made


def on_recorded_disk(kind: type[SQLiteStore]) -> type[SQLiteStore]:
    """A store of this kind that reaches its file through the recording VFS."""

    class Recorded(kind):
        def _connect(self) -> sqlite3.Connection:
            return sqlite3.connect(
                f"file:{self.path}?vfs=recording", uri=True, isolation_level=None, check_same_thread=False
            )

    return Recorded


def _applied(content: bytearray, writes: list[tuple[int, bytes | None]]) -> bytearray:
    content = bytearray(content)
    for at, data in writes:
        if data is None:
            del content[at:]
        else:
            content.extend(bytes(max(0, at + len(data) - len(content))))
            content[at : at + len(data)] = data
    return content
