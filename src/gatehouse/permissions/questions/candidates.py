"""Find who may hold a rule or a role without reading everyone: a superset, to be evaluated exactly."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final

from msgspec.structs import fields, replace

from gatehouse.accounts.system_tags import SYSTEM_TAGS
from gatehouse.kernel.background import OFF_LOOP_WEIGHT, run_off_loop
from gatehouse.kernel.errors import Unavailable
from gatehouse.permissions.evaluation.compiled import CompiledModel, CompiledRole, compiled_model
from gatehouse.permissions.model.candidates import ApplicationSnapshot, CandidateFilter, CandidatePage
from gatehouse.permissions.model.condition import HOLDS_FOR_NO_ONE, AllOf, AnyOf, ConditionTest, FromNetwork
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.model.index_keys import ANYONE, IndexKey, condition_index_keys, group_index_keys
from gatehouse.permissions.model.role import ConditionMode
from gatehouse.permissions.model.rules import Rule, Scope
from gatehouse.permissions.store import CandidateStore

MAX_ATTEMPTS: Final = 20  # each fails only if an administrator saves at the same time


async def load_candidate_page(
    store: CandidateStore,
    application_id: int,
    project_id: str,
    find_candidates: Callable[[ApplicationSnapshot], CandidateFilter],
    *,
    after: str,
    limit: int,
    known: ApplicationModel | None,
) -> CandidatePage:
    """A page of the candidates found in one snapshot of the application, read together with the same snapshot.

    `known`: the application as it was read before; it is not compiled again while it is unchanged.
    """
    projects = frozenset({project_id}) - {""}
    for _ in range(MAX_ATTEMPTS):
        snapshot = await store.application_snapshot(application_id, projects, known=known)
        among = await run_off_loop(OFF_LOOP_WEIGHT, find_candidates, snapshot)
        page = await store.candidate_page(among, projects, after=after, limit=limit, known=snapshot.model)
        if snapshot.is_part_of(page.snapshot):
            return page
    raise Unavailable("the permission model changes too fast to be read")


def candidates_holding_rule(snapshot: ApplicationSnapshot, scopes: Iterable[Scope], rule: Rule) -> CandidateFilter:
    """`scopes`: where the rule must be held to count."""
    model = compiled_model(snapshot.model)
    roles = [role for role in model.roles.values() if rule in role.verdicts.yes]
    candidates = no_candidates(snapshot)
    for holding_scope in scopes:
        if holding_scope.is_root:
            default = rule in model.schema.yes or any(role.role.is_default for role in roles)
            candidates = union(
                candidates,
                union(
                    candidates_at_root(snapshot, roles),
                    replace(no_candidates(snapshot), entries=True, everyone=default),
                ),
            )
        else:
            candidates = union(
                candidates,
                candidates_in_project(snapshot, holding_scope.project_id, (role.role.key for role in roles)),
            )
    return candidates


def candidates_holding_role(snapshot: ApplicationSnapshot, scope: Scope, key: str) -> CandidateFilter:
    role = compiled_model(snapshot.model).roles[key]
    if scope.is_root:
        return union(
            candidates_at_root(snapshot, [role]), replace(no_candidates(snapshot), everyone=role.role.is_default)
        )
    return candidates_in_project(snapshot, scope.project_id, [key])


def candidates_touched_by_roles(
    snapshot: ApplicationSnapshot, model: CompiledModel, keys: Iterable[str]
) -> CandidateFilter:
    """Everyone who may hold one of these roles anywhere."""
    known = model.roles
    roles = [known[key] for key in keys if key in known]
    default = replace(no_candidates(snapshot), everyone=any(role.role.is_default for role in roles))
    candidates = union(candidates_at_root(snapshot, roles), default)
    for project_id in snapshot.structure.connecting.get(snapshot.model.application.application_id, ()):
        groups = granted_group_keys(snapshot, project_id, [role.role.key for role in roles])
        candidates = union(candidates, candidates_with_keys(snapshot, groups))
    return candidates


def candidates_in_project(
    snapshot: ApplicationSnapshot, project_id: str, keys: Iterable[str] | None = None
) -> CandidateFilter:
    """Everyone who may hold something in the project; `keys`: only groups with these roles count."""
    members = candidates_with_keys(snapshot, granted_group_keys(snapshot, project_id, keys))
    return union(members, replace(no_candidates(snapshot), projects=frozenset({project_id})))


def candidates_at_root(snapshot: ApplicationSnapshot, roles: Iterable[CompiledRole]) -> CandidateFilter:
    """People who are assigned one of the roles anywhere, or meet its condition."""
    compiled_roles = list(roles)
    conditions = (
        condition_index_keys(without_addresses(role.role.condition.test))
        for role in compiled_roles
        if role.role.condition is not None and role.role.condition_mode is ConditionMode.GRANT
    )
    candidates = candidates_with_keys(snapshot, frozenset(chain.from_iterable(conditions)))
    return replace(candidates, roles=frozenset(role.role.key for role in compiled_roles))


def granted_group_keys(
    snapshot: ApplicationSnapshot, project_id: str, keys: Iterable[str] | None
) -> frozenset[IndexKey]:
    """Index keys of the groups that the project grants one of these roles, or any."""
    project = snapshot.structure.projects.get(project_id)
    if project is None:
        return frozenset()
    wanted = None if keys is None else frozenset(keys)
    grants = project.project.settings.services.get(snapshot.model.application.application_id, ())
    named = {grant.group_id for grant in grants if wanted is None or wanted & set(grant.roles)}
    groups = (project.groups[group_id] for group_id in named if group_id in project.groups)
    return frozenset(chain.from_iterable(group_index_keys(group) for group in groups))


def candidates_with_keys(snapshot: ApplicationSnapshot, index_keys: frozenset[IndexKey]) -> CandidateFilter:
    def of(kind: str) -> frozenset[str]:
        return frozenset(value for name, value in index_keys if name == kind)

    tags = of("tag")
    return replace(
        no_candidates(snapshot),
        everyone=ANYONE in index_keys or bool(tags & SYSTEM_TAGS),  # these are not stored in a table
        user_ids=of("uid"),
        groups=of("group"),
        domains=of("domain"),
        tags=tags - SYSTEM_TAGS,
        purchases=of("purchase"),
    )


def no_candidates(snapshot: ApplicationSnapshot) -> CandidateFilter:
    return CandidateFilter(application_id=snapshot.model.application.application_id)


def union(first: CandidateFilter, other: CandidateFilter) -> CandidateFilter:
    """The candidates of either."""
    names = (each.name for each in fields(CandidateFilter) if each.name != "application_id")
    return replace(first, **{name: getattr(first, name) | getattr(other, name) for name in names})


def without_addresses(test: ConditionTest) -> ConditionTest:
    """The test for a person whose address is not known (R5)."""
    match test:
        case FromNetwork():
            return HOLDS_FOR_NO_ONE
        case AllOf(parts):
            return AllOf(tuple(map(without_addresses, parts)))
        case AnyOf(parts):
            return AnyOf(tuple(map(without_addresses, parts)))
        case _:
            return test
