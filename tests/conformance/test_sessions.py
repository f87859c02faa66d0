"""Contract tests of the store of accounts/sessions.py."""

import asyncio

import pytest
from msgspec.structs import replace
from sqlalchemy import select

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import SessionStrength, SignInMethod, User
from gatehouse.accounts.session_model import Session, UserSession
from gatehouse.audit.events import AuditEvent
from gatehouse.storage.accounts.sessions import SWEEP_DELAY
from gatehouse.storage.database import Storage
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import sessions
from tests.support.builders import NOW, a_record, a_user

STORED_SESSIONS = Statement(lambda: select(sessions))


def a_session(user: User, digest: bytes = b"cookie", **fields: object) -> Session:
    session = Session(
        digest=digest,
        session_id=digest.hex(),
        user_id=user.user_id,
        rev=user.rev,
        auth=SignInMethod.LOGIN,
        strength=SessionStrength.FULL,
        created_at=NOW,
        proved_at=NOW,
        seen_at=NOW,
        idle_ends_at=NOW + 100,
        ends_at=NOW + 1_000,
        address="192.0.2.7",
        agent="Firefox",
    )
    return replace(session, **fields)


@pytest.fixture
async def anna(storage: Storage) -> User:
    user = a_user(tags=frozenset({"staff"}))
    await storage.accounts.create_user(user, a_record())
    return user


async def open_session(storage: Storage, session: Session, replaces: bytes | None = None) -> None:
    await storage.sessions.open_session(session, a_record(AuditEvent.SIGNED_IN), replaces=replaces)


async def test_a_session_is_found_with_its_whole_account(storage: Storage, anna: User) -> None:
    session = a_session(anna)
    await open_session(storage, session)
    assert await storage.sessions.find_session(b"cookie", NOW) == UserSession(session=session, user=anna)
    assert await storage.sessions.find_session(b"other", NOW) is None


async def test_session_ends_when_idle_and_at_its_absolute_limit(storage: Storage, anna: User) -> None:
    await open_session(storage, a_session(anna))
    assert await storage.sessions.find_session(b"cookie", NOW + 99) is not None
    assert await storage.sessions.find_session(b"cookie", NOW + 100) is None
    await storage.sessions.update_last_seen(b"cookie", NOW + 99, NOW + 5_000)
    assert await storage.sessions.find_session(b"cookie", NOW + 999) is not None
    assert await storage.sessions.find_session(b"cookie", NOW + 1_000) is None


def stored_sessions() -> Verb[dict[str, int]]:
    rows = yield STORED_SESSIONS()
    return {row.session_id: row.sweep_at for row in rows}


async def test_a_session_in_use_changes_no_index_but_once_a_day_and_is_deleted_when_it_has_ended(
    storage: Storage, anna: User
) -> None:
    """PostgreSQL then updates its row in place."""
    indexed = {column for index in sessions.indexes for column in index.columns}
    assert not indexed & {sessions.c.seen_at, sessions.c.idle_ends_at}
    idle = 3 * SWEEP_DELAY
    one = a_session(anna, b"a", idle_ends_at=NOW + idle, ends_at=NOW + 30 * SWEEP_DELAY)
    await open_session(storage, one)
    await open_session(storage, a_session(anna, b"b", idle_ends_at=NOW + idle, ends_at=NOW + SWEEP_DELAY))
    swept_at = (await storage.runner.read(stored_sessions))[one.session_id]
    changes = set()
    last = NOW
    for last in range(NOW + 60, NOW + 2 * SWEEP_DELAY + 60, 3_600):
        await storage.sessions.update_last_seen(b"a", last, last + idle)
        changes.add((await storage.runner.read(stored_sessions))[one.session_id])
        await storage.sweep(last)
        assert await storage.sessions.find_session(b"a", last) is not None
    assert len(changes - {swept_at}) == 1
    assert list(await storage.runner.read(stored_sessions)) == [one.session_id]  # the other one had ended
    await storage.sweep(last + idle + SWEEP_DELAY)
    assert await storage.runner.read(stored_sessions) == {}


async def test_being_seen_earlier_than_known_changes_nothing(storage: Storage, anna: User) -> None:
    await open_session(storage, a_session(anna))
    await storage.sessions.update_last_seen(b"cookie", NOW - 5, NOW + 9_999)
    session = await storage.sessions.find_session(b"cookie", NOW)
    assert session is not None
    assert session.session.idle_ends_at == NOW + 100


async def test_a_new_session_ends_the_one_it_replaces(storage: Storage, anna: User) -> None:
    await open_session(storage, a_session(anna, b"old"))
    await open_session(storage, a_session(anna, b"new"), replaces=b"old")
    assert await storage.sessions.find_session(b"old", NOW) is None
    assert [session.digest for session in await storage.sessions.sessions_of_user(anna.user_id, NOW)] == [b"new"]


async def test_blocking_ends_every_session_at_once(storage: Storage, anna: User) -> None:
    await open_session(storage, a_session(anna))
    await storage.accounts.set_blocked(anna.user_id, a_record(AuditEvent.USER_BLOCKED), blocked=True, now=NOW)
    assert await storage.sessions.find_session(b"cookie", NOW) is None
    await storage.accounts.set_blocked(anna.user_id, a_record(AuditEvent.USER_UNBLOCKED), blocked=False, now=NOW)
    assert await storage.sessions.find_session(b"cookie", NOW) is None


async def test_revoking_ends_all_but_the_one_to_keep(storage: Storage, anna: User) -> None:
    for digest in (b"here", b"there", b"phone"):
        await open_session(storage, a_session(anna, digest))
    rev = await storage.sessions.revoke_user(anna.user_id, a_record(), keep=b"here", now=NOW)
    assert rev > anna.rev
    assert [session.digest for session in await storage.sessions.sessions_of_user(anna.user_id, NOW)] == [b"here"]
    remaining = await storage.sessions.find_session(b"here", NOW)
    assert remaining is not None
    assert remaining.user.rev == rev


async def test_revocation_does_not_touch_a_session_of_another_account(storage: Storage, anna: User) -> None:
    bob = a_user()
    await storage.accounts.create_user(bob, a_record())
    await open_session(storage, a_session(bob, b"bob"))
    await storage.sessions.revoke_user(anna.user_id, a_record(), keep=b"bob", now=NOW)
    assert await storage.sessions.find_session(b"bob", NOW) is not None
    assert not await storage.sessions.end_session(anna.user_id, b"bob".hex(), a_record())
    assert await storage.sessions.find_session(b"bob", NOW) is not None


async def test_session_can_be_ended_by_its_id(storage: Storage, anna: User) -> None:
    await open_session(storage, a_session(anna))
    assert await storage.sessions.end_session(anna.user_id, b"cookie".hex(), a_record(AuditEvent.SIGNED_OUT))
    assert not await storage.sessions.end_session(anna.user_id, b"cookie".hex(), a_record(AuditEvent.SIGNED_OUT))
    assert await storage.sessions.find_session(b"cookie", NOW) is None
    assert len(await storage.audit.newest_records(9, "", "session.ended")) == 1


async def test_a_session_opened_while_everything_is_revoked_never_survives_it(storage: Storage, anna: User) -> None:
    await asyncio.gather(
        *(open_session(storage, a_session(anna, bytes([n]))) for n in range(10)),
        storage.sessions.revoke_user(anna.user_id, a_record(), keep=None, now=NOW),
        *(open_session(storage, a_session(anna, bytes([n]))) for n in range(10, 20)),
    )
    assert await storage.sessions.sessions_of_user(anna.user_id, NOW) == []


async def test_revoking_no_one_is_not_found(storage: Storage) -> None:
    with pytest.raises(UserNotFound):
        await storage.sessions.revoke_user("1000000009", a_record(), keep=None, now=NOW)
