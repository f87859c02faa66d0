"""Contract tests of UserRecordStore, and of other writes that change what a user has."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.accounts.errors import UserNotFound
from gatehouse.permissions.errors import (
    ApplicationNotFound,
    LastOwner,
    NameTaken,
    NoAdministratorLeft,
    RoleFull,
    RoleNotFound,
    VersionConflict,
)
from gatehouse.permissions.model.facts import Assignment, ScopeHoldings, UserRecord
from gatehouse.permissions.model.rules import NO_END, ROOT, End, Scope, application_scope
from gatehouse.provision.model import AddUser, ChangeUser, RemoveUser
from gatehouse.storage.database import Storage
from gatehouse.storage.provision import ProvisionStorage
from tests.support.builders import NOW, a_record, a_user
from tests.support.database_contents import read_all_tables, tables_that_mention
from tests.support.permission_builders import (
    GROUP,
    P,
    a_group,
    a_person,
    a_project,
    a_role,
    a_service_account,
    create_application,
    holdings_with,
    install_central,
    publish,
    raise_in_edit,
    set_fields,
    set_project_fields,
    set_roles,
)
from tests.unit.provision.provision_setup import write_all

ANNA = "1000000001"
BOB = "1000000002"
SHOP = 50_001
PAST = End(expired=NOW)
TREE = {"user": {"kick": {"value": True}}}
OWNER = "project_owner"


@pytest.fixture
async def seeded_storage(storage: Storage) -> Storage:
    """Anna owns Mind Games and Bob nothing; there is a shop with a few roles."""
    await install_central(storage)
    await a_person(storage)
    await a_person(storage, BOB)
    await publish(storage, owners=[ANNA])
    roles = ("moderator", "guest", a_role("one", user_limit=1), a_role("boss", protected=True))
    await create_application(storage, *roles, project_id="mind_games")
    return storage


async def edit(
    storage: Storage, user_id: str, scopes: Mapping[Scope, ScopeHoldings], application: int = SHOP
) -> UserRecord:
    return await storage.user_records.edit_record(application, user_id, set_fields(scopes=scopes), NOW)


async def record_of(storage: Storage, user_id: str, application_id: int = SHOP) -> UserRecord:
    facts = await storage.permissions.facts(user_id, [application_id])
    assert facts is not None
    return facts.records[application_id]


# -- editing ------------------------------------------------------------------------------------------


async def test_the_first_edit_finds_nothing_and_makes_version_1(seeded_storage: Storage) -> None:
    seen: list[UserRecord] = []

    def change(state: UserRecord) -> Any:
        seen.append(state)
        return set_fields(scopes={ROOT: holdings_with("guest")}, version=40)(state)

    edited = await seeded_storage.user_records.edit_record(SHOP, ANNA, change, NOW)
    assert seen == [UserRecord(application_id=SHOP, user_id=ANNA)]
    assert (edited.version, edited.scopes) == (1, {ROOT: holdings_with("guest")})
    assert await record_of(seeded_storage, ANNA) == edited


async def test_the_next_edit_finds_what_the_last_one_kept(seeded_storage: Storage) -> None:
    first = await edit(
        seeded_storage, ANNA, {ROOT: holdings_with("guest", private_data=TREE), P: holdings_with(public_data=TREE)}
    )
    seen: list[UserRecord] = []

    def change(state: UserRecord) -> Any:
        seen.append(state)
        return set_fields(scopes={ROOT: holdings_with("moderator", "guest"), P: holdings_with()})(state)

    second = await seeded_storage.user_records.edit_record(SHOP, ANNA, change, NOW)
    assert seen == [first]
    assert second == replace(first, scopes={ROOT: holdings_with("moderator", "guest")}, version=2)
    assert await record_of(seeded_storage, ANNA) == second


async def test_a_refused_edit_leaves_no_trace(seeded_storage: Storage) -> None:
    with pytest.raises(VersionConflict):
        await seeded_storage.user_records.edit_record(SHOP, ANNA, raise_in_edit(VersionConflict()), NOW)
    assert (await record_of(seeded_storage, ANNA)).version == 0


async def test_only_records_of_existing_people_and_applications_are_edited(seeded_storage: Storage) -> None:
    with pytest.raises(UserNotFound):
        await edit(seeded_storage, "5", {})
    with pytest.raises(ApplicationNotFound):
        await edit(seeded_storage, ANNA, {}, application=99)


async def test_a_role_that_is_gone_is_not_given(seeded_storage: Storage) -> None:
    with pytest.raises(RoleNotFound):
        await edit(seeded_storage, ANNA, {ROOT: holdings_with("guest", "nothing")})
    await seeded_storage.applications.edit_schema(SHOP, set_roles(a_role("moderator", SHOP)))
    with pytest.raises(RoleNotFound):
        await edit(seeded_storage, ANNA, {P: holdings_with("guest")})


async def test_a_role_that_became_protected_is_not_given_below_the_root(seeded_storage: Storage) -> None:
    with pytest.raises(VersionConflict):
        await edit(seeded_storage, ANNA, {P: holdings_with("boss")})
    assert (await edit(seeded_storage, ANNA, {ROOT: holdings_with("boss")})).version == 1


async def test_records_in_a_project_hold_its_scopes_only(seeded_storage: Storage) -> None:
    scope = application_scope("mind_games", SHOP)
    anna = {
        ROOT: holdings_with("guest"),
        P: holdings_with("guest", "moderator"),
        Scope("other"): holdings_with("guest"),
    }
    await edit(seeded_storage, ANNA, anna)
    await edit(seeded_storage, ANNA, anna)
    await edit(seeded_storage, BOB, {scope: holdings_with(private_data=TREE)})
    records = await seeded_storage.user_records.records_in_project(SHOP, "mind_games")
    assert records == [
        UserRecord(application_id=SHOP, user_id=ANNA, scopes={P: holdings_with("guest", "moderator")}, version=2),
        UserRecord(application_id=SHOP, user_id=BOB, scopes={scope: holdings_with(private_data=TREE)}, version=1),
    ]
    assert [user.user_id for user in await seeded_storage.user_records.records_in_project(1, "mind_games")] == [ANNA]
    assert await seeded_storage.user_records.records_in_project(SHOP, "nothing") == []


# -- limits -------------------------------------------------------------------------------------------


async def test_a_role_takes_as_many_users_as_it_may_have(seeded_storage: Storage) -> None:
    await edit(
        seeded_storage, ANNA, {ROOT: holdings_with("one"), P: holdings_with("one")}
    )  # one assignment, however often they have it
    with pytest.raises(RoleFull):
        await edit(seeded_storage, BOB, {P: holdings_with("one")})
    await edit(seeded_storage, ANNA, {P: holdings_with("one")})
    await edit(seeded_storage, ANNA, {})
    await edit(seeded_storage, BOB, {P: holdings_with("one")})


async def test_expired_assignment_does_not_count_toward_the_role_limit(seeded_storage: Storage) -> None:
    await edit(seeded_storage, ANNA, {ROOT: holdings_with(Assignment(role="one", end=PAST))})
    await edit(seeded_storage, BOB, {ROOT: holdings_with("one")})
    with pytest.raises(RoleFull):
        await edit(seeded_storage, ANNA, {ROOT: holdings_with("one")})
    assert (
        await edit(seeded_storage, ANNA, {ROOT: holdings_with(Assignment(role="one", end=PAST), "guest")})
    ).version == 2


async def test_a_ttl_keeps_its_seat(seeded_storage: Storage) -> None:
    await edit(seeded_storage, ANNA, {ROOT: holdings_with(Assignment(role="one", end=End(expired=NOW - 9, ttl=5)))})
    with pytest.raises(RoleFull):
        await edit(seeded_storage, BOB, {ROOT: holdings_with("one")})


async def test_a_lowered_limit_keeps_those_who_are_in(seeded_storage: Storage) -> None:
    for user_id in (ANNA, BOB):
        await edit(seeded_storage, user_id, {ROOT: holdings_with("guest")})
    await seeded_storage.applications.edit_schema(SHOP, set_roles(a_role("guest", SHOP, user_limit=1)))
    assert (await edit(seeded_storage, ANNA, {ROOT: holdings_with("guest", private_data=TREE)})).version == 2
    await a_person(seeded_storage, "3")
    with pytest.raises(RoleFull):
        await edit(seeded_storage, "3", {ROOT: holdings_with("guest")})


# -- owners -------------------------------------------------------------------------------------------


async def test_the_last_owner_stays(seeded_storage: Storage) -> None:
    with pytest.raises(LastOwner):
        await edit(seeded_storage, ANNA, {}, application=1)
    with pytest.raises(LastOwner):
        await edit(seeded_storage, ANNA, {P: holdings_with(Assignment(role=OWNER, end=PAST))}, application=1)
    await edit(seeded_storage, BOB, {P: holdings_with(OWNER)}, application=1)
    assert (await edit(seeded_storage, ANNA, {}, application=1)).scopes == {}


@pytest.mark.parametrize("how", ["blocked", "expired", "below"])
async def test_blocked_expired_or_nested_owner_does_not_count_as_owner(seeded_storage: Storage, how: str) -> None:
    scope = application_scope("mind_games", SHOP) if how == "below" else P
    end = End(expired=NOW) if how == "expired" else End()
    await edit(seeded_storage, BOB, {scope: holdings_with(Assignment(role=OWNER, end=end))}, application=1)
    if how == "blocked":
        await seeded_storage.accounts.set_blocked(BOB, a_record(), blocked=True, now=NOW)
    with pytest.raises(LastOwner):
        await edit(seeded_storage, ANNA, {}, application=1)


async def test_a_project_without_owner_may_stay_so_and_a_removed_one_needs_none(seeded_storage: Storage) -> None:
    await publish(seeded_storage, a_project("Nobodys"))
    nobodys = Scope("nobodys")
    await edit(seeded_storage, BOB, {nobodys: holdings_with("project_administrator")}, application=1)
    await edit(seeded_storage, BOB, {}, application=1)
    await seeded_storage.projects.edit_project("mind_games", set_project_fields(removed=True))
    await edit(seeded_storage, ANNA, {}, application=1)


async def test_roles_of_other_applications_are_no_ownership(seeded_storage: Storage) -> None:
    await seeded_storage.applications.edit_schema(SHOP, set_roles(a_role(OWNER, SHOP)))
    await edit(seeded_storage, BOB, {P: holdings_with(OWNER)})
    assert (await edit(seeded_storage, BOB, {})).version == 2


async def test_the_last_owner_cannot_delete_their_account(seeded_storage: Storage) -> None:
    with pytest.raises(LastOwner):
        await seeded_storage.profile.erase_user(ANNA, a_record(), even_last_administrator=True, now=NOW)
    anna = await seeded_storage.accounts.user(ANNA)
    provisions = ProvisionStorage(seeded_storage.runner, seeded_storage.ban_copies)
    with pytest.raises(LastOwner):
        await write_all(provisions, RemoveUser(anna))
    await edit(seeded_storage, BOB, {P: holdings_with(OWNER)}, application=1)
    await seeded_storage.profile.erase_user(ANNA, a_record(), even_last_administrator=True, now=NOW)
    assert await seeded_storage.permissions.facts(ANNA, [1]) is None


# -- accounts that are created and deleted ------------------------------------------------------------


async def test_an_account_that_ends_leaves_nothing_it_held(seeded_storage: Storage) -> None:
    await seeded_storage.groups.create_group(a_group(users=(BOB, ANNA)), ())
    await edit(seeded_storage, BOB, {ROOT: holdings_with("guest"), P: holdings_with("guest", private_data=TREE)})
    await seeded_storage.profile.erase_user(BOB, a_record(), even_last_administrator=True, now=NOW)
    assert tables_that_mention(await read_all_tables(seeded_storage), BOB) <= {"user_ids", "audit_events"}
    assert (await seeded_storage.groups.group(GROUP)).users == (ANNA,)


async def test_a_service_account_that_is_removed_frees_its_name(seeded_storage: Storage) -> None:
    await seeded_storage.service_accounts.create_service_account(a_service_account(), [], ())
    provisions = ProvisionStorage(seeded_storage.runner, seeded_storage.ban_copies)
    user = await seeded_storage.accounts.user("77")
    await write_all(provisions, RemoveUser(user))
    assert await seeded_storage.service_accounts.service_accounts("mind_games") == []
    await seeded_storage.service_accounts.create_service_account(a_service_account("78"), [], ())


async def test_every_change_of_the_administrator_role_raises_the_record_version(seeded_storage: Storage) -> None:
    provisions = ProvisionStorage(seeded_storage.runner, seeded_storage.ban_copies)
    person = a_user()
    await seeded_storage.accounts.create_user(person, a_record(), administrator=True)
    assert (await record_of(seeded_storage, person.user_id, 1)).version == 1
    user = a_user()
    await write_all(provisions, AddUser(user, administrator=True))
    record = await record_of(seeded_storage, user.user_id, 1)
    assert (record.version, record.scopes) == (1, {ROOT: holdings_with("administrator")})
    await write_all(provisions, ChangeUser(user, administrator=False, ends_tokens=False))
    record = await record_of(seeded_storage, user.user_id, 1)
    assert (record.version, record.scopes) == (2, {})
    user = await seeded_storage.accounts.user(user.user_id)
    await write_all(provisions, ChangeUser(user, administrator=False, ends_tokens=False))
    assert (await record_of(seeded_storage, user.user_id, 1)).version == 2  # nothing was written


async def test_the_last_who_administers_keeps_the_role(storage: Storage) -> None:
    await install_central(storage)
    for user_id in (ANNA, BOB):
        await a_person(storage, user_id)
        await storage.user_records.edit_record(
            1, user_id, set_fields(scopes={ROOT: holdings_with("administrator")}), NOW
        )
    await storage.user_records.edit_record(1, ANNA, set_fields(scopes={}), NOW)
    with pytest.raises(NoAdministratorLeft):
        await storage.user_records.edit_record(1, BOB, set_fields(scopes={}), NOW)
    assert await storage.permissions.root_roles(1, BOB, NOW) == ["administrator"]


async def make_administrator(storage: Storage, user_id: str, *, end: End = NO_END, denied: bool = False) -> None:
    tree = {"can_administer": {"value": False}} if denied else {}
    holdings = holdings_with(Assignment(role="administrator", end=end), private_data=tree)
    await storage.user_records.edit_record(1, user_id, set_fields(scopes={ROOT: holdings}), NOW)


@pytest.mark.parametrize("how", ["ending", "denied"])
async def test_temporary_or_denied_administrator_does_not_count_as_the_last_one(storage: Storage, how: str) -> None:
    await install_central(storage)
    for user_id in (ANNA, BOB):
        await a_person(storage, user_id)
    lesser = {"end": End(expired=NOW + 60)} if how == "ending" else {"denied": True}
    await make_administrator(storage, ANNA)
    with pytest.raises(NoAdministratorLeft):
        await make_administrator(storage, ANNA, **lesser)
    await make_administrator(storage, BOB, **lesser)
    with pytest.raises(NoAdministratorLeft):
        await storage.user_records.edit_record(1, ANNA, set_fields(scopes={}), NOW)
    await make_administrator(storage, BOB, end=End(expired=NOW - 9, ttl=5))  # such an end never takes effect
    await make_administrator(storage, ANNA, **lesser)


async def test_an_owner_with_an_end_is_not_the_one_who_must_stay(seeded_storage: Storage) -> None:
    ending = holdings_with(Assignment(role=OWNER, end=End(expired=NOW + 60)))
    with pytest.raises(LastOwner):
        await edit(seeded_storage, ANNA, {P: ending}, application=1)
    await edit(seeded_storage, BOB, {P: ending}, application=1)
    with pytest.raises(LastOwner):
        await edit(seeded_storage, ANNA, {}, application=1)
    with pytest.raises(LastOwner):
        await seeded_storage.profile.erase_user(ANNA, a_record(), even_last_administrator=True, now=NOW)
    assert (await edit(seeded_storage, BOB, {}, application=1)).scopes == {}
    await edit(seeded_storage, BOB, {P: holdings_with(OWNER)}, application=1)
    assert (await edit(seeded_storage, ANNA, {P: ending}, application=1)).scopes == {P: ending}


async def test_a_former_name_of_a_project_is_no_title_or_alias_for_others(seeded_storage: Storage) -> None:
    await seeded_storage.projects.edit_project("mind_games", set_project_fields(title="Riddles", aliases=("mg",)))
    await publish(seeded_storage, a_project("Other"))
    for title in ("Mind Games", "MIND_GAMES", "mg", "Riddles"):
        with pytest.raises(NameTaken):
            await seeded_storage.projects.edit_project("other", set_project_fields(title=title))
    with pytest.raises(NameTaken):
        await seeded_storage.projects.edit_project("other", set_project_fields(aliases=("riddles",)))
    with pytest.raises(NameTaken):
        await publish(seeded_storage, a_project("Third", aliases=("riddles",)))
    await seeded_storage.projects.edit_project("mind_games", set_project_fields(title="Mind Games"))
    await seeded_storage.projects.edit_project("other", set_project_fields(title="Riddles"))
