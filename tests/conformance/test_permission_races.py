"""Limits, unique names and versions of the permission model hold between processes, on both databases."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.permissions.model.facts import ApplicationModel, Facts
from gatehouse.permissions.model.project import GrantAction, GroupGrant
from gatehouse.permissions.model.rules import NO_END, ROOT, application_scope
from gatehouse.permissions.store import Change, EditResult
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.permissions.projects import edit_project
from gatehouse.storage.permissions.schemas import edit_schema
from gatehouse.storage.permissions.user_records import edit_record
from gatehouse.storage.statements import Verb
from tests.support import permission_racers as racers
from tests.support.builders import NOW, a_record
from tests.support.database_contents import read_all_tables
from tests.support.permission_builders import (
    GROUP,
    a_group,
    a_new_application,
    a_person,
    a_project,
    a_role,
    connect_application,
    create_application,
    holdings_with,
    install_central,
    model_version,
    publish,
    set_fields,
    set_project_fields,
)
from tests.support.permission_racers import OWNERS, SHOP, race_owners
from tests.support.postgres_session import (
    ADVISORY_LOCK,
    LOCK_TIMEOUT,
    WAIT_AT_LOCK,
    postgres_session,
    run_interleaved,
    wait_for_lock_waiters,
)
from tests.support.racers import WON, run_races

TRIES = 20  # two processes, ten attempts each


@pytest.fixture
async def seeded_storage(migrated_url: str) -> AsyncIterator[Storage]:
    """Mind Games with ten owners, a shop in it whose role has a limit, and an empty group."""
    async with open_storage(migrated_url, migrate=False) as storage:
        await install_central(storage)
        for user_id in OWNERS:
            await a_person(storage, user_id)
        few = a_role("few", user_limit=3)
        await publish(storage, new=a_new_application(0, few, "guest", project_id="mind_games"), owners=OWNERS)
        await storage.groups.create_group(a_group(), [a_record()])
        for title in ("Crowded", "Conditional"):
            await publish(storage, a_project(title, author=OWNERS[-1]))
        yield storage


async def test_concurrent_writes_stay_within_every_limit(seeded_storage: Storage, migrated_url: str) -> None:
    races = {
        racers.publish_one_more: (2, "LimitReached"),  # of three: the author has one already
        racers.add_access_key: (2, "AccessKeysFull"),
        racers.take_role_assignment: (3, "RoleFull"),
        racers.publish_alike: (1, "NameTaken"),
        racers.rename_alike: (1, "NameTaken"),
        racers.take_alias: (1, "NameTaken"),
        racers.take_application_name: (1, "NameTaken"),
        racers.take_group_title: (1, "NameTaken"),
        racers.add_group: (3, "GroupsFull"),
        racers.add_condition: (1, "LimitReached"),
        racers.take_service_account_name: (1, "NameTaken"),
    }
    outcomes = run_races(list(races), migrated_url)
    assert outcomes == {act.__name__: {WON: most, why: TRIES - most} for act, (most, why) in races.items()}
    assert await seeded_storage.applications.count_role_holders(SHOP, NOW) == {"few": 3}
    assert len(await seeded_storage.application_keys.access_keys(SHOP)) == 2


async def test_concurrent_saves_each_get_a_version_and_none_is_lost(
    seeded_storage: Storage, migrated_url: str
) -> None:
    before = await model_version(seeded_storage)
    acts = (
        *(racers.make_application, racers.save_record, racers.save_schema, racers.save_application),
        *(racers.save_project, racers.save_members, racers.join_group),
    )
    assert run_races(acts, migrated_url) == {act.__name__: {WON: TRIES} for act in acts}
    assert await model_version(seeded_storage) == before + 3 * TRIES  # the last three
    applications = await seeded_storage.permissions.application_models(range(SHOP, SHOP + TRIES + 1))
    assert len(applications) == 1 + TRIES  # each with its own id
    facts = await seeded_storage.permissions.facts(OWNERS[0], [SHOP])
    assert facts is not None
    assert (facts.records[SHOP].version, len(facts.records[SHOP].login)) == (TRIES, TRIES)
    shop = applications[SHOP]
    assert (shop.schema.version, len(shop.roles), len(shop.schema.private_data)) == (1 + TRIES, 2 + TRIES, TRIES)
    assert (shop.application.version, len(shop.application.settings)) == (1 + TRIES, TRIES)
    project = (await seeded_storage.projects.project("mind_games")).project
    assert (project.version, len(project.tags)) == (1 + 2 * TRIES, TRIES)
    group = await seeded_storage.groups.group(GROUP)
    assert (group.version, len(group.users)) == (1 + TRIES, TRIES)


async def test_assignment_to_something_removed_concurrently_leaves_no_rows(
    seeded_storage: Storage, migrated_url: str
) -> None:
    outcomes = run_races([racers.end_or_give_role, racers.come_and_go], migrated_url)
    assert set(outcomes["end_or_give_role"]) <= {WON, "RoleNotFound", "VersionConflict"}
    assert outcomes["come_and_go"] == {WON: TRIES}
    rows = await read_all_tables(seeded_storage)
    roles = {(row.application_id, row.role_key): row.protected for row in rows["roles"]}
    for row in rows["role_assignments"]:
        assert (row.application_id, row.role_key) in roles
        assert not (row.project_id and roles[row.application_id, row.role_key])
    for row in rows["project_services"]:
        assert all(roles[row.application_id, key] is False for key in row.roles)
    people = {row.user_id for row in rows["users"]}
    for table in ("group_members", "user_records", "role_assignments", "scope_records"):
        assert {row.user_id for row in rows[table]} <= people, table


async def test_no_role_assignment_survives_an_application_leaving_its_project(
    seeded_storage: Storage, migrated_url: str
) -> None:
    won = run_races([racers.leave_project_while_given], migrated_url)
    assert won == {"leave_project_while_given": {WON: TRIES}}
    rows = await read_all_tables(seeded_storage)
    assert [row for row in rows["role_assignments"] if row.resource_kind] == []


async def test_an_application_leaves_after_what_is_being_given_on_it(
    seeded_storage: Storage, migrated_url: str
) -> None:
    """The giving transaction is stopped after its check; the one that removes the application then waits for it."""
    if not migrated_url.startswith("postgresql"):
        pytest.skip("on SQLite writes run one at a time")
    scopes = {application_scope("mind_games", SHOP): holdings_with("app_developer")}
    giving = partial(edit_record, 1, OWNERS[0], set_fields(scopes=scopes), NOW)
    leaving = seeded_storage.applications.edit_application(SHOP, set_fields(removed=True))
    for outcome in await run_interleaved(seeded_storage, migrated_url, giving, leaving):
        assert not isinstance(outcome, BaseException), outcome
    assert [row for row in (await read_all_tables(seeded_storage))["role_assignments"] if row.resource_kind] == []


async def test_the_last_seat_goes_to_the_one_whose_check_came_first(
    seeded_storage: Storage, migrated_url: str
) -> None:
    if not migrated_url.startswith("postgresql"):
        pytest.skip("on SQLite writes run one at a time")
    taken = set_fields(scopes={ROOT: holdings_with("few")})
    for user_id in OWNERS[:2]:
        await seeded_storage.user_records.edit_record(SHOP, user_id, taken, NOW)
    first = partial(edit_record, SHOP, OWNERS[2], taken, NOW)
    second = seeded_storage.user_records.edit_record(SHOP, OWNERS[3], taken, NOW)
    outcomes = await run_interleaved(seeded_storage, migrated_url, first, second)
    assert [type(outcome).__name__ for outcome in outcomes] == ["UserRecord", "RoleFull"]
    assert await seeded_storage.applications.count_role_holders(SHOP, NOW) == {"few": 3}


async def test_a_schema_is_saved_on_top_of_the_save_before_it(seeded_storage: Storage, migrated_url: str) -> None:
    if not migrated_url.startswith("postgresql"):
        pytest.skip("on SQLite writes run one at a time")
    before = (await seeded_storage.permissions.application_models([SHOP]))[SHOP]

    def add_role(name: str) -> Change[ApplicationModel]:
        def change(state: ApplicationModel) -> EditResult[ApplicationModel]:
            rules = {**state.schema.private_data, name: {"value": False}}
            roles = {**state.roles, name: a_role(name, SHOP)}
            schema = replace(state.schema, private_data=rules)
            return EditResult(replace(state, schema=schema, roles=roles), [a_record()])

        return change

    first = partial(edit_schema, SHOP, add_role("one"))
    second = seeded_storage.applications.edit_schema(SHOP, add_role("two"))
    for outcome in await run_interleaved(seeded_storage, migrated_url, first, second):
        assert not isinstance(outcome, BaseException), outcome
    after = (await seeded_storage.permissions.application_models([SHOP]))[SHOP]
    assert after.schema.version == before.schema.version + 2
    assert after.schema.private_data.keys() == after.roles.keys() - before.roles.keys() == {"one", "two"}


async def test_structure_change_waits_only_for_earlier_writers(seeded_storage: Storage) -> None:
    """Records of other applications are saved continuously, so that the lock is always shared."""
    await create_application(seeded_storage, "guest", name="Busy")
    busy, done = asyncio.Event(), asyncio.Event()
    saved = dict.fromkeys(OWNERS[:9], 0)

    async def save(user_id: str) -> None:
        while not done.is_set():
            scopes = {ROOT: holdings_with("guest")} if saved[user_id] % 2 else {}
            await seeded_storage.user_records.edit_record(SHOP + 1, user_id, set_fields(scopes=scopes), NOW)
            saved[user_id] += 1
            if min(saved.values()) > TRIES:
                busy.set()

    savers = [asyncio.create_task(save(user_id)) for user_id in saved]
    try:
        for title in ("One", "Two", "Three"):
            saved.update(dict.fromkeys(saved, 0))
            busy.clear()
            await busy.wait()
            before = sum(saved.values())
            await seeded_storage.projects.edit_project("mind_games", set_project_fields(title=title))
            await seeded_storage.applications.edit_application(SHOP, set_fields(name=title))
            await seeded_storage.applications.edit_schema(SHOP, set_fields())
            passed = sum(saved.values()) - before
            assert passed < 100 * len(savers)  # those before it, three times; later ones are thousands
    finally:
        done.set()
        await asyncio.gather(*savers)


async def test_a_name_goes_to_one_of_the_applications_that_want_it(
    seeded_storage: Storage, migrated_url: str
) -> None:
    for number in range(10):
        await create_application(seeded_storage, name=f"App {number}", project_id="mind_games")
    outcomes = run_races([racers.rename_application], migrated_url)["rename_application"]
    assert set(outcomes) == {WON, "NameTaken"}
    models = await seeded_storage.permissions.application_models(range(SHOP, SHOP + 11))
    assert [model.application.name for model in models.values()].count("Wanted") == 1


async def test_project_keeps_one_owner_under_concurrent_removals(seeded_storage: Storage, migrated_url: str) -> None:
    for n in range(10):
        for user_id in race_owners(n):
            await a_person(seeded_storage, user_id)
        await publish(seeded_storage, a_project(f"Race {n}"), owners=race_owners(n))
    assert run_races([racers.leave_as_owners], migrated_url) == {"leave_as_owners": {WON: TRIES}}
    for n in range(10):
        left = [await seeded_storage.permissions.facts(user_id, [1]) for user_id in race_owners(n)]
        assert [person_facts.owns for person_facts in left if person_facts and person_facts.owns] == [
            {f"race_{n}": NO_END}
        ]


async def test_facts_and_project_of_one_version_are_of_one_moment(seeded_storage: Storage) -> None:
    """A person leaves a group before the group is granted something: they never have it."""
    anna = OWNERS[0]
    grant = GroupGrant(group_id=GROUP, roles=("few",), action=GrantAction.GRANT)
    seen: set[tuple[bool, bool]] = set()
    both = {(True, False), (False, True)}

    async def write() -> None:
        rounds = 0
        while (rounds := rounds + 1) <= 15 or not both <= seen:
            await seeded_storage.groups.edit_group(GROUP, set_fields(users=(anna,)))
            await seeded_storage.groups.edit_group(GROUP, set_fields(users=()))
            await seeded_storage.projects.edit_project("mind_games", connect_application(SHOP, grant))
            await seeded_storage.projects.edit_project("mind_games", connect_application(SHOP))

    writing = asyncio.create_task(write())
    while not writing.done():
        seen |= await listed_and_granted(seeded_storage, anna)
    await writing
    assert (True, True) not in seen


async def listed_and_granted(storage: Storage, user_id: str) -> set[tuple[bool, bool]]:
    """Whether they are listed and whether the group has a grant, if both were read at one version."""
    facts: Facts | None = await storage.permissions.facts(user_id, [SHOP])
    model = (await storage.permissions.projects(["mind_games"]))["mind_games"]
    assert facts is not None
    if facts.project_versions["mind_games"] != model.version:
        return set()
    grants: Any = model.project.settings.services.get(SHOP, ())
    return {(GROUP in facts.groups, bool(grants))}


async def test_changes_of_two_projects_do_not_wait_for_each_other(
    migrated_postgres_url: str,
) -> None:
    async with (
        open_storage(migrated_postgres_url, migrate=False) as storage,
        postgres_session(migrated_postgres_url) as holder,
    ):
        await install_central(storage)
        for user_id in OWNERS[:2]:
            await a_person(storage, user_id)
        for title, group_id in (("One", "1" * 24), ("Two", "2" * 24)):
            await publish(storage, a_project(title), owners=OWNERS[:1])
            await storage.groups.create_group(a_group(group_id, project_id=title.lower()), ())
        shop = (await create_application(storage, "guest", project_id="two")).application_id

        def change_and_stop() -> Verb[None]:
            yield from edit_project("one", set_project_fields(tags=("changed",)))
            yield WAIT_AT_LOCK()

        await holder.execute(f"SELECT pg_advisory_lock({ADVISORY_LOCK})")
        changing = asyncio.create_task(storage.runner.write(change_and_stop))
        await wait_for_lock_waiters(holder)
        async with asyncio.timeout(LOCK_TIMEOUT):
            await storage.projects.edit_project("two", set_project_fields(tags=("other",)))
            await storage.groups.edit_group("2" * 24, set_fields(users=OWNERS[:1]))
            await storage.applications.edit_schema(shop, set_fields())
            await storage.user_records.edit_record(
                shop, OWNERS[1], set_fields(scopes={ROOT: holdings_with("guest")}), NOW
            )
        assert not changing.done()
        await holder.execute(f"SELECT pg_advisory_unlock({ADVISORY_LOCK})")
        await changing
        assert [await model_version(storage, one) for one in ("one", "two")] == [3, 5]
