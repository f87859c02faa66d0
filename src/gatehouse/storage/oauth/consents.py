"""Consents (oauth/store.py)."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace
from sqlalchemy import and_, bindparam, case, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import AuditRecord
from gatehouse.oauth.model import Client, Consent, GivenGrant
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.epoch import USER_REV
from gatehouse.storage.oauth.clients import client_from_fields
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.oauth import clients, consents, grants
from gatehouse.storage.tables.permissions import applications

CONSENT_PREFIX = "consent_"
MAX_GRANTS: Final = 1_000  # of one person, listed

_THIS_CONSENT = and_(consents.c.user_id == bindparam("of"), consents.c.client_id == bindparam("to"))

_APPLICATION_LOGO = (
    select(applications.c.logo).where(applications.c.application_id == clients.c.application_id).scalar_subquery()
)
_SHOWN_LOGO = case((clients.c.logo != "", clients.c.logo), else_=func.coalesce(_APPLICATION_LOGO, ""))
_SHOWN_CLIENT = (*(column for column in clients.c if column.name != "logo"), _SHOWN_LOGO.label("logo"))

FIND_CONSENT = Statement(lambda: select(consents).where(_THIS_CONSENT))
# Locks the row until the commit: of two concurrent consents the second one adds to what the first one wrote.
LOCK_CONSENT = Statement(lambda: select(consents).where(_THIS_CONSENT).with_for_update())
INSERT_CONSENT = Statement(lambda: insert(consents).on_conflict_do_nothing().returning(consents.c.client_id))
REPLACE_CONSENT = Statement(
    lambda: (
        update(consents)
        .where(_THIS_CONSENT)
        .values(scopes=bindparam("all_scopes"), given_at=bindparam("at"), ends_at=bindparam("end"))
    )
)
CONSENTS_OF_USER = Statement(
    lambda: (
        select(*_SHOWN_CLIENT, *(column.label(f"{CONSENT_PREFIX}{column.name}") for column in consents.c))
        .join(consents, consents.c.client_id == clients.c.client_id)
        .where(
            consents.c.user_id == bindparam("of"),
            or_(consents.c.ends_at == 0, consents.c.ends_at > bindparam("now")),
            clients.c.removed.is_(False),
        )
    )
)
_IS_LIVE = and_(
    grants.c.user_id == bindparam("of"),
    grants.c.revoked_at == 0,
    grants.c.ends_at > bindparam("now"),
    or_(grants.c.code.is_(None), grants.c.code_taken_at > 0),
    clients.c.removed.is_(False),
)
# Grants without a consent, which a trusted client does not need (R3, checklist LG-28).
GRANTS_WITHOUT_CONSENT = Statement(
    lambda: (
        select(
            *_SHOWN_CLIENT,
            *(grants.c[name].label(f"{CONSENT_PREFIX}{name}") for name in ("user_id", "client_id", "scopes")),
            grants.c.created_at.label(f"{CONSENT_PREFIX}given_at"),
        )
        .join(grants, grants.c.client_id == clients.c.client_id)
        .join(users, and_(users.c.user_id == grants.c.user_id, grants.c.rev == USER_REV))
        .where(_IS_LIVE)
        .order_by(grants.c.created_at)
    )
)
GRANTS_OF_USER = Statement(
    lambda: (
        select(
            *(
                grants.c[name]
                for name in (
                    "grant_id",
                    "scopes",
                    "created_at",
                    "code_taken_at",
                    "refreshed_at",
                    "used_at",
                    "ends_at",
                )
            ),
            *(clients.c[name] for name in ("client_id", "application_id", "name")),
        )
        .join(grants, grants.c.client_id == clients.c.client_id)
        .join(users, and_(users.c.user_id == grants.c.user_id, grants.c.rev == USER_REV))
        .where(_IS_LIVE)
        .order_by(grants.c.created_at.desc(), grants.c.grant_id)
        .limit(MAX_GRANTS)
    )
)
DROP_CONSENT = Statement(lambda: delete(consents).where(_THIS_CONSENT).returning(consents.c.client_id))
REVOKE_GRANTS = Statement(
    lambda: (
        update(grants)
        .where(grants.c.user_id == bindparam("of"), grants.c.client_id == bindparam("to"), grants.c.revoked_at == 0)
        .values(revoked_at=bindparam("now"))
        .returning(grants.c.grant_id)
    )
)


def consent_of(user_id: str, client_id: str) -> Verb[Consent | None]:
    rows = yield FIND_CONSENT(of=user_id, to=client_id)
    return _consent_from_fields(rows[0]._asdict()) if rows else None


def consents_of(user_id: str, now: int) -> Verb[Sequence[tuple[Consent, Client]]]:
    with_consent = yield CONSENTS_OF_USER(of=user_id, now=now)
    without_consent = yield GRANTS_WITHOUT_CONSENT(of=user_id, now=now)
    listed: dict[str, tuple[Consent, Client]] = {}
    for consent, client in map(_consent_with_client, (*with_consent, *without_consent)):
        first, _ = listed.get(client.client_id, (consent, client))
        listed[client.client_id] = (replace(first, scopes=_merge_scopes(first.scopes, consent.scopes)), client)
    return sorted(listed.values(), key=lambda pair: (pair[1].name, pair[1].client_id))


def grants_of_user(user_id: str, now: int) -> Verb[Sequence[GivenGrant]]:
    return [
        GivenGrant(
            grant_id=row.grant_id,
            client_id=row.client_id,
            application_id=row.application_id,
            name=row.name,
            scopes=tuple(row.scopes),
            given_at=row.created_at,
            used_at=max(row.created_at, row.code_taken_at, row.refreshed_at, row.used_at),
            ends_at=row.ends_at,
        )
        for row in (yield GRANTS_OF_USER(of=user_id, now=now))
    ]


def add_consent(consent: Consent, entry: AuditRecord) -> Verb[None]:
    fresh = yield INSERT_CONSENT(
        user_id=consent.user_id,
        client_id=consent.client_id,
        scopes=consent.scopes,
        given_at=consent.given_at,
        ends_at=consent.ends_at,
    )
    if not fresh:
        rows = yield LOCK_CONSENT(of=consent.user_id, to=consent.client_id)
        earlier = rows[0].scopes if rows and lasts_as_long(rows[0].ends_at, consent) else ()
        yield REPLACE_CONSENT(
            of=consent.user_id,
            to=consent.client_id,
            all_scopes=_merge_scopes(earlier, consent.scopes),
            at=consent.given_at,
            end=consent.ends_at,
        )
    yield from add_audit_record(entry)


def lasts_as_long(ends_at: int, consent: Consent) -> bool:
    """Whether what ends then (0: never) is allowed for as long as the consent."""
    return ends_at == 0 or ends_at >= consent.ends_at > 0


def withdraw_consent(user_id: str, client_id: str, now: int, entry: AuditRecord) -> Verb[bool]:
    forgotten = yield DROP_CONSENT(of=user_id, to=client_id)
    revoked = yield REVOKE_GRANTS(of=user_id, to=client_id, now=now)
    if not forgotten and not revoked:
        return False
    yield from add_audit_record(entry)
    return True


class ConsentStorage(SqlStore):
    consent = read(consent_of)
    consents = read(consents_of)
    grants_of_user = read(grants_of_user)
    add_consent = write(add_consent)
    withdraw_consent = write(withdraw_consent)


def _merge_scopes(scopes: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    return (*scopes, *(scope for scope in more if scope not in scopes))


def _consent_with_client(row: Row) -> tuple[Consent, Client]:
    fields = row._asdict()
    own = {
        name.removeprefix(CONSENT_PREFIX): fields.pop(name)
        for name in tuple(fields)
        if name.startswith(CONSENT_PREFIX)
    }
    return _consent_from_fields(own), client_from_fields(fields, ())


def _consent_from_fields(fields: dict[str, object]) -> Consent:
    return Consent(**{**fields, "scopes": tuple(fields["scopes"])})  # type: ignore[arg-type]
