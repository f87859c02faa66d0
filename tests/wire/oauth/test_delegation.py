"""Programs that act for a person: token exchange with an acting client, and `act` (RFC 8693, R11)."""

import json
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import httpx2
import msgspec
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.oauth.grants.token_exchange import ACCESS_TOKEN, JWT
from tests.support.browser import PASSWORD, HttpBrowser
from tests.support.database_contents import read_all_tables
from tests.support.delegation import AGENTS_RESOURCE, API, RESOURCE, VERIFIER, Agents, act, some_agents
from tests.support.guides import programs_for
from tests.support.oauth import (
    DAY,
    TOKEN,
    RelyingPartyClient,
    an_oidc_client,
    base64url,
    claims_of,
    oauth_error,
    query_of,
    success_body,
)
from tests.support.permission_builders import create_application, set_fields
from tests.support.processes import free_port
from tests.support.service import RunningService, running_service
from tests.support.studio import Person, Studio, a_studio, create_administrator

OTHER_RESOURCE: Final = "https://mail.example/api"
INVALID: Final = (400, "invalid_request")
TEST: Final = AuditOrigin(actor="test")


@pytest.fixture
async def studio(service: RunningService) -> Studio:
    return await a_studio(service)


@pytest.fixture
async def agents(service: RunningService) -> Agents:
    return await some_agents(service)


async def own_token(relying: RelyingPartyClient, **fields: str) -> str:
    body = {"grant_type": "client_credentials", **fields}
    answer = await relying.service.client.post(TOKEN, data=body, headers=relying.headers)
    token: str = success_body(answer)["access_token"]
    return token


async def introspect(relying: RelyingPartyClient, token: str) -> dict[str, Any]:
    path = "/proxy/oauth/introspect"
    return success_body(await relying.service.client.post(path, data={"token": token}, headers=relying.headers))


@pytest.mark.both_databases
async def test_dg_01_a_program_acts_for_a_person_and_the_token_says_so(agents: Agents, anna: User) -> None:
    tokens = await agents.sign_in(anna)
    assert tokens["access_token"].count(".") == 0, "for no API itself"
    assert tokens["scope"] == f"openid offline_access read write delegate:{agents.agents.application_id}"
    answer = success_body(await act(agents.planner, tokens["access_token"], scope="read share unknown"))
    token = answer.pop("access_token")
    assert answer == {"token_type": "Bearer", "expires_in": 300, "scope": "read", "issued_token_type": ACCESS_TOKEN}
    claims, now = claims_of(token), agents.service.clock.now()
    jti = claims.pop("jti")
    assert claims == {
        "iss": agents.service.base_url,
        "iat": now,
        "exp": now + 300,
        "sub": anna.user_id,
        "aud": RESOURCE,
        "client_id": "planner",
        "act": {"sub": "client:planner", "client_id": "planner"},
        "scope": "read",
    }
    live = await introspect(agents.planner, token)
    assert live["act"] == claims["act"]
    assert (live["active"], live["sub"], live["scope"], live["jti"]) == (True, anna.user_id, "read", jti)
    chained = success_body(await act(agents.runner, token))
    claims = claims_of(chained["access_token"])
    assert claims["act"] == {
        "sub": "client:runner",
        "client_id": "runner",
        "act": {"sub": "client:planner", "client_id": "planner"},
    }
    assert (claims["client_id"], claims["scope"]) == ("runner", "read"), "never more than the token before it"
    assert (await introspect(agents.runner, chained["access_token"]))["active"]


async def test_dg_01_the_api_itself_needs_no_program(agents: Agents, anna: User) -> None:
    tokens = await agents.sign_in(anna)
    own = success_body(await agents.chat.refresh(tokens["refresh_token"], resource=RESOURCE, scope="read"))
    claims = claims_of(own["access_token"])
    assert (claims["aud"], claims["client_id"], claims["scope"]) == (RESOURCE, "chat", "read")
    assert "act" not in claims
    assert oauth_error(await act(agents.planner, own["access_token"])) == INVALID, "its API could act with it"
    narrow = success_body(
        await agents.chat.refresh(own["refresh_token"], scope=f"write delegate:{agents.agents.application_id}")
    )
    assert (
        claims_of(success_body(await act(agents.planner, narrow["access_token"]))["access_token"])["scope"] == "write"
    )
    assert oauth_error(await act(agents.planner, narrow["access_token"], scope="read")) == (400, "invalid_scope")
    without = success_body(await agents.chat.refresh(narrow["refresh_token"], scope="read write"))
    assert oauth_error(await act(agents.planner, without["access_token"])) == INVALID


async def test_dg_02_no_one_acts_whom_the_person_did_not_allow(agents: Agents, anna: User) -> None:
    """The application's other programs, those of other applications, and tokens of other sign-ins."""
    service = agents.service
    token = (await agents.sign_in(anna))["access_token"]
    own = {"application_id": agents.agents.application_id, "first_party": True}
    plain = await an_oidc_client(service, "plain", **own)
    homely = await an_oidc_client(service, "homely", **own, may_act=True)
    stranger = await an_oidc_client(
        service, "stranger", application_id=agents.calendar.application_id, may_act=True, may_act_for_others=True
    )
    assert oauth_error(await act(plain, token)) == (400, "unauthorized_client")
    assert oauth_error(await act(agents.chat, token)) == (400, "unauthorized_client")
    assert oauth_error(await act(homely, token)) == INVALID, "acts through clients of its own application only"
    assert oauth_error(await act(stranger, token)) == INVALID
    other = await agents.chat.sign_in(anna.login or "", **agents.asked(scope="openid read"))
    jwt = (await agents.chat.tokens(other, code_verifier=VERIFIER))["access_token"]
    assert oauth_error(await act(agents.planner, jwt)) == INVALID
    member = await an_oidc_client(service, "member", application_id=agents.agents.application_id)
    code = await member.sign_in(anna.login or "", **agents.asked())
    through_member = (await member.tokens(code, code_verifier=VERIFIER))["access_token"]
    assert success_body(await act(homely, through_member))


async def test_dg_03_an_actor_token_is_the_programs_own_and_never_a_persons(agents: Agents, anna: User) -> None:
    tokens = await agents.sign_in(anna)
    token = tokens["access_token"]
    acted = success_body(await act(agents.planner, token))["access_token"]
    for own in (await own_token(agents.planner), await own_token(agents.planner, resource=AGENTS_RESOURCE)):
        assert success_body(await act(agents.planner, token, actor_token=own, actor_token_type=ACCESS_TOKEN))
        assert oauth_error(await act(agents.planner, token, actor_token=own)) == INVALID
        assert oauth_error(await act(agents.planner, token, actor_token=own, actor_token_type=JWT)) == INVALID
        assert oauth_error(await act(agents.planner, own)) == INVALID, "is about no person"
    for foreign in (token, acted, tokens["id_token"], tokens["refresh_token"], await own_token(agents.runner), "x"):
        more = {"actor_token": foreign, "actor_token_type": ACCESS_TOKEN}
        assert oauth_error(await act(agents.planner, token, **more)) == INVALID
    assert oauth_error(await act(agents.planner, token, actor_token_type=ACCESS_TOKEN)) == INVALID


async def test_dg_03_nothing_but_an_access_token_of_a_person_stands_for_them(
    agents: Agents, studio: Studio, anna: User
) -> None:
    """Not what others got, what was made for something else, or what the program changed itself."""
    service = agents.service
    code = await agents.chat.sign_in(anna.login or "", **agents.asked())
    tokens = await agents.chat.tokens(code, code_verifier=VERIFIER)
    opaque, acted = tokens["access_token"], success_body(await act(agents.planner, tokens["access_token"]))
    head, payload, signature = acted["access_token"].split(".")
    claims = claims_of(acted["access_token"])
    more = base64url(json.dumps({**claims, "scope": "read write share"}).encode())
    none = base64url(b'{"alg":"none","typ":"at+jwt"}')
    places = opaque[:-34] + ("A" if opaque[-34] != "A" else "B") + opaque[-33:]
    assert (
        oauth_error(await act(agents.planner, await own_token(agents.planner, resource=AGENTS_RESOURCE))) == INVALID
    )
    for subject in (
        *(code, tokens["refresh_token"], tokens["id_token"], studio.owner.jwt, "x", "a.b.c"),
        *(f"{head}.{more}.{signature}", f"{none}.{more}.", f"{head}.{payload}.", places, opaque.upper()),
    ):
        assert oauth_error(await act(agents.planner, subject)) == INVALID, subject
        actor = {"actor_token": subject, "actor_token_type": ACCESS_TOKEN}
        assert oauth_error(await act(agents.planner, opaque, **actor)) == INVALID, subject
    twice = [("resource", RESOURCE), ("resource", OTHER_RESOURCE), ("subject_token", opaque)]
    twice += [("subject_token_type", ACCESS_TOKEN), ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange")]
    headers = {**agents.planner.headers, "Content-Type": "application/x-www-form-urlencoded"}
    answer = await service.client.post(TOKEN, content=urlencode(twice), headers=headers)
    assert oauth_error(answer) == INVALID
    assert oauth_error(await act(agents.planner, opaque, subject_token_type=JWT)) == INVALID
    assert oauth_error(await act(agents.planner, opaque, resource=f"{RESOURCE}/")) == (400, "invalid_target")
    assert oauth_error(await act(agents.planner, opaque, scope="read\nwrite")) == (400, "invalid_scope")
    await service.services.oauth.consents.withdraw(anna.user_id, "chat", TEST)
    assert oauth_error(await act(agents.planner, opaque)) == INVALID


async def test_dg_04_only_the_api_that_the_person_allowed_and_that_reads_act(agents: Agents, anna: User) -> None:
    storage = agents.service.services.storage
    token = (await agents.sign_in(anna))["access_token"]
    mail = await create_application(storage, name="Mail", api={**API, "resource": OTHER_RESOURCE})
    target = (400, "invalid_target")
    assert oauth_error(await act(agents.planner, token, resource=OTHER_RESOURCE)) == target
    assert oauth_error(await act(agents.planner, token, resource="https://unknown.example/")) == target
    assert oauth_error(await act(agents.planner, token, audience=RESOURCE)) == target
    assert oauth_error(await act(agents.planner, token, resource="")) == INVALID
    assert oauth_error(await act(agents.planner, token, requested_token_type=JWT)) == INVALID
    acted = success_body(await act(agents.planner, token))["access_token"]
    number = agents.calendar.application_id
    for api in ({**API, "act": "refused"}, {**API, "access": "listed", "clients": ["chat"]}):
        await storage.applications.edit_application(number, set_fields(api=api))
        assert oauth_error(await act(agents.planner, token)) == target
        assert await introspect(agents.planner, acted) == {"active": False}
    await storage.applications.edit_application(
        number, set_fields(api={**API, "access": "listed", "clients": ["chat", "planner"]})
    )
    assert (await introspect(agents.planner, acted))["active"]
    assert success_body(await act(agents.planner, token))
    assert oauth_error(await act(agents.runner, token)) == target
    assert mail.api_resource == OTHER_RESOURCE


async def test_dg_05_a_chain_names_each_program_and_has_at_most_three(agents: Agents, anna: User) -> None:
    token = (await agents.sign_in(anna))["access_token"]
    for relying in (agents.planner, agents.runner, agents.planner):
        await agents.service.clock.advance(60)
        token = success_body(await act(relying, token))["access_token"]
    claims = claims_of(token)
    assert claims["act"]["act"]["act"] == {"sub": "client:planner", "client_id": "planner"}
    assert claims["exp"] == agents.service.clock.now() + 180, "never longer than the token before it"
    assert oauth_error(await act(agents.runner, token)) == INVALID
    await agents.service.clock.advance(180)
    assert oauth_error(await act(agents.runner, token)) == INVALID
    assert await introspect(agents.planner, token) == {"active": False}


async def test_dg_06_the_token_opens_nothing_of_this_service(agents: Agents, anna: User) -> None:
    subject = (await agents.sign_in(anna))["access_token"]
    token = success_body(await act(agents.planner, subject))["access_token"]
    assert (await agents.planner.userinfo(token)).status_code == 401
    for path in ("exchange", "exchangeToken"):
        answer = await agents.service.client.post(
            f"/proxy/oauth/{path}", headers={"Authorization": f"Bearer {token}"}
        )
        assert oauth_error(answer) == (401, "invalid_token")
    exchanger = await an_oidc_client(
        agents.service,
        "exchanger",
        application_id=agents.agents.application_id,
        may_act=True,
        may_act_for_others=True,
        may_exchange=True,
    )
    for kind in (ACCESS_TOKEN, JWT):
        answer = await act(exchanger, token, subject_token_type=kind, resource="")
        assert oauth_error(answer) == INVALID
    assert oauth_error(await exchanger.refresh(token)) == (400, "invalid_grant")


async def end_grant(agents: Agents, _anna: User, tokens: dict[str, Any]) -> None:
    fields = {"token": tokens["refresh_token"]}
    answer = await agents.service.client.post("/proxy/oauth/revoke", data=fields, headers=agents.chat.headers)
    assert answer.status_code == 200


async def block_person(agents: Agents, anna: User, _: dict[str, Any]) -> None:
    await agents.service.services.accounts.administration.block(anna.user_id, TEST)


async def withdraw_consent(agents: Agents, anna: User, _: dict[str, Any]) -> None:
    assert await agents.service.services.oauth.consents.withdraw(anna.user_id, "chat", TEST)


async def remove_subject_client(agents: Agents, _anna: User, _: dict[str, Any]) -> None:
    await agents.service.services.oauth.clients.commands.remove("chat", TEST)


async def remove_acting_client(agents: Agents, _anna: User, _: dict[str, Any]) -> None:
    await agents.service.services.oauth.clients.commands.remove("planner", TEST)


async def end_tokens_of_acting_client(agents: Agents, _anna: User, _: dict[str, Any]) -> None:
    await agents.service.services.oauth.clients.commands.revoke_tokens("planner", TEST)


async def forbid_acting(agents: Agents, _anna: User, _: dict[str, Any]) -> None:
    commands = agents.service.services.oauth.clients.commands
    client = await commands.get("planner")
    await commands.change(msgspec.structs.replace(client, may_act=False, may_act_for_others=False), TEST)


async def remove_acting_application(agents: Agents, _anna: User, _: dict[str, Any]) -> None:
    storage = agents.service.services.storage
    await storage.applications.edit_application(agents.agents.application_id, set_fields(removed=True))


ENDINGS: Final[tuple[Callable[[Agents, User, dict[str, Any]], Awaitable[None]], ...]] = (
    end_grant,
    block_person,
    withdraw_consent,
    remove_subject_client,
    remove_acting_client,
    end_tokens_of_acting_client,
    forbid_acting,
    remove_acting_application,
)


@pytest.mark.both_databases
@pytest.mark.parametrize("end", ENDINGS)
async def test_dg_07_the_token_ends_with_the_grant_and_either_client(
    agents: Agents, anna: User, end: Callable[[Agents, User, dict[str, Any]], Awaitable[None]]
) -> None:
    api_client = await an_oidc_client(agents.service, "api", application_id=agents.calendar.application_id)
    tokens = await agents.sign_in(anna)
    first = success_body(await act(agents.planner, tokens["access_token"]))["access_token"]
    chained = success_body(await act(agents.runner, first))["access_token"]
    assert (await introspect(api_client, chained))["active"]
    await end(agents, anna, tokens)
    for token in (first, chained):
        assert await introspect(api_client, token) == {"active": False}
    assert "error" in (await act(agents.runner, first)).json()


@pytest.mark.both_databases
async def test_dg_08_a_program_revokes_its_own_token_and_no_one_elses(agents: Agents, anna: User) -> None:
    """What came from the token ends with it; what it came from, and what came from others, does not."""

    async def revoke(relying: RelyingPartyClient, token: str) -> None:
        answer = await agents.service.client.post(
            "/proxy/oauth/revoke", data={"token": token}, headers=relying.headers
        )
        assert answer.status_code == 200

    async def act_from(acting: RelyingPartyClient, token: str) -> str:
        return str(success_body(await act(acting, token))["access_token"])

    async def are_active(*tokens: str) -> list[bool]:
        return [(await introspect(agents.planner, token))["active"] for token in tokens]

    tokens = await agents.sign_in(anna)
    first, second = [await act_from(agents.planner, tokens["access_token"]) for _ in range(2)]
    chained, of_second = [await act_from(agents.runner, token) for token in (first, second)]
    last = await act_from(agents.planner, chained)
    await revoke(agents.runner, first)
    await revoke(agents.chat, first)
    assert await are_active(first, chained, last, second, of_second) == [True] * 5
    await revoke(agents.runner, chained)
    assert await are_active(first, chained, last, second, of_second) == [True, False, False, True, True]
    again = await act_from(agents.runner, first)
    assert await are_active(again, await act_from(agents.planner, again)) == [True, True]
    await revoke(agents.planner, first)
    assert await are_active(first, again, second, of_second) == [False, False, True, True]
    assert oauth_error(await act(agents.planner, again)) == INVALID
    assert success_body(await agents.chat.refresh(tokens["refresh_token"]))


async def test_dg_09_consent_names_the_programs_each_time_and_for_a_trusted_client_too(
    agents: Agents, signed_in_browser: HttpBrowser
) -> None:
    for _ in range(2):
        start = await signed_in_browser.get(agents.chat.authorize_path(**agents.asked()))
        page = await signed_in_browser.get(start.headers["location"].removeprefix(agents.service.base_url))
        assert "Studio Agents" in page.text
        assert "<bdi>Planner</bdi>, <bdi>Runner</bdi>" in page.text
        assert "delegate:" not in page.text
        await agents.chat.walk_authorize(signed_in_browser, "", **agents.asked())
    silent = await signed_in_browser.get(agents.chat.authorize_path(**agents.asked(prompt="none")))
    assert query_of(silent.headers["location"])["error"] == "interaction_required"
    plain = await signed_in_browser.get(agents.chat.authorize_path(**agents.asked(scope="openid read")))
    assert "code" in query_of(plain.headers["location"])


async def test_dg_10_a_delegate_scope_that_can_do_nothing_is_ignored_or_refused(
    agents: Agents, signed_in_browser: HttpBrowser
) -> None:
    async def answer_to(**changes: str) -> dict[str, str]:
        path = agents.chat.authorize_path(**agents.asked(**changes))
        return query_of((await signed_in_browser.get(path)).headers["location"])

    homely = await create_application(agents.service.services.storage, name="Homely")
    await an_oidc_client(agents.service, "homely", application_id=homely.application_id, may_act=True)
    of_its_own = f"delegate:{homely.application_id}"  # its program acts through clients of its own application only
    without_programs = f"delegate:{agents.calendar.application_id}"
    for unknown in ("delegate:999999", without_programs, of_its_own, "delegate:01", "delegate:x"):
        assert "code" in await answer_to(scope=f"openid read {unknown}")
    number = agents.agents.application_id
    assert (await answer_to(scope=f"openid delegate:{number}", resource=""))["error"] == "invalid_scope"


@pytest.mark.both_databases
async def test_dg_11_the_audit_log_names_program_person_and_grant_once_an_hour(agents: Agents, anna: User) -> None:
    token = (await agents.sign_in(anna))["access_token"]
    for _ in range(3):
        success_body(await act(agents.planner, token))
    rows = (await read_all_tables(agents.service.services.storage))["audit_events"]
    records = [row for row in rows if row.event == AuditEvent.DELEGATED_TOKEN_MADE.value]
    assert [(record.actor, record.subject) for record in records] == [("client:planner", anna.user_id)]
    assert records[0].details["client"] == "chat"


@pytest.fixture
async def nodes(installed_postgres_url: str, tmp_path: Path) -> AsyncIterator[tuple[Agents, RunningService]]:
    environment = {"GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{free_port()}"}
    async with (
        running_service(installed_postgres_url, tmp_path, environment=environment) as first,
        running_service(installed_postgres_url, tmp_path, environment=environment, clock=first.clock) as second,
    ):
        yield await some_agents(first), second


async def test_dg_07_an_end_on_one_node_counts_on_the_other_at_once(nodes: tuple[Agents, RunningService]) -> None:
    agents, there = nodes
    anna = await agents.service.services.accounts.administration.create(
        login="anna@studio.example", nick="Anna", password=PASSWORD, origin=TEST
    )
    tokens = await agents.sign_in(anna)
    planner = replace(agents.planner, service=there)
    token = success_body(await act(planner, tokens["access_token"]))["access_token"]
    assert (await introspect(planner, token))["active"]
    await end_grant(agents, anna, tokens)
    assert await introspect(planner, token) == {"active": False}
    assert oauth_error(await act(planner, tokens["access_token"])) == INVALID
    assert oauth_error(await act(replace(agents.runner, service=there), token)) == INVALID


async def test_the_guides_exchange_works(agents: Agents, anna: User) -> None:
    (command,) = programs_for(__file__, "protect-an-api", "sh")
    words = shlex.split(command.replace("\\\n", " "))
    fields = dict(word.split("=", 1) for word in words if "=" in word)
    subject = (await agents.sign_in(anna))["access_token"]
    sent = {**fields, "subject_token": subject, "resource": RESOURCE, "scope": "read"}
    answer = await agents.service.client.post(TOKEN, data=sent, headers=agents.planner.headers)
    assert claims_of(success_body(answer)["access_token"])["act"]["client_id"] == "planner"


@pytest.mark.both_databases
async def test_dg_12_a_consent_with_an_end_ends_what_was_given_under_it(
    agents: Agents, signed_in_browser: HttpBrowser
) -> None:
    async def allow(days: str, scope: str) -> str:
        await signed_in_browser.get(shop.authorize_path(**agents.asked(scope=scope, prompt="consent")))
        await signed_in_browser.follow()
        back = await signed_in_browser.post("/sign-in/consent", decision="allow", days=days)
        return shop.code_from(back.headers["location"])

    async def is_asked(scope: str) -> bool:
        back = await signed_in_browser.get(shop.authorize_path(**agents.asked(scope=scope, prompt="none")))
        return query_of(back.headers["location"]).get("error") == "interaction_required"

    shop = await an_oidc_client(agents.service, "shop", first_party=False)
    code = await allow("1", "openid offline_access read")
    tokens = await shop.tokens(code, code_verifier=VERIFIER)
    await agents.service.clock.advance(DAY - 60)
    tokens = success_body(await shop.refresh(tokens["refresh_token"]))
    assert tokens["expires_in"] == 60
    await signed_in_browser.sign_in("anna@studio.example")
    await allow("30", "openid write")
    assert not await is_asked("openid write")
    assert await is_asked("openid read"), "allowed for a day, and not for 30"
    await agents.service.clock.advance(60)
    assert oauth_error(await shop.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    await allow("", "openid read")
    await agents.service.clock.advance(31 * DAY)
    await signed_in_browser.sign_in("anna@studio.example")
    assert not await is_asked("openid read")


@pytest.mark.both_databases
@pytest.mark.parametrize("is_delegation", [True, False])
async def test_a_grant_is_used_on_the_day_of_an_exchange(agents: Agents, anna: User, *, is_delegation: bool) -> None:
    async def last_use() -> int:
        (listed,) = await agents.service.services.oauth.given_grants.of_user(anna.user_id)
        return listed.grant.used_at

    service, clock = agents.service, agents.service.clock
    await clock.advance(DAY - clock.now() % DAY - 60)
    evening = clock.now()
    tokens = await agents.sign_in(anna)
    await clock.advance(120)
    assert await last_use() == evening
    midnight = clock.now()
    for _ in range(2):
        if is_delegation:
            success_body(await act(agents.planner, tokens["access_token"]))
        else:
            commands = service.services.oauth.clients.commands
            await commands.change(msgspec.structs.replace(await commands.get("chat"), may_exchange=True), TEST)
            headers = {"Authorization": f"Bearer {tokens['access_token']}"}
            answer = await service.client.post("/proxy/oauth/exchangeToken", headers=headers)
            assert answer.status_code == 200, answer.text
        assert await last_use() == midnight, "once a day is enough"
        await clock.advance(60)


@pytest.mark.both_databases
async def test_dg_13_a_person_and_administrators_list_and_end_each_grant(agents: Agents, studio: Studio) -> None:
    person, stranger, admin = studio.owner, studio.other_user, await create_administrator(studio)
    user = await agents.service.services.storage.accounts.user(person.user_id)
    scopes = ("openid", f"{RESOURCE}#", f"{RESOURCE}#read", f"delegate:{agents.agents.application_id}")
    for scope in (scopes, ("openid",)):
        await agents.chat.tokens(await agents.chat.issue_code(user, scopes=scope))
        await agents.service.clock.advance(1)

    async def grants(action: str, caller: Person, **data: str) -> httpx2.Response:
        body = {"action": action, "data": {"user_id": person.user_id, **data}}
        return await studio.post("user/grants", body, caller.headers)

    plain, acted = success_body(await grants("get", person))["data"]["grants"]
    assert (plain["acting"], plain["resource"]) == ([], "")
    assert acted["acting"] == [
        {"application_id": agents.agents.application_id, "name": "Studio Agents", "programs": ["Planner", "Runner"]}
    ]
    assert (acted["client_id"], acted["resource"]) == ("chat", RESOURCE)
    assert acted["scopes"] == ["openid", "read", f"delegate:{agents.agents.application_id}"]
    assert acted["used"] == acted["given"][:10]
    assert (await grants("end", stranger, grant_id=acted["grant_id"])).status_code == 403
    other = {"action": "end", "data": {"user_id": stranger.user_id, "grant_id": acted["grant_id"]}}
    answer = success_body(await studio.post("user/grants", other, stranger.headers))
    assert answer["data"] == {"grants": [], "ended": False}
    assert success_body(await grants("end", person, grant_id=acted["grant_id"]))["data"]["ended"] is True
    assert [one["grant_id"] for one in success_body(await grants("get", admin))["data"]["grants"]] == [
        plain["grant_id"]
    ]
    assert success_body(await grants("end", admin, grant_id=plain["grant_id"]))["data"] == {
        "grants": [],
        "ended": True,
    }
