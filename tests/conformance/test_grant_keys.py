"""What a request reads of ten thousand projects is all that concerns the person, after any changes, on every node."""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from random import Random  # noqa: TID251 - a seed makes a run repeatable
from typing import Any, Final

import pytest

from gatehouse.kernel.clock import SystemClock
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.errors import GroupListed
from gatehouse.permissions.evaluation.condition_index import person_index_keys
from gatehouse.permissions.evaluation.effective import EffectivePermissions, evaluate
from gatehouse.permissions.evaluation.loader import PermissionLoader
from gatehouse.permissions.evaluation.shapes import DEFAULT_OPTIONS, Shape, render_shape
from gatehouse.permissions.model.condition import GroupCondition
from gatehouse.permissions.model.facts import Facts, ProjectModel
from gatehouse.permissions.model.index_keys import key_text
from gatehouse.permissions.model.project import GrantAction, GroupGrant, ProjectSettings
from gatehouse.permissions.model.rules import ROOT, Scope, group_scope, service_scope
from gatehouse.storage.database import Storage, open_storage
from gatehouse.storage.permissions.grant_keys import grant_keys_of
from tests.support.builders import NOW
from tests.support.database_contents import read_all_tables
from tests.support.permission_builders import (
    a_group,
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
    set_roles,
)

SHOP, WIKI = 50_001, 50_002
OWNER: Final = "1000000001"
PEOPLE: Final[Mapping[str, Mapping[str, Any]]] = {
    OWNER: {},
    "2": {"tags": frozenset({"vip", "a:b"})},
    "3": {"purchases": frozenset({"vip"}), "email_verified": True},
    "4": {"email_code": True, "phone_verified": True},
    "6": {"phone": "+4915123456789", "phone_verified": True, "phone_code": True},
    "5": {"tags": frozenset({"vip"}), "purchases": frozenset({"dlc"}), "sealed_totp": b"totp"},
}
CONDITIONS: Final[tuple[Mapping[str, object], ...]] = (
    {"everyone": True},
    {"everyone": False},
    {"tag": "vip"},
    {"tag": "a:b"},
    {"tag": "email_verified"},
    {"tag": "2step"},
    {"tag": "2step_totp"},
    {"tag": "2step_phone"},
    {"tag": "phone_verified"},
    {"purchase": "vip"},
    {"domain": "studio.example"},
    {"uid": ["2", "4"]},
    {"and": [{"everyone": True}, {"tag": "vip"}, {"purchase": "dlc"}]},
    {"or": [{"uid": ["3"]}, {"and": [{"tag": "vip"}, {"domain": "studio.example"}]}]},
    {"tag": "vip", "purchase": "dlc"},
)
ROLES: Final = ("reader", "writer", "guide")
PROJECTS: Final = tuple(f"p{n}" for n in range(6))
CHANGES: Final = 60
Change = Callable[[Storage, Random], Awaitable[object]]


@pytest.fixture
async def nodes(migrated_url: str) -> AsyncIterator[tuple[Storage, Storage]]:
    """Two nodes with the same database: a shop and a wiki that every project may connect, and six projects."""
    async with AsyncExitStack() as stack:
        one, other = [await stack.enter_async_context(open_storage(migrated_url, migrate=False)) for _ in range(2)]
        await install_central(one)
        for user_id, fields in PEOPLE.items():
            await a_person(one, user_id, **fields)
        for name in ("shop", "wiki"):
            roles = (a_role(role, meta={"private_data": {role: {"value": True}}}) for role in ROLES)
            application = await create_application(one, *roles, name=name, service_meta={"name": name})
            assert application.is_published
        for project in PROJECTS:
            await publish(one, a_project(project), owners=[OWNER])
            for number in range(3):
                group_id = f"{project}-{number}"
                await one.groups.create_group(a_group(group_id, f"Group {number}", project_id=project), ())
        yield one, other


async def set_conditions(storage: Storage, rng: Random) -> None:
    found = rng.sample(CONDITIONS, rng.randrange(3))
    conditions = tuple(
        GroupCondition(title="one", condition=parse_condition(one, with_address=False)) for one in found
    )
    await storage.groups.edit_group(await some_group(storage, rng), set_fields(conditions=conditions))


async def list_people(storage: Storage, rng: Random) -> None:
    users = tuple(rng.sample(sorted(PEOPLE), rng.randrange(3)))
    await storage.groups.edit_group(await some_group(storage, rng), set_fields(users=users))


async def grant(storage: Storage, rng: Random) -> None:
    project_id = rng.choice(PROJECTS)
    groups = sorted((await storage.projects.project(project_id)).groups)
    roles = {number: await roles_of(storage, number) for number in (SHOP, WIKI)}
    services = {
        number: tuple(
            GroupGrant(
                group_id=rng.choice(groups),
                roles=(rng.choice(roles[number]),),
                action=rng.choice([GrantAction.GRANT, GrantAction.GRANT, GrantAction.REVOKE]),
            )
            for _ in range(rng.randrange(3) if groups else 0)
        )
        for number in rng.sample([SHOP, WIKI], rng.randrange(3))
    }
    await storage.projects.edit_project(project_id, set_project_fields(settings=ProjectSettings(services=services)))


async def close_to_groups(storage: Storage, rng: Random) -> None:
    project_id = rng.choice(PROJECTS)
    groups = sorted((await storage.projects.project(project_id)).groups)
    lists = {name: tuple(rng.sample(groups, min(len(groups), rng.randrange(2)))) for name in ("allow", "disallow")}
    await storage.projects.edit_project(project_id, set_project_fields(**lists))


async def remove_or_restore(storage: Storage, rng: Random) -> None:
    removed = rng.random() < 0.3
    await storage.projects.edit_project(rng.choice(PROJECTS), set_project_fields(removed=removed))


async def add_group(storage: Storage, rng: Random) -> None:
    project_id, name = rng.choice(PROJECTS), f"{rng.getrandbits(64):x}"
    await storage.groups.create_group(a_group(name, name, project_id=project_id, users=(rng.choice([*PEOPLE]),)), ())


async def delete_group(storage: Storage, rng: Random) -> None:
    with suppress(GroupListed):
        await storage.groups.delete_group(await some_group(storage, rng), ())


async def publish_or_hide(storage: Storage, rng: Random) -> None:
    meta = {"name": "service"} if rng.random() < 0.85 else {}
    await storage.applications.edit_application(rng.choice([SHOP, WIKI]), set_fields(service_meta=meta))


async def remove_role(storage: Storage, rng: Random) -> None:
    number = rng.choice([SHOP, WIKI])
    roles = [a_role(role, number, meta={"private_data": {role: {"value": True}}}) for role in ROLES]
    await storage.applications.edit_schema(number, set_roles(*rng.sample(roles, rng.randrange(2, 4))))


async def assign(storage: Storage, rng: Random) -> None:
    number, project_id = rng.choice([SHOP, WIKI]), rng.choice(PROJECTS)
    role = rng.choice(await roles_of(storage, number))
    model = await storage.projects.project(project_id)
    scopes = [ROOT, Scope(project_id), *(group_scope(project_id, one) for one in model.groups)]
    scopes += [service_scope(project_id, one) for one in model.services]
    held = {scope: holdings_with(role) for scope in rng.sample(scopes, 2)}
    await storage.user_records.edit_record(number, rng.choice([*PEOPLE]), set_fields(scopes=held), NOW)


async def some_group(storage: Storage, rng: Random) -> str:
    projects = (await storage.permissions.projects(PROJECTS)).values()
    return rng.choice(sorted(group_id for model in projects for group_id in model.groups))


async def roles_of(storage: Storage, number: int) -> list[str]:
    return sorted((await storage.permissions.application_models([number]))[number].roles)


CHANGE_KINDS: Final[tuple[Change, ...]] = (
    *(set_conditions, list_people, grant, grant, close_to_groups, remove_or_restore, add_group, delete_group),
    *(publish_or_hide, remove_role, assign, assign),
)


@pytest.mark.parametrize("seed", range(3))
async def test_lists_are_those_of_an_evaluation_that_reads_every_project(
    nodes: tuple[Storage, Storage], seed: int
) -> None:
    """Each node makes changes and keeps its cache; the other must show them in the next answer."""
    rng = Random(seed)  # noqa: S311 - not for a secret
    loaders = [PermissionLoader(store=node.permissions, clock=SystemClock()) for node in nodes]
    seen: set[tuple[str, ...]] = set()
    for number in range(30):
        await (grant if number % 2 else set_conditions)(nodes[0], rng)
    for _ in range(CHANGES):
        await rng.choice(CHANGE_KINDS)(rng.choice(nodes), rng)
        for user_id in PEOPLE:
            number = rng.choice([SHOP, WIKI])
            facts = await nodes[0].permissions.facts(user_id, [1, number])
            assert facts is not None
            expected = as_list(await evaluate_everything(nodes[0], facts, number))
            for loader in loaders:
                found = await loader.load_facts(user_id, [1, number])
                assert found is not None
                assert as_list(await loader.evaluate(await loader.load_input(found), number, None)) == expected
            seen.add(expected)
    assert len(seen) > CHANGES // 8


@pytest.mark.parametrize("seed", range(3, 5))
async def test_keys_name_exactly_the_projects_that_share_a_key_with_the_person(
    nodes: tuple[Storage, Storage], seed: int
) -> None:
    rng, storage, granting = Random(seed), nodes[0], 0  # noqa: S311 - not for a secret
    for number in range(CHANGES // 2):
        await (grant if number % 2 else set_conditions)(storage, rng)
    for change in CHANGE_KINDS:
        await change(storage, rng)
        models = await storage.permissions.projects(PROJECTS)
        stored = (await read_all_tables(storage))["grant_keys"]
        assert {tuple(row) for row in stored} == {
            (key, one, number) for one, model in models.items() for number, key in grant_keys_of(model)
        }
        for user_id in PEOPLE:
            facts = await storage.permissions.facts(user_id, [SHOP, WIKI])
            assert facts is not None
            keys = set(map(key_text, person_index_keys(facts)))
            expected: defaultdict[int, set[str]] = defaultdict(set)
            for key, project_id, number in stored:
                if key.partition(":")[2] in keys and not models[project_id].project.removed:
                    expected[number].add(project_id)
            assert facts.granting == expected
            granting += len(expected)
    assert granting > len(PEOPLE)


async def test_a_change_of_one_project_keeps_the_models_of_others_in_the_cache(
    nodes: tuple[Storage, Storage],
) -> None:
    storage, _ = nodes
    loader = PermissionLoader(store=storage.permissions, clock=SystemClock())
    for project_id in ("p1", "p2"):
        await storage.groups.edit_group(f"{project_id}-0", set_fields(users=("2",)))
        given = GroupGrant(group_id=f"{project_id}-0", roles=("reader",), action=GrantAction.GRANT)
        await storage.projects.edit_project(project_id, connect_application(SHOP, given))

    async def load() -> Mapping[str, ProjectModel]:
        facts = await loader.load_facts("2", [SHOP])
        assert facts is not None
        return (await loader.load_input(facts)).structure.projects

    before, versions = await load(), [await model_version(storage, one) for one in ("p1", "p2")]
    await storage.projects.edit_project("p1", set_project_fields(tags=("new",)))
    after = await load()
    assert (before.keys(), after.keys()) == ({"p1", "p2"}, {"p1", "p2"})
    assert after["p2"] is before["p2"]
    assert after["p1"].project.tags == ("new",)
    assert [await model_version(storage, one) for one in ("p1", "p2")] == [versions[0] + 1, versions[1]]


async def test_a_publication_counts_in_every_project_that_connects_the_application(
    nodes: tuple[Storage, Storage],
) -> None:
    storage, _ = nodes
    for project_id in ("p1", "p2"):
        await storage.projects.edit_project(project_id, connect_application(SHOP))
    before = {one: await model_version(storage, one) for one in PROJECTS}
    await storage.applications.edit_application(SHOP, set_fields(service_meta={}))
    changed = {one for one in PROJECTS if await model_version(storage, one) != before[one]}
    assert changed == {"p1", "p2"}
    assert not (await storage.permissions.projects(["p1"]))["p1"].services


async def evaluate_everything(storage: Storage, facts: Facts, number: int) -> EffectivePermissions:
    mentioned = {*PROJECTS, *facts.projects}
    snapshot = await storage.candidates.application_snapshot(number, mentioned)
    return evaluate(snapshot.model, facts, snapshot.structure, now=SystemClock().now(), address=None)


def as_list(effective: EffectivePermissions) -> tuple[str, ...]:
    shapes = (Shape.LIST, Shape.ROLES)
    return tuple(line for shape in shapes for line in sorted(render_shape(effective, shape, DEFAULT_OPTIONS, 0)))
