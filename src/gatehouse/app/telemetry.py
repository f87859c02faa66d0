"""OpenTelemetry: a span for every request, and the metrics of the process, sent to a collector (OTLP over HTTP).

Loaded only if `telemetry.endpoint` is set; it needs the extra `gatehouse[telemetry]`. Nothing about people is sent: a
span has the name of the endpoint, the method and the status, never a path, a query or an address.
"""

from collections.abc import Callable, Iterable
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.kernel.addresses import Network, any_network_contains, parse_address
from gatehouse.settings.model import TelemetrySettings
from gatehouse.web.http.metrics import METHODS, OTHER, Figure
from gatehouse.web.http.responses import WRITE_RESPONSE_KEY

SERVER_ERROR: Final = 500
PERCENT: Final = 100
TRACE_HEADERS: Final = ("traceparent", "tracestate")


class Telemetry:
    def __init__(self, settings: TelemetrySettings, figures: Iterable[Figure], *, version: str) -> None:
        resource = Resource.create({"service.name": settings.service_name, "service.version": version})
        sampler = ParentBasedTraceIdRatio(settings.sample_percent / PERCENT)
        self._tracers = TracerProvider(resource=resource, sampler=sampler, shutdown_on_exit=False)
        spans = OTLPSpanExporter(endpoint=f"{settings.endpoint}/v1/traces")
        self._tracers.add_span_processor(BatchSpanProcessor(spans))
        metrics = OTLPMetricExporter(endpoint=f"{settings.endpoint}/v1/metrics")
        reader = PeriodicExportingMetricReader(metrics, export_interval_millis=settings.interval_seconds * 1_000)
        self._meters = MeterProvider(metric_readers=[reader], resource=resource, shutdown_on_exit=False)
        self._tracer = self._tracers.get_tracer("gatehouse", version)
        meter = self._meters.get_meter("gatehouse", version)
        self._durations = meter.create_histogram("http.server.request.duration", "s", "Time of requests.")
        for figure in figures:
            create = meter.create_observable_counter if figure.counts else meter.create_observable_gauge
            create(figure.name, [observe(figure)], description=figure.help)

    def trace(self, app: ASGIApp, trusted_proxies: tuple[Network, ...], monotonic: Callable[[], float]) -> ASGIApp:
        """Return the application with a span around every request; the trace of a trusted proxy is continued."""
        propagator = TraceContextTextMapPropagator()

        async def call(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            scope.pop(WRITE_RESPONSE_KEY, None)  # the response comes as messages, so that its status is seen
            began, status = monotonic(), 0

            async def send_and_note(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            parent = propagator.extract(trace_headers(scope, trusted_proxies))
            method = scope["method"] if scope["method"] in METHODS else OTHER
            with self._tracer.start_as_current_span(method, parent, SpanKind.SERVER) as span:
                try:
                    await app(scope, receive, send_and_note)
                finally:
                    attributes = {
                        "http.request.method": method,
                        "http.route": scope["state"].get("endpoint", OTHER),
                        "http.response.status_code": status,
                    }
                    span.update_name(f"{method} {attributes['http.route']}")
                    span.set_attributes({**attributes, "gatehouse.request_id": scope["state"]["request_id"]})
                    if status >= SERVER_ERROR:
                        span.set_status(StatusCode.ERROR)
                    self._durations.record(monotonic() - began, attributes)

        return call

    def shut_down(self) -> None:
        """Send what is left; waits for the collector at most as long as an export may take."""
        self._tracers.shutdown()
        self._meters.shutdown()


def trace_headers(scope: Scope, trusted_proxies: tuple[Network, ...]) -> dict[str, str]:
    """Return the headers of the trace, which any other caller could use to have every request recorded."""
    client = scope.get("client")
    peer = parse_address(client[0]) if client else None
    if peer is None or not any_network_contains(trusted_proxies, peer):
        return {}
    headers = Headers(scope=scope)
    return {name: headers[name] for name in TRACE_HEADERS if name in headers}


def observe(figure: Figure) -> Callable[[CallbackOptions], list[Observation]]:
    def observations(_options: CallbackOptions) -> list[Observation]:
        return [
            Observation(value, dict(zip(figure.labels, labels, strict=True)))
            for labels, value in figure.read().items()
        ]

    return observations
