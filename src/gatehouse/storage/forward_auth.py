"""Stores hand-overs to protected sites and the sessions there (forward_auth/store.py)."""

from collections.abc import Callable
from typing import Final

from sqlalchemy import and_, bindparam, insert, literal_column, select

from gatehouse.accounts.session_model import Session, UserSession
from gatehouse.audit.model import AuditRecord
from gatehouse.forward_auth.model import HandOver, SiteSession, SiteSignInRequest, SiteVisit
from gatehouse.permissions.model.protected_site import ProtectedSite
from gatehouse.storage import single_use
from gatehouse.storage.accounts.sessions import (
    SESSION_COLUMNS,
    STORED_SESSION,
    UNEXPIRED_SESSION,
    session_from_fields,
)
from gatehouse.storage.accounts.users import SELECT_USER, USER_COLUMNS
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.epoch import USER_REV
from gatehouse.storage.rows import RecordColumns, column_values
from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import sessions, site_sessions, users
from gatehouse.storage.tables.permissions import protected_sites

HAND_OVER: Final = "site_hand_over"  # a kind of single-use thing

_THIS_ORIGIN = protected_sites.c.origin == bindparam("at_origin")
FIND_SITE = Statement(lambda: select(protected_sites).where(_THIS_ORIGIN))
FIND_OTHER_APPLICATION = Statement(
    lambda: (
        select(protected_sites.c.application_id)
        .where(protected_sites.c.application_id != bindparam("of"))
        .limit(literal_column("1"))
    )
)
LOCK_SESSION = Statement(  # a concurrent sign-out or revocation waits, or has won already
    lambda: (
        select(*STORED_SESSION)
        .join(users, and_(users.c.user_id == sessions.c.user_id, sessions.c.rev == USER_REV))
        .where(
            sessions.c.user_id == bindparam("of"),
            sessions.c.session_id == bindparam("named"),
            sessions.c.rev == bindparam("began_with"),
            UNEXPIRED_SESSION,
            users.c.blocked.is_(False),
        )
        .with_for_update(read=True)
    )
)
INSERT_SITE_SESSION = Statement(lambda: insert(site_sessions))
FIND_VISIT = Statement(  # the person, their session and the site in one round trip
    lambda: (
        SELECT_USER.add_columns(
            *(column.label(f"session_{column.name}") for column in STORED_SESSION),
            *(column.label(f"site_{column.name}") for column in protected_sites.c),
        )
        .join(sessions, and_(users.c.user_id == sessions.c.user_id, sessions.c.rev == USER_REV))
        .join(
            site_sessions,
            and_(
                site_sessions.c.session_id == sessions.c.session_id,
                site_sessions.c.user_id == users.c.user_id,
                site_sessions.c.rev == USER_REV,
            ),
        )
        .join(protected_sites, protected_sites.c.origin == site_sessions.c.origin)
        .where(
            site_sessions.c.digest == bindparam("of"),
            site_sessions.c.ends_at > bindparam("now"),
            _THIS_ORIGIN,
            UNEXPIRED_SESSION,
            users.c.blocked.is_(False),
        )
    ),
    records={
        "user": USER_COLUMNS,
        "session": SESSION_COLUMNS,
        "site": RecordColumns(lambda fields: ProtectedSite(**fields), protected_sites.c),
    },
)


def find_site(origin: str) -> Verb[ProtectedSite | None]:
    rows = yield FIND_SITE(at_origin=origin)
    return ProtectedSite(**rows[0]._asdict()) if rows else None


def has_other_applications(application_id: int) -> Verb[bool]:
    return bool((yield FIND_OTHER_APPLICATION(of=application_id)))


def create_hand_over(hand_over: HandOver) -> Verb[None]:
    request = hand_over.request
    yield single_use.INSERT_SECRET(  # others of the same person stay valid: several sites may be opened at once
        kind=HAND_OVER,
        digest=hand_over.digest,
        subject=hand_over.user_id,
        details={
            **column_values(request),
            "rev": hand_over.rev,
            "session_id": hand_over.session_id,
        },
        created_at=hand_over.created_at,
        expires_at=hand_over.ends_at,
        taken_at=0,
    )


def take_hand_over(
    code: bytes,
    origin: str,
    challenge: str,
    now: int,
    new: Callable[[HandOver, Session], tuple[SiteSession, AuditRecord]],
) -> Verb[HandOver | None]:
    row = yield from single_use.take_single_use(HAND_OVER, code, now)
    if row is None:
        return None
    taken = _hand_over_from_row(row, code, now)
    if (taken.request.origin, taken.request.challenge) != (origin, challenge):
        return None  # returning commits: the code is used up
    live = yield LOCK_SESSION(of=taken.user_id, named=taken.session_id, began_with=taken.rev, now=now)
    if not live:
        return None
    session, entry = new(taken, session_from_fields(live[0]._asdict()))
    yield INSERT_SITE_SESSION(**column_values(session))
    yield from add_audit_record(entry)
    return taken


def _hand_over_from_row(row: Row, code: bytes, now: int) -> HandOver:
    details = row.details
    request = SiteSignInRequest(origin=details["origin"], path=details["path"], challenge=details["challenge"])
    return HandOver(
        digest=code,
        request=request,
        user_id=row.subject,
        rev=details["rev"],
        session_id=details["session_id"],
        created_at=now,
        ends_at=now,
    )


def find_visit(digest: bytes, origin: str, now: int) -> Verb[SiteVisit | None]:
    rows = yield FIND_VISIT(of=digest, at_origin=origin, now=now)
    if not rows:
        return None
    [row] = rows
    return SiteVisit(site=row.site, signed_in=UserSession(session=row.session, user=row.user))


class SiteStorage(SqlStore):
    find_site = read(find_site)
    has_other_applications = read(has_other_applications)
    create_hand_over = write(create_hand_over)
    take_hand_over = write(take_hand_over)
    find_visit = read(find_visit)
