"""Contract tests of ProjectStore."""

import pytest
from msgspec.structs import replace

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
    model_version,
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
async def seeded_storage(storage: Storage) -> Storage:
    await install_central(storage)
    await a_person(storage)
    await a_person(storage, BOB)
    return storage


async def record_of(storage: Storage, user_id: str, application_id: int = 1) -> UserRecord:
    facts = await storage.permissions.facts(user_id, [application_id])
    assert facts is not None
    return facts.records[application_id]


# -- publishing ---------------------------------------------------------------------------------------


async def test_a_project_is_kept_as_it_was_published(seeded_storage: Storage) -> None:
    project = a_project(description="Riddles", aliases=("mg", "b", "a"), tags=("x",), allow=("g1",), disallow=("g2",))
    project = replace(project, settings=ProjectSettings(allowed_domains=("b.example", "a.example")))
    assert await publish(seeded_storage, project) == project
    stored = await seeded_storage.projects.project("mind_games")
    assert (stored.project, stored.groups) == (project, {})


async def test_a_project_is_published_with_its_application_and_its_people(seeded_storage: Storage) -> None:
    on_it = application_scope("mind_games", 0)
    new = replace(
        a_new_application(0, "moderator", name="Mind Games", project_id="mind_games"),
        creator=a_user_record(ANNA, {on_it: ["app_developer"]}),
    )
    checked: list[int] = []

    def records(application_id: int) -> list[object]:
        checked.append(application_id)
        return []

    project = await publish(seeded_storage, new=new, owners=[ANNA, BOB], records=records)  # type: ignore[arg-type]
    assert (project.application_id, checked) == (50_001, [50_001])
    model = (await seeded_storage.permissions.application_models([50_001]))[50_001]
    assert (model.application.project_id, model.schema.application_id) == ("mind_games", 50_001)
    assert model.roles == {"moderator": a_role("moderator", 50_001)}
    anna = await record_of(seeded_storage, ANNA)
    assert anna.scopes == {
        P: holdings_with(OWNER),
        application_scope("mind_games", 50_001): holdings_with("app_developer"),
    }
    assert anna.version == 1  # one save, with several assignments
    assert (await record_of(seeded_storage, BOB)).scopes == {P: holdings_with(OWNER)}
    assert (await seeded_storage.projects.project("mind_games")).project == project


async def test_a_creator_may_get_a_record_in_the_new_application(seeded_storage: Storage) -> None:
    new = replace(
        a_new_application(0, "moderator", project_id="mind_games"),
        creator=UserRecord(application_id=0, user_id=ANNA, scopes={ROOT: holdings_with("moderator")}),
    )
    await publish(seeded_storage, new=new)
    assert (await record_of(seeded_storage, ANNA, 50_001)).scopes == {ROOT: holdings_with("moderator")}


@pytest.mark.parametrize("title", ["my_project", "MY PROJECT", "My_Project"])
async def test_pr_04_no_two_projects_look_alike(seeded_storage: Storage, title: str) -> None:
    await publish(seeded_storage, a_project("My Project"))
    with pytest.raises(NameTaken):
        await publish(seeded_storage, a_project(title))


async def test_names_of_removed_projects_stay_taken(seeded_storage: Storage) -> None:
    await publish(seeded_storage, a_project(aliases=("mg",)))
    await seeded_storage.projects.edit_project("mind_games", set_project_fields(removed=True))
    with pytest.raises(NameTaken):
        await publish(seeded_storage)
    with pytest.raises(NameTaken):
        await publish(seeded_storage, a_project("MG"))
    with pytest.raises(NameTaken):
        await publish(seeded_storage, a_project("Other", aliases=("mind_games",)))


async def test_a_title_stays_with_the_id_it_once_gave(seeded_storage: Storage) -> None:
    await publish(seeded_storage)
    await seeded_storage.projects.edit_project("mind_games", set_project_fields(title="Riddles"))
    with pytest.raises(NameTaken):
        await publish(seeded_storage)  # the id is still taken
    with pytest.raises(NameTaken):
        await publish(seeded_storage, a_project("Riddles"))


async def test_a_refused_publish_leaves_nothing(seeded_storage: Storage) -> None:
    await publish(seeded_storage)
    before = await model_version(seeded_storage)
    with pytest.raises(UserNotFound):
        await publish(seeded_storage, a_project("Other"), new=a_new_application(0, project_id="other"), owners=["5"])
    with pytest.raises(ProjectNotFound):
        await seeded_storage.projects.project("other")
    assert await model_version(seeded_storage) == before
    assert (await create_application(seeded_storage)).application_id == 50_001


async def test_an_author_may_have_so_many_projects_removed_ones_included(seeded_storage: Storage) -> None:
    for title in ("A", "B"):
        await publish(seeded_storage, a_project(title), limit=2)
    await publish(seeded_storage, a_project("C", author=BOB), limit=2)
    await seeded_storage.projects.edit_project("a", set_project_fields(removed=True))
    assert (
        await seeded_storage.projects.count_authored_projects(ANNA),
        await seeded_storage.projects.count_authored_projects(BOB),
    ) == (1, 1)
    with pytest.raises(LimitReached):
        await publish(seeded_storage, a_project("D"), limit=2)
    await publish(seeded_storage, a_project("D"), limit=3)
    await publish(seeded_storage, a_project("E"), limit=None)
    with pytest.raises(LimitReached):
        await publish(seeded_storage, a_project("F", author="3"), limit=0)


# -- reading and editing ------------------------------------------------------------------------------


async def test_a_project_is_found_by_id_or_alias_with_its_groups_and_their_users(seeded_storage: Storage) -> None:
    await publish(seeded_storage, a_project(aliases=("mg",)))
    group = a_group(users=(BOB, ANNA))
    await seeded_storage.groups.create_group(group, ())
    by_alias = await seeded_storage.projects.project("mg")
    assert by_alias == await seeded_storage.projects.project("mind_games")
    assert by_alias.groups == {GROUP: group}
    with pytest.raises(ProjectNotFound):
        await seeded_storage.projects.project("nothing")


async def test_an_edit_is_kept_with_the_next_version(seeded_storage: Storage) -> None:
    before = await publish(seeded_storage, a_project(aliases=("mg", "b")))
    version = await model_version(seeded_storage)
    edited = await seeded_storage.projects.edit_project(
        "mg",
        set_project_fields(
            title="Riddles", aliases=("c", "mg"), project_id="x", author=BOB, created_at=1, version=70
        ),
    )
    assert edited.project == replace(before, title="Riddles", aliases=("c", "mg"), version=2)
    assert (await seeded_storage.projects.project("c")) == edited
    with pytest.raises(ProjectNotFound):
        await seeded_storage.projects.project("b")
    assert await model_version(seeded_storage) == version + 1


async def test_titles_and_aliases_of_others_are_refused(seeded_storage: Storage) -> None:
    await publish(seeded_storage, a_project(aliases=("mg",)))
    await publish(seeded_storage, a_project("Other", aliases=("o",)))
    for fields in (
        {"title": "mind games"},
        {"aliases": ("mg",)},
        {"aliases": ("mind_games",)},
        {"aliases": ("other",)},
    ):
        with pytest.raises(NameTaken):
            await seeded_storage.projects.edit_project("other", set_project_fields(**fields))
    assert (await seeded_storage.projects.project("other")).project.version == 1


async def test_a_refused_edit_leaves_everything_as_it_was(seeded_storage: Storage) -> None:
    await publish(seeded_storage)
    before = await model_version(seeded_storage)
    with pytest.raises(VersionConflict):
        await seeded_storage.projects.edit_project("mind_games", raise_in_edit(VersionConflict()))
    with pytest.raises(ProjectNotFound):
        await seeded_storage.projects.edit_project("nothing", set_project_fields())
    assert await model_version(seeded_storage) == before


async def test_services_keep_their_grants_in_order(seeded_storage: Storage) -> None:
    await publish(seeded_storage)
    await seeded_storage.groups.create_group(a_group(), ())
    shop = (await create_application(seeded_storage, "b", "a")).application_id
    wiki = (await create_application(seeded_storage)).application_id
    grants = tuple(
        GroupGrant(group_id=GROUP, roles=roles, action=action)
        for roles, action in (
            (("b", "a"), GrantAction.GRANT),
            (("a",), GrantAction.REVOKE),
            (("b",), GrantAction.GRANT),
        )
    )
    services = {shop: grants, wiki: ()}
    await seeded_storage.projects.edit_project(
        "mind_games", set_project_fields(settings=ProjectSettings(services=services))
    )
    assert (await seeded_storage.projects.project("mind_games")).project.settings.services == services
    await seeded_storage.projects.edit_project("mind_games", set_project_fields(settings=ProjectSettings()))
    assert (await seeded_storage.projects.project("mind_games")).project.settings.services == {}


async def test_a_role_that_ended_meanwhile_is_not_granted(seeded_storage: Storage) -> None:
    await publish(seeded_storage)
    shop = (await create_application(seeded_storage, "a", a_role("boss", protected=True))).application_id
    for role, error in (("gone", RoleNotFound), ("boss", VersionConflict)):
        grant = GroupGrant(group_id=GROUP, roles=("a", role), action=GrantAction.GRANT)
        with pytest.raises(error):
            await seeded_storage.projects.edit_project("mind_games", connect_application(shop, grant))


# -- members ------------------------------------------------------------------------------------------


async def test_lists_and_people_are_edited_as_one(seeded_storage: Storage) -> None:
    await publish(seeded_storage, owners=[ANNA])
    version = await model_version(seeded_storage)
    change = MembershipChange(
        project=set_project_fields(allow=(GROUP,), disallow=("b" * 24,)),
        users={BOB: set_fields(scopes={P: holdings_with(OWNER)}), ANNA: set_fields(scopes={})},
    )
    after = await seeded_storage.projects.edit_members("mind_games", change, NOW)
    assert (after.project.allow, after.project.disallow, after.project.version) == ((GROUP,), ("b" * 24,), 2)
    assert await seeded_storage.projects.project("mind_games") == after
    assert ((await record_of(seeded_storage, BOB)).scopes, (await record_of(seeded_storage, BOB)).version) == (
        {P: holdings_with(OWNER)},
        1,
    )
    assert ((await record_of(seeded_storage, ANNA)).scopes, (await record_of(seeded_storage, ANNA)).version) == (
        {},
        2,
    )
    assert await model_version(seeded_storage) == version + 1


async def test_members_are_edited_all_or_none(seeded_storage: Storage) -> None:
    await publish(seeded_storage, owners=[ANNA])
    before = await seeded_storage.projects.project("mind_games")
    full = [replace(role, user_limit=1) for role in await central_roles(seeded_storage)]
    await seeded_storage.applications.edit_schema(1, set_roles(*full))
    both = set_fields(scopes={P: holdings_with("group_manager")})
    for users, error in (
        ({ANNA: set_fields(scopes={}), BOB: both}, LastOwner),
        ({"5": both, BOB: both}, UserNotFound),
        ({BOB: set_fields(scopes={P: holdings_with("nothing")})}, RoleNotFound),
        ({BOB: both, ANNA: set_fields(scopes={P: holdings_with(OWNER, "group_manager")})}, RoleFull),
    ):
        with pytest.raises(error):
            await seeded_storage.projects.edit_members(
                "mind_games", MembershipChange(project=set_project_fields(allow=(GROUP,)), users=users), NOW
            )
    assert await seeded_storage.projects.project("mind_games") == before
    assert (await record_of(seeded_storage, BOB)).version == 0


async def central_roles(storage: Storage) -> list[object]:
    return list((await storage.permissions.application_models([1]))[1].roles.values())


async def test_edits_are_kept_with_their_records(seeded_storage: Storage) -> None:
    before = len(await seeded_storage.audit.unsealed_records(100))
    await publish(seeded_storage, records=lambda _: [a_record(), a_record()])
    await seeded_storage.projects.edit_project("mind_games", set_project_fields())
    users = {ANNA: set_fields(scopes={P: holdings_with(OWNER)})}
    await seeded_storage.projects.edit_members(
        "mind_games", MembershipChange(project=set_project_fields(), users=users), NOW
    )
    assert len(await seeded_storage.audit.unsealed_records(100)) == before + 5
