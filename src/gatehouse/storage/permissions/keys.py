"""Stores the credentials of applications (ApplicationKeyStore)."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import asdict, fields
from sqlalchemy import ColumnElement, Select, Table, bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import AuditRecord
from gatehouse.permissions.documents.limits import refuse_access_keys, refuse_custom_keys
from gatehouse.permissions.errors import AccessKeyNotFound, ApplicationNotFound, KeyNotFound
from gatehouse.permissions.model.access_key import AccessKey
from gatehouse.permissions.model.application import ApplicationKey, KeySource
from gatehouse.permissions.model.limits import MAX_ACCESS_KEYS
from gatehouse.permissions.model.service_token import FoundServiceToken, ServiceToken
from gatehouse.storage.audit import add_audit_records
from gatehouse.storage.epoch import CURRENT_EPOCH
from gatehouse.storage.keys import KEYS_VERSION
from gatehouse.storage.permissions.row_readers import (
    APPLICATIONS_WITH_PROJECT,
    IS_LIVE_APPLICATION,
    belongs_to_live_application,
    key_columns,
)
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.permissions import access_keys, application_keys, applications, service_tokens


def _select_live(table: Table, *conditions: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    return select(table).where(*conditions, belongs_to_live_application(table.c.application_id))


LOCK_APPLICATION = Statement(
    lambda: (
        select(applications.c.application_id)
        .where(applications.c.application_id == bindparam("of"), applications.c.removed.is_(False))
        .with_for_update()
    )
)
IS_LIVE = Statement(
    lambda: (
        select(applications.c.application_id)
        .select_from(APPLICATIONS_WITH_PROJECT)
        .where(applications.c.application_id == bindparam("of"), IS_LIVE_APPLICATION)
    )
)
ACCESS_KEYS = Statement(
    lambda: (
        select(access_keys)
        .where(access_keys.c.application_id == bindparam("of"))
        .order_by(access_keys.c.created_at, access_keys.c.slot)
    )
)
ALL_ACCESS_KEYS = Statement(
    lambda: select(access_keys).order_by(access_keys.c.application_id, access_keys.c.created_at, access_keys.c.slot)
)
ALL_CUSTOM_KEYS = Statement(
    lambda: (
        select(application_keys)
        .where(application_keys.c.source == KeySource.CUSTOM.value)
        .order_by(application_keys.c.application_id, application_keys.c.pem)
    )
)
ACCESS_KEY_BY_DIGEST = Statement(lambda: _select_live(access_keys, access_keys.c.digest == bindparam("digest")))
INSERT_ACCESS_KEY = Statement(lambda: insert(access_keys))
DELETE_ACCESS_KEY = Statement(
    lambda: (
        delete(access_keys)
        .where(access_keys.c.application_id == bindparam("of"), access_keys.c.key_id == bindparam("key"))
        .returning(access_keys.c.key_id)
    )
)
RECORD_USE = Statement(
    lambda: (
        update(access_keys)
        .where(
            access_keys.c.key_id == bindparam("key"),
            access_keys.c.last_used < bindparam("not_before"),
            access_keys.c.last_used < bindparam("now"),
        )
        .values(last_used=bindparam("now"))
    )
)
APPLICATION_KEYS = Statement(
    lambda: _select_live(application_keys, application_keys.c.application_id == bindparam("of")).order_by(
        application_keys.c.created_at, application_keys.c.kid
    )
)
APPLICATION_KEY = Statement(lambda: _select_live(application_keys, application_keys.c.kid == bindparam("kid")))
COUNT_CUSTOM_KEYS = Statement(
    lambda: select(func.count().label("found")).where(
        application_keys.c.application_id == bindparam("of"), application_keys.c.source == KeySource.CUSTOM.value
    )
)
INSERT_KEY = Statement(lambda: insert(application_keys))
DELETE_KEY = Statement(
    lambda: (
        delete(application_keys)
        .where(
            application_keys.c.application_id == bindparam("of"),
            application_keys.c.kid == bindparam("key"),
            application_keys.c.source == KeySource.CUSTOM.value,  # the other kind is deleted with service_meta
        )
        .returning(application_keys.c.kid)
    )
)
_TOKEN_COLUMNS: Final = tuple(service_tokens.c[field.name] for field in fields(ServiceToken))
INSERT_SERVICE_TOKEN = Statement(
    lambda: insert(service_tokens).values(
        {column: bindparam(column.name, type_=column.type) for column in _TOKEN_COLUMNS} | {"epoch": CURRENT_EPOCH}
    )
)
SERVICE_TOKEN = Statement(
    lambda: select(*_TOKEN_COLUMNS, KEYS_VERSION).where(
        service_tokens.c.jti == bindparam("jti"),
        # A restore brings back rows as they were, but what was issued before it is still refused (R3).
        service_tokens.c.epoch == CURRENT_EPOCH,
        belongs_to_live_application(service_tokens.c.application_id),
    )
)
SERVICE_TOKENS = Statement(
    lambda: (
        select(*_TOKEN_COLUMNS)
        .where(service_tokens.c.application_id == bindparam("of"))
        .order_by(service_tokens.c.created_at, service_tokens.c.jti)
    )
)
REVOKE_SERVICE_TOKEN = Statement(
    lambda: (
        update(service_tokens)
        .where(service_tokens.c.application_id == bindparam("application"), service_tokens.c.jti == bindparam("of"))
        .values(revoked=True)
        .returning(service_tokens.c.jti)
    )
)


def _lock_application(application_id: int) -> Verb[None]:
    """Lock the application, so that a count stays right until the commit."""
    if not (yield LOCK_APPLICATION(of=application_id)):
        raise ApplicationNotFound


def is_application_live(application_id: int) -> Verb[bool]:
    return bool((yield IS_LIVE(of=application_id)))


def access_keys_of(application_id: int) -> Verb[Sequence[AccessKey]]:
    rows = yield ACCESS_KEYS(of=application_id)
    return [_access_key_from_row(row) for row in rows]


def all_access_keys() -> Verb[Sequence[AccessKey]]:
    rows = yield ALL_ACCESS_KEYS()
    return [_access_key_from_row(row) for row in rows]


def all_custom_keys() -> Verb[Sequence[ApplicationKey]]:
    rows = yield ALL_CUSTOM_KEYS()
    return [_application_key_from_row(row) for row in rows]


def access_key_by_digest(digest: bytes) -> Verb[AccessKey | None]:
    rows = yield ACCESS_KEY_BY_DIGEST(digest=digest)
    return _access_key_from_row(rows[0]) if rows else None


def add_access_key(key: AccessKey, records: Sequence[AuditRecord]) -> Verb[None]:
    yield from _lock_application(key.application_id)
    rows = yield ACCESS_KEYS(of=key.application_id)
    if any(row.key_id == key.key_id for row in rows):
        return  # by an earlier run
    taken = {row.slot for row in rows}
    free = [slot for slot in range(1, MAX_ACCESS_KEYS + 1) if slot not in taken]
    refuse_access_keys(len(taken) + 1)
    yield INSERT_ACCESS_KEY(**asdict(key), slot=free[0])
    yield from add_audit_records(records)


def delete_access_key(application_id: int, key_id: str, records: Sequence[AuditRecord]) -> Verb[None]:
    if not (yield DELETE_ACCESS_KEY(of=application_id, key=key_id)):
        raise AccessKeyNotFound
    yield from add_audit_records(records)


def record_access_key_use(key_id: str, now: int, not_before: int) -> Verb[None]:
    yield RECORD_USE(key=key_id, now=now, not_before=not_before)


def application_keys_of(application_id: int) -> Verb[Sequence[ApplicationKey]]:
    rows = yield APPLICATION_KEYS(of=application_id)
    return [_application_key_from_row(row) for row in rows]


def application_key_by_kid(kid: str) -> Verb[ApplicationKey | None]:
    rows = yield APPLICATION_KEY(kid=kid)
    return _application_key_from_row(rows[0]) if rows else None


def add_application_key(key: ApplicationKey, records: Sequence[AuditRecord]) -> Verb[None]:
    yield from _lock_application(key.application_id)
    refuse_custom_keys((yield COUNT_CUSTOM_KEYS(of=key.application_id))[0].found + 1)
    yield INSERT_KEY(**key_columns(key))
    yield from add_audit_records(records)


def delete_application_key(application_id: int, kid: str, records: Sequence[AuditRecord]) -> Verb[None]:
    if not (yield DELETE_KEY(of=application_id, key=kid)):
        raise KeyNotFound
    yield from add_audit_records(records)


def add_service_token(token: ServiceToken, records: Sequence[AuditRecord]) -> Verb[None]:
    yield from _lock_application(token.application_id)
    yield INSERT_SERVICE_TOKEN(**asdict(token))
    yield from add_audit_records(records)


def service_token(jti: str) -> Verb[FoundServiceToken | None]:
    rows = yield SERVICE_TOKEN(jti=jti)
    if not rows:
        return None
    fields = rows[0]._asdict()
    return FoundServiceToken(keys_version=fields.pop("keys_version"), token=ServiceToken(**fields))


def service_tokens_of(application_id: int) -> Verb[Sequence[ServiceToken]]:
    rows = yield SERVICE_TOKENS(of=application_id)
    return [ServiceToken(**row._asdict()) for row in rows]


def revoke_service_token(application_id: int, jti: str, records: Sequence[AuditRecord]) -> Verb[None]:
    if not (yield REVOKE_SERVICE_TOKEN(application=application_id, of=jti)):
        raise KeyNotFound(f"application {application_id} has no service JWT {jti}")
    yield from add_audit_records(records)


class ApplicationKeyStorage(SqlStore):
    is_application_live = read(is_application_live)
    access_keys = read(access_keys_of)
    access_key_by_digest = read(access_key_by_digest)
    add_access_key = write(add_access_key, repeatable=True)
    delete_access_key = write(delete_access_key)
    record_access_key_use = write(record_access_key_use)
    application_keys = read(application_keys_of)
    application_key = read(application_key_by_kid)
    add_application_key = write(add_application_key)
    delete_application_key = write(delete_application_key)
    add_service_token = write(add_service_token)
    service_token = read(service_token)
    service_tokens = read(service_tokens_of)
    revoke_service_token = write(revoke_service_token)


def _access_key_from_row(row: Row) -> AccessKey:
    fields = row._asdict()
    del fields["slot"]
    return AccessKey(**fields)


def _application_key_from_row(row: Row) -> ApplicationKey:
    return ApplicationKey(**{**row._asdict(), "source": KeySource(row.source)})
