"""Reads the APIs that applications declare, and stores revoked tokens of machines (ClientStore, GrantStore)."""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec
from sqlalchemy import bindparam, select

from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.web_urls import is_at_origin
from gatehouse.oauth.api_model import Api
from gatehouse.oauth.model import ActingProgram
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.installation import BASE_URL
from gatehouse.storage.permissions.row_readers import APPLICATIONS_WITH_PROJECT, IS_LIVE_APPLICATION
from gatehouse.storage.single_use import insert_single_use
from gatehouse.storage.statements import InNumberList, Row, Statement, Verb
from gatehouse.storage.tables.installation import installation, once
from gatehouse.storage.tables.oauth import clients
from gatehouse.storage.tables.permissions import applications

REVOKED_TOKEN: Final = "revoked_token"  # noqa: S105 - the kind of a single-use record, here that of a revoked token

API_BY_RESOURCE = Statement(
    lambda: (
        select(
            *(applications.c.application_id, applications.c.project_id, applications.c.name, applications.c.api),
            select(installation.c.value).where(installation.c.name == BASE_URL).scalar_subquery().label("base_url"),
        )
        .select_from(APPLICATIONS_WITH_PROJECT)
        .where(applications.c.api_resource == bindparam("of"), IS_LIVE_APPLICATION)
    )
)
PROJECT_OF = Statement(
    lambda: (
        select(applications.c.project_id)
        .select_from(APPLICATIONS_WITH_PROJECT)
        .where(applications.c.application_id == bindparam("of"), IS_LIVE_APPLICATION)
    )
)
ACTING_PROGRAMS = Statement(
    lambda: (
        select(
            clients.c.application_id,
            applications.c.name.label("application"),
            clients.c.client_id,
            clients.c.name,
            clients.c.may_act_for_others,
        )
        .select_from(
            clients.join(APPLICATIONS_WITH_PROJECT, applications.c.application_id == clients.c.application_id)
        )
        .where(
            InNumberList(clients.c.application_id, "of"),
            clients.c.may_act.is_(True),
            clients.c.removed.is_(False),
            IS_LIVE_APPLICATION,
        )
        .order_by(clients.c.client_id)
    )
)
APPLICATION_LOGO = Statement(
    lambda: select(applications.c.logo).where(applications.c.application_id == bindparam("of"))
)
REVOKE_TOKEN = Statement(lambda: insert_single_use().on_conflict_do_nothing().returning(once.c.digest))
FIND_REVOKED = Statement(
    lambda: select(once.c.digest).where(once.c.kind == REVOKED_TOKEN, once.c.digest == bindparam("of_digest"))
)


def find_api(resource: str) -> Verb[Api | None]:
    rows = yield API_BY_RESOURCE(of=resource)
    if not rows or is_at_origin(resource, rows[0].base_url or ""):
        return None  # a token for this service itself is none of an API; declared when this was possible
    return api_from_row(rows[0])


def project_of(application_id: int) -> Verb[str | None]:
    rows = yield PROJECT_OF(of=application_id)
    return rows[0].project_id if rows else None


def acting_programs(application_ids: Collection[int]) -> Verb[Sequence[ActingProgram]]:
    if not application_ids:
        return ()
    rows = yield ACTING_PROGRAMS(of=list(application_ids))
    return tuple(ActingProgram(**row._asdict()) for row in rows)


def application_logo(application_id: int) -> Verb[str]:
    rows = yield APPLICATION_LOGO(of=application_id)
    return rows[0].logo if rows else ""


def add_machine_record(record: AuditRecord) -> Verb[None]:
    yield from add_audit_record(record)


def revoke_machine_token(jti: str, now: int, *, ends_at: int, record: AuditRecord) -> Verb[bool]:
    revoked = yield REVOKE_TOKEN(
        kind=REVOKED_TOKEN,
        digest=sha256(jti),
        subject="",
        details={},
        created_at=now,
        expires_at=ends_at,
        taken_at=now,
    )
    if not revoked:
        return False
    yield from add_audit_record(record)
    return True


def is_machine_token_revoked(*jtis: str) -> Verb[bool]:
    for jti in jtis:
        if (yield FIND_REVOKED(of_digest=sha256(jti))):
            return True
    return False


def api_from_row(row: Row) -> Api:
    fields = {**row.api, "application_id": row.application_id, "project_id": row.project_id, "name": row.name}
    return msgspec.convert(fields, Api)
