"""Accounts whose addresses differ in compatibility forms only, from before these were compared (decision 0065)."""

from collections.abc import Mapping
from functools import partial

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, text

from gatehouse.accounts.errors import LinkDead, LoginTaken
from gatehouse.accounts.model import EmailLink, LinkKind, User
from gatehouse.accounts.own_account.model import EmailChange
from gatehouse.storage.accounts.users import update_user
from gatehouse.storage.database import Storage, open_storage
from tests.conformance.test_migrations import differences, downgrade, run_on
from tests.support.builders import NOW, a_record, a_user
from tests.support.spellings import wide

EXACT = "anna@studio.example"
WIDE = f"{wide('anna')}@studio.example"
HALF = f"an{wide('na')}@studio.example"
BEN = f"{wide('ben')}@studio.example"


def store_as_before(logins: Mapping[str, str], connection: Connection) -> None:
    """Give accounts the addresses, under the spellings that were compared before."""
    for user_id, login in logins.items():
        connection.execute(
            text("UPDATE users SET login = :login, login_key = :login WHERE user_id = :of"),
            {"of": user_id, "login": login},
        )


async def store_accounts(url: str, **logins: str) -> dict[str, User]:
    """Store accounts of an earlier revision, each a second younger than the one before, and upgrade the database."""
    people = {name: a_user(reg_time=NOW + number) for number, name in enumerate(logins)}
    async with open_storage(url, migrate=False) as storage:
        for user in people.values():
            await storage.accounts.create_user(user, a_record())
    await run_on(url, partial(store_as_before, {people[name].user_id: login for name, login in logins.items()}))
    await downgrade(url, "0038")
    async with open_storage(url, migrate=True) as storage:
        return {name: await storage.accounts.user(user.user_id) for name, user in people.items()}


async def test_upgrade_stores_every_address_in_its_canonical_spelling(migrated_url: str) -> None:
    people = await store_accounts(migrated_url, anna=EXACT, ben=BEN, cora="cora@studio.example")
    assert await run_on(migrated_url, differences) == []
    assert [user.login_key for user in people.values()] == [EXACT, "ben@studio.example", "cora@studio.example"]
    assert people["ben"].login == BEN
    async with open_storage(migrated_url, migrate=False) as storage:
        for login in (BEN, "ben@studio.example", f"b{wide('en')}@studio.example"):
            found = await storage.accounts.user_by_login(login)
            assert found == people["ben"]


async def test_upgrade_of_many_accounts_reads_them_in_parts(migrated_url: str) -> None:
    names = {f"p{number}": f"{wide(f'p{number}')}@studio.example" for number in range(1_005)}
    people = await store_accounts(migrated_url, **names)
    assert {user.login_key for user in people.values()} == {f"{name}@studio.example" for name in names}


async def test_existing_accounts_stay_and_are_found_by_their_exact_address_first(migrated_url: str) -> None:
    people = await store_accounts(migrated_url, wide=WIDE, exact=EXACT)
    async with open_storage(migrated_url, migrate=False) as storage:
        accounts = storage.accounts
        assert await accounts.user_by_login(WIDE) == people["wide"]
        assert await accounts.user_by_login(EXACT.upper()) == people["exact"]
        assert await accounts.user_by_login(HALF) == people["exact"], "that has the canonical spelling"
        assert [people[name].login_key for name in ("wide", "exact")] == [WIDE, EXACT]


@pytest.mark.parametrize("verified", [False, True])
async def test_of_accounts_without_the_canonical_address_one_gets_its_spelling(
    verified: bool,  # noqa: FBT001
    migrated_url: str,
) -> None:
    people = [a_user(reg_time=NOW), a_user(reg_time=NOW + 1, email_verified=verified)]
    async with open_storage(migrated_url, migrate=False) as storage:
        for user in people:
            await storage.accounts.create_user(user, a_record())
    logins = {user.user_id: login for user, login in zip(people, (WIDE, HALF), strict=True)}
    await run_on(migrated_url, partial(store_as_before, logins))
    await downgrade(migrated_url, "0038")
    async with open_storage(migrated_url, migrate=True) as storage:
        first, second = [await storage.accounts.user(user.user_id) for user in people]
        assert (first.login_key, second.login_key) == ((WIDE, EXACT) if verified else (EXACT, HALF))
        assert await storage.accounts.user_by_login(WIDE) == first
        assert await storage.accounts.user_by_login(HALF) == second
        assert await storage.accounts.user_by_login(EXACT) == (second if verified else first)


async def test_lg_34_no_account_is_created_beside_one_in_another_spelling(storage: Storage) -> None:
    await storage.accounts.create_user(a_user(login=WIDE), a_record())
    for login in (EXACT, HALF, WIDE):
        with pytest.raises(LoginTaken):
            await storage.accounts.create_user(a_user(login=login), a_record())


async def test_lg_34_no_account_is_created_beside_one_that_is_left_of_several(migrated_url: str) -> None:
    people = await store_accounts(migrated_url, wide=WIDE, exact=EXACT)
    async with open_storage(migrated_url, migrate=False) as storage:
        await storage.profile.erase_user(people["exact"].user_id, a_record(), even_last_administrator=False, now=NOW)
        for login in (EXACT, HALF, WIDE):
            assert await storage.accounts.user_by_login(login) == people["wide"]
            with pytest.raises(LoginTaken):
                await storage.accounts.create_user(a_user(login=login), a_record())
        change = EmailChange(owner=people["wide"], login=EXACT, session_id="")
        await storage.profile.change_account(replace(change.owner, login=EXACT), [a_record()], [], ends_links=False)
        alone = await storage.accounts.user(people["wide"].user_id)
        assert (alone.login_key, alone.exact_key) == (EXACT, "")


async def test_account_that_shares_an_address_keeps_it_through_saves(migrated_url: str) -> None:
    people = await store_accounts(migrated_url, wide=WIDE, exact=EXACT)
    async with open_storage(migrated_url, migrate=False) as storage:
        for name in ("wide", "exact"):
            await storage.runner.write(partial(update_user, replace(people[name], nick="Ann")))
            saved = await storage.accounts.user(people[name].user_id)
            assert (saved.nick, saved.login_key) == ("Ann", people[name].login_key)
        saved = await storage.accounts.user(people["wide"].user_id)
        for login in (EXACT, HALF):
            with pytest.raises(LoginTaken):
                await storage.runner.write(partial(update_user, replace(saved, login=login)))
        other = replace(saved, login="other@studio.example")
        await storage.runner.write(partial(update_user, other))
        moved = await storage.accounts.user(other.user_id)
        assert (moved.login_key, moved.exact_key) == ("other@studio.example", "")
        assert await storage.accounts.user_by_login(WIDE) == await storage.accounts.user(people["exact"].user_id)


async def test_account_that_shares_an_address_moves_to_another_by_its_link(migrated_url: str) -> None:
    people = await store_accounts(migrated_url, wide=WIDE, exact=EXACT)
    async with open_storage(migrated_url, migrate=False) as storage:
        for login, digest in ((HALF, b"1"), ("new@studio.example", b"2")):
            change = EmailChange(owner=people["wide"], login=login, session_id="s")
            link = EmailLink(kind=LinkKind.CHANGE, digest=digest, created_at=NOW, expires_at=NOW + 60)
            await storage.profile.save_email_change(change, link, a_record(), [])
            assert (await storage.profile.find_email_change(digest, NOW)) == change
            if login == HALF:
                with pytest.raises(LinkDead):
                    await storage.profile.apply_email_change(digest, change, a_record(), [], NOW)
            else:
                await storage.profile.apply_email_change(digest, change, a_record(), [], NOW)
        moved = await storage.accounts.user(people["wide"].user_id)
        assert (moved.login_key, moved.exact_key) == ("new@studio.example", "")
