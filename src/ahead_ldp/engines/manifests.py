"""Manifests: which files a writer finished, with their rows and digests: what tells a whole delivery from a part."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ahead_ldp.device.canonical import Record, check_digest, digest, fields, integer, parse_canonical
from ahead_ldp.engines import addresses
from ahead_ldp.engines.addresses import inside, is_address
from ahead_ldp.engines.layout import CAMPAIGN, REPORTS, write_record

PATTERN = "_manifest*.json"  # readers of Parquet folders skip names that begin with an underscore


@dataclass(frozen=True, slots=True)
class Entry:
    """One finished file: its name below the folder of all reports, its rows, the digest of its bytes."""

    name: str
    rows: int
    sha256: str

    def record(self) -> Record:
        """The canonical form."""
        return {"name": self.name, "rows": self.rows, "sha256": self.sha256}

    @classmethod
    def from_record(cls, record: object) -> Entry:
        """The entry behind its canonical form."""
        stored = fields(record, "name rows sha256", "a file of the manifest")
        name = str(stored["name"])
        if not name or name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"expected the name of a file below the manifest's folder, got {name!r}")
        return cls(name, integer(stored["rows"], "rows", 0), check_digest(stored["sha256"], "sha256"))


def manifest_record(campaign: str, entries: Iterable[Entry]) -> Record:
    """The canonical form of a manifest, files in the order of their names."""
    listed = [entry.record() for entry in sorted(entries, key=lambda e: e.name)]
    return {"type": "reports", "version": 1, "campaign": campaign, "files": listed}


def manifest_digest(campaign: str, entries: Iterable[Entry | None]) -> str | None:
    """What names these files with all their bytes; None where one of them is in no manifest."""
    every = list(entries)
    listed = [entry for entry in every if entry is not None]
    return digest(manifest_record(campaign, listed)) if len(listed) == len(every) else None


def parse_manifest(data: bytes, where: str) -> tuple[str, list[Entry]]:
    """Campaign and entries of a manifest."""
    try:
        manifest = fields(parse_canonical(data.removesuffix(b"\n")), "type version campaign files", "the manifest")
        if (manifest["type"], manifest["version"]) != ("reports", 1) or not isinstance(manifest["files"], list):
            raise ValueError("expected a manifest of reports of version 1")
        return check_digest(manifest["campaign"], "campaign"), [Entry.from_record(x) for x in manifest["files"]]
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def add_to_manifest(root: Path, name: str, campaign: str, entries: Sequence[Entry]) -> None:
    """Enter finished files into a writer's own manifest; a name that is there already stands for the new file."""
    path = root / manifest_name(name)
    if path.exists() and parse_manifest(path.read_bytes(), str(path))[0] != campaign:
        raise ValueError(f"expected reports of one campaign in {str(root)!r}, its manifest is of another")
    known = {entry.name: entry for entry in (*own_entries(root, name), *entries)}
    write_record(path, manifest_record(campaign, known.values()))


def own_entries(root: Path, name: str) -> list[Entry]:
    """What a writer of this name has finished."""
    path = root / manifest_name(name)
    return parse_manifest(path.read_bytes(), str(path))[1] if path.exists() else []


def manifest_name(name: str) -> str:
    """The manifest of the writer of this name."""
    return f"_manifest-{name}.json" if name else "_manifest.json"


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A file to be counted: where it is, how it is called, and what its manifest says of it, if there is one."""

    path: str
    name: str
    entry: Entry | None = None
    problem: str | None = None  # known before it is opened


def find_files(paths: Sequence[str | Path], below: str = "") -> list[ReportFile]:
    """The report files at or below some paths or addresses, with their manifests, in the order of their names.

    A campaign's directory stands for its reports. Manifests are looked for in a path and in the two folders above it.
    Where there is one, a file that it does not list is a problem, and so is one that it lists and that is gone.
    """
    by_path: dict[str, ReportFile] = {}
    for given in paths:
        if is_address(str(given)):
            by_path |= {file.path: file for file in find_at(str(given), below)}
            continue
        path = Path(given)
        if (path / CAMPAIGN).exists():
            path = path / REPORTS
        elif not path.exists():
            raise ValueError(f"expected report files, got {str(path)!r}: no such file or directory")
        for file in _below(path.resolve(), below):
            by_path.setdefault(file.path, file)
    return [by_path[path] for path in sorted(by_path)]


def find_at(address: str, below: str = "") -> list[ReportFile]:
    """The report files at or below an address that Arrow knows; none where nothing is."""
    start = inside(address, below) if below else address.rstrip("/")
    is_folder = addresses.is_folder(start)
    if is_folder is None:
        return []
    folder = start if is_folder else addresses.above(start)
    top, manifests = folder, dict[str, bytes]()
    for _ in range(3):  # the folder itself, and the two above it
        if folder is None or manifests:
            break
        there = [n for n in addresses.names_below(folder, deep=False) if PurePosixPath(n).match(PATTERN)]
        manifests = {addresses.shown(inside(folder, n)): addresses.read(inside(folder, n)) for n in there}
        top, folder = (folder if manifests else top), addresses.above(folder)
    assert top is not None  # a file lies in a folder
    prefix = addresses.shown(start).removeprefix(addresses.shown(top)).strip("/")
    names = [f"{prefix}/{n}" if prefix else n for n in addresses.names_below(start)] if is_folder else [prefix]
    return with_entries(top, [n for n in names if _is_shown(n)], manifests, prefix or ".")


def _is_shown(name: str) -> bool:
    return name.endswith(".parquet") and not any(part.startswith(("_", ".")) for part in name.split("/"))


def some_files(paths: Sequence[str | Path], files: list[ReportFile]) -> list[ReportFile]:
    """The files themselves if there are any."""
    if not files:
        shown = ", ".join(repr(str(path)) for path in paths)
        raise ValueError(f"expected report files (*.parquet) in {shown}, got none: put the reports there first")
    return files


def _below(path: Path, below: str) -> list[ReportFile]:
    start = path / below if below else path
    present = [path] if path.is_file() else [p for p in start.rglob("*.parquet") if _shown(p, start)]
    manifests = {str(m): m.read_bytes() for m in _manifests(path)}
    root = min((Path(m).parent for m in manifests), default=path.parent if path.is_file() else path)
    names = [p.relative_to(root).as_posix() for p in present]
    return with_entries(str(root), names, manifests, start.relative_to(root).as_posix())


def with_entries(root: str, names: Iterable[str], manifests: Mapping[str, bytes], below: str = ".") -> list[ReportFile]:
    """Files below a root by name, each beside what the manifests say; ``below`` is the folder that was looked at."""
    listed = {e.name: e for where, data in manifests.items() for e in parse_manifest(data, where)[1]}
    wanted = {n: e for n, e in listed.items() if below == "." or n == below or n.startswith(below + "/")}
    files, there = [], set(names)
    for name in sorted({*there, *wanted}):
        problem = None
        if manifests and name not in wanted:
            problem = "not in the manifest"
        elif name not in there:
            problem = "in the manifest, but not there"
        files.append(ReportFile(inside(root, name), name, wanted.get(name), problem))
    return files


def _manifests(path: Path) -> list[Path]:
    folders = [path, *list(path.parents)[:2]] if path.is_dir() else list(path.parents)[:3]
    for folder in folders:
        if manifests := sorted(folder.glob(PATTERN)):
            return manifests
    return []


def _shown(path: Path, start: Path) -> bool:
    return not any(part.startswith(("_", ".")) for part in path.relative_to(start).parts)


def sha256_of(path: str) -> str:
    """The digest of a file's bytes; the file goes by its path, or by an address that Arrow knows."""
    system, place = addresses.place(path) if is_address(path) else (None, path)
    with open(path, "rb") if system is None else system.open_input_stream(place) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
