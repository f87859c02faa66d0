"""The connection to PostgreSQL is lost after a commit was sent and before its response arrived (faults R-90).

Each test loses the response in two ways: after the server has committed, and while it may still be committing.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gatehouse.accounts.model import User
from gatehouse.audit.model import AuditOrigin
from gatehouse.storage.postgres import runner
from tests.support.browser import PASSWORD
from tests.support.builders import ORIGIN, a_record
from tests.support.game import ANNA, approve_in_storage, poll_ended_session, refusal_reason, register_game
from tests.support.oauth import (
    RelyingPartyClient,
    a_grant,
    a_native_client,
    a_public_client,
    an_oidc_client,
    oauth_error,
    success_body,
)
from tests.support.postgres_proxy import PostgresProxy, service_behind
from tests.support.service import RunningService
from tests.support.studio import Studio, a_studio
from tests.wire.oauth.test_device import ask as ask_for_device
from tests.wire.oauth.test_device import poll as poll_with_device
from tests.wire.oauth.test_revoke import OWN, RFC_7009, everything_is_dead, issue_tokens, secret_of
from tests.wire.permissions.test_access_keys import key_request, read_with

# Part of the statement whose commit is lost.
TAKE = "delivered_at="
TAKE_CODE = "SET code_taken_at="
ROTATE = "SET generation=(grants.generation +"
REVOKE = "SET revoked_at="
ADD_KEY = "INSERT INTO access_keys"
ADD_SECRET = "INSERT INTO client_secrets"
TAKE_DEVICE = "DELETE FROM device_requests"

both = pytest.mark.parametrize("early", [False, True], ids=["committed", "under way"])


@pytest.fixture
async def service(proxy: PostgresProxy, installed_postgres_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with service_behind(proxy, installed_postgres_url, tmp_path) as running:
        yield running


@pytest.fixture
async def anna(service: RunningService) -> User:
    return await service.services.accounts.administration.create(
        login=ANNA, nick="Anna", password=PASSWORD, origin=AuditOrigin(actor="test")
    )


@pytest.fixture
async def web(service: RunningService) -> RelyingPartyClient:
    return await a_native_client(service)


async def events(service: RunningService, event: str) -> int:
    return sum(record.event == event for record in await service.services.storage.audit.unsealed_records(1_000))


@both
@pytest.mark.parametrize("fields", [{}, {"short_token": "1"}], ids=["one statement", "a transaction"])
async def test_r_90_gs_90_a_game_gets_its_answer_on_the_connection_that_asked(
    service: RunningService, proxy: PostgresProxy, anna: User, fields: dict[str, Any], *, early: bool
) -> None:
    game = await register_game(service, factor="f", **fields)
    await approve_in_storage(game, anna)
    proxy.cut_commit_of(TAKE, early=early)
    answer = (await game.poll()).json()
    assert (answer["status"], answer["user_id"]) == ("OK", anna.user_id)
    assert proxy.cuts == 1
    assert await events(service, "login.done") == 1
    assert await refusal_reason(service, await poll_ended_session(game)) == "the answer was already delivered"


async def test_r_90_gs_90_a_game_whose_poll_could_not_be_answered_gets_its_answer_at_the_next(
    service: RunningService, proxy: PostgresProxy, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SETTLE_SECONDS", 0.2)
    game = await register_game(service, factor="f")
    await approve_in_storage(game, anna)
    proxy.cut_commit_of(TAKE, then_refuse=True)
    assert (await game.poll()).status_code == 503
    assert proxy.cuts == 1
    proxy.refuses_connections = False
    answer = (await poll_ended_session(game)).json()
    assert (answer["status"], answer["user_id"]) == ("OK", anna.user_id)
    assert await events(service, "game_session.returned") == 1
    assert await refusal_reason(service, await poll_ended_session(game)) == "the answer was already delivered"


@both
async def test_r_90_tk_90_a_code_gives_its_tokens_and_only_once(
    proxy: PostgresProxy, web: RelyingPartyClient, anna: User, *, early: bool
) -> None:
    code = await web.issue_code(anna)
    proxy.cut_commit_of(TAKE_CODE, early=early)
    tokens = await web.tokens(code)
    assert proxy.cuts == 1
    assert success_body(await web.userinfo(tokens["access_token"]))["sub"] == anna.user_id
    assert oauth_error(await web.redeem(code)) == (400, "invalid_grant")
    assert oauth_error(await web.userinfo(tokens["access_token"])) == (401, "invalid_token")  # reuse ends the family


@both
async def test_r_90_tk_90_a_refresh_without_a_grace_window_gives_the_next_token(
    service: RunningService, proxy: PostgresProxy, web: RelyingPartyClient, anna: User, *, early: bool
) -> None:
    assert service.services.settings.oauth.refresh_grace_seconds == 0
    tokens = await issue_tokens(web, anna)
    proxy.cut_commit_of(ROTATE, early=early)
    refreshed = success_body(await web.refresh(tokens["refresh_token"]))
    assert proxy.cuts == 1
    assert success_body(await web.refresh(refreshed["refresh_token"]))
    assert oauth_error(await web.refresh(refreshed["refresh_token"])) == (400, "invalid_grant")


@both
@pytest.mark.parametrize("path", [OWN, RFC_7009])
async def test_r_90_tk_90_a_revocation_says_ok_and_is_recorded_once(
    service: RunningService, proxy: PostgresProxy, web: RelyingPartyClient, anna: User, path: str, *, early: bool
) -> None:
    tokens = await issue_tokens(web, anna)
    proxy.cut_commit_of(REVOKE, early=early)
    fields = {**secret_of(web), "token": tokens["refresh_token"]}
    assert (await service.client.post(path, data=fields)).status_code == 200
    assert proxy.cuts == 1
    assert await events(service, "grant.revoked") == 1
    await everything_is_dead(web, tokens)


@both
async def test_r_90_tk_90_a_device_code_gives_its_tokens(
    service: RunningService, proxy: PostgresProxy, anna: User, *, early: bool
) -> None:
    tv = await a_public_client(service, "tv", redirect_uris=(), device_grant=True)
    device = await ask_for_device(tv)
    store, now = service.services.storage.device_requests, service.clock.now()
    request = await store.find_pending_request(device["user_code"].replace("-", ""), now)
    assert request is not None
    grant = a_grant(
        client_id="tv",
        user_id=anna.user_id,
        rev=anna.rev,
        scopes=request.scopes,
        code=None,
        redirect_uri="",
        created_at=now,
        ends_at=request.ends_at,
    )
    assert await store.approve_request(request.user_code, grant, now, a_record())
    proxy.cut_commit_of(TAKE_DEVICE, early=early)
    assert success_body(await poll_with_device(tv, device["device_code"]))["refresh_token"]
    assert proxy.cuts == 1
    assert oauth_error(await poll_with_device(tv, device["device_code"])) == (400, "invalid_grant")


@both
async def test_r_90_ak_90_an_access_key_is_shown_and_takes_one_of_two_places(
    service: RunningService, proxy: PostgresProxy, *, early: bool
) -> None:
    studio: Studio = await a_studio(service)
    proxy.cut_commit_of(ADD_KEY, early=early)
    body = await studio.expect_ok("accessKey", key_request("save", studio.shop), studio.owner.headers)
    assert proxy.cuts == 1
    assert await read_with(studio, body["data"]["hash"]) == 200
    response_body = await studio.expect_ok("accessKey", key_request("get", studio.shop), studio.owner.headers)
    assert len(response_body["data"]) == 1


@both
async def test_r_90_tk_90_a_rotated_client_secret_is_shown_and_the_one_before_stays(
    service: RunningService, proxy: PostgresProxy, anna: User, *, early: bool
) -> None:
    oidc_client = await an_oidc_client(service)
    proxy.cut_commit_of(ADD_SECRET, early=early)
    secret = await service.services.oauth.clients.commands.rotate_secret(oidc_client.client.client_id, ORIGIN)
    assert proxy.cuts == 1
    for known in (secret, oidc_client.secret):
        response: httpx2.Response = await replace(oidc_client, secret=known).redeem(
            await oidc_client.issue_code(anna)
        )
        assert response.status_code == 200
