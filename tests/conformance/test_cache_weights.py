"""The permission cache's size estimates match what Python allocates, within a factor of two."""

import gc
import json
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from msgspec.structs import replace

from gatehouse.kernel.clock import SystemClock
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.evaluation.compiled import CompiledGrants, CompiledProject, compiled_model
from gatehouse.permissions.evaluation.loader import PermissionLoader, project_weight
from gatehouse.permissions.evaluation.shapes import DEFAULT_OPTIONS, Shape
from gatehouse.permissions.model.condition import GroupCondition
from gatehouse.permissions.model.facts import ApplicationModel, ProjectModel
from gatehouse.permissions.model.project import GrantAction, GroupGrant
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import ROOT
from gatehouse.permissions.model.schema import Tree
from gatehouse.permissions.store import EditResult
from gatehouse.storage.database import Storage
from tests.support.builders import a_record
from tests.support.permission_builders import (
    a_group,
    a_person,
    a_role,
    a_user_record,
    connect_application,
    create_application,
    install_central,
    publish,
    set_fields,
)

SHOP: Final = 50_001
ANNA: Final = "1000000001"
FACTOR: Final = 2.0


def rules(count: int, description: str = "") -> Tree:
    leaf = {"value": False, "protected": False}
    return {
        f"area{n}": {
            f"rule{m}": {**leaf, "description": f"{description}{n}{m}" if description else ""} for m in range(50)
        }
        for n in range(count // 50)
    }


def schema_of(tree: Tree, params: Callable[[int], str] = lambda _: "") -> Tree:
    numbers = iter(range(1_000_000))

    def leaf() -> dict[str, Any]:
        rule_params = params(next(numbers))
        return {"value": True, "params": rule_params} if rule_params else {"value": True}

    return {
        "private_data": {
            area: {name: leaf() for name in branch} if isinstance(branch, Mapping) else branch
            for area, branch in tree.items()
        }
    }


def with_named_users() -> Role:
    ids = [f"{1_000_000_000 + n}" for n in range(1_000)]
    return a_role("tested", condition=parse_condition({"uid": ids}, place=""))


SHAPES: Final[Mapping[str, tuple[Tree, list[Role]]]] = {
    "many roles": (rules(1_000), [a_role(f"role{n}", meta=schema_of(rules(1_000))) for n in range(20)]),
    "long descriptions": (rules(500, "word " * 200), []),
    "different rules": (
        {},
        [
            a_role(f"role{n}", meta={"private_data": {f"of{n}": schema_of(rules(500))["private_data"]}})
            for n in range(10)
        ],
    ),
    "different params": (
        rules(500),
        [
            a_role(f"role{n}", meta=schema_of(rules(500), lambda m, n=n: ",".join(f"{n}-{m}-{k}" for k in range(10))))
            for n in range(4)
        ],
    ),
    "the same params": (
        rules(500),
        [a_role(f"role{n}", meta=schema_of(rules(500), lambda _: "one,two"), params="three,four") for n in range(20)],
    ),
    "small": (rules(50), [a_role("one"), a_role("two", meta=schema_of(rules(50)))]),
    "a condition with many users": ({}, [with_named_users()]),
}


@pytest.fixture
async def seeded_storage(storage: Storage) -> Storage:
    await install_central(storage)
    await a_person(storage, ANNA)
    await publish(storage, owners=[ANNA])
    await create_application(storage, project_id="mind_games")
    return storage


async def save(storage: Storage, tree: Tree, roles: list[Role]) -> None:
    def change(state: ApplicationModel) -> EditResult[ApplicationModel]:
        schema = replace(state.schema, private_data=json.loads(json.dumps(tree)))
        return EditResult(replace(state, schema=schema, roles={role.key: role for role in roles}), [a_record()])

    await storage.applications.edit_schema(SHOP, change)


async def compiled_whole(storage: Storage) -> ApplicationModel:
    model = (await storage.permissions.application_models([SHOP]))[SHOP]
    compiled = compiled_model(model)
    for says in (compiled.schema, *(role.verdicts for role in compiled.roles.values())):
        assert len(says.sorted_texts) == len(says.yes)
    return model


def allocated_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def assert_honest(estimated: int, before: int) -> None:
    measured = allocated_bytes() - before
    assert estimated / FACTOR <= measured <= estimated * FACTOR, f"{estimated:,} estimated, {measured:,} allocated"


@pytest.fixture
def trace_memory() -> Any:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("trace_memory")
async def test_mm_02_weight_of_a_model_is_what_it_allocates_when_all_of_it_is_compiled(
    seeded_storage: Storage, shape: str
) -> None:
    await save(seeded_storage, *SHAPES[shape])
    first = await compiled_whole(seeded_storage)
    before = allocated_bytes()
    model = await compiled_whole(seeded_storage)
    assert model is not first
    assert_honest(model.weight, before)


@pytest.mark.usefixtures("trace_memory")
async def test_mm_02_weight_of_the_cache_is_what_people_and_lists_in_it_allocate(seeded_storage: Storage) -> None:
    await save(seeded_storage, *SHAPES["many roles"])
    reading = PermissionLoader(store=seeded_storage.permissions, clock=SystemClock())
    people = [str(int(ANNA) + 1 + n) for n in range(40)]
    for person in people:
        await a_person(seeded_storage, person)
        record = a_user_record(person, {ROOT: ["role1", "role2", "role3"]}, application_id=SHOP)
        await seeded_storage.user_records.edit_record(SHOP, person, set_fields(scopes=record.scopes), 0)

    async def expect_list(person: str) -> None:
        facts = await seeded_storage.permissions.facts(person, (SHOP,))
        assert facts is not None
        case = await reading.load_input(facts)
        effective = await reading.evaluate(case, SHOP, None)
        assert len(await reading.render_list(case, effective, Shape.LIST, DEFAULT_OPTIONS)) == 1_000

    await expect_list(people[0])
    weight, before = reading.cache_weight, allocated_bytes()
    for person in people[1:]:
        await expect_list(person)
    assert_honest(reading.cache_weight - weight, before)


def compiled_grants(model: ProjectModel) -> CompiledGrants:
    return model.derived_cache.get_or_make(CompiledProject, model).grants(SHOP)


@pytest.mark.usefixtures("trace_memory")
async def test_mm_02_weight_of_projects_is_what_they_allocate(seeded_storage: Storage) -> None:
    ids = [f"{n:024x}" for n in range(100)]
    for group_id in ids:
        uids = [f"{1_000_000_000 + int(group_id, 16) * 50 + n}" for n in range(50)]
        condition = GroupCondition(title="those", condition=parse_condition({"uid": uids}, with_address=False))
        await seeded_storage.groups.create_group(a_group(group_id, group_id, conditions=(condition,)), [a_record()])
    await save(seeded_storage, {}, [a_role("role1"), a_role("role2")])
    grants = [GroupGrant(group_id=id_, roles=("role1", "role2"), action=GrantAction.GRANT) for id_ in ids]
    await seeded_storage.projects.edit_project("mind_games", connect_application(SHOP, *grants))
    _ = compiled_grants((await seeded_storage.permissions.projects(["mind_games"]))["mind_games"])
    before = allocated_bytes()
    model = (await seeded_storage.permissions.projects(["mind_games"]))["mind_games"]
    assert len(list(compiled_grants(model).groups.index_keys)) == 5_100
    assert_honest(project_weight(model), before)
