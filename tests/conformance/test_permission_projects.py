"""Contract tests of ProjectStore."""

from dataclasses import replace

import pytest

from gatehouse.accounts.errors import UserNotFound
from gatehouse.permissions.errors import (
    LastOwner,
    LimitReached,
    NameTaken,
    ProjectNotFound,
    RoleFull,
    RoleNotFound,
    VersionConflict,
)
from gatehouse.permissions.model.facts import UserRecord
from gatehouse.permissions.model.project import GrantAction, GroupGrant, ProjectSettings
from gatehouse.permissions.model.rules import ROOT, application_scope
from gatehouse.permissions.store import MembershipChange
from gatehouse.storage.database import Storage
from tests.support.builders import NOW, a_record
from tests.support.permission_builders import (
    GROUP,
    P,
    a_group,
    a_new_application,
    a_person,
    a_project,
    a_role,
    a_user_record,
    connect_application,
    create_application,
    holdings_with,
    install_central,
    publish,
    raise_in_edit,
    set_fields,
    set_project_fields,
    set_roles,
)

ANNA = "1000000001"
BOB = "1000000002"
OWNER = "project_owner"


@pytest.fixture
async def world(storage: Storage) -> Storage:
    await install_central(storage)
    await a_person(storage)
    await a_person(storage, BOB)
    return storage


async def record_of(storage: Storage, user_id: str, application_id: int = 1) -> UserRecord:
    facts = await storage.permissions.facts(user_id, [application_id])
    assert facts is not None
    return facts.records[application_id]


async def structure_version(storage: Storage) -> int:
    return (await storage.permissions.structure([], [])).version


# -- publishing ---------------------------------------------------------------------------------------


async def test_a_project_is_kept_as_it_was_published(world: Storage) -> None:
    project = a_project(description="Riddles", aliases=("mg", "b", "a"), tags=("x",), allow=("g1",), disallow=("g2",))
    project = replace(project, settings=ProjectSettings(allowed_domains=("b.example", "a.example")))
    assert await publish(world, project) == project
    stored = await world.projects.project("mind_games")
    assert (stored.project, stored.groups) == (project, {})


async def test_a_project_is_published_with_its_application_and_its_people(world: Storage) -> None:
    on_it = application_scope("mind_games", 0)
    new = replace(
        a_new_application(0, "moderator", name="Mind Games", project_id="mind_games"),
        creator=a_user_record(ANNA, {on_it: ["app_developer"]}),
    )
    checked: list[int] = []

    def records(application_id: int) -> list[object]:
        checked.append(application_id)
        return []

    made = await publish(world, new=new, owners=[ANNA, BOB], records=records)  # type: ignore[arg-type]
    assert (made.application_id, checked) == (50_001, [50_001])
    model = (await world.permissions.application_models([50_001]))[50_001]
    assert (model.application.project_id, model.schema.application_id) == ("mind_games", 50_001)
    assert model.roles == {"moderator": a_role("moderator", 50_001)}
    anna = await record_of(world, ANNA)
    assert anna.scopes == {
        P: holdings_with(OWNER),
        application_scope("mind_games", 50_001): holdings_with("app_developer"),
    }
    assert anna.version == 1  # one save, with several assignments
    assert (await record_of(world, BOB)).scopes == {P: holdings_with(OWNER)}
    assert (await world.projects.project("mind_games")).project == made


async def test_a_creator_may_get_a_record_in_the_new_application(world: Storage) -> None:
    new = replace(
        a_new_application(0, "moderator", project_id="mind_games"),
        creator=UserRecord(application_id=0, user_id=ANNA, scopes={ROOT: holdings_with("moderator")}),
    )
    await publish(world, new=new)
    assert (await record_of(world, ANNA, 50_001)).scopes == {ROOT: holdings_with("moderator")}


@pytest.mark.parametrize("title", ["my_project", "MY PROJECT", "My_Project"])
async def test_pr_04_no_two_projects_look_alike(world: Storage, title: str) -> None:
    await publish(world, a_project("My Project"))
    with pytest.raises(NameTaken):
        await publish(world, a_project(title))


async def test_names_of_removed_projects_stay_taken(world: Storage) -> None:
    await publish(world, a_project(aliases=("mg",)))
    await world.projects.edit_project("mind_games", set_project_fields(removed=True))
    with pytest.raises(NameTaken):
        await publish(world)
    with pytest.raises(NameTaken):
        await publish(world, a_project("MG"))
    with pytest.raises(NameTaken):
        await publish(world, a_project("Other", aliases=("mind_games",)))


async def test_a_title_stays_with_the_id_it_once_gave(world: Storage) -> None:
    await publish(world)
    await world.projects.edit_project("mind_games", set_project_fields(title="Riddles"))
    with pytest.raises(NameTaken):
        await publish(world)  # the id is still taken
    with pytest.raises(NameTaken):
        await publish(world, a_project("Riddles"))


async def test_a_refused_publish_leaves_nothing(world: Storage) -> None:
    await publish(world)
    before = await structure_version(world)
    with pytest.raises(UserNotFound):
        await publish(world, a_project("Other"), new=a_new_application(0, project_id="other"), owners=["5"])
    with pytest.raises(ProjectNotFound):
        await world.projects.project("other")
    assert await structure_version(world) == before
    assert (await create_application(world)).application_id == 50_001


async def test_an_author_may_have_so_many_projects_removed_ones_included(world: Storage) -> None:
    for title in ("A", "B"):
        await publish(world, a_project(title), limit=2)
    await publish(world, a_project("C", author=BOB), limit=2)
    await world.projects.edit_project("a", set_project_fields(removed=True))
    assert (
        await world.projects.count_authored_projects(ANNA),
        await world.projects.count_authored_projects(BOB),
    ) == (1, 1)
    with pytest.raises(LimitReached):
        await publish(world, a_project("D"), limit=2)
    await publish(world, a_project("D"), limit=3)
    await publish(world, a_project("E"), limit=None)
    with pytest.raises(LimitReached):
        await publish(world, a_project("F", author="3"), limit=0)


# -- reading and editing ------------------------------------------------------------------------------


async def test_a_project_is_found_by_id_or_alias_with_its_groups_and_their_users(world: Storage) -> None:
    await publish(world, a_project(aliases=("mg",)))
    group = a_group(users=(BOB, ANNA))
    await world.groups.create_group(group, ())
    by_alias = await world.projects.project("mg")
    assert by_alias == await world.projects.project("mind_games")
    assert by_alias.groups == {GROUP: group}
    with pytest.raises(ProjectNotFound):
        await world.projects.project("nothing")


async def test_an_edit_is_kept_with_the_next_version(world: Storage) -> None:
    before = await publish(world, a_project(aliases=("mg", "b")))
    version = await structure_version(world)
    edited = await world.projects.edit_project(
        "mg",
        set_project_fields(
            title="Riddles", aliases=("c", "mg"), project_id="x", author=BOB, created_at=1, version=70
        ),
    )
    assert edited.project == replace(before, title="Riddles", aliases=("c", "mg"), version=2)
    assert (await world.projects.project("c")) == edited
    with pytest.raises(ProjectNotFound):
        await world.projects.project("b")
    assert await structure_version(world) == version + 1


async def test_titles_and_aliases_of_others_are_refused(world: Storage) -> None:
    await publish(world, a_project(aliases=("mg",)))
    await publish(world, a_project("Other", aliases=("o",)))
    for fields in (
        {"title": "mind games"},
        {"aliases": ("mg",)},
        {"aliases": ("mind_games",)},
        {"aliases": ("other",)},
    ):
        with pytest.raises(NameTaken):
            await world.projects.edit_project("other", set_project_fields(**fields))
    assert (await world.projects.project("other")).project.version == 1


async def test_a_refused_edit_leaves_everything_as_it_was(world: Storage) -> None:
    await publish(world)
    before = await structure_version(world)
    with pytest.raises(VersionConflict):
        await world.projects.edit_project("mind_games", raise_in_edit(VersionConflict()))
    with pytest.raises(ProjectNotFound):
        await world.projects.edit_project("nothing", set_project_fields())
    assert await structure_version(world) == before


async def test_services_keep_their_grants_in_order(world: Storage) -> None:
    await publish(world)
    await world.groups.create_group(a_group(), ())
    shop = (await create_application(world, "b", "a")).application_id
    wiki = (await create_application(world)).application_id
    grants = tuple(
        GroupGrant(group_id=GROUP, roles=roles, action=action)
        for roles, action in (
            (("b", "a"), GrantAction.GRANT),
            (("a",), GrantAction.REVOKE),
            (("b",), GrantAction.GRANT),
        )
    )
    services = {shop: grants, wiki: ()}
    await world.projects.edit_project("mind_games", set_project_fields(settings=ProjectSettings(services=services)))
    assert (await world.projects.project("mind_games")).project.settings.services == services
    await world.projects.edit_project("mind_games", set_project_fields(settings=ProjectSettings()))
    assert (await world.projects.project("mind_games")).project.settings.services == {}


async def test_a_role_that_ended_meanwhile_is_not_granted(world: Storage) -> None:
    await publish(world)
    shop = (await create_application(world, "a", a_role("boss", protected=True))).application_id
    for role, error in (("gone", RoleNotFound), ("boss", VersionConflict)):
        grant = GroupGrant(group_id=GROUP, roles=("a", role), action=GrantAction.GRANT)
        with pytest.raises(error):
            await world.projects.edit_project("mind_games", connect_application(shop, grant))


# -- members ------------------------------------------------------------------------------------------


async def test_lists_and_people_are_edited_as_one(world: Storage) -> None:
    await publish(world, owners=[ANNA])
    version = await structure_version(world)
    change = MembershipChange(
        project=set_project_fields(allow=(GROUP,), disallow=("b" * 24,)),
        users={BOB: set_fields(scopes={P: holdings_with(OWNER)}), ANNA: set_fields(scopes={})},
    )
    after = await world.projects.edit_members("mind_games", change, NOW)
    assert (after.project.allow, after.project.disallow, after.project.version) == ((GROUP,), ("b" * 24,), 2)
    assert await world.projects.project("mind_games") == after
    assert ((await record_of(world, BOB)).scopes, (await record_of(world, BOB)).version) == (
        {P: holdings_with(OWNER)},
        1,
    )
    assert ((await record_of(world, ANNA)).scopes, (await record_of(world, ANNA)).version) == ({}, 2)
    assert await structure_version(world) == version + 1


async def test_members_are_edited_all_or_none(world: Storage) -> None:
    await publish(world, owners=[ANNA])
    before = await world.projects.project("mind_games")
    full = [replace(role, user_limit=1) for role in await central_roles(world)]
    await world.applications.edit_schema(1, set_roles(*full))
    both = set_fields(scopes={P: holdings_with("group_manager")})
    for users, error in (
        ({ANNA: set_fields(scopes={}), BOB: both}, LastOwner),
        ({"5": both, BOB: both}, UserNotFound),
        ({BOB: set_fields(scopes={P: holdings_with("nothing")})}, RoleNotFound),
        ({BOB: both, ANNA: set_fields(scopes={P: holdings_with(OWNER, "group_manager")})}, RoleFull),
    ):
        with pytest.raises(error):
            await world.projects.edit_members(
                "mind_games", MembershipChange(project=set_project_fields(allow=(GROUP,)), users=users), NOW
            )
    assert await world.projects.project("mind_games") == before
    assert (await record_of(world, BOB)).version == 0


async def central_roles(storage: Storage) -> list[object]:
    return list((await storage.permissions.application_models([1]))[1].roles.values())


async def test_edits_are_kept_with_their_records(world: Storage) -> None:
    before = len(await world.audit.unsealed_records(100))
    await publish(world, records=lambda _: [a_record(), a_record()])
    await world.projects.edit_project("mind_games", set_project_fields())
    users = {ANNA: set_fields(scopes={P: holdings_with(OWNER)})}
    await world.projects.edit_members("mind_games", MembershipChange(project=set_project_fields(), users=users), NOW)
    assert len(await world.audit.unsealed_records(100)) == before + 5
