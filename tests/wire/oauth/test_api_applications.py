"""The application of an API decides about the people whose tokens are for it: bans, login rules, terms (R9, R10)."""

from dataclasses import dataclass
from typing import Final

import httpx2
import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from tests.support.browser import HttpBrowser
from tests.support.builders import a_record
from tests.support.oauth import (
    TOKEN,
    RelyingPartyClient,
    a_public_client,
    an_oidc_client,
    claims_of,
    oauth_error,
    query_of,
    success_body,
)
from tests.support.permission_builders import create_application, set_fields
from tests.support.service import RunningService
from tests.support.studio import PROJECT, Person, Studio, a_studio, audit_records, create_administrator
from tests.wire.accounts.test_terms import TERMS, publish
from tests.wire.oauth.test_api_access import API, RESOURCE, VERIFIER, api_request, introspect
from tests.wire.oauth.test_device import ASK, ask, device_request, poll, type_code
from tests.wire.permissions.test_bans import ban, lift

INVALID_GRANT: Final = (400, "invalid_grant")
pytestmark = pytest.mark.usefixtures("anna")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture:
    """An API of the studio's shop, which any client may ask for, and clients of no application."""

    studio: Studio
    administrator: Person
    agent: RelyingPartyClient
    tv: RelyingPartyClient

    @property
    def api_application(self) -> int:
        return self.studio.shop.application_id


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


@pytest.fixture
async def api(service: RunningService, studio: Studio) -> Fixture:
    storage = service.services.storage
    await storage.applications.edit_application(studio.shop.application_id, set_fields(api=API))
    return Fixture(
        studio=studio,
        administrator=await create_administrator(studio),
        agent=await a_public_client(service, "agent", first_party=False),
        tv=await a_public_client(service, "tv", redirect_uris=(), device_grant=True),
    )


async def forbid_login(api: Fixture, user: User, *, forbidden: bool) -> None:
    login = {"cannot": {"value": forbidden}}
    records = api.studio.service.services.storage.user_records
    await records.edit_record(api.api_application, user.user_id, set_fields(login=login), 0)


@pytest.fixture(params=["application", "project", "login rule"])
def refusal(request: pytest.FixtureRequest) -> str:
    """What keeps Anna out of the application of the API."""
    return str(request.param)


async def set_refusal(api: Fixture, user: User, refusal: str, *, active: bool) -> None:
    if refusal == "login rule":
        await forbid_login(api, user, forbidden=active)
        return
    scope = {"application_id": api.api_application} if refusal == "application" else {"project_id": PROJECT}
    await (ban if active else lift)(api.studio, api.administrator, user.user_id, **scope)


async def start_device(api: Fixture, browser: HttpBrowser) -> dict[str, str]:
    """A device asks for the API; its question is open in the browser, where Anna is signed in."""
    device = await ask(api.tv, scope="match.read offline_access", resource=RESOURCE)
    await type_code(browser, device["user_code"])
    await browser.follow()
    return device


async def poll_later(api: Fixture, device: dict[str, str]) -> tuple[int, str]:
    await api.studio.service.clock.advance(6)
    return oauth_error(await poll(api.tv, device["device_code"]))


async def test_mt_15_the_application_of_an_api_decides_at_authorize_and_on_devices(
    api: Fixture, anna: User, signed_in_browser: HttpBrowser, refusal: str
) -> None:
    agent, browser = api.agent, signed_in_browser
    silent = agent.authorize_path(**api_request(), prompt="none")
    await agent.walk_authorize(browser, "", **api_request())
    await set_refusal(api, anna, refusal, active=True)
    back = query_of((await browser.get(agent.authorize_path(**api_request()))).headers["location"])
    assert back["error"] == "access_denied"
    assert query_of((await browser.get(silent)).headers["location"])["error"] == "access_denied"
    plain = api_request(scope="openid", resource="")  # the client itself is open to her
    assert "code" in query_of(await agent.walk_authorize(browser, "", **plain))
    device = await start_device(api, browser)
    await browser.post("/sign-in/confirm", decision="confirm")
    assert (await browser.follow()).status_code == 403
    assert await poll_later(api, device) == (400, "access_denied")
    await set_refusal(api, anna, refusal, active=False)
    assert "code" in query_of((await browser.get(silent)).headers["location"])


async def test_mt_16_codes_refresh_tokens_and_devices_stop_and_go_on_with_the_application_of_the_api(
    service: RunningService, api: Fixture, anna: User, signed_in_browser: HttpBrowser, refusal: str
) -> None:
    agent, browser = api.agent, signed_in_browser
    server = await an_oidc_client(service, "server", application_id=api.api_application)
    code = agent.code_from(await agent.walk_authorize(browser, "", **api_request()))
    tokens = await agent.tokens(code, code_verifier=VERIFIER)
    device = await start_device(api, browser)
    await browser.post("/sign-in/confirm", decision="confirm")
    waiting = agent.code_from(await agent.walk_authorize(browser, "", **api_request()))
    await set_refusal(api, anna, refusal, active=True)
    assert oauth_error(await agent.redeem(waiting, code_verifier=VERIFIER)) == INVALID_GRANT
    assert oauth_error(await agent.refresh(tokens["refresh_token"])) == INVALID_GRANT
    assert await poll_later(api, device) == INVALID_GRANT
    if refusal != "login rule":
        for token in (tokens["access_token"], tokens["refresh_token"]):
            assert await introspect(server, token) == {"active": False}
    await set_refusal(api, anna, refusal, active=False)
    assert claims_of((await agent.tokens(waiting, code_verifier=VERIFIER))["access_token"])["aud"] == RESOURCE
    assert claims_of(success_body(await agent.refresh(tokens["refresh_token"]))["access_token"])["aud"] == RESOURCE
    await service.clock.advance(6)
    assert claims_of(success_body(await poll(api.tv, device["device_code"]))["access_token"])["aud"] == RESOURCE


async def test_mt_17_terms_of_the_application_of_an_api_are_asked_for(
    service: RunningService, api: Fixture, signed_in_browser: HttpBrowser
) -> None:
    agent, browser = api.agent, signed_in_browser
    await agent.walk_authorize(browser, "", **api_request())
    await publish(service, **TERMS, applications=[str(api.api_application)])
    plain = api_request(scope="openid", resource="")
    assert "code" in query_of(await agent.walk_authorize(browser, "", **plain))
    silent = await browser.get(agent.authorize_path(**api_request(), prompt="none"))
    assert query_of(silent.headers["location"])["error"] == "interaction_required"
    device = await start_device(api, browser)
    assert browser.page is not None
    assert browser.page.url.path == "/terms"
    await browser.post("/terms", decision="decline")
    assert await poll_later(api, device) == (400, "access_denied")
    asked = await browser.get(agent.authorize_path(**api_request()))
    assert asked.headers["location"].startswith("/terms?interaction=")
    await browser.follow()
    accepted = await browser.post("/terms", decision="accept")
    assert "code" in query_of(accepted.headers["location"])


@pytest.mark.both_databases
async def test_mt_17_terms_of_the_application_of_an_api_stop_codes_refresh_tokens_and_devices_until_accepted(
    service: RunningService, api: Fixture, signed_in_browser: HttpBrowser
) -> None:
    agent, browser = api.agent, signed_in_browser
    code = agent.code_from(await agent.walk_authorize(browser, "", **api_request()))
    tokens = await agent.tokens(code, code_verifier=VERIFIER)
    plain = api_request(scope="openid offline_access", resource="")
    others = await agent.tokens(
        agent.code_from(await agent.walk_authorize(browser, "", **plain)), code_verifier=VERIFIER
    )
    device = await start_device(api, browser)
    await browser.post("/sign-in/confirm", decision="confirm")
    waiting = agent.code_from(await agent.walk_authorize(browser, "", **api_request()))
    await publish(service, **TERMS, applications=[str(api.api_application)])
    assert oauth_error(await agent.redeem(waiting, code_verifier=VERIFIER)) == INVALID_GRANT
    assert oauth_error(await agent.refresh(tokens["refresh_token"])) == INVALID_GRANT
    assert await poll_later(api, device) == INVALID_GRANT
    success_body(await agent.refresh(others["refresh_token"]))
    await browser.get(agent.authorize_path(**api_request()))
    await browser.follow()
    await browser.post("/terms", decision="accept")
    success_body(await agent.redeem(waiting, code_verifier=VERIFIER))
    success_body(await agent.refresh(tokens["refresh_token"]))
    await service.clock.advance(6)
    success_body(await poll(api.tv, device["device_code"]))


@pytest.mark.parametrize("change", ["removed", "closed"])
async def test_mt_18_a_code_or_refresh_token_is_not_taken_when_its_api_is_gone_or_closed(
    service: RunningService, api: Fixture, anna: User, change: str
) -> None:
    agent, applications = api.agent, service.services.storage.applications
    server = await an_oidc_client(service, "server", application_id=api.api_application)
    code = await agent.sign_in(anna.login or "", **api_request())
    tokens = await agent.tokens(code, code_verifier=VERIFIER)
    waiting = await agent.sign_in(anna.login or "", **api_request())
    gone = set_fields(api={**API, "access": "own"}) if change == "closed" else set_fields(api=None)
    await applications.edit_application(api.api_application, gone)
    for _ in range(2):
        assert oauth_error(await agent.redeem(waiting, code_verifier=VERIFIER)) == (400, "invalid_target")
        assert oauth_error(await agent.refresh(tokens["refresh_token"])) == (400, "invalid_target")
    assert await introspect(server, tokens["refresh_token"]) == {"active": False}
    for event in (AuditEvent.CODE_REUSED, AuditEvent.REFRESH_REUSED):
        assert not await audit_records(api.studio, event)
    await applications.edit_application(api.api_application, set_fields(api=API))
    success_body(await agent.redeem(waiting, code_verifier=VERIFIER))
    success_body(await agent.refresh(tokens["refresh_token"]))


async def test_mt_19_introspection_tells_only_scopes_that_exist(
    service: RunningService, api: Fixture, anna: User
) -> None:
    storage = service.services.storage
    server = await an_oidc_client(
        service, "server", application_id=api.api_application, scopes=("openid", "offline_access", "roles")
    )
    both = api_request(scope="openid offline_access match.report match.read roles")
    tokens = await server.tokens(await server.sign_in(anna.login or "", **both), code_verifier=VERIFIER)
    machine = success_body(await machine_token(server, scope="match.report match.read"))["access_token"]
    access, refresh = tokens["access_token"], tokens["refresh_token"]
    assert (await introspect(server, access))["scope"] == "match.report match.read roles"
    assert (await introspect(server, refresh))["scope"] == "openid offline_access roles match.report match.read"
    left = {"match.read": API["scopes"]["match.read"]}
    await storage.applications.edit_application(api.api_application, set_fields(api={**API, "scopes": left}))
    assert (await introspect(server, access))["scope"] == "match.read roles"
    assert (await introspect(server, refresh))["scope"] == "openid offline_access roles match.read"
    assert (await introspect(server, machine))["scope"] == "match.read"
    lesser = replace(await storage.clients.client("server"), scopes=("openid", "offline_access"))
    await storage.clients.change_client(lesser, a_record())
    assert (await introspect(server, access))["scope"] == "match.read"
    assert (await introspect(server, refresh))["scope"] == "openid offline_access match.read"
    await ban(api.studio, api.administrator, anna.user_id, application_id=api.api_application)
    assert await introspect(server, refresh) == {"active": False}


async def test_mt_19_refresh_tokens_of_other_clients_are_inactive_while_the_person_is_banned_from_the_api(
    service: RunningService, api: Fixture, anna: User
) -> None:
    shelf = await an_oidc_client(service)
    tokens = await shelf.tokens(await shelf.sign_in(anna.login or "", **api_request()), code_verifier=VERIFIER)
    assert (await introspect(shelf, tokens["refresh_token"]))["active"] is True
    await ban(api.studio, api.administrator, anna.user_id, application_id=api.api_application)
    assert await introspect(shelf, tokens["refresh_token"]) == {"active": False}
    await lift(api.studio, api.administrator, anna.user_id, application_id=api.api_application)
    closed = set_fields(api={**API, "access": "own"})
    await service.services.storage.applications.edit_application(api.api_application, closed)
    assert await introspect(shelf, tokens["refresh_token"]) == {"active": False}


async def machine_token(client: RelyingPartyClient, scope: str) -> httpx2.Response:
    fields = {"grant_type": "client_credentials", "resource": RESOURCE, "scope": scope}
    return await client.service.client.post(TOKEN, data=fields, headers=client.headers)


async def test_mt_20_more_scopes_than_a_token_has_room_for_are_refused_before_anything_is_granted(
    service: RunningService, api: Fixture, signed_in_browser: HttpBrowser
) -> None:
    names = [f"{number:03}".replace("0", "o").replace("1", "i") for number in range(100)]
    names = [f"s{name}{'x' * 60}" for name in names]
    declared = {**API, "scopes": {name: {"title": name} for name in names}}
    applications = service.services.storage.applications
    await applications.edit_application(api.api_application, set_fields(api=declared))
    server = await an_oidc_client(service, "server", application_id=api.api_application)
    most, scope = " ".join(names[:31]), " ".join(names)
    assert oauth_error(await machine_token(server, scope)) == (400, "invalid_scope")
    assert claims_of(success_body(await machine_token(server, most))["access_token"])["scope"] == most
    asked = device_request(api.tv, scope=scope, resource=RESOURCE)
    assert oauth_error(await service.client.post(ASK, data=asked)) == (400, "invalid_scope")
    back = await signed_in_browser.get(server.authorize_path(**api_request(scope=scope)))
    assert query_of(back.headers["location"])["error"] == "invalid_scope"
    code = server.code_from(await server.walk_authorize(signed_in_browser, "", **api_request(scope=most)))
    assert claims_of((await server.tokens(code, code_verifier=VERIFIER))["access_token"])["scope"] == most


HELD: Final = ("openid", "offline_access", "roles")


async def test_mt_21_consent_names_the_application_whose_roles_an_api_is_told(
    service: RunningService, api: Fixture, signed_in_browser: HttpBrowser
) -> None:
    own = await create_application(service.services.storage, name="Shelf")
    other = await an_oidc_client(service, "other", application_id=own.application_id, first_party=False, scopes=HELD)
    browser, with_roles = signed_in_browser, api_request(scope="match.read roles")
    await other.walk_authorize(browser, "", scope="openid roles")  # of its own application
    await other.walk_authorize(browser, "", **api_request(scope="match.read"))
    page = await browser.get(other.authorize_path(**with_roles))
    page = await browser.get(page.headers["location"])
    assert f"your roles in {api.studio.shop.name}" in page.text
    assert "in this application" not in page.text
    code = other.code_from(await other.walk_authorize(browser, "", **with_roles))
    tokens = await other.tokens(code, code_verifier=VERIFIER)
    assert tokens["scope"] == "match.read roles"
    assert "roles" in claims_of(tokens["access_token"])
    assert f"your roles in {api.studio.shop.name}" in (await browser.get("/account")).text


async def test_mt_21_a_client_that_asks_for_no_consent_gets_no_roles_of_another_projects_application(
    service: RunningService, api: Fixture, signed_in_browser: HttpBrowser
) -> None:
    own = await create_application(service.services.storage, name="Shelf")
    sibling = await create_application(service.services.storage, name="Sibling", project_id=PROJECT)
    for client_id, application_id, scope in (
        ("other", own.application_id, "match.read"),
        ("sibling", sibling.application_id, "match.read roles"),
        ("same", api.api_application, "match.read roles"),
    ):
        client = await an_oidc_client(service, client_id, application_id=application_id, scopes=HELD)
        asked = api_request(scope="match.read roles")
        code = client.code_from(await client.walk_authorize(signed_in_browser, "", **asked))
        tokens = await client.tokens(code, code_verifier=VERIFIER)
        assert (client_id, tokens["scope"]) == (client_id, scope)
        assert ("roles" in claims_of(tokens["access_token"])) is ("roles" in scope)
