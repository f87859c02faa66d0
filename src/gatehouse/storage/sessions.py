"""Keeps browser sessions (accounts/sessions.py)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import and_, bindparam, case, delete, insert, select, update

from gatehouse.accounts.errors import UserNotFound
from gatehouse.accounts.model import Auth, Session, SignedIn, Strength
from gatehouse.audit.model import Record
from gatehouse.mail.model import Mail
from gatehouse.storage.accounts import WHOLE_USER, whole_user
from gatehouse.storage.audit import record
from gatehouse.storage.logout_calls import end_session_grants, end_user_grants
from gatehouse.storage.mail import queue
from gatehouse.storage.rows import Part, columns_of
from gatehouse.storage.runner import Stored, act, brief_act, look
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import login_tokens, sessions, users

_LIVE = and_(sessions.c.idle_ends_at > bindparam("now"), sessions.c.ends_at > bindparam("now"))

INSERT = Statement(insert(sessions))
END = Statement(
    delete(sessions)
    .where(sessions.c.digest == bindparam("of"))
    .returning(sessions.c.session_id, sessions.c.user_id, sessions.c.rev)
)
FIND = Statement(  # the session and the whole account in one round trip
    WHOLE_USER.add_columns(*(column.label(f"session_{column.name}") for column in sessions.c))
    .join(sessions, and_(users.c.user_id == sessions.c.user_id, users.c.rev == sessions.c.rev))
    .where(sessions.c.digest == bindparam("of"), _LIVE, users.c.blocked.is_(False))
)
SEEN = Statement(
    update(sessions)
    .where(sessions.c.digest == bindparam("of"), sessions.c.seen_at < bindparam("at"))
    .values(seen_at=bindparam("at"), idle_ends_at=bindparam("idle_ends"))
)
END_ONE = Statement(
    delete(sessions)
    .where(sessions.c.user_id == bindparam("of"), sessions.c.session_id == bindparam("named"))
    .returning(sessions.c.session_id)
)
OF_USER = Statement(
    select(sessions)
    .join(users, and_(users.c.user_id == sessions.c.user_id, users.c.rev == sessions.c.rev))
    .where(sessions.c.user_id == bindparam("of"), _LIVE)
    .order_by(sessions.c.seen_at.desc(), sessions.c.session_id)
)
RAISE_REV = Statement(
    update(users)
    .where(users.c.user_id == bindparam("of"))
    .values(rev=case((users.c.rev >= bindparam("epoch"), users.c.rev + 1), else_=bindparam("epoch")))
    .returning(users.c.rev)
)
CARRY_OVER = Statement(
    update(sessions)
    .where(sessions.c.user_id == bindparam("of"), sessions.c.digest == bindparam("keep"))
    .values(rev=bindparam("rev"))
)
END_OTHERS = Statement(
    delete(sessions).where(sessions.c.user_id == bindparam("of"), sessions.c.rev < bindparam("rev"))
)
END_TOKENS = Statement(delete(login_tokens).where(login_tokens.c.user_id == bindparam("of")))


def open_session(
    session: Session, entry: Record, *, replaces: bytes | None, mails: Sequence[Mail] = ()
) -> Verb[Session]:
    if replaces is not None:
        session = yield from _in_place_of(replaces, session)
    yield INSERT(**columns_of(session))
    yield from queue(mails, session.user_id)
    yield from record(entry)
    return session


def _in_place_of(old: bytes, session: Session) -> Verb[Session]:
    """Whoever signs in once more goes on under the id that clients know; if it is another person they are told."""
    for ended in (yield END(of=old)):
        if (ended.user_id, ended.rev) == (session.user_id, session.rev):
            return replace(session, session_id=ended.session_id)
        yield from end_session_grants(ended.user_id, ended.session_id, session.created_at)
    return session


def find(digest: bytes, now: int) -> Verb[SignedIn | None]:
    rows = yield FIND(of=digest, now=now)
    if not rows:
        return None
    return SignedIn(session=SESSION_PART.of(rows[0]), user=USER_PART.of(rows[0]))


def seen(digest: bytes, now: int, idle_ends_at: int) -> Verb[None]:
    yield SEEN(of=digest, at=now, idle_ends=idle_ends_at)


def end(user_id: str, session_id: str, entry: Record) -> Verb[bool]:
    if not (yield END_ONE(of=user_id, named=session_id)):
        return False
    yield from end_session_grants(user_id, session_id, entry.at)
    yield from record(entry)
    return True


def of_user(user_id: str, now: int) -> Verb[Sequence[Session]]:
    rows = yield OF_USER(of=user_id, now=now)
    return [_session(row._asdict()) for row in rows]


def revoke(user_id: str, entry: Record, *, keep: bytes | None, now: int) -> Verb[int]:
    rev = yield from raise_rev(user_id, keep=keep, now=now)
    yield from record(entry)
    return rev


def raise_rev(user_id: str, *, keep: bytes | None, now: int) -> Verb[int]:
    """Part of every verb after which old sessions and tokens must be dead."""
    raised = yield RAISE_REV(of=user_id, epoch=now * 1_000)
    if not raised:
        raise UserNotFound
    rev: int = raised[0].rev
    if keep is not None:
        yield CARRY_OVER(of=user_id, keep=keep, rev=rev)
    yield END_OTHERS(of=user_id, rev=rev)
    yield END_TOKENS(of=user_id)
    yield from end_user_grants(user_id, now)
    return rev


class SessionStorage(Stored):
    open = act(open_session)
    find = look(find)
    seen = brief_act(seen)
    end = act(end)
    of_user = look(of_user)
    revoke = act(revoke)


def _session(fields: dict[str, Any]) -> Session:
    fields["auth"] = Auth(fields["auth"])
    fields["strength"] = Strength(fields["strength"])
    return Session(**fields)


USER_PART: Final = Part(whole_user, WHOLE_USER.exported_columns)
SESSION_PART: Final = Part(_session, sessions.c, after=USER_PART)
