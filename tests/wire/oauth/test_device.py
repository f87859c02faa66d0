"""The device authorization grant (RFC 8628), from the device and from the browser."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.kernel.digests import sha256
from gatehouse.oauth.device import USER_CODE_LETTERS
from gatehouse.sign_in_flow.model import FlowStep, SignInFlowGone, proof_of_session, with_proof
from gatehouse.storage.tables.oauth import device_requests
from tests.support.browser import PASSWORD, HttpBrowser, hidden_fields
from tests.support.builders import ORIGIN, a_record
from tests.support.oauth import (
    DAY,
    TOKEN,
    RelyingPartyClient,
    a_public_client,
    an_oidc_client,
    challenge_of,
    claims_of,
    oauth_error,
    success_body,
)
from tests.support.permission_builders import create_application
from tests.support.service import RunningService
from tests.wire.oauth.authorize_responses import count_rows, flow_handle, set_limited_session, wants_sign_in

ASK = "/proxy/oauth/device_authorization"
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
ANNA = "anna@studio.example"

pytestmark = pytest.mark.usefixtures("anna")


@pytest.fixture
async def tv(service: RunningService) -> RelyingPartyClient:
    """A public first-party client on a television."""
    return await a_public_client(service, "tv", name="Sofa TV", redirect_uris=(), device_grant=True)


@pytest.fixture
async def browser_client(service: RunningService) -> AsyncIterator[HttpBrowser]:
    someone = HttpBrowser(service)
    yield someone
    await someone.client.aclose()


async def ask(device: RelyingPartyClient, **fields: str) -> dict[str, Any]:
    answer = await device.service.client.post(ASK, data=device_request(device, **fields), headers=device.headers)
    return success_body(answer)


def device_request(device: RelyingPartyClient, **fields: str) -> dict[str, str]:
    named = {"client_id": device.client.client_id} if device.client.public else {}
    return {"scope": "openid offline_access email", **named, **fields}


async def poll(device: RelyingPartyClient, device_code: str, **changes: str) -> httpx2.Response:
    named = {"client_id": device.client.client_id} if device.client.public else {}
    fields = {"grant_type": GRANT, "device_code": device_code, **named, **changes}
    return await device.service.client.post(TOKEN, data=fields, headers=device.headers)


async def type_code(browser_client: HttpBrowser, user_code: str) -> httpx2.Response:
    await browser_client.get("/device")
    return await browser_client.post("/device", user_code=user_code)


async def sign_in_here(browser_client: HttpBrowser, login: str = ANNA) -> httpx2.Response:
    await browser_client.follow()
    await browser_client.post("/sign-in", login=login, password=PASSWORD)
    return await browser_client.follow()


async def answer_request(browser_client: HttpBrowser, user_code: str, decision: str) -> httpx2.Response:
    """In a new browser: enter the code, sign in, approve or deny."""
    await type_code(browser_client, user_code)
    await sign_in_here(browser_client)
    await browser_client.post("/sign-in/confirm", decision=decision)
    return await browser_client.follow()


async def test_a_device_gets_a_code_to_show_and_one_to_wait_with(
    service: RunningService, tv: RelyingPartyClient
) -> None:
    device = await ask(tv)
    assert device.keys() == {
        *("device_code", "user_code", "verification_uri", "verification_uri_complete", "expires_in", "interval"),
    }
    assert re.fullmatch(rf"[{USER_CODE_LETTERS}]{{4}}-[{USER_CODE_LETTERS}]{{4}}", device["user_code"])
    assert not set(USER_CODE_LETTERS) & set("AEIOUY")
    assert len(device["device_code"]) == 43
    assert (device["expires_in"], device["interval"]) == (600, 5)
    assert device["verification_uri"] == f"{service.base_url}/device"
    assert device["verification_uri_complete"] == f"{service.base_url}/device?user_code={device['user_code']}"


async def test_a_person_types_the_code_signs_in_and_confirms(
    service: RunningService, tv: RelyingPartyClient, browser_client: HttpBrowser, anna: User
) -> None:
    device = await ask(tv)
    assert oauth_error(await poll(tv, device["device_code"])) == (400, "authorization_pending")
    await type_code(browser_client, device["user_code"].lower().replace("-", " "))
    page = await sign_in_here(browser_client)
    assert page.url.path == "/sign-in/confirm"
    for text in ("Sofa TV", device["user_code"], "Anna", ANNA, "from your network"):
        assert text in page.text
    await browser_client.post("/sign-in/confirm", decision="confirm")
    assert "Return to your device" in (await browser_client.follow()).text
    await service.clock.advance(5)
    tokens = success_body(await poll(tv, device["device_code"]))
    claims = claims_of(tokens["id_token"])
    assert (claims["sub"], claims["aud"]) == (anna.user_id, "tv")
    assert not {"nonce", "email"} & claims.keys()
    assert tokens["scope"] == "openid offline_access email"
    person = (await tv.userinfo(tokens["access_token"])).json()
    assert (person["sub"], person["email"]) == (anna.user_id, ANNA)
    refreshed = success_body(await tv.refresh(tokens["refresh_token"], redirect_uri=""))
    assert claims_of(refreshed["id_token"])["sub"] == anna.user_id
    assert oauth_error(await poll(tv, device["device_code"])) == (400, "invalid_grant")


async def test_someone_signed_in_is_asked_all_the_same(
    service: RunningService, tv: RelyingPartyClient, browser_client: HttpBrowser, anna: User
) -> None:
    await browser_client.sign_in(anna.login or "")
    device = await ask(tv)
    page = await browser_client.get(device["verification_uri_complete"].removeprefix(service.base_url))
    assert f'value="{device["user_code"]}"' in page.text
    assert oauth_error(await poll(tv, device["device_code"])) == (400, "authorization_pending")
    await browser_client.post("/device", user_code=device["user_code"])
    assert (await browser_client.follow()).url.path == "/sign-in/confirm"
    await service.clock.advance(5)
    assert oauth_error(await poll(tv, device["device_code"])) == (400, "authorization_pending")
    await browser_client.post("/sign-in/confirm", decision="confirm")
    await service.clock.advance(5)
    success_body(await poll(tv, device["device_code"]))


async def test_denied_device_request_is_recorded(
    service: RunningService, tv: RelyingPartyClient, browser_client: HttpBrowser, anna: User
) -> None:
    device = await ask(tv)
    page = await answer_request(browser_client, device["user_code"], "cancel")
    assert "Not signed in" in page.text
    assert oauth_error(await poll(tv, device["device_code"])) == (400, "access_denied")
    records = await service.services.storage.audit.newest_records(10, anna.user_id, "")
    assert "device.denied" in [record.event for record in records]
    assert "Check it" in (await type_code(browser_client, device["user_code"])).text


async def test_a_device_that_asks_too_often_is_slowed_down(service: RunningService, tv: RelyingPartyClient) -> None:
    code = (await ask(tv))["device_code"]
    assert oauth_error(await poll(tv, code)) == (400, "authorization_pending")
    await service.clock.advance(4)
    assert oauth_error(await poll(tv, code)) == (400, "slow_down")
    await service.clock.advance(9)
    assert oauth_error(await poll(tv, code)) == (400, "slow_down")
    await service.clock.advance(15)
    assert oauth_error(await poll(tv, code)) == (400, "authorization_pending")


async def test_device_request_expires_after_ten_minutes(
    service: RunningService, tv: RelyingPartyClient, browser_client: HttpBrowser, anna: User
) -> None:
    device = await ask(tv)
    await type_code(browser_client, device["user_code"])
    await sign_in_here(browser_client, anna.login or "")
    await service.clock.advance(600)
    late = await browser_client.post("/sign-in/confirm", decision="confirm")
    assert (late.status_code, 'href="/device"' in late.text) == (400, True)
    assert oauth_error(await poll(tv, device["device_code"])) == (400, "expired_token")
    assert (await type_code(browser_client, device["user_code"])).status_code == 404


async def test_guessing_user_codes_is_throttled_and_a_right_one_is_not_counted(
    tv: RelyingPartyClient, browser_client: HttpBrowser
) -> None:
    device = await ask(tv)
    assert (await type_code(browser_client, device["user_code"])).status_code == 303
    for _ in range(10):
        assert (await type_code(browser_client, "BBBB-BBBB")).status_code == 404
    closed = await type_code(browser_client, device["user_code"])
    assert closed.status_code == 429
    assert int(closed.headers["retry-after"]) > 0


async def test_the_form_is_worth_nothing_on_another_site(
    tv: RelyingPartyClient, browser_client: HttpBrowser, other: HttpBrowser
) -> None:
    device = await ask(tv)
    await browser_client.get("/device")
    await other.get("/device")
    assert (await browser_client.client.post("/device", data={"user_code": device["user_code"]})).status_code == 403
    page = browser_client.page
    assert page is not None
    other.page = page
    assert (await other.post("/device", user_code=device["user_code"])).status_code == 403


@pytest.fixture
async def other(service: RunningService) -> AsyncIterator[HttpBrowser]:
    someone = HttpBrowser(service)
    yield someone
    await someone.client.aclose()


async def test_a_confirmation_belongs_to_the_browser_that_was_asked(
    tv: RelyingPartyClient, browser_client: HttpBrowser, other: HttpBrowser, anna: User
) -> None:
    device = await ask(tv)
    await type_code(browser_client, device["user_code"])
    page = await sign_in_here(browser_client, anna.login or "")
    await other.sign_in(anna.login or "")
    assert (await other.get(f"{page.url.path}?{page.url.query.decode()}")).status_code == 400
    assert oauth_error(await poll(tv, device["device_code"])) == (400, "authorization_pending")


async def test_only_clients_of_the_device_grant_get_codes(
    service: RunningService, app: RelyingPartyClient, tv: RelyingPartyClient
) -> None:
    assert oauth_error(await service.client.post(ASK, data=device_request(app))) == (400, "unauthorized_client")
    no_one = {"client_id": "no_one", "scope": "openid"}
    assert oauth_error(await service.client.post(ASK, data=no_one)) == (401, "invalid_client")
    assert oauth_error(await service.client.post(ASK, data=device_request(tv, scope="email"))) == (
        400,
        "invalid_scope",
    )
    assert oauth_error(await service.client.post(TOKEN, data={"grant_type": GRANT, "client_id": "tv"})) == (
        400,
        "invalid_request",
    )


async def test_a_confidential_client_proves_itself_and_keeps_its_codes_to_itself(
    service: RunningService, tv: RelyingPartyClient, browser_client: HttpBrowser, anna: User
) -> None:
    console = await an_oidc_client(service, "console", device_grant=True)
    assert oauth_error(await service.client.post(ASK, data={"client_id": "console", "scope": "openid"})) == (
        401,
        "invalid_client",
    )
    device = await ask(console)
    await answer_request(browser_client, device["user_code"], "confirm")
    assert oauth_error(await poll(tv, device["device_code"])) == (400, "invalid_grant")
    assert claims_of(success_body(await poll(console, device["device_code"]))["id_token"])["sub"] == anna.user_id


async def test_only_one_of_many_concurrent_polls_gets_the_tokens(
    tv: RelyingPartyClient, browser_client: HttpBrowser
) -> None:
    device = await ask(tv)
    await answer_request(browser_client, device["user_code"], "confirm")
    responses = await asyncio.gather(*(poll(tv, device["device_code"]) for _ in range(5)))
    assert sorted(response.status_code for response in responses) == [200, 400, 400, 400, 400]


async def test_device_sign_in_is_denied_to_people_the_application_does_not_admit(
    service: RunningService, tv: RelyingPartyClient, browser_client: HttpBrowser
) -> None:
    """The page names the application and, to administrators, the rule."""
    application = await create_application(
        service.services.storage, settings={"restricted_domains": ["other.example"]}
    )
    open_to_all, shop = (
        tv,
        await a_public_client(
            service,
            "shop",
            name="Shop TV",
            redirect_uris=(),
            device_grant=True,
            application_id=application.application_id,
        ),
    )
    device = await ask(shop)
    page = await answer_request(browser_client, device["user_code"], "confirm")
    assert page.status_code == 403
    assert "this account has no access to <strong><bdi>Shop TV</bdi></strong>" in page.text
    assert "You were not signed in on the device." in page.text
    assert "Why access was denied" not in page.text
    assert oauth_error(await poll(shop, device["device_code"])) == (400, "access_denied")
    for client_id in (open_to_all.client.client_id, "no_one"):  # reveals nothing to people who are not refused
        assert "Not signed in" in (await browser_client.get(f"/device/denied?client_id={client_id}")).text
    await service.services.accounts.administration.create(
        login="ada@studio.example", nick="Ada", password=PASSWORD, origin=ORIGIN, administrator=True
    )
    ada = HttpBrowser(service)
    await ada.sign_in("ada@studio.example")
    page_text = (await ada.get("/device/denied?client_id=shop")).text
    assert "Why access was denied" in page_text
    assert "restricted_domains" in page_text
    assert "/console/access/check?user_id=" in page_text
    await ada.client.aclose()


async def test_account_blocked_before_the_next_poll_gets_no_tokens(
    service: RunningService, tv: RelyingPartyClient, browser_client: HttpBrowser, anna: User
) -> None:
    device = await ask(tv)
    await answer_request(browser_client, device["user_code"], "confirm")
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    assert oauth_error(await poll(tv, device["device_code"])) == (400, "invalid_grant")


async def test_a_third_party_tells_what_it_wants_and_is_listed_afterwards(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    tv = await a_public_client(service, "tv", name="Their TV", redirect_uris=(), device_grant=True, first_party=False)
    device = await ask(tv)
    await type_code(browser_client, device["user_code"])
    page = await sign_in_here(browser_client)
    assert "your email address" in page.text
    await browser_client.post("/sign-in/confirm", decision="confirm")
    tokens = success_body(await poll(tv, device["device_code"]))
    assert "Their TV" in (await browser_client.get("/account")).text
    assert await service.services.storage.consents.withdraw_consent(
        anna.user_id, "tv", service.clock.now(), a_record(subject=anna.user_id)
    )
    assert oauth_error(await tv.refresh(tokens["refresh_token"], redirect_uri="")) == (400, "invalid_grant")


@pytest.mark.both_databases
async def test_dg_12_a_device_keeps_the_end_that_the_person_chose_for_its_client(
    service: RunningService, browser_client: HttpBrowser, anna: User
) -> None:
    """The page of a device offers no end, so it must not remove one (R11)."""
    tv = await a_public_client(service, "tv", name="Their TV", device_grant=True, first_party=False)
    await browser_client.sign_in(anna.login or "")
    pkce = {"code_challenge": challenge_of("v" * 43), "code_challenge_method": "S256"}
    await browser_client.get(tv.authorize_path(scope="openid profile", **pkce))
    await browser_client.follow()
    await browser_client.post("/sign-in/consent", decision="allow", days="1")
    ends_at = service.clock.now() + DAY
    device = await ask(tv)
    await type_code(browser_client, device["user_code"])
    assert "Access ends" in (await browser_client.follow()).text
    await browser_client.post("/sign-in/confirm", decision="confirm")
    tokens = success_body(await poll(tv, device["device_code"]))
    consent = await service.services.storage.consents.consent(anna.user_id, "tv")
    assert consent is not None
    assert (consent.ends_at, set(consent.scopes)) == (ends_at, {"openid", "profile", "offline_access", "email"})
    await service.clock.advance(DAY - 60)
    tokens = success_body(await tv.refresh(tokens["refresh_token"], redirect_uri=""))
    assert tokens["expires_in"] == 60
    await service.clock.advance(60)
    assert oauth_error(await tv.refresh(tokens["refresh_token"], redirect_uri="")) == (400, "invalid_grant")
    # What has ended is asked for anew, and without an end then.
    again = await ask(tv)
    await type_code(browser_client, again["user_code"])
    assert "Access ends" not in (await sign_in_here(browser_client)).text
    await browser_client.post("/sign-in/confirm", decision="confirm")
    success_body(await poll(tv, again["device_code"]))
    assert await service.services.oauth.consents.end_of(anna.user_id, tv.client) == 0


async def test_a_device_goes_on_when_the_browser_that_confirmed_it_signs_out(
    service: RunningService, tv: RelyingPartyClient, browser_client: HttpBrowser, anna: User
) -> None:
    device = await ask(tv, scope="openid")
    await answer_request(browser_client, device["user_code"], "confirm")
    tokens = success_body(await poll(tv, device["device_code"]))
    assert "refresh_token" not in tokens
    await browser_client.get("/account")
    assert (await browser_client.post("/sign-out")).status_code == 200
    assert (await tv.userinfo(tokens["access_token"])).status_code == 200
    await service.services.accounts.administration.block(anna.user_id, AuditOrigin(actor="test"))
    assert (await tv.userinfo(tokens["access_token"])).status_code == 401


async def test_another_account_cannot_answer_a_pending_device_confirmation(
    service: RunningService, tv: RelyingPartyClient, browser_client: HttpBrowser
) -> None:
    await service.services.accounts.administration.create(
        login="bob@studio.example", nick="Bob", password=PASSWORD, origin=AuditOrigin(actor="test")
    )
    device = await ask(tv)
    await type_code(browser_client, device["user_code"])
    page = await sign_in_here(browser_client)
    handle = hidden_fields(page.text)["interaction"]
    await browser_client.sign_in("bob@studio.example")
    await browser_client.get("/device")  # for its CSRF value
    assert (await browser_client.post("/sign-in/confirm", interaction=handle, decision="confirm")).status_code == 400
    assert oauth_error(await poll(tv, device["device_code"])) == (400, "authorization_pending")


async def test_a_session_from_a_short_token_has_to_sign_in_first(
    service: RunningService, tv: RelyingPartyClient, browser_client: HttpBrowser, anna: User
) -> None:
    await set_limited_session(service, anna, browser_client)
    device = await ask(tv)
    assert wants_sign_in(await type_code(browser_client, device["user_code"]))
    assert (await sign_in_here(browser_client)).url.path == "/sign-in/confirm"


@pytest.mark.parametrize("first_party", [True, False], ids=["first party", "third party"])
async def test_a_session_from_a_short_token_cannot_choose_itself_for_a_device(
    service: RunningService, browser_client: HttpBrowser, anna: User, *, first_party: bool
) -> None:
    stick = await a_public_client(service, "stick", redirect_uris=(), device_grant=True, first_party=first_party)
    await set_limited_session(service, anna, browser_client)
    device = await ask(stick)
    handle = flow_handle(await type_code(browser_client, device["user_code"]))
    await browser_client.get(f"/sign-in/as?interaction={handle}")
    assert wants_sign_in(await browser_client.post("/sign-in/as", decision="continue"))
    await browser_client.get("/device")  # for its CSRF value
    assert (await browser_client.post("/sign-in/confirm", interaction=handle, decision="confirm")).status_code == 400
    assert oauth_error(await poll(stick, device["device_code"])) == (400, "authorization_pending")


async def test_limited_session_can_neither_confirm_nor_create_a_device_grant(
    service: RunningService, tv: RelyingPartyClient, browser_client: HttpBrowser, anna: User
) -> None:
    them, store = service.services, service.services.storage.sign_in_flows
    await set_limited_session(service, anna, browser_client)
    device = await ask(tv)
    handle = flow_handle(await type_code(browser_client, device["user_code"]))
    signed_in = await them.accounts.sessions.find(browser_client.cookies["gh_session"])
    started = await store.find_flow(sha256(handle), service.clock.now())
    assert signed_in is not None
    assert started is not None
    updated = await store.update_flow(
        replace(with_proof(started, proof_of_session(signed_in.session)), step=FlowStep.CONFIRM)
    )
    assert (await browser_client.get(f"/sign-in/confirm?interaction={handle}")).status_code == 400
    with pytest.raises(SignInFlowGone):
        await them.oauth.device_purpose.finish(updated, AuditOrigin(actor="test"))
    assert oauth_error(await poll(tv, device["device_code"])) == (400, "authorization_pending")


async def test_a_flood_of_devices_is_limited_and_soon_forgotten(
    service: RunningService, tv: RelyingPartyClient
) -> None:
    responses = [await service.client.post(ASK, data=device_request(tv)) for _ in range(200)]
    closed = [response for response in responses if response.status_code == 429]
    assert closed
    assert all(int(response.headers["retry-after"]) > 0 for response in closed)
    assert await count_rows(service, device_requests) <= service.services.settings.rates.login
    await service.clock.advance(1_200)
    await service.services.storage.sweep(service.clock.now())
    assert await count_rows(service, device_requests) == 0
    await ask(tv)


async def test_a_consent_withdrawn_in_that_moment_leaves_no_device_signed_in(
    service: RunningService, browser_client: HttpBrowser, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    stick = await a_public_client(service, "stick", redirect_uris=(), device_grant=True, first_party=False)
    device = await ask(stick)
    store = type(service.services.storage.device_requests)
    approve = store.approve_request

    async def after_the_withdrawal(self: Any, *args: Any, **more: Any) -> bool:
        assert await service.services.oauth.consents.withdraw(anna.user_id, "stick", AuditOrigin(actor="test"))
        return await approve(self, *args, **more)

    monkeypatch.setattr(store, "approve_request", after_the_withdrawal)
    page = await answer_request(browser_client, device["user_code"], "confirm")
    assert "Not signed in" in page.text
    await service.clock.advance(5)
    assert oauth_error(await poll(stick, device["device_code"])) == (400, "authorization_pending")
