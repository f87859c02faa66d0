"""An id_token for another back end, requested with a game session (R10): who gets it and who accepts it."""

import re
from typing import Any, Final

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet
from joserfc.jwt import JWTClaimsRegistry
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.model import TokenSettings
from gatehouse.permissions.model.application import Application
from tests.support.browser import HttpBrowser
from tests.support.builders import ORIGIN, a_record
from tests.support.game import (
    GET_GSID,
    Game,
    confirm_in_browser,
    poll_ended_session,
    register_game,
)
from tests.support.oauth import a_public_client, an_oidc_client, claims_of, header_of
from tests.support.permission_builders import create_application
from tests.support.service import RunningService
from tests.support.studio import a_studio, create_administrator

BACK_END: Final = "raiders-backend"
NONCE: Final = "n-0S6_WzA2Mj"
REFUSED: Final = "id_token_client: must be a client of the application, with game_id_token on"
HOUR: Final = 3_600
WEEK: Final = 7 * 86_400


@pytest.fixture
async def game_application(service: RunningService) -> Application:
    return await create_application(service.services.storage, name="Sky Raiders")


async def a_back_end(service: RunningService, application: Application, **fields: Any) -> None:
    """A client that game logins of the application get id_tokens for."""
    defaults = {
        "name": "Raiders back end",
        "application_id": application.application_id,
        "redirect_uris": (),
        "game_id_token": True,
        "claims_in_id_token": True,
    }
    await a_public_client(service, BACK_END, **(defaults | fields))


async def register_for(service: RunningService, application: Application, **fields: object) -> Game:
    wish = {"app_id": application.application_id, "id_token_client": BACK_END, "nonce": NONCE, **fields}
    return await register_game(service, **wish)


async def ask_for(service: RunningService, application: Application, **fields: object) -> httpx2.Response:
    wish = {"app_id": application.application_id, "id_token_client": BACK_END, "nonce": NONCE, **fields}
    return await service.client.post(GET_GSID, json=wish)


async def id_token_of(browser: HttpBrowser, game: Game) -> str:
    await confirm_in_browser(browser, game)
    body = (await game.poll()).json()
    assert body["status"] == "OK", body
    token: str = body["id_token"]
    return token


async def end_reason(service: RunningService, game: Game) -> str:
    body = (await poll_ended_session(game)).json()
    assert body["status"] == "ERROR", body
    return getattr(await service.services.storage.audit.find_record(body["error"]), "reason", "")


async def open_question(browser: HttpBrowser, game: Game) -> httpx2.Response:
    await browser.get(f"/?gsid={game.gsid}")
    return await browser.follow()


async def test_gt_01_the_login_data_contains_an_id_token_for_the_named_client(
    service: RunningService, browser_client: HttpBrowser, anna: User, game_application: Application
) -> None:
    await a_back_end(service, game_application, scopes=("openid", "offline_access", "profile"))
    game = await register_for(service, game_application, factor="pc")
    signed_in_at = service.clock.now()
    await browser_client.sign_in(anna.login or "")
    await service.clock.advance(60)
    await confirm_in_browser(browser_client, game)
    body = (await game.poll()).json()
    assert not {"refresh_token", "access_token", "code"} & body.keys()
    claims = claims_of(body["id_token"])
    assert (claims["sub"], claims["aud"], claims["nonce"]) == (anna.user_id, BACK_END, NONCE)
    assert (claims["auth_time"], claims["acr"], claims["amr"]) == (signed_in_at, "urn:gatehouse:1", ["pwd"])
    assert claims["nickname"] == "Anna"
    assert not {"at_hash", "sid", "email", "typ", "kid", "uid"} & claims.keys()
    assert "jwt" in body
    refused = await service.client.get(
        "/proxy/oauth/userinfo", headers={"Authorization": f"Bearer {body['id_token']}"}
    )
    assert refused.status_code == 401
    [record] = await service.services.storage.audit.newest_records(1, anna.user_id, AuditEvent.LOGGED_IN.value)
    assert record.details["client"] == BACK_END


async def test_the_id_token_is_signed_as_the_client_asks(
    service: RunningService, browser_client: HttpBrowser, anna: User, game_application: Application
) -> None:
    await a_back_end(service, game_application, token_settings=TokenSettings(id_token_alg=Algorithm.ES256))
    token = await id_token_of(browser_client, await register_for(service, game_application, nojwt="1"))
    assert header_of(token)["alg"] == "ES256"
    assert claims_of(token)["email"] == anna.login


async def test_gt_02_only_clients_of_the_same_application_with_the_switch_on_are_accepted(
    service: RunningService, game_application: Application
) -> None:
    other = await create_application(service.services.storage, name="Shop")
    await a_back_end(service, game_application)
    await an_oidc_client(service, "off", application_id=game_application.application_id)
    for wrong in (
        {"id_token_client": "off"},
        {"id_token_client": "unknown"},
        {"id_token_client": "no such form"},
        {"id_token_client": "https://app.example/client"},
        {"app_id": other.application_id},
        {"app_id": other.application_id, "gapp_id": game_application.application_id},
        {"app_id": 0},
    ):
        response = await ask_for(service, game_application, **wrong)
        assert (response.status_code, response.json()["error"]) == (400, REFUSED), wrong
    for wrong in ({"nonce": ""}, {"id_token_client": ""}):
        response = await ask_for(service, game_application, **wrong)
        assert (response.status_code, response.json()["error"]) == (400, "id_token_client and nonce: both or neither")
    response = await ask_for(service, game_application, nonce="n" * 2_049)
    assert (response.status_code, response.json()["error"]) == (400, "nonce: at most 2048 bytes")
    assert (await ask_for(service, game_application)).status_code == 200


@pytest.mark.both_databases
async def test_gt_03_a_third_party_client_gets_nothing_without_consent(
    service: RunningService, browser_client: HttpBrowser, anna: User, game_application: Application
) -> None:
    await a_back_end(service, game_application, first_party=False, scopes=("openid", "email"))
    game = await register_for(service, game_application)
    await browser_client.sign_in(anna.login or "")
    page = await open_question(browser_client, game)
    assert "Raiders back end" in page.text
    assert "your email address" in page.text
    assert '<input type="hidden" name="consent" value="1">' in page.text
    await browser_client.post("/sign-in/confirm", decision="confirm")  # from a page that did not ask
    assert (await browser_client.follow()).url.path == "/sign-in/confirm"
    await browser_client.post("/sign-in/confirm", decision="confirm", consent="1")
    body = (await game.poll()).json()
    assert claims_of(body["id_token"])["email"] == anna.login
    assert "Raiders back end" in (await browser_client.get("/account")).text

    again = await register_for(service, game_application)
    assert "Raiders back end" not in (await open_question(browser_client, again)).text
    await browser_client.post("/sign-in/confirm", decision="confirm")
    assert await service.services.storage.consents.withdraw_consent(
        anna.user_id, BACK_END, service.clock.now(), a_record(subject=anna.user_id)
    )
    assert (await poll_ended_session(again)).json()["status"] == "ERROR"


async def test_gt_03_scopes_that_the_client_gets_meanwhile_are_not_in_the_id_token(
    service: RunningService, browser_client: HttpBrowser, anna: User, game_application: Application
) -> None:
    await a_back_end(service, game_application, first_party=False, scopes=("openid",))
    game = await register_for(service, game_application)
    clients = service.services.oauth.clients.commands
    await clients.change(replace(await clients.get(BACK_END), scopes=("openid", "email")), ORIGIN)
    await browser_client.sign_in(anna.login or "")
    assert "your email address" not in (await open_question(browser_client, game)).text
    await browser_client.post("/sign-in/confirm", decision="confirm", consent="1")
    assert "email" not in claims_of((await game.poll()).json()["id_token"])


@pytest.mark.usefixtures("anna")
async def test_gt_04_a_client_that_is_switched_off_or_removed_ends_the_session(
    service: RunningService, browser_client: HttpBrowser, game_application: Application
) -> None:
    await a_back_end(service, game_application)
    clients = service.services.oauth.clients.commands
    before, after = [await register_for(service, game_application) for _ in range(2)]
    await confirm_in_browser(browser_client, after)
    await clients.change(
        replace(await clients.get(BACK_END), game_id_token=False, redirect_uris=("https://a.example/cb",)),
        ORIGIN,
    )
    reason = f"{BACK_END} gets no id_token of this application"
    assert await end_reason(service, after) == reason
    await open_question(browser_client, before)
    assert await end_reason(service, before) == reason
    await clients.remove(BACK_END, ORIGIN)
    assert (await ask_for(service, game_application)).status_code == 400


@pytest.mark.usefixtures("anna")
async def test_gt_04_login_rules_of_the_application_count(
    service: RunningService, browser_client: HttpBrowser
) -> None:
    closed = await create_application(
        service.services.storage, name="Closed", settings={"restricted_domains": ["other.example"]}
    )
    await a_back_end(service, closed)
    game = await register_for(service, closed)
    page = await confirm_in_browser(browser_client, game)
    assert page.url.path == "/game/denied"
    assert "id_token" not in (await poll_ended_session(game)).json()


async def test_gt_04_a_ban_after_the_confirmation_ends_the_session(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    studio = await a_studio(service)
    await a_back_end(service, studio.shop)
    game = await register_for(service, studio.shop)
    await confirm_in_browser(browser_client, game)
    ban = {"action": "save", "user_id": anna.user_id, "application_id": studio.shop.application_id}
    administrator = await create_administrator(studio)
    await studio.expect_ok("user/ban", {**ban, "data": {"public_text": "Cheating"}}, administrator.headers)
    body = (await poll_ended_session(game)).json()
    assert (body["status"], body["reason"], "id_token" in body) == ("ERROR", "banned", False)


# What the back ends check, as their documentation lists it (docs/guides/game-back-ends.md).


async def accepted_claims(service: RunningService, token: str, algorithms: list[str]) -> dict[str, Any]:
    """Verify the token as a back end does: by discovery and JWKS of the issuer, without redirects."""
    discovered = await service.client.get("/.well-known/openid-configuration")
    assert discovered.status_code == 200
    document = discovered.json()
    assert document["issuer"] == service.base_url
    assert set(algorithms) & set(document["id_token_signing_alg_values_supported"])
    header = header_of(token)
    assert header["alg"] in document["id_token_signing_alg_values_supported"]
    published = await service.client.get(document["jwks_uri"].removeprefix(service.base_url))
    assert published.status_code == 200
    keys = {key["kid"]: key for key in published.json()["keys"]}
    assert keys[header["kid"]]["alg"] == header["alg"]
    assert keys[header["kid"]]["use"] == "sig"
    read = jwt.decode(token, KeySet.import_key_set(published.json()), algorithms=algorithms)
    JWTClaimsRegistry(
        now=service.clock.now,
        iss={"essential": True, "value": document["issuer"]},
        aud={"essential": True, "value": BACK_END},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
    ).validate(read.claims)
    claims: dict[str, Any] = read.claims
    return claims


@pytest.mark.usefixtures("anna")
async def test_gt_05_back_ends_accept_the_id_token_by_the_checks_that_they_document(
    service: RunningService, browser_client: HttpBrowser, game_application: Application
) -> None:
    await a_back_end(service, game_application)
    token = await id_token_of(browser_client, await register_for(service, game_application))
    claims = await accepted_claims(service, token, ["RS256"])  # PlayFab, Epic Online Services, Unity
    assert claims["nonce"] == NONCE  # PlayFab, unless IgnoreNonce
    assert isinstance(claims["aud"], str)
    assert 0 < claims["exp"] - claims["iat"] <= HOUR
    assert service.clock.now() - claims["iat"] < WEEK  # Discord
    assert 1 <= len(claims["preferred_username"]) <= 32  # Discord: the display name
    assert header_of(token).keys() == {"alg", "kid", "typ"}
    assert re.fullmatch(r"[A-Za-z0-9_-]{6,128}", claims["sub"])  # Nakama: the custom ID
    assert len(token) < 8_192
