"""Keeps applications, schemas, roles and who holds them (permissions/store.py)."""

from collections.abc import Sequence

from sqlalchemy import and_, bindparam, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import Record
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.schema import ApplicationSchema, Tree
from gatehouse.storage.audit import record
from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables import application_schemas, applications, email_secrets, role_assignments, roles

INSERT_APPLICATION = Statement(insert(applications).on_conflict_do_nothing().returning(applications.c.application_id))
INSERT_SCHEMA = Statement(insert(application_schemas).on_conflict_do_nothing())
INSERT_ROLE = Statement(insert(roles).on_conflict_do_nothing())
ROOT_ROLES = Statement(
    select(roles.c.name)
    .join(
        role_assignments,
        and_(
            role_assignments.c.application_id == roles.c.application_id,
            role_assignments.c.role_key == roles.c.role_key,
        ),
    )
    .where(
        roles.c.application_id == bindparam("application"),
        role_assignments.c.user_id == bindparam("user_id"),
        role_assignments.c.project_id == "",
        or_(role_assignments.c.expired == 0, role_assignments.c.expired > bindparam("now")),
    )
    .order_by(role_assignments.c.position)
)
NEXT_POSITION = Statement(
    select((func.coalesce(func.max(role_assignments.c.position), 0) + 1).label("position")).where(
        role_assignments.c.application_id == bindparam("application"),
        role_assignments.c.user_id == bindparam("user_id"),
        role_assignments.c.project_id == "",
    )
)
LOGIN_SECTION = Statement(
    select(application_schemas.c.login)
    .join(applications, applications.c.application_id == application_schemas.c.application_id)
    .where(applications.c.application_id == bindparam("application"), applications.c.removed.is_(False))
)
EMAIL_SECRET = Statement(
    select(email_secrets.c.created_at).where(
        email_secrets.c.application_id == bindparam("application"), email_secrets.c.digest == bindparam("digest")
    )
)
ADD_EMAIL_SECRET = Statement(insert(email_secrets))
ASSIGN_ROLE = Statement(insert(role_assignments).on_conflict_do_nothing())


def install(application: Application, schema: ApplicationSchema, central_roles: Sequence[Role]) -> Verb[None]:
    made = yield INSERT_APPLICATION(
        application_id=application.application_id,
        name=application.name,
        description=application.description,
        project_id=application.project_id,
        removed=application.removed,
        settings=application.settings,
        service_meta=application.service_meta,
        created_at=application.created_at,
        version=application.version,
    )
    if not made:
        return
    yield INSERT_SCHEMA(
        application_id=schema.application_id,
        login=schema.login,
        private_data=schema.private_data,
        public_data=schema.public_data,
        secret_data=schema.secret_data,
        version=schema.version,
        updated_at=schema.updated_at,
    )
    for role in central_roles:
        yield from add_role(role)


def add_role(role: Role) -> Verb[None]:
    yield INSERT_ROLE(
        application_id=role.application_id,
        role_key=role.key,
        name=role.name,
        description=role.description,
        protected=role.protected,
        is_default=role.default,
        condition=role.condition,
        condition_mode=role.condition_mode,
        user_limit=role.user_limit,
        params=role.params,
        meta=role.meta,
        version=role.version,
    )


def assign_root_role(application_id: int, user_id: str, role_key: str) -> Verb[None]:
    """Part of verbs that make an administrator."""
    rows = yield NEXT_POSITION(application=application_id, user_id=user_id)
    yield ASSIGN_ROLE(
        application_id=application_id,
        user_id=user_id,
        project_id="",
        resource_kind="",
        resource_id="",
        role_key=role_key,
        position=rows[0].position,
        expired=0,
        ttl=0,
    )


def login_section(application_id: int) -> Verb[Tree | None]:
    rows = yield LOGIN_SECTION(application=application_id)
    return rows[0].login if rows else None


def knows_email_secret(application_id: int, digest: bytes) -> Verb[bool]:
    return bool((yield EMAIL_SECRET(application=application_id, digest=digest)))


def add_email_secret(application_id: int, digest: bytes, now: int, entry: Record) -> Verb[None]:
    if (yield from login_section(application_id)) is None:
        raise ApplicationNotFound
    yield ADD_EMAIL_SECRET(application_id=application_id, digest=digest, created_at=now)
    yield from record(entry)


def root_roles(application_id: int, user_id: str, now: int) -> Verb[Sequence[str]]:
    rows = yield ROOT_ROLES(application=application_id, user_id=user_id, now=now)
    return [row.name for row in rows]


class PermissionStorage(Stored):
    install = act(install)
    login_section = look(login_section)
    knows_email_secret = look(knows_email_secret)
    add_email_secret = act(add_email_secret)
    root_roles = look(root_roles)
