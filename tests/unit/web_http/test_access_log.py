import pytest
from structlog.testing import capture_logs

from gatehouse import logs
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.metrics import Metrics, status_class
from gatehouse.web.http.metrics_text import registry_of
from tests.support.sample_asgi_app import SampleAsgiApp, call_app, raising_endpoint


async def test_a_request_leaves_one_line_by_the_name_of_its_endpoint() -> None:
    sample_app = SampleAsgiApp()
    app = sample_app.app()
    with capture_logs() as lines:
        await call_app(app, "GET", "/api/permissions/application/publicKey/s3cret?location=s3cret&token=s3cret")
    assert lines == [
        {
            "event": "request",
            "log_level": "info",
            "endpoint": "permissions.key",
            "method": "GET",
            "status": 200,
            "ms": 0.0,
            "source": "192.0.2.1",
        }
    ]


async def test_request_refused_before_routing_is_logged() -> None:
    app = SampleAsgiApp().app()
    with capture_logs() as lines:
        await call_app(app, "BREW", "/s3cret", headers=[("Content-Length", "10000000000")])
        await call_app(app, "GET", "/", client="not an address")
    assert [(line["endpoint"], line["method"], line["status"], line["source"]) for line in lines] == [
        ("other", "other", 413, "192.0.2.1"),
        ("other", "GET", 400, "-"),
    ]


async def test_an_error_is_counted_with_its_status() -> None:
    sample_app = SampleAsgiApp(endpoints=[raising_endpoint(RuntimeError("boom"), dialect=Dialect.PLAIN)])
    await call_app(sample_app.app(), "POST", "/fails")
    labels = {"endpoint": "fails", "method": "POST", "status": "5xx"}
    assert registry_of(sample_app.metrics).get_sample_value("gatehouse_requests_total", labels) == 1.0


async def test_every_line_of_a_request_carries_its_id() -> None:
    app = SampleAsgiApp(endpoints=[raising_endpoint(RuntimeError("boom"))]).app()
    with capture_logs(processors=[logs.add_request_id]) as lines:
        response = await call_app(app, "POST", "/fails")
    assert [(line["event"], line["request_id"]) for line in lines] == [
        ("request failed", response.headers["x-request-id"]),
        ("request", response.headers["x-request-id"]),
    ]


def test_a_name_that_is_not_in_the_table_gets_no_label_of_its_own() -> None:
    metrics = Metrics(["oauth.token"])
    for name in ("a", "b"):
        metrics.observe(endpoint=name, method="GET", status=200, seconds=0.0)
    labels = {"endpoint": "other", "method": "GET", "status": "2xx"}
    assert registry_of(metrics).get_sample_value("gatehouse_requests_total", labels) == 2.0


def test_durations_are_counted_by_endpoint() -> None:
    metrics = Metrics(["oauth.token"])
    metrics.observe(endpoint="oauth.token", method="POST", status=200, seconds=0.3)
    value = registry_of(metrics).get_sample_value
    assert value("gatehouse_request_seconds_sum", {"endpoint": "oauth.token"}) == 0.3
    assert value("gatehouse_request_seconds_bucket", {"endpoint": "oauth.token", "le": "0.25"}) == 0.0
    assert value("gatehouse_request_seconds_bucket", {"endpoint": "oauth.token", "le": "0.5"}) == 1.0


@pytest.mark.parametrize(
    ("status", "name"),
    [(0, "none"), (99, "none"), (101, "1xx"), (200, "2xx"), (404, "4xx"), (599, "5xx"), (600, "none")],
)
def test_a_status_belongs_to_a_class(status: int, name: str) -> None:
    assert status_class(status) == name
