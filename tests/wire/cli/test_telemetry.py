"""OpenTelemetry: off by default, and what a collector gets when it is on."""

import gzip
import importlib.util
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx2

from tests.support.capabilities import Capability, require_program
from tests.support.command_line import InstallationPaths
from tests.support.processes import LOOPBACK, Node
from tests.support.tls import NO_TRUST_STORE

TRACE = "0af7651916cd43dd8448eb211c80319c"


def find_opentelemetry() -> Path | None:
    found = importlib.util.find_spec("opentelemetry")
    return None if found is None or found.submodule_search_locations is None else Path(sys.prefix)


OPENTELEMETRY = Capability(name="OpenTelemetry (gatehouse[telemetry])", find=find_opentelemetry, optional=True)


class Collector(HTTPServer):
    """Keeps what is sent to it, by path."""

    def __init__(self) -> None:
        super().__init__((LOOPBACK, 0), CollectorHandler)
        self.received: list[tuple[str, bytes]] = []


class CollectorHandler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.received.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
        """Print nothing."""


def test_collector_gets_spans_and_metrics_without_paths_or_addresses(installation: InstallationPaths) -> None:
    require_program(OPENTELEMETRY)
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415 - an extra
        ExportMetricsServiceRequest,
    )
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415
        ExportTraceServiceRequest,
    )

    collector = Collector()
    threading.Thread(target=collector.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    environment = {
        **installation.settings,
        "GATEHOUSE__TELEMETRY__ENDPOINT": f"http://{LOOPBACK}:{collector.server_port}",
        "GATEHOUSE__TELEMETRY__SAMPLE_PERCENT": "100",
        "GATEHOUSE__SERVER__TRUSTED_PROXIES": LOOPBACK,
    }
    with Node(data=installation.data, environment=environment) as node:
        with httpx2.Client(base_url=node.base_url, verify=NO_TRUST_STORE) as client:
            client.get("/healthz?secret=hidden", headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"})
            request_id = client.get("/nothing/here").headers["x-request-id"]
        node.terminate()
    collector.shutdown()
    collector.server_close()
    traces = [body for path, body in collector.received if path == "/v1/traces"]
    spans = [
        span
        for body in traces
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    by_name = {span.name: span for span in spans}
    assert by_name["GET health.alive"].trace_id.hex() == TRACE
    attributes = {pair.key: pair.value.string_value for pair in by_name["GET other"].attributes}
    assert attributes["gatehouse.request_id"] == request_id
    assert not any(word in body for body in traces for word in (b"hidden", b"nothing", LOOPBACK.encode()))
    names = {
        metric.name
        for path, body in collector.received
        if path == "/v1/metrics"
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {"http.server.request.duration", "gatehouse_held_requests"} <= names


def test_nothing_of_opentelemetry_is_loaded_without_the_setting() -> None:
    code = (
        "import sys, json, gatehouse.cli.serve; print(json.dumps([n for n in sys.modules if 'opentelemetry' in n]))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(loaded) == []
