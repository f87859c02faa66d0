"""Storage of browser sessions (accounts/store.py)."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import and_, bindparam, case, delete, insert, select, update

from gatehouse.accounts.errors import NoAccountForIdentity, UserNotFound
from gatehouse.accounts.model import SessionStrength, SignInMethod
from gatehouse.accounts.session_model import IDENTITY_PROOF, Session, UserSession, identity_proof
from gatehouse.audit.model import AuditRecord
from gatehouse.mail.model import OutboxMail
from gatehouse.storage.accounts.users import SELECT_USER, USER_COLUMNS
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.epoch import USER_REV, next_rev
from gatehouse.storage.mail import queue_mails
from gatehouse.storage.oauth.logout_calls import revoke_session_grants, revoke_user_grants
from gatehouse.storage.rows import RecordColumns, column_values
from gatehouse.storage.runner import SqlStore, inline_write, read, write
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import identities, login_tokens, sessions, users

IDENTITY_METHODS: Final = frozenset({SignInMethod.PROVIDER, SignInMethod.PLATFORM})

UNEXPIRED_SESSION = and_(sessions.c.idle_ends_at > bindparam("now"), sessions.c.ends_at > bindparam("now"))


def session_from_fields(fields: dict[str, Any]) -> Session:
    fields["auth"] = SignInMethod(fields["auth"])
    fields["strength"] = SessionStrength(fields["strength"])
    fields["proved"] = tuple(fields["proved"])
    return Session(**fields)


STORED_SESSION: Final = tuple(column for column in sessions.c if column is not sessions.c.sweep_at)
SESSION_COLUMNS: Final = RecordColumns(session_from_fields, STORED_SESSION)
SWEEP_DELAY: Final = 86_400  # seconds after a session idled out, at most
INSERT_SESSION = Statement(lambda: insert(sessions))
DROP_SESSION_BY_DIGEST = Statement(
    lambda: (
        delete(sessions)
        .where(sessions.c.digest == bindparam("of"))
        .returning(sessions.c.session_id, sessions.c.user_id, sessions.c.rev, sessions.c.proved)
    )
)
FIND_SESSION = Statement(  # the session and the whole account in one round trip
    lambda: (
        SELECT_USER.add_columns(*(column.label(f"session_{column.name}") for column in STORED_SESSION))
        .join(sessions, and_(users.c.user_id == sessions.c.user_id, sessions.c.rev == USER_REV))
        .where(sessions.c.digest == bindparam("of"), UNEXPIRED_SESSION, users.c.blocked.is_(False))
    ),
    records={"user": USER_COLUMNS, "session": SESSION_COLUMNS},
)
TOUCH_SESSION = Statement(
    lambda: (
        update(sessions)
        .where(sessions.c.digest == bindparam("of"), sessions.c.seen_at < bindparam("at"))
        .values(
            seen_at=bindparam("at"),
            idle_ends_at=bindparam("idle_ends"),
            sweep_at=case(
                (sessions.c.sweep_at >= bindparam("idle_ends"), sessions.c.sweep_at),
                (sessions.c.ends_at < bindparam("sweep_at"), sessions.c.ends_at),
                else_=bindparam("sweep_at"),
            ),
        )
    )
)
DROP_SESSION = Statement(
    lambda: (
        delete(sessions)
        .where(sessions.c.user_id == bindparam("of"), sessions.c.session_id == bindparam("named"))
        .returning(sessions.c.session_id)
    )
)
SESSIONS_OF_USER = Statement(
    lambda: (
        select(*STORED_SESSION)
        .join(users, and_(users.c.user_id == sessions.c.user_id, sessions.c.rev == USER_REV))
        .where(sessions.c.user_id == bindparam("of"), UNEXPIRED_SESSION)
        .order_by(sessions.c.seen_at.desc(), sessions.c.session_id)
    ),
    records={"session": SESSION_COLUMNS},
)
RAISE_REV = Statement(
    lambda: (
        update(users).where(users.c.user_id == bindparam("of")).values(rev=next_rev(USER_REV)).returning(users.c.rev)
    )
)
SET_SESSION_REV = Statement(
    lambda: (
        update(sessions)
        .where(sessions.c.user_id == bindparam("of"), sessions.c.digest == bindparam("keep"))
        .values(rev=bindparam("rev"))
    )
)
DROP_OLDER_SESSIONS = Statement(
    lambda: delete(sessions).where(sessions.c.user_id == bindparam("of"), sessions.c.rev < bindparam("rev"))
)
DROP_LOGIN_TOKENS = Statement(lambda: delete(login_tokens).where(login_tokens.c.user_id == bindparam("of")))


# Locked until the session is stored: an identity that is disconnected at this moment ends it, or is gone here.
PROVED_IDENTITIES = Statement(
    lambda: (
        select(identities.c.issuer, identities.c.subject)
        .where(identities.c.user_id == bindparam("of"))
        .with_for_update(read=True)
    )
)


def open_session(
    session: Session, entry: AuditRecord, *, replaces: bytes | None, mails: Sequence[OutboxMail] = ()
) -> Verb[Session]:
    yield from refuse_gone_identity(session)
    if replaces is not None:
        session = yield from _replace_session(replaces, session)
    yield from insert_session(session)
    yield from queue_mails(mails, session.user_id)
    yield from add_audit_record(entry)
    return session


def insert_session(session: Session) -> Verb[None]:
    sweep_at = min(session.ends_at, session.idle_ends_at + SWEEP_DELAY)
    yield INSERT_SESSION(**column_values(session), sweep_at=sweep_at)


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
    return UserSession(session=rows[0].session, user=rows[0].user)


def update_last_seen(digest: bytes, now: int, idle_ends_at: int) -> Verb[None]:
    yield TOUCH_SESSION(of=digest, at=now, idle_ends=idle_ends_at, sweep_at=idle_ends_at + SWEEP_DELAY)


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
    return [row.session for row in rows]


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
