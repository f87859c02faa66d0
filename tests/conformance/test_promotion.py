"""A promoted database ends every token once, whichever node notices first (R3)."""

import asyncio
from functools import partial

from sqlalchemy import ColumnElement, select

from gatehouse.audit.events import AuditEvent
from gatehouse.storage.database import Storage
from gatehouse.storage.promotion import record_timeline
from gatehouse.storage.runner import VerbFactory
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.oauth import clients
from tests.conformance.test_sessions import a_session
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
    # Above the highest that was ever stored, for everyone.
    assert {(await storage.accounts.user(user.user_id)).rev for user in (old, ahead)} == {EPOCH + 6}
    assert not await storage.accounts.setup_link_is_open(b"link", NOW)  # it may have been used
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
    assert [(await storage.clients.client(name)).rev for name in ("old", "ahead")] == [EPOCH + 6, EPOCH + 6]
    # It grows from there: after a sign-out everywhere nothing of the time before is valid again.
    await storage.grants.revoke_client_tokens("old", NOW, a_record(AuditEvent.CLIENT_TOKENS_REVOKED))
    assert (await storage.clients.client("old")).rev == EPOCH + 7


async def test_another_timeline_ends_sessions_and_later_ones_are_live(storage: Storage) -> None:
    user = a_user()
    await storage.accounts.create_user(user, a_record())
    await notice(storage, "00000001")
    await storage.sessions.open_session(a_session(user, b"before"), a_record(), replaces=None)
    await notice(storage, "00000002")
    assert await storage.sessions.find_session(b"before", NOW) is None
    later = await storage.accounts.user(user.user_id)
    await storage.sessions.open_session(a_session(later, b"after"), a_record(), replaces=None)
    assert await storage.sessions.find_session(b"after", NOW) is not None
    await notice(storage, "00000003")
    assert await storage.sessions.find_session(b"after", NOW) is None


async def test_a_promotion_writes_no_account_and_no_client(storage: Storage) -> None:
    await storage.accounts.create_user(a_user(rev=7), a_record())
    await storage.clients.create_client(a_client("web", rev=5), a_record(AuditEvent.CLIENT_CREATED))
    for timeline in ("00000001", "00000002"):
        await notice(storage, timeline)
    stored = [row.rev for rev in (users.c.rev, clients.c.rev) for row in await storage.runner.read(rows_of(rev))]
    assert stored == [7, 5]


def rows_of(column: ColumnElement[int]) -> VerbFactory[list[Row]]:
    def read() -> Verb[list[Row]]:
        return (yield Statement(lambda: select(column))())

    return read


async def test_a_synchronous_standby_has_lost_nothing(storage: Storage) -> None:
    user = a_user()
    await storage.accounts.create_user(user, a_record())
    await notice(storage, "00000001")
    assert not await notice(storage, "00000002", lossless=True)
    assert (await storage.accounts.user(user.user_id)).rev == user.rev
