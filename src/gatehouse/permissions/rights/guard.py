"""Who may do what to applications, projects, groups and their schemas: the table of interface §5.5.

An operation is allowed when the caller holds everything in one of its rows. `can_administer` allows all of them;
through a service of another application than 1 it fulfills the rows, so an operation without any stays closed (R6).
Details of an operation (which roles may be assigned, which sections of a record read) are decided by its command,
from the same rights.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from gatehouse.permissions.errors import NoRight
from gatehouse.permissions.model.rules import Scope, application_scope, group_scope, service_scope
from gatehouse.permissions.rights.rights import Rights, ServiceReach


class Operation(Enum):
    APPLICATION_GET = auto()
    APPLICATION_SAVE = auto()
    APPLICATION_CREATE = auto()  # outside a project
    APPLICATION_CREATE_IN_PROJECT = auto()
    APPLICATION_DELETE = auto()
    APPLICATION_MOVE_IN = auto()  # checked for the new project
    APPLICATION_MOVE_OUT = auto()  # checked for the old project
    APPLICATION_TAGS = auto()
    SERVICE_META = auto()
    APPLICATION_KEYS = auto()
    ACCESS_KEYS = auto()
    SCHEMA_GET = auto()
    SCHEMA_SAVE = auto()
    ROLES_GET = auto()
    ROLE_NAMES = auto()
    ROLES_SAVE = auto()
    PUBLISH = auto()
    PROJECT_GET = auto()
    PROJECT_SAVE = auto()
    PROJECT_DELETE = auto()
    PROJECT_TAGS = auto()
    MEMBERSHIP_GET = auto()
    MEMBERSHIP_SAVE = auto()
    SERVICE_ACCOUNTS = auto()
    SERVICE_MANAGE = auto()
    GROUP_LIST = auto()  # even if there is none in it yet
    GROUP_GET = auto()
    GROUP_SAVE = auto()
    GROUP_DELETE = auto()
    GROUP_ACCESS = auto()
    GROUP_TAGS = auto()
    OBJECTS_SAVE = auto()
    BAN_FROM_APPLICATION = auto()
    BAN_FROM_PROJECT = auto()
    ADMINISTER = auto()


class AtRoot(Struct, frozen=True):
    rule: str


class InProject(Struct, frozen=True):
    rule: str


class OnApplication(Struct, frozen=True):
    rule: str


class OnService(Struct, frozen=True):
    rule: str


class OnGroup(Struct, frozen=True):
    rule: str


class SecretRule(Struct, frozen=True):
    """secret_data.application of the application in question."""

    rule: str


class AnyRoleOnApplication(Struct, frozen=True):
    pass


Opener: TypeAlias = AtRoot | InProject | OnApplication | OnService | OnGroup | SecretRule | AnyRoleOnApplication

MANAGES_APPLICATIONS: Final = InProject("project.can_manage_applications")
MANAGES_PROJECT: Final = InProject("project.can_manage_project")
MANAGES_GROUPS: Final = InProject("project.can_manage_groups")
VIEWS_PROJECT: Final = InProject("project.can_view_project")
MANAGES_GROUP: Final = OnGroup("group.can_manage_group")
MANAGES_EVERY_GROUP: Final = InProject("group.can_manage_group")
PUBLISHES_SERVICES: Final = AtRoot("can_publish_services")
MAY_SAVE: Final = SecretRule("canSave")
MAY_CREATE_JWT: Final = SecretRule("canCreateJwt")

OPENS: Final[Mapping[Operation, tuple[tuple[Opener, ...], ...]]] = {
    Operation.APPLICATION_GET: ((MANAGES_APPLICATIONS,), (SecretRule("canRead"),), (AnyRoleOnApplication(),)),
    Operation.APPLICATION_SAVE: ((MANAGES_APPLICATIONS,), (MAY_SAVE,)),
    Operation.APPLICATION_CREATE: ((AtRoot("can_create_app"),),),
    Operation.APPLICATION_CREATE_IN_PROJECT: ((MANAGES_APPLICATIONS,),),
    Operation.APPLICATION_DELETE: ((AtRoot("can_remove_apps"),), (MANAGES_APPLICATIONS,)),
    Operation.APPLICATION_MOVE_IN: ((MANAGES_APPLICATIONS,),),
    Operation.APPLICATION_MOVE_OUT: ((MANAGES_APPLICATIONS,),),
    Operation.APPLICATION_TAGS: ((PUBLISHES_SERVICES, MANAGES_APPLICATIONS), (PUBLISHES_SERVICES, MAY_SAVE)),
    Operation.SERVICE_META: ((PUBLISHES_SERVICES, MANAGES_APPLICATIONS), (PUBLISHES_SERVICES, MAY_SAVE)),
    Operation.APPLICATION_KEYS: ((MAY_CREATE_JWT,),),
    Operation.ACCESS_KEYS: ((MAY_CREATE_JWT,), (OnApplication("app.can_manage_app_api_keys"),)),
    Operation.SCHEMA_GET: ((SecretRule("canReadSchema"),),),
    Operation.SCHEMA_SAVE: ((SecretRule("canModifySchema"),),),
    Operation.ROLES_GET: ((SecretRule("canReadSchema"),),),
    Operation.ROLE_NAMES: ((SecretRule("canSeeRoleList"),), (SecretRule("canReadSchema"),)),
    Operation.ROLES_SAVE: ((SecretRule("canModifySchema"),), (MANAGES_APPLICATIONS,)),
    Operation.PUBLISH: ((AtRoot("can_create_projects"),),),
    Operation.PROJECT_GET: ((VIEWS_PROJECT,),),
    Operation.PROJECT_SAVE: ((MANAGES_PROJECT,),),
    Operation.PROJECT_DELETE: ((InProject("project.can_remove_project"),),),
    Operation.PROJECT_TAGS: ((MANAGES_PROJECT,),),
    Operation.MEMBERSHIP_GET: ((VIEWS_PROJECT,),),
    Operation.MEMBERSHIP_SAVE: ((MANAGES_PROJECT,),),
    Operation.SERVICE_ACCOUNTS: ((MANAGES_PROJECT,),),
    Operation.SERVICE_MANAGE: ((OnService("srv.can_manage_service"),),),
    Operation.GROUP_LIST: ((MANAGES_EVERY_GROUP,), (MANAGES_GROUPS,)),
    Operation.GROUP_GET: ((MANAGES_GROUP,),),
    Operation.GROUP_SAVE: ((MANAGES_GROUPS,),),
    Operation.GROUP_DELETE: ((MANAGES_GROUPS,),),
    Operation.GROUP_ACCESS: ((MANAGES_GROUP,),),
    Operation.GROUP_TAGS: ((MANAGES_GROUPS,),),
    Operation.OBJECTS_SAVE: ((OnApplication("app.can_manage_objects"),),),
    Operation.BAN_FROM_APPLICATION: ((OnApplication("app.can_ban"),),),
    Operation.BAN_FROM_PROJECT: ((MANAGES_PROJECT,),),
    Operation.ADMINISTER: (),
}


class GuardTarget(Struct, frozen=True, kw_only=True):
    """What a request is about; the project of an application or group is the stored one (R5)."""

    application_id: int | None = None
    project_id: str | None = None
    group_id: str | None = None


NO_TARGET: Final = GuardTarget()


def require_operation(rights: Rights, operation: Operation, target: GuardTarget = NO_TARGET) -> None:
    """Raise NoRight unless the caller holds everything in one of the operation's rows."""
    if not is_open(rights, operation, target):
        raise NoRight(f"{operation.name} on {target}")


def refuse_vouched_caller(rights: Rights) -> None:
    """Raise NoRight if a service vouches for the caller: the new object would reach further than the service."""
    if rights.service_reach is not None:
        raise NoRight(f"not allowed through application {rights.service_reach.application_id}")


def is_open(rights: Rights, operation: Operation, target: GuardTarget = NO_TARGET) -> bool:
    if not is_within(rights.service_reach, target):
        return False
    return rights.administers or any(
        all(opener_holds(rights, opener, target) for opener in row) for row in OPENS[operation]
    )


def is_within(reach: ServiceReach | None, target: GuardTarget) -> bool:
    """A person for whom a service vouches has the smaller of their own rights and that service's reach (R6)."""
    if reach is None:
        return True
    if target.application_id is not None:
        return target.application_id == reach.application_id
    return target.project_id is not None and target.project_id == reach.project_id


def opener_holds(rights: Rights, opener: Opener, target: GuardTarget) -> bool:
    match opener:
        case AtRoot(rule):
            return rights.holds_at_root(rule)
        case SecretRule(rule):
            return target.application_id is not None and rights.has_application_rule(rule)
        case AnyRoleOnApplication():
            scope = scope_for(opener, target)
            return scope is not None and rights.has_any_role_on(scope)
        case InProject(rule) | OnApplication(rule) | OnService(rule) | OnGroup(rule):
            scope = scope_for(opener, target)
            return scope is not None and rights.holds_in(scope, rule)
        case _:
            assert_never(opener)


def scope_for(opener: Opener, target: GuardTarget) -> Scope | None:
    """Return the scope in which the rule must be held; None when the request has no such target."""
    project, application, group = target.project_id, target.application_id, target.group_id
    if not project:
        return None
    match opener:
        case InProject():
            return Scope(project)
        case OnApplication() | AnyRoleOnApplication():
            return None if application is None else application_scope(project, application)
        case OnService():
            return None if application is None else service_scope(project, application)
        case OnGroup():
            return None if group is None else group_scope(project, group)
        case _:
            return None
