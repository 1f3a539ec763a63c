"""Classes by name, each loaded when it is first used: naming a method costs nothing until it runs.

Other packages add classes by an entry point. They are found by name like ours, and loaded as late. One that cannot be
loaded says so where it is used; the others are not affected.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")


class BrokenPlugin(ValueError):
    """A class of another package that cannot be loaded, or is not what it was registered as."""


class Registry(MutableMapping[str, type[T]]):
    """Name -> class. What is registered is ``"package.module:Class"``, or a class itself.

    ``group`` is the entry-point group where other packages register theirs, and ``kind`` the class that all of them
    must inherit from. Names of our own come first and cannot be replaced by an entry point.
    """

    def __init__(self, what: str, homes: Mapping[str, str], group: str = "", kind: type[T] | None = None) -> None:
        self.what, self.group, self.kind = what, group, kind
        self._entries: dict[str, type[T] | str] = dict(homes)
        self._searched = not group
        self._origins: dict[str, str] = {}  # name -> the package that brought it

    def __repr__(self) -> str:
        return f"<Registry: {', '.join(self)}>"

    @property
    def entries(self) -> dict[str, type[T] | str]:
        """Everything that is registered, entry points included, which are looked for once."""
        if not self._searched:
            self._searched = True
            self._search()
        return self._entries

    def __getitem__(self, name: str) -> type[T]:
        entry = self._entries[name] if name in self._entries else self.entries[name]
        if isinstance(entry, str):
            entry = self._entries[name] = self._load(name, entry)
            self.loaded(entry)
        return entry

    def __setitem__(self, name: str, entry: type[T]) -> None:
        self._entries[name] = entry
        self.loaded(entry)

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self.entries  # without loading it

    def loaded(self, entry: type[T]) -> None:
        """Called with every class that has come to be known; for registries that keep something beside it."""

    def find(self, name: str) -> type[T]:
        """The class of this name, or a ValueError that lists the names there are."""
        if name not in self:
            raise ValueError(f"expected {self.what} to be one of {', '.join(self)}, got {name!r}")
        return self[name]

    def working(self) -> tuple[dict[str, type[T]], dict[str, str]]:
        """Every class that can be loaded, by name, and of the others why not."""
        classes, broken = {}, {}
        for name in self:
            try:
                classes[name] = self[name]
            except BrokenPlugin as error:
                broken[name] = str(error)
        return classes, broken

    def register(self, path: str) -> str:
        """Load the class at ``"package.module:Class"``, register it under its own name, and return that name.

        This imports what the text names. So it is for a caller's own text, never for a stored or received one.
        """
        loaded = self._load("", path)
        name = str(getattr(loaded, "name", ""))
        if not name:
            raise BrokenPlugin(f"expected {path} to have a class attribute 'name'")
        if name in self and self[name] is not loaded:
            raise BrokenPlugin(f"expected {path} to have a name of its own, got {name!r}, which is taken")
        self[name] = loaded
        return name

    def _search(self) -> None:
        from importlib.metadata import entry_points  # takes a while, and is needed here alone

        for point in entry_points(group=self.group):
            package = f"{point.dist.name} {point.dist.version}" if point.dist else "another package"
            if point.name in self._entries:
                if self._entries[point.name] != point.value:
                    text = f"the {self.what} {point.name!r} of {package} is left out: the name is taken"
                    warnings.warn(text, stacklevel=2)
                continue
            self._entries[point.name], self._origins[point.name] = point.value, package

    def _load(self, name: str, path: str) -> type[T]:
        module, _, attribute = path.partition(":")
        if path.startswith("ahead_ldp."):
            return getattr(import_module(module), attribute)
        what = f"the {self.what} {name!r} of {self._origins[name]}" if name in self._origins else f"the {self.what}"
        try:
            loaded = getattr(import_module(module), attribute)
        except Exception as error:  # another's module may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise BrokenPlugin(f"{what} cannot be loaded from {path}: {reason}") from error
        if not isinstance(loaded, type) or (self.kind is not None and not issubclass(loaded, self.kind)):
            wanted = self.kind.__name__ if self.kind else "a class"
            raise BrokenPlugin(f"expected {what} at {path} to be a subclass of {wanted}, got {loaded!r}")
        if name and getattr(loaded, "name", "") != name:
            said = getattr(loaded, "name", None)
            raise BrokenPlugin(f"expected {path} to have the name of its entry point, {name!r}, got {said!r}")
        return loaded
