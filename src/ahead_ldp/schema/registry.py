"""Classes by name, each loaded when it is first used: naming a method costs nothing until it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")


class Registry(MutableMapping[str, type[T]]):
    """Name -> class. What is registered is ``"package.module:Class"``, or a class itself."""

    def __init__(self, what: str, homes: Mapping[str, str]) -> None:
        self.what = what
        self._entries: dict[str, type[T] | str] = dict(homes)

    def __getitem__(self, name: str) -> type[T]:
        entry = self._entries[name]
        if isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            entry = self._entries[name] = getattr(import_module(module), attribute)
        return entry

    def __setitem__(self, name: str, entry: type[T]) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries  # without loading it

    def find(self, name: str) -> type[T]:
        """The class of this name, or a ValueError that lists the names there are."""
        if name not in self:
            raise ValueError(f"expected {self.what} to be one of {', '.join(self)}, got {name!r}")
        return self[name]
