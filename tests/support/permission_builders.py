"""Builders of small permission models; a test passes only the fields it is about."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from gatehouse.accounts.model import User
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.permissions.model import central
from gatehouse.permissions.model.access_key import AccessKey
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.facts import ApplicationModel, Assignment, ProjectModel, ScopeHoldings, UserRecord
from gatehouse.permissions.model.group import Group
from gatehouse.permissions.model.project import GroupGrant, Project, ProjectSettings
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.rules import Scope
from gatehouse.permissions.model.schema import ApplicationSchema
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.permissions.store import Change, EditResult, NewApplication, T
from gatehouse.storage.database import Storage
from tests.support.builders import NOW, a_record, a_user

GROUP = "0" * 23 + "a"
P = Scope("mind_games")


async def model_version(storage: Storage, project_id: str = "mind_games") -> int:
    return (await storage.permissions.projects([project_id]))[project_id].version


def a_project(title: str = "Mind Games", **fields: Any) -> Project:
    project = Project(project_id=title.lower().replace(" ", "_"), title=title, author="1000000001", created_at=NOW)
    return replace(project, **fields)


def a_group(group_id: str = GROUP, title: str = "Testers", **fields: Any) -> Group:
    return replace(Group(group_id=group_id, project_id="mind_games", title=title, created_at=NOW), **fields)


def an_application(application_id: int = 0, name: str = "Shop", **fields: Any) -> Application:
    return replace(Application(application_id=application_id, name=name, created_at=NOW), **fields)


def a_role(name: str = "moderator", application_id: int = 0, **fields: Any) -> Role:
    return replace(Role(application_id=application_id, name=name), **fields)


def a_new_application(application_id: int = 0, *roles: str | Role, **fields: Any) -> NewApplication:
    named = [a_role(role) if isinstance(role, str) else role for role in roles]
    return NewApplication(
        application=an_application(application_id, **fields),
        schema=ApplicationSchema(application_id=application_id, updated_at=NOW),
        roles=[replace(role, application_id=application_id) for role in named],
    )


def an_access_key(key_id: str = "key", application_id: int = 50_001, **fields: Any) -> AccessKey:
    key = AccessKey(
        key_id=key_id,
        application_id=application_id,
        digest=key_id.encode(),
        sealed=b"sealed",
        comment="ci",
        created_at=NOW,
        modified_at=NOW,
    )
    return replace(key, **fields)


def a_service_account(user_id: str = "77", name: str = "ci", **fields: Any) -> ServiceAccount:
    account = ServiceAccount(
        user_id=user_id, project_id="mind_games", name=name, created_by="1000000001", created_at=NOW, jti="jti"
    )
    return replace(account, **fields)


def a_user_record(
    user_id: str, scopes: Mapping[Scope, Sequence[str | Assignment]], application_id: int = 1, **fields: Any
) -> UserRecord:
    record = UserRecord(
        application_id=application_id,
        user_id=user_id,
        scopes={scope: holdings_with(*roles) for scope, roles in scopes.items()},
    )
    return replace(record, **fields)


def holdings_with(*roles: str | Assignment, **fields: Any) -> ScopeHoldings:
    assignments = tuple(Assignment(role=role) if isinstance(role, str) else role for role in roles)
    return replace(ScopeHoldings(roles=assignments), **fields)


def set_fields(**fields: Any) -> Change[Any]:
    """An edit that sets these fields of the state."""
    return lambda state: EditResult(replace(state, **fields), [a_record(AuditEvent.ROLE_ASSIGNED)])


def set_roles(*roles: Role) -> Change[ApplicationModel]:
    """An edit after which the application has exactly these roles."""
    return set_fields(roles={role.key: role for role in roles})


def set_project_fields(**fields: Any) -> Change[ProjectModel]:
    """An edit that sets these fields of a project."""
    return lambda model: set_fields(project=replace(model.project, **fields))(model)


def connect_application(application_id: int, *grants: GroupGrant) -> Change[ProjectModel]:
    """An edit after which the project is connected to this application only."""
    return set_project_fields(settings=ProjectSettings(services={application_id: grants}))


def raise_in_edit(error: Exception) -> Change[Any]:
    def refuse(_state: T) -> EditResult[T]:
        raise error

    return refuse


async def install_central(storage: Storage) -> None:
    await storage.permissions.install_central(central.application(NOW), central.schema(NOW), central.roles())


async def a_person(storage: Storage, user_id: str = "1000000001", **fields: Any) -> User:
    user = a_user(user_id=user_id, login=f"{user_id}@studio.example", **fields)
    await storage.accounts.create_user(user, a_record())
    return user


async def create_application(storage: Storage, *roles: str | Role, **fields: Any) -> Application:
    return await storage.applications.create_application(
        lambda number: (a_new_application(number, *roles, **fields), [a_record()])
    )


async def publish(
    storage: Storage,
    project: Project | None = None,
    *,
    new: NewApplication | None = None,
    limit: int | None = None,
    owners: Sequence[str] = (),
    records: Callable[[int], Sequence[AuditRecord]] = lambda _: [a_record()],
) -> Project:
    created = project or a_project()
    users = [a_user_record(owner, {Scope(created.project_id): ["project_owner"]}) for owner in owners]
    return await storage.projects.publish_project(created, new, limit, users, records)
