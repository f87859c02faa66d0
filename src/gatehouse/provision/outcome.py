"""What will be stored once changes are made: what the next section of a file builds on. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar, assert_never

from gatehouse.accounts.model import ADMINISTRATOR, User
from gatehouse.permissions.facts import ApplicationModel, ProjectModel
from gatehouse.permissions.model.access_key import AccessKey
from gatehouse.permissions.model.application import CENTRAL_ID
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import GroupGrant, Project
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.scope import ROOT, Scope, group_scope
from gatehouse.permissions.model.user_record import Assignment, Holdings, UserRecord
from gatehouse.provision.model import (
    Act,
    AddApplication,
    AddClient,
    AddGroup,
    AddProject,
    AddPublicKey,
    AddServiceAccount,
    AddUser,
    ChangeApplication,
    ChangeClient,
    ChangeGroup,
    ChangeProject,
    ChangeRecords,
    ChangeSchema,
    ChangeServiceAccount,
    ChangeUser,
    PutAccessKey,
    RemoveGroup,
    RemoveUser,
    State,
    World,
    WorldAct,
)

K = TypeVar("K")
V = TypeVar("V")


def after(state: State, acts: Iterable[Act]) -> State:
    """Clients are left as they are: nothing builds on them."""
    for act in acts:
        state = after_one(state, act)
    return state


def after_one(state: State, act: Act) -> State:
    match act:
        case AddUser(user, administrator) | ChangeUser(user, administrator, _):
            others = tuple(one for one in state.users if one.user_id != user.user_id)
            world = state.world if administrator is None else with_administrator(state.world, user, administrator)
            return replace(state, users=(*others, user), world=world)
        case RemoveUser(user):
            left = tuple(one for one in state.users if one.user_id != user.user_id)
            return replace(state, users=left, world=without_user(state.world, user.user_id))
        case AddClient() | ChangeClient():
            return state
        case _:
            return replace(state, world=world_after(state.world, act))


def world_after(world: World, act: WorldAct) -> World:
    match act:
        case AddProject() | ChangeProject() | AddGroup() | ChangeGroup() | RemoveGroup():
            return structure_after(world, act)
        case AddApplication() | ChangeApplication() | ChangeSchema() | PutAccessKey() | AddPublicKey():
            return applications_after(world, act)
        case ChangeRecords(_, after_all):
            changed = {(one.application_id, one.user_id): one for one in after_all}
            return replace(world, records={**world.records, **changed})
        case AddServiceAccount(account) | ChangeServiceAccount(_, account):
            return replace(world, service_accounts=put(world.service_accounts, account.user_id, account))
        case _:
            assert_never(act)


def structure_after(world: World, act: AddProject | ChangeProject | AddGroup | ChangeGroup | RemoveGroup) -> World:
    match act:
        case AddProject(project) | ChangeProject(_, project):
            return with_project(world, project)
        case AddGroup(group) | ChangeGroup(_, group):
            return with_groups(world, group.project_id, lambda groups: put(groups, group.group_id, group))
        case RemoveGroup(group):
            left = with_project(world, without_group(world.projects[group.project_id].project, group.group_id))
            left = with_groups(left, group.project_id, lambda groups: without(groups, group.group_id))
            gone = group_scope(group.project_id, group.group_id)
            return with_records(left, lambda record: replace(record, scopes=without(record.scopes, gone)))
        case _:
            assert_never(act)


def applications_after(
    world: World, act: AddApplication | ChangeApplication | ChangeSchema | PutAccessKey | AddPublicKey
) -> World:
    match act:
        case AddApplication(model):
            number = model.application.application_id
            return replace(
                world,
                applications=put(world.applications, number, model),
                spent_application_ids=world.spent_application_ids | {number},
            )
        case ChangeApplication(_, application):
            model = replace(world.applications[application.application_id], application=application)
            return replace(world, applications=put(world.applications, application.application_id, model))
        case ChangeSchema(before, model):
            return with_schema(world, before, model)
        case PutAccessKey(before, key):
            return replace(
                world, access_keys=put(world.access_keys, key.application_id, keys_after(world, before, key))
            )
        case AddPublicKey(key):
            keys = (*world.public_keys.get(key.application_id, ()), key)
            return replace(world, public_keys=put(world.public_keys, key.application_id, keys))
        case _:
            assert_never(act)


def put(found: Mapping[K, V], key: K, value: V) -> dict[K, V]:
    return {**found, key: value}


def without(found: Mapping[K, V], gone: K) -> dict[K, V]:
    return {key: value for key, value in found.items() if key != gone}


def with_records(world: World, change: Callable[[UserRecord], UserRecord]) -> World:
    return replace(world, records={place: change(record) for place, record in world.records.items()})


def with_administrator(world: World, user: User, holds: bool) -> World:  # noqa: FBT001 - a value of the act
    record = world.record(CENTRAL_ID, user.user_id)
    kept = tuple(one for one in record.root.roles if one.role != ADMINISTRATOR)
    roles = (*kept, Assignment(role=ADMINISTRATOR)) if holds else kept
    changed = with_holdings(record, ROOT, replace(record.root, roles=roles))
    return replace(world, records=put(world.records, (CENTRAL_ID, user.user_id), changed))


def with_holdings(record: UserRecord, scope: Scope, held: Holdings) -> UserRecord:
    """The record with this in the scope; scopes in which nothing is held are left out."""
    scopes = {**record.scopes, scope: held}
    return replace(record, scopes={place: one for place, one in scopes.items() if not one.is_empty})


def without_user(world: World, user_id: str) -> World:
    records = {place: record for place, record in world.records.items() if record.user_id != user_id}
    projects = {
        project_id: replace(
            model,
            groups={
                key: replace(group, users=tuple(one for one in group.users if one != user_id))
                for key, group in model.groups.items()
            },
        )
        for project_id, model in world.projects.items()
    }
    return replace(world, records=records, projects=projects)


def with_project(world: World, project: Project) -> World:
    known = world.projects.get(project.project_id)
    groups = {} if known is None else known.groups
    model = ProjectModel(project=project, groups=groups)
    return replace(world, projects=put(world.projects, project.project_id, model))


def with_groups(world: World, project_id: str, change: Callable[[Mapping[str, Group]], Mapping[str, Group]]) -> World:
    model = world.projects[project_id]
    changed = replace(model, groups=change(model.groups))
    return replace(world, projects=put(world.projects, project_id, changed))


def without_group(project: Project, group_id: str) -> Project:
    """Grants to it, and its places in lists, go with a group."""
    services = {
        number: tuple(grant for grant in grants if grant.group_id != group_id)
        for number, grants in project.settings.services.items()
    }
    return replace(
        project,
        settings=replace(project.settings, services=services),
        allow=tuple(one for one in project.allow if one != group_id),
        disallow=tuple(one for one in project.disallow if one != group_id),
    )


def with_schema(world: World, before: ApplicationModel, model: ApplicationModel) -> World:
    """Roles that are gone are held by nobody, those that became protected by nobody in a project (interface §3)."""
    number = model.application.application_id
    gone = before.roles.keys() - model.roles.keys()
    shut = {key for key, role in model.roles.items() if role.protected and is_public(before.roles.get(key))}
    projects = {
        project_id: replace(one, project=without_grants(one.project, number, gone | shut))
        for project_id, one in world.projects.items()
    }
    changed = replace(world, applications=put(world.applications, number, model), projects=projects)
    if not gone | shut:
        return changed
    return with_records(changed, lambda record: without_roles(record, number, gone, shut))


def is_public(role: Role | None) -> bool:
    return role is not None and not role.protected


def without_grants(project: Project, number: int, keys: Collection[str]) -> Project:
    grants = project.settings.services.get(number)
    if not keys or grants is None or number == CENTRAL_ID:
        return project
    left = tuple(one for grant in grants if (one := narrowed(grant, keys)).roles)
    return replace(project, settings=replace(project.settings, services=put(project.settings.services, number, left)))


def narrowed(grant: GroupGrant, keys: Collection[str]) -> GroupGrant:
    return replace(grant, roles=tuple(key for key in grant.roles if key not in keys))


def without_roles(record: UserRecord, number: int, gone: Collection[str], shut: Collection[str]) -> UserRecord:
    if record.application_id != number:
        return record
    for scope, held in record.scopes.items():
        lost = gone if scope.is_root else {*gone, *shut}
        roles = tuple(one for one in held.roles if one.role not in lost)
        record = with_holdings(record, scope, replace(held, roles=roles))
    return record


def keys_after(world: World, before: AccessKey | None, key: AccessKey) -> tuple[AccessKey, ...]:
    kept = world.access_keys.get(key.application_id, ())
    return (*(one for one in kept if before is None or one.key_id != before.key_id), key)
