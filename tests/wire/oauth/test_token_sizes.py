"""Tokens of maximal size, issued and accepted by the running service (TK-31, R2)."""

from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec.structs import replace

from gatehouse.accounts.field_checks import MAX_CUSTOM_TAG_BYTES
from gatehouse.accounts.model import User
from gatehouse.oauth.model import ClaimContent, ClaimSource
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.rules import ROOT
from gatehouse.storage.accounts.users import update_user
from gatehouse.tokens.claim_sizes import MAX_ID_TOKEN, MAX_ISSUED_TOKEN
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.oauth import RelyingPartyClient, a_relying_party, an_oidc_client, claims_of, success_body
from tests.support.permission_builders import a_role, create_application, holdings_with, set_fields
from tests.support.service import RunningService
from tests.support.studio import FACTOR, Studio, a_studio, bearer_headers, create_administrator, own_record

LOGIN: Final = "/proxy/api/login"
LONGEST_ID: Final = "c" * 64
NONCE: Final = '"' * 1_024
NICK: Final = "🙂" * 64
TAGS: Final = frozenset(f"{number:04d}{'t' * 57}" for number in range(14))  # 14 x 61, and commas: 867 bytes
RANGES: Final = [f"fc00:1111:2222:3333:4444:5555:6666:{number:x}/128" for number in range(7_000, 7_032)]


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


@pytest.fixture
async def long_anna(service: RunningService, anna: User) -> User:
    """Anna with every claim as long as it may be."""
    login = f"{'a' * 64}@{'b' * 61}.{'b' * 61}.{'b' * 61}.abc"
    long = replace(anna, nick=NICK, tags=TAGS, login=login, email_verified=True)
    await service.services.storage.runner.write(partial(update_user, long))
    return await service.services.storage.accounts.user(anna.user_id)


async def with_rules(service: RunningService, user: User, count: int) -> Application:
    """An application in which the person has that many rules."""
    rules = {f"rule_{number:04d}_with_a_rather_long_name": {"value": True} for number in range(count)}
    role = a_role("many", meta={"private_data": {"section": rules}})
    application = await create_application(service.services.storage, role, name=f"Large {count}")
    await service.services.storage.user_records.edit_record(
        application.application_id,
        user.user_id,
        set_fields(scopes={ROOT: holdings_with("many")}),
        service.clock.now(),
    )
    return application


def largest_key() -> str:
    """An RSA key of 8192 bits as PEM with the longest line ends, without a known private half."""
    numbers = RSAPublicNumbers(65_537, (1 << 8_192) - 1)
    pem = numbers.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return pem.replace("\n", "\r\n")


async def log_in(service: RunningService, user: User, **fields: Any) -> dict[str, Any]:
    response = await service.client.post(
        LOGIN, json={"login": user.login, "password": PASSWORD, "factor": FACTOR, **fields}
    )
    assert response.status_code == 200, response.text
    data: dict[str, Any] = response.json()
    assert data["status"] == "OK", data
    return data


async def expect_accepted_everywhere(studio: Studio, jwt: str) -> None:
    """Whether the service accepts its own user JWT everywhere."""
    headers = bearer_headers(jwt, Factor=FACTOR)
    await studio.expect_ok("user/info", {}, headers)
    await studio.expect_ok("meta/data", own_record(studio.shop), headers)
    success_body(
        await studio.service.client.post("/proxy/oauth/exchange", headers={"Authorization": f"Bearer {jwt}"})
    )
    if "fip" in claims_of(jwt):
        return  # the owner's address is not checked with an access key
    key = await studio.access_key()
    narrowed = (await studio.expect_ok("exchangeJwt", {"jwt": jwt, "factor": FACTOR}, bearer_headers(key)))["jwt"]
    assert len(narrowed) <= MAX_ISSUED_TOKEN
    await studio.expect_ok("meta/data", own_record(studio.shop), bearer_headers(narrowed, Factor=FACTOR))


@pytest.mark.parametrize("count", [10, 80, 110, 800])
async def test_tk_31_a_user_jwt_with_many_rules_is_taken_by_the_service_itself(
    studio: Studio, long_anna: User, count: int
) -> None:
    service = studio.service
    large = await with_rules(service, long_anna, count)
    jwt = (await log_in(service, long_anna, app_id=large.application_id))["jwt"]
    claims = claims_of(jwt)
    assert len(jwt) <= MAX_ISSUED_TOKEN
    assert (len(claims.get("perm", [])), claims.get("perm_omitted", False)) == (
        (count, False) if count < 100 else (0, True)
    )
    assert ("perm" in claims) == ("perm_exp" in claims) == (count < 100)
    assert claims["app_perm"] == large.application_id
    await expect_accepted_everywhere(studio, jwt)
    ask = own_record(large) | {"data": {"type": "list_short"}}
    answer = await studio.expect_ok("meta/data", ask, bearer_headers(jwt, Factor=FACTOR))
    assert len(answer["data"]) == count, "omitted claims can be queried"


@pytest.mark.parametrize("count", [1, 60, 800])
async def test_tk_31_a_user_jwt_at_every_limit_at_once_is_taken_by_the_service_itself(
    studio: Studio, long_anna: User, count: int
) -> None:
    service = studio.service
    large = await with_rules(service, long_anna, count)
    login = {
        "app_id": large.application_id,
        "jwt_public_key": largest_key(),
        "fixed_ips": RANGES,
        "fixed_ip": "1",
    }
    jwt = (await log_in(service, long_anna, **login))["jwt"]
    claims = claims_of(jwt)
    assert len(jwt) <= MAX_ISSUED_TOKEN
    assert (claims["pub_key"], len(claims["fip"]), claims["nick"]) == (largest_key(), 33, NICK)
    assert set(claims["tgs"].split(",")) >= TAGS
    assert ("perm" in claims) != claims.get("perm_omitted", False)
    await expect_accepted_everywhere(studio, jwt)


async def test_tk_31_an_exchanged_jwt_of_an_application_keeps_what_was_said_of_perm(
    studio: Studio, long_anna: User
) -> None:
    large = await with_rules(studio.service, long_anna, 800)
    jwt = (await log_in(studio.service, long_anna, app_id=large.application_id))["jwt"]
    admin = await create_administrator(studio)
    ask = {"action": "save", "application_id": large.application_id, "data": {}}
    own = (await studio.expect_ok("accessKey", ask, admin.headers))["data"]["hash"]
    for key, has_perm in ((own, True), (await studio.access_key(), False)):
        claims = claims_of((await studio.expect_ok("exchangeJwt", {"jwt": jwt}, bearer_headers(key)))["jwt"])
        assert ("perm_omitted" in claims, "app_perm" in claims) == (has_perm, has_perm)


@pytest.mark.parametrize("path", [LOGIN, "/proxy/api/gameSession/getGsid"])
async def test_tk_31_a_key_is_bounded_as_it_is_written(service: RunningService, anna: User, path: str) -> None:
    credentials = {"login": anna.login, "password": PASSWORD, "factor": FACTOR}
    padded = largest_key().replace("\r\n", "\r\n" + " " * 20)
    response = await service.client.post(path, json={"jwt_public_key": padded, **credentials})
    assert (response.status_code, response.json()["status"]) == (400, "ERROR")
    assert "jwt_public_key" in response.json()["error"]


async def test_tk_31_tags_are_bounded_where_they_are_saved(studio: Studio, anna: User) -> None:
    admin = (await create_administrator(studio)).headers
    for tag, status in (("ä" * 32, 400), ("a" * 32, 200)):
        tags = [f"{number:02d}{tag}" for number in range(25)]
        response = await studio.post("user/tags", {"data": {"user_id": anna.user_id, "tags": tags}}, admin)
        assert response.status_code == status, response.text
    assert f"limited to {MAX_CUSTOM_TAG_BYTES} bytes" in await studio.expect_error(
        400, "user/tags", {"data": {"user_id": anna.user_id, "tags": ["b" * 60 + str(n) for n in range(99)]}}, admin
    )


async def test_tk_31_stored_tags_that_are_too_long_are_left_out_and_the_reader_is_told(
    studio: Studio, anna: User, web: RelyingPartyClient
) -> None:
    """As they were stored before they had a limit."""
    service = studio.service
    many = replace(anna, tags=frozenset(f"{number:03d}{'t' * 60}" for number in range(100)))
    await service.services.storage.runner.write(partial(update_user, many))
    data = await log_in(service, many)
    assert len(data["tags"]) > 6_000, "the login data contains them"
    claims = claims_of(data["jwt"])
    assert (claims["tgs"], claims["tgs_omitted"]) == ("", True)
    await expect_accepted_everywhere(studio, data["jwt"])
    tokens = await web.tokens(await web.issue_code(many))
    exchanged = success_body(
        await service.client.post(
            "/proxy/oauth/exchangeToken", headers={"Authorization": f"Bearer {tokens['access_token']}"}
        )
    )["token"]
    assert (claims_of(exchanged)["tgs"], claims_of(exchanged)["tgs_omitted"]) == ("", True)
    await studio.expect_ok("user/info", {}, bearer_headers(exchanged, Service_Jwt=await studio.service_jwt()))


async def test_tk_31_an_id_token_at_its_limits_fits_into_an_address_and_says_what_is_missing(
    service: RunningService, long_anna: User, browser_client: HttpBrowser
) -> None:
    large = (await with_rules(service, long_anna, 800)).application_id
    claims = {
        name: ClaimSource(application_id=large, told=ClaimContent(name)) for name in ("rules", "roles", "groups")
    }
    client = await an_oidc_client(
        service,
        LONGEST_ID,
        claims=claims,
        claims_in_id_token=True,
        backchannel_logout_uri="https://shop.example/o",
    )
    code = client.code_from(await client.walk_authorize(browser_client, long_anna.login or "", nonce=NONCE))
    tokens = await client.tokens(code)
    id_claims = claims_of(tokens["id_token"])
    assert len(tokens["id_token"]) <= MAX_ID_TOKEN
    assert (id_claims["nonce"], id_claims["nickname"], id_claims["email"]) == (NONCE, NICK, long_anna.login)
    assert (id_claims["roles"], id_claims["groups"], "rules" in id_claims, id_claims["claims_omitted"]) == (
        ["many"],
        [],
        False,
        ["rules"],
    )
    body = success_body(await client.userinfo(tokens["access_token"]))
    assert (len(body["rules"]), body["roles"]) == (800, ["many"])

    assert len(tokens["refresh_token"]) <= MAX_ISSUED_TOKEN
    again = success_body(await client.refresh(tokens["refresh_token"]))
    assert claims_of(again["id_token"])["nonce"] == NONCE
    hint = urlencode({"id_token_hint": again["id_token"], "state": "s" * 1_000})
    left = await browser_client.get(f"/proxy/oauth/logout?{hint}")
    assert (left.status_code, "You're signed out" in left.text) == (200, True)


async def test_tk_31_an_id_token_with_room_for_everything_says_nothing_of_it(
    service: RunningService, anna: User
) -> None:
    few = (await with_rules(service, anna, 3)).application_id
    client = await an_oidc_client(service, claims={"rules": ClaimSource(application_id=few, told=ClaimContent.RULES)})
    claims = claims_of((await client.tokens(await client.issue_code(anna)))["id_token"])
    assert (len(claims["rules"]), "claims_omitted" in claims) == (3, False)


async def test_tk_31_a_nonce_is_bounded_as_the_token_writes_it(
    signed_in_browser: HttpBrowser, web: RelyingPartyClient
) -> None:
    for nonce, fits in ((NONCE, True), (f"{NONCE}x", False), ("🙂" * 512, True), ("🙂" * 513, False)):
        location = (await signed_in_browser.get(web.authorize_path(nonce=nonce))).headers["location"]
        assert ("code=" in location, "error=invalid_request" in location) == (fits, not fits)


async def test_tk_31_an_exchanged_jwt_at_its_limits_is_taken(studio: Studio, long_anna: User) -> None:
    client = await a_relying_party(
        studio.service,
        LONGEST_ID,
        redirect_hosts=("shop.example",),
        first_party=True,
        application_id=studio.shop.application_id,
    )
    tokens = await client.tokens(await client.issue_code(long_anna))
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    jwt = success_body(await studio.service.client.post("/proxy/oauth/exchangeToken", headers=headers))["token"]
    assert len(jwt) <= MAX_ISSUED_TOKEN
    assert set(claims_of(jwt)["tgs"].split(",")) >= TAGS
    vouched = bearer_headers(jwt, Service_Jwt=await studio.service_jwt())
    await studio.expect_ok("meta/data", own_record(studio.shop), vouched)


async def test_tk_31_a_service_account_at_its_limits_has_a_jwt_that_is_taken(studio: Studio) -> None:
    name, ranges = "🙂" * 64, [*RANGES[:31], "127.0.0.1/32"]
    for more, taken in (({"public_key": largest_key()}, False), ({}, True)):
        data = {"project_id": "mind_games", "name": name if taken else name[1:], "ip_ranges": ranges, **more}
        body = await studio.expect_ok("serviceAccount", {"action": "save", "data": data}, studio.owner.headers)
        jwt = body["data"]["jwt"]
        assert len(jwt) <= MAX_ISSUED_TOKEN
        if taken:  # the second one signs each of its requests with its key
            await studio.expect_ok("user/info", {}, bearer_headers(jwt))
