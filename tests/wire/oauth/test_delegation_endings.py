"""Programs that act for a person, where accounts, bans, backups and nodes change something meanwhile (R10, R11)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from gatehouse.accounts.model import User
from gatehouse.oauth.grants.token_exchange import ACCESS_TOKEN
from gatehouse.oauth.vocabulary import GrantName
from gatehouse.oauth.workloads.model import WorkloadIdentity
from gatehouse.storage.database import open_storage
from tests.conformance.test_backup import contents, restore
from tests.support.browser import LOGIN, PASSWORD, AccountBrowser, HttpBrowser
from tests.support.builders import ORIGIN
from tests.support.client_documents import run_document_server
from tests.support.delegation import RESOURCE, Agents, act, some_agents
from tests.support.guests import NEW, Device, confirm_upgrade, register_account, register_upgrade
from tests.support.oauth import RelyingPartyClient, an_oidc_client, oauth_error, success_body
from tests.support.permission_builders import create_application
from tests.support.processes import free_port
from tests.support.service import RunningService, running_service
from tests.support.studio import Studio, a_studio, create_administrator
from tests.wire.oauth.authorize_responses import is_error_page
from tests.wire.oauth.test_delegation import introspect, own_token
from tests.wire.oauth.test_pushed_requests import push
from tests.wire.oauth.test_workload_identity import UNPROVED, Issuer, present

INVALID: Final = (400, "invalid_request")
INACTIVE: Final = {"active": False}


@pytest.fixture
async def service(installed_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(
        installed_url, tmp_path, environment={"GATEHOUSE__GUESTS__ENABLED": "true"}
    ) as running:
        yield running


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


@pytest.fixture
async def agents(service: RunningService) -> Agents:
    return await some_agents(service)


async def sign_in_without_page(agents: Agents, user: User) -> str:
    """An opaque token of the chat with which programs act: guests have no password."""
    scopes = ("openid", f"{RESOURCE}#", f"{RESOURCE}#read", f"delegate:{agents.agents.application_id}")
    tokens = await agents.chat.tokens(await agents.chat.issue_code(user, scopes=scopes))
    return str(tokens["access_token"])


async def end_by_erasure(agents: Agents, user: User, _device: Device) -> None:
    browser = AccountBrowser(agents.service)
    await agents.service.clock.advance(1)
    await browser.sign_in(LOGIN)
    await browser.get("/account/delete")
    assert "Account deleted" in (await browser.submit("/account/delete", login=LOGIN)).text
    await browser.client.aclose()
    assert user.login == LOGIN


async def end_by_upgrade(agents: Agents, _user: User, device: Device) -> None:
    browser = HttpBrowser(agents.service)
    game = await register_upgrade(agents.service, device)
    await register_account(agents.service, browser)
    assert (await confirm_upgrade(browser, game, NEW)).url.path == "/game/done"
    await browser.client.aclose()


async def end_by_merge(agents: Agents, _user: User, device: Device) -> None:
    browser = HttpBrowser(agents.service)
    game = await register_upgrade(agents.service, device)
    assert (await confirm_upgrade(browser, game, LOGIN)).url.path == "/game/done"
    await browser.client.aclose()


@pytest.mark.both_databases
@pytest.mark.parametrize("end", [end_by_erasure, end_by_upgrade, end_by_merge])
async def test_dg_07_the_token_ends_with_the_account(
    agents: Agents, anna: User, end: Callable[[Agents, User, Device], Awaitable[None]]
) -> None:
    device, user = Device(), anna
    if end is not end_by_erasure:
        guest = await device.log_in(agents.service, factor="pc")
        user = await agents.service.services.storage.accounts.user(guest["user_id"])
    subject = await sign_in_without_page(agents, user)
    first = success_body(await act(agents.planner, subject))["access_token"]
    chained = success_body(await act(agents.runner, first))["access_token"]
    assert (await introspect(agents.runner, chained))["sub"] == user.user_id
    await end(agents, user, device)
    for token in (first, chained):
        assert await introspect(agents.planner, token) == INACTIVE
    for token in (subject, first):
        assert oauth_error(await act(agents.runner, token)) == INVALID
    listed = await agents.service.services.oauth.given_grants.of_user(user.user_id)
    assert "chat" not in [one.grant.client_id for one in listed]


@pytest.mark.both_databases
async def test_dg_07_a_ban_from_any_application_of_the_chain_ends_the_token(
    agents: Agents, studio: Studio, anna: User
) -> None:
    """Those of both clients that act, of the client of the person, and of the API; and one from everything."""
    service = agents.service
    scribes = await create_application(service.services.storage, name="Scribes")
    scribe = await an_oidc_client(
        service, "scribe", application_id=scribes.application_id, may_act=True, may_act_for_others=True
    )
    administrator = await create_administrator(studio)
    hub = agents.chat.client.application_id
    scope = f"{agents.asked()['scope']} delegate:{scribes.application_id}"
    for number in (agents.agents.application_id, scribes.application_id, hub, agents.calendar.application_id, None):
        subject = (await agents.sign_in(anna, scope=scope))["access_token"]
        first = success_body(await act(agents.planner, subject))["access_token"]
        chained = success_body(await act(scribe, first))["access_token"]
        assert (await introspect(scribe, chained))["active"]
        request = {"user_id": anna.user_id, **({"application_id": number} if number else {})}
        ban = {"action": "save", "data": {"public_text": "Spam"}, **request}
        await studio.expect_ok("user/ban", ban, administrator.headers)
        assert await introspect(scribe, chained) == INACTIVE, number
        assert oauth_error(await act(scribe, first)) == INVALID, number
        await studio.expect_ok("user/ban", {"action": "lift", **request}, administrator.headers)


@pytest.mark.both_databases
async def test_dg_07_a_restore_ends_the_tokens_and_pushed_requests(installed_url: str, tmp_path: Path) -> None:
    """What was issued after the backup must not come back, and what was revoked after it neither."""
    environment = {"GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{free_port()}"}
    async with running_service(installed_url, tmp_path, environment=environment) as service:
        agents, clock = await some_agents(service), service.clock
        anna = await service.services.accounts.administration.create(
            login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN
        )
        subject = (await agents.sign_in(anna))["access_token"]
        first = success_body(await act(agents.planner, subject))["access_token"]
        chained = success_body(await act(agents.runner, first))["access_token"]
        own = await own_token(agents.planner)
        shop = await an_oidc_client(service, "shop")
        pushed = await push(shop)
    async with open_storage(installed_url, migrate=False) as storage:
        await restore(storage, await contents(storage), replace=True, now=clock.now())
    async with running_service(installed_url, tmp_path, environment=environment, clock=clock) as service:
        agents = moved(agents, service)
        for token in (subject, first, chained, own):
            assert await introspect(agents.planner, token) == INACTIVE
        for token in (subject, first):
            assert oauth_error(await act(agents.runner, token)) == INVALID
        browser = HttpBrowser(service)
        assert is_error_page(await browser.get(pushed))
        await browser.client.aclose()
        again = (await agents.sign_in(anna))["access_token"]
        renewed = success_body(await act(agents.planner, again))["access_token"]
        assert (await introspect(agents.planner, renewed))["active"]


def moved(agents: Agents, service: RunningService) -> Agents:
    """The same clients, which call another service."""
    clients = {name: replace(getattr(agents, name), service=service) for name in ("chat", "planner", "runner")}
    return replace(agents, service=service, **clients)


async def test_wi_03_a_workload_acts_for_a_person_at_each_node_and_uses_its_token_once(
    installed_postgres_url: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        documents = await stack.enter_async_context(run_document_server(tmp_path))
        environment = {name: value for name, value in documents.settings.items() if "OUTBOUND" in name}
        environment["GATEHOUSE__SERVER__BASE_URL"] = f"http://localhost:{free_port()}"
        here, there = await nodes(stack, installed_postgres_url, tmp_path, environment)
        issuer = Issuer(server=documents, service=here)
        issuer.publish()
        agents = await some_agents(here)
        worker = await a_worker(agents, issuer)
        anna = await here.services.accounts.administration.create(
            login=LOGIN, nick="Anna", password=PASSWORD, origin=ORIGIN
        )
        subject = (await agents.sign_in(anna))["access_token"]

        async def exchange(node: RunningService, assertion: str, **changes: str) -> Any:
            fields = {"subject_token": subject, "subject_token_type": ACCESS_TOKEN, "resource": RESOURCE, **changes}
            return await present(node, assertion, grant_type=GrantName.TOKEN_EXCHANGE.value, **fields)

        job = issuer.token({"sub": "worker", "jti": "job-1"})
        token = success_body(await exchange(here, job))["access_token"]
        for node in (here, there):
            assert oauth_error(await exchange(node, job)) == UNPROVED, "its issuer gives one for each job"
            assert (await introspect(replace(agents.planner, service=node), token))["client_id"] == "worker"
        own = success_body(await present(there, issuer.token({"sub": "worker", "jti": "job-2"})))["access_token"]
        actor = {"actor_token": own, "actor_token_type": ACCESS_TOKEN}
        assert success_body(await exchange(there, issuer.token({"sub": "worker", "jti": "job-3"}), **actor))
        chained = success_body(await act(replace(agents.runner, service=there), token))["access_token"]
        # Another identity from now on: the other node takes no token of the former one, and what acted ends.
        entry = WorkloadIdentity(issuer=issuer.url, subject="another", discovery=True)
        commands = here.services.oauth.clients.commands
        await commands.change(
            msgspec.structs.replace(await commands.get("worker"), workload_identities=(entry,)), ORIGIN
        )
        await commands.revoke_tokens("worker", ORIGIN)
        assert oauth_error(await exchange(there, issuer.token({"sub": "worker", "jti": "job-4"}))) == UNPROVED
        for ended in (token, chained, own):
            assert await introspect(replace(agents.planner, service=there), ended) == INACTIVE
        assert worker.secret == ""


async def nodes(
    stack: AsyncExitStack, url: str, data: Path, environment: dict[str, str]
) -> tuple[RunningService, RunningService]:
    here = await stack.enter_async_context(running_service(url, data, environment=environment))
    there = await stack.enter_async_context(running_service(url, data, environment=environment, clock=here.clock))
    return here, there


async def a_worker(agents: Agents, issuer: Issuer) -> RelyingPartyClient:
    """A program of the agents' application that proves itself with single-use tokens of its platform."""
    entry = WorkloadIdentity(issuer=issuer.url, subject="worker", discovery=True, single_use=True)
    return await an_oidc_client(
        agents.service,
        "worker",
        application_id=agents.agents.application_id,
        machine=True,
        redirect_uris=(),
        first_party=False,
        scopes=(),
        may_act=True,
        may_act_for_others=True,
        workload_identities=(entry,),
    )
