"""Limits, unique names and versions of the permission model hold between processes, on both databases."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from gatehouse.permissions.facts import Facts, Structure
from gatehouse.permissions.model.project import GrantAction, GroupGrant
from gatehouse.permissions.model.rule import ENDLESS
from gatehouse.storage.opening import Storage, open_storage
from tests.support import permission_racers as racers
from tests.support.builders import a_record
from tests.support.permission_builders import (
    GROUP,
    a_group,
    a_new_application,
    a_person,
    a_role,
    becoming,
    connecting,
    edited_project,
    install,
    publish,
)
from tests.support.permission_racers import OWNERS, SHOP
from tests.support.racers import WON, race
from tests.support.whole_database import whole_database

TRIES = 20  # four processes, five attempts each
Act = Callable[[Storage, int], Awaitable[None]]


@pytest.fixture
async def world(migrated_url: str) -> AsyncIterator[Storage]:
    """Mind Games with five owners, a shop in it whose role takes a few, and an empty group."""
    async with open_storage(migrated_url, migrate=False) as storage:
        await install(storage)
        for user_id in OWNERS:
            await a_person(storage, user_id)
        few = a_role("few", user_limit=3)
        await publish(storage, new=a_new_application(0, few, project_id="mind_games"), owners=OWNERS)
        await storage.groups.create_group(a_group(), [a_record()])
        yield storage


async def structure_version(storage: Storage) -> int:
    return (await storage.permissions.structure([], [])).version


# -- limits and names ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "most", "refusal"),
    [
        (racers.add_access_key, 2, "LimitReached"),
        (racers.take_seat, 3, "RoleFull"),
        (racers.publish_one_more, 2, "LimitReached"),  # the author has one already
        (racers.publish_alike, 1, "NameTaken"),
        (racers.rename_alike, 1, "NameTaken"),
        (racers.take_alias, 1, "NameTaken"),
        (racers.take_application_name, 1, "NameTaken"),
        (racers.take_group_title, 1, "NameTaken"),
        (racers.take_service_account_name, 1, "NameTaken"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_of_many_who_race_no_more_win_than_may(
    world: Storage, migrated_url: str, act: Act, most: int, refusal: str
) -> None:
    assert race(act, migrated_url) == {WON: most, refusal: TRIES - most}
    assert world.runner is not None


async def test_every_application_gets_an_id_of_its_own(world: Storage, migrated_url: str) -> None:
    assert race(racers.make_application, migrated_url) == {WON: TRIES}
    made = await world.permissions.application_models(range(SHOP, SHOP + TRIES + 1))
    assert len(made) == TRIES + 1


# -- versions -----------------------------------------------------------------------------------------


async def test_twenty_saves_of_a_record_are_twenty_versions_and_none_is_lost(
    world: Storage, migrated_url: str
) -> None:
    assert race(racers.save_record, migrated_url) == {WON: TRIES}
    facts = await world.permissions.facts(OWNERS[0], [SHOP])
    assert facts is not None
    assert (facts.records[SHOP].version, len(facts.records[SHOP].login)) == (TRIES, TRIES)


async def test_twenty_saves_of_a_schema_are_twenty_versions_and_none_is_lost(
    world: Storage, migrated_url: str
) -> None:
    assert race(racers.save_schema, migrated_url) == {WON: TRIES}
    model = (await world.permissions.application_models([SHOP]))[SHOP]
    assert (model.schema.version, len(model.roles)) == (1 + TRIES, 1 + TRIES)


async def test_twenty_saves_of_an_application_are_twenty_versions(world: Storage, migrated_url: str) -> None:
    assert race(racers.save_application, migrated_url) == {WON: TRIES}
    assert (await world.applications.application(SHOP)).version == 1 + TRIES


async def test_twenty_saves_of_a_project_are_twenty_versions_of_it_and_of_the_structure(
    world: Storage, migrated_url: str
) -> None:
    before = await structure_version(world)
    assert race(racers.save_project, migrated_url) == {WON: TRIES}
    assert (await world.projects.project("mind_games")).project.version == 1 + TRIES
    assert await structure_version(world) == before + TRIES


async def test_twenty_changes_of_members_are_twenty_versions_and_none_waits_for_the_other(
    world: Storage, migrated_url: str
) -> None:
    before = await structure_version(world)
    assert race(racers.save_members, migrated_url) == {WON: TRIES}
    assert (await world.projects.project("mind_games")).project.version == 1 + TRIES
    assert await structure_version(world) == before + TRIES


async def test_twenty_who_join_a_group_are_all_in_it(world: Storage, migrated_url: str) -> None:
    before = await structure_version(world)
    assert race(racers.join_group, migrated_url) == {WON: TRIES}
    group = await world.groups.group(GROUP)
    assert (group.version, len(group.users)) == (1 + TRIES, TRIES)
    assert await structure_version(world) == before + TRIES


# -- what belongs together ----------------------------------------------------------------------------


async def test_one_owner_is_left_however_they_go(world: Storage, migrated_url: str) -> None:
    outcomes = race(racers.leave_as_owner, migrated_url)
    assert set(outcomes) <= {WON, "LastOwner", "UserNotFound"}
    left = [await world.permissions.facts(user_id, [1]) for user_id in OWNERS]
    assert [one.owns for one in left if one and one.owns] == [{"mind_games": ENDLESS}]


async def test_a_role_that_ended_is_left_nowhere(world: Storage, migrated_url: str) -> None:
    outcomes = race(racers.end_or_give_role, migrated_url)
    assert set(outcomes) <= {WON, "RoleNotFound", "VersionConflict"}
    held = await whole_database(world)
    roles = {(row.application_id, row.role_key): row.protected for row in held["roles"]}
    for row in held["role_assignments"]:
        assert (row.application_id, row.role_key) in roles
        assert not (row.project_id and roles[row.application_id, row.role_key])
    for row in held["project_services"]:
        assert all(roles[row.application_id, key] is False for key in row.roles)


async def test_nothing_is_left_of_whoever_went_while_he_was_given_things(world: Storage, migrated_url: str) -> None:
    assert race(racers.come_and_go, migrated_url) == {WON: TRIES}
    held = await whole_database(world)
    people = {row.user_id for row in held["users"]}
    for table in ("group_members", "user_records", "role_assignments", "scope_records"):
        assert {row.user_id for row in held[table]} <= people, table


async def test_facts_and_structure_of_one_version_are_of_one_moment(world: Storage) -> None:
    """Someone leaves a group, and only then the group is granted something: he never holds it."""
    anna = OWNERS[0]
    done = asyncio.Event()

    async def write() -> None:
        grant = GroupGrant(group_id=GROUP, roles=("few",), action=GrantAction.GRANT)
        for _ in range(15):
            await world.groups.edit_group(GROUP, becoming(users=(anna,)))
            await world.groups.edit_group(GROUP, becoming(users=()))
            await world.projects.edit_project("mind_games", connecting(SHOP, grant))
            await world.projects.edit_project("mind_games", connecting(SHOP))
        done.set()

    writing = asyncio.create_task(write())
    seen: set[tuple[bool, bool]] = set()
    while not done.is_set():
        seen |= await together(world, anna)
    await writing
    assert (True, True) not in seen
    assert {(True, False), (False, True)} <= seen


async def together(storage: Storage, user_id: str) -> set[tuple[bool, bool]]:
    """Whether he is listed and whether the group is granted anything, if both were read at one version."""
    facts: Facts | None = await storage.permissions.facts(user_id, [SHOP])
    structure: Structure = await storage.permissions.structure(["mind_games"], [])
    assert facts is not None
    if facts.structure != structure.version:
        return set()
    grants: Any = structure.projects["mind_games"].project.settings.services.get(SHOP, ())
    return {(GROUP in facts.groups, bool(grants))}


async def test_the_racers_start_from_what_the_tests_think(world: Storage) -> None:
    model = await world.projects.project("mind_games")
    assert (model.project.version, model.groups) == (1, {GROUP: a_group()})
    assert replace(model.project).application_id == SHOP
    assert edited_project(title="X")(model).state.project.title == "X"
