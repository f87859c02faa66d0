"""Checklist LG-20, LG-23, LG-28 and TK-18 for single sign-on, on every node."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import Client, ClientProfile
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser
from tests.support.builders import ORIGIN, a_client
from tests.support.endings import ENDINGS, TEST_ORIGIN, Ending
from tests.support.oauth import (
    REDIRECT,
    RelyingPartyClient,
    a_native_client,
    an_oidc_client,
    basic_auth,
    oauth_error,
    success_body,
)
from tests.support.processes import free_port
from tests.support.service import RunningService, running_service
from tests.support.studio import Studio, a_studio

STALE: Final = 601
REVOKE: Final = "/account/applications/revoke"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Two nodes of one service. SQLite allows one process, which then is both."""

    here: RunningService
    there: RunningService


@pytest.fixture
async def nodes(installed_url: str, tmp_path: Path) -> AsyncIterator[Nodes]:
    same = {"GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{free_port()}"}
    async with AsyncExitStack() as stack:
        here = there = await stack.enter_async_context(running_service(installed_url, tmp_path, environment=same))
        if installed_url.startswith("postgresql:"):
            second = running_service(installed_url, tmp_path, environment=same, clock=here.clock)
            there = await stack.enter_async_context(second)
        yield Nodes(here=here, there=there)


@pytest.fixture
async def anna(nodes: Nodes) -> User:
    return await nodes.here.services.accounts.administration.create(
        login=LOGIN, nick="Anna", password=PASSWORD, origin=TEST_ORIGIN
    )


@pytest.fixture
async def account_browser(nodes: Nodes, anna: User) -> AsyncIterator[AccountBrowser]:
    """Anna's browser on the first node."""
    someone = AccountBrowser(nodes.here)
    await someone.sign_in_and_open_account(anna.login or "")
    yield someone
    await someone.client.aclose()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTokens:
    """Everything a client has for one person, checked on the second node."""

    there: RelyingPartyClient
    tokens: dict[str, Any]
    exchanged: str
    code: str  # of a second sign-in, not redeemed yet

    async def works(self) -> None:
        assert success_body(await self.there.userinfo(self.tokens["access_token"]))
        assert success_body(await self._exchange())["token"]
        assert await self._active() == [True, True]
        assert (await self._ask_permissions()).status_code == 200

    async def is_dead(self) -> None:
        assert oauth_error(await self.there.refresh(self.tokens["refresh_token"])) == (400, "invalid_grant")
        assert oauth_error(await self.there.redeem(self.code)) == (400, "invalid_grant")
        assert oauth_error(await self.there.userinfo(self.tokens["access_token"])) == (401, "invalid_token")
        assert oauth_error(await self._exchange()) == (401, "invalid_token")
        assert await self._active() == [False, False]
        assert (await self._ask_permissions()).status_code == 401

    async def _exchange(self) -> httpx2.Response:
        bearer = {"Authorization": f"Bearer {self.tokens['access_token']}"}
        return await self.there.service.client.post("/proxy/oauth/exchangeToken", headers=bearer)

    async def _ask_permissions(self) -> httpx2.Response:
        bearer = {"Authorization": f"Bearer {self.exchanged}"}
        return await self.there.service.client.post("/api/permissions/user/info", json={}, headers=bearer)

    async def _active(self) -> Sequence[bool]:
        headers = {"Authorization": basic_auth(self.there.client.client_id, self.there.secret)}
        answers = [
            await self.there.service.client.post("/proxy/oauth/introspect", data={"token": token}, headers=headers)
            for token in (self.tokens["access_token"], self.tokens["refresh_token"])
        ]
        return [success_body(answer)["active"] for answer in answers]


async def sign_in_client(nodes: Nodes, here: RelyingPartyClient, browser_client: HttpBrowser) -> ClientTokens:
    """Sign in on the first node with the person's browser."""
    tokens = await here.tokens(here.code_from(await here.walk_authorize(browser_client, LOGIN)))
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    exchanged = success_body(await nodes.here.client.post("/proxy/oauth/exchangeToken", headers=bearer))["token"]
    code = here.code_from(await here.walk_authorize(browser_client, LOGIN))
    return ClientTokens(there=replace(here, service=nodes.there), tokens=tokens, exchanged=exchanged, code=code)


async def clients_of(service: RunningService) -> list[RelyingPartyClient]:
    """One client of each profile; the second is third-party and needs consent."""
    theirs = {"first_party": False, "may_exchange": True, "name": "Sky Atlas"}
    return [await a_native_client(service), await an_oidc_client(service, **theirs)]


# -- LG-20: the end of an account ends all grants of clients --------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
async def test_lg_20_whatever_clients_hold_is_dead_on_the_other_node_at_the_answer(
    nodes: Nodes, anna: User, account_browser: AccountBrowser, ending: Ending
) -> None:
    all_tokens = [await sign_in_client(nodes, client, account_browser) for client in await clients_of(nodes.here)]
    for client_tokens in all_tokens:
        await client_tokens.works()
    await account_browser.get("/account")
    await ending(nodes.here, account_browser, anna)
    for client_tokens in all_tokens:
        await client_tokens.is_dead()


# -- TK-18: other events that end a grant ----------------------------------------------------------------

Out = Callable[[Studio, AccountBrowser], Awaitable[None]]


async def withdraw_consent(_: Studio, account_browser: AccountBrowser) -> None:
    await account_browser.submit_and_read_notice(REVOKE, "sky")


async def remove_application(studio: Studio, _: AccountBrowser) -> None:
    removed = {"action": "delete", "data": {"application_id": studio.shop.application_id}}
    await studio.expect_ok("application", removed, studio.owner.headers)


async def remove_project(studio: Studio, _: AccountBrowser) -> None:
    removed = {"action": "delete", "data": {"id": studio.shop.project_id}}
    await studio.expect_ok("project", removed, studio.owner.headers)


async def remove_client(studio: Studio, _: AccountBrowser) -> None:
    await studio.service.services.oauth.clients.commands.remove("sky", ORIGIN)


@pytest.mark.parametrize("out", [withdraw_consent, remove_application, remove_project, remove_client])
async def test_tk_18_no_refresh_on_any_node_after_consent_application_or_project_is_gone(
    nodes: Nodes, account_browser: AccountBrowser, out: Out
) -> None:
    studio = await a_studio(nodes.here)
    sky = await an_oidc_client(
        nodes.here, "sky", first_party=False, application_id=studio.shop.application_id, may_exchange=True
    )
    client_tokens = await sign_in_client(nodes, sky, account_browser)
    refreshed = success_body(await client_tokens.there.refresh(client_tokens.tokens["refresh_token"]))[
        "refresh_token"
    ]
    await out(studio, account_browser)
    answer = await client_tokens.there.refresh(refreshed)
    # A client of a removed application is refused itself (R5).
    assert oauth_error(answer) == ((400, "invalid_grant") if out is withdraw_consent else (401, "invalid_client"))
    exchanged = {"Authorization": f"Bearer {client_tokens.tokens['access_token']}"}
    again = await nodes.there.client.post("/proxy/oauth/exchangeToken", headers=exchanged)
    assert again.status_code in (401, 403), again.text


# -- LG-28: people end the grants of clients ------------------------------------------------------------


async def test_lg_28_what_clients_have_is_listed_and_ended_on_all_nodes_after_a_fresh_proof(
    nodes: Nodes, account_browser: AccountBrowser
) -> None:
    """A first-party client needs no consent, and the person can still end its grants."""
    native, theirs = [await sign_in_client(nodes, client, account_browser) for client in await clients_of(nodes.here)]
    await nodes.here.clock.advance(STALE)
    for client_tokens, name, other in ((native, "Web shop", theirs), (theirs, "Sky Atlas", None)):
        client_id = client_tokens.there.client.client_id
        assert name in await connected_applications(account_browser)
        response = await account_browser.submit(REVOKE, f'value="{client_id}"')
        assert response.headers["location"] == "/confirm?next=%2Faccount%2Fapplications%2Frevoke"
        await client_tokens.works()
        assert (await account_browser.confirm(password=PASSWORD)).headers["location"] == "/account#applications"
        await account_browser.submit_and_read_notice(REVOKE, f'value="{client_id}"')
        await client_tokens.is_dead()
        assert name not in await connected_applications(account_browser)
        if other is not None:
            await other.works()
        await nodes.here.clock.advance(STALE)


async def connected_applications(account_browser: AccountBrowser) -> str:
    page = (await account_browser.get("/account")).text
    return page.split('id="applications"')[1].split("</section>")[0]


# -- LG-23: names cannot deceive, and the target host is shown beside them -------------------------------

DECEPTIVE: Final = (
    *("\u202eppa s'annA", "An\u200bna's app", "Anna\u2066", "A\u00adpp", "App\ufeff", "\u200f"),
    *("Anna\r\nX: y", "Anna\x00", "Anna\x1b[2J", "Anna\u2028", "\ud800", "", "   ", "A" * 10_240),
)

SUPPORT: Final = {
    "Gatehouse Support": "evil.example",
    "\u0405upport": "xn--80ak6aa92e.example",  # a Cyrillic letter
    "https://good.example": "evil.example",
}


@pytest.mark.parametrize("profile", list(ClientProfile))
async def test_lg_23_no_client_is_kept_under_a_name_that_deceives(nodes: Nodes, profile: ClientProfile) -> None:
    for name in DECEPTIVE:
        with pytest.raises(BadClient):
            await nodes.here.services.oauth.clients.commands.create(client_named(profile, name), ORIGIN)
    assert await nodes.here.services.storage.clients.clients() == []


def client_named(profile: ClientProfile, name: str) -> Client:
    if profile is ClientProfile.NATIVE:
        return a_client(name=name)
    return a_client(name=name, profile=profile, redirect_hosts=(), redirect_uris=(REDIRECT,))


async def test_lg_23_consent_shows_the_host_that_a_name_cannot_hide(
    nodes: Nodes, account_browser: AccountBrowser
) -> None:
    for number, (name, host) in enumerate(SUPPORT.items()):
        uri = f"https://{host}/callback"
        names = {"client_id": f"evil{number}", "name": name, "redirect_uris": (uri,)}
        client = await an_oidc_client(nodes.here, **names, first_party=False)
        await account_browser.get(replace(client, redirect_uri=uri).authorize_path())
        page = (await account_browser.follow()).text
        assert name in page
        assert f"<dd>{host}</dd>" in page
