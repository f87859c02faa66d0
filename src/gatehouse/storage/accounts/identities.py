"""Storage of identities (accounts/own_account/model.py)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlalchemy import Boolean, and_, bindparam, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.accounts.errors import (
    MAX_IDENTITIES,
    IdentityNotFound,
    IdentityTaken,
    LastSignInMethod,
    TooManyIdentities,
    UserChanged,
    UserNotFound,
)
from gatehouse.accounts.model import EnabledMethods, Identity, ProviderAnswer, User, service_tag
from gatehouse.accounts.own_account.model import AddressRelease, may_remove_password
from gatehouse.accounts.session_model import identity_proof
from gatehouse.audit.model import AuditRecord
from gatehouse.mail.model import OutboxMail
from gatehouse.storage.accounts.ban_aware import BanFollower
from gatehouse.storage.accounts.login_tokens import LOCK_UNREVOKED_USER
from gatehouse.storage.accounts.lost_addresses import free_address
from gatehouse.storage.accounts.provided_labels import copy_kept_tags, end_labels, store_answer
from gatehouse.storage.accounts.sessions import end_sessions_made_with
from gatehouse.storage.accounts.users import (
    ADD_TAG_ONCE,
    BUMP_USER_VERSION,
    CLEAR_PASSWORD_AT_REV,
    SELECT_USER,
    USER_COLUMNS,
    insert_user,
    user_by_id,
)
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.mail import queue_mails
from gatehouse.storage.rows import column_values
from gatehouse.storage.single_use import mark_used, put_single_use, take_single_use
from gatehouse.storage.statements import InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import identities, passkeys, user_tags, users

_THIS_IDENTITY = (identities.c.issuer == bindparam("of_issuer"), identities.c.subject == bindparam("of_subject"))
_OF_USER = identities.c.user_id == bindparam("of")

USER_BY_IDENTITY = Statement(
    lambda: SELECT_USER.join(identities, identities.c.user_id == users.c.user_id).where(*_THIS_IDENTITY),
    records={"user": USER_COLUMNS},
)
IDENTITIES_OF_USER = Statement(
    lambda: select(identities).where(_OF_USER).order_by(identities.c.created_at, identities.c.issuer)
)
# Of two accounts that link one identity the second finds the row of the first.
INSERT_IDENTITY = Statement(lambda: insert(identities).on_conflict_do_nothing().returning(identities.c.subject))
DROP_IDENTITY = Statement(
    lambda: delete(identities).where(*_THIS_IDENTITY, _OF_USER).returning(identities.c.provider)
)
USE_IDENTITY = Statement(
    lambda: (
        update(identities)
        .where(*_THIS_IDENTITY, _OF_USER)
        .values(used_at=bindparam("at"), label=bindparam("to_label"))
        .returning(identities.c.subject)
    )
)
IDENTITIES_OF_PROVIDER = Statement(
    lambda: select(func.count().label("found")).where(_OF_USER, identities.c.provider == bindparam("at_provider"))
)
SIGN_IN_METHODS = Statement(
    lambda: select(
        select(func.count())
        .where(_OF_USER, InStringList(identities.c.provider, "enabled_providers"))
        .scalar_subquery()
        .label("identities"),
        select(func.count()).where(passkeys.c.user_id == bindparam("of")).scalar_subquery().label("passkeys"),
        and_(
            users.c.password_hash.is_not(None),
            or_(
                users.c.login_key.is_not(None),
                and_(users.c.username.is_not(None), bindparam("by_username", type_=Boolean())),
            ),
        ).label("password"),
        and_(users.c.login_key.is_not(None), users.c.email_verified).label("email"),
    ).where(users.c.user_id == bindparam("of"))
)
# Of the service.
DROP_TAG = Statement(
    lambda: delete(user_tags).where(
        user_tags.c.user_id == bindparam("of"), user_tags.c.tag == bindparam("the"), user_tags.c.provider == ""
    )
)


def user_by_identity(issuer: str, subject: str) -> Verb[User | None]:
    rows = yield USER_BY_IDENTITY(of_issuer=issuer, of_subject=subject)
    return rows[0].user if rows else None


def identities_of_user(user_id: str) -> Verb[Sequence[Identity]]:
    rows = yield IDENTITIES_OF_USER(of=user_id)
    return [Identity(**row._asdict()) for row in rows]


def create_with_identity(
    bans: BanFollower,
    user: User,
    identity: Identity,
    entry: AuditRecord,
    *,
    release: AddressRelease | None = None,
) -> Verb[None]:
    if release is not None and user.login is not None:
        yield from free_address(user.login, release, entry.at)
    yield from insert_user(user)
    yield from _add_identity(identity)
    yield from bans.apply_to(user.user_id, entry.at, new=True)
    yield from add_audit_record(entry)


def link_identity(
    bans: BanFollower, identity: Identity, entry: AuditRecord, mails: Sequence[OutboxMail], *, rev: int
) -> Verb[None]:
    yield from _bump_version(identity.user_id)
    if not (yield LOCK_UNREVOKED_USER(of=identity.user_id, rev=rev)):
        raise UserChanged
    if len((yield IDENTITIES_OF_USER(of=identity.user_id))) >= MAX_IDENTITIES:
        raise TooManyIdentities
    yield from _add_identity(identity)
    yield from bans.apply_to(identity.user_id, entry.at)
    yield from add_audit_record(entry)
    yield from queue_mails(mails, identity.user_id)


def unlink_identity(  # noqa: PLR0917 - `bans` comes first by itself
    bans: BanFollower,
    user_id: str,
    issuer: str,
    subject: str,
    entry: AuditRecord,
    mails: Sequence[OutboxMail],
    *,
    methods: EnabledMethods,
    keep: str | None = None,
) -> Verb[None]:
    yield from _bump_version(user_id)
    yield from drop_identity(bans, user_id, issuer, subject, entry.at)
    yield from refuse_without_sign_in_method(user_id, methods)
    if keep is not None:
        yield from end_sessions_made_with(user_id, identity_proof(issuer, subject), keep=keep, now=entry.at)
    yield from add_audit_record(entry)
    yield from queue_mails(mails, user_id)


def drop_identity(bans: BanFollower, user_id: str, issuer: str, subject: str, now: int) -> Verb[None]:
    """Delete the identity with what it brought, and its provider's tag with the last one; part of other methods."""
    removed = yield DROP_IDENTITY(of=user_id, of_issuer=issuer, of_subject=subject)
    if not removed:
        raise IdentityNotFound
    yield from bans.remember(user_id, now, identities=[(issuer, subject)])
    yield from end_labels(user_id, issuer, subject)
    provider = removed[0].provider
    if not (yield IDENTITIES_OF_PROVIDER(of=user_id, at_provider=provider))[0].found:
        yield DROP_TAG(of=user_id, the=service_tag(provider))


def refuse_without_sign_in_method(user_id: str, methods: EnabledMethods) -> Verb[None]:
    """Refuse to remove the last sign-in method; the caller has locked the account. Raises LastSignInMethod.

    Sign-in by email counts if the address is verified.
    """
    sign_in_methods = yield from _held_methods(user_id, methods)
    if not (
        sign_in_methods.identities
        or sign_in_methods.passkeys
        or sign_in_methods.password
        or (methods.by_email and sign_in_methods.email)
    ):
        raise LastSignInMethod


def remove_password(
    user: User, entry: AuditRecord, mails: Sequence[OutboxMail], *, methods: EnabledMethods
) -> Verb[None]:
    if not (yield CLEAR_PASSWORD_AT_REV(of=user.user_id, seen=user.rev)):
        raise UserChanged
    sign_in_methods = yield from _held_methods(user.user_id, methods)
    if not may_remove_password(
        passkeys=sign_in_methods.passkeys, identities=sign_in_methods.identities, email_verified=sign_in_methods.email
    ):
        raise LastSignInMethod
    yield from add_audit_record(entry)
    yield from queue_mails(mails, user.user_id)


def _held_methods(user_id: str, methods: EnabledMethods) -> Verb[Row]:
    (sign_in_methods,) = yield SIGN_IN_METHODS(
        of=user_id, enabled_providers=sorted(methods.providers), by_username=methods.by_username
    )
    return sign_in_methods


def record_identity_use(
    identity: Identity, answer: ProviderAnswer, record: Callable[[str], AuditRecord]
) -> Verb[User]:
    used = yield USE_IDENTITY(
        of=identity.user_id,
        of_issuer=identity.issuer,
        of_subject=identity.subject,
        at=identity.used_at,
        to_label=identity.label,
    )
    if not used:
        raise UserNotFound
    yield from store_answer(identity, answer, record)
    return (yield from user_by_id(identity.user_id))


def _add_identity(identity: Identity) -> Verb[None]:
    if not (yield INSERT_IDENTITY(**column_values(identity))):
        raise IdentityTaken
    yield ADD_TAG_ONCE(user_id=identity.user_id, tag=service_tag(identity.provider))
    yield from copy_kept_tags([identity])


def _bump_version(user_id: str) -> Verb[None]:
    if not (yield BUMP_USER_VERSION(of=user_id)):
        raise UserNotFound


PROVIDER_REQUEST: Final = "provider_request"  # kind of the single-use record


def save_provider_request(digest: bytes, details: Mapping[str, str], now: int, ends_at: int) -> Verb[None]:
    # A subject of its own: a second tab does not end the request of the first one.
    yield from put_single_use(
        PROVIDER_REQUEST, digest, subject=digest.hex(), details=details, now=now, expires_at=ends_at
    )


def take_provider_request(digest: bytes, now: int) -> Verb[Mapping[str, str] | None]:
    request = yield from take_single_use(PROVIDER_REQUEST, digest, now)
    return None if request is None else request.details


PLATFORM_TICKET: Final = "platform_ticket"  # kind of the single-use record


def use_ticket(digest: bytes, now: int, ends_at: int) -> Verb[bool]:
    return (yield from mark_used(PLATFORM_TICKET, digest, now=now, expires_at=ends_at))
