"""OpenTelemetry, if the settings name a collector: spans of what operators ask for and of closings, and the metrics.

Nothing is traced that a device does: who sent when is not to be known. A span has a method, the route as it stands in
the code, and a status. It has no campaign, id, address, value or message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from ahead_ldp.service.server.limits import Receive, Scope, Send
from ahead_ldp.service.server.metrics import Metrics

_EXTRA = "pip install 'ahead-ldp[telemetry]'"
_NAME = "ahead-ldp"
_KINDS = {"counter": "create_observable_counter", "gauge": "create_observable_gauge"}


class Telemetry:
    """Spans and metrics of one server process, to whatever takes them."""

    def __init__(self, metrics: Metrics, spans: Any, reader: Any) -> None:
        """``spans`` is a span processor of the SDK, ``reader`` one of its metric readers."""
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        resource = Resource({"service.name": _NAME})  # not the host, nor the process
        self._metrics = metrics
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._traces.add_span_processor(spans)
        self._tracer = self._traces.get_tracer(_NAME)
        self._meters = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        meter = self._meters.get_meter(_NAME)
        for family in metrics.collect():
            if make := _KINDS.get(family.type):
                getattr(meter, make)(
                    family.name, [partial(self._observe, family.name)], description=family.documentation
                )

    def _observe(self, name: str, _: object) -> Iterable[Any]:
        from opentelemetry.metrics import Observation

        for family in self._metrics.collect():
            if family.name == name:
                samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
                yield from (Observation(sample.value, dict(sample.labels)) for sample in samples)

    def job(self, kind: str) -> AbstractContextManager[Any]:
        """A span around work in the background."""
        return self._span(f"job {kind}")

    async def request(self, answer: Callable[..., Any], scope: Scope, receive: Receive, send: Send) -> None:
        """A span around a request of somebody who shows a token; others are answered without one."""
        if not any(name == b"authorization" for name, _ in scope.get("headers", ())):
            await answer(scope, receive, send)
            return
        with self._span("request") as span:

            async def noted(message: Any) -> None:
                """Send, and note the status."""
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", int(message["status"]))
                await send(message)

            await answer(scope, receive, noted)
            route = str(getattr(scope.get("route"), "path", "other"))
            span.update_name(f"{scope['method']} {route}")
            span.set_attribute("http.request.method", str(scope["method"]))
            span.set_attribute("http.route", route)

    @contextmanager
    def _span(self, name: str) -> Iterator[Any]:
        """A span without what an exception says: its message could be anything."""
        with self._tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as span:
            yield span

    def stop(self) -> None:
        """Send what waits."""
        self._traces.shutdown()
        self._meters.shutdown()


def connect(collector: str, metrics: Metrics) -> Telemetry | None:
    """Telemetry to the address of a collector, by OTLP over HTTP; None where the settings name none."""
    if not collector:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise ValueError(f"expected the extra telemetry for the setting of this name: {_EXTRA}") from None
    base = collector.rstrip("/")
    spans = BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{base}/v1/traces"))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{base}/v1/metrics"))
    return Telemetry(metrics, spans, reader)
