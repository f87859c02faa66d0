"""Projects, applications, groups, memberships and service accounts of a file, on both databases (R7)."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.model import central
from gatehouse.permissions.model.rules import ROOT, Rule, RuleSection, Scope
from gatehouse.permissions.store import EditResult
from gatehouse.provision.document import write_yaml
from gatehouse.provision.model import EVERYTHING, Plan, StoredState, Unfit
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.provision import ProvisionStorage
from tests.support.builders import NOW
from tests.support.clock import MovableClock
from tests.unit.provision.provision_setup import ProvisionSetup, plan_lines

PROTECTED = {"value": True, "protected": True}
HERE = Path(__file__).parent
CI_KEY = "c1" * 32
ENVIRONMENT = {
    "ANNA_PASSWORD": "correct-horse-battery",
    "WEB_SECRET": "Zq8vK2mX4tR9wLp6sYb3nHc7dJf5gTaU",
    "CI_KEY": CI_KEY,
}
FILE: Mapping[str, Any] = yaml.safe_load((HERE / "interface_r7.yaml").read_text())
KICK = Rule(RuleSection.PRIVATE, "user.kick")
RICH: Mapping[str, Any] = yaml.safe_load((HERE / "every_field.yaml").read_text())


@pytest.fixture
async def provision_setup(storage: Storage) -> ProvisionSetup:
    return await a_bench_on(storage)


async def a_bench_on(storage: Storage) -> ProvisionSetup:
    await storage.permissions.install_central(central.application(NOW), central.schema(NOW), central.roles())
    return ProvisionSetup(ProvisionStorage(storage.runner, storage.ban_copies))


@pytest.fixture
async def second(sqlite_template: Path, tmp_path: Path) -> AsyncIterator[ProvisionSetup]:
    """A second installation, empty, with the same master key, on either kind of database."""
    copy = tmp_path / "second.db"
    shutil.copy(sqlite_template, copy)
    async with open_storage(f"sqlite:///{copy}", migrate=False) as storage:
        yield await a_bench_on(storage)


async def read_stored_state(storage: Storage) -> StoredState:
    return await ProvisionStorage(storage.runner, storage.ban_copies).read_state(EVERYTHING, NOW)


async def holds_rule(storage: Storage, user_id: str, application_id: int, scope: Scope, rule: Rule) -> bool:
    reading = PermissionLoader(store=storage.permissions, clock=MovableClock(NOW), cache_bytes=0)
    facts = await storage.permissions.facts(user_id, (application_id,))
    assert facts is not None
    effective = await reading.evaluate(await reading.load_input(facts), application_id, None)
    return effective.allows(scope, rule)


async def test_the_file_of_the_interface_is_applied_once_and_changes_nothing_the_second_time(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    plan = await provision_setup.apply(**FILE, environment=ENVIRONMENT)
    assert plan_lines(plan) == [
        "add user anna@studio.example",
        "add client web",
        "add project mind_games",
        "add service account ci of mind_games",
        "add application 50001",
        "add group Testers of mind_games",
        "add record of user 1001 in application 50001",
    ]
    assert plan_lines(await provision_setup.apply(**FILE, environment=ENVIRONMENT)) == []
    assert await holds_rule(storage, "1001", 50001, ROOT, KICK)
    assert (await storage.application_keys.access_keys(50001))[0].comment == "ci"
    assert (await storage.projects.project("mg")).project.project_id == "mind_games"


async def test_everything_a_record_may_say_is_applied_exported_and_applied_elsewhere(
    provision_setup: ProvisionSetup, second: ProvisionSetup, storage: Storage
) -> None:
    await provision_setup.apply(**RICH)
    assert plan_lines(await provision_setup.plan(**RICH)) == []
    document = await provision_setup.export()
    assert plan_lines(await provision_setup.plan(**document, prune=True)) == []
    assert plan_lines(await provision_setup.plan(**await provision_setup.export(secrets=False), prune=True)) == []
    await second.apply(**document)
    assert write_yaml(await second.export()) == write_yaml(document)
    assert await holds_rule(storage, "1003", 50001, Scope("mind_games"), KICK)


async def test_an_installation_that_is_the_same_has_the_same_records(
    provision_setup: ProvisionSetup, second: ProvisionSetup, storage: Storage
) -> None:
    """The input of evaluations is the same too, not only the export."""
    await provision_setup.apply(**RICH)
    await second.apply(**await provision_setup.export())
    here, there = (await read_stored_state(storage)).permissions, (await second.state()).permissions
    assert {place: record.scopes for place, record in here.records.items() if record.scopes} == {
        place: record.scopes for place, record in there.records.items() if record.scopes
    }
    assert {number: (record.schema, record.roles) for number, record in here.applications.items()} == {
        number: (record.schema, record.roles) for number, record in there.applications.items()
    }
    assert {key: record.groups for key, record in here.projects.items()} == {
        key: record.groups for key, record in there.projects.items()
    }


async def test_dry_run_says_exactly_what_apply_changes_and_stores_nothing(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    narrower = {
        "users": [RICH["users"][0], RICH["users"][1]],
        "projects": [{"id": "mg", "owners": ["1002"], "administrators": []}],
        "applications": [
            {"application_id": 50001, "roles": {"guests": {"protected": True}, "Judge": {}}},
            {"application_id": 50002, "name": "Talk"},
        ],
        "groups": [{"project_id": "mg", "title": "Staff"}],
        "prune": True,
    }
    for file in (RICH, narrower):
        before = await read_stored_state(storage)
        planned = await provision_setup.plan(**file)
        assert await read_stored_state(storage) == before
        assert plan_lines(await provision_setup.apply(**file)) == plan_lines(planned) != []
        assert plan_lines(await provision_setup.apply(**file)) == []


async def test_later_sections_are_planned_on_what_earlier_ones_leave(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    """A role that is removed takes its assignments along, so the record of the same file has nothing left to lose."""
    await provision_setup.apply(**FILE, environment=ENVIRONMENT)
    shop = {"application_id": 50001, "roles": {"Judge": {}}, "users": {"1001": {"roles": []}}}
    plan = await provision_setup.apply(applications=[shop], prune=True)
    assert plan_lines(plan) == ["change application 50001 roles.Judge,roles.moderator"]
    assert (await read_stored_state(storage)).permissions.record(50001, "1001").scopes == {}


async def test_problems_of_later_sections_are_told_with_those_of_earlier_ones(
    provision_setup: ProvisionSetup,
) -> None:
    """Even if what a refused file has written so far does not fit together."""
    await provision_setup.apply(users=[{"user_id": "1001", "login": "anna@x.example", "nick": "Anna"}])
    with pytest.raises(Unfit) as error:
        await provision_setup.apply(
            users=[{"user_id": "1002", "login": "ANNA@x.example", "nick": "Bob"}],
            projects=[{"title": "P", "owners": ["1002"]}],
            groups=[{"project_id": "no", "title": "Staff"}],
        )
    assert error.value.problems == ("users[0].login: belongs to user 1001", "groups[0].project_id: no project no")


async def test_secrets_are_exported_sealed_or_not_at_all(provision_setup: ProvisionSetup) -> None:
    await provision_setup.apply(**RICH)
    with_secrets, without = str(await provision_setup.export()), str(await provision_setup.export(secrets=False))
    assert CI_KEY not in with_secrets
    assert "BEGIN X" not in with_secrets
    assert with_secrets.count("sealed") == 3
    assert "sealed" not in without


async def test_a_new_project_gets_the_application_of_its_name_if_the_file_lists_none_for_it(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    plan = await provision_setup.apply(
        projects=[{"title": "One"}, {"title": "Two"}],
        applications=[{"application_id": 50001, "name": "Listed", "project_id": "two"}],
    )
    assert plan_lines(plan) == [
        "add project one",
        "add application 50002",  # 50001 is reserved before any is generated
        "add project two",
        "add application 50001",
    ]
    own = await storage.applications.application(50002)
    assert (own.name, own.project_id) == ("One", "one")
    assert (await storage.projects.project("one")).project.application_id == 50002
    assert plan_lines(await provision_setup.apply(applications=[{"name": "Next"}])) == ["add application 50003"]


async def test_groups_are_found_by_project_and_title_and_keep_their_id(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    await provision_setup.apply(**FILE, environment=ENVIRONMENT)
    (before,) = (await storage.projects.project("mg")).groups.values()
    plan = await provision_setup.apply(groups=[{"project_id": "mg", "title": "TESTERS", "users": []}])
    assert plan_lines(plan) == ["change group Testers of mind_games title,users"]
    (group,) = (await storage.projects.project("mg")).groups.values()
    assert (group.group_id, group.title, group.users) == (before.group_id, "TESTERS", ())


async def test_owners_and_administrators_are_assigned_in_application_1_and_handed_over_at_once(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    people = [{"user_id": one, "login": f"{one}@x.example", "nick": one} for one in ("1", "2", "3")]
    await provision_setup.apply(
        users=people, projects=[{"title": "P", "owners": ["1", "2"], "administrators": ["1"]}]
    )
    plan = await provision_setup.apply(projects=[{"title": "P", "owners": ["3"]}])
    assert plan_lines(plan) == ["change project p owners"]
    records = await storage.user_records.records_in_project(1, "p")
    assert {
        record.user_id: [assignment.role for assignment in record.scopes[Scope("p")].roles] for record in records
    } == {
        "1": ["project_administrator"],
        "3": ["project_owner"],
    }
    with pytest.raises(Unfit, match=r"projects\[0\].owners: a project needs at least one owner"):
        await provision_setup.apply(projects=[{"title": "P", "owners": []}])


async def test_only_entries_named_in_the_file_are_changed(provision_setup: ProvisionSetup) -> None:
    await provision_setup.apply(**RICH)
    before = await provision_setup.export()
    plan = await provision_setup.apply(
        projects=[{"id": "mg", "description": "New"}],
        applications=[
            {
                "application_id": 50001,
                "roles": {"MODERATOR": {"description": "New"}},
                "users": {"1001": {"roles": []}},
            }
        ],
        memberships=[{"id": "mg", "users": {"1003": None}}],
    )
    assert plan_lines(plan) == [
        "change project mind_games description",
        "change application 50001 roles.moderator",
        "change membership mind_games users.1003",
        "change record of user 1001 in application 50001 roles",
    ]
    expected = yaml.safe_load(yaml.safe_dump(before))
    expected["projects"][0]["description"] = "New"
    shop = expected["applications"][1]
    shop["roles"]["moderator"]["description"] = "New"
    shop["users"]["1001"]["roles"] = []
    del expected["memberships"][0]["users"]["1003"]
    assert await provision_setup.export() == expected


async def test_pruning_removes_the_rest_of_a_named_section_but_never_application_1_or_keys(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    await provision_setup.apply(**RICH)
    plan = await provision_setup.apply(
        projects=[{"id": "mg"}],
        applications=[{"application_id": 50001, "roles": {"Judge": {}}, "access_keys": []}],
        groups=[{"project_id": "mg", "title": "Staff"}],
        service_accounts=[],
        prune=True,
    )
    assert plan_lines(plan) == [
        "remove project web",
        "remove service account ci of mind_games",
        "change application 50001 roles.guests,roles.moderator",
        "remove application 50002",
        "remove application 50004",
        "remove group Testers of mind_games",
    ]
    assert not (await storage.applications.application(1)).removed
    assert len(await storage.application_keys.access_keys(50001)) == 2
    assert (await storage.projects.project("mg")).project.allow != ()
    assert not await holds_rule(storage, "1002", 50001, Scope("mind_games"), KICK)
    again = {"projects": [{"id": "mg"}], "applications": [{"application_id": 50001}], "service_accounts": []}
    assert plan_lines(await provision_setup.plan(**again, prune=True)) == []


async def test_pruning_a_membership_takes_what_the_file_does_not_give_but_for_listed_owners(
    provision_setup: ProvisionSetup,
) -> None:
    await provision_setup.apply(**RICH)
    plan = await provision_setup.apply(
        projects=[{"id": "mg", "owners": ["1001"]}],
        memberships=[{"id": "mg", "users": {}}],
        prune=True,
    )
    assert plan_lines(plan)[-1] == "change membership mind_games users.1002,users.1003"
    (membership,) = (await provision_setup.export())["memberships"]
    assert membership["users"] == {"1001": {"roles": ["project_owner"]}}


async def test_a_key_that_is_named_gets_its_new_value_and_one_without_value_is_made(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    await provision_setup.apply(**FILE, environment=ENVIRONMENT)
    keys = [{"comment": "ci", "hash": "ab" * 32}, {"comment": "new"}]
    plan = await provision_setup.apply(applications=[{"application_id": 50001, "access_keys": keys}])
    assert plan_lines(plan) == ["change application 50001 access_keys"]
    generated = (plan.changes[0].generated_secret or "").removeprefix("new: ")
    assert len(generated) == 64
    assert [key.comment for key in await storage.application_keys.access_keys(50001)] == ["ci", "new"]
    again = [{"comment": "ci", "hash": "ab" * 32}, {"comment": "new", "hash": generated}]
    assert (
        plan_lines(await provision_setup.plan(applications=[{"application_id": 50001, "access_keys": again}])) == []
    )


@pytest.mark.parametrize(
    ("section", "record", "problem"),
    [
        ("projects", {"title": "A  B"}, "projects[0].title: must be 1 to 32 letters"),
        ("projects", {"title": "New", "aliases": ["mg"]}, "projects[0]: mg is already a name of the project"),
        ("projects", {"title": "New", "owners": ["9"]}, "projects[0].owners[0]: no user 9"),
        ("projects", {"id": "mg", "settings": {"x": 1}}, "projects[0].settings.x: unknown field"),
        (
            "projects",
            {"id": "mg", "settings": {"services": {"50001": {"groups": [{"group_id": "No", "roles": []}]}}}},
            "projects[0].settings.services.50001.groups[0].group_id: No is not a group of project mind_games",
        ),
        (
            "projects",
            {"id": "mg", "settings": {"services": {"1": {}}}},
            "projects[0].settings.services.1: not an application that can be connected to this project",
        ),
        (
            "applications",
            {"application_id": 50001, "roles": {"moderator": {"meta": {"private_data": {"user": {"value": 1}}}}}},
            "applications[0].roles.moderator.meta.private_data.user.value: must be true or false",
        ),
        (
            "applications",
            {"application_id": 50001, "roles": {"moderator": {"metta": {}}}},
            "applications[0].roles.moderator.metta: unknown field, did you mean meta?",
        ),
        (
            "applications",
            {"application_id": 50001, "schema": {"private_data": {"user": {"kick": PROTECTED}}}},
            "applications[0].roles.moderator: protected rules are allowed only in protected roles: private_data.",
        ),
        (
            "applications",
            {"application_id": 50001, "users": {"1001": {"roles": ["no_one"]}}},
            "applications[0].users.1001: application 50001 has no role no_one",
        ),
        (
            "applications",
            {"application_id": 50001, "users": {"1001": {"private_data": {"projectAccess": {"no": {}}}}}},
            "applications[0].users.1001.private_data.projectAccess.no: no project no",
        ),
        (
            "applications",
            {"application_id": 50001, "access_keys": [{"hash": "ABC"}]},
            "applications[0].access_keys[0].hash: an access key must be 64 lower-case hexadecimal digits",
        ),
        (
            "applications",
            {"application_id": 50001, "access_keys": [{"hash": "a1" * 32}, {"hash": "b2" * 32}]},
            "applications[0].access_keys: An application can have at most 2 access keys",
        ),
        (
            "applications",
            {"application_id": 1, "users": {"1001": {"roles": ["administrator"]}}},
            "applications[0].users.1001.roles: administrator is set by the field of that name in the section users",
        ),
        (
            "applications",
            {"application_id": 1, "schema": {"private_data": {}}},
            "applications[0].schema: application 1: its rules cannot be changed",
        ),
        ("applications", {"name": "Shop", "project_id": "no"}, "applications[0].project_id: no project no"),
        ("groups", {"project_id": "mg", "title": "X", "users": ["9"]}, "groups[0].users[0]: no user 9"),
        (
            "groups",
            {"project_id": "mg", "title": "X", "conditions": [{"title": "T", "condition": {"ip": "::/0"}}]},
            "groups[0].conditions[0].condition.ip: not allowed here",
        ),
        (
            "memberships",
            {"id": "mg", "users": {"1001": {"roles": ["administrator", "project_owner"]}}},
            "memberships[0].users.1001: role administrator: protected roles can be assigned only at the root",
        ),
        ("memberships", {"id": "mg", "users": {"1001": {}}}, "memberships[0].users: a project needs at least"),
        ("memberships", {"id": "mg", "allow": ["No"]}, "memberships[0].allow[0]: No is not a group of project"),
        (
            "service_accounts",
            {"project_id": "mg", "name": "ci", "roles": ["project_owner"]},
            "service_accounts[0].roles: A service account cannot own a project.",
        ),
        (
            "service_accounts",
            {"project_id": "mg", "name": "x", "ip_ranges": ["here"]},
            "service_accounts[0].ip_ranges[0]: must be a network in CIDR",
        ),
    ],
)  # fmt: skip
async def test_invalid_entry_is_reported_with_its_path_and_nothing_is_changed(
    provision_setup: ProvisionSetup, storage: Storage, section: str, record: dict[str, Any], problem: str
) -> None:
    await provision_setup.apply(**FILE, environment=ENVIRONMENT)
    before = await read_stored_state(storage)
    with pytest.raises(Unfit) as error:
        await provision_setup.apply(**{section: [record]})
    assert error.value.problems[0].startswith(problem)
    assert len(error.value.problems) == 1
    assert await read_stored_state(storage) == before


async def test_each_mistake_is_reported_once(provision_setup: ProvisionSetup) -> None:
    """A reference to a refused record is not reported; a reference to nothing is."""
    with pytest.raises(Unfit) as error:
        await provision_setup.apply(
            projects=[{"title": "New", "aliases": ["NEW"]}],
            applications=[{"name": "Shop", "project_id": "new"}],
            groups=[{"project_id": "new", "title": "Staff"}, {"project_id": "old", "title": "Staff"}],
            memberships=[{"id": "new", "allow": ["Staff"]}],
        )
    assert [problem.partition(":")[0] for problem in error.value.problems] == [
        "projects[0].aliases[0]",
        "groups[1].project_id",
    ]


async def test_two_sections_that_contradict_each_other_are_refused(provision_setup: ProvisionSetup) -> None:
    await provision_setup.apply(**FILE, environment=ENVIRONMENT)
    with pytest.raises(Unfit, match=r"memberships\[0\].users.1001: projects\[0\].administrators lists 1001"):
        await provision_setup.apply(
            projects=[{"id": "mg", "administrators": ["1001"]}],
            memberships=[{"id": "mg", "users": {"1001": {"roles": ["project_owner"]}}}],
        )


async def test_a_removed_project_or_application_does_not_come_back(provision_setup: ProvisionSetup) -> None:
    await provision_setup.apply(**FILE, environment=ENVIRONMENT)
    await provision_setup.apply(applications=[], prune=True)
    with pytest.raises(Unfit, match=r"applications\[0\].application_id: application 50001 was removed"):
        await provision_setup.apply(applications=FILE["applications"], environment=ENVIRONMENT)
    await provision_setup.apply(projects=[], prune=True)
    with pytest.raises(Unfit, match=r"projects\[0\]: the project mind_games was removed"):
        await provision_setup.apply(projects=FILE["projects"])


async def test_a_revoked_service_account_does_not_come_back(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    account = {"project_id": "mg", "name": "ci"}
    await provision_setup.apply(**FILE, environment=ENVIRONMENT)
    assert plan_lines(
        await provision_setup.apply(service_accounts=[{**account, "comment": "", "ip_ranges": ["::1/128"]}])
    ) == ["change service account ci of mind_games comment,ip_ranges"]
    await provision_setup.apply(service_accounts=[{**account, "revoked": True}])
    (stored_account,) = await storage.service_accounts.service_accounts("mind_games")
    assert (stored_account.revoked, stored_account.ip_ranges) == (True, ("::1/128",))
    with pytest.raises(Unfit, match=r"service_accounts\[0\].revoked: a revoked account cannot be restored"):
        await provision_setup.apply(service_accounts=[{**account, "revoked": False}])


async def test_rights_in_a_removed_project_are_neither_exported_nor_changed(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    access = {"mind_games": {"roles": ["moderator"]}, "other": {"roles": ["moderator"]}}
    shop = {"application_id": 50001, "service_meta": {"name": "Shop"}}
    await provision_setup.apply(
        **{**FILE, "projects": [*FILE["projects"], {"title": "Other"}]}, environment=ENVIRONMENT
    )
    await provision_setup.apply(
        applications=[{**shop, "users": {"1001": {"private_data": {"projectAccess": access}}}}]
    )
    await provision_setup.apply(projects=[{"id": "mg"}], prune=True)
    document = await provision_setup.export()
    exported = next(application for application in document["applications"] if application["application_id"] == 50001)
    assert exported["users"]["1001"]["private_data"] == {"projectAccess": {"mind_games": {"roles": ["moderator"]}}}
    assert plan_lines(await provision_setup.plan(**document, prune=True)) == []
    emptied = {"private_data": {"projectAccess": None}}
    await provision_setup.apply(applications=[{**shop, "users": {"1001": emptied}}])
    record = (await read_stored_state(storage)).permissions.record(50001, "1001")
    assert set(record.scopes) == {ROOT, Scope("other")}


class ConcurrentlyChanged(ProvisionStorage):
    """A concurrent change happens just before the first write."""

    def __init__(self, storage: Storage, act: Any) -> None:
        super().__init__(storage.runner, storage.ban_copies)
        self._act = act

    async def run_file(self, *args: object, **kwargs: object) -> Plan:
        act, self._act = self._act, None
        if act is not None:
            await act()
        return await super().run_file(*args, **kwargs)


async def test_changes_of_others_that_meet_a_file_are_kept(provision_setup: ProvisionSetup, storage: Storage) -> None:
    await provision_setup.apply(**FILE, environment=ENVIRONMENT)

    async def intruder() -> None:
        def change_title(model: Any) -> EditResult[Any]:
            return EditResult(replace(model, project=replace(model.project, title="Renamed")), ())

        def deny_login(record: Any) -> EditResult[Any]:
            return EditResult(replace(record, login={"can": {"value": False}}), ())

        await storage.projects.edit_project("mind_games", change_title)
        await storage.user_records.edit_record(50001, "1001", deny_login, NOW)

    slow = ProvisionSetup(ConcurrentlyChanged(storage, intruder))
    plan = await slow.apply(
        projects=[{"id": "mg", "description": "New"}],
        applications=[{"application_id": 50001, "users": {"1001": {"roles": []}}}],
    )
    assert plan_lines(plan) == [
        "change project mind_games description",
        "change record of user 1001 in application 50001 roles",
    ]
    project = (await storage.projects.project("mg")).project
    assert (project.title, project.description) == ("Renamed", "New")
    record = (await read_stored_state(storage)).permissions.record(50001, "1001")
    assert (record.login, record.scopes) == ({"can": {"value": False}}, {})


async def test_a_role_that_is_full_refuses_the_whole_file(provision_setup: ProvisionSetup) -> None:
    await provision_setup.apply(**FILE, environment=ENVIRONMENT)
    with pytest.raises(Unfit, match="moderator"):
        await provision_setup.apply(
            users=[{"user_id": "2", "login": "two@x.example", "nick": "Two"}],
            applications=[
                {
                    "application_id": 50001,
                    "roles": {"moderator": {"user_limit": 1}},
                    "users": {"2": {"roles": ["moderator"]}},
                }
            ],
        )
    assert [user["user_id"] for user in (await provision_setup.export())["users"]] == ["1001"]


async def test_only_one_of_two_concurrent_applies_of_a_file_makes_changes(
    provision_setup: ProvisionSetup, storage: Storage, migrated_url: str
) -> None:
    del provision_setup
    async with open_storage(migrated_url, migrate=False) as other:
        benches = [ProvisionSetup(ProvisionStorage(record.runner, record.ban_copies)) for record in (storage, other)]
        plans = await asyncio.gather(*(bench.apply(**RICH) for bench in benches))
    assert 0 in [len(plan.changes) for plan in plans]
    assert plan_lines(await benches[0].plan(**RICH)) == []


async def test_someone_may_be_a_member_of_several_projects_of_one_file(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    file = {
        "users": [{"user_id": "1001", "login": "anna@studio.example", "nick": "Anna"}],
        "projects": [{"title": "One"}, {"title": "Two"}],
        "memberships": [
            {"id": name, "users": {"1001": {"roles": ["project_administrator"]}}} for name in ("one", "two")
        ],
    }
    await provision_setup.apply(**file)
    record = (await read_stored_state(storage)).permissions.record(1, "1001")
    assert {scope.project_id for scope in record.scopes} == {"one", "two"}
    assert plan_lines(await provision_setup.apply(**file)) == []


WIKI, BLOG = "https://wiki.example", "https://blog.example"


def site_owner(number: int, *sites: str, resource: str | None) -> dict[str, Any]:
    return {
        "application_id": number,
        "name": f"Application {number}",
        "protected_sites": dict.fromkeys(sites, "page.read"),
        "api": None if resource is None else {"resource": resource},
    }


async def test_sites_and_api_resources_move_between_applications_of_a_file_in_any_order(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    async def applied(*entries: dict[str, Any], **options: bool) -> dict[int, tuple[set[str], str | None]]:
        await provision_setup.apply(applications=list(entries), **options)
        models = (await read_stored_state(storage)).permissions.applications.values()
        return {
            one.application.application_id: (set(one.application.protected_sites), one.application.api_resource)
            for one in models
            if not one.application.is_central and not one.application.removed
        }

    first = (site_owner(50001, WIKI, resource="urn:a"), site_owner(50002, BLOG, resource="urn:b"))
    swapped = (site_owner(50001, BLOG, resource="urn:b"), site_owner(50002, WIKI, resource="urn:a"))
    as_first = {50001: ({WIKI}, "urn:a"), 50002: ({BLOG}, "urn:b")}
    assert await applied(*first) == as_first
    assert await applied(*swapped) == {50001: ({BLOG}, "urn:b"), 50002: ({WIKI}, "urn:a")}
    assert await applied(*reversed(first)) == as_first
    newcomer = site_owner(50003, WIKI, BLOG, resource="urn:a")
    assert await applied(newcomer, prune=True) == {50003: ({WIKI, BLOG}, "urn:a")}


async def test_a_site_or_api_resource_of_two_applications_is_refused(
    provision_setup: ProvisionSetup, storage: Storage
) -> None:
    await provision_setup.apply(applications=[site_owner(50002, WIKI, resource="urn:a")])
    with pytest.raises(Unfit) as refusal:
        await provision_setup.apply(
            applications=[site_owner(50001, WIKI, resource="urn:b"), site_owner(50003, BLOG, resource="urn:b")]
        )
    assert refusal.value.problems == (
        f"applications[0].protected_sites: application 50002 has {WIKI} already",
        "applications[1].api.resource: application 50001 has urn:b already",
    )
    assert (await read_stored_state(storage)).permissions.applications.keys() == {1, 50002}
