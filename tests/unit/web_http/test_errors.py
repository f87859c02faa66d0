from typing import ClassVar

import pytest
from starlette.types import Scope
from structlog.testing import capture_logs

from gatehouse.kernel.errors import (
    BadInput,
    Conflict,
    GatehouseError,
    Misconfigured,
    NotFound,
    Refused,
    TooMany,
    Unavailable,
)
from gatehouse.tokens.claims import ExpiredToken
from gatehouse.web.http.errors import (
    Dialect,
    ErrorRenderer,
    TooLarge,
    UnsupportedMediaType,
    dialect_for_path,
    oauth_description,
)
from tests.support.sample_asgi_app import (
    AppResponse,
    SampleAsgiApp,
    a_page,
    a_scope,
    call_app,
    raising_endpoint,
    receive_body,
)

SECRET = "hunter2: the private half"


class InvalidGrant(GatehouseError):
    code: ClassVar[str] = "invalid_grant"
    public = 'The "code" is invalid, expired or already used \\ \u2026'


class InvalidClient(GatehouseError):
    code: ClassVar[str] = "invalid_client"
    public = "The client is unknown or its proof is wrong."


class Violation(Refused):
    def __init__(self, record_id: str) -> None:
        super().__init__(SECRET)
        self.record_id = record_id


async def answer_to(error: Exception, dialect: Dialect, **options: bool) -> AppResponse:
    errors = ErrorRenderer(render_error=a_page, permissions_always_200=options.get("always_200", False))
    sample_app = SampleAsgiApp(endpoints=[raising_endpoint(error, dialect=dialect)], errors=errors)
    return await call_app(sample_app.app(), "POST", "/fails")


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (BadInput("user_limit: expected int, got str"), 400, "user_limit: expected int, got str"),
        (ExpiredToken(SECRET), 401, "The token is invalid."),
        (Refused(SECRET), 403, "You are not allowed to do this."),
        (NotFound(SECRET), 404, "Not found."),
        (Conflict(SECRET), 409, "The request conflicts with the current state."),
        (TooLarge("more than 10000 names"), 413, "more than 10000 names"),
        (
            UnsupportedMediaType("the Content-Type must be application/json"),
            415,
            "the Content-Type must be application/json",
        ),
        (TooMany(7, SECRET), 429, "Too many requests."),
        (Misconfigured(SECRET), 500, "Something went wrong on our side."),
        (GatehouseError(SECRET), 500, "Something went wrong on our side."),
        (RuntimeError(SECRET), 500, "Something went wrong on our side."),
        (Unavailable(SECRET), 503, "The service is temporarily unavailable."),
    ],
)
async def test_each_kind_has_its_status_and_shows_only_its_public_half(
    error: Exception, status: int, words: str
) -> None:
    response = await answer_to(error, Dialect.PLAIN)
    assert response.status == status
    assert response.json() == {"status": "ERROR", "error": words, "request_id": response.headers["x-request-id"]}
    assert response.headers["cache-control"] == "no-store"
    assert "hunter2" not in response.body.decode()


async def test_a_caller_who_should_come_back_is_told_when() -> None:
    assert (await answer_to(TooMany(7), Dialect.PLAIN)).headers["retry-after"] == "7"
    assert (await answer_to(Unavailable(), Dialect.PLAIN)).headers["retry-after"] == "5"
    assert "retry-after" not in (await answer_to(Refused(), Dialect.PLAIN)).headers


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidGrant(SECRET), 400, "invalid_grant"),
        (InvalidClient(SECRET), 401, "invalid_client"),
        (ExpiredToken(SECRET), 401, "invalid_token"),
        (BadInput("unknown field <hunter2>"), 400, "invalid_request"),
        (UnsupportedMediaType("hunter2"), 400, "invalid_request"),
        (TooMany(1), 429, "temporarily_unavailable"),
        (Unavailable(), 503, "temporarily_unavailable"),
        (RuntimeError(SECRET), 500, "server_error"),
    ],
)
async def test_oauth_errors_have_a_code_and_echo_nothing(error: Exception, status: int, code: str) -> None:
    response = await answer_to(error, Dialect.OAUTH)
    assert response.status == status
    assert set(response.json()) == {"error", "error_description"}
    assert response.json()["error"] == code
    assert "hunter2" not in response.body.decode()
    assert ("www-authenticate" in response.headers) is (status == 401)


async def test_an_oauth_description_has_only_the_characters_it_may_have() -> None:
    response = await answer_to(InvalidGrant(), Dialect.OAUTH)
    assert response.json()["error_description"] == "The code is invalid, expired or already used  "
    assert oauth_description("a\n\x7fb\u00e9") == "ab"


async def test_the_challenge_speaks_the_scheme_the_client_tried() -> None:
    app = SampleAsgiApp(endpoints=[raising_endpoint(InvalidClient(), dialect=Dialect.OAUTH)]).app()
    basic = await call_app(app, "POST", "/fails", headers=[("Authorization", "basic eDp5")])
    bearer = await call_app(app, "POST", "/fails", headers=[("Authorization", "Bearer x")])
    assert basic.headers["www-authenticate"] == 'Basic realm="gatehouse"'
    assert bearer.headers["www-authenticate"] == 'Bearer realm="gatehouse", error="invalid_client"'


async def test_permission_errors_come_in_the_envelope() -> None:
    refusal = await answer_to(Refused(SECRET), Dialect.PERMISSIONS)
    assert (refusal.status, refusal.json()) == (403, {"status": "ERROR", "error": "You are not allowed to do this."})
    expired = await answer_to(ExpiredToken(SECRET), Dialect.PERMISSIONS)
    assert (expired.status, expired.json()) == (401, {"status": "ERROR", "error": "invalid token"})


async def test_old_clients_may_get_200_for_every_permission_error_and_for_nothing_else() -> None:
    permission = await answer_to(NotFound(), Dialect.PERMISSIONS, always_200=True)
    assert (permission.status, permission.json()["status"]) == (200, "ERROR")
    assert (await answer_to(NotFound(), Dialect.OAUTH, always_200=True)).status == 404


async def test_a_game_client_gets_a_record_id_and_no_reason() -> None:
    response = await answer_to(Violation("5eed"), Dialect.GAME)
    assert (response.status, response.json()) == (403, {"status": "ERROR", "error": "5eed"})


async def test_game_client_gets_the_request_id_without_an_error_record() -> None:
    response = await answer_to(RuntimeError(SECRET), Dialect.GAME)
    assert response.json() == {"status": "ERROR", "error": response.headers["x-request-id"]}


async def test_a_game_client_is_told_what_is_wrong_with_their_own_input() -> None:
    response = await answer_to(BadInput("app_id: expected an integer"), Dialect.GAME)
    assert (response.status, response.json()["error"]) == (400, "app_id: expected an integer")


async def test_a_person_gets_a_page() -> None:
    response = await answer_to(Refused(SECRET), Dialect.PAGE)
    reference = response.headers["x-request-id"]
    expected = f"<html>403|Not allowed|You are not allowed to do this.|{reference}</html>"
    assert (response.status, response.body.decode()) == (403, expected)
    unknown = await answer_to(NotFound(SECRET), Dialect.PAGE)
    assert (unknown.status, unknown.body.decode()) == (404, "<html>404|Page not found|Not found.|</html>")
    assert response.headers["content-type"] == "text/html; charset=utf-8"


async def test_a_broken_error_page_is_replaced_by_a_bare_one() -> None:
    def fail_to_render(status: int, title: str, message: str, request_id: str, scope: Scope) -> str:  # noqa: ARG001
        raise LookupError(SECRET)

    errors = ErrorRenderer(render_error=fail_to_render)
    error = BadInput("<script>alert(1)</script>")
    app = SampleAsgiApp(endpoints=[raising_endpoint(error, dialect=Dialect.PAGE)], errors=errors).app()
    response = await call_app(app, "GET", "/fails")
    assert response.status == 400
    assert b"&lt;script&gt;" in response.body
    assert b"<script>" not in response.body


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("/proxy/oauth/token", Dialect.OAUTH),
        ("/proxy/oauth", Dialect.OAUTH),
        ("/proxy/oauthx", Dialect.PLAIN),
        ("/proxy/api/gameSession/getGsid", Dialect.GAME),
        ("/proxy/api/login", Dialect.PLAIN),
        ("/api/permissions/roles", Dialect.PERMISSIONS),
        ("/api/permissionsx", Dialect.PLAIN),
        ("/healthz", Dialect.PLAIN),
        ("/metrics", Dialect.PLAIN),
        ("/openapi.json", Dialect.PLAIN),
        ("/", Dialect.PAGE),
        ("/console/people", Dialect.PAGE),
        ("//api/permissions", Dialect.PAGE),
    ],
)
def test_path_decides_the_dialect_before_routing(path: str, dialect: Dialect) -> None:
    assert dialect_for_path(path) is dialect


async def test_middleware_refuses_in_the_dialect_of_the_path() -> None:
    app = SampleAsgiApp().app()
    huge = [("Content-Length", "10000000000")]
    oauth = await call_app(app, "POST", "/proxy/oauth/token", headers=huge)
    assert (oauth.status, oauth.json()["error"]) == (413, "invalid_request")
    permissions = await call_app(app, "POST", "/api/permissions/roles", headers=huge)
    assert (permissions.status, permissions.json()["status"]) == (413, "ERROR")
    page = await call_app(app, "POST", "/anything", headers=[("Content-Encoding", "gzip")])
    assert (page.status, page.headers["content-type"]) == (415, "text/html; charset=utf-8")


async def test_a_refused_websocket_is_closed() -> None:
    sent = []

    async def send(message: object) -> None:
        sent.append(message)

    scope = {**a_scope(), "type": "websocket", "state": {}}
    await ErrorRenderer(render_error=a_page).refuse(413, scope, receive_body(b""), send)
    assert sent == [{"type": "websocket.close", "code": 1011, "reason": ""}]


async def test_the_private_half_is_in_the_log_only() -> None:
    with capture_logs() as lines:
        await answer_to(Refused(SECRET), Dialect.PLAIN)
        await answer_to(RuntimeError(SECRET), Dialect.PLAIN)
    refusal, failed = (line for line in lines if line["event"] in {"refused", "request failed"})
    assert (refusal["detail"], refusal["kind"], refusal["log_level"]) == (SECRET, "Refused", "info")
    assert (str(failed["exc_info"]), failed["log_level"]) == (SECRET, "error")
