"""Refresh tokens: rotation, reuse, narrowing, expiry (interface §2.1, R3)."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.keys.model import REFRESH_KEYS, Algorithm, KeyLine, KeyPurpose
from gatehouse.keys.rotation import RotationMode
from gatehouse.oauth.model import TokenSettings
from gatehouse.permissions.model.application import Application
from gatehouse.storage.oauth.clients import replace_client
from tests.support.browser import PASSWORD, AccountBrowser
from tests.support.builders import a_record
from tests.support.oauth import (
    DAY,
    TOKEN,
    RelyingPartyClient,
    a_native_client,
    an_oidc_client,
    claims_of,
    native_proof,
    oauth_error,
    success_body,
)
from tests.support.permission_builders import a_project, create_application, publish, set_fields, set_project_fields
from tests.support.processes import free_port
from tests.support.service import RunningService, running_service

TEST = AuditOrigin(actor="test")
GONE = (400, "invalid_grant")
NEW = "a quite different phrase"


async def test_tk_10_a_refresh_renews_all_three_and_the_identity_stays(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    first = await web.tokens(await web.sign_in(anna.login or ""))
    await service.clock.advance(100)
    second = success_body(await web.refresh(first["refresh_token"]))
    assert second.keys() == first.keys()
    for name in ("access_token", "id_token", "refresh_token"):
        assert second[name] != first[name]
    before, after = claims_of(first["id_token"]), claims_of(second["id_token"])
    for name in ("iss", "sub", "aud", "azp", "auth_time", "nonce", "email", "nickname", "typ"):
        assert after[name] == before[name], name
    assert after["iat"] == before["iat"] + 100
    assert success_body(await web.userinfo(first["access_token"])) == success_body(
        await web.userinfo(second["access_token"])
    )


async def test_tk_10_an_old_access_token_lives_to_its_end(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    first = await web.tokens(await web.issue_code(anna))
    await web.refresh(first["refresh_token"])
    await service.clock.advance(3_599)
    assert success_body(await web.userinfo(first["access_token"]))
    await service.clock.advance(1)
    assert oauth_error(await web.userinfo(first["access_token"])) == (401, "invalid_token")


async def test_a_refresh_token_is_a_jwt_of_the_documented_claims(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    claims = claims_of((await web.tokens(await web.issue_code(anna)))["refresh_token"])
    assert claims.pop("kid")
    assert claims.pop("jti")
    now = service.clock.now()
    assert claims == {
        "typ": "refresh_token",
        "iss": service.base_url,
        "aud": [service.base_url, "web"],
        "azp": "web",
        "sub": anna.user_id,
        "scopes": "openid offline_access email profile trust",
        "iat": now,
        "exp": now + 30 * DAY,
    }


async def test_tk_11_a_rotated_refresh_token_ends_its_family_and_is_on_record(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    first = await web.tokens(await web.issue_code(anna))
    second = success_body(await web.refresh(first["refresh_token"]))
    another = await web.tokens(await web.issue_code(anna))
    assert oauth_error(await web.refresh(first["refresh_token"])) == GONE
    assert oauth_error(await web.refresh(second["refresh_token"])) == GONE
    for tokens in (first, second):
        assert oauth_error(await web.userinfo(tokens["access_token"])) == (401, "invalid_token")
    events = [
        record
        for record in await service.services.storage.audit.unsealed_records(100)
        if record.event == "grant.refresh_reused"
    ]
    assert [(event.subject, event.actor, event.details["client_id"]) for event in events] == [
        (anna.user_id, "client:web", "web")
    ]
    assert success_body(await web.refresh(another["refresh_token"]))  # of a second sign-in of the same person


async def test_tk_11_of_many_at_once_at_most_one_gets_tokens(web: RelyingPartyClient, anna: User) -> None:
    first = await web.tokens(await web.issue_code(anna))
    responses = await asyncio.gather(*(web.refresh(first["refresh_token"]) for _ in range(8)))
    assert sorted(response.status_code for response in responses) == [200] + [400] * 7


async def test_within_the_grace_parallel_refreshes_get_the_same_new_token(
    service: RunningService, anna: User
) -> None:
    shop = await an_oidc_client(service, token_settings=TokenSettings(refresh_grace_seconds=10))
    first = await shop.tokens(await shop.issue_code(anna))
    answers = await asyncio.gather(*(shop.refresh(first["refresh_token"]) for _ in range(8)))
    assert len({success_body(answer)["refresh_token"] for answer in answers}) == 1
    await service.clock.advance(9)
    newest = success_body(await shop.refresh(first["refresh_token"]))["refresh_token"]
    assert newest == success_body(answers[0])["refresh_token"]
    await service.clock.advance(1)
    assert oauth_error(await shop.refresh(first["refresh_token"])) == GONE
    assert oauth_error(await shop.refresh(newest)) == GONE


async def test_the_grace_of_the_settings_is_for_clients_that_say_nothing(
    installed_sqlite_url: str, tmp_path: Path
) -> None:
    environment = {"GATEHOUSE__OAUTH__REFRESH_GRACE_SECONDS": "10"}
    async with running_service(installed_sqlite_url, tmp_path, environment=environment) as service:
        anna = await service.services.accounts.administration.create(
            login="anna@studio.example", nick="Anna", password=PASSWORD, origin=TEST
        )
        web = await a_native_client(service)
        first = await web.tokens(await web.issue_code(anna))
        second = success_body(await web.refresh(first["refresh_token"]))["refresh_token"]
        assert success_body(await web.refresh(first["refresh_token"]))["refresh_token"] == second


async def test_tk_15_another_clients_refresh_token_is_refused_and_not_spent(
    service: RunningService, web: RelyingPartyClient, oidc_client: RelyingPartyClient, anna: User
) -> None:
    other, another = await a_native_client(service, "other"), await an_oidc_client(service, "another")
    of_web = (await web.tokens(await web.issue_code(anna)))["refresh_token"]
    of_shelf = (await oidc_client.tokens(await oidc_client.issue_code(anna)))["refresh_token"]
    assert oauth_error(await other.refresh(of_web)) == (401, "invalid_client")
    assert oauth_error(await another.refresh(of_shelf)) == GONE
    assert oauth_error(await another.refresh(of_web)) == GONE
    assert success_body(await web.refresh(of_web))
    assert success_body(await oidc_client.refresh(of_shelf))


async def test_tk_16_a_refresh_repeats_the_redirect_uri_of_its_grant(
    service: RunningService, web: RelyingPartyClient, oidc_client: RelyingPartyClient, anna: User
) -> None:
    elsewhere = "https://shop.example/other"
    token = (await web.tokens(await web.issue_code(anna)))["refresh_token"]
    fields = web.fields(grant_type="refresh_token", refresh_token=token, redirect_uri=elsewhere)
    headers = {"Authorization": f"Bearer {native_proof(elsewhere, web.secret)}"}
    assert oauth_error(await service.client.post(TOKEN, data=fields, headers=headers)) == GONE
    del fields["redirect_uri"]
    for proof in (native_proof("", web.secret), native_proof(web.redirect_uri, web.secret)):
        headers = {"Authorization": f"Bearer {proof}"}
        assert oauth_error(await service.client.post(TOKEN, data=fields, headers=headers)) == (400, "invalid_request")
    token = success_body(await web.refresh(token))["refresh_token"]
    token = (await oidc_client.tokens(await oidc_client.issue_code(anna)))["refresh_token"]
    assert oauth_error(await oidc_client.refresh(token, redirect_uri=elsewhere)) == GONE
    assert success_body(await oidc_client.refresh(token, redirect_uri=""))  # standard clients leave it out


async def test_tk_17_a_refresh_narrows_the_access_token_only_and_never_widens(
    oidc_client: RelyingPartyClient, anna: User
) -> None:
    scopes = ("openid", "offline_access", "email")
    first = await oidc_client.tokens(await oidc_client.issue_code(anna, scopes=scopes))
    for wider in ("openid email profile", "profile", "openid unknown", 'openid "', "openid\temail"):
        assert oauth_error(await oidc_client.refresh(first["refresh_token"], scope=wider)) == (
            400,
            "invalid_scope",
        ), wider
    narrow = success_body(await oidc_client.refresh(first["refresh_token"], scope="openid"))
    assert narrow["scope"] == "openid"
    assert success_body(await oidc_client.userinfo(narrow["access_token"])).keys() == {"status", "sub"}
    assert "email" not in claims_of(narrow["id_token"])
    assert claims_of(narrow["refresh_token"])["scopes"] == " ".join(scopes)
    full = success_body(await oidc_client.refresh(narrow["refresh_token"]))
    assert success_body(await oidc_client.userinfo(full["access_token"])).keys() == {
        "status",
        "sub",
        "email",
        "email_verified",
    }


async def narrow_client(service: RunningService, *scopes: str) -> None:
    changed = replace(await service.services.storage.clients.client("shelf"), scopes=scopes)
    await service.services.storage.runner.write(partial(replace_client, changed))


async def test_scopes_taken_from_a_client_are_gone_from_what_it_was_granted(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User
) -> None:
    first, code = await oidc_client.tokens(await oidc_client.issue_code(anna)), await oidc_client.issue_code(anna)
    await narrow_client(service, "openid", "offline_access", "profile")
    for tokens in (
        success_body(await oidc_client.refresh(first["refresh_token"], scope="openid email")),
        await oidc_client.tokens(code),
    ):
        assert {"email", "trust"}.isdisjoint(tokens["scope"].split())
        assert "email" not in claims_of(tokens["id_token"])
        assert claims_of(tokens["refresh_token"])["scopes"] == "openid offline_access profile"
    claims = success_body(await oidc_client.userinfo(first["access_token"]))
    assert {"email", "email_verified", "phone_verified"}.isdisjoint(claims)
    fields = {"token": first["access_token"]}
    body = success_body(
        await service.client.post("/proxy/oauth/introspect", data=fields, headers=oidc_client.headers)
    )
    assert body["scope"] == "openid offline_access profile"


async def test_a_client_without_offline_access_any_more_refreshes_nothing(
    service: RunningService, oidc_client: RelyingPartyClient, anna: User
) -> None:
    token, code = (
        (await oidc_client.tokens(await oidc_client.issue_code(anna)))["refresh_token"],
        await oidc_client.issue_code(anna),
    )
    await narrow_client(service, "openid")
    assert oauth_error(await oidc_client.refresh(token)) == GONE
    assert "refresh_token" not in await oidc_client.tokens(code)
    response = await service.client.post(
        "/proxy/oauth/introspect", data={"token": token}, headers=oidc_client.headers
    )
    assert success_body(response) == {"active": False}
    await narrow_client(service, "openid", "offline_access")
    assert success_body(await oidc_client.refresh(token))["scope"] == "openid offline_access"


async def block(service: RunningService, anna: User, _app: Application) -> None:
    await service.services.accounts.administration.block(anna.user_id, TEST)


async def change_password(service: RunningService, anna: User, _app: Application) -> None:
    account_browser = AccountBrowser(service)
    await account_browser.sign_in_and_open_account(anna.login or "")
    await account_browser.submit_and_read_notice("/account/password", current=PASSWORD, password=NEW)
    await account_browser.client.aclose()


async def sign_out_everywhere(service: RunningService, anna: User, _app: Application) -> None:
    sessions = service.services.storage.sessions
    await sessions.revoke_user(anna.user_id, a_record(), keep=None, now=service.clock.now())


async def remove_application(service: RunningService, _anna: User, app: Application) -> None:
    await service.services.storage.applications.edit_application(app.application_id, set_fields(removed=True))


async def remove_project(service: RunningService, _anna: User, _app: Application) -> None:
    await service.services.storage.projects.edit_project("mind_games", set_project_fields(removed=True))


async def refuse_login(service: RunningService, anna: User, app: Application) -> None:
    await service.services.storage.user_records.edit_record(
        app.application_id, anna.user_id, set_fields(login={"cannot": {"value": True}}), 0
    )


async def remove_client(service: RunningService, _anna: User, _app: Application) -> None:
    await service.services.oauth.clients.commands.remove("web", TEST)


End = Callable[[RunningService, User, Application], Awaitable[None]]
ENDS: list[End] = [
    block,
    change_password,
    sign_out_everywhere,
    remove_application,
    remove_project,
    refuse_login,
    remove_client,
]


async def an_application(service: RunningService, owner: User) -> Application:
    await publish(service.services.storage, a_project(), owners=[owner.user_id])
    return await create_application(service.services.storage, name="Shop", project_id="mind_games")


@pytest.mark.parametrize("end", ENDS)
async def test_tk_18_no_refresh_after_the_person_or_the_application_is_out(
    service: RunningService, anna: User, end: End
) -> None:
    owner = await service.services.accounts.administration.create(
        login="owner@studio.example", nick="Owner", password=PASSWORD, origin=TEST
    )
    shop = await an_application(service, owner)
    web = await a_native_client(service, application_id=shop.application_id)
    tokens = await web.tokens(await web.issue_code(anna))
    tokens = success_body(await web.refresh(tokens["refresh_token"]))
    code = await web.issue_code(anna)
    await end(service, anna, shop)
    assert oauth_error(await web.refresh(tokens["refresh_token"])) == GONE
    if end is not remove_client:
        assert oauth_error(await web.redeem(code)) == GONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    first: RelyingPartyClient
    second: RelyingPartyClient
    anna: User


@pytest.fixture
async def nodes(installed_postgres_url: str, tmp_path: Path) -> AsyncIterator[Nodes]:
    """One client on two nodes with separate connections and caches."""
    environment = {"GATEHOUSE__SERVER__BASE_URL": f"http://localhost:{free_port()}"}
    async with (
        running_service(installed_postgres_url, tmp_path, environment=environment) as first,
        running_service(installed_postgres_url, tmp_path, environment=environment, clock=first.clock) as second,
    ):
        web = await a_native_client(first)
        anna = await first.services.accounts.administration.create(
            login="anna@studio.example", nick="Anna", password=PASSWORD, origin=TEST
        )
        yield Nodes(first=web, second=dataclasses.replace(web, service=second), anna=anna)


async def test_tk_18_another_node_knows_at_once(nodes: Nodes) -> None:
    tokens = await nodes.first.tokens(await nodes.first.issue_code(nodes.anna))
    assert success_body(await nodes.second.userinfo(tokens["access_token"]))
    await nodes.first.service.services.accounts.administration.block(nodes.anna.user_id, TEST)
    assert oauth_error(await nodes.second.refresh(tokens["refresh_token"])) == GONE
    assert oauth_error(await nodes.second.userinfo(tokens["access_token"])) == (401, "invalid_token")


async def test_ui_05_a_revocation_on_one_node_counts_on_the_other_at_once(nodes: Nodes) -> None:
    tokens = await nodes.first.tokens(await nodes.first.issue_code(nodes.anna))
    fields = {"client_id": "web", "client_secret": nodes.first.secret, "refresh_token": tokens["refresh_token"]}
    assert success_body(await nodes.first.service.client.post(f"{TOKEN}/revoke", json=fields)) == {"status": "ok"}
    assert oauth_error(await nodes.second.refresh(tokens["refresh_token"])) == GONE
    assert oauth_error(await nodes.second.userinfo(tokens["access_token"])) == (401, "invalid_token")


async def test_a_refresh_key_that_one_node_rotates_or_distrusts_is_known_on_the_other(nodes: Nodes) -> None:
    rotation = nodes.first.service.services.keys.rotation
    old = (await nodes.first.tokens(await nodes.first.issue_code(nodes.anna)))["refresh_token"]
    new_key = await rotation.rotate(REFRESH_KEYS, origin=TEST, mode=RotationMode.AT_ONCE)
    new = success_body(await nodes.second.refresh(old))["refresh_token"]
    assert claims_of(new)["kid"] == new_key.kid != claims_of(old)["kid"]
    await rotation.rotate(REFRESH_KEYS, origin=TEST, mode=RotationMode.DISTRUST)
    assert oauth_error(await nodes.second.refresh(new)) == GONE


async def test_tk_07_of_two_nodes_one_takes_the_code(nodes: Nodes) -> None:
    for _ in range(5):
        code = await nodes.first.issue_code(nodes.anna)
        responses = await asyncio.gather(*(node.redeem(code) for node in (nodes.first, nodes.second) * 3))
        assert sorted(response.status_code for response in responses) == [200] + [400] * 5


async def test_tk_19_a_refresh_token_ends_on_its_second(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    first, second = await web.tokens(await web.issue_code(anna)), await web.tokens(await web.issue_code(anna))
    await service.clock.advance(30 * DAY - 1)
    assert success_body(await web.refresh(first["refresh_token"]))
    await service.clock.advance(1)
    assert oauth_error(await web.refresh(second["refresh_token"])) == GONE


async def test_tk_19_a_chain_of_refreshes_ends_with_its_family(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    token = (await web.tokens(await web.issue_code(anna)))["refresh_token"]
    ends_at = service.clock.now() + 90 * DAY
    for _ in range(3):
        await service.clock.advance(30 * DAY - 1)
        answer = success_body(await web.refresh(token))
        token = answer["refresh_token"]
    assert claims_of(token)["exp"] == ends_at
    assert answer["expires_in"] == 3
    await service.clock.advance(3)
    assert oauth_error(await web.refresh(token)) == GONE


async def test_ui_13_tokens_outlive_the_keys_that_signed_them(
    service: RunningService, web: RelyingPartyClient, anna: User
) -> None:
    first = await web.tokens(await web.issue_code(anna))
    for line in (REFRESH_KEYS, KeyLine(KeyPurpose.TOKENS, Algorithm.RS256)):
        await service.services.keys.rotation.rotate(line, origin=TEST, mode=RotationMode.AT_ONCE)
    await service.services.keys.keyring.reload()
    second = success_body(await web.refresh(first["refresh_token"]))
    for name in ("refresh_token", "id_token"):
        assert claims_of(second[name])["kid"] != claims_of(first[name])["kid"]
    assert success_body(await web.refresh(second["refresh_token"]))


async def test_only_an_intact_refresh_token_is_accepted_for_refresh(web: RelyingPartyClient, anna: User) -> None:
    tokens = await web.tokens(await web.issue_code(anna))
    token = tokens["refresh_token"]
    head, payload, signature = token.split(".")
    for other in (
        *(tokens["access_token"], tokens["id_token"], token[:-1], token + "A", f"{head}.{payload}.", "x"),
        f"{head}.{payload}.{signature[::-1]}",
    ):
        assert oauth_error(await web.refresh(other)) == GONE, other
    assert success_body(await web.refresh(token))
