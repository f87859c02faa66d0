"""Game sessions as the console lists them.

A session is named by the beginning of its gsid. The whole gsid opens the session's page and polls it from the game's
address (R4), so no screen shows it.
"""

import re
from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct
from sqlalchemy import BigInteger, Boolean, Text, and_, bindparam, case, cast, func, or_, select

from gatehouse.admin.paging import ESCAPE, SEARCH, Page, PagedList, PageRequest
from gatehouse.audit.model import Refusal
from gatehouse.gamesessions.model import GameSession, GameSessionState
from gatehouse.storage.runner import SqlStore, read, snapshot_read
from gatehouse.storage.statements import InNumberList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.audit import audit_refusals
from gatehouse.storage.tables.gamesessions import game_sessions
from gatehouse.storage.tables.permissions import applications

REF_LENGTH: Final = 13
REF_PATTERN: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}", re.ASCII)
REFUSALS_SHOWN: Final = 20


def session_ref(gsid: str) -> str:
    return gsid[:REF_LENGTH]


class GameSessionListItem(Struct, frozen=True, kw_only=True):
    ref: str
    state: GameSessionState
    closed: str
    application_id: int  # 0 for none
    application: str
    user_id: str
    nick: str
    address: str
    polls: int
    created_at: int
    polled_at: int
    last_seen: int
    opened_at: int
    signing_in_at: int
    ends_at: int


_S: Final = game_sessions.c
_APPLICATION: Final = case((_S.app_id != 0, _S.app_id), else_=_S.gapp_id)
_STATE: Final = bindparam("state", type_=Text())
_ALL: Final = bindparam("everything", type_=Boolean())
_GSID_PREFIX: Final = func.substr(_S.gsid, 1, REF_LENGTH)
_FROM: Final = game_sessions.outerjoin(applications, applications.c.application_id == _APPLICATION).outerjoin(
    users, users.c.user_id == _S.user_id
)
_PUBLIC_TEXTS: Final = (func.coalesce(applications.c.name, ""), _GSID_PREFIX, cast(_APPLICATION, Text))
_PERSONAL_TEXTS: Final = (_S.user_id, func.coalesce(users.c.nick, ""), _S.address)
_MATCHES_SEARCH: Final = or_(
    *(func.lower(column).like(SEARCH, escape=ESCAPE) for column in _PUBLIC_TEXTS),
    and_(_ALL, or_(*(func.lower(column).like(SEARCH, escape=ESCAPE) for column in _PERSONAL_TEXTS))),
)
_WHERE: Final = (
    _S.ends_at > bindparam("now", type_=BigInteger()),
    or_(_STATE == "", _S.state == _STATE),
    or_(_ALL, InNumberList(_S.app_id, "numbers"), InNumberList(_S.gapp_id, "numbers")),
    _MATCHES_SEARCH,
)
SESSION_LIST = PagedList(
    select(
        *(_S.gsid, _S.state, _S.closed, _S.user_id, _S.address, _S.polls, _S.created_at, _S.polled_at, _S.last_seen),
        *(_S.opened_at, _S.signing_in_at, _S.ends_at),
        _APPLICATION.label("application_id"),
        func.coalesce(applications.c.name, "").label("application"),
        func.coalesce(users.c.nick, "").label("nick"),
    )
    .select_from(_FROM)
    .where(*_WHERE)
    .order_by(_S.created_at.desc(), _S.gsid),
    counted=select(func.count().label("total")).select_from(_FROM).where(*_WHERE),
)
SESSION_BY_REF = Statement(
    lambda: (
        select(game_sessions)
        .where(_S.gsid >= bindparam("begins"), _S.gsid < bindparam("beyond"), _S.ends_at > bindparam("now"))
        .limit(1)
    )
)
REFUSALS_OF_SESSION = Statement(
    lambda: (
        select(audit_refusals)
        .where(audit_refusals.c.subject == bindparam("gsid"))
        .order_by(audit_refusals.c.position.desc())
        .limit(REFUSALS_SHOWN)
    )
)


def list_sessions(
    page_request: PageRequest, now: int, *, state: str, among: Collection[int] | None
) -> Verb[Page[GameSessionListItem]]:
    """Return a page of open sessions, the newest first.

    `among`: only these applications; people are then not searched.
    """
    numbers = sorted(among or ())
    return SESSION_LIST.read_page(
        page_request, _list_item, now=now, state=state, everything=among is None, numbers=numbers
    )


def find_session(ref: str, now: int) -> Verb[GameSession | None]:
    """Return the session whose gsid begins so, if it has not ended."""
    rows = yield SESSION_BY_REF(begins=ref, beyond=f"{ref}g", now=now)
    return GameSession(**{**rows[0]._asdict(), "state": GameSessionState(rows[0].state)}) if rows else None


def refusals_of_session(gsid: str) -> Verb[Sequence[Refusal]]:
    """Return the stored refusals about the session, the newest first."""
    return [_refusal_from_row(row) for row in (yield REFUSALS_OF_SESSION(gsid=gsid))]


def _list_item(row: Row) -> GameSessionListItem:
    fields = row._asdict()
    return GameSessionListItem(
        ref=session_ref(fields.pop("gsid")), state=GameSessionState(fields.pop("state")), **fields
    )


def _refusal_from_row(row: Row) -> Refusal:
    fields = row._asdict()
    del fields["position"]
    return Refusal(**fields)


class GameSessionListStore(SqlStore):
    sessions = snapshot_read(list_sessions)
    find_session = read(find_session)
    refusals = read(refusals_of_session)
