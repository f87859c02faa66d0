"""The state after writes, which the next section of a file builds on. Pure.

Includes side effects, such as removing the assignments of a role that is removed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar, assert_never

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel, Assignment, ProjectModel, ScopeHoldings, UserRecord
from gatehouse.permissions.model.project import Group, GroupGrant, Project
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import ROOT, Scope, application_scope, group_scope, service_scope
from gatehouse.provision.model import (
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
    PermissionState,
    PermissionWrite,
    PutAccessKey,
    PutBan,
    PutImage,
    PutSetting,
    RemoveGroup,
    RemoveUser,
    StoredState,
    Write,
)

K = TypeVar("K")
V = TypeVar("V")


def state_after(state: StoredState, writes: Iterable[Write]) -> StoredState:
    """Clients, settings, bans and images stay as they are: no other section refers to them."""
    users = {user.user_id: user for user in state.users}
    after = StateAfter(state.permissions)
    for write in writes:
        match write:
            case AddUser(user, administrator) | ChangeUser(user, administrator, _):
                users[user.user_id] = user
                if administrator is not None:
                    after.set_administrator(user.user_id, holds=administrator)
            case RemoveUser(user):
                users.pop(user.user_id, None)
                after.remove_user(user.user_id)
            case AddClient() | ChangeClient() | PutSetting() | PutBan() | PutImage():
                pass
            case _:
                after.apply_write(write)
    return replace(state, users=tuple(users.values()), permissions=after.permissions())


class StateAfter:
    """A PermissionState that writes are applied to."""

    def __init__(self, permissions: PermissionState) -> None:
        self._projects = dict(permissions.projects)
        self._applications = dict(permissions.applications)
        self._spent = set(permissions.spent_application_ids)
        self._access_keys = dict(permissions.access_keys)
        self._public_keys = dict(permissions.public_keys)
        self._accounts = dict(permissions.service_accounts)
        self._records = dict(permissions.records)

    def permissions(self) -> PermissionState:
        return PermissionState(
            projects=self._projects,
            applications=self._applications,
            spent_application_ids=frozenset(self._spent),
            access_keys=self._access_keys,
            public_keys=self._public_keys,
            service_accounts=self._accounts,
            records=self._records,
        )

    def apply_write(self, write: PermissionWrite) -> None:
        match write:
            case AddProject() | ChangeProject() | AddGroup() | ChangeGroup() | RemoveGroup():
                self._change_structure(write)
            case AddApplication() | ChangeApplication() | ChangeSchema() | PutAccessKey() | AddPublicKey():
                self._change_application(write)
            case ChangeRecords(_, records):
                for record in records:
                    self._records[record.application_id, record.user_id] = record
            case AddServiceAccount(account) | ChangeServiceAccount(_, account):
                self._accounts[account.user_id] = account
            case _:
                assert_never(write)

    def set_administrator(self, user_id: str, *, holds: bool) -> None:
        place = (CENTRAL_APPLICATION, user_id)
        record = self._records.get(place) or UserRecord(application_id=CENTRAL_APPLICATION, user_id=user_id)
        kept = tuple(role for role in record.root.roles if role.role != ADMINISTRATOR_ROLE)
        if holds or kept != record.root.roles:
            roles = (*kept, Assignment(role=ADMINISTRATOR_ROLE)) if holds else kept
            self._records[place] = with_holdings(record, ROOT, replace(record.root, roles=roles))

    def remove_user(self, user_id: str) -> None:
        for number in self._applications:
            self._records.pop((number, user_id), None)
        for project_id, model in self._projects.items():
            if any(user_id in group.users for group in model.groups.values()):
                groups = {key: without_member(group, user_id) for key, group in model.groups.items()}
                self._projects[project_id] = replace(model, groups=groups)

    def _change_structure(self, write: AddProject | ChangeProject | AddGroup | ChangeGroup | RemoveGroup) -> None:
        match write:
            case AddProject(project) | ChangeProject(_, project):
                new = ProjectModel(project=project, groups={}, applications=frozenset(), services=frozenset())
                self._put_project(replace(self._projects.get(project.project_id, new), project=project))
            case AddGroup(group) | ChangeGroup(_, group):
                model = self._projects[group.project_id]
                self._projects[group.project_id] = replace(model, groups={**model.groups, group.group_id: group})
            case RemoveGroup(group):
                self._remove_group(group)
            case _:
                assert_never(write)

    def _remove_group(self, group: Group) -> None:
        model = self._projects[group.project_id]
        self._projects[group.project_id] = replace(
            model,
            project=without_group(model.project, group.group_id),
            groups=without_key(model.groups, group.group_id),
        )
        gone = group_scope(group.project_id, group.group_id)
        self._change_records(lambda record: without_scopes(record, {gone}))

    def _change_application(
        self, write: AddApplication | ChangeApplication | ChangeSchema | PutAccessKey | AddPublicKey
    ) -> None:
        match write:
            case AddApplication(model):
                self._applications[model.application.application_id] = model
                self._spent.add(model.application.application_id)
                self._update_projects(None, model.application)
            case ChangeApplication(was, application):
                self._edit_application(was, application)
            case ChangeSchema(before, model, _):
                self._change_schema(before, model)
            case PutAccessKey(old, key):
                kept = self._access_keys.get(key.application_id, ())
                left = (one for one in kept if old is None or one.key_id != old.key_id)
                self._access_keys[key.application_id] = (*left, key)
            case AddPublicKey(public):
                known = self._public_keys.get(public.application_id, ())
                self._public_keys[public.application_id] = (*known, public)
            case _:
                assert_never(write)

    def _edit_application(self, before: Application, after: Application) -> None:
        """What is held on it in its project is removed when it leaves, and as a service when it is removed (R5)."""
        number = after.application_id
        self._applications[number] = replace(self._applications[number], application=after)
        self._update_projects(before, after)
        gone = {service_scope(project_id, number) for project_id in self._projects} if after.removed else set()
        if before.project_id is not None and (after.removed or after.project_id != before.project_id):
            gone.add(application_scope(before.project_id, number))
        if gone:
            self._change_records(lambda record: without_scopes(record, gone))

    def _update_projects(self, before: Application | None, after: Application) -> None:
        """Update the projects that have it, had it or connect it."""
        number = after.application_id
        if before is not None and before.project_id in self._projects:
            left = self._projects[before.project_id]
            self._projects[before.project_id] = replace(left, applications=left.applications - {number})
        if after.project_id in self._projects and not after.removed:
            home = self._projects[after.project_id]
            self._projects[after.project_id] = replace(home, applications=home.applications | {number})
        for model in list(self._projects.values()):
            if number in model.project.settings.services:
                self._put_project(model)

    def _put_project(self, model: ProjectModel) -> None:
        """Store the project with the connected services that it may still connect."""
        project = model.project
        known = {number: self._applications.get(number) for number in project.settings.services}
        usable = (one.application for one in known.values() if one is not None)
        services = frozenset(one.application_id for one in usable if one.is_connectable_to(project.project_id))
        self._projects[project.project_id] = replace(model, services=services)

    def _change_schema(self, before: ApplicationModel, model: ApplicationModel) -> None:
        """Removed roles lose all holders, roles that became protected lose those in projects (§3)."""
        number = model.application.application_id
        self._applications[number] = model
        gone = before.roles.keys() - model.roles.keys()
        shut = {key for key, role in model.roles.items() if role.protected and is_public(before.roles.get(key))}
        if gone | shut:
            for project_id, one in self._projects.items():
                project = without_grants(one.project, number, gone | shut)
                self._projects[project_id] = replace(one, project=project)
            self._change_records(lambda record: without_roles(record, number, gone, shut))

    def _change_records(self, change: Callable[[UserRecord], UserRecord]) -> None:
        self._records = {place: change(record) for place, record in self._records.items()}


def without_key(found: Mapping[K, V], gone: K) -> dict[K, V]:
    return {key: value for key, value in found.items() if key != gone}


def without_scopes(record: UserRecord, gone: Collection[Scope]) -> UserRecord:
    return replace(record, scopes={scope: held for scope, held in record.scopes.items() if scope not in gone})


def with_holdings(record: UserRecord, scope: Scope, held: ScopeHoldings) -> UserRecord:
    """The record with these holdings in the scope; empty scopes are left out."""
    scopes = {**record.scopes, scope: held}
    return replace(record, scopes={place: one for place, one in scopes.items() if not one.is_empty})


def without_member(group: Group, user_id: str) -> Group:
    return replace(group, users=tuple(member_id for member_id in group.users if member_id != user_id))


def without_group(project: Project, group_id: str) -> Project:
    """Remove the grants to the group and its list entries."""
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


def is_public(role: Role | None) -> bool:
    return role is not None and not role.protected


def without_grants(project: Project, number: int, keys: Collection[str]) -> Project:
    grants = project.settings.services.get(number)
    if grants is None:
        return project
    left = tuple(one for grant in grants if (one := without_granted_roles(grant, keys)).roles)
    return replace(project, settings=replace(project.settings, services={**project.settings.services, number: left}))


def without_granted_roles(grant: GroupGrant, keys: Collection[str]) -> GroupGrant:
    return replace(grant, roles=tuple(key for key in grant.roles if key not in keys))


def without_roles(record: UserRecord, number: int, gone: Collection[str], shut: Collection[str]) -> UserRecord:
    if record.application_id != number:
        return record
    for scope, held in record.scopes.items():
        lost = gone if scope.is_root else {*gone, *shut}
        roles = tuple(role for role in held.roles if role.role not in lost)
        record = with_holdings(record, scope, replace(held, roles=roles))
    return record
