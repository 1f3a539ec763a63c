"""Own modules that a command's file imports, loaded when the command runs: its help is quick and needs no extra.

While a file is imported inside ``put_off``, what it imports of ours as modules (``from ahead_ldp.engines import runs``)
is a stand-in. ``load`` forgets all of them and imports the modules as always; a stand-in then passes on to its module.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_PROGRAM = "ahead_ldp.cli"
_REAL: set[str] = set()  # modules that are imported as always


class _StandIn(ModuleType):
    """In place of a module that nobody has used yet. It has what the import system gives it, and nothing else.

    Only in the program itself, a name that is imported from it is imported at once.
    """

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") or not (self.__name__ in _REAL or self.__name__.startswith(_PROGRAM)):
            raise AttributeError(f"{self.__name__} is not loaded yet, and has no {name!r}")
        return getattr(real(self.__name__), name)


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a module of ours is; None for others, which are looked for as always."""
        if not fullname.startswith("ahead_ldp.") or fullname in _REAL:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None:
            spec.loader = self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The stand-in."""
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: the module itself is imported by ``load``."""


@contextmanager
def put_off() -> Iterator[None]:
    """Own modules that are imported meanwhile are stand-ins."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def real(name: str) -> ModuleType:
    """A module of the program that is no stand-in."""
    _REAL.add(name)
    if isinstance(sys.modules.get(name), _StandIn):
        del sys.modules[name]
    return import_module(name)


def load() -> None:
    """Import what stand-ins stand for."""
    names = [name for name, module in sys.modules.items() if isinstance(module, _StandIn)]
    _REAL.update(names)
    for name in names:
        del sys.modules[name]
    for name in names:
        import_module(name)
