"""Writing report files: in parts, each whole or not there, with a manifest at the end."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from ahead_ldp.device.canonical import Record
from ahead_ldp.device.frames import ID_LENGTH
from ahead_ldp.engines.files import ROWS_PER_GROUP, Asked, arrow, file_schema
from ahead_ldp.engines.layout import group_name, report_folder
from ahead_ldp.engines.manifests import Entry, add_to_manifest, own_entries
from ahead_ldp.schema.arrays import Bytes

FILE_BYTES = 64_000_000  # of a part, about
_BUFFERED = 64_000_000  # bytes over all open parts


class ReportWriter:
    """Writes reports into a folder (``reports/`` of a campaign), a part after the other for every question.

        with ReportWriter(root / "reports", name="service") as writer:
            writer.add(question_bytes, ids, payloads)

    Writers of one folder have different names; each has a manifest of its own, written when it is closed. Until then,
    and when the block ends with an error, nothing of it is visible. A writer of the same name adds to its manifest.
    """

    def __init__(self, root: str | Path, *, name: str = "", rows_per_file: int | None = None) -> None:
        self.root, self.name, self.rows_per_file = Path(root), group_name(name) if name else "", rows_per_file
        self.campaign = ""
        self.entries: list[Entry] = []
        self._parts: dict[str, _Parts] = {}

    def add(self, question: bytes | Record | Asked, ids: Bytes, payloads: Bytes) -> None:
        """Reports to one question: ids (n, 16) and payloads (n, L) as bytes. They must be valid."""
        asked = question if isinstance(question, Asked) else Asked.of(question)
        self.campaign = self.campaign or asked.campaign
        if asked.campaign != self.campaign:
            raise ValueError("expected reports of one campaign for one writer")
        _check(ids, ID_LENGTH, "ids")
        _check(payloads, asked.oracle.report_bytes, "payloads")
        if len(ids) != len(payloads):
            raise ValueError(f"expected an id for each of the {len(payloads)} payloads, got {len(ids)}")
        if asked.question not in self._parts:
            self._parts[asked.question] = _Parts(asked, self.root, self.name, self.rows_per_file)
        self._parts[asked.question].add(ids, payloads)
        if sum(parts.waiting for parts in self._parts.values()) > _BUFFERED:
            max(self._parts.values(), key=lambda parts: parts.waiting).flush()

    def close(self) -> list[Entry]:
        """Finish all parts, give them their names, and enter them into the manifest."""
        for parts in self._parts.values():
            self.entries += parts.finish()
        if self.entries:
            add_to_manifest(self.root, self.name, self.campaign, self.entries)
        self._parts = {}
        return self.entries

    def abandon(self) -> None:
        """Forget everything that was added."""
        for parts in self._parts.values():
            parts.abandon()
        self._parts = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.abandon() if kind is not None else self.close()


class _Parts:
    """The files of one question, the last of them open under a hidden name."""

    def __init__(self, asked: Asked, root: Path, name: str, rows_per_file: int | None) -> None:
        self.asked, self.root = asked, root
        self.rows_per_file = rows_per_file or rows_in_a_file(asked)
        self.folder = root / report_folder(asked.wave, asked.group)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.stem = f"part-{name}-" if name else "part-"
        self.number = self._continue(own_entries(root, name))
        self.done: list[tuple[Path, Path, Entry]] = []  # hidden name, final name, entry
        self.file: _HashedFile | None = None
        self.waiting, self._rows = 0, 0
        self._batches: list[Any] = []

    def _continue(self, listed: Iterable[Entry]) -> int:
        """The number of the next part. Parts that are not in the manifest are what a crash left, and go."""
        names = {self.root / entry.name for entry in listed}
        for path in self.folder.glob(f"{self.stem}[0-9]*.parquet"):
            if path not in names:
                path.unlink()
        return sum(path.parent == self.folder for path in names)

    def add(self, ids: Bytes, payloads: Bytes) -> None:
        """Take reports in; they are written a row group at a time."""
        for start in range(0, len(ids), ROWS_PER_GROUP):
            some = slice(start, start + ROWS_PER_GROUP)
            self._batches.append(report_table(self.asked, ids[some], payloads[some]))
            self.waiting += ids[some].nbytes + payloads[some].nbytes
            if self.waiting >= ROWS_PER_GROUP * (ID_LENGTH + self.asked.oracle.report_bytes):
                self.flush()

    def flush(self) -> None:
        """Write what waits, into as many parts as it fills."""
        if not self._batches:
            return
        table = arrow().concat_tables(self._batches).combine_chunks()
        self._batches, self.waiting = [], 0
        while table.num_rows:
            if self.file is None:
                self.file = _HashedFile(self.folder / f".{self.stem}{self.number:05d}.unfinished", table.schema)
                self._rows = 0
            some = min(table.num_rows, self.rows_per_file - self._rows)
            self.file.write_table(table.slice(0, some))
            self._rows += some
            table = table.slice(some)
            if self._rows == self.rows_per_file:
                self._end_part()

    def _end_part(self) -> None:
        assert self.file is not None
        hidden, sha256 = self.file.path, self.file.end()
        final = self.folder / f"{self.stem}{self.number:05d}.parquet"
        self.done.append((hidden, final, Entry(final.relative_to(self.root).as_posix(), self._rows, sha256)))
        self.file, self.number = None, self.number + 1

    def finish(self) -> list[Entry]:
        """End the last part and give all parts their names."""
        self.flush()
        if self.file is not None:
            self._end_part()
        for hidden, final, _ in self.done:
            os.replace(hidden, final)
        return [entry for _, _, entry in self.done]

    def abandon(self) -> None:
        """Remove all parts."""
        if self.file is not None:
            self.file.end()
            self.file.path.unlink()
        for hidden, _, _ in self.done:
            hidden.unlink()


class _HashedFile(io.RawIOBase):
    """A Parquet file under way, hashed as it is written."""

    def __init__(self, path: Path, schema: Any) -> None:
        super().__init__()
        self.path, self._raw, self._sha256 = path, path.open("wb"), hashlib.sha256()
        self._writer = parquet_writer(self, schema)

    def write_table(self, table: Any) -> None:
        """Add rows."""
        self._writer.write_table(table, row_group_size=ROWS_PER_GROUP)

    def end(self) -> str:
        """Finish the file, on the disk; its digest."""
        self._writer.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self._raw.close()
        return self._sha256.hexdigest()

    def writable(self) -> bool:
        """As Arrow asks."""
        return True

    def write(self, data: Any) -> int:
        """Bytes to the file and to the digest."""
        self._sha256.update(data)
        return self._raw.write(data)

    def tell(self) -> int:
        """Where it is."""
        return self._raw.tell()


def rows_in_a_file(asked: Asked) -> int:
    """Rows of a part: whole row groups, about 64 MB."""
    groups = FILE_BYTES // (ROWS_PER_GROUP * (ID_LENGTH + asked.oracle.report_bytes))
    return ROWS_PER_GROUP * max(1, groups)


def parquet_writer(sink: Any, schema: Any) -> Any:
    """A Parquet writer with the settings of report files."""
    return arrow().parquet.ParquetWriter(
        sink,
        schema,
        compression="none",
        use_dictionary=["question"],
        write_statistics=["question"],
        write_page_checksum=True,
    )


def report_table(asked: Asked, ids: Bytes, payloads: Bytes) -> Any:
    """Reports as an Arrow table with the schema of their file."""
    pa = arrow()
    n = len(ids)
    question = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([asked.question]))
    arrays = [
        pa.FixedSizeBinaryArray.from_buffers(pa.binary(rows.shape[1]), n, [None, pa.py_buffer(rows.tobytes())])
        for rows in (ids, payloads)
    ]
    return pa.Table.from_arrays([*arrays, question], schema=file_schema(asked))


def _check(rows: Bytes, length: int, argument: str) -> None:
    if rows.ndim != 2 or rows.shape[1] != length or rows.dtype != np.uint8:
        raise ValueError(f"expected {argument} of shape (n, {length}) and bytes, got {rows.shape} {rows.dtype}")
