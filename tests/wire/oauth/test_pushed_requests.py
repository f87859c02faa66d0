"""Pushed authorization requests (RFC 9126, R11): the client sends its request, the browser brings a reference."""

import asyncio
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.oauth.authorize.request import AuthorizeParameters
from gatehouse.oauth.model import Client
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.client_documents import run_document_server
from tests.support.oauth import (
    AUTHORIZE,
    REDIRECT,
    RelyingPartyClient,
    a_public_client,
    an_oidc_client,
    challenge_of,
    claims_of,
    native_proof,
    oauth_error,
    query_of,
)
from tests.support.service import RunningService, running_service
from tests.wire.oauth.authorize_responses import (
    LOGIN,
    flow_handle,
    is_error_page,
    redirect_error,
    redirect_parameters,
    wants_sign_in,
)

PAR: Final = "/proxy/oauth/par"
VERIFIER: Final = "v" * 43
PKCE: Final = {"code_challenge": challenge_of(VERIFIER), "code_challenge_method": "S256"}


async def send_request(
    client: RelyingPartyClient, headers: dict[str, str] | None = None, **changes: str
) -> httpx2.Response:
    """Push a complete request; a field passed as "" is left out."""
    fields = client.authorize_fields(**{**PKCE, **changes})
    return await client.service.client.post(PAR, data=fields, headers=client.headers if headers is None else headers)


async def push(client: RelyingPartyClient, **changes: str) -> str:
    """Push a request, which must succeed; return the address for the browser."""
    answer = await send_request(client, **changes)
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert body.keys() == {"request_uri", "expires_in"}
    assert body["expires_in"] == 60
    return pushed_path(client.client.client_id, body["request_uri"])


def pushed_path(client_id: str, request_uri: str, **more: str) -> str:
    return f"{AUTHORIZE}?{urlencode({'client_id': client_id, 'request_uri': request_uri, **more})}"


async def test_a_pushed_request_signs_a_person_in_with_what_was_pushed(
    browser_client: HttpBrowser, oidc_client: RelyingPartyClient, anna: User
) -> None:
    path = await push(oidc_client, state="pushed", nonce="n-pushed", login_hint=LOGIN, ui_locales="de")
    sign_in = await browser_client.get(path)
    assert wants_sign_in(sign_in)
    page = await browser_client.follow()
    assert f'value="{LOGIN}"' in page.text
    assert page.headers["content-language"] == "de"
    answer = redirect_parameters(await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD))
    assert answer["state"] == "pushed"
    tokens = await oidc_client.tokens(answer["code"], code_verifier=VERIFIER)
    claims = claims_of(tokens["id_token"])
    assert (claims["sub"], claims["nonce"]) == (anna.user_id, "n-pushed")


async def test_az_38_only_client_id_and_request_uri_count_beside_a_pushed_request(
    signed_in_browser: HttpBrowser, oidc_client: RelyingPartyClient
) -> None:
    path = await push(oidc_client, state="pushed")
    outer = {"redirect_uri": "https://evil.example/", "state": "outer", "request": "x.y.z", "prompt": "none"}
    more = urlencode([*outer.items(), ("redirect_uri", REDIRECT), ("scope", ""), ("response_mode", "form_post")])
    answer = redirect_parameters(await signed_in_browser.get(f"{path}&{more}"))
    assert answer["state"] == "pushed"
    assert (await oidc_client.tokens(answer["code"], code_verifier=VERIFIER))["token_type"] == "Bearer"


async def test_a_browser_posts_a_pushed_request_and_gets_its_answer_as_a_form(
    signed_in_browser: HttpBrowser, app: RelyingPartyClient
) -> None:
    path = await push(app, response_mode="form_post", state="s" * 4_000)
    await signed_in_browser.client.post(AUTHORIZE, data=query_of(path))
    page = await signed_in_browser.get(path)
    assert f'action="{REDIRECT}"' in page.text
    assert "s" * 4_000 in page.text


@pytest.mark.both_databases
async def test_az_37_a_request_uri_of_another_client_is_refused_and_stays_valid_for_its_own(
    service: RunningService, signed_in_browser: HttpBrowser, oidc_client: RelyingPartyClient, web: RelyingPartyClient
) -> None:
    other = await an_oidc_client(service, "other")
    path = await push(oidc_client)
    request_uri = query_of(path)["request_uri"]
    stolen = [
        pushed_path(other.client.client_id, request_uri),
        pushed_path(
            other.client.client_id, request_uri, **other.authorize_fields(client_id="", redirect_uri=REDIRECT)
        ),
        pushed_path("unknown", request_uri),
        f"{AUTHORIZE}?{urlencode({'request_uri': request_uri})}",
        f"{path}&client_id={other.client.client_id}",
    ]
    for wrong in stolen:
        assert is_error_page(await signed_in_browser.get(wrong)), wrong
    # A client of profile native has none: the parameter is refused by name, as any other request_uri.
    native = web.authorize_path(request_uri=request_uri)
    assert redirect_error(await signed_in_browser.get(native)) == "request_uri_not_supported"
    assert "code" in redirect_parameters(await signed_in_browser.get(path))


async def test_az_38_a_request_uri_works_once_and_for_sixty_seconds(
    service: RunningService, signed_in_browser: HttpBrowser, oidc_client: RelyingPartyClient
) -> None:
    path, late, last = [await push(oidc_client) for _ in range(3)]
    answers = await asyncio.gather(*(signed_in_browser.client.get(path) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [303] + [400] * 5
    assert is_error_page(await signed_in_browser.get(path))
    for tampered in (f"{late}x", late[:-1], late.replace("request_uri=urn", "request_uri=URN")):
        assert "code" not in (await signed_in_browser.get(tampered)).headers.get("location", "")
    await service.clock.advance(59)
    assert "code" in redirect_parameters(await signed_in_browser.get(last))
    await service.clock.advance(1)
    assert is_error_page(await signed_in_browser.get(late))


async def test_az_38_a_refusal_takes_a_request_and_a_look_at_it_does_not(
    browser_client: HttpBrowser, oidc_client: RelyingPartyClient, anna: User
) -> None:
    silent, asked = await push(oidc_client, prompt="none"), await push(oidc_client)
    assert redirect_error(await browser_client.get(silent)) == "login_required"
    await browser_client.sign_in(anna.login or "")
    assert is_error_page(await browser_client.get(silent))
    assert (await browser_client.client.head(asked)).status_code == 200
    assert (await browser_client.client.get(asked, headers={"Sec-Purpose": "prefetch"})).status_code == 503
    assert "code" in redirect_parameters(await browser_client.get(asked))


@pytest.mark.usefixtures("anna")
async def test_a_sign_in_of_a_pushed_request_goes_on_for_ten_minutes_and_cannot_start_again(
    service: RunningService, browser_client: HttpBrowser, oidc_client: RelyingPartyClient
) -> None:
    sign_in = await browser_client.get(await push(oidc_client))
    assert "." not in flow_handle(sign_in)  # it carries no request
    await browser_client.follow()
    await service.clock.advance(599)
    assert "code" in redirect_parameters(await browser_client.post("/sign-in", login=LOGIN, password=PASSWORD))
    await browser_client.client.post("/sign-out")
    other = HttpBrowser(service)
    await other.get(await push(oidc_client))
    form = await other.follow()
    assert form.status_code == 200
    await service.clock.advance(600)
    expired = await other.post("/sign-in", login=LOGIN, password=PASSWORD)
    assert AUTHORIZE not in expired.text
    await other.client.aclose()


async def test_a_push_is_refused_with_the_error_of_its_mistake(
    service: RunningService, oidc_client: RelyingPartyClient, app: RelyingPartyClient, web: RelyingPartyClient
) -> None:
    for changes, error in (
        ({"redirect_uri": "https://evil.example/callback"}, "invalid_request"),
        ({"redirect_uri": ""}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "email"}, "invalid_scope"),
        ({"resource": "https://unknown.example/"}, "invalid_target"),
        ({"request": "e30.e30.e30"}, "request_not_supported"),
        ({"request_uri": "https://shop.example/request.jwt"}, "invalid_request"),
        ({"claims": "{"}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"client_id": "app"}, "invalid_request"),
        ({"client_secret": "another"}, "invalid_request"),
    ):
        answer = await send_request(oidc_client, **changes)
        assert oauth_error(answer) == (400, error), (changes, answer.text)
    assert oauth_error(await send_request(oidc_client, {})) == (401, "invalid_client")
    assert oauth_error(await send_request(oidc_client, {"Authorization": "Basic c2hlbGY6d3Jvbmc="}))[0] == 401
    assert oauth_error(await send_request(app, client_secret="any")) == (401, "invalid_client")
    assert oauth_error(await send_request(app, client_id="unknown")) == (401, "invalid_client")
    proof = {"Authorization": f"Bearer {native_proof(REDIRECT, web.secret)}"}
    assert oauth_error(await send_request(web, proof))[1] == "invalid_client"
    native = await send_request(web, {}, client_secret=web.secret)
    assert oauth_error(native) == (400, "unauthorized_client")
    fields = oidc_client.authorize_fields(**PKCE)
    post = service.client.post
    assert oauth_error(await post(f"{PAR}?scope=openid", data=fields, headers=oidc_client.headers))[0] == 400
    assert oauth_error(await post(PAR, json=fields, headers=oidc_client.headers)) == (400, "invalid_request")
    twice = urlencode([*fields.items(), ("scope", "openid")])
    form = {**oidc_client.headers, "Content-Type": "application/x-www-form-urlencoded"}
    assert oauth_error(await post(PAR, content=twice, headers=form)) == (400, "invalid_request")
    assert (await service.client.get(PAR)).status_code == 405


async def test_az_39_pushed_requests_are_bounded_in_size_and_number(
    service: RunningService, oidc_client: RelyingPartyClient
) -> None:
    empty = len(urlencode(oidc_client.authorize_fields(**PKCE, state="", login_hint="x")))
    room = 8 * 1024 - empty
    assert (await send_request(oidc_client, state="", login_hint="x" * (room + 1))).status_code == 201
    assert (await send_request(oidc_client, state="", login_hint="x" * (room + 2))).status_code == 413
    request = await service.services.oauth.authorize.read_request(*await parameters_of(oidc_client))
    pushed = service.services.oauth.authorize.pushed_requests
    for _ in range(100 - 2):  # R11: at most 100 are open
        await pushed.add(oidc_client.client, request, source="127.0.0.1")
    path = await push(oidc_client)
    full = await send_request(oidc_client)
    assert oauth_error(full) == (429, "temporarily_unavailable")
    assert full.headers["retry-after"] == "60"
    assert (await send_request(await an_oidc_client(service, "other"))).status_code == 201
    browser = HttpBrowser(service)
    assert wants_sign_in(await browser.get(path))
    await browser.client.aclose()
    await push(oidc_client)
    await service.clock.advance(60)
    await push(oidc_client)


async def parameters_of(client: RelyingPartyClient) -> tuple[AuthorizeParameters, Client]:
    return AuthorizeParameters(client.authorize_fields(**PKCE).items()), client.client


async def test_az_40_a_client_that_must_push_gets_no_sign_in_from_a_browser_alone(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    strict = await an_oidc_client(service, "strict", require_pushed_authorization_requests=True)
    plain = strict.authorize_path(**PKCE)
    for wrong in (plain, f"{plain}&request_uri="):
        assert redirect_error(await signed_in_browser.get(wrong)) == "invalid_request"
    foreign = strict.authorize_path(**PKCE, request_uri="https://shop.example/request.jwt")
    assert redirect_error(await signed_in_browser.get(foreign)) == "request_uri_not_supported"
    assert "code" in redirect_parameters(await signed_in_browser.get(await push(strict)))


async def test_a_pushed_request_ends_with_its_client_and_its_redirect_uri(
    service: RunningService, signed_in_browser: HttpBrowser, oidc_client: RelyingPartyClient
) -> None:
    commands = service.services.oauth.clients.commands
    removed, rotated = [await an_oidc_client(service, name) for name in ("removed", "rotated")]
    moved, gone, kept = await push(oidc_client), await push(removed), await push(rotated)
    await commands.remove("removed", ORIGIN)
    await commands.rotate_secret("rotated", ORIGIN)
    assert "code" in redirect_parameters(await signed_in_browser.get(kept))
    await commands.change(replace(oidc_client.client, redirect_uris=("https://shop.example/new",)), ORIGIN)
    for path in (moved, gone):
        assert is_error_page(await signed_in_browser.get(path))


async def test_a_client_pushes_with_an_assertion_for_this_address(
    service: RunningService, signed_in_browser: HttpBrowser
) -> None:
    key = ECKey.generate_key("P-256")
    client = await an_oidc_client(service, "signer", jwks={"keys": [key.as_dict(private=False)]})
    now = service.clock.now()
    claims = {"iss": "signer", "sub": "signer", "aud": f"{service.base_url}{PAR}", "exp": now + 60, "jti": "j1"}
    assertion = {
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": jwt.encode({"alg": "ES256"}, claims, key),
    }
    answer = await send_request(client, {}, **assertion)
    assert answer.status_code == 201, answer.text
    assert oauth_error(await send_request(client, {}, **assertion)) == (401, "invalid_client")
    path = pushed_path("signer", answer.json()["request_uri"])
    assert "code" in redirect_parameters(await signed_in_browser.get(path))


async def test_a_client_with_a_document_is_first_seen_when_it_pushes(installed_url: str, tmp_path: Path) -> None:
    async with (
        run_document_server(tmp_path) as documents,
        running_service(installed_url, tmp_path, environment=documents.settings) as service,
    ):
        client_id = documents.publish()
        fields = {"client_id": client_id, "response_type": "code", "scope": "openid", **PKCE}
        fields["redirect_uri"] = "http://127.0.0.1:9999/callback"
        answer = await service.client.post(PAR, data=fields)
        assert answer.status_code == 201, answer.text
        browser = HttpBrowser(service)
        assert wants_sign_in(await browser.get(pushed_path(client_id, answer.json()["request_uri"])))
        await browser.client.aclose()
        unknown = {**fields, "client_id": documents.url("/unknown.json")}
        assert oauth_error(await service.client.post(PAR, data=unknown)) == (401, "invalid_client")


async def test_az_38_a_request_pushed_at_one_node_is_used_at_another_once(
    installed_postgres_url: str, tmp_path: Path
) -> None:
    same = {"GATEHOUSE__SERVER__BASE_URL": "http://localhost:8080"}
    async with (
        running_service(installed_postgres_url, tmp_path, environment=same) as here,
        running_service(installed_postgres_url, tmp_path, environment=same, clock=here.clock) as there,
    ):
        client = await a_public_client(here)
        path = await push(client)
        browsers = [HttpBrowser(node) for node in (here, there) for _ in range(3)]
        answers = await asyncio.gather(*(browser.get(path) for browser in browsers))
        assert sorted(answer.status_code for answer in answers) == [303] + [400] * 5
        elsewhere = HttpBrowser(there)
        assert wants_sign_in(await elsewhere.get(await push(client)))
        for browser in (*browsers, elsewhere):
            await browser.client.aclose()


async def test_discovery_announces_pushed_requests(service: RunningService) -> None:
    for path in ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"):
        document = (await service.client.get(path)).json()
        assert document["pushed_authorization_request_endpoint"] == f"{service.base_url}{PAR}"
        assert document["require_pushed_authorization_requests"] is False
        assert document["request_uri_parameter_supported"] is False  # of requests by reference to another server
