"""A promoted database ends every token once, whichever node notices first (R3)."""

import asyncio
from functools import partial

from gatehouse.audit.events import AuditEvent
from gatehouse.storage.database import Storage
from gatehouse.storage.promotion import record_timeline
from tests.support.builders import NOW, a_client, a_record, a_setup_link, a_user

EPOCH = NOW * 1_000


async def notice(storage: Storage, timeline: str, *, lossless: bool = False) -> bool:
    entry = a_record(AuditEvent.PROMOTED, subject="installation")
    noted = partial(record_timeline, timeline, lossless=lossless, epoch=EPOCH, entry=entry)
    return await storage.runner.write(noted)


async def test_the_first_and_the_same_timeline_change_nothing(storage: Storage) -> None:
    user = a_user()
    await storage.accounts.create_user(user, a_record())
    assert [await notice(storage, "00000001") for _ in range(2)] == [False, False]
    assert (await storage.accounts.user(user.user_id)).rev == user.rev


async def test_another_timeline_ends_every_token_exactly_once(storage: Storage) -> None:
    old, ahead = a_user(), a_user(rev=EPOCH + 5)
    for user in (old, ahead):
        await storage.accounts.create_user(user, a_record())
    await storage.accounts.put_setup_link(a_setup_link(b"link"), a_record())
    await notice(storage, "00000001")
    assert await storage.accounts.setup_link_is_open(b"link", NOW)
    noticed = await asyncio.gather(*(notice(storage, "00000002") for _ in range(6)))
    assert sorted(noticed) == [False] * 5 + [True]
    assert (await storage.accounts.user(old.user_id)).rev == EPOCH
    assert not await storage.accounts.setup_link_is_open(b"link", NOW)  # it may have been used
    assert (await storage.accounts.user(ahead.user_id)).rev == EPOCH + 6
    assert [record.event for record in await storage.audit.newest_records(9, "", "installation.promoted")] == [
        "installation.promoted"
    ]


async def test_ci_04_another_timeline_ends_the_tokens_that_clients_got_for_themselves(storage: Storage) -> None:
    for client_id, rev in (("old", 5), ("ahead", EPOCH + 5)):
        client = a_client(client_id, rev=rev)
        await storage.clients.create_client(client, a_record(AuditEvent.CLIENT_CREATED))
        assert (await storage.clients.client(client_id)).rev == rev  # cached from now on
    for timeline in ("00000001", "00000002"):
        await notice(storage, timeline)
    assert [(await storage.clients.client(name)).rev for name in ("old", "ahead")] == [EPOCH, EPOCH + 6]


async def test_a_synchronous_standby_has_lost_nothing(storage: Storage) -> None:
    user = a_user()
    await storage.accounts.create_user(user, a_record())
    await notice(storage, "00000001")
    assert not await notice(storage, "00000002", lossless=True)
    assert (await storage.accounts.user(user.user_id)).rev == user.rev
