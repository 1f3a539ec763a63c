"""Report files: Parquet with a random name and a payload of fixed length per row, bound to one question.

Columns: ``report_id`` (16 bytes), ``payload`` (as long as the law says) and ``question``, the digest, encoded
as a dictionary, because not every reader shows a file's metadata. The metadata name version, campaign, question, wave,
group and oracle. Row groups have about 100,000 rows; nothing is compressed, for noise does not compress; pages carry
checksums. Files lie in ``reports/wave=1/group=2/part-*.parquet``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ahead_ldp.device.canonical import Record, canonical_bytes, check_digest, digest, integer, parse_canonical
from ahead_ldp.device.frames import ID_LENGTH
from ahead_ldp.engines.addresses import is_address, place
from ahead_ldp.engines.layout import group_name
from ahead_ldp.oracles import Oracle, oracle_of_law
from ahead_ldp.schema.arrays import Bytes

VERSION = "1"
ROWS_PER_GROUP = 100_000
ROWS_AT_ONCE = 50_000  # divides a row group, so that no batch is put together from two
COLUMNS = ("report_id", "payload", "question")
_PREFIX = "ahead."
_EXTRA = "pip install 'ahead-ldp[batch]'"


class Damaged(ValueError):
    """A file whose reports cannot all be trusted: none of them is counted."""


class Foreign(ValueError):
    """A file that belongs to something else."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as the counting side needs it: what binds its reports, and the oracle that reads them."""

    campaign: str
    question: str
    wave: int
    group: str
    oracle: Oracle

    @classmethod
    def of(cls, question: bytes | Record) -> Self:
        """From a question's canonical form."""
        record = parse_canonical(question) if isinstance(question, bytes) else question
        if record.get("type") != "question" or record.get("version") != 1:
            raise ValueError("expected a question of version 1")
        campaign, wave = check_digest(record.get("campaign"), "campaign"), integer(record.get("wave"), "wave", 1)
        oracle = oracle_of_law(dict(record.get("oracle") or {}))
        return cls(campaign, digest(record), wave, group_name(str(record.get("group"))), oracle)

    def metadata(self) -> dict[str, str]:
        """What a report file says about itself. The order is that in which differences are named."""
        law = canonical_bytes(self.oracle.law.record()).decode()
        named = {"version": VERSION, "campaign": self.campaign, "wave": str(self.wave), "group": self.group}
        return {_PREFIX + name: text for name, text in {**named, "oracle": law, "question": self.question}.items()}


Questions = Mapping[str, Asked]  # by digest


def arrow() -> Any:
    """pyarrow, or an error that says how to get it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ValueError(f"expected the extra batch to read and write report files: {_EXTRA}") from None
    return pyarrow


def file_schema(asked: Asked) -> Any:
    """The Arrow schema of a question's report files, metadata included."""
    pa = arrow()
    fields = [
        pa.field("report_id", pa.binary(ID_LENGTH), nullable=False),
        pa.field("payload", pa.binary(asked.oracle.report_bytes), nullable=False),
        pa.field("question", pa.dictionary(pa.int32(), pa.string()), nullable=False),
    ]
    return pa.schema(fields, metadata=asked.metadata())


def open_file(path: str, check_pages: bool = True) -> Any:
    """The Parquet file, its footer read; what is none is damaged. Pages are checked, or else mapped into memory."""
    pa = arrow()
    how: dict[str, Any] = {"page_checksum_verification": True} if check_pages else {"memory_map": True}
    try:
        if is_address(path):
            system, path = place(path)
            how["filesystem"] = system
        try:
            return pa.parquet.ParquetFile(path, read_dictionary=["question"], **how)
        except KeyError:  # no such column: for ``check_file`` to say
            return pa.parquet.ParquetFile(path, filesystem=how.get("filesystem"))
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"not a readable Parquet file ({_first_line(error)})") from None


def check_file(file: Any, questions: Questions) -> Asked:
    """The question that an open file answers; a file of anything else is ``Foreign``, with what differs."""
    schema = file.schema_arrow
    written = {k.decode(): v.decode() for k, v in (schema.metadata or {}).items() if k.startswith(_PREFIX.encode())}
    if not written:
        raise Foreign("no report file: its metadata do not name a campaign; write it with ReportWriter")
    asked = questions.get(written.get(_PREFIX + "question", ""))
    if asked is None or asked.metadata() != written:
        raise Foreign(_difference(written, questions))
    if not schema.equals(file_schema(asked)):
        wanted = ", ".join(f"{f.name}: {f.type}" for f in file_schema(asked))
        raise Foreign(f"wrong schema: expected {wanted}; got {', '.join(f'{f.name}: {f.type}' for f in schema)}")
    return asked


def _difference(written: Mapping[str, str], questions: Questions) -> str:
    """The first thing in which no question agrees with the file."""
    left = [asked.metadata() for asked in questions.values()]
    for key in left[0] if left else ():
        agree = [known for known in left if known[key] == written.get(key)]
        if not agree:
            known = sorted({one[key] for one in left})
            return f"of another {key.removeprefix(_PREFIX)}: {written.get(key)!r}, expected {' or '.join(known[:3])}"
        left = agree
    return "of another question"


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some rows of a file, in order."""

    start: int  # the first row's place in its file
    ids: Bytes | None  # (n, 16), where asked for
    payloads: Bytes  # (n, payload length); (n, 0) where not asked for

    def __len__(self) -> int:
        return len(self.payloads)


def read_batches(
    file: Any, asked: Asked, ids: bool = False, payloads: bool = True, part: tuple[int, int] = (0, 1)
) -> Iterator[Batch]:
    """The rows of an open file, as arrays that live as long as the batch; a bad page or a null is damage.

    ``part`` (j, m) takes the j-th of m parts of about as many row groups.
    """
    pa = arrow()
    columns = [name for name, wanted in zip(COLUMNS, (ids, payloads, True), strict=True) if wanted]
    first, last = (file.num_row_groups * j // part[1] for j in (part[0], part[0] + 1))
    start = sum(file.metadata.row_group(g).num_rows for g in range(first))
    groups = list(range(first, last))
    batches = file.iter_batches(batch_size=ROWS_AT_ONCE, row_groups=groups, columns=columns, use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except (OSError, pa.ArrowException) as error:
            raise Damaged(f"a page cannot be read ({_first_line(error)})") from None
        if batch is None:
            return
        if any(column.null_count for column in batch.columns):
            raise Damaged("it has empty cells")
        if batch.num_rows and not _all_equal(batch.column(batch.num_columns - 1), asked.question):
            raise Damaged("its column question is not the question of its metadata")
        none = np.empty((batch.num_rows, 0), np.uint8)
        taken = fixed_bytes(batch.column(batch.num_columns - 2), asked.oracle.report_bytes) if payloads else none
        yield Batch(start, fixed_bytes(batch.column(0), ID_LENGTH) if ids else None, taken)
        start += batch.num_rows


def _all_equal(words: Any, text: str) -> bool:
    if words.dictionary.to_pylist() == [text]:  # as the writer leaves it
        return True
    return bool(words.unique().dictionary_decode().to_pylist() == [text])


def fixed_bytes(array: Any, length: int) -> Bytes:  # -> (n, length)
    """An array of fixed-size binary as rows of bytes, without a copy."""
    data = np.frombuffer(array.buffers()[1], np.uint8) if len(array) else np.empty(0, np.uint8)
    return data[array.offset * length : (array.offset + len(array)) * length].reshape(len(array), length)


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].strip().rstrip(".")[:200]
