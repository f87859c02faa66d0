"""Clients are notified when a person signs out (OpenID Connect Back-Channel Logout 1.0, R3)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from gatehouse.accounts.model import User
from gatehouse.app.housekeeping import housekeeping
from gatehouse.audit.model import AuditOrigin
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.backchannel_logout import BackchannelLogoutWorker
from gatehouse.oauth.model import LogoutCall, TokenSettings
from gatehouse.outbound.client import OutboundClient
from tests.support.browser import PASSWORD, AccountBrowser
from tests.support.oauth import RelyingPartyClient, an_oidc_client, claims_of, header_of
from tests.support.service import RunningService, running_service
from tests.support.stub_server import (
    NO_CONTENT,
    ReceivedRequest,
    StubConnector,
    StubResolver,
    StubServer,
    http_response,
    run_stub_server,
)

ALLOWED = {"GATEHOUSE__OUTBOUND__ALLOW": "127.0.0.0/8"}
OPERATOR = AuditOrigin(actor="cli:test")
EVENT = "http://schemas.openid.net/event/backchannel-logout"
BUSY = http_response(b"", "503 Service Unavailable")
ANNA = "anna@studio.example"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogoutSetup:
    service: RunningService
    shop: StubServer  # the server of the client shelf

    async def run(self) -> None:
        await self.service.services.oauth.backchannel_logout.run_once()

    async def waiting(self) -> list[LogoutCall]:
        return list(await self.service.services.storage.logout_calls.all_calls())

    async def events(self) -> list[str]:
        """The events about the client."""
        return [record.event for record in await self.service.services.storage.audit.newest_records(50, "shelf", "")]


@pytest.fixture
async def logout_setup(installed_url: str, tmp_path: Path) -> AsyncIterator[LogoutSetup]:
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(run_stub_server(StubServer()))
        service = await stack.enter_async_context(running_service(installed_url, tmp_path, environment=ALLOWED))
        yield LogoutSetup(service=service, shop=shop)


@pytest.fixture
def service(logout_setup: LogoutSetup) -> RunningService:
    return logout_setup.service


@pytest.fixture
async def oidc_client(logout_setup: LogoutSetup) -> RelyingPartyClient:
    uri = f"http://127.0.0.1:{logout_setup.shop.port}/signed-out?a=1"
    return await an_oidc_client(logout_setup.service, backchannel_logout_uri=uri)


@pytest.fixture
async def account_browser(service: RunningService, anna: User) -> AsyncIterator[AccountBrowser]:
    someone = AccountBrowser(service)
    await someone.sign_in_and_open_account(anna.login or "")
    yield someone
    await someone.client.aclose()


async def signed_in(client: RelyingPartyClient, account_browser: AccountBrowser, **changes: str) -> dict[str, Any]:
    """Sign the person in to a client with their browser; return the tokens."""
    return await client.tokens(client.code_from(await client.walk_authorize(account_browser, ANNA, **changes)))


def token_in(received: ReceivedRequest) -> str:
    assert received.headers["content-type"] == "application/x-www-form-urlencoded"
    fields = parse_qs(received.body.decode())
    assert fields.keys() == {"logout_token"}
    return fields["logout_token"][0]


async def test_the_client_gets_a_logout_token_that_it_can_verify(
    logout_setup: LogoutSetup, oidc_client: RelyingPartyClient, account_browser: AccountBrowser, anna: User
) -> None:
    tokens = await signed_in(oidc_client, account_browser)
    await account_browser.post_with_csrf("/sign-out")
    assert logout_setup.shop.received == []
    await logout_setup.run()
    (received,) = logout_setup.shop.received
    assert received.line == "POST /signed-out?a=1 HTTP/1.1"
    token = token_in(received)
    assert header_of(token).keys() == {"alg", "kid", "typ"}
    assert (header_of(token)["alg"], header_of(token)["typ"]) == ("RS256", "JWT")
    keys = KeySet.import_key_set((await logout_setup.service.client.get("/proxy/oauth/keys")).json())
    claims = jwt.decode(token, keys, algorithms=["RS256"]).claims
    now = logout_setup.service.clock.now()
    assert claims == {
        "iss": logout_setup.service.base_url,
        "aud": "shelf",
        "iat": now,
        "exp": now + 120,
        "jti": claims["jti"],
        "sub": anna.user_id,
        "sid": claims_of(tokens["id_token"])["sid"],
        "events": {EVENT: {}},
        "typ": "logout_token",
        "kid": header_of(token)["kid"],
    }
    assert await logout_setup.waiting() == []
    assert "client.logout_told" in await logout_setup.events()


async def test_a_logout_token_is_signed_as_the_clients_id_tokens_are(
    logout_setup: LogoutSetup, account_browser: AccountBrowser
) -> None:
    uri = f"http://127.0.0.1:{logout_setup.shop.port}/"
    settings = TokenSettings(id_token_alg=Algorithm.ES256)
    quick = await an_oidc_client(logout_setup.service, "quick", backchannel_logout_uri=uri, token_settings=settings)
    await signed_in(quick, account_browser)
    await account_browser.post_with_csrf("/sign-out")
    await logout_setup.run()
    assert header_of(token_in(logout_setup.shop.received[0]))["alg"] == "ES256"


async def test_a_logout_token_opens_no_door_here(
    logout_setup: LogoutSetup, oidc_client: RelyingPartyClient, account_browser: AccountBrowser
) -> None:
    await signed_in(oidc_client, account_browser)
    await account_browser.post_with_csrf("/sign-out")
    await logout_setup.run()
    token = token_in(logout_setup.shop.received[0])
    response = await logout_setup.service.client.get("/proxy/oauth/logout", params={"id_token_hint": token})
    assert response.status_code == 400
    assert (await oidc_client.userinfo(token)).status_code == 401
    assert (await oidc_client.refresh(token)).json()["error"] == "invalid_grant"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignOutSetup:
    logout_setup: LogoutSetup
    browser: AccountBrowser
    anna: User


async def sign_out(setup: SignOutSetup) -> None:
    await setup.browser.post_with_csrf("/sign-out")


async def end_that_session(setup: SignOutSetup) -> None:
    """End it from a different device, on the account page."""
    service = setup.logout_setup.service
    other = AccountBrowser(service, agent="Other/1.0")
    await other.sign_in_and_open_account(ANNA)
    sessions = await service.services.storage.sessions.sessions_of_user(setup.anna.user_id, service.clock.now())
    (ours,) = (session for session in sessions if not session.agent.startswith("Other"))
    await other.post_with_csrf("/account/sessions/end", session_id=ours.session_id)
    await other.client.aclose()


async def sign_out_everywhere_else(setup: SignOutSetup) -> None:
    await setup.browser.post_with_csrf("/account/sessions/end-others")


async def change_password(setup: SignOutSetup) -> None:
    new = "another horse battery staple"
    await setup.browser.submit_and_read_notice("/account/password", current=PASSWORD, password=new)


async def block_person(setup: SignOutSetup) -> None:
    await setup.logout_setup.service.services.accounts.administration.block(setup.anna.user_id, OPERATOR)


async def erase_person(setup: SignOutSetup) -> None:
    await setup.logout_setup.service.services.accounts.erasure.erase(setup.anna, OPERATOR)


async def sign_in_second_person(setup: SignOutSetup) -> None:
    await setup.logout_setup.service.services.accounts.administration.create(
        login="bob@studio.example", nick="Bob", password=PASSWORD, origin=OPERATOR
    )
    await setup.browser.sign_in("bob@studio.example")


Ending = Callable[[SignOutSetup], Awaitable[None]]


@pytest.mark.parametrize(
    "ending",
    [
        *(sign_out, end_that_session, sign_out_everywhere_else, change_password),
        *(block_person, erase_person, sign_in_second_person),
    ],
)
async def test_however_it_ends_the_client_is_told_once(
    logout_setup: LogoutSetup,
    oidc_client: RelyingPartyClient,
    account_browser: AccountBrowser,
    anna: User,
    ending: Ending,
) -> None:
    sid = claims_of((await signed_in(oidc_client, account_browser))["id_token"])["sid"]
    await signed_in(oidc_client, account_browser)
    await ending(SignOutSetup(logout_setup=logout_setup, browser=account_browser, anna=anna))
    await logout_setup.run()
    await logout_setup.run()
    assert [claims_of(token_in(request))["sid"] for request in logout_setup.shop.received] == [sid]


async def test_a_client_is_told_long_after_its_access_token_has_ended(
    logout_setup: LogoutSetup, oidc_client: RelyingPartyClient, account_browser: AccountBrowser
) -> None:
    await account_browser.sign_in(ANNA, stays=True)
    await signed_in(oidc_client, account_browser, scope="openid")
    for _ in range(3):
        await logout_setup.service.clock.advance(86_400)
        await account_browser.get("/account")
        await logout_setup.service.services.storage.sweep(logout_setup.service.clock.now())
    await account_browser.post_with_csrf("/sign-out")
    await logout_setup.run()
    assert len(logout_setup.shop.received) == 1


async def test_signing_in_once_more_ends_nothing(
    logout_setup: LogoutSetup, oidc_client: RelyingPartyClient, account_browser: AccountBrowser
) -> None:
    before = claims_of((await signed_in(oidc_client, account_browser))["id_token"])["sid"]
    after = claims_of((await signed_in(oidc_client, account_browser, prompt="login"))["id_token"])["sid"]
    await logout_setup.run()
    assert logout_setup.shop.received == []
    assert before == after
    await account_browser.get("/account")
    await account_browser.post_with_csrf("/sign-out")
    await logout_setup.run()
    assert [claims_of(token_in(request))["sid"] for request in logout_setup.shop.received] == [before]


@pytest.mark.usefixtures("oidc_client")
async def test_clients_that_were_not_signed_in_to_or_want_no_call_hear_nothing(
    logout_setup: LogoutSetup, account_browser: AccountBrowser
) -> None:
    silent = await an_oidc_client(logout_setup.service, "silent")
    tokens = await signed_in(silent, account_browser)
    assert "sid" not in claims_of(tokens["id_token"])
    await account_browser.post_with_csrf("/sign-out")
    await logout_setup.run()
    assert logout_setup.shop.received == []


async def test_an_address_that_fails_is_tried_again_ever_more_slowly(
    logout_setup: LogoutSetup, oidc_client: RelyingPartyClient, account_browser: AccountBrowser
) -> None:
    logout_setup.shop.respond = lambda _: BUSY
    await signed_in(oidc_client, account_browser)
    await account_browser.post_with_csrf("/sign-out")
    for tries, delay in ((1, 15), (2, 30), (3, 60)):
        await logout_setup.run()
        assert len(logout_setup.shop.received) == tries
        (call,) = await logout_setup.waiting()
        assert (call.tries, call.next_try_at - logout_setup.service.clock.now()) == (tries, delay)
        assert call.trouble == "answered 503"
        await logout_setup.service.clock.advance(delay - 1)
        await logout_setup.run()
        assert len(logout_setup.shop.received) == tries
        await logout_setup.service.clock.advance(1)
    logout_setup.shop.respond = lambda _: http_response(b"")
    await logout_setup.run()
    tokens = [token_in(request) for request in logout_setup.shop.received]
    assert len({claims_of(token)["jti"] for token in tokens}) == 4
    assert claims_of(tokens[-1])["iat"] == logout_setup.service.clock.now()
    assert await logout_setup.waiting() == []
    assert (await logout_setup.events()).count("client.logout_told") == 1


async def test_backchannel_logout_is_abandoned_after_a_day_and_recorded(
    logout_setup: LogoutSetup, oidc_client: RelyingPartyClient, account_browser: AccountBrowser
) -> None:
    logout_setup.shop.respond = lambda _: BUSY
    await signed_in(oidc_client, account_browser)
    await account_browser.post_with_csrf("/sign-out")
    for _ in range(40):
        await logout_setup.run()
        await logout_setup.service.clock.advance(3_600)
    assert 20 < len(logout_setup.shop.received) < 40
    (call,) = await logout_setup.waiting()
    assert call.next_try_at == 0
    assert (await logout_setup.events()).count("client.logout_given_up") == 1


async def test_a_call_survives_the_process_and_is_made_by_the_next_one(
    logout_setup: LogoutSetup, oidc_client: RelyingPartyClient, account_browser: AccountBrowser
) -> None:
    """The housekeeping of a new process finishes what a previous one left."""
    await signed_in(oidc_client, account_browser)
    await account_browser.post_with_csrf("/sign-out")
    called = asyncio.Event()

    def reply(_: ReceivedRequest) -> bytes:
        called.set()
        return NO_CONTENT

    logout_setup.shop.respond = reply
    async with housekeeping(logout_setup.service.services):
        await asyncio.wait_for(called.wait(), 10)
    assert len(logout_setup.shop.received) == 1


async def test_a_client_that_is_removed_meanwhile_hears_nothing(
    logout_setup: LogoutSetup, oidc_client: RelyingPartyClient, account_browser: AccountBrowser
) -> None:
    await signed_in(oidc_client, account_browser)
    await account_browser.post_with_csrf("/sign-out")
    await logout_setup.service.services.oauth.clients.commands.remove("shelf", OPERATOR)
    await logout_setup.run()
    assert logout_setup.shop.received == []
    assert [call.next_try_at for call in await logout_setup.waiting()] == [0]
    assert "client.logout_given_up" not in await logout_setup.events()


@pytest.mark.parametrize("inside", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1"])
async def test_an_address_that_leads_inside_is_not_called(
    logout_setup: LogoutSetup, account_browser: AccountBrowser, inside: str
) -> None:
    """AP-08 for back-channel logout: the client chooses the name, so its address is not trusted."""
    services, wire = logout_setup.service.services, StubConnector()
    client = await an_oidc_client(logout_setup.service, backchannel_logout_uri="https://inside.example/out")
    await signed_in(client, account_browser)
    await account_browser.post_with_csrf("/sign-out")
    careful = BackchannelLogoutWorker(
        store=services.storage.logout_calls,
        clients=services.storage.clients,
        poster=OutboundClient(allowed=(), resolver=StubResolver(inside_example=[[inside]]), connector=wire),
        signer=services.keys.signer,
        recorder=services.core.recorder,
        clock=services.clock,
        issuer=logout_setup.service.base_url,
    )
    await careful.run_once()
    assert wire.connected == []
    (call,) = await logout_setup.waiting()
    assert call.next_try_at > logout_setup.service.clock.now()
