"""The end of a guest and what is used once, between processes and on both databases (R10)."""

from collections.abc import AsyncIterator

import pytest

from gatehouse.accounts.errors import NoAccountForIdentity, UserNotFound
from gatehouse.accounts.merge import GuestNotUpgraded, MergeBanned
from gatehouse.accounts.model import User
from gatehouse.storage.accounts.bans import save_ban
from gatehouse.storage.accounts.guest_upgrades import complete_upgrade
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.statements import Verb
from tests.support import guest_racers as racers
from tests.support.builders import NOW, a_record
from tests.support.database_contents import read_all_tables
from tests.support.guest_racers import ACCOUNTS, GUEST_IDS, SUBJECTS
from tests.support.permission_builders import a_group, a_project, install_central, publish
from tests.support.postgres_session import run_interleaved
from tests.support.racers import WON, run_races

TRIES = 20  # two processes, ten attempts each
SWEEPS = 2  # attempts that merge or erase, where others do something else
OTHERS = TRIES - SWEEPS


@pytest.fixture
async def storage(migrated_url: str) -> AsyncIterator[Storage]:
    async with open_storage(migrated_url, migrate=False) as opened:
        await racers.prepare_guests(opened)
        yield opened


async def test_gu_09_races_between_processes_leave_one_end_of_each_guest(storage: Storage, migrated_url: str) -> None:
    """One test for all races: the processes and the database are shared."""
    outcomes = run_races(racers.ACTS, migrated_url)
    assert outcomes["use_device_challenge"] == {WON: 1, "NotFound": TRIES - 1}
    assert outcomes["use_puzzle"] == {WON: 1, "NotFound": TRIES - 1}
    assert outcomes["merge_one_guest"] == {WON: 1, "GuestNotUpgraded": TRIES - 1}
    rows = await read_all_tables(storage)
    banned = "MergeBanned" in outcomes["ban_or_merge"]  # a ban that came first refuses the merge
    for name in ("merged twice", "accepts", "signs in", *(() if banned else ("banned",))):
        assert [row.user_id in ACCOUNTS for row in rows["user_aliases"] if row.alias == GUEST_IDS[name]] == [True]
        assert await storage.profile.user_by_identity("guest", SUBJECTS[name]) is None, name
        assert await storage.profile.is_retired_key(SUBJECTS[name])

    # What was acknowledged for the guest before the merge is the account's; nothing was for one that had ended.
    merged = await storage.accounts.user(ACCOUNTS[0])
    merged_once = {WON: 1, "GuestNotUpgraded": SWEEPS - 1, "UserNotFound": OTHERS}
    expected = {WON: OTHERS, "MergeBanned": SWEEPS} if banned else merged_once
    assert outcomes["ban_or_merge"] == expected
    assert not merged.bans
    acceptances = outcomes["accept_or_merge"][WON] - 1
    _, accepted = await storage.terms.terms_of_user(ACCOUNTS[0])
    assert len(accepted) == bool(acceptances)
    assert {row.user_id for row in rows["bans"]} == ({GUEST_IDS["banned"]} if banned else set())
    assert {row.user_id for row in rows["accepted_terms"]} <= {ACCOUNTS[0]}

    # No sign-in made a second guest of a key, nor did the sweep erase one that had signed in.
    erased = SWEEPS - outcomes["sign_in_or_sweep"]["NotFound"]
    signed_in = outcomes["sign_in_or_sweep"][WON] - erased
    subjects = {row.user_id: row.subject for row in rows["identities"]}
    assert erased <= 1
    left = [SUBJECTS["idle"]] * (signed_in > 0 or not erased) + [SUBJECTS["banned"]] * banned
    assert sorted(subjects.values()) == sorted(left)
    assert {row.user_id for row in rows["users"]} == {*ACCOUNTS, *subjects}


async def test_gu_08_merge_waits_for_a_ban_and_is_refused(migrated_postgres_url: str) -> None:
    async with open_storage(migrated_postgres_url, migrate=False) as storage:
        await racers.prepare_guests(storage)
        ban = racers.a_ban(GUEST_IDS["banned"])
        outcomes = await run_interleaved(
            storage,
            migrated_postgres_url,
            lambda: save_ban(
                storage.ban_copies, ban.user_id, ban.scope, lambda _: (ban, a_record()), by="1", now=NOW
            ),
            racers.merge_guest(storage, "banned"),
        )
        assert isinstance(outcomes[1], MergeBanned)
        assert (await storage.accounts.user(ACCOUNTS[0])).bans == ()
        assert [one.ban_id for one in (await storage.accounts.user(ban.user_id)).bans] == [ban.ban_id]


async def test_gu_08_ban_of_a_guest_that_is_being_merged_is_refused(migrated_postgres_url: str) -> None:
    async with open_storage(migrated_postgres_url, migrate=False) as storage:
        await racers.prepare_guests(storage)
        _, ban = await run_interleaved(
            storage,
            migrated_postgres_url,
            lambda: merge("banned", storage),
            racers.ban_guest(storage, "banned"),
        )
        assert isinstance(ban, UserNotFound)


async def test_gu_09_second_merge_of_a_guest_waits_and_finds_no_key(migrated_postgres_url: str) -> None:
    async with open_storage(migrated_postgres_url, migrate=False) as storage:
        await racers.prepare_guests(storage)
        _, second = await run_interleaved(
            storage,
            migrated_postgres_url,
            lambda: merge("merged twice", storage),
            racers.merge_guest(storage, "merged twice", ACCOUNTS[1]),
        )
        assert isinstance(second, GuestNotUpgraded)
        assert [row.user_id for row in (await read_all_tables(storage))["user_aliases"]] == [ACCOUNTS[0]]


def merge(name: str, storage: Storage) -> Verb[bool]:
    return complete_upgrade(storage.ban_copies, racers.a_merge(name), lambda *_: [a_record()], lambda _: [], NOW)


async def test_end_of_a_guest_ends_their_membership_in_groups(storage: Storage) -> None:
    await install_central(storage)
    await publish(storage, a_project(), owners=[ACCOUNTS[1]])
    for name in ("signs in", "accepts"):
        await storage.groups.create_group(a_group(name, name, users=(GUEST_IDS[name],)), [a_record()])
    await racers.merge_guest(storage, "signs in")
    assert await storage.profile.erase_idle_guests(NOW + 1, lambda _: a_record(), NOW) == 4
    members = {row.group_id: row.user_id for row in (await read_all_tables(storage))["group_members"]}
    assert members == {"signs in": ACCOUNTS[0]}


async def test_gu_09_guest_that_is_merged_during_its_sign_in_is_not_made_again(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = storage.profile.find_guest

    async def find_and_merge(_: object, subject: str) -> User | None:
        found = await find(subject)
        await racers.merge_guest(storage, "signs in")
        return found

    monkeypatch.setattr(type(storage.profile), "find_guest", find_and_merge)
    with pytest.raises(NoAccountForIdentity):
        await racers.sign_in_guest(storage, "signs in")
    assert await storage.profile.user_by_identity("guest", SUBJECTS["signs in"]) is None


async def test_tm_06_terms_of_a_guest_that_has_ended_are_not_accepted(storage: Storage) -> None:
    await racers.merge_guest(storage, "accepts")
    with pytest.raises(UserNotFound):
        await storage.terms.accept_terms(GUEST_IDS["accepts"], {"terms": "1"}, a_record())
    assert (await read_all_tables(storage))["accepted_terms"] == []
