"""Distrusting the signing keys takes effect with the next request, without a notification (TK-85 to TK-88).

The service of these tests runs no background tasks and receives no notifications: it learns of a change only from
what its requests read.
"""

import asyncio

import pytest

from gatehouse.keys.jwks import VERSION_CACHE_SECONDS
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.rotation import RotationMode
from tests.support.builders import ORIGIN
from tests.support.oauth import header_of, success_body
from tests.support.service import RunningService
from tests.support.signed_tokens import (
    TOKEN_LINES,
    TokenScenario,
    bearer,
    distrust_all,
    published_kids,
    token_scenario,
)


@pytest.fixture
async def scenario(service: RunningService) -> TokenScenario:
    return await token_scenario(service.services)


@pytest.fixture
def read_versions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The version of each read of the keys."""
    seen: list[int] = []
    read = Keyring._reload_keys

    async def note_version(keyring: Keyring) -> None:
        await read(keyring)
        seen.append(keyring.version)

    monkeypatch.setattr(Keyring, "_reload_keys", note_version)
    return seen


async def test_tk_85_every_use_of_a_token_is_refused_with_the_first_request_after_a_distrust(
    service: RunningService, scenario: TokenScenario
) -> None:
    tokens = await scenario.issue(service.client, service.services)
    taken = await scenario.accepted_uses(service.client, tokens)
    assert taken == dict.fromkeys(taken, True)
    for name in taken:
        tokens = await scenario.issue(service.client, service.services)
        await distrust_all(service.services)
        assert not await scenario.uses(service.client, tokens)[name](), name


async def test_tk_86_what_is_signed_after_a_distrust_is_signed_with_the_new_keys(
    service: RunningService, scenario: TokenScenario
) -> None:
    before = await scenario.issue(service.client, service.services)
    code = await scenario.code(service.services)
    await distrust_all(service.services)
    after = await scenario.issue(service.client, service.services)
    assert not before.kids & after.kids
    taken = await scenario.accepted_uses(service.client, after)
    assert taken == dict.fromkeys(taken, True)
    tokens = await scenario.tokens(service.client, code)  # a code from before, which no key signed
    assert header_of(tokens["id_token"])["kid"] in after.kids
    assert success_body(await service.client.get("/proxy/oauth/userinfo", headers=bearer(tokens["access_token"])))


async def test_tk_87_an_access_token_ends_with_a_distrust_and_with_no_other_rotation(
    service: RunningService, scenario: TokenScenario
) -> None:
    tokens = await scenario.tokens(service.client, await scenario.code(service.services))
    for manner in (RotationMode.PLANNED, RotationMode.AT_ONCE):
        for line in TOKEN_LINES:
            await service.services.keys.rotation.rotate(line, origin=ORIGIN, mode=manner)
        success_body(await service.client.get("/proxy/oauth/userinfo", headers=bearer(tokens["access_token"])))
    await service.services.keys.rotation.rotate(TOKEN_LINES[1], origin=ORIGIN, mode=RotationMode.DISTRUST)
    response = await service.client.get("/proxy/oauth/userinfo", headers=bearer(tokens["access_token"]))
    assert response.status_code == 401


async def test_tk_88_a_distrusted_key_is_published_for_a_second_at_most(
    service: RunningService, scenario: TokenScenario
) -> None:
    kid = header_of(await scenario.log_in(service.client))["kid"]
    assert kid in await published_kids(service.client)
    await distrust_all(service.services)
    await service.clock.advance(VERSION_CACHE_SECONDS)
    assert kid not in await published_kids(service.client)
    one = await service.client.get(f"/api/permissions/application/publicKey/{kid}")
    assert one.status_code == 404


async def test_requests_that_find_another_version_together_read_the_keys_once(
    service: RunningService, scenario: TokenScenario, read_versions: list[int]
) -> None:
    jwt = await scenario.log_in(service.client)
    await service.services.keys.rotation.rotate(TOKEN_LINES[0], origin=ORIGIN, mode=RotationMode.AT_ONCE)
    responses = await asyncio.gather(*(scenario.own_record(service.client, jwt) for _ in range(10)))
    assert {response.status_code for response in responses} == {200}
    assert len(read_versions) <= 2  # one running, and one that began after the last of them arrived
    await scenario.own_record(service.client, jwt)
    assert len(read_versions) <= 2
