"""Contract tests of ApplicationStore."""

import secrets

import pytest
from msgspec.structs import replace

from gatehouse.admin import assignments as assignment_lists
from gatehouse.admin.assignments import AssignmentListStore, AssignmentPeopleQuery
from gatehouse.admin.paging import PageRequest
from gatehouse.admin.schema_versions import SchemaVersionStore, VersionNotFound
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.errors import ApplicationNotFound, NameTaken, ProjectNotFound, VersionConflict
from gatehouse.permissions.model.application import ApplicationKey, KeySource
from gatehouse.permissions.model.facts import ApplicationModel, Assignment, UserRecord
from gatehouse.permissions.model.project import GrantAction, GroupGrant
from gatehouse.permissions.model.rules import ROOT, End, application_scope
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.model.schema_version import (
    MAX_VERSION_BYTES,
    MAX_VERSIONS,
    ChangedItem,
    ChangeKind,
    ChangeTally,
)
from gatehouse.permissions.store import Change, EditResult
from gatehouse.storage.database import Storage
from gatehouse.storage.permissions.applications import reserve_id
from gatehouse.storage.permissions.schemas import VERSION_SIZES
from gatehouse.storage.statements import Verb
from tests.support.builders import NOW
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
    set_roles,
)

ANNA = "1000000001"
BOB = "1000000002"
SHOP = 50_001
SERVICE_KEY = ApplicationKey(kid="k1", application_id=SHOP, source=KeySource.SERVICE_META, pem="pem", created_at=NOW)


@pytest.fixture
async def seeded_storage(storage: Storage) -> Storage:
    await install_central(storage)
    await a_person(storage)
    await a_person(storage, BOB)
    await publish(storage, owners=[ANNA])
    return storage


async def record_of(storage: Storage, user_id: str, application_id: int) -> UserRecord:
    facts = await storage.permissions.facts(user_id, [application_id])
    assert facts is not None
    return facts.records[application_id]


# -- applications -------------------------------------------------------------------------------------


async def test_ids_begin_at_50001_and_none_is_given_twice(seeded_storage: Storage) -> None:
    application_ids = [(await create_application(seeded_storage, name=name)).application_id for name in ("A", "B")]
    assert application_ids == [50_001, 50_002]
    await seeded_storage.runner.write(lambda: reserve_id(60_000))
    assert (await create_application(seeded_storage, name="C")).application_id == 60_001


async def test_an_application_that_was_refused_spends_no_id(seeded_storage: Storage) -> None:
    await create_application(seeded_storage, project_id="mind_games")
    with pytest.raises(NameTaken):
        await create_application(seeded_storage, project_id="mind_games")
    assert (await create_application(seeded_storage)).application_id == SHOP + 1


async def test_an_application_is_kept_as_it_was_made(seeded_storage: Storage) -> None:
    application = await create_application(
        seeded_storage,
        description="Sells",
        project_id="mind_games",
        settings={"restricted_domains": ["a.example"]},
        service_meta={"name": "shop"},
        sealed_private_key=b"\x00sealed",
        service_key=SERVICE_KEY,
    )
    assert await seeded_storage.applications.application(SHOP) == application
    assert await seeded_storage.application_keys.application_keys(SHOP) == [SERVICE_KEY]


async def test_an_unknown_application_is_not_found(seeded_storage: Storage) -> None:
    with pytest.raises(ApplicationNotFound):
        await seeded_storage.applications.application(99)
    with pytest.raises(ApplicationNotFound):
        await seeded_storage.applications.edit_application(99, set_fields())
    with pytest.raises(ApplicationNotFound):
        await seeded_storage.applications.edit_schema(99, set_fields())


async def test_an_application_is_made_in_a_project_that_exists(seeded_storage: Storage) -> None:
    with pytest.raises(ProjectNotFound):
        await create_application(seeded_storage, project_id="nothing")
    await create_application(seeded_storage)
    with pytest.raises(ProjectNotFound):
        await seeded_storage.applications.edit_application(SHOP, set_fields(project_id="nothing"))


async def test_a_creator_gets_what_was_written_for_them(seeded_storage: Storage) -> None:
    own = UserRecord(application_id=SHOP, user_id=ANNA, secret_data={"application": {"canRead": {"value": True}}})
    await seeded_storage.applications.create_application(
        lambda number: (replace(a_new_application(number), creator=replace(own, application_id=number)), ())
    )
    assert await record_of(seeded_storage, ANNA, SHOP) == replace(own, version=1)


async def test_creator_roles_in_application_1_are_added_to_existing_roles(seeded_storage: Storage) -> None:
    before = await record_of(seeded_storage, ANNA, 1)
    on_it = application_scope("mind_games", SHOP)
    await seeded_storage.applications.create_application(
        lambda number: (
            replace(
                a_new_application(number, project_id="mind_games"),
                creator=a_user_record(ANNA, {on_it: ["app_developer", "app_users_manager"]}),
            ),
            (),
        )
    )
    after = await record_of(seeded_storage, ANNA, 1)
    assert after.scopes == {**before.scopes, on_it: holdings_with("app_developer", "app_users_manager")}
    assert after.version == before.version + 1


async def test_names_are_unique_in_a_project_among_live_applications(seeded_storage: Storage) -> None:
    await create_application(seeded_storage, project_id="mind_games")
    await create_application(seeded_storage)
    await create_application(seeded_storage)  # outside of projects, names need not be unique
    other = await create_application(seeded_storage, name="Other", project_id="mind_games")
    with pytest.raises(NameTaken):
        await seeded_storage.applications.edit_application(other.application_id, set_fields(name="Shop"))
    with pytest.raises(NameTaken):
        await seeded_storage.applications.edit_application(SHOP + 1, set_fields(project_id="mind_games"))
    await seeded_storage.applications.edit_application(SHOP, set_fields(removed=True))
    assert (
        await seeded_storage.applications.edit_application(other.application_id, set_fields(name="Shop"))
    ).name == "Shop"
    with pytest.raises(NameTaken):
        await seeded_storage.applications.edit_application(SHOP, set_fields(removed=False))


async def test_an_edit_is_kept_with_its_records_and_the_next_version(seeded_storage: Storage) -> None:
    before = await create_application(seeded_storage)
    count = len(await seeded_storage.audit.unsealed_records(100))
    edited = await seeded_storage.applications.edit_application(
        SHOP, set_fields(application_id=7, name="Store", settings={"a": [1]}, created_at=1, version=40)
    )
    assert edited == replace(before, name="Store", settings={"a": [1]}, version=2)
    assert await seeded_storage.applications.application(SHOP) == edited
    assert len(await seeded_storage.audit.unsealed_records(100)) == count + 1


async def test_a_refused_edit_leaves_everything_as_it_was(seeded_storage: Storage) -> None:
    before = await create_application(seeded_storage)
    with pytest.raises(VersionConflict):
        await seeded_storage.applications.edit_application(SHOP, raise_in_edit(VersionConflict()))
    with pytest.raises(VersionConflict):
        await seeded_storage.applications.edit_schema(SHOP, raise_in_edit(VersionConflict()))
    assert await seeded_storage.applications.application(SHOP) == before
    assert (await seeded_storage.permissions.application_models([SHOP]))[SHOP].schema.version == 1


async def test_the_key_of_a_service_follows_its_application(seeded_storage: Storage) -> None:
    await create_application(seeded_storage, service_key=SERVICE_KEY)
    other = replace(SERVICE_KEY, kid="k2", pem="other")
    await seeded_storage.applications.edit_application(SHOP, set_fields(name="Store"))
    assert await seeded_storage.application_keys.application_key("k1") == SERVICE_KEY
    await seeded_storage.applications.edit_application(SHOP, set_fields(service_key=other))
    assert await seeded_storage.application_keys.application_keys(SHOP) == [other]
    await seeded_storage.applications.edit_application(SHOP, set_fields(service_key=None))
    assert await seeded_storage.application_keys.application_keys(SHOP) == []


# -- schemas and roles --------------------------------------------------------------------------------


async def test_a_schema_edit_makes_one_version_and_one_of_each_role_it_changed(seeded_storage: Storage) -> None:
    await create_application(seeded_storage, "same", "changed", "gone")
    model = (await seeded_storage.permissions.application_models([SHOP]))[SHOP]
    schema = replace(model.schema, private_data={"a": {"value": True}}, updated_at=NOW + 5, version=70)
    roles = {
        "same": replace(model.roles["same"], version=9),
        "changed": replace(model.roles["changed"], description="new"),
        "fresh": a_role("Fresh", SHOP, version=9),
    }
    edited = await seeded_storage.applications.edit_schema(SHOP, set_fields(schema=schema, roles=roles))
    assert edited.schema == replace(schema, version=2)
    assert {key: role.version for key, role in edited.roles.items()} == {"same": 1, "changed": 2, "fresh": 1}
    assert (await seeded_storage.permissions.application_models([SHOP]))[SHOP] == edited


async def test_a_role_that_is_gone_is_taken_from_everyone_and_versions_tell(seeded_storage: Storage) -> None:
    await create_application(seeded_storage, "moderator", "guest", project_id="mind_games")
    scopes = {ROOT: holdings_with("moderator", "guest"), P: holdings_with("moderator")}
    await seeded_storage.user_records.edit_record(SHOP, ANNA, set_fields(scopes=scopes), NOW)
    await seeded_storage.user_records.edit_record(SHOP, BOB, set_fields(scopes={ROOT: holdings_with("guest")}), NOW)
    await seeded_storage.applications.edit_schema(SHOP, set_roles(a_role("guest", SHOP)))
    anna, bob = await record_of(seeded_storage, ANNA, SHOP), await record_of(seeded_storage, BOB, SHOP)
    assert (anna.scopes, anna.version) == ({ROOT: holdings_with("guest")}, 2)
    assert (bob.scopes, bob.version) == ({ROOT: holdings_with("guest")}, 1)


async def test_a_role_that_becomes_protected_is_taken_from_every_project_scope(seeded_storage: Storage) -> None:
    await create_application(seeded_storage, "moderator", a_role("boss", protected=True), project_id="mind_games")
    scope = application_scope("mind_games", SHOP)
    scopes = {
        ROOT: holdings_with("moderator", "boss"),
        P: holdings_with("moderator"),
        scope: holdings_with("moderator"),
    }
    await seeded_storage.user_records.edit_record(SHOP, ANNA, set_fields(scopes=scopes), NOW)
    boss = a_role("boss", SHOP, protected=True)
    await seeded_storage.applications.edit_schema(SHOP, set_roles(a_role("moderator", SHOP, protected=True), boss))
    anna = await record_of(seeded_storage, ANNA, SHOP)
    assert (anna.scopes, anna.version) == ({ROOT: holdings_with("moderator", "boss")}, 2)


@pytest.mark.parametrize("protected", [False, True])
async def test_roles_that_end_leave_the_grants_of_projects_too(seeded_storage: Storage, protected: bool) -> None:  # noqa: FBT001
    await create_application(seeded_storage, "moderator", "guest", project_id="mind_games")
    await seeded_storage.groups.create_group(a_group(), ())
    await publish(seeded_storage, a_project("Untouched"))
    grants = (
        GroupGrant(group_id=GROUP, roles=("moderator", "guest"), action=GrantAction.GRANT),
        GroupGrant(group_id=GROUP, roles=("moderator",), action=GrantAction.REVOKE),
    )
    await seeded_storage.projects.edit_project("mind_games", connect_application(SHOP, *grants))
    before = await model_version(seeded_storage)
    left = [a_role("guest", SHOP), *([a_role("moderator", SHOP, protected=True)] if protected else [])]
    await seeded_storage.applications.edit_schema(SHOP, set_roles(*left))
    project = (await seeded_storage.projects.project("mind_games")).project
    assert project.settings.services == {SHOP: (replace(grants[0], roles=("guest",)),)}
    assert project.version == 3
    assert await model_version(seeded_storage) == before + 1
    assert (await seeded_storage.projects.project("untouched")).project.version == 1


async def test_an_application_whose_last_grant_ends_stays_connected(seeded_storage: Storage) -> None:
    await create_application(seeded_storage, "moderator", project_id="mind_games")
    await seeded_storage.groups.create_group(a_group(), ())
    grant = GroupGrant(group_id=GROUP, roles=("moderator",), action=GrantAction.GRANT)
    await seeded_storage.projects.edit_project("mind_games", connect_application(SHOP, grant))
    await seeded_storage.applications.edit_schema(SHOP, set_roles())
    assert (await seeded_storage.projects.project("mind_games")).project.settings.services == {SHOP: ()}


async def test_holders_are_distinct_users_with_an_unexpired_assignment_anywhere(seeded_storage: Storage) -> None:
    await create_application(seeded_storage, "moderator", "guest", project_id="mind_games")
    past, ttl = End(expired=NOW), End(expired=NOW - 9, ttl=60)
    anna = {
        ROOT: holdings_with("moderator", Assignment(role="guest", end=past)),
        P: holdings_with("moderator", Assignment(role="guest", end=past)),
    }
    await seeded_storage.user_records.edit_record(SHOP, ANNA, set_fields(scopes=anna), NOW)
    bob = {P: holdings_with(Assignment(role="moderator", end=ttl))}
    await seeded_storage.user_records.edit_record(SHOP, BOB, set_fields(scopes=bob), NOW)
    assert await seeded_storage.applications.count_role_holders(SHOP, NOW) == {"moderator": 2}
    assert await seeded_storage.applications.count_role_holders(SHOP, NOW - 1) == {"moderator": 2, "guest": 1}
    assert await seeded_storage.applications.count_holders_of_roles(SHOP, {"guest", "no_one"}, NOW - 1) == {
        "guest": 1
    }
    assert await seeded_storage.applications.count_holders_of_roles(SHOP, set(), NOW) == {}


@pytest.mark.parametrize(("sorted_most", "order"), [(9, "cab"), (2, "abc")], ids=("few", "many"))
async def test_people_with_something_in_an_application_are_listed_a_page_at_a_time(
    seeded_storage: Storage, monkeypatch: pytest.MonkeyPatch, sorted_most: int, order: str
) -> None:
    """Each person once, with any number of entries: few by nick, many by id."""
    monkeypatch.setattr(assignment_lists, "MAX_SORTED_BY_NICK", sorted_most)
    await create_application(seeded_storage, "moderator", "guest", project_id="mind_games")
    ids = {"a": "2000000001", "b": "2000000002", "c": "2000000003"}
    for message, nick in zip(ids, ("Mia", "Zoe", "Ann"), strict=True):
        await a_person(seeded_storage, ids[message], nick=nick)
    scopes = {
        ids["a"]: {ROOT: holdings_with("moderator", "guest"), P: holdings_with("guest")},
        ids["b"]: {P: holdings_with("guest")},
    }
    for user_id, holdings in scopes.items():
        await seeded_storage.user_records.edit_record(SHOP, user_id, set_fields(scopes=holdings), NOW)
    entry = {"user": {"kick": {"value": True}}}
    await seeded_storage.user_records.edit_record(
        SHOP, ids["c"], set_fields(scopes={ROOT: holdings_with(private_data=entry)}), NOW
    )
    lists = AssignmentListStore(seeded_storage.runner)
    pages = [
        await lists.people(SHOP, AssignmentPeopleQuery(page_request=PageRequest(page=number, size=2)))
        for number in (1, 2, 3)
    ]
    assert [row.user_id for page in pages for row in page.rows] == [ids[message] for message in order]
    assert [(len(page.rows), page.total) for page in pages] == [(2, 3), (1, 3), (0, 3)]


async def test_records_are_kept_with_what_they_tell_of(seeded_storage: Storage) -> None:
    before = len(await seeded_storage.audit.unsealed_records(100))
    await create_application(seeded_storage)
    await seeded_storage.applications.edit_schema(SHOP, set_fields())
    assert len(await seeded_storage.audit.unsealed_records(100)) == before + 2


# -- versions of schemas ------------------------------------------------------------------------------


async def test_saves_store_the_newest_hundred_versions_until_the_application_is_removed(
    seeded_storage: Storage,
) -> None:
    await create_application(seeded_storage)
    shop = await seeded_storage.applications.application(SHOP)
    versions = SchemaVersionStore(seeded_storage.runner)
    assert (await versions.versions(SHOP, PageRequest())).total == 0
    role = a_role("moderator", condition=parse_condition({"tag": "beta"}, place=""))
    first = (await seeded_storage.permissions.application_models([SHOP]))[SHOP]
    added = ChangeTally(what=ChangedItem.ROLE, how=ChangeKind.ADDED, count=1, names=("moderator",))
    edited = EditResult(replace(first, roles={role.key: role}), (), (added,))
    saved = await seeded_storage.applications.edit_schema(SHOP, lambda _: edited)
    newest, oldest = (await versions.versions(SHOP, PageRequest())).rows
    assert newest.changes == (added,)
    assert (newest.version, oldest.version, oldest.actor, oldest.changes) == (2, 1, "", ())
    assert (await versions.version(shop, 1)).model == first
    assert (await versions.version(shop, 2)).model == saved

    with pytest.raises(VersionConflict):
        await seeded_storage.applications.edit_schema(SHOP, raise_in_edit(VersionConflict))
    for _ in range(MAX_VERSIONS):
        await seeded_storage.applications.edit_schema(SHOP, set_fields())
    page = await versions.versions(SHOP, PageRequest(size=MAX_VERSIONS + 1))
    assert (page.total, page.rows[0].version, page.rows[-1].version) == (MAX_VERSIONS, 102, 3)
    with pytest.raises(VersionNotFound):
        await versions.version(shop, 2)

    await seeded_storage.applications.edit_application(SHOP, set_fields(removed=True))
    assert (await versions.versions(SHOP, PageRequest())).total == 0


async def test_versions_are_read_back_through_every_kind_of_change(seeded_storage: Storage) -> None:
    await create_application(seeded_storage, "first", "second")
    shop = await seeded_storage.applications.application(SHOP)
    versions = SchemaVersionStore(seeded_storage.runner)
    seen = {1: (await seeded_storage.permissions.application_models([SHOP]))[SHOP]}
    tagged = a_role("third", condition=parse_condition({"tag": "beta"}, place=""), meta=granting("a"))
    rules = {"a": {"value": False, "protected": False, "description": "new"}}
    changes: list[Change[ApplicationModel]] = [
        becoming_rules(rules),
        lambda state: EditResult(replace(state, roles={**state.roles, "third": tagged}), ()),
        lambda state: EditResult(replace(state, roles={"third": replace(tagged, description="alone")}), ()),
        lambda state: EditResult(state, ()),
        lambda state: EditResult(
            replace(state, schema=replace(state.schema, private_data={}, public_data=rules)),
            (),
        ),
        lambda state: EditResult(replace(state, roles={}), ()),
    ]
    for number, change in enumerate(changes, 2):
        seen[number] = await seeded_storage.applications.edit_schema(SHOP, change)
    past = {number: (await versions.version(shop, number)).model for number in seen}
    assert {number: without_generations(model) for number, model in past.items()} == {
        number: without_generations(model) for number, model in seen.items()
    }
    with pytest.raises(VersionNotFound):
        await versions.version(shop, len(seen) + 1)


def without_generations(model: ApplicationModel) -> ApplicationModel:
    """A version has what people see; the generation of a role is about now."""
    return replace(model, roles={key: replace(role, generation=0) for key, role in model.roles.items()})


def granting(*paths: str) -> dict[str, object]:
    return {"private_data": {path: {"value": True} for path in paths}}


async def test_mm_01_versions_are_bounded_by_bytes_and_those_that_are_kept_are_readable(
    seeded_storage: Storage,
) -> None:
    await create_application(seeded_storage)
    shop = await seeded_storage.applications.application(SHOP)
    saves, leaves = 12, 450
    for _ in range(saves):  # half a megabyte each when compressed
        tree = {
            f"r{n}": {"value": False, "protected": False, "description": secrets.token_hex(1_024)}
            for n in range(leaves)
        }
        saved = await seeded_storage.applications.edit_schema(SHOP, becoming_rules(tree))
    versions = SchemaVersionStore(seeded_storage.runner)
    page = await versions.versions(SHOP, PageRequest(size=MAX_VERSIONS))
    stored = await seeded_storage.runner.read(stored_bytes)
    assert MAX_VERSION_BYTES / 2 < stored <= MAX_VERSION_BYTES
    assert (page.rows[0].version, page.total < saves) == (saves + 1, True)
    assert (await versions.version(shop, saves + 1)).model == saved
    for version_row in page.rows:
        assert len((await versions.version(shop, version_row.version)).model.schema.private_data) == leaves


def becoming_rules(tree: Tree) -> Change[ApplicationModel]:
    return lambda state: EditResult(replace(state, schema=replace(state.schema, private_data=tree)), ())


def stored_bytes() -> Verb[int]:
    return sum(row.size or 0 for row in (yield VERSION_SIZES(of=SHOP)))
