"""Application 1, and what the login operation reads about applications."""

from collections.abc import Sequence

from sqlalchemy import and_, bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import AuditRecord
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.schema import ApplicationSchema, Tree
from gatehouse.permissions.model.service_token import EmailSecret
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.permissions.applications import insert_application, reserve_id
from gatehouse.storage.permissions.row_readers import UNEXPIRED
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.permissions import (
    application_schemas,
    applications,
    email_secrets,
    role_assignments,
    roles,
)

ROOT_ROLES = Statement(
    lambda: (
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
            UNEXPIRED,
        )
        .order_by(role_assignments.c.position)
    )
)
LOGIN_SECTION = Statement(
    lambda: (
        select(application_schemas.c.login)
        .join(applications, applications.c.application_id == application_schemas.c.application_id)
        .where(applications.c.application_id == bindparam("application"), applications.c.removed.is_(False))
    )
)
EMAIL_SECRET = Statement(
    lambda: select(email_secrets.c.created_at).where(
        email_secrets.c.application_id == bindparam("application"), email_secrets.c.digest == bindparam("digest")
    )
)
ADD_EMAIL_SECRET = Statement(lambda: insert(email_secrets))
EMAIL_SECRETS = Statement(
    lambda: (
        select(email_secrets.c.digest, email_secrets.c.created_at)
        .where(email_secrets.c.application_id == bindparam("application"))
        .order_by(email_secrets.c.created_at.desc(), email_secrets.c.digest)
    )
)
DROP_EMAIL_SECRET = Statement(
    lambda: (
        delete(email_secrets)
        .where(
            email_secrets.c.application_id == bindparam("application"), email_secrets.c.digest == bindparam("digest")
        )
        .returning(email_secrets.c.digest)
    )
)


def install_central(application: Application, schema: ApplicationSchema, central_roles: Sequence[Role]) -> Verb[None]:
    if (yield from reserve_id(application.application_id)):
        yield from insert_application(application, schema, central_roles)


def login_section(application_id: int) -> Verb[Tree | None]:
    rows = yield LOGIN_SECTION(application=application_id)
    return rows[0].login if rows else None


def has_email_secret(application_id: int, digest: bytes) -> Verb[bool]:
    return bool((yield EMAIL_SECRET(application=application_id, digest=digest)))


def add_email_secret(application_id: int, digest: bytes, now: int, entry: AuditRecord) -> Verb[None]:
    if (yield from login_section(application_id)) is None:
        raise ApplicationNotFound
    yield ADD_EMAIL_SECRET(application_id=application_id, digest=digest, created_at=now)
    yield from add_audit_record(entry)


def all_email_secrets(application_id: int) -> Verb[Sequence[EmailSecret]]:
    return [EmailSecret(**row._asdict()) for row in (yield EMAIL_SECRETS(application=application_id))]


def remove_email_secret(application_id: int, digest: bytes, entry: AuditRecord) -> Verb[bool]:
    if not (yield DROP_EMAIL_SECRET(application=application_id, digest=digest)):
        return False
    yield from add_audit_record(entry)
    return True


def root_roles(application_id: int, user_id: str, now: int) -> Verb[Sequence[str]]:
    rows = yield ROOT_ROLES(application=application_id, user_id=user_id, now=now)
    return [row.name for row in rows]
