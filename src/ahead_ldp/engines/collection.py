"""In-process collection: every person's answer is made by the device layer and crosses the wire form."""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import numpy as np

from ahead_ldp.device.canonical import canonical_bytes
from ahead_ldp.device.codes import Schema
from ahead_ldp.device.frames import Header, encode_batch, split_batch
from ahead_ldp.device.question import Policy, check_question
from ahead_ldp.device.question import Question as DeviceQuestion
from ahead_ldp.oracles import Oracle, Tally
from ahead_ldp.protocol.mechanism import Group, Mechanism
from ahead_ldp.protocol.session import Session
from ahead_ldp.schema.arrays import Bytes

_BATCH = 1000
Person = Mapping[str, object]
Progress = Callable[[int, int], None]
Keep = Callable[[int, str, bytes], None]


def run_collection(
    mechanism: Mechanism,
    schema: Schema,
    people: Sequence[Person],
    progress: Progress | None = None,
    keep: Keep | None = None,
) -> Session:
    """Ask every person once, wave by wave, with real reports: encode, frame, decode, check, count. All waves are told.

    Groups and noise come from the operating system, so two runs differ. ``progress(done, all)`` is called as
    people answer, ``keep(wave, group, data)`` with the wire bytes of every batch.
    """
    if not people:
        raise ValueError("expected at least one person, got none")
    session = Session(mechanism, schema)
    members = draw_groups(mechanism.groups(schema), len(people))
    done = 0
    while session.is_open:
        tallies = {}
        for group, record in session.question_records().items():
            policy = Policy(mechanism.epsilon, max_cells=2**31)
            question = check_question(canonical_bytes(record), schema, session.campaign, policy)
            oracle = session.wave[group].oracle
            tally = Tally.empty(oracle.outcomes)
            for batch in _batches(members[group]):
                data = answer_batch(question, [people[i] for i in batch])
                tally += count_batch(data, question.header, oracle)
                if keep:
                    keep(session.number, group, data)
                done += len(batch)
                if progress:
                    progress(done, len(people))
            tallies[group] = tally
        session.tell(tallies)
    return session


def draw_groups(groups: Sequence[Group], n: int) -> dict[str, list[int]]:
    """For each group the people who drew it, from the operating system's randomness and never from a value."""
    members: dict[str, list[int]] = {g.id: [] for g in groups}
    borders = list(accumulate(g.share for g in groups))
    for person in range(n if groups else 0):
        members[groups[bisect_right(borders, secrets.randbelow(borders[-1]))].id].append(person)
    return members


def answer_batch(question: DeviceQuestion, people: Sequence[Person]) -> bytes:
    """The wire bytes of these people's reports."""
    return encode_batch(question.header, (question.report(person) for person in people))


def decode_reports(data: bytes, header: Header, oracle: Oracle) -> tuple[list[bytes], Bytes]:
    """Ids and payloads of a batch, checked in bulk; the first bad report rejects it with a reason.

    Of several reports with one id the first counts, as everywhere.
    """
    ids, joined = split_batch(data, header, oracle.law)
    reports = np.frombuffer(joined, np.uint8).reshape(len(ids), oracle.report_bytes)
    bad = np.flatnonzero(~oracle.valid(reports))
    if bad.size:
        oracle.law.check_payload(reports[bad[0]].tobytes())  # says why
    firsts = {report_id: at for at, report_id in reversed(list(enumerate(ids)))}
    if len(firsts) < len(ids):
        places = sorted(firsts.values())
        ids, reports = [ids[at] for at in places], reports[places]
    return ids, reports


def count_batch(data: bytes, header: Header, oracle: Oracle) -> Tally:
    """The tally of a batch of wire bytes."""
    return oracle.tally(decode_reports(data, header, oracle)[1])


def _batches(members: list[int]) -> list[list[int]]:
    return [members[i : i + _BATCH] for i in range(0, len(members), _BATCH)]
