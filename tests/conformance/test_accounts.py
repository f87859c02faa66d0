"""Contract tests of accounts/store.py."""

import asyncio

import pytest
from msgspec.structs import replace

from gatehouse.accounts.errors import LoginTaken, SetupClosed, SetupLinkDead, UserIdTaken, UserNotFound
from gatehouse.audit.events import AuditEvent
from gatehouse.storage.database import Storage
from tests.support.builders import NOW, a_record, a_setup_link, a_user


async def test_a_user_comes_back_as_it_was_kept(storage: Storage) -> None:
    user = a_user(
        tags=frozenset({"staff", "beta"}),
        purchases=frozenset({"sky-raiders"}),
        meta={"source": "import"},
        password_hash="$argon2id$x",
        email_verified=True,
        sealed_totp=b"\x00sealed",
        name="Anna Berg",
        given_name="Anna",
        family_name="Berg",
        username="anna.berg",
        username_at=NOW,
        zoneinfo="Europe/Berlin",
        picture="ab" * 32,
        updated_at=NOW,
    )
    await storage.accounts.create_user(user, a_record())
    assert await storage.accounts.user(user.user_id) == user
    assert await storage.accounts.user_by_login(user.login_key or "") == user


async def test_an_unknown_user_is_not_found(storage: Storage) -> None:
    with pytest.raises(UserNotFound):
        await storage.accounts.user("1000000009")
    assert await storage.accounts.user_by_login("no_one@studio.example") is None


async def test_a_login_belongs_to_one_account_in_all_its_spellings(storage: Storage) -> None:
    await storage.accounts.create_user(a_user(login="Anna@Studio.Example"), a_record())
    with pytest.raises(LoginTaken):
        await storage.accounts.create_user(a_user(login="anna@studio.example"), a_record())


async def test_a_refused_account_leaves_nothing_behind(storage: Storage) -> None:
    await storage.accounts.create_user(a_user(login="anna@studio.example"), a_record())
    other = a_user(login="anna@studio.example", tags=frozenset({"x"}))
    with pytest.raises(LoginTaken):
        await storage.accounts.create_user(other, a_record())
    await storage.accounts.create_user(replace(other, login="other@studio.example"), a_record())
    assert len(await storage.audit.unsealed_records(10)) == 2


async def test_a_user_id_is_never_given_twice(storage: Storage) -> None:
    user = a_user()
    await storage.accounts.create_user(user, a_record())
    with pytest.raises(UserIdTaken):
        await storage.accounts.create_user(replace(user, login="other@studio.example"), a_record())


async def test_exactly_one_of_many_concurrent_accounts_gets_the_login(storage: Storage) -> None:
    answers = await asyncio.gather(
        *(storage.accounts.create_user(a_user(login="anna@studio.example"), a_record()) for _ in range(12)),
        return_exceptions=True,
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["LoginTaken"] * 11 + ["NoneType"]


async def test_blocking_raises_the_revocation_epoch_every_time(storage: Storage) -> None:
    user = a_user()
    await storage.accounts.create_user(user, a_record())
    first = await storage.accounts.set_blocked(user.user_id, a_record(), blocked=True, now=NOW)
    again = await storage.accounts.set_blocked(user.user_id, a_record(), blocked=True, now=NOW)
    set_back = await storage.accounts.set_blocked(user.user_id, a_record(), blocked=True, now=NOW - 3_600)
    assert first.blocked
    assert user.rev < first.rev < again.rev < set_back.rev


async def test_blocking_no_one_is_not_found_and_not_recorded(storage: Storage) -> None:
    with pytest.raises(UserNotFound):
        await storage.accounts.set_blocked("1000000009", a_record(), blocked=True, now=NOW)
    assert await storage.audit.unsealed_records(10) == []


async def test_a_new_setup_link_kills_the_one_before(storage: Storage) -> None:
    await storage.accounts.put_setup_link(a_setup_link(b"first"), a_record())
    await storage.accounts.put_setup_link(a_setup_link(b"second"), a_record())
    assert not await storage.accounts.setup_link_is_open(b"first", NOW)
    assert await storage.accounts.setup_link_is_open(b"second", NOW)


async def test_a_setup_link_ends_at_its_time(storage: Storage) -> None:
    await storage.accounts.put_setup_link(a_setup_link(b"link", expires_at=NOW + 5), a_record())
    assert await storage.accounts.setup_link_is_open(b"link", NOW + 4)
    assert not await storage.accounts.setup_link_is_open(b"link", NOW + 5)
    with pytest.raises(SetupLinkDead):
        await storage.accounts.complete_setup(b"link", a_user(), _records(), NOW + 5)


async def test_exactly_one_of_many_uses_of_a_setup_link_creates_an_administrator(storage: Storage) -> None:
    await storage.accounts.put_setup_link(a_setup_link(b"link"), a_record())
    users = [a_user() for _ in range(12)]
    answers = await asyncio.gather(
        *(storage.accounts.complete_setup(b"link", user, _records(), NOW) for user in users), return_exceptions=True
    )
    winners = [user for user, answer in zip(users, answers, strict=True) if answer is None]
    assert len(winners) == 1
    assert {type(answer) for answer in answers if answer is not None} <= {SetupLinkDead, SetupClosed}
    assert await storage.accounts.setup_is_closed()


async def test_an_administrator_made_another_way_closes_setup_too(storage: Storage) -> None:
    await storage.accounts.put_setup_link(a_setup_link(b"link"), a_record())
    await storage.accounts.create_user(a_user(), a_record(), administrator=True)
    assert not await storage.accounts.setup_link_is_open(b"link", NOW)
    with pytest.raises(SetupClosed):
        await storage.accounts.complete_setup(b"link", a_user(), _records(), NOW)


async def test_setup_stays_closed_for_ever(storage: Storage) -> None:
    await storage.accounts.put_setup_link(a_setup_link(b"link"), a_record())
    await storage.accounts.complete_setup(b"link", a_user(), _records(), NOW)
    with pytest.raises(SetupClosed):
        await storage.accounts.put_setup_link(a_setup_link(b"other"), a_record())


def _records() -> dict[str, object]:
    return {"created": a_record(), "closed": a_record(AuditEvent.SETUP_CLOSED)}
