"""Rows HT-06 to HT-21 and SC-15 of the security checklist, on a sample ASGI application without the service."""

from collections.abc import Iterator

import msgspec
import pytest
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gatehouse.kernel.errors import BadInput, Unavailable
from gatehouse.web.api.health import HealthEndpoints, Readiness, allow_bearer
from gatehouse.web.http.errors import Dialect
from gatehouse.web.http.metrics import Metrics
from gatehouse.web.http.metrics_text import metrics_text
from gatehouse.web.http.responses import see_other
from gatehouse.web.http.routing import Endpoint, RateClass
from gatehouse.web.server.server import serve_in_loop
from tests.support.clock import MovableClock
from tests.support.cpu_time import await_within_cpu_seconds
from tests.support.logs import LogStream, capture_logs
from tests.support.raw_http import send_request
from tests.support.sample_asgi_app import (
    JSON_PATHS,
    SampleAsgiApp,
    call_app,
    call_app_with_json,
    raising_endpoint,
    sample_endpoints,
)

FORM = ("Content-Type", "application/x-www-form-urlencoded")
MULTIPART = ("Content-Type", "multipart/form-data; boundary=b")
GSID = "/proxy/api/gameSession/getGsid"
MEGABYTES = 64 * 1024 * 1024


@pytest.fixture
def app() -> ASGIApp:
    return SampleAsgiApp().app()


@pytest.fixture
def app_with_large_limits() -> ASGIApp:
    """The same paths with so large a body limit that only the parsers can refuse."""
    return SampleAsgiApp(endpoints=[replace(endpoint, body_limit=MEGABYTES) for endpoint in sample_endpoints()]).app()


async def test_ht_06_a_million_form_fields_are_refused_at_once(app_with_large_limits: ASGIApp) -> None:
    body = b"&".join([b"a=1"] * 1_000_000)
    response = await await_within_cpu_seconds(
        0.1, lambda: call_app(app_with_large_limits, "POST", GSID, body=body, headers=[FORM])
    )
    assert response.status == 413


async def test_ht_06_a_field_of_a_hundred_megabytes_is_refused_before_it_is_read(app: ASGIApp) -> None:
    headers = [FORM, ("Content-Length", str(100 * 1024 * 1024))]
    response = await await_within_cpu_seconds(0.1, lambda: call_app(app, "POST", GSID, headers=headers))
    assert response.status == 413


async def test_ht_06_brackets_in_a_field_name_build_nothing(app: ASGIApp) -> None:
    body = b"a" + b"[b]" * 20_000 + b"=1"
    response = await await_within_cpu_seconds(0.1, lambda: call_app(app, "POST", GSID, body=body, headers=[FORM]))
    assert response.status == 400


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=", "application/x-www-form-urlencoded; a=", "a/b;"])
async def test_ht_06_a_content_type_full_of_backslashes_is_not_even_parsed(app: ASGIApp, kind: str) -> None:
    headers = [("Content-Type", kind + "\\" * 10_000)]
    response = await await_within_cpu_seconds(0.1, lambda: call_app(app, "POST", GSID, body=b"x", headers=headers))
    assert response.status == 415


async def test_ht_06_a_part_with_a_hundred_thousand_headers_is_refused_at_once(
    app_with_large_limits: ASGIApp,
) -> None:
    body = b"--b\r\n" + b"A: b\r\n" * 100_000 + b"\r\nx\r\n--b--\r\n"
    response = await await_within_cpu_seconds(
        0.1, lambda: call_app(app_with_large_limits, "POST", GSID, body=body, headers=[MULTIPART])
    )
    assert response.status == 400


async def test_ht_06_a_hundred_thousand_parts_are_refused_at_once(app_with_large_limits: ASGIApp) -> None:
    part = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n'
    body = part * 100_000 + b"--b--\r\n"
    response = await await_within_cpu_seconds(
        0.1, lambda: call_app(app_with_large_limits, "POST", GSID, body=body, headers=[MULTIPART])
    )
    assert response.status == 413


@pytest.mark.parametrize("path", JSON_PATHS)
@pytest.mark.parametrize("opening", [b"[", b'{"":', b'[{"a":['])
async def test_ht_08_a_hundred_thousand_levels_are_refused_at_once(
    app_with_large_limits: ASGIApp, path: str, opening: bytes
) -> None:
    response = await await_within_cpu_seconds(
        0.05, lambda: call_app_with_json(app_with_large_limits, path, opening * 100_000)
    )
    assert response.status == 400


@pytest.mark.parametrize("path", JSON_PATHS)
async def test_ht_09_an_object_of_a_million_names_is_refused(app_with_large_limits: ASGIApp, path: str) -> None:
    response = await call_app_with_json(app_with_large_limits, path, b"{" + b'"a":0,' * 1_000_000 + b'"b":0}')
    assert response.status == 413


@pytest.mark.parametrize(
    "target",
    [
        "//api//permissions/roles",
        "/api/permissions/roles/",
        "/API/permissions/roles",
        "/api/permissions/Roles",
        "/proxy/..;/api/permissions/roles",
        "/api/permissions/roles;x=y",
        "/api/permissions/./roles",
        "/api/permissions/x/../roles",
        "/api/permissions/roles%0a",
        "/api/permissions/roles%00",
        "/api/permissions/roles%20",
        "/api/permissions/roles%252f",
        "/api/permissions/application/publicKey/a%2fb",
        "/api/permissions/application/publicKey/a%0a",
    ],
)
async def test_ht_10_a_path_that_is_not_exactly_one_of_ours_is_not_found(app: ASGIApp, target: str) -> None:
    for method in ("GET", "POST"):
        response = await call_app(app, method, target)
        assert response.status == 404
        assert "location" not in response.headers


@pytest.mark.parametrize("target", ["/api/permissions/%72oles", "/api%2fpermissions/roles"])
async def test_ht_10_another_spelling_of_a_path_meets_the_same_checks(app: ASGIApp, target: str) -> None:
    response = await call_app(app, "POST", target, body=b"{}", headers=[("Content-Type", "text/plain")])
    assert response.status == 415


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW", "post"])
async def test_ht_11_other_methods_are_not_allowed(app: ASGIApp, method: str) -> None:
    response = await call_app(app, method, "/api/permissions/roles")
    assert (response.status, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"])
async def test_ht_11_a_header_does_not_change_the_method(app: ASGIApp, header: str) -> None:
    response = await call_app(app, "GET", "/api/permissions/roles?_method=POST", headers=[(header, "POST")])
    assert response.status == 405


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
async def test_ht_12_key_sets_are_for_any_origin_and_never_with_credentials(app: ASGIApp, origin: str) -> None:
    preflight = [("Origin", origin), ("Access-Control-Request-Method", "GET")]
    for method, headers in (("GET", [("Origin", origin), ("Cookie", "a=b")]), ("OPTIONS", preflight)):
        response = await call_app(app, method, "/proxy/oauth/keys", headers=headers)
        assert response.status in {200, 204}
        assert response.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
@pytest.mark.parametrize("path", [*JSON_PATHS, "/", "/nothing"])
async def test_ht_12_nothing_else_is_for_another_origin(app: ASGIApp, origin: str, path: str) -> None:
    preflight = [("Origin", origin), ("Access-Control-Request-Method", "POST")]
    for method in ("GET", "POST", "OPTIONS"):
        response = await call_app(app, method, path, headers=preflight)
        assert not [name for name in response.headers if name.startswith("access-control-")]


def reflecting_endpoint(name: str, path: str, *, as_redirect: bool) -> Endpoint:
    """An endpoint that copies its input into a header, as a careless one would."""

    async def reflect(request: Request) -> Response:
        value = request.query_params["value"]
        return (
            see_other(f"https://good.example/?state={value}") if as_redirect else Response(headers={"X-Said": value})
        )

    return Endpoint(
        name=name,
        path=path,
        methods=("GET",),
        handler=reflect,
        dialect=Dialect.PLAIN,
        rate_class=RateClass.PUBLIC,
        hidden=True,
    )


@pytest.mark.parametrize("value", ["a%0d%0aSet-Cookie:x=y", "a%0aX:y", "a%0dX:y", "a%E5%98%8A%E5%98%8DX:y", "a%00"])
@pytest.mark.parametrize("path", ["/header", "/redirect"])
async def test_ht_13_no_reflected_value_splits_a_header(value: str, path: str) -> None:
    both = [
        reflecting_endpoint("h", "/header", as_redirect=False),
        reflecting_endpoint("r", "/redirect", as_redirect=True),
    ]
    request = f"GET {path}?value={value} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    async with serve_in_loop(SampleAsgiApp(endpoints=both).app(), clock=MovableClock()) as server:
        response = await send_request(server.port, request)
    assert response.status == (303 if path == "/redirect" else 500)
    names = {name for name, _ in response.headers}
    assert {"x-request-id", "content-security-policy"} <= names  # the 500 is a whole response of ours
    assert not {"set-cookie", "x"} & names
    for _, text in response.headers:
        assert not set(text) & set("\r\n\0")


@pytest.mark.parametrize("dialect", list(Dialect))
async def test_ht_14_an_internal_error_says_nothing_but_the_request_id(dialect: Dialect) -> None:
    error = ZeroDivisionError("SELECT secret FROM users -- /srv/gatehouse/app.py")
    app = SampleAsgiApp(endpoints=[raising_endpoint(error, dialect=dialect)]).app()
    response = await call_app(app, "POST", "/fails")
    assert response.status == 500
    text = response.body.decode()
    for internal in ("SELECT", "ZeroDivision", "Traceback", ".py", "secret"):
        assert internal not in text
    if dialect in {Dialect.PAGE, Dialect.PLAIN, Dialect.GAME}:
        assert response.headers["x-request-id"] in text
    assert response.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("dialect", list(Dialect))
async def test_ht_14_an_unreachable_database_is_a_503_with_a_time_to_come_back(dialect: Dialect) -> None:
    error = Unavailable("connection to postgresql://gatehouse:hunter2@10.0.0.7 refused")
    response = await call_app(
        SampleAsgiApp(endpoints=[raising_endpoint(error, dialect=dialect)]).app(), "GET", "/fails"
    )
    assert (response.status, response.headers["retry-after"]) == (503, "5")
    assert "10.0.0.7" not in response.body.decode()


@pytest.fixture
def log_stream() -> Iterator[LogStream]:
    with capture_logs() as stream:
        yield stream


@pytest.mark.parametrize(
    "name", ['root\n{"event":"forged"}', "\x1b[2J\x1b[31mroot", "\u2028\u202eroot", "x" * 1_000_000]
)
async def test_ht_15_what_a_caller_sent_stays_within_one_bounded_line(log_stream: LogStream, name: str) -> None:
    app = SampleAsgiApp(endpoints=[raising_endpoint(BadInput(f"login {name} is taken"))]).app()
    await call_app(app, "POST", "/fails")
    lines = log_stream.getvalue().splitlines(keepends=True)
    assert [msgspec.json.decode(line)["event"] for line in lines] == ["refused", "request"]
    for line in lines:
        assert len(line) < 2_000
        assert line.decode().rstrip("\n").isprintable()


async def test_ht_17_no_caller_can_make_the_figures_grow() -> None:
    asgi_app = SampleAsgiApp()
    asgi_app.endpoints.append(raising_endpoint(BadInput("x"), name="fails"))
    app = asgi_app.app()

    async def series_after(requests: range) -> int:
        for number in requests:
            await call_app(app, "GET", f"/path/{number}?client_id={number}", client=f"192.0.2.{number % 250}")
            await call_app(app, f"VERB{number}", "/api/permissions/roles")
            await call_app(app, "GET", f"/api/permissions/application/publicKey/{number}")
            await call_app(app, "POST", "/fails", headers=[("User-Agent", f"agent {number}")])
        return len(metrics_text(asgi_app.metrics).splitlines())

    assert await series_after(range(1)) == await series_after(range(1, 300))


async def test_ht_17_figures_and_details_are_not_public() -> None:
    readiness = Readiness({}, clock=MovableClock())
    health = HealthEndpoints(
        readiness=readiness, metrics=Metrics([]), details_allowed=allow_bearer("operations-token")
    )
    app = SampleAsgiApp(endpoints=health.endpoints()).app()
    assert (await call_app(app, "GET", "/metrics")).status == 401
    assert (await call_app(app, "GET", "/readyz")).json() == {"status": "ok"}


@pytest.mark.parametrize("path", JSON_PATHS)
@pytest.mark.parametrize("body", [b"{}", b"<script>alert(1)</script>", b'{"<script>":1}'])
async def test_ht_21_json_answers_are_json_and_are_not_sniffed(app: ASGIApp, path: str, body: bytes) -> None:
    response = await call_app_with_json(app, path, body)
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert isinstance(response.json(), dict)


SC_15 = {
    "duplicate": b'{"grant_type":"a","action":"get","application_id":1,"x":1,"x":2}',
    "duplicate inside": b'{"data":{"name":"a","name":"b"}}',
    "nan": b'{"app_id":NaN}',
    "infinity": b'{"app_id":-Infinity}',
    "huge float": b'{"app_id":1e999}',
    "huge integer": b'{"app_id":' + b"9" * 5_000 + b"}",
    "beyond int64": b'{"app_id":9223372036854775808}',
    "lone surrogate": b'{"factor":"\\ud83d","code":"\\ud83d"}',
    "lone surrogate as name": b'{"\\udc00":1}',
    "nul": b'{"factor":"a\\u0000","code":"\\u0000"}',
    "raw nul": b'{"factor":"a\x00"}',
    "utf-16": '{"factor":"a"}'.encode("utf-16"),
    "utf-16 without mark": '{"factor":"a"}'.encode("utf-16-be"),
    "utf-32": '{"factor":"a"}'.encode("utf-32"),
    "byte order mark": b"\xef\xbb\xbf{}",
    "latin-1": '{"factor":"é"}'.encode("latin-1"),
}


@pytest.mark.parametrize("path", JSON_PATHS)
@pytest.mark.parametrize("case", SC_15)
async def test_sc_15_json_with_more_than_one_meaning_is_400_everywhere(app: ASGIApp, path: str, case: str) -> None:
    response = await call_app_with_json(app, path, SC_15[case])
    assert response.status == 400
    assert "error" in response.json()
