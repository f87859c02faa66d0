"""Storage of browser sessions and login tokens (accounts/store.py)."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import and_, bindparam, case, delete, insert, select, update

from gatehouse.accounts.bans.model import find_ban
from gatehouse.accounts.errors import NoAccountForIdentity, UserNotFound
from gatehouse.accounts.model import (
    IDENTITY_PROOF,
    LoginToken,
    LoginTokenRecord,
    Session,
    SessionStrength,
    ShortTokenOwner,
    SignInMethod,
    UserSession,
    identity_proof,
)
from gatehouse.audit.model import AuditRecord
from gatehouse.mail.model import OutboxMail
from gatehouse.storage import single_use
from gatehouse.storage.accounts.users import SELECT_USER, user_from_row
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.mail import queue_mails
from gatehouse.storage.oauth.logout_calls import revoke_session_grants, revoke_user_grants
from gatehouse.storage.permissions.row_readers import bans_from_document
from gatehouse.storage.rows import RowPart, column_values
from gatehouse.storage.runner import SqlStore, inline_write, read, write
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import identities, login_tokens, sessions, users
from gatehouse.storage.tables.permissions import applications

IDENTITY_METHODS: Final = frozenset({SignInMethod.PROVIDER, SignInMethod.PLATFORM})

UNEXPIRED_SESSION = and_(sessions.c.idle_ends_at > bindparam("now"), sessions.c.ends_at > bindparam("now"))

INSERT_SESSION = Statement(insert(sessions))
DROP_SESSION_BY_DIGEST = Statement(
    delete(sessions)
    .where(sessions.c.digest == bindparam("of"))
    .returning(sessions.c.session_id, sessions.c.user_id, sessions.c.rev, sessions.c.proved)
)
FIND_SESSION = Statement(  # the session and the whole account in one round trip
    SELECT_USER.add_columns(*(column.label(f"session_{column.name}") for column in sessions.c))
    .join(sessions, and_(users.c.user_id == sessions.c.user_id, users.c.rev == sessions.c.rev))
    .where(sessions.c.digest == bindparam("of"), UNEXPIRED_SESSION, users.c.blocked.is_(False))
)
TOUCH_SESSION = Statement(
    update(sessions)
    .where(sessions.c.digest == bindparam("of"), sessions.c.seen_at < bindparam("at"))
    .values(seen_at=bindparam("at"), idle_ends_at=bindparam("idle_ends"))
)
DROP_SESSION = Statement(
    delete(sessions)
    .where(sessions.c.user_id == bindparam("of"), sessions.c.session_id == bindparam("named"))
    .returning(sessions.c.session_id)
)
SESSIONS_OF_USER = Statement(
    select(sessions)
    .join(users, and_(users.c.user_id == sessions.c.user_id, users.c.rev == sessions.c.rev))
    .where(sessions.c.user_id == bindparam("of"), UNEXPIRED_SESSION)
    .order_by(sessions.c.seen_at.desc(), sessions.c.session_id)
)
RAISE_REV = Statement(
    update(users)
    .where(users.c.user_id == bindparam("of"))
    .values(rev=case((users.c.rev >= bindparam("epoch"), users.c.rev + 1), else_=bindparam("epoch")))
    .returning(users.c.rev)
)
SET_SESSION_REV = Statement(
    update(sessions)
    .where(sessions.c.user_id == bindparam("of"), sessions.c.digest == bindparam("keep"))
    .values(rev=bindparam("rev"))
)
DROP_OLDER_SESSIONS = Statement(
    delete(sessions).where(sessions.c.user_id == bindparam("of"), sessions.c.rev < bindparam("rev"))
)
DROP_LOGIN_TOKENS = Statement(delete(login_tokens).where(login_tokens.c.user_id == bindparam("of")))


# Locked until the session is stored: an identity that is disconnected at this moment ends it, or is gone here.
PROVED_IDENTITIES = Statement(
    select(identities.c.issuer, identities.c.subject)
    .where(identities.c.user_id == bindparam("of"))
    .with_for_update(read=True)
)


def open_session(
    session: Session, entry: AuditRecord, *, replaces: bytes | None, mails: Sequence[OutboxMail] = ()
) -> Verb[Session]:
    yield from refuse_gone_identity(session)
    if replaces is not None:
        session = yield from _replace_session(replaces, session)
    yield INSERT_SESSION(**column_values(session))
    yield from queue_mails(mails, session.user_id)
    yield from add_audit_record(entry)
    return session


def refuse_gone_identity(session: Session) -> Verb[None]:
    """Refuse a session with an identity that was disconnected while its second factor was asked for."""
    proved = {name for name in session.proved if name.startswith(IDENTITY_PROOF)}
    if proved and not proved <= {
        identity_proof(row.issuer, row.subject) for row in (yield PROVED_IDENTITIES(of=session.user_id))
    }:
        raise NoAccountForIdentity


def _replace_session(old: bytes, session: Session) -> Verb[Session]:
    """Keep the session ID when the same person signs in again; notify clients when it is another person."""
    for ended in (yield DROP_SESSION_BY_DIGEST(of=old)):
        if (ended.user_id, ended.rev) == (session.user_id, session.rev):
            proved = dict.fromkeys((*ended.proved, *session.proved))
            return replace(session, session_id=ended.session_id, proved=tuple(proved))
        yield from revoke_session_grants(ended.user_id, ended.session_id, session.created_at)
    return session


def find_session(digest: bytes, now: int) -> Verb[UserSession | None]:
    rows = yield FIND_SESSION(of=digest, now=now)
    if not rows:
        return None
    return UserSession(session=SESSION_PART.read(rows[0]), user=USER_PART.read(rows[0]))


def update_last_seen(digest: bytes, now: int, idle_ends_at: int) -> Verb[None]:
    yield TOUCH_SESSION(of=digest, at=now, idle_ends=idle_ends_at)


def end_session(user_id: str, session_id: str, entry: AuditRecord) -> Verb[bool]:
    if not (yield DROP_SESSION(of=user_id, named=session_id)):
        return False
    yield from revoke_session_grants(user_id, session_id, entry.at)
    yield from add_audit_record(entry)
    return True


def end_sessions_made_with(user_id: str, proof: str, *, keep: str, now: int) -> Verb[None]:
    """End the sessions that were made with an identity, except the one of this ID; part of other store methods.

    Sessions with any identity end if nothing tells which one: they are older, or came from a game.
    """
    for session in (yield from sessions_of_user(user_id, now)):
        is_unknown = not session.proved and session.auth in IDENTITY_METHODS
        if session.session_id != keep and (proof in session.proved or is_unknown):
            yield DROP_SESSION(of=user_id, named=session.session_id)
            yield from revoke_session_grants(user_id, session.session_id, now)


def sessions_of_user(user_id: str, now: int) -> Verb[Sequence[Session]]:
    rows = yield SESSIONS_OF_USER(of=user_id, now=now)
    return [session_from_fields(row._asdict()) for row in rows]


def revoke_user(user_id: str, entry: AuditRecord, *, keep: bytes | None, now: int) -> Verb[int]:
    rev = yield from raise_rev(user_id, keep=keep, now=now)
    yield from add_audit_record(entry)
    return rev


def raise_rev(user_id: str, *, keep: bytes | None, now: int) -> Verb[int]:
    """Raise the account's epoch, which ends old sessions and tokens; part of other store methods."""
    raised = yield RAISE_REV(of=user_id, epoch=now * 1_000)
    if not raised:
        raise UserNotFound
    rev: int = raised[0].rev
    if keep is not None:
        yield SET_SESSION_REV(of=user_id, keep=keep, rev=rev)
    yield DROP_OLDER_SESSIONS(of=user_id, rev=rev)
    yield DROP_LOGIN_TOKENS(of=user_id)
    yield from revoke_user_grants(user_id, now)
    return rev


class SessionStorage(SqlStore):
    open_session = write(open_session)
    find_session = read(find_session)
    update_last_seen = inline_write(update_last_seen)
    end_session = write(end_session)
    sessions_of_user = read(sessions_of_user)
    revoke_user = write(revoke_user)


def session_from_fields(fields: dict[str, Any]) -> Session:
    fields["auth"] = SignInMethod(fields["auth"])
    fields["strength"] = SessionStrength(fields["strength"])
    fields["proved"] = tuple(fields["proved"])
    return Session(**fields)


USER_PART: Final = RowPart(user_from_row, SELECT_USER.exported_columns)
SESSION_PART: Final = RowPart(session_from_fields, sessions.c, after=USER_PART)


# Tokens of the login operation (accounts/login_result.py, oauth/store.py).


SHORT_TOKEN: Final = "stoken"  # noqa: S105 - a kind of single-use thing

LOCK_UNREVOKED_USER = Statement(
    select(users.c.user_id)
    .where(users.c.user_id == bindparam("of"), users.c.rev == bindparam("rev"), users.c.blocked.is_(False))
    .with_for_update(read=True)  # a concurrent revocation waits, or has won already
)
INSERT_LOGIN_TOKEN = Statement(insert(login_tokens))
DROP_LOGIN_TOKEN = Statement(
    delete(login_tokens).where(login_tokens.c.digest == bindparam("of")).returning(login_tokens.c.digest)
)
LIVE_LOGIN_TOKEN = Statement(
    select(
        login_tokens.c.user_id,
        login_tokens.c.application_id,
        login_tokens.c.ends_at,
        users.c.bans,
        select(applications.c.project_id)
        .where(applications.c.application_id == login_tokens.c.application_id)
        .scalar_subquery()
        .label("project_id"),
    )
    .join(users, and_(users.c.user_id == login_tokens.c.user_id, users.c.rev == login_tokens.c.rev))
    .where(
        login_tokens.c.digest == bindparam("of"),
        login_tokens.c.ends_at > bindparam("now"),
        users.c.blocked.is_(False),
    )
)


def save_login(login: LoginTokenRecord, entry: AuditRecord) -> Verb[bool]:
    if not (yield LOCK_UNREVOKED_USER(of=login.user_id, rev=login.rev)):
        return False
    yield from insert_login(login, entry)
    return True


def insert_login(login: LoginTokenRecord, entry: AuditRecord) -> Verb[None]:
    """Store a login; the caller holds a lock on the account against revocation."""
    yield INSERT_LOGIN_TOKEN(**token_row(login))
    if login.stoken is not None:
        yield from single_use.put_single_use(
            SHORT_TOKEN,
            login.stoken,
            subject=login.user_id,
            details={"address": login.address, "rev": login.rev, "auth": login.auth.value},
            now=login.now,
            expires_at=login.stoken_ends_at,
        )
    yield from add_audit_record(entry)


def delete_login(login: LoginTokenRecord) -> Verb[bool]:
    """Delete what `save_login` stored; False when it is gone."""
    if not (yield DROP_LOGIN_TOKEN(of=login.token)):
        return False
    if login.stoken is not None:
        yield single_use.DROP_SECRET(of_kind=SHORT_TOKEN, of_digest=login.stoken)
    return True


def token_row(login: LoginTokenRecord) -> dict[str, object]:
    return {
        "digest": login.token,
        "user_id": login.user_id,
        "rev": login.rev,
        "application_id": login.application_id,
        "ends_at": login.token_ends_at,
    }


def live_login_token(digest: bytes, now: int) -> Verb[LoginToken | None]:
    rows = yield LIVE_LOGIN_TOKEN(of=digest, now=now)
    if not rows:
        return None
    row, bans = rows[0], bans_from_document(rows[0].bans)
    if find_ban(bans, now, application_id=row.application_id, project_id=row.project_id or "") is not None:
        return None
    return LoginToken(user_id=row.user_id, application_id=row.application_id, ends_at=row.ends_at)


def find_short_token_owner(digest: bytes, address: str, now: int) -> Verb[ShortTokenOwner | None]:
    return _short_token_owner((yield from single_use.find_single_use(SHORT_TOKEN, digest, now)), address)


def take_short_token(digest: bytes, address: str, now: int) -> Verb[ShortTokenOwner | None]:
    if (yield from find_short_token_owner(digest, address, now)) is None:
        return None
    return _short_token_owner((yield from single_use.take_single_use(SHORT_TOKEN, digest, now)), address)


class LoginStorage(SqlStore):
    save_login = inline_write(save_login)
    live_login_token = read(live_login_token)
    find_short_token_owner = read(find_short_token_owner)
    take_short_token = write(take_short_token)


def _short_token_owner(row: Row | None, address: str) -> ShortTokenOwner | None:
    if row is None or row.details["address"] != address:
        return None
    return ShortTokenOwner(
        user_id=row.subject, rev=row.details["rev"], auth=SignInMethod(row.details.get("auth", SignInMethod.LOGIN))
    )
