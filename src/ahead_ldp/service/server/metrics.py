"""Prometheus metrics of one server process. Labels are reasons and states; nothing names a person or an address."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest


class Metrics:
    """The counters of one app, in a registry of their own."""

    def __init__(self) -> None:
        """Register everything once."""
        self.registry = CollectorRegistry()
        self.before_text: list[Callable[[], None]] = []
        self.accepted = Counter(
            "ahead_reports_accepted", "Reports acknowledged, known ones again", registry=self.registry
        )
        self.refused = Counter(
            "ahead_reports_refused", "Reports refused, by reason", ["reason"], registry=self.registry
        )
        self.uploads = Counter("ahead_uploads", "Uploads by HTTP status", ["status"], registry=self.registry)
        self.problems = Counter("ahead_problems", "Problem documents, by kind", ["kind"], registry=self.registry)
        self.waiting = Gauge("ahead_reports_waiting", "Reports that wait for the store", registry=self.registry)
        self.commits = Histogram(
            "ahead_commit_seconds", "Time of one group commit", registry=self.registry,
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
        )  # fmt: skip
        self.withdrawals = Counter("ahead_withdrawals", "Withdrawals, by outcome", ["outcome"], registry=self.registry)
        self.mismatches = Gauge(
            "ahead_replay_mismatches",
            "Campaigns whose questions this process does not ask",
            registry=self.registry,
        )
        self.rounds = Counter("ahead_closer_rounds", "Rounds of the background closer", registry=self.registry)

        self.connections = Gauge("ahead_connections", "Open connections", registry=self.registry)
        self.held_bytes = Gauge("ahead_held_bytes", "Bytes of bodies in memory", registry=self.registry)
        self.edge = Counter(
            "ahead_edge_ended", "Connections and requests that the edge ended, by reason", ["reason"],
            registry=self.registry,
        )  # fmt: skip

    def text(self) -> bytes:
        """The exposition format."""
        self._flush()
        return generate_latest(self.registry)

    def collect(self) -> list[Metric]:
        """Every metric with its samples now."""
        self._flush()
        return list(self.registry.collect())

    def _flush(self) -> None:
        for flush in self.before_text:
            flush()
