"""Keeps the credentials of applications (ApplicationKeyStore)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Table,
    bindparam,
    cast,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import Record
from gatehouse.permissions.documents.limits import refuse_access_keys, refuse_custom_keys
from gatehouse.permissions.errors import AccessKeyNotFound, ApplicationNotFound, KeyNotFound
from gatehouse.permissions.model.access_key import KEYS_MOST, AccessKey
from gatehouse.permissions.model.application_key import ApplicationKey, KeySource
from gatehouse.permissions.model.service_token import FoundServiceToken, ServiceToken
from gatehouse.storage.audit import record
from gatehouse.storage.installation import EPOCH
from gatehouse.storage.keys import KEYS_VERSION
from gatehouse.storage.live_applications import LIVE_APPLICATION, WITH_PROJECT, is_of_live
from gatehouse.storage.permissions.application_rows import key_columns
from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.applications import access_keys, application_keys, applications, service_tokens
from gatehouse.storage.tables.installation import installation

MILLISECONDS: Final = 1_000  # of a second: the epoch is counted in them


def _live(table: Table, *conditions: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    return select(table).where(*conditions, is_of_live(table.c.application_id))


HOLD_APPLICATION = Statement(
    select(applications.c.application_id)
    .where(applications.c.application_id == bindparam("of"), applications.c.removed.is_(False))
    .with_for_update()
)
IS_LIVE = Statement(
    select(applications.c.application_id)
    .select_from(WITH_PROJECT)
    .where(applications.c.application_id == bindparam("of"), LIVE_APPLICATION)
)
ACCESS_KEYS = Statement(
    select(access_keys)
    .where(access_keys.c.application_id == bindparam("of"))
    .order_by(access_keys.c.created_at, access_keys.c.slot)
)
ALL_ACCESS_KEYS = Statement(
    select(access_keys).order_by(access_keys.c.application_id, access_keys.c.created_at, access_keys.c.slot)
)
ALL_CUSTOM_KEYS = Statement(
    select(application_keys)
    .where(application_keys.c.source == KeySource.CUSTOM.value)
    .order_by(application_keys.c.application_id, application_keys.c.pem)
)
BY_DIGEST = Statement(_live(access_keys, access_keys.c.digest == bindparam("digest")))
INSERT_ACCESS_KEY = Statement(insert(access_keys))
DELETE_ACCESS_KEY = Statement(
    delete(access_keys)
    .where(access_keys.c.application_id == bindparam("of"), access_keys.c.key_id == bindparam("key"))
    .returning(access_keys.c.key_id)
)
USED = Statement(
    update(access_keys)
    .where(
        access_keys.c.key_id == bindparam("key"),
        access_keys.c.last_used < bindparam("not_before"),
        access_keys.c.last_used < bindparam("now"),
    )
    .values(last_used=bindparam("now"))
)
APPLICATION_KEYS = Statement(
    _live(application_keys, application_keys.c.application_id == bindparam("of")).order_by(
        application_keys.c.created_at, application_keys.c.kid
    )
)
APPLICATION_KEY = Statement(_live(application_keys, application_keys.c.kid == bindparam("kid")))
CUSTOM_KEYS = Statement(
    select(func.count().label("found")).where(
        application_keys.c.application_id == bindparam("of"), application_keys.c.source == KeySource.CUSTOM.value
    )
)
INSERT_KEY = Statement(insert(application_keys))
DELETE_KEY = Statement(
    delete(application_keys)
    .where(
        application_keys.c.application_id == bindparam("of"),
        application_keys.c.kid == bindparam("key"),
        application_keys.c.source == KeySource.CUSTOM.value,  # the other one goes with service_meta
    )
    .returning(application_keys.c.kid)
)
INSERT_TOKEN = Statement(insert(service_tokens))
_EPOCH = select(cast(installation.c.value, BigInteger)).where(installation.c.name == EPOCH).scalar_subquery()
TOKEN = Statement(
    _live(
        service_tokens,
        service_tokens.c.jti == bindparam("jti"),
        # A restore brings back rows as they were; what was issued before it is refused all the same (R3).
        (service_tokens.c.created_at + 1) * MILLISECONDS > func.coalesce(_EPOCH, 0),
    ).add_columns(KEYS_VERSION)
)
TOKENS = Statement(
    select(service_tokens)
    .where(service_tokens.c.application_id == bindparam("of"))
    .order_by(service_tokens.c.created_at, service_tokens.c.jti)
)
REVOKE_TOKEN = Statement(
    update(service_tokens)
    .where(service_tokens.c.application_id == bindparam("application"), service_tokens.c.jti == bindparam("of"))
    .values(revoked=True)
    .returning(service_tokens.c.jti)
)


def _hold(application_id: int) -> Verb[None]:
    """Whoever adds something to an application waits for the others: what is counted then stays counted."""
    if not (yield HOLD_APPLICATION(of=application_id)):
        raise ApplicationNotFound


def _record_all(records: Sequence[Record]) -> Verb[None]:
    for entry in records:
        yield from record(entry)


def is_live(application_id: int) -> Verb[bool]:
    return bool((yield IS_LIVE(of=application_id)))


def keys_of(application_id: int) -> Verb[Sequence[AccessKey]]:
    rows = yield ACCESS_KEYS(of=application_id)
    return [_access_key(row) for row in rows]


def all_access_keys() -> Verb[Sequence[AccessKey]]:
    rows = yield ALL_ACCESS_KEYS()
    return [_access_key(row) for row in rows]


def all_custom_keys() -> Verb[Sequence[ApplicationKey]]:
    rows = yield ALL_CUSTOM_KEYS()
    return [_application_key(row) for row in rows]


def by_digest(digest: bytes) -> Verb[AccessKey | None]:
    rows = yield BY_DIGEST(digest=digest)
    return _access_key(rows[0]) if rows else None


def add_access_key(key: AccessKey, records: Sequence[Record]) -> Verb[None]:
    yield from _hold(key.application_id)
    held = yield ACCESS_KEYS(of=key.application_id)
    if any(row.key_id == key.key_id for row in held):
        return  # by an earlier run
    taken = {row.slot for row in held}
    free = [slot for slot in range(1, KEYS_MOST + 1) if slot not in taken]
    refuse_access_keys(len(taken) + 1)
    yield INSERT_ACCESS_KEY(**asdict(key), slot=free[0])
    yield from _record_all(records)


def delete_access_key(application_id: int, key_id: str, records: Sequence[Record]) -> Verb[None]:
    if not (yield DELETE_ACCESS_KEY(of=application_id, key=key_id)):
        raise AccessKeyNotFound
    yield from _record_all(records)


def used_access_key(key_id: str, now: int, not_before: int) -> Verb[None]:
    yield USED(key=key_id, now=now, not_before=not_before)


def public_keys_of(application_id: int) -> Verb[Sequence[ApplicationKey]]:
    rows = yield APPLICATION_KEYS(of=application_id)
    return [_application_key(row) for row in rows]


def public_key(kid: str) -> Verb[ApplicationKey | None]:
    rows = yield APPLICATION_KEY(kid=kid)
    return _application_key(rows[0]) if rows else None


def add_application_key(key: ApplicationKey, records: Sequence[Record]) -> Verb[None]:
    yield from _hold(key.application_id)
    refuse_custom_keys((yield CUSTOM_KEYS(of=key.application_id))[0].found + 1)
    yield INSERT_KEY(**key_columns(key))
    yield from _record_all(records)


def delete_application_key(application_id: int, kid: str, records: Sequence[Record]) -> Verb[None]:
    if not (yield DELETE_KEY(of=application_id, key=kid)):
        raise KeyNotFound
    yield from _record_all(records)


def add_service_token(token: ServiceToken, records: Sequence[Record]) -> Verb[None]:
    yield from _hold(token.application_id)
    yield INSERT_TOKEN(**asdict(token))
    yield from _record_all(records)


def service_token(jti: str) -> Verb[FoundServiceToken | None]:
    rows = yield TOKEN(jti=jti)
    if not rows:
        return None
    fields = rows[0]._asdict()
    return FoundServiceToken(keys_version=fields.pop("keys_version"), token=ServiceToken(**fields))


def tokens_of(application_id: int) -> Verb[Sequence[ServiceToken]]:
    rows = yield TOKENS(of=application_id)
    return [ServiceToken(**row._asdict()) for row in rows]


def revoke_service_token(application_id: int, jti: str, records: Sequence[Record]) -> Verb[None]:
    if not (yield REVOKE_TOKEN(application=application_id, of=jti)):
        raise KeyNotFound(f"application {application_id} has no service JWT {jti}")
    yield from _record_all(records)


class ApplicationKeyStorage(Stored):
    is_live = look(is_live)
    access_keys = look(keys_of)
    access_key_by_digest = look(by_digest)
    add_access_key = act(add_access_key, repeatable=True)
    delete_access_key = act(delete_access_key)
    used_access_key = act(used_access_key)
    application_keys = look(public_keys_of)
    application_key = look(public_key)
    add_application_key = act(add_application_key)
    delete_application_key = act(delete_application_key)
    add_service_token = act(add_service_token)
    service_token = look(service_token)
    service_tokens = look(tokens_of)
    revoke_service_token = act(revoke_service_token)


def _access_key(row: Row) -> AccessKey:
    fields = row._asdict()
    del fields["slot"]
    return AccessKey(**fields)


def _application_key(row: Row) -> ApplicationKey:
    return ApplicationKey(**{**row._asdict(), "source": KeySource(row.source)})
