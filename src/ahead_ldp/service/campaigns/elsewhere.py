"""Counting a large wave elsewhere: its reports leave as files, a command counts them, and the files are deleted.

What comes back is taken only if it speaks of the very files that were written here, and of as many reports as the store
has. The digest over ids, which is published, is computed here, from the store (decision 023).
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ahead_ldp.device.canonical import parse_canonical
from ahead_ldp.device.frames import ID_LENGTH
from ahead_ldp.engines.files import Asked
from ahead_ldp.engines.layout import CAMPAIGN, REPORTS, SCHEMA, place, write_record
from ahead_ldp.engines.manifests import manifest_digest
from ahead_ldp.engines.writer import ReportWriter
from ahead_ldp.oracles import Tally
from ahead_ldp.protocol.mechanism import tally_from_record
from ahead_ldp.service.campaigns import handed_out
from ahead_ldp.service.campaigns.campaign import Terms
from ahead_ldp.service.campaigns.counting import GroupCount
from ahead_ldp.service.campaigns.logs import event
from ahead_ldp.service.campaigns.problems import Problem
from ahead_ldp.service.store.binding import reports_digest
from ahead_ldp.service.store.interface import Store
from ahead_ldp.service.store.rows import QuestionRow

_LOOK_S = 1.0  # how often the lease is kept while the command runs


class CounterFailed(Exception):
    """The command did not count what it was given; the message is a fixed text."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A command that is given a campaign's directory as its last word, and prints what `ahead tally --json` prints.

    It counts waves of at least ``least`` reports; smaller ones are counted in this process.
    """

    command: tuple[str, ...]
    folder: Path
    least: int

    def count(
        self,
        store: Store,
        terms: Terms,
        rows: Sequence[QuestionRow],
        number: int,
        alive: Callable[[], None] = lambda: None,
    ) -> list[GroupCount]:
        """Count a held wave. ``rows`` are all questions up to this wave; ``alive`` is called over and over."""
        made = handed_out.new(store, terms.digest, number, self.folder)
        try:
            bound, manifest = _export(made, store, terms, rows, number, alive)
            said = self._run(made, alive)
            tallies = _accepted(said, manifest, {row.digest: bound[row.group][0] for row in rows if row.group in bound})
            event("counted_elsewhere", campaign=terms.digest, wave=number, n=sum(t.n for t in tallies.values()))
        except CounterFailed as failure:
            event("counter_failed", logging.ERROR, campaign=terms.digest, wave=number, reason=str(failure))
            raise Problem("internal", f"the wave was not counted: {failure}") from None
        finally:
            handed_out.forget(store, terms.digest, made)
        now = [row for row in rows if row.wave == number]
        return [GroupCount(row.group, row.digest, tallies[row.digest], bound[row.group][1]) for row in now]

    def _run(self, made: Path, alive: Callable[[], None]) -> bytes:
        try:
            process = subprocess.Popen(
                [*self.command, str(made)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
            )
        except OSError:
            raise CounterFailed("the command of the setting counter cannot be started") from None
        try:
            while True:
                try:
                    said, _ = process.communicate(timeout=_LOOK_S)
                    break
                except subprocess.TimeoutExpired:
                    alive()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what the command has started ends with it
            process.communicate()
            raise
        if process.returncode:
            raise CounterFailed(f"the command of the setting counter ended with {process.returncode}")
        return said


def _export(
    made: Path, store: Store, terms: Terms, rows: Sequence[QuestionRow], number: int, alive: Callable[[], None]
) -> tuple[dict[str, tuple[int, str]], str | None]:
    """A directory with the reports of one wave. By group its n and the digest over ids, and the manifest's digest."""
    record = dict(terms.campaign.record)
    write_record(made / CAMPAIGN, record)
    write_record(made / SCHEMA, record["schema"])
    for row in rows:
        write_record(place(made, "questions", row.wave, row.group), parse_canonical(row.record))
    bound: dict[str, tuple[int, str]] = {}
    with ReportWriter(made / REPORTS, name="service") as writer:
        for row in (row for row in rows if row.wave == number):
            asked, n = Asked.of(row.record), 0

            def ids(row: QuestionRow = row, asked: Asked = asked) -> Iterator[bytes]:
                """Those of every chunk, once it is written."""
                nonlocal n
                for chunk in store.reports(terms.digest, row.wave, row.group):
                    writer.add(
                        asked,
                        np.frombuffer(chunk.ids, np.uint8).reshape(chunk.n, ID_LENGTH),
                        np.frombuffer(chunk.payloads, np.uint8).reshape(chunk.n, asked.oracle.report_bytes),
                    )
                    n += chunk.n
                    alive()
                    yield chunk.ids

            of_ids = reports_digest(ids())
            bound[row.group] = n, of_ids
    return bound, manifest_digest(terms.digest, writer.entries)


def _accepted(said: bytes, manifest: str | None, expected: Mapping[str, int]) -> dict[str, Tally]:
    """The tallies by question, if they are of the files that were written, and of all their reports."""
    try:
        answer: Any = json.loads(said)
        of_files, listed = answer["manifest"], answer["tallies"]
        found = {
            record["question"]: tally_from_record(
                {name: value for name, value in record.items() if name not in ("wave", "group")}, record["question"]
            )
            for record in listed
        }
    except (ValueError, TypeError, KeyError):
        raise CounterFailed("the answer of the command is not that of `ahead tally --json`") from None
    if manifest is None or of_files != manifest:
        raise CounterFailed("other files were counted than those that were written")
    if {question: found[question].n for question in expected if question in found} != dict(expected):
        raise CounterFailed("not as many reports were counted as the store has")
    return found
