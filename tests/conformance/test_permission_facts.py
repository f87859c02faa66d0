"""Contract tests of PermissionStore: the input of evaluations, in one snapshot."""

from typing import Any

import pytest
from msgspec.structs import replace

from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.model.condition import ConditionSubject, GroupCondition
from gatehouse.permissions.model.facts import ApplicationState, Assignment, UserRecord
from gatehouse.permissions.model.project import GrantAction, GroupGrant, ProjectSettings
from gatehouse.permissions.model.role import ConditionMode
from gatehouse.permissions.model.rules import NO_END, ROOT, End, application_scope, group_scope, service_scope
from gatehouse.storage.database import Storage
from gatehouse.storage.permissions.facts import facts
from gatehouse.storage.statements import BoundStatement
from tests.support.builders import NOW, PASSKEY_HOST, a_passkey, a_record
from tests.support.permission_builders import (
    GROUP,
    P,
    a_group,
    a_person,
    a_project,
    a_role,
    a_service_account,
    connect_application,
    create_application,
    holdings_with,
    install_central,
    model_version,
    publish,
    set_fields,
    set_project_fields,
    set_roles,
)

ANNA = "1000000001"
SHOP = 50_001
TREE = {"user": {"kick": {"value": True}}}


@pytest.fixture
async def seeded_storage(storage: Storage) -> Storage:
    """Anna owns Mind Games; there are a shop, with a moderator and a guest, and a group."""
    await install_central(storage)
    await a_person(storage)
    await publish(storage, owners=[ANNA])
    await create_application(storage, "moderator", "guest", project_id="mind_games")
    await storage.groups.create_group(a_group(), [a_record()])
    return storage


async def facts_of(storage: Storage, *applications: int) -> Any:
    person_facts = await storage.permissions.facts(ANNA, applications)
    assert person_facts is not None
    return person_facts


# -- facts --------------------------------------------------------------------------------------------


def test_facts_are_one_statement() -> None:
    verb = facts(ANNA, [1, SHOP])
    assert isinstance(next(verb), BoundStatement)
    with pytest.raises(StopIteration):
        verb.send([])


async def test_unknown_person_has_no_facts(storage: Storage) -> None:
    assert await storage.permissions.facts("5", [1]) is None


async def test_facts_know_the_person(storage: Storage) -> None:
    await install_central(storage)
    plain = await a_person(storage, tags=frozenset({"staff", "beta"}), purchases=frozenset({"sky"}), rev=7)
    person_facts = await facts_of(storage, 1)
    assert person_facts.subject == ConditionSubject(
        user_id=ANNA, domain=None, tags=frozenset({"staff", "beta"}), purchases=frozenset({"sky"})
    )
    assert (person_facts.login, person_facts.blocked, person_facts.rev) == (plain.login, False, 7)
    assert (person_facts.has_strong_factor, person_facts.service_account, person_facts.owns) == (False, None, {})


async def test_a_domain_counts_while_it_is_verified(storage: Storage) -> None:
    await a_person(storage, email_verified=True)
    person_facts = await facts_of(storage)
    assert person_facts.subject.domain == "studio.example"
    assert person_facts.subject.tags == {"email_verified"}


async def test_factors_show_as_tags_and_those_that_are_strong_are_told(storage: Storage) -> None:
    await a_person(storage, email_code=True)
    assert (await facts_of(storage)).subject.tags == {"2step", "2step_email"}
    assert not (await facts_of(storage)).has_strong_factor
    await storage.passkeys.add_passkey(a_passkey(user_id=ANNA), [], a_record(), (), host=PASSKEY_HOST)
    assert (await facts_of(storage)).subject.tags == {"2step", "2step_email", "2step_passkey"}
    assert (await facts_of(storage)).has_strong_factor


async def test_a_totp_secret_is_a_strong_factor(storage: Storage) -> None:
    await a_person(storage, sealed_totp=b"sealed")
    person_facts = await facts_of(storage)
    assert (person_facts.has_strong_factor, person_facts.subject.tags) == (True, {"2step", "2step_totp"})


async def test_facts_show_that_someone_is_blocked(storage: Storage) -> None:
    await a_person(storage)
    await storage.accounts.set_blocked(ANNA, a_record(), blocked=True, now=NOW)
    assert (await facts_of(storage)).blocked


async def test_each_application_asked_about_has_a_record(seeded_storage: Storage) -> None:
    person_facts = await facts_of(seeded_storage, SHOP, 99)
    assert person_facts.records == {
        SHOP: UserRecord(application_id=SHOP, user_id=ANNA),
        99: UserRecord(application_id=99, user_id=ANNA),
    }
    assert person_facts.applications == {
        SHOP: ApplicationState(
            application_id=SHOP, project_id="mind_games", removed=False, version=1, schema_version=1
        )
    }


async def test_a_record_comes_back_as_it_was_written(seeded_storage: Storage) -> None:
    written = UserRecord(
        application_id=SHOP,
        user_id=ANNA,
        login={"can": {"value": True}},
        secret_data={"application": {"canRead": {"value": True}}},
        scopes={
            ROOT: holdings_with("moderator", Assignment(role="guest", end=End(expired=NOW + 9)), public_data=TREE),
            P: holdings_with("guest", private_data=TREE),
            application_scope("mind_games", SHOP): holdings_with(Assignment(role="guest", end=End(ttl=60))),
            service_scope("mind_games", SHOP): holdings_with(private_data=TREE, public_data=TREE),
            group_scope("mind_games", GROUP): holdings_with("guest", "moderator"),
        },
    )
    await seeded_storage.projects.edit_project("mind_games", connect_application(SHOP))
    await seeded_storage.user_records.edit_record(SHOP, ANNA, set_fields(**fields_of(written)), NOW)
    records = (await facts_of(seeded_storage, SHOP, 1)).records
    assert records[SHOP] == replace(written, version=1)
    assert records[1].scopes.keys() == {P}
    assert [role.role for role in records[SHOP].scopes[group_scope("mind_games", GROUP)].roles] == [
        "guest",
        "moderator",
    ]


def fields_of(record: UserRecord) -> dict[str, Any]:
    return {"login": record.login, "secret_data": record.secret_data, "scopes": record.scopes}


async def test_facts_name_owned_projects_listing_groups_and_versions(seeded_storage: Storage) -> None:
    before = await model_version(seeded_storage)
    await seeded_storage.groups.edit_group(GROUP, set_fields(users=(ANNA,)))
    person_facts = await facts_of(seeded_storage, 1)
    assert (person_facts.owns, person_facts.groups, person_facts.project_versions) == (
        {"mind_games": NO_END},
        {GROUP},
        {"mind_games": before + 1},
    )
    ends = Assignment(role="project_owner", end=End(expired=NOW + 5))
    await a_person(seeded_storage, "2")
    await seeded_storage.user_records.edit_record(1, "2", set_fields(scopes={P: holdings_with("project_owner")}), NOW)
    await seeded_storage.user_records.edit_record(
        1, ANNA, set_fields(scopes={P: holdings_with(ends), ROOT: holdings_with()}), NOW
    )
    assert (await facts_of(seeded_storage)).owns == {"mind_games": End(expired=NOW + 5)}


async def test_only_an_owner_role_on_the_project_itself_is_ownership(seeded_storage: Storage) -> None:
    scope = application_scope("mind_games", SHOP)
    await a_person(seeded_storage, "2")
    await seeded_storage.user_records.edit_record(
        1, "2", set_fields(scopes={scope: holdings_with("project_owner"), ROOT: holdings_with("project_owner")}), NOW
    )
    person_facts = await seeded_storage.permissions.facts("2", [1])
    assert person_facts is not None
    assert person_facts.owns == {}


async def test_moves_removals_and_saves_of_applications_show(seeded_storage: Storage) -> None:
    await seeded_storage.applications.edit_application(SHOP, set_fields(project_id=None))
    assert (await facts_of(seeded_storage, SHOP)).applications[SHOP].project_id is None
    await seeded_storage.applications.edit_application(SHOP, set_fields(removed=True))
    await seeded_storage.applications.edit_schema(SHOP, set_roles())
    state = (await facts_of(seeded_storage, SHOP)).applications[SHOP]
    assert (state.removed, state.version, state.schema_version) == (True, 3, 2)


async def test_facts_know_a_service_account(seeded_storage: Storage) -> None:
    account = a_service_account(ANNA + "0", ip_ranges=("10.0.0.0/8", "::1/128"), public_key="pem", comment="builds")
    await seeded_storage.service_accounts.create_service_account(account, [], [a_record()])
    person_facts = await seeded_storage.permissions.facts(account.user_id, [1])
    assert person_facts is not None
    assert (person_facts.service_account, person_facts.login) == (account, None)


# -- models -------------------------------------------------------------------------------------------


async def test_models_hold_application_schema_and_roles_also_of_removed_applications(seeded_storage: Storage) -> None:
    condition = parse_condition({"and": [{"tag": "staff"}, {"ip": "10.0.0.0/8"}]})
    role = a_role(
        "Moderator",
        SHOP,
        description="Keeps order",
        default=True,
        condition=condition,
        condition_mode=ConditionMode.REQUIRE,
        user_limit=3,
        params="a,b",
        meta={"private_data": TREE},
    )
    await seeded_storage.applications.edit_schema(SHOP, set_roles(role))
    await seeded_storage.applications.edit_application(SHOP, set_fields(removed=True, settings={"a": 1}))
    models = await seeded_storage.permissions.application_models([SHOP, 1, 99])
    assert models.keys() == {SHOP, 1}
    assert models[SHOP].roles == {"moderator": replace(role, version=2)}
    person_facts = models[SHOP].roles["moderator"].condition
    assert person_facts is not None
    assert person_facts.test == condition.test
    assert (models[SHOP].application.removed, models[SHOP].application.settings) == (True, {"a": 1})
    assert models[1].schema.private_data["can_administer"] == {
        "value": False,
        "protected": True,
        "description": "Everything, everywhere",
    }
    assert len(models[1].roles) == 8


async def test_a_condition_that_no_rule_knows_any_more_holds_for_no_one(seeded_storage: Storage) -> None:
    condition = replace(parse_condition({"tag": "staff"}), document={"moon": "full"})
    await seeded_storage.applications.edit_schema(SHOP, set_roles(a_role("moderator", SHOP, condition=condition)))
    person_facts = (await seeded_storage.permissions.application_models([SHOP]))[SHOP].roles["moderator"].condition
    assert person_facts is not None
    assert (person_facts.document, str(person_facts.test)) == ({"moon": "full"}, "Everyone(holds=False)")


# -- structure ----------------------------------------------------------------------------------------


async def test_the_structure_holds_projects_groups_and_connections(seeded_storage: Storage) -> None:
    other = await create_application(seeded_storage, "reader", name="Wiki", service_meta={"name": "Wiki"})
    number = other.application_id
    services = {
        number: (
            GroupGrant(group_id=GROUP, roles=("reader",), action=GrantAction.GRANT),
            GroupGrant(group_id=GROUP, roles=("reader",), action=GrantAction.REVOKE),
        ),
        SHOP: (),
    }
    settings = ProjectSettings(allowed_domains=("studio.example",), services=services)
    await seeded_storage.projects.edit_project(
        "mind_games", set_project_fields(settings=settings, aliases=("mg", "games"))
    )
    condition = GroupCondition(title="Staff", condition=parse_condition({"tag": "staff"}))
    await seeded_storage.groups.edit_group(GROUP, set_fields(conditions=(condition,), users=(ANNA,)))
    projects = await seeded_storage.permissions.projects(["mind_games", "nothing"])
    assert projects.keys() == {"mind_games"}
    project = projects["mind_games"]
    assert (project.project.settings, project.project.aliases) == (settings, ("mg", "games"))
    assert project.groups == {GROUP: a_group(conditions=(condition,), version=2)}  # without its users
    for application_id, connecting in ((number, ("mind_games",)), (SHOP, ())):
        structure = (await seeded_storage.candidates.application_snapshot(application_id, ["mind_games"])).structure
        assert (structure.connecting, structure.projects) == ({application_id: connecting}, projects)


async def test_a_removed_project_connects_nothing_and_shows_as_removed(seeded_storage: Storage) -> None:
    services = {SHOP: (GroupGrant(group_id=GROUP, roles=("guest",), action=GrantAction.GRANT),)}
    await seeded_storage.projects.edit_project(
        "mind_games", set_project_fields(settings=ProjectSettings(services=services))
    )
    assert (await seeded_storage.candidates.application_snapshot(SHOP, [])).structure.connecting == {
        SHOP: ("mind_games",)
    }
    await seeded_storage.projects.edit_project("mind_games", set_project_fields(removed=True))
    structure = (await seeded_storage.candidates.application_snapshot(SHOP, ["mind_games"])).structure
    assert (structure.connecting, structure.projects["mind_games"].project.removed) == ({SHOP: ()}, True)


async def test_facts_name_versions_of_projects_that_are_asked_for(seeded_storage: Storage) -> None:
    facts = await seeded_storage.permissions.facts(ANNA, [], ["mind_games", "nothing"])
    assert facts is not None
    assert facts.project_versions == {"mind_games": await model_version(seeded_storage), "nothing": 0}


async def test_saves_outside_a_project_keep_the_version_of_its_model(seeded_storage: Storage) -> None:
    before = await model_version(seeded_storage)
    await seeded_storage.user_records.edit_record(1, ANNA, set_fields(login={"can": {"value": True}}), NOW)
    await seeded_storage.applications.edit_application(SHOP, set_fields(name="Store"))
    await seeded_storage.applications.edit_schema(SHOP, set_fields())
    assert await model_version(seeded_storage) == before


async def test_projects_tell_which_applications_they_have_with_a_new_version(seeded_storage: Storage) -> None:
    await publish(seeded_storage, a_project("Other"))

    async def applications_of_projects() -> list[tuple[int, set[int]]]:
        projects = await seeded_storage.permissions.projects(["mind_games", "other"])
        return [(projects[one].version, set(projects[one].applications)) for one in ("mind_games", "other")]

    before, other = (await applications_of_projects())[0][0], 1

    application = await create_application(seeded_storage, name="Two", project_id="mind_games")
    assert await applications_of_projects() == [(before + 1, {SHOP, application.application_id}), (other, set())]
    await seeded_storage.applications.edit_application(application.application_id, set_fields(project_id="other"))
    assert await applications_of_projects() == [(before + 2, {SHOP}), (other + 1, {application.application_id})]
    await seeded_storage.applications.edit_application(SHOP, set_fields(removed=True))
    assert await applications_of_projects() == [(before + 3, set()), (other + 1, {application.application_id})]


async def test_installing_twice_changes_nothing(storage: Storage) -> None:
    await install_central(storage)
    await storage.applications.edit_schema(1, set_fields())
    await install_central(storage)
    assert (await storage.permissions.application_models([1]))[1].schema.version == 2
