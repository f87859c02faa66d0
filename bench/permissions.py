"""The cost of evaluating a person's permissions, without storage and HTTP (goals P12, P13)."""

import dataclasses
from collections.abc import Mapping
from typing import Final, cast

from bench.figures import Figure, cost
from msgspec.structs import replace

from gatehouse.kernel.clock import SystemClock
from gatehouse.permissions.documents.conditions import parse_condition
from gatehouse.permissions.evaluation.effective import EffectivePermissions, evaluate
from gatehouse.permissions.evaluation.loader import PermissionLoader, state_of
from gatehouse.permissions.evaluation.shapes import Shape, ShapeOptions, render_shape
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.condition import ConditionSubject, GroupCondition
from gatehouse.permissions.model.facts import (
    ApplicationModel,
    Assignment,
    Facts,
    ProjectModel,
    ScopeHoldings,
    Structure,
    UserRecord,
)
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import GrantAction, GroupGrant, Project, ProjectSettings
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import ROOT, Rule, RuleSection, Scope
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.store import PermissionStore

NOW: Final = 1_800_000_000
APPLICATION: Final = 50_001
ROLES: Final = 20
CONDITIONAL: Final = 5  # of the roles
RULES: Final = 50  # of each role
PROJECTS: Final = 10
GROUPS: Final = 500
CHECKS: Final = 100
OPTIONS: Final = ShapeOptions()


def permissions() -> list[Figure]:
    model, facts, no_projects = build_model(), build_facts([ROOT]), Structure(projects={}, connecting={})
    grouped = many_groups()
    effective = evaluate_once(model, facts, no_projects)
    store = cast("PermissionStore", OneApplicationStore(model, no_projects))
    loader, facts_with_state = PermissionLoader(store=store, clock=SystemClock()), with_state(facts, model)
    rules = [Rule(RuleSection.PRIVATE, f"area{n % ROLES}.rule{n % RULES}") for n in range(CHECKS)]
    in_projects = build_facts([Scope(f"p{n}") for n in range(PROJECTS)])
    ten = Structure(projects={f"p{n}": a_project(f"p{n}") for n in range(PROJECTS)}, connecting={})
    return [
        with_goal(
            1_200,
            cost(
                "20 roles of 50 rules: evaluate and list",
                lambda: render_list(evaluate_once(model, facts, no_projects)),
            ),
        ),
        with_goal(50, cost("the same list again", lambda: cached_list(loader, facts_with_state))),
        cost("the same in 10 projects", lambda: render_list(evaluate_once(model, in_projects, ten))),
        cost("the same beside 500 conditional groups", lambda: render_list(evaluate_once(model, facts, grouped))),
        with_goal(1_000, cost("check of 100 rules", lambda: [effective.allows(ROOT, rule) for rule in rules])),
    ]


def with_goal(most: float, figure: Figure) -> Figure:
    return dataclasses.replace(figure, goal=most)


def evaluate_once(model: ApplicationModel, facts: Facts, structure: Structure) -> EffectivePermissions:
    return evaluate(model, facts, structure, now=NOW, address=None)


class OneApplicationStore:
    """What PermissionLoader loads once; it does not use the rest of a store here."""

    def __init__(self, model: ApplicationModel, structure: Structure) -> None:
        self._model = model
        self._structure = structure

    async def application_models(self, _: object) -> dict[int, ApplicationModel]:
        return {APPLICATION: self._model}

    async def projects(self, _: object) -> Mapping[str, ProjectModel]:
        return self._structure.projects


def with_state(facts: Facts, model: ApplicationModel) -> Facts:
    return replace(facts, applications={APPLICATION: state_of(model)})


def cached_list(loader: PermissionLoader, facts: Facts) -> tuple[str, ...]:
    """The list from facts that have not changed since it was cached."""

    async def render() -> tuple[str, ...]:
        loaded = await loader.load_input(facts)
        return await loader.render_list(loaded, await loader.evaluate(loaded, APPLICATION, None), Shape.LIST, OPTIONS)

    try:
        render().send(None)
    except StopIteration as end:
        lines: tuple[str, ...] = end.value
        return lines
    raise AssertionError("it waited for something")


def render_list(effective: EffectivePermissions) -> tuple[str, ...]:
    return render_shape(effective, Shape.LIST, OPTIONS, NOW)


def build_model() -> ApplicationModel:
    roles = [a_role(n) for n in range(ROLES)]
    return ApplicationModel(
        application=Application(application_id=APPLICATION, name="Shop", created_at=NOW),
        schema=ApplicationSchema(application_id=APPLICATION, updated_at=NOW),
        roles={role.key: role for role in roles},
    )


def a_role(number: int) -> Role:
    rules = {f"rule{n}": {"value": True} for n in range(RULES)}
    condition = parse_condition({"domain": "studio.example"}) if number < CONDITIONAL else None
    meta = {"private_data": {f"area{number}": rules}}
    return Role(application_id=APPLICATION, name=f"role{number}", condition=condition, meta=meta)


def build_facts(scopes: list[Scope]) -> Facts:
    roles = tuple(Assignment(role=f"role{n}") for n in range(CONDITIONAL, ROLES))
    holdings = {scope: ScopeHoldings(roles=roles) for scope in scopes}
    return Facts(
        subject=ConditionSubject("1001", "studio.example", frozenset({"staff"})),
        login="anna@studio.example",
        blocked=False,
        rev=0,
        has_strong_factor=True,
        records={APPLICATION: UserRecord(application_id=APPLICATION, user_id="1001", scopes=holdings)},
    )


def a_project(project_id: str) -> ProjectModel:
    return ProjectModel(
        project=Project(project_id=project_id, title=project_id, author="1", created_at=NOW),
        groups={},
        applications=frozenset(),
        services=frozenset(),
    )


def many_groups() -> Structure:
    """One project that grants a role to each of many groups; the person belongs to one of them by tag."""
    tags = ["staff", *(f"tag{n}" for n in range(1, GROUPS))]
    groups = [a_group(f"{n:024x}", tag) for n, tag in enumerate(tags)]
    grants = tuple(GroupGrant(group_id=one.group_id, roles=("role7",), action=GrantAction.GRANT) for one in groups)
    model = a_project("big")
    settings = ProjectSettings(services={APPLICATION: grants})
    model = replace(
        model, project=replace(model.project, settings=settings), groups={one.group_id: one for one in groups}
    )
    return Structure(projects={"big": model}, connecting={APPLICATION: ("big",)})


def a_group(group_id: str, tag: str) -> Group:
    condition = GroupCondition(title="tagged", condition=parse_condition({"tag": tag}, with_address=False))
    return Group(group_id=group_id, project_id="big", title=tag, conditions=(condition,), created_at=NOW)
