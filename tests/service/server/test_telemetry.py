"""OpenTelemetry: what operators do is traced, what devices do is only counted, and no span names anything."""

import re

import pytest

from ahead_ldp.service.server import telemetry
from ahead_ldp.service.server.config import Settings
from tests.needs import needed
from tests.service.server.harness import ages, bench

ALLOWED = {"http.request.method", "http.route", "http.response.status_code"}


@pytest.fixture
def watched(tmp_path):
    """A service whose spans and metrics stay in memory."""
    try:
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    except ImportError:
        needed(None, "opentelemetry-sdk", "pip install 'ahead-ldp[telemetry]'")
    with bench(tmp_path) as service:
        spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
        service.app.telemetry = telemetry.Telemetry(service.service.metrics, SimpleSpanProcessor(spans), reader)
        service.app.jobs.around = service.app.telemetry.job
        yield service, spans, reader


def test_spans_say_what_was_asked_and_nothing_else(watched):
    service, spans, reader = watched
    campaign = service.opened()
    assert service.answer(campaign, 1, ages(60)) == 60
    assert service.close(campaign, 1)["state"] == "done"
    assert service.call("POST", f"/campaigns/{campaign}/approve").status_code == 409
    made = spans.get_finished_spans()
    names = {span.name for span in made}
    assert {"POST /v1/campaigns", "POST /v1/campaigns/{campaign}/open", "job close"} <= names
    assert not any("reports" in name or "state" in name for name in names)  # what devices ask for
    for span in made:
        assert set(span.attributes) <= ALLOWED
        assert not span.events
        assert not re.search("[0-9a-f]{16}", f"{span.name} {dict(span.attributes)} {span.status.description}")
    assert 409 in {span.attributes.get("http.response.status_code") for span in made}
    metrics = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    found = {metric.name: [point.value for point in metric.data.data_points] for metric in metrics}
    assert sum(found["ahead_reports_accepted"]) == 60


def test_it_is_off_and_loads_nothing_unless_an_address_is_given():
    assert telemetry.connect("", None) is None
    with pytest.raises(ValueError, match="telemetry to be an address"):
        Settings(telemetry="collector:4318")
