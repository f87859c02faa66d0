"""What a file makes of an empty installation, in memory: there is nothing that a write could remove."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION
from gatehouse.permissions.model import central
from gatehouse.permissions.model.facts import ApplicationModel, Assignment, ProjectModel, ScopeHoldings
from gatehouse.permissions.model.rules import ROOT
from gatehouse.provision.model import (
    AddApplication,
    AddGroup,
    AddProject,
    AddServiceAccount,
    AddUser,
    ChangeApplication,
    ChangeProject,
    ChangeRecords,
    ChangeSchema,
    FileRun,
    PermissionState,
    StoredState,
    Write,
)


def empty_state(now: int) -> StoredState:
    """An installation with application 1 and no users."""
    own = ApplicationModel(
        application=central.application(now),
        schema=central.schema(now),
        roles={role.key: role for role in central.roles()},
    )
    return StoredState(permissions=PermissionState().with_application(own))


def run_on_empty_installation(start: Callable[[StoredState], FileRun], now: int) -> StoredState:
    """Return what the file makes. Raises Unfit."""
    state = empty_state(now)
    run = start(state)
    try:
        writes: Sequence[Write] = next(run)
        while True:
            for write in writes:
                state = with_write(state, write)
            state = replace(state, permissions=with_resources(state.permissions))
            writes = run.send(state)
    except StopIteration:
        return state


def with_write(state: StoredState, write: Write) -> StoredState:
    """Return the state with what the write adds or fills."""
    if isinstance(write, AddUser):
        state = replace(state, users=(*state.users, write.user))
    return replace(state, permissions=with_permission_write(state.permissions, write))


def with_permission_write(permissions: PermissionState, write: Write) -> PermissionState:
    match write:
        case AddUser(user, administrator) if administrator:
            record = permissions.record(CENTRAL_APPLICATION, user.user_id)
            roles = ScopeHoldings(roles=(Assignment(role=ADMINISTRATOR_ROLE),))
            permissions = permissions.with_records([record.with_holdings(ROOT, roles)])
        case AddProject(project) | ChangeProject(_, project):
            permissions = permissions.with_project(project)
        case AddGroup(group):
            permissions = permissions.with_group(group)
        case AddApplication(model) | ChangeSchema(_, model, _):
            permissions = permissions.with_application(model)
        case ChangeApplication(_, after):
            model = permissions.applications[after.application_id]
            permissions = permissions.with_application(replace(model, application=after))
        case ChangeRecords(_, records):
            permissions = permissions.with_records(records)
        case AddServiceAccount(account):
            accounts = {**permissions.service_accounts, account.user_id: account}
            permissions = replace(permissions, service_accounts=accounts)
        case _:
            pass  # clients, settings and keys, which no permission depends on
    return permissions


def with_resources(permissions: PermissionState) -> PermissionState:
    """Return the state with the applications and services of each project."""
    projects = {key: project_with_resources(model, permissions) for key, model in permissions.projects.items()}
    return replace(permissions, projects=projects)


def project_with_resources(model: ProjectModel, permissions: PermissionState) -> ProjectModel:
    project_id = model.project.project_id
    applications = [one.application for one in permissions.applications.values()]
    return replace(
        model,
        applications=frozenset(one.application_id for one in applications if one.project_id == project_id),
        services=frozenset(
            one.application_id
            for one in applications
            if one.application_id in model.project.settings.services and one.is_connectable_to(project_id)
        ),
    )
