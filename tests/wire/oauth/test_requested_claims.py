"""How a person signed in (acr, amr), and claims that a client requests by name (R9)."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from gatehouse.accounts.model import SignInMethod, User
from gatehouse.accounts.second_factors.model import Factor
from gatehouse.accounts.session_model import PHONE_WITHOUT_PASSWORD
from gatehouse.audit.model import AuditOrigin
from gatehouse.oauth.acr import ACR_VALUES, ONE_FACTOR, PASSKEY, SECOND_FACTOR
from gatehouse.oauth.model import (
    APPLICATION_SCOPES,
    DEFAULT_SCOPES,
    SCOPES,
    ClaimContent,
    ClaimSource,
    ClientProfile,
)
from gatehouse.oauth.user_claims import EMAIL_CLAIMS, PROFILE_CLAIMS
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import users
from tests.support.browser import PASSWORD, AccountBrowser, HttpBrowser, totp_code
from tests.support.oauth import RelyingPartyClient, a_native_client, an_oidc_client, claims_of, success_body
from tests.support.permission_builders import create_application
from tests.support.service import RunningService
from tests.wire.oauth.authorize_responses import redirect_error, redirect_parameters, wants_sign_in


def requested(place: str, **claims: object) -> str:
    return json.dumps({place: claims})


def essential_acr(*values: str) -> str:
    return requested("id_token", acr={"essential": True, "values": list(values)})


async def open_session(
    service: RunningService, user: User, browser: HttpBrowser, auth: SignInMethod, second_factor: str = ""
) -> None:
    """Give the browser the session of a person who has signed in that way."""
    opened = await service.services.accounts.sessions.open(
        user, auth, second_factor=second_factor, origin=AuditOrigin(actor="test"), agent=""
    )
    browser.client.cookies.set("gh_session", opened.secret)


async def enable_email_code(service: RunningService, user: User) -> None:
    changed = Statement(lambda: users.update().where(users.c.user_id == user.user_id).values(email_code=True))

    def verb() -> Verb[None]:
        yield changed()

    await service.services.storage.runner.write(verb)


async def id_claims(client: RelyingPartyClient, location: str) -> dict[str, Any]:
    return claims_of((await client.tokens(client.code_from(location)))["id_token"])


@pytest.mark.parametrize(
    ("signed_in", "context"),
    [
        ((SignInMethod.LOGIN, ""), (ONE_FACTOR, ["pwd"])),
        ((SignInMethod.TWO_STEP, Factor.EMAIL), (SECOND_FACTOR, ["pwd", "otp", "mca", "mfa"])),
        ((SignInMethod.TWO_STEP, Factor.PHONE), (SECOND_FACTOR, ["pwd", "otp", "sms", "mca", "mfa"])),
        ((SignInMethod.TWO_STEP, PHONE_WITHOUT_PASSWORD), (SECOND_FACTOR, ["mfa"])),
        ((SignInMethod.TWO_STEP, Factor.PASSKEY), (PASSKEY, ["pwd", "pop", "user", "mfa"])),
        ((SignInMethod.TWO_STEP, ""), (SECOND_FACTOR, ["mfa"])),  # the first factor was no password
        ((SignInMethod.PASSKEY, ""), (PASSKEY, ["pop", "user", "mfa"])),
    ],
)
async def test_id_token_says_how_the_person_signed_in_also_after_a_refresh(
    service: RunningService,
    anna: User,
    browser_client: HttpBrowser,
    signed_in: tuple[SignInMethod, str],
    context: tuple[str, list[str]],
) -> None:
    oidc_client = await an_oidc_client(service)
    await open_session(service, anna, browser_client, *signed_in)
    signed_in_at = service.clock.now()
    await service.clock.advance(100)
    response = await browser_client.get(oidc_client.authorize_path())
    tokens = await oidc_client.tokens(oidc_client.code_from(response.headers["location"]))
    refreshed = success_body(await oidc_client.refresh(tokens["refresh_token"]))
    for token in (tokens["id_token"], refreshed["id_token"]):
        claims = claims_of(token)
        assert (claims["acr"], claims["amr"], claims["auth_time"]) == (*context, signed_in_at)


async def test_amr_names_the_second_factor_of_a_sign_in_and_of_a_reauthentication(
    service: RunningService, anna: User, browser_client: HttpBrowser
) -> None:
    client = await an_oidc_client(service, first_party=False)
    account_browser = AccountBrowser(service)
    await account_browser.sign_in_and_open_account(anna.login or "")
    secret, recovery_codes = await account_browser.set_up_totp(service)
    await service.clock.advance(3_600)
    await browser_client.get(client.authorize_path())
    await browser_client.follow()
    await browser_client.post("/sign-in", login=anna.login or "", password=PASSWORD)
    await browser_client.follow()
    await browser_client.post("/sign-in/factor", otp=totp_code(secret, service))
    await browser_client.follow()
    response = await browser_client.post("/sign-in/consent", decision="allow")
    assert (await id_claims(client, response.headers["location"]))["amr"] == ["pwd", "otp", "mfa"]

    await account_browser.post_with_csrf("/account/totp/remove")
    await account_browser.confirm(password=PASSWORD, otp=recovery_codes[0])
    response = await account_browser.get(client.authorize_path())
    assert (await id_claims(client, response.headers["location"]))["amr"] == ["pwd", "otp", "mfa"]
    await account_browser.client.aclose()


async def test_acr_values_ask_for_a_factor_that_the_person_has_and_otherwise_tell_what_was_reached(
    service: RunningService, anna: User, browser_client: HttpBrowser, oidc_client: RelyingPartyClient
) -> None:
    await open_session(service, anna, browser_client, SignInMethod.LOGIN)
    path = oidc_client.authorize_path(acr_values=f"urn:else {PASSKEY} {SECOND_FACTOR}")
    response = await browser_client.get(path)
    assert (await id_claims(oidc_client, response.headers["location"]))["acr"] == ONE_FACTOR

    await enable_email_code(service, anna)
    assert wants_sign_in(await browser_client.get(path))
    assert "code" in redirect_parameters(await browser_client.get(f"{path}&prompt=none"))
    await open_session(service, anna, browser_client, SignInMethod.TWO_STEP)
    response = await browser_client.get(path)
    assert (await id_claims(oidc_client, response.headers["location"]))["acr"] == SECOND_FACTOR


async def test_az_34_essential_acr_that_cannot_be_met_fails(
    service: RunningService, anna: User, browser_client: HttpBrowser, oidc_client: RelyingPartyClient
) -> None:
    await open_session(service, anna, browser_client, SignInMethod.LOGIN)
    for values in ((SECOND_FACTOR, PASSKEY), ("urn:else",)):
        path = oidc_client.authorize_path(claims=essential_acr(*values))
        assert redirect_error(await browser_client.get(path)) == "unmet_authentication_requirements"
    path = oidc_client.authorize_path(claims=essential_acr(SECOND_FACTOR))
    other_browser = HttpBrowser(service)
    location = await oidc_client.walk_authorize(other_browser, anna.login or "", claims=essential_acr(SECOND_FACTOR))
    await other_browser.client.aclose()
    assert "error=unmet_authentication_requirements" in location

    await enable_email_code(service, anna)
    assert wants_sign_in(await browser_client.get(path))
    assert redirect_error(await browser_client.get(f"{path}&prompt=none")) == "login_required"
    await open_session(service, anna, browser_client, SignInMethod.PASSKEY)
    response = await browser_client.get(path)
    assert (await id_claims(oidc_client, response.headers["location"]))["acr"] == SECOND_FACTOR


async def test_claims_are_given_where_they_were_requested(
    service: RunningService, anna: User, browser_client: HttpBrowser
) -> None:
    client = await an_oidc_client(service, scopes=("openid", "email", "profile"))
    await browser_client.sign_in(anna.login or "")
    asked = {"id_token": {"email": {"essential": True}}, "userinfo": {"nickname": None, "phone_verified": None}}
    response = await browser_client.get(client.authorize_path(scope="openid", claims=json.dumps(asked)))
    tokens = await client.tokens(client.code_from(response.headers["location"]))
    at_token, at_userinfo = claims_of(tokens["id_token"]), success_body(await client.userinfo(tokens["access_token"]))
    assert (at_token["email"], at_token.keys() & {"nickname", "email_verified"}) == (anna.login, set())
    assert at_userinfo == {"status": "ok", "sub": anna.user_id, "nickname": anna.nick}


@pytest.mark.parametrize("profile", list(ClientProfile))
async def test_email_and_profile_claims_are_in_the_id_token_only_if_the_client_says_so(
    service: RunningService, anna: User, profile: ClientProfile
) -> None:
    """In profile native always, whatever the field says (interface §4.2)."""
    application = await create_application(service.services.storage, name="Shop")
    mapped = {"shop_roles": ClaimSource(application_id=application.application_id, told=ClaimContent.ROLES)}
    is_oidc = profile is ClientProfile.OIDC
    fields = {"application_id": application.application_id, "claims": mapped}
    clients = {
        says_so: await (an_oidc_client if is_oidc else a_native_client)(
            service,
            f"client-{says_so}",
            claims_in_id_token=says_so,
            scopes=SCOPES if is_oidc else DEFAULT_SCOPES,
            **fields,
        )
        for says_so in (False, True)
    }
    person = set((*EMAIL_CLAIMS, *PROFILE_CLAIMS) if is_oidc else ("email", "nickname"))
    held = {"shop_roles", *(APPLICATION_SCOPES if is_oidc else ())}
    for says_so, client in clients.items():
        tokens = await client.tokens(await client.issue_code(anna, scopes=client.client.scopes))
        refreshed = success_body(await client.refresh(tokens["refresh_token"]))
        for token in (tokens["id_token"], refreshed["id_token"]):
            claims = claims_of(token).keys()
            assert bool(claims & person) is (says_so or not is_oidc)
            assert held <= claims
        assert {"email", "nickname", *held} <= success_body(await client.userinfo(tokens["access_token"])).keys()


async def test_az_34_claim_that_is_requested_by_name_needs_consent_to_its_scope(
    service: RunningService, anna: User, signed_in_browser: HttpBrowser
) -> None:
    client = await an_oidc_client(service, first_party=False, scopes=("openid", "email"))
    fields = {"scope": "openid", "claims": requested("userinfo", email=None, name={"essential": True})}
    await signed_in_browser.get(client.authorize_path(**fields))
    page = (await signed_in_browser.follow()).text
    assert ("your email address" in page, "your name" in page) == (True, False)
    location = await client.walk_authorize(signed_in_browser, anna.login or "", **fields)
    tokens = await client.tokens(client.code_from(location))
    assert tokens["scope"] == "openid"
    assert success_body(await client.userinfo(tokens["access_token"]))["email"] == anna.login


@pytest.mark.parametrize("details", ["1", '"x"', "[]", '{"values": "urn:gatehouse:2"}', '{"value": 2}'])
async def test_az_34_malformed_acr_request_is_refused(
    signed_in_browser: HttpBrowser, oidc_client: RelyingPartyClient, details: str
) -> None:
    query = urlencode({"claims": f'{{"id_token": {{"acr": {details}}}}}'})
    assert redirect_error(await signed_in_browser.get(f"{oidc_client.authorize_path()}&{query}")) == "invalid_request"


async def test_discovery_announces_acr_values_and_the_claims_parameter(service: RunningService) -> None:
    body = success_body(await service.client.get("/.well-known/openid-configuration"))
    assert (body["acr_values_supported"], body["claims_parameter_supported"]) == (list(ACR_VALUES), True)
    assert {"acr", "amr", "auth_time", "preferred_username", "roles"} <= set(body["claims_supported"])
