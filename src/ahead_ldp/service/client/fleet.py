"""A fleet: a crowd that answers a whole campaign, in process or over many connections, and what became of everybody."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ahead_ldp.service.client.crowd import Crowd, Upload, Visits
from ahead_ldp.service.client.streams import Connection
from ahead_ldp.service.client.transport import Answer, Transport, Unreachable, as_transport
from ahead_ldp.service.client.views import CampaignState, fetch_state, fetch_wave

Close = Callable[[int], None]  # asks the operator's side to close a wave
_ATTEMPTS = 8


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
        found = json.loads(answer.body)
        refused = [entry["reason"] for entry in found["refused"]]
        assert found["accepted"] + len(refused) == len(upload.people)
        self.uploads += 1
        self.accepted += found["accepted"]
        self.refused.update(refused)
        self.waves.setdefault(upload.wave, Counter())[upload.group] += found["accepted"]

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
    transport, report = as_transport(way), _report(crowd)
    path = f"/v1/campaigns/{crowd.campaign.digest}/reports"

    def send(uploads: Iterable[Upload]) -> None:
        for upload in uploads:
            for attempt in range(_ATTEMPTS):
                try:
                    answer = transport.request("POST", path, upload.body)
                except Unreachable:
                    answer = Answer(503)
                if answer.status == 200:
                    break
                time.sleep(_pause(answer, attempt))
            _settle(report, upload, answer)

    _all_waves(transport, crowd, visits, close, batch, patience_s, send)
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
    transport, report = as_transport(url), _report(crowd)
    path = f"/v1/campaigns/{crowd.campaign.digest}/reports"

    async def work(queue: asyncio.Queue[Upload | None]) -> None:
        async with Connection(url) as connection:
            while (upload := await queue.get()) is not None:
                for attempt in range(_ATTEMPTS):
                    try:
                        answer = await connection.request("POST", path, upload.body)
                    except Unreachable:
                        answer = Answer(503)
                    if answer.status == 200:
                        break
                    await asyncio.sleep(_pause(answer, attempt))
                _settle(report, upload, answer)

    async def send_all(uploads: Iterable[Upload]) -> None:
        queue: asyncio.Queue[Upload | None] = asyncio.Queue(2 * connections)
        workers = [asyncio.create_task(work(queue)) for _ in range(connections)]
        for upload in uploads:
            await queue.put(upload)
        for _ in workers:
            await queue.put(None)
        await asyncio.gather(*workers)

    _all_waves(transport, crowd, visits, close, batch, patience_s, lambda uploads: asyncio.run(send_all(uploads)))
    return report


def _all_waves(
    transport: Transport,
    crowd: Crowd,
    visits: Visits,
    close: Close | None,
    batch: int,
    patience_s: float,
    send: Callable[[Iterable[Upload]], None],
) -> None:
    last = 0
    while (state := _next_wave(transport, crowd, last, patience_s)).open_wave is not None:
        last = state.open_wave
        data = fetch_wave(transport, crowd.campaign, last)
        send(crowd.uploads(data, last, visits.present(last), batch))
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


def _settle(report: FleetReport, upload: Upload, answer: Answer) -> None:
    if answer.status == 200:
        report.count(upload, answer)
    else:
        report.refused[f"status_{answer.status}"] += len(upload.people)


def _pause(answer: Answer, attempt: int) -> float:
    wanted = answer.headers.get("retry-after", "")
    return min(float(wanted), 5.0) if wanted.isdigit() else 0.05 * 2**attempt


def _report(crowd: Crowd) -> FleetReport:
    return FleetReport(len(crowd.people), crowd.campaign.enrolment)
