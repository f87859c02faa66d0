"""HTTP attacks on the OAuth endpoints of the running service (checklist HT-08, HT-13, HT-17, HT-18)."""

import gc
import json
import tracemalloc
from collections.abc import AsyncIterator
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import urlencode

import httpx2
import pytest
from sqlalchemy import Table, func, select

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.every_table import metadata
from tests.adversarial.measuring import WHOLE
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.cpu_time import await_within_cpu_seconds
from tests.support.oauth import AUTHORIZE, TOKEN, a_native_client, an_oidc_client, base64url, basic_auth
from tests.support.raw_http import RawResponse, send_request
from tests.support.service import RunningService, running_service

OPERATOR: Final = "operations-token-of-some-length!"
FREE: Final = {"GATEHOUSE__RATES__ENABLED": "false", "GATEHOUSE__OPERATIONS__TOKEN": OPERATOR}
REVOKE: Final = "/proxy/oauth/token/revoke"
LOGOUT: Final = "/proxy/oauth/logout"
DEVICE: Final = "/proxy/oauth/device_authorization"
INTROSPECT: Final = "/proxy/oauth/introspect"
JSON_BODIES: Final = (TOKEN, REVOKE, "/proxy/oauth/revoke", INTROSPECT, DEVICE)


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(installed_url, tmp_path, environment=FREE) as running:
        yield running


@pytest.fixture
async def anna(service: RunningService) -> User:
    return await service.services.accounts.administration.create(
        login="anna@studio.example", nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )


# -- HT-08 ----------------------------------------------------------------------------------------------


async def test_ht_08_deeply_nested_json_is_refused_at_once_by_every_oauth_endpoint(service: RunningService) -> None:
    kind = {"Content-Type": "application/json"}
    for path in JSON_BODIES:
        for opening in (b"[", b'{"":', b'{"client_id":[', b'{"grant_type":{"a":'):
            levels = min(100_000, 255 * 1024 // len(opening))  # larger bodies are a separate row
            ask = partial(service.client.post, path, content=opening * levels, headers=kind)
            response = await await_within_cpu_seconds(0.05, ask)
            assert (response.status_code, response.json()["error"]) == (400, "invalid_request"), (path, opening)


# -- HT-13 ----------------------------------------------------------------------------------------------

SPLITS: Final = (
    "a\r\nSet-Cookie: x=y",
    "a\nX-Split: y",
    "a\rX-Split: y",
    "a\u560a\u560dX-Split: y",
    "a\x00X-Split: y",
)
FIELDS: Final = (
    *("state", "redirect_uri", "client_id", "scope", "nonce", "prompt", "login_hint", "ui_locales"),
    *("response_type", "response_mode", "acr_values", "claims", "id_token_hint", "max_age", "code_challenge"),
)


def is_whole(response: RawResponse) -> bool:
    """Whether the response has only our headers, without characters that a proxy could read as a line end."""
    ours = all(value.startswith("gh_") for name, value in response.headers if name == "set-cookie")
    split = any(name == "x-split" for name, _ in response.headers)
    clean = all(value.isascii() and value.isprintable() for _, value in response.headers)
    return ours and clean and not split


def request_for(target: bytes, *, cookie: str = "", method: bytes = b"GET", body: bytes = b"") -> bytes:
    lines = [method + b" " + target + b" HTTP/1.1", b"Host: localhost", b"Connection: close"]
    if cookie:
        lines.append(f"Cookie: {cookie}".encode())
    if method == b"POST":
        lines += [b"Content-Type: application/x-www-form-urlencoded", b"Content-Length: %d" % len(body)]
    return b"\r\n".join([*lines, b"", body])


@pytest.mark.parametrize("split", SPLITS)
async def test_ht_13_nothing_that_authorize_or_logout_reflect_splits_a_header(
    service: RunningService, anna: User, split: str
) -> None:
    port = port_of(service)
    bye = "https://shop.example/bye"
    oidc_client = await an_oidc_client(service, post_logout_uris=(bye,), explain_errors=True)
    browser_client = HttpBrowser(service)
    tokens = await oidc_client.tokens(
        oidc_client.code_from(await oidc_client.walk_authorize(browser_client, anna.login or ""))
    )
    cookie = "; ".join(f"{name}={value}" for name, value in browser_client.cookies.items())
    await browser_client.client.aclose()
    leaving = {"id_token_hint": tokens["id_token"], "post_logout_redirect_uri": bye, "client_id": "shelf"}
    requests: list[tuple[str, dict[str, str]]] = []
    for name in FIELDS:
        fields = oidc_client.authorize_fields()
        requests.append((AUTHORIZE, {**fields, name: fields.get(name, "") + split}))
    requests += [(LOGOUT, {**leaving, name: leaving.get(name, "") + split}) for name in (*leaving, "state")]
    requests += [("/device", {"user_code": split}), ("/sign-in/consent", {"interaction": split})]
    reflected = 0
    for path, fields in requests:
        query = urlencode(fields)
        for sent_cookie in ("", cookie) if path == AUTHORIZE else (cookie,):
            response = await send_request(port, request_for(f"{path}?{query}".encode(), cookie=sent_cookie))
            assert is_whole(response), (path, fields, response.headers)
            assert response.status < 500, (path, fields)
            reflected += response.status == 303
        if path != "/device":
            posted = await send_request(port, request_for(path.encode(), method=b"POST", body=query.encode()))
            assert is_whole(posted), (path, fields, posted.headers)
            assert posted.status < 500, (path, fields)
            reflected += posted.status == 303
    if "\x00" not in split:  # which no URL of ours may contain
        assert reflected > len(FIELDS), "most were redirected, with their value in the URL"


async def test_ht_13_a_raw_line_end_in_the_address_splits_nothing_either(service: RunningService) -> None:
    oidc_client = await an_oidc_client(service)
    for raw in (b"\r", b"\n", b"\r\n", b"\xe5\x98\x8a\xe5\x98\x8d", b"\x00", b"\x0b", b"\x85"):
        target = oidc_client.authorize_path().encode().replace(b"state=st", b"state=st" + raw + b"X-Split:y")
        response = await send_request(port_of(service), request_for(target))
        assert is_whole(response), (raw, response.headers)
        assert response.status in (303, 400, 505)


async def test_ht_13_no_error_of_a_client_splits_its_challenge(service: RunningService) -> None:
    names = ("client_id", "client_secret", "grant_type", "code", "redirect_uri", "refresh_token", "scope", "token")
    for path in JSON_BODIES:
        for name, split in product(names, SPLITS):
            body = urlencode({"grant_type": "refresh_token", name: split}).encode()
            response = await send_request(port_of(service), request_for(path.encode(), method=b"POST", body=body))
            assert is_whole(response), (path, name, response.headers)
            assert response.status in (400, 401, 429)


def port_of(service: RunningService) -> int:
    port = service.client.base_url.port
    assert port is not None
    return port


# -- HT-17, HT-18 ---------------------------------------------------------------------------------------


def long_name(what: str, number: int) -> str:
    """A name long enough to be noticed when it is stored."""
    return f"{what}-{number}".ljust(1_000, "x")


def forged_jwt(number: int) -> str:
    """A JWT with an unknown key."""
    header = {"alg": "RS256", "typ": "JWT", "kid": long_name("kid", number)}
    parts = (json.dumps(part).encode() for part in (header, {"sub": long_name("client", number)}))
    return ".".join([*map(base64url, parts), base64url(number.to_bytes(256, "big"))])


def access_token(number: int) -> str:
    return base64url(number.to_bytes(64, "big"))


class UnknownCaller:
    """Call every OAuth endpoint, each time as a different client with different tokens."""

    def __init__(self, service: RunningService) -> None:
        self._client = service.client

    async def ask(self, number: int) -> None:
        name = long_name("client", number)
        proved = {"Authorization": basic_auth(name, f"secret-{number}")}
        jwt, token = forged_jwt(number), access_token(number)
        assertion = {"client_assertion": jwt, "client_assertion_type": f"urn:{number}"}
        refresh = {"grant_type": "refresh_token", "refresh_token": jwt}
        query = {
            "client_id": name,
            "redirect_uri": f"https://{name}.example/",
            "state": name,
            "response_type": "code",
        }
        hint = {"id_token_hint": jwt, "post_logout_redirect_uri": f"https://{name}.example/"}
        for asking in (  # in turn: the number of open connections is not under test
            self._post(TOKEN, {"grant_type": "authorization_code", "code": token, "redirect_uri": name}, proved),
            self._post(TOKEN, {**refresh, "client_id": name}),
            self._post(TOKEN, {**refresh, **assertion}),
            self._post(TOKEN, refresh, {"Authorization": f"Bearer {token}"}),
            self._post(TOKEN, {"grant_type": f"grant-{number}"}, proved),
            self._post(REVOKE, {"client_id": name, "client_secret": name, "refresh_token": jwt}),
            self._post(INTROSPECT, {"token": token}, proved),
            self._post(DEVICE, {"client_id": name, "scope": "openid"}),
            self._client.get(AUTHORIZE, params=query),
            self._client.get(LOGOUT, params=hint),
            self._client.get("/proxy/oauth/userinfo", headers={"Authorization": f"Bearer {token}"}),
            self._post("/proxy/oauth/exchange", {}, {"Authorization": f"Bearer {jwt}"}),
            self._post("/proxy/oauth/exchangeToken", {}, {"Authorization": f"Bearer {token}"}),
            self._client.options(
                TOKEN, headers={"Origin": f"https://{name}.example", "Access-Control-Request-Method": "POST"}
            ),
        ):
            response = await asking
            assert response.status_code in (204, 400, 401, 403, 405, 429), (
                response.request.url,
                response.status_code,
            )

    async def _post(self, path: str, fields: dict[str, str], headers: Any = None) -> httpx2.Response:
        return await self._client.post(path, data=fields, headers=headers)


async def series(service: RunningService) -> int:
    response = await service.client.get("/metrics", headers={"Authorization": f"Bearer {OPERATOR}"})
    assert response.status_code == 200
    return len(response.text.splitlines())


async def rows_of(service: RunningService, table: Table) -> int:
    counted = Statement(lambda: select(func.count().label("found")).select_from(table))

    def verb() -> Verb[int]:
        return int((yield counted())[0].found)

    return await service.services.storage.runner.snapshot_read(verb)


async def rows(service: RunningService) -> dict[str, int]:
    return {str(table.name): await rows_of(service, table) for table in metadata.sorted_tables}


async def test_ht_17_figures_and_rows_do_not_grow_with_clients_and_tokens(service: RunningService) -> None:
    web = await a_native_client(service)
    unknown_caller = UnknownCaller(service)
    for number in range(30):  # until every endpoint has responded with 429
        await unknown_caller.ask(number)
    await series(service)
    before = await series(service), await rows(service)
    for number in range(1_000, 1_060):
        await unknown_caller.ask(number)
    assert (await series(service), await rows(service)) == before
    text = (await service.client.get("/metrics", headers={"Authorization": f"Bearer {OPERATOR}"})).text
    assert "client-10" not in text
    assert web.client.client_id not in [part for line in text.splitlines() for part in line.split('"')]


A_MILLION_MAY_TAKE: Final = 50 * 1024 * 1024
REQUESTS: Final = 14  # per unknown caller
WARM_UP: Final = 40
ROUNDS: Final = 5
UNKNOWN_CALLERS: Final = 20  # per round


@pytest.mark.skipif(not WHOLE, reason="takes long: make adversarial runs it")
async def test_ht_18_another_client_and_another_token_each_time_do_not_grow_memory(service: RunningService) -> None:
    """Count exactly what each request leaves in memory: for a million requests the sum stays below the bound.

    Caches that fill up or are cleared grow in jumps; what is kept per request shows in every round.
    """
    unknown_caller = UnknownCaller(service)
    rounds = [range(first, first + UNKNOWN_CALLERS) for first in range(1_000, 1_000 * ROUNDS + 1, 1_000)]
    tracemalloc.start()
    try:
        memory = [await memory_after(unknown_caller, service, numbers) for numbers in (range(WARM_UP), *rounds)]
    finally:
        tracemalloc.stop()
    grown = median(after - before for before, after in pairwise(memory))
    assert grown / (UNKNOWN_CALLERS * REQUESTS) * 1_000_000 < A_MILLION_MAY_TAKE, memory


async def memory_after(unknown_caller: UnknownCaller, service: RunningService, numbers: range) -> int:
    """The bytes of all live objects after the requests, when the timers of their connections are over."""
    for number in numbers:
        await unknown_caller.ask(number)
    await service.clock.advance(600)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
