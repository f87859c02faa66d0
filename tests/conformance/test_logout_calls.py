"""Contract tests of LogoutStore in oauth/store.py, and the effect of ending sessions on grants."""

import asyncio

import pytest
from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.oauth.model import LogoutCall
from gatehouse.storage.database import Storage
from tests.conformance.test_sessions import a_session
from tests.support.builders import NOW, a_client, a_record, a_user
from tests.support.oauth import a_grant

URI = "https://shop.example/out"


@pytest.fixture
async def anna(storage: Storage) -> User:
    user = a_user()
    await storage.accounts.create_user(user, a_record())
    await storage.clients.create_client(a_client(backchannel_logout_uri=URI), a_record())
    await storage.clients.create_client(a_client("silent"), a_record())
    return user


async def sign_in(storage: Storage, user: User, session: str = "s1", **fields: object) -> str:
    """Create a session with a grant of the client web; return the grant's id."""
    digest = session.encode()
    await storage.sessions.open_session(a_session(user, digest, session_id=session), a_record(), replaces=None)
    return await grant(storage, user, session_id=session, **fields)


async def grant(storage: Storage, user: User, **fields: object) -> str:
    new_grant = a_grant(user_id=user.user_id, rev=user.rev, code=None, scopes=("openid",))
    stored = replace(new_grant, **fields)  # type: ignore[arg-type]
    assert await storage.grants.create_grant(stored, a_record(AuditEvent.GRANT_MADE))
    return stored.grant_id


async def calls(storage: Storage) -> list[tuple[str, str, str]]:
    stored = await storage.logout_calls.all_calls()
    return sorted((call.client_id, call.session_id, call.uri) for call in stored)


async def claim_calls(storage: Storage, now: int = NOW) -> list[LogoutCall]:
    return list(await storage.logout_calls.claim_calls(now, most=10, lease=60))


async def test_the_end_of_a_session_ends_its_grants_and_tells_each_client_once(storage: Storage, anna: User) -> None:
    first = await sign_in(storage, anna)
    await grant(storage, anna)
    await grant(storage, anna, client_id="silent")
    other = await sign_in(storage, anna, "s2")
    offline = await grant(storage, anna, scopes=("openid", "offline_access"))
    assert await storage.sessions.end_session(anna.user_id, "s1", a_record())
    assert await calls(storage) == [("web", "s1", URI)]
    assert await storage.grants.find_live_grant(first, NOW) is None
    assert await storage.grants.find_live_grant(other, NOW) is not None
    assert await storage.grants.find_live_grant(offline, NOW) is not None
    assert not await storage.sessions.end_session(anna.user_id, "s1", a_record())
    assert len(await calls(storage)) == 1


async def test_the_end_of_everything_tells_of_every_session_and_only_once(storage: Storage, anna: User) -> None:
    await sign_in(storage, anna)
    await sign_in(storage, anna, "s2", scopes=("openid", "offline_access"))
    await asyncio.gather(
        *(storage.sessions.revoke_user(anna.user_id, a_record(), keep=b"s1", now=NOW) for _ in range(4)),
        storage.accounts.set_blocked(anna.user_id, a_record(), blocked=True, now=NOW),
    )
    assert await calls(storage) == [("web", "s1", URI), ("web", "s2", URI)]


async def test_a_session_in_the_place_of_another_of_the_same_person_goes_by_its_id(
    storage: Storage, anna: User
) -> None:
    remaining = await sign_in(storage, anna)
    again = await storage.sessions.open_session(a_session(anna, b"again"), a_record(), replaces=b"s1")
    assert again.session_id == "s1"
    assert await storage.sessions.find_session(b"s1", NOW) is None
    assert await storage.grants.find_live_grant(remaining, NOW) is not None
    assert await calls(storage) == []
    # The old cookie again, as after a double click: it is invalid, and the new session is not affected.
    twice = await storage.sessions.open_session(a_session(anna, b"twice"), a_record(), replaces=b"s1")
    assert twice.session_id != "s1"


async def test_a_session_in_the_place_of_another_persons_ends_what_that_one_was_granted(
    storage: Storage, anna: User
) -> None:
    bob = a_user()
    await storage.accounts.create_user(bob, a_record())
    ended = await sign_in(storage, anna)
    opened = await storage.sessions.open_session(a_session(bob, b"bob"), a_record(), replaces=b"s1")
    assert opened.session_id != "s1"
    assert await storage.grants.find_live_grant(ended, NOW) is None
    assert await calls(storage) == [("web", "s1", URI)]


async def test_a_removed_client_is_not_called(storage: Storage, anna: User) -> None:
    await sign_in(storage, anna)
    await storage.clients.remove_client("web", a_record())
    await storage.sessions.end_session(anna.user_id, "s1", a_record())
    assert await calls(storage) == []


async def test_each_call_is_given_to_one_caller_until_its_lease_is_over(storage: Storage, anna: User) -> None:
    await sign_in(storage, anna)
    await sign_in(storage, anna, "s2")
    await storage.sessions.revoke_user(anna.user_id, a_record(), keep=None, now=NOW)
    rounds = await asyncio.gather(*(claim_calls(storage) for _ in range(5)))
    assert sorted(call.session_id for calls in rounds for call in calls) == ["s1", "s2"]
    assert await claim_calls(storage, NOW + 59) == []
    assert {call.tries for call in await claim_calls(storage, NOW + 60)} == {2}


async def test_worker_that_lost_its_lease_changes_nothing_about_a_logout_call(storage: Storage, anna: User) -> None:
    await sign_in(storage, anna)
    await storage.sessions.end_session(anna.user_id, "s1", a_record())
    (slow,) = await claim_calls(storage)
    (quick,) = await claim_calls(storage, NOW + 60)
    recorded = len(await storage.audit.unsealed_records(50))
    await storage.logout_calls.mark_delivered(slow, a_record(AuditEvent.LOGOUT_TOLD))
    await storage.logout_calls.schedule_retry(slow, "slow", NOW)
    assert len(await storage.audit.unsealed_records(50)) == recorded
    (call,) = await storage.logout_calls.all_calls()
    assert (call.trouble, call.next_try_at) == ("", NOW + 120)
    await storage.logout_calls.mark_delivered(quick, a_record(AuditEvent.LOGOUT_TOLD))
    assert list(await storage.logout_calls.all_calls()) == []
    assert len(await storage.audit.unsealed_records(50)) == recorded + 1


async def test_a_call_that_is_given_up_is_kept_for_a_while_and_not_made_again(storage: Storage, anna: User) -> None:
    await sign_in(storage, anna)
    await storage.sessions.end_session(anna.user_id, "s1", a_record())
    (call,) = await claim_calls(storage)
    await storage.logout_calls.give_up_call(call, "answered 503", a_record(AuditEvent.LOGOUT_GIVEN_UP))
    assert await claim_calls(storage, NOW + 10**6) == []
    await storage.sweep(NOW + 86_400)
    assert [call.trouble for call in await storage.logout_calls.all_calls()] == ["answered 503"]
    await storage.sweep(NOW + 31 * 86_400)
    assert list(await storage.logout_calls.all_calls()) == []


async def test_no_grant_is_created_from_an_ended_session(storage: Storage, anna: User) -> None:
    await sign_in(storage, anna)
    new_grant = a_grant(user_id=anna.user_id, rev=anna.rev, code=None, session_id="s1")
    assert await storage.grants.create_grant(new_grant, a_record(AuditEvent.GRANT_MADE), in_session=True)
    await storage.sessions.end_session(anna.user_id, "s1", a_record())
    assert not await storage.grants.create_grant(
        replace(new_grant, grant_id="late"), a_record(AuditEvent.GRANT_MADE), in_session=True
    )


async def test_a_grant_that_races_a_sign_out_is_ended_with_it_or_never_made(storage: Storage, anna: User) -> None:
    for number in range(10):
        session = f"race{number}"
        await storage.sessions.open_session(
            a_session(anna, session.encode(), session_id=session), a_record(), replaces=None
        )
        new_grant = a_grant(
            grant_id=session, user_id=anna.user_id, rev=anna.rev, code=None, session_id=session, scopes=("openid",)
        )
        await asyncio.gather(
            storage.grants.create_grant(new_grant, a_record(AuditEvent.GRANT_MADE), in_session=True),
            storage.sessions.end_session(anna.user_id, session, a_record()),
        )
        assert await storage.grants.find_live_grant(session, NOW) is None
