"""Who may hold a rule or a role, found without looking at everybody: a superset, to be evaluated exactly."""

from collections.abc import Iterable
from dataclasses import fields, replace
from itertools import chain

from gatehouse.accounts.model import KEPT_TAGS
from gatehouse.permissions.evaluation.compiled import CompiledModel, CompiledRole, compiled_model, is_default
from gatehouse.permissions.evaluation.matching import ANYONE, Handle, group_handles, handles_for
from gatehouse.permissions.model.condition import NOBODY, AllOf, AnyOf, FromNetwork, Test
from gatehouse.permissions.model.crowd import Candidates, Outline
from gatehouse.permissions.model.facts import ProjectModel, Structure
from gatehouse.permissions.model.role import ConditionMode
from gatehouse.permissions.model.rule import Rule
from gatehouse.permissions.model.scope import Scope


def holding_rule(outline: Outline, places: Iterable[Scope], rule: Rule) -> Candidates:
    """`places`: where it has to be held to count."""
    model = compiled_model(outline.model)
    roles = [role for role in model.roles.values() if rule in role.says.yes]
    found = nobody(outline)
    for place in places:
        if place.is_root:
            default = rule in model.schema.yes or any(is_default(one.role) for one in roles)
            found = joined(
                found, joined(at_root(outline, roles), replace(nobody(outline), entries=True, everyone=default))
            )
        else:
            found = joined(found, in_project(outline, place.project_id, (one.role.key for one in roles)))
    return found


def holding_role(outline: Outline, scope: Scope, key: str) -> Candidates:
    role = compiled_model(outline.model).roles[key]
    if scope.is_root:
        return joined(at_root(outline, [role]), replace(nobody(outline), everyone=is_default(role.role)))
    return in_project(outline, scope.project_id, [key])


def touched_by_roles(outline: Outline, model: CompiledModel, keys: Iterable[str]) -> Candidates:
    """Everybody who may hold one of these roles anywhere."""
    known = model.roles
    roles = [known[key] for key in keys if key in known]
    default = replace(nobody(outline), everyone=any(is_default(one.role) for one in roles))
    found = joined(at_root(outline, roles), default)
    for project_id in outline.structure.connecting.get(outline.model.application.application_id, ()):
        groups = granted_groups(outline, project_id, [one.role.key for one in roles])
        found = joined(found, with_handles(outline, groups))
    return found


def in_project(outline: Outline, project_id: str, keys: Iterable[str] | None = None) -> Candidates:
    """Everybody who may hold something in the project; `keys`: the roles that groups are looked at for."""
    given = with_handles(outline, granted_groups(outline, project_id, keys))
    return joined(given, replace(nobody(outline), projects=frozenset({project_id})))


def at_root(outline: Outline, roles: Iterable[CompiledRole]) -> Candidates:
    """Whoever is assigned one of the roles, there or elsewhere, or meets its condition."""
    given = list(roles)
    conditions = (
        handles_for(without_addresses(one.role.condition.test))
        for one in given
        if one.role.condition is not None and one.role.condition_mode is ConditionMode.GRANT
    )
    found = with_handles(outline, frozenset(chain.from_iterable(conditions)))
    return replace(found, roles=frozenset(one.role.key for one in given))


def granted_groups(outline: Outline, project_id: str, keys: Iterable[str] | None) -> frozenset[Handle]:
    """Handles of the groups whose members the project gives one of these roles, or any."""
    project = project_in(outline.structure, project_id)
    if project is None:
        return frozenset()
    wanted = None if keys is None else frozenset(keys)
    grants = project.project.settings.services.get(outline.model.application.application_id, ())
    named = {one.group_id for one in grants if wanted is None or wanted & set(one.roles)}
    groups = (project.groups[group_id] for group_id in named if group_id in project.groups)
    return frozenset(chain.from_iterable(group_handles(group) for group in groups))


def project_in(structure: Structure, project_id: str) -> ProjectModel | None:
    return structure.projects.get(project_id)


def with_handles(outline: Outline, handles: frozenset[Handle]) -> Candidates:
    def of(kind: str) -> frozenset[str]:
        return frozenset(value for name, value in handles if name == kind)

    tags = of("tag")
    return replace(
        nobody(outline),
        everyone=ANYONE in handles or bool(tags & KEPT_TAGS),  # those are in no table
        user_ids=of("uid"),
        groups=of("group"),
        domains=of("domain"),
        tags=tags - KEPT_TAGS,
        purchases=of("purchase"),
    )


def nobody(outline: Outline) -> Candidates:
    return Candidates(application_id=outline.model.application.application_id)


def joined(one: Candidates, other: Candidates) -> Candidates:
    """Whoever is a candidate of either."""
    names = (each.name for each in fields(Candidates) if each.name != "application_id")
    return replace(one, **{name: getattr(one, name) | getattr(other, name) for name in names})


def without_addresses(test: Test) -> Test:
    """The test as it comes out for somebody whose address is not known (R5)."""
    match test:
        case FromNetwork():
            return NOBODY
        case AllOf(parts):
            return AllOf(tuple(map(without_addresses, parts)))
        case AnyOf(parts):
            return AnyOf(tuple(map(without_addresses, parts)))
        case _:
            return test
