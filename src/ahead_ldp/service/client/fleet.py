"""A fleet: a crowd that answers a whole campaign, in process or over many connections, and what became of everybody."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ahead_ldp.service.client.crowd import Crowd, Upload, Visits
from ahead_ldp.service.client.streams import Connection
from ahead_ldp.service.client.transport import Answer, Transport, Unreachable, as_transport
from ahead_ldp.service.client.views import CampaignState, fetch_state, fetch_wave

Close = Callable[[int], None]  # asks the operator's side to close a wave
_ATTEMPTS = 8
_UNANSWERED = Answer(503)


@dataclass
class FleetReport:
    """How many came, how many reports were accepted, and why the others were not."""

    people: int
    enrolment: str
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    waves: dict[int, Counter[str]] = field(default_factory=dict)  # wave -> accepted by group
    uploads: int = 0

    @property
    def share(self) -> float:
        """The yield: reports that count, over people who exist."""
        return self.accepted / self.people

    def count(self, upload: Upload, answer: Answer) -> None:
        """Take the server's word on one batch."""
        verdict = json.loads(answer.body)
        refused = [entry["reason"] for entry in verdict["refused"]]
        if verdict["accepted"] + len(refused) != len(upload.people):
            raise Unreachable("the server's answer does not say what became of every report")
        self.uploads += 1
        self.accepted += verdict["accepted"]
        self.refused.update(refused)
        self.waves.setdefault(upload.wave, Counter())[upload.group] += verdict["accepted"]

    def settle(self, upload: Upload, answer: Answer, attempt: int) -> float | None:
        """Count an answer, and after the last attempt a failure; else the seconds until the batch is sent again."""
        if answer.status == 200:
            self.count(upload, answer)
            return None
        if attempt + 1 < _ATTEMPTS:
            wanted = answer.headers.get("retry-after", "")
            return min(float(wanted), 5.0) if wanted.isdigit() else 0.05 * 2**attempt
        self.refused[f"status_{answer.status}"] += len(upload.people)
        return None

    def __str__(self) -> str:
        lost = ", ".join(f"{n} {reason}" for reason, n in sorted(self.refused.items()))
        return f"{self.enrolment}: {self.accepted:,} of {self.people:,} people counted ({100 * self.share:.1f} %)" + (
            f"; refused: {lost}" if lost else ""
        )


def run_fleet(
    way: str | Transport,
    crowd: Crowd,
    visits: Visits,
    close: Close | None = None,
    *,
    batch: int = 100,
    patience_s: float = 60.0,
) -> FleetReport:
    """Everybody answers, wave by wave, one batch after another, until the campaign is over.

    After the last batch of a wave ``close(wave)`` is called; without it the server closes the wave by itself.
    """
    transport, report = as_transport(way), FleetReport(len(crowd.people), crowd.campaign.enrolment)
    for uploads in _waves(transport, crowd, visits, close, batch, patience_s):
        for upload in uploads:
            for attempt in range(_ATTEMPTS):
                try:
                    answer = transport.request("POST", _path(crowd), upload.body)
                except Unreachable:
                    answer = _UNANSWERED
                if (pause_s := report.settle(upload, answer, attempt)) is None:
                    break
                time.sleep(pause_s)
    return report


def run_fleet_async(
    url: str,
    crowd: Crowd,
    visits: Visits,
    close: Close | None = None,
    *,
    batch: int = 1,
    connections: int = 32,
    patience_s: float = 60.0,
) -> FleetReport:
    """As ``run_fleet``, over that many connections at once that are kept alive: one report each, or relays' batches."""
    report = FleetReport(len(crowd.people), crowd.campaign.enrolment)

    async def work(queue: asyncio.Queue[Upload | None]) -> None:
        """Send batches over one connection until there are no more."""
        async with Connection(url) as connection:
            while (upload := await queue.get()) is not None:
                for attempt in range(_ATTEMPTS):
                    try:
                        answer = await connection.request("POST", _path(crowd), upload.body)
                    except Unreachable:
                        answer = _UNANSWERED
                    if (pause_s := report.settle(upload, answer, attempt)) is None:
                        break
                    await asyncio.sleep(pause_s)

    async def send_all(uploads: Iterable[Upload]) -> None:
        """Send the batches of a wave over all connections."""
        queue: asyncio.Queue[Upload | None] = asyncio.Queue(2 * connections)
        workers = [asyncio.create_task(work(queue)) for _ in range(connections)]
        for upload in uploads:
            await queue.put(upload)
        for _ in workers:
            await queue.put(None)
        await asyncio.gather(*workers)

    for uploads in _waves(as_transport(url), crowd, visits, close, batch, patience_s):
        asyncio.run(send_all(uploads))
    return report


def _waves(
    transport: Transport, crowd: Crowd, visits: Visits, close: Close | None, batch: int, patience_s: float
) -> Iterator[Iterator[Upload]]:
    """For each wave the batches of those who are there; the wave is closed after them."""
    last = 0
    while (state := _next_wave(transport, crowd, last, patience_s)).open_wave is not None:
        last = state.open_wave
        yield crowd.uploads(fetch_wave(transport, crowd.campaign, last), last, visits.present(last), batch)
        if close is not None:
            close(last)


def _next_wave(transport: Transport, crowd: Crowd, last: int, patience_s: float) -> CampaignState:
    """The state once a wave after ``last`` is open or the campaign is over."""
    end = time.monotonic() + patience_s
    while True:
        state = fetch_state(transport, crowd.campaign.digest)
        if state.over or (state.open_wave or 0) > last:
            return state
        if time.monotonic() > end:
            raise TimeoutError(f"expected a wave after {last} or the end of the campaign within {patience_s:g} s")
        time.sleep(0.02)


def _path(crowd: Crowd) -> str:
    return f"/v1/campaigns/{crowd.campaign.digest}/reports"
