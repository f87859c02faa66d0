"""Contract tests of GroupStore."""

import pytest
from msgspec.structs import replace

from gatehouse.accounts.errors import UserNotFound
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.errors import GroupListed, GroupNotFound, NameTaken, ProjectNotFound, VersionConflict
from gatehouse.permissions.model.condition import GroupCondition
from gatehouse.permissions.model.project import GrantAction, GroupGrant, ProjectSettings
from gatehouse.permissions.model.rules import ROOT, group_scope
from gatehouse.storage.database import Storage
from tests.support.builders import NOW, a_record
from tests.support.permission_builders import (
    GROUP,
    P,
    a_group,
    a_person,
    a_project,
    create_application,
    holdings_with,
    install_central,
    model_version,
    publish,
    raise_in_edit,
    set_fields,
    set_project_fields,
)

ANNA = "1000000001"
BOB = "1000000002"
OTHER = "b" * 24
TREE = {"group": {"can_manage_group": {"value": True}}}
STAFF = GroupCondition(title="Staff", condition=parse_condition({"or": [{"tag": "staff"}, {"uid": [ANNA]}]}))


@pytest.fixture
async def seeded_storage(storage: Storage) -> Storage:
    await install_central(storage)
    await a_person(storage)
    await a_person(storage, BOB)
    await publish(storage)
    return storage


async def test_a_group_is_kept_as_it_was_made(seeded_storage: Storage) -> None:
    before = await model_version(seeded_storage)
    new_group = a_group(description="Try things", tags=("project", "x"), conditions=(STAFF,), users=(BOB, ANNA))
    assert await seeded_storage.groups.create_group(new_group, [a_record()]) == new_group
    group = await seeded_storage.groups.group(GROUP)
    assert group == new_group
    assert group.conditions[0].condition.test == STAFF.condition.test
    assert await model_version(seeded_storage) == before + 1


async def test_a_group_needs_a_project_a_title_of_its_own_and_known_users(seeded_storage: Storage) -> None:
    before = await model_version(seeded_storage)
    with pytest.raises(ProjectNotFound):
        await seeded_storage.groups.create_group(a_group(project_id="nothing"), ())
    with pytest.raises(UserNotFound):
        await seeded_storage.groups.create_group(a_group(users=(ANNA, "5")), ())
    assert await model_version(seeded_storage) == before
    await seeded_storage.groups.create_group(a_group(title="Beta Testers"), ())
    with pytest.raises(NameTaken):
        await seeded_storage.groups.create_group(a_group(OTHER, title="beta_testers"), ())
    await publish(seeded_storage, a_project("Other"))
    await seeded_storage.groups.create_group(a_group(OTHER, title="Beta Testers", project_id="other"), ())


async def test_an_unknown_group_is_not_found(seeded_storage: Storage) -> None:
    for attempt in (
        seeded_storage.groups.group(GROUP),
        seeded_storage.groups.edit_group(GROUP, set_fields()),
        seeded_storage.groups.delete_group(GROUP, ()),
    ):
        with pytest.raises(GroupNotFound):
            await attempt


async def test_an_edit_is_kept_with_the_next_version(seeded_storage: Storage) -> None:
    group = await seeded_storage.groups.create_group(a_group(users=(ANNA, BOB)), ())
    before = await model_version(seeded_storage)
    edited = await seeded_storage.groups.edit_group(
        GROUP, set_fields(title="Staff", users=(BOB,), conditions=(STAFF,), project_id="x", created_at=1, version=9)
    )
    assert edited == replace(group, title="Staff", users=(BOB,), conditions=(STAFF,), version=2)
    assert await seeded_storage.groups.group(GROUP) == edited
    assert await model_version(seeded_storage) == before + 1
    facts = [await seeded_storage.permissions.facts(user_id, []) for user_id in (ANNA, BOB)]
    assert [fact.groups for fact in facts if fact] == [frozenset(), {GROUP}]


async def test_a_refused_edit_leaves_everything_as_it_was(seeded_storage: Storage) -> None:
    group = await seeded_storage.groups.create_group(a_group(users=(ANNA,)), ())
    await seeded_storage.groups.create_group(a_group(OTHER, title="Other"), ())
    before = await model_version(seeded_storage)
    for change, error in (
        (raise_in_edit(VersionConflict()), VersionConflict),
        (set_fields(title="other"), NameTaken),
        (set_fields(users=(BOB, "5")), UserNotFound),
    ):
        with pytest.raises(error):
            await seeded_storage.groups.edit_group(GROUP, change)
    assert await seeded_storage.groups.group(GROUP) == group
    assert await model_version(seeded_storage) == before


async def test_a_deleted_group_goes_with_all_that_names_it(seeded_storage: Storage) -> None:
    shop = (await create_application(seeded_storage, "guest")).application_id
    for group in (a_group(users=(ANNA,)), a_group(OTHER, title="Other", users=(ANNA,))):
        await seeded_storage.groups.create_group(group, ())
    remaining_grant, removed_grant = (
        GroupGrant(group_id=group, roles=("guest",), action=GrantAction.GRANT) for group in (OTHER, GROUP)
    )
    settings = ProjectSettings(services={shop: (removed_grant, remaining_grant, removed_grant)})
    await seeded_storage.projects.edit_project("mind_games", set_project_fields(settings=settings, allow=(OTHER,)))
    mine, other = group_scope("mind_games", GROUP), group_scope("mind_games", OTHER)
    scopes = {
        ROOT: holdings_with("group_manager"),
        P: holdings_with("group_manager"),
        other: holdings_with("group_manager"),
    }
    all_scopes = {**scopes, mine: holdings_with("group_manager", private_data=TREE)}
    await seeded_storage.user_records.edit_record(1, ANNA, set_fields(scopes=all_scopes), NOW)
    await seeded_storage.user_records.edit_record(1, BOB, set_fields(scopes={P: holdings_with("group_manager")}), NOW)
    before = await model_version(seeded_storage)
    await seeded_storage.groups.delete_group(GROUP, [a_record()])
    project = await seeded_storage.projects.project("mind_games")
    assert project.groups.keys() == {OTHER}
    assert project.project.settings.services == {shop: (remaining_grant,)}
    assert (project.project.allow, project.project.disallow) == ((OTHER,), ())
    facts = [await seeded_storage.permissions.facts(user_id, [1]) for user_id in (ANNA, BOB)]
    anna, bob = (fact for fact in facts if fact is not None)
    assert (anna.groups, anna.records[1].scopes, anna.records[1].version) == ({OTHER}, scopes, 2)
    assert bob.records[1].version == 1
    assert await model_version(seeded_storage) == before + 1


async def test_a_group_that_decides_who_belongs_is_not_deleted(seeded_storage: Storage) -> None:
    await seeded_storage.groups.create_group(a_group(), ())
    for lists in ({"allow": (GROUP,)}, {"allow": (), "disallow": (GROUP,)}):
        await seeded_storage.projects.edit_project("mind_games", set_project_fields(**lists))
        before = await model_version(seeded_storage)
        with pytest.raises(GroupListed):
            await seeded_storage.groups.delete_group(GROUP, ())
        assert await model_version(seeded_storage) == before
    await seeded_storage.projects.edit_project("mind_games", set_project_fields(disallow=()))
    await seeded_storage.groups.delete_group(GROUP, ())


async def test_the_project_of_a_group_nothing_names_keeps_its_version(seeded_storage: Storage) -> None:
    await seeded_storage.groups.create_group(a_group(), ())
    await seeded_storage.groups.delete_group(GROUP, ())
    assert (await seeded_storage.projects.project("mind_games")).project.version == 1


async def test_records_are_kept_with_what_they_tell_of(seeded_storage: Storage) -> None:
    before = len(await seeded_storage.audit.unsealed_records(100))
    await seeded_storage.groups.create_group(a_group(), [a_record()])
    await seeded_storage.groups.edit_group(GROUP, set_fields())
    await seeded_storage.groups.delete_group(GROUP, [a_record(), a_record()])
    assert len(await seeded_storage.audit.unsealed_records(100)) == before + 4
