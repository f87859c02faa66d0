"""The client's permission checks, against the running service (R5)."""

import asyncio
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gatehouse.client import AccessKey, Gatehouse, Resource, ServiceJwt, ServiceKey, Unauthenticated, Unavailable
from gatehouse.keys.key_objects import public_pem
from tests.support.builders import ORIGIN, a_record
from tests.support.service import running_service
from tests.support.studio import PROJECT, a_studio
from tests.support.tokens import application_private_key
from tests.wire.client.conftest import KICK, ClientShop

GROUP = Resource("groups", "0" * 23 + "a")
MINUTE = 60


async def test_only_assigned_rules_are_allowed(shop: ClientShop) -> None:
    browser_client, gatehouse = shop.studio.other_user, shop.client()
    await shop.save(browser_client, private_data=KICK, public_data={"see": {"value": True, "params": "a,b"}})
    user = await gatehouse.user(browser_client.jwt)
    assert await gatehouse.allows(user, "user.kick")
    assert not await gatehouse.allows(user, "user.ban")
    assert not await gatehouse.allows(user, "user")
    assert (await gatehouse.permissions(user)).params("see") == ("a", "b")
    owner = await gatehouse.user(shop.studio.owner.jwt)
    assert not await gatehouse.allows(owner, "user.kick")


async def test_a_rule_of_a_project_counts_on_its_resources_and_one_of_the_root_nowhere_below(
    shop: ClientShop,
) -> None:
    browser_client, gatehouse = shop.studio.other_user, shop.client()
    in_project = {"private_data": {"user": {"ban": {"value": True}}}}
    await shop.save(browser_client, private_data={**KICK, "projectAccess": {PROJECT: in_project}})
    user = await gatehouse.user(browser_client.jwt)
    assert await gatehouse.allows(user, "user.ban", PROJECT)
    assert await gatehouse.allows(user, "user.ban", PROJECT, GROUP)
    assert not await gatehouse.allows(user, "user.ban")
    assert not await gatehouse.allows(user, "user.ban", "another")
    assert await gatehouse.allows(user, "user.kick")
    assert not await gatehouse.allows(user, "user.kick", PROJECT)
    assert not await gatehouse.allows(user, "user.kick", PROJECT, GROUP)


async def test_an_answer_serves_for_two_seconds_and_is_then_asked_for_by_its_tag(shop: ClientShop) -> None:
    browser_client, gatehouse, clock = shop.studio.other_user, shop.client(), shop.studio.service.clock
    await shop.save(browser_client, private_data=KICK)
    user = await gatehouse.user(browser_client.jwt)
    await asyncio.gather(*(gatehouse.allows(user, "user.kick") for _ in range(5)))
    await clock.advance(1.9)
    assert await gatehouse.allows(user, "user.kick")
    assert shop.transport.statuses_from("data") == [200]
    await clock.advance(0.1)
    assert await gatehouse.allows(user, "user.kick")
    assert shop.transport.statuses_from("data") == [200, 304]
    await clock.advance(1.9)
    assert await gatehouse.allows(user, "user.kick")
    assert shop.transport.statuses_from("data") == [200, 304]


async def test_a_role_that_is_taken_away_is_gone_within_two_seconds(shop: ClientShop) -> None:
    browser_client, gatehouse, clock = shop.studio.other_user, shop.client(), shop.studio.service.clock
    await shop.a_role("moderator")
    await shop.save(browser_client, roles=["moderator"])
    user = await gatehouse.user(browser_client.jwt)
    assert await gatehouse.allows(user, "user.kick")
    await shop.save(browser_client, roles=[])
    await clock.advance(2)
    assert not await gatehouse.allows(user, "user.kick")
    await shop.save(browser_client, roles=["moderator"])
    await clock.advance(2)
    assert await gatehouse.allows(user, "user.kick")


@pytest.mark.parametrize("blocked", [True, False], ids=["blocked", "signed out everywhere"])
async def test_blocked_or_signed_out_user_is_unknown_within_two_seconds(shop: ClientShop, *, blocked: bool) -> None:
    browser_client, gatehouse, services = (
        shop.studio.other_user,
        shop.client(stale_seconds=MINUTE),
        shop.studio.service.services,
    )
    await shop.save(browser_client, private_data=KICK)
    user = await gatehouse.user(browser_client.jwt)
    assert await gatehouse.allows(user, "user.kick")
    if blocked:
        await services.accounts.administration.block(browser_client.user_id, ORIGIN)
    else:
        await services.storage.sessions.revoke_user(
            browser_client.user_id, a_record(), keep=None, now=services.clock.now()
        )
    await shop.studio.service.clock.advance(2)
    with pytest.raises(Unauthenticated):
        await gatehouse.allows(user, "user.kick")
    shop.transport.is_disconnected = True  # nothing is cached about them either
    with pytest.raises(Unavailable):
        await gatehouse.allows(user, "user.kick")


async def test_expiring_permission_ends_on_time(shop: ClientShop) -> None:
    browser_client, clock = shop.studio.other_user, shop.studio.service.clock
    entry = {"value": True, "expired": clock.now() + 1}
    await shop.save(browser_client, private_data={"user": {"kick": entry}})
    gatehouse = shop.client()
    user = await gatehouse.user(browser_client.jwt)
    assert await gatehouse.allows(user, "user.kick")
    await clock.advance(1)
    assert not await gatehouse.allows(user, "user.kick")


async def test_nothing_is_allowed_beyond_max_age_while_the_service_is_down(shop: ClientShop) -> None:
    browser_client, gatehouse, clock = shop.studio.other_user, shop.client(), shop.studio.service.clock
    await shop.save(browser_client, private_data=KICK)
    user = await gatehouse.user(browser_client.jwt)
    assert await gatehouse.allows(user, "user.kick")
    shop.transport.is_disconnected = True
    await clock.advance(1)
    assert await gatehouse.allows(user, "user.kick")
    await clock.advance(1)
    with pytest.raises(Unavailable):
        await gatehouse.allows(user, "user.kick")
    assert (await gatehouse.user(browser_client.jwt)).user_id == browser_client.user_id  # the keys are still cached
    shop.transport.is_disconnected = False
    assert await gatehouse.allows(user, "user.kick")


async def test_a_service_that_has_stopped_allows_nothing(installed_url: str, tmp_path: Path) -> None:
    async with running_service(installed_url, tmp_path) as service:
        studio = await a_studio(service)
        gatehouse = Gatehouse(
            service.base_url,
            application_id=studio.shop.application_id,
            credential=AccessKey(await studio.access_key()),
            clock=service.clock,
        )
        user = await gatehouse.user(studio.other_user.jwt)
        assert not await gatehouse.allows(user, "user.kick")
    await service.clock.advance(2)
    async with gatehouse:
        with pytest.raises(Unavailable):
            await gatehouse.allows(user, "user.kick")


async def test_stale_permissions_are_used_for_stale_seconds_while_the_service_is_down(shop: ClientShop) -> None:
    browser_client, clock = shop.studio.other_user, shop.studio.service.clock
    await shop.save(browser_client, private_data=KICK)
    gatehouse = shop.client(stale_seconds=MINUTE)
    user = await gatehouse.user(browser_client.jwt)
    assert await gatehouse.allows(user, "user.kick")
    shop.transport.is_disconnected = True
    await clock.advance(2 + MINUTE - 1)
    assert await gatehouse.allows(user, "user.kick")
    await clock.advance(1)
    with pytest.raises(Unavailable):
        await gatehouse.allows(user, "user.kick")


async def test_a_service_jwt_asks_as_well(shop: ClientShop) -> None:
    browser_client = shop.studio.other_user
    await shop.save(browser_client, private_data=KICK)
    gatehouse = shop.client(credential=ServiceJwt(await shop.studio.service_jwt()))
    assert await gatehouse.allows(await gatehouse.user(browser_client.jwt), "user.kick")


async def test_a_registered_key_makes_service_jwts_for_as_long_as_they_are_asked_for(shop: ClientShop) -> None:
    studio, private = shop.studio, application_private_key()
    about = studio.shop.application_id
    ask = {"action": "save", "application_id": about, "data": {"public_key": public_pem(private.public_key())}}
    kid = (await studio.expect_ok("application/keys", ask, studio.owner.headers))["data"]["id"]
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    key = ServiceKey(about, kid, pem, clock=studio.service.clock)
    await shop.save(studio.other_user, private_data=KICK)
    gatehouse = shop.client(credential=key)
    user = await gatehouse.user(studio.other_user.jwt)
    for _ in range(6):
        assert await gatehouse.allows(user, "user.kick")
        await studio.service.clock.advance(MINUTE)
    headers = {**studio.owner.headers, "Service-Jwt": key.jwt(studio.service.base_url)}
    assert await studio.expect_ok("user/info", {}, headers)


async def test_an_application_with_a_wrong_credential_learns_nothing(shop: ClientShop) -> None:
    user = await shop.client().user(shop.studio.other_user.jwt)
    theirs = ServiceJwt(await shop.studio.service_jwt(shop.studio.other))
    for wrong in (AccessKey("0" * 64), theirs, ServiceJwt("a.b.c")):
        with pytest.raises(Unavailable, match="this application's credentials"):
            await shop.client(credential=wrong, stale_seconds=60).allows(user, "user.kick")


async def test_however_many_are_refused_the_application_asks_about_itself_once_in_ten_seconds(
    shop: ClientShop,
) -> None:
    services, gatehouse, clock = shop.studio.service.services, shop.client(), shop.studio.service.clock
    jwts = [await shop.jwt(shop.studio.other_user) for _ in range(3)]
    users = [await gatehouse.user(jwt) for jwt in jwts]
    await services.accounts.administration.block(shop.studio.other_user.user_id, ORIGIN)

    async def count_requests() -> int:
        before = len(shop.transport.statuses_from("data"))
        answers = await asyncio.gather(*map(gatehouse.permissions, users), return_exceptions=True)
        assert {type(answer) for answer in answers} == {Unauthenticated}
        return len(shop.transport.statuses_from("data")) - before

    assert [await count_requests(), await count_requests()] == [4, 3]
    await clock.advance(10)
    assert await count_requests() == 4


async def test_the_signed_address_decides_ip_conditions(shop: ClientShop) -> None:
    ask = {
        "action": "save",
        "application_id": shop.studio.shop.application_id,
        "data": {
            "name": "in the house",
            "meta": {"private_data": KICK},
            "condition": {"ip": "10.0.0.0/8"},
        },
    }
    await shop.studio.expect_ok("roles", ask, shop.studio.owner.headers)
    gatehouse, jwt = shop.client(), shop.studio.other_user.jwt
    for address, expected in (("10.1.2.3", True), ("::ffff:10.1.2.3", True), ("11.1.2.3", False), (None, False)):
        user = await gatehouse.user(jwt, address=address)
        assert await gatehouse.allows(user, "user.kick") is expected, address
