"""The client follows the change stream: what it caches stays until it changes; when it is cut, `max_age` counts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from gatehouse.client import Gatehouse, ServiceJwt, User
from tests.wire.client.conftest import KICK, ClientShop

MINUTE = 60


@asynccontextmanager
async def followed(shop: ClientShop, client: Gatehouse) -> AsyncIterator[Gatehouse]:
    await shop.studio.service.services.audit.sealer.seal_all()
    assert await client.follow_changes()
    try:
        yield client
    finally:
        await client.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - another thread reads the stream
            await asyncio.sleep(0)


def forgets(client: Gatehouse) -> Callable[[], bool]:
    before = client._permission_cache._changes
    return lambda: client._permission_cache._changes > before


async def test_ch_07_permissions_are_cached_until_they_change_while_the_stream_is_open(shop: ClientShop) -> None:
    person, services = shop.studio.other_user, shop.studio.service.services
    await shop.save(person, private_data=KICK)
    async with followed(shop, shop.client()) as gatehouse:
        user = await gatehouse.user(person.jwt)
        assert await gatehouse.allows(user, "user.kick")
        await shop.studio.service.clock.advance(MINUTE)
        assert await gatehouse.allows(user, "user.kick")
        assert shop.transport.statuses_from("data") == [200]
        changed = forgets(gatehouse)
        await shop.save(person, private_data={})
        await services.audit.sealer.seal_all()
        await until(changed)
        assert not await gatehouse.allows(user, "user.kick")
        await shop.studio.service.clock.advance(5 * MINUTE)
        assert not await gatehouse.allows(user, "user.kick")
        assert shop.transport.statuses_from("data") == [200, 200, 304]


async def test_ch_08_a_cut_stream_leaves_max_age_and_is_opened_again_after_its_last_id(shop: ClientShop) -> None:
    person, services = shop.studio.other_user, shop.studio.service.services
    credential = ServiceJwt(await shop.studio.service_jwt())
    async with followed(shop, shop.client(credential=credential)) as gatehouse:
        user: User = await gatehouse.user(person.jwt)
        assert not await gatehouse.allows(user, "user.kick")
        for stream in tuple(services.changes.streams._streams):
            stream.end()
        await until(lambda: gatehouse._live_since() is None)
        changed = forgets(gatehouse)
        await shop.save(person, private_data=KICK)
        await services.audit.sealer.seal_all()
        await shop.studio.service.clock.advance(2)
        assert await gatehouse.allows(user, "user.kick")
        await until(lambda: gatehouse._live_since() is not None)
        await until(changed)
