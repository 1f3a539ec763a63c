"""Addresses: where files are that no path of this machine names, such as ``s3://bucket/survey/reports``.

Arrow's file systems open them. Settings of a store stand behind a question mark, as Arrow has them:
``s3://bucket/reports?endpoint_override=store.example:9000&scheme=http``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

OBJECT_STORES = ("s3", "s3a", "s3n", "gs", "gcs")  # Arrow needs no part of Hadoop for these
_NOT_THERE = "expected an address that Arrow can open"


def is_address(path: str) -> bool:
    """Whether this is an address, and not a path of this machine."""
    return "://" in path


def scheme(address: str) -> str:
    """The kind of store that an address names."""
    return address.partition("://")[0].lower() if is_address(address) else ""


def place(address: str) -> tuple[Any, str]:
    """Arrow's file system of an address, and the path in it. Hadoop's name for S3 is known too."""
    opened, inner = address, ""
    if scheme(address) in OBJECT_STORES:  # one for a bucket: a client takes longer to make than a small file to read
        head, mark, settings = address.partition("?")
        bucket, _, inner = head.partition("://")[2].partition("/")
        opened = f"{re.sub('^s3[an]$', 's3', scheme(address))}://{bucket}{mark}{settings}"
    try:
        system, path = _system(opened)
    except (ValueError, OSError, ImportError) as error:
        raise ValueError(f"{_NOT_THERE}, got {shown(address)!r}: {_line(error)}") from None
    return system, f"{path}/{inner}".rstrip("/")


@lru_cache(maxsize=16)
def _system(address: str) -> tuple[Any, str]:
    import pyarrow.fs

    system, path = pyarrow.fs.FileSystem.from_uri(address)
    return system, path.rstrip("/")


def inside(root: str, name: str) -> str:
    """The path or address of something below a folder; settings stay behind the question mark."""
    head, mark, settings = root.partition("?") if is_address(root) else (root, "", "")
    return f"{head.rstrip('/')}/{name}{mark}{settings}"


def above(address: str) -> str | None:
    """The folder around an address; None for a bucket or the root of a store."""
    head, mark, settings = address.partition("?")
    kind, _, path = head.partition("://")
    outer, slash, _ = path.rstrip("/").rpartition("/")
    return f"{kind}://{outer}{mark}{settings}" if slash and outer else None


def shown(address: str) -> str:
    """An address for a message: without the user's name and password that it may hold, and without settings.

    A path stays as it is.
    """
    return re.sub("://[^/@]*@", "://", address.partition("?")[0]) if is_address(address) else address


def is_folder(address: str) -> bool | None:
    """Whether files lie below an address; False for a file itself, None where nothing is."""
    import pyarrow.fs

    system, path = place(address)
    kind = _tried(address, lambda: system.get_file_info(path)).type
    return None if kind == pyarrow.fs.FileType.NotFound else bool(kind == pyarrow.fs.FileType.Directory)


def names_below(address: str, deep: bool = True) -> Iterator[str]:
    """The names of all files below a folder, from there on."""
    import pyarrow.fs

    system, path = place(address)
    selector = pyarrow.fs.FileSelector(path, allow_not_found=True, recursive=deep)
    for info in _tried(address, lambda: system.get_file_info(selector)):
        if info.type == pyarrow.fs.FileType.File:
            yield info.path.removeprefix(path).lstrip("/")


def read(address: str) -> bytes:
    """The bytes of a small file."""
    system, path = place(address)

    def whole() -> bytes:
        """All of it."""
        with system.open_input_stream(path) as stream:
            return bytes(stream.read())

    return _tried(address, whole)


def _tried(address: str, call: Any) -> Any:
    try:
        return call()
    except OSError as error:
        raise ValueError(f"{_NOT_THERE}, got {shown(address)!r}: {_line(error)}") from None


def _line(error: Exception) -> str:
    return str(error).split("\n")[0].strip().rstrip(".")[:200]
