"""Lists game sessions (admin/model/games.py)."""

from collections.abc import Collection, Sequence
from typing import Final

from sqlalchemy import BigInteger, Boolean, Text, and_, bindparam, case, cast, func, or_, select

from gatehouse.admin.model.games import REF_LENGTH, REFUSALS_SHOWN, GameLine, ref_of
from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.audit.model import Refusal
from gatehouse.gamesessions.model import GameSession, State
from gatehouse.storage.admin.searching import ESCAPE, SEARCH, Listing
from gatehouse.storage.runner import Stored, look, survey
from gatehouse.storage.statements import OneOfNumbers, Row, Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.applications import applications
from gatehouse.storage.tables.audit import audit_refusals
from gatehouse.storage.tables.gamesessions import game_sessions

_S: Final = game_sessions.c
_APPLICATION: Final = case((_S.app_id != 0, _S.app_id), else_=_S.gapp_id)
_STATE: Final = bindparam("state", type_=Text())
_ALL: Final = bindparam("everything", type_=Boolean())
_BEGINS: Final = func.substr(_S.gsid, 1, REF_LENGTH)
_FROM: Final = game_sessions.outerjoin(applications, applications.c.application_id == _APPLICATION).outerjoin(
    users, users.c.user_id == _S.user_id
)
_IN_ALL: Final = (func.coalesce(applications.c.name, ""), _BEGINS, cast(_APPLICATION, Text))
_OF_PEOPLE: Final = (_S.user_id, func.coalesce(users.c.nick, ""), _S.address)
_FOUND: Final = or_(
    *(func.lower(column).like(SEARCH, escape=ESCAPE) for column in _IN_ALL),
    and_(_ALL, or_(*(func.lower(column).like(SEARCH, escape=ESCAPE) for column in _OF_PEOPLE))),
)
_WHERE: Final = (
    _S.ends_at > bindparam("now", type_=BigInteger()),
    or_(_STATE == "", _S.state == _STATE),
    or_(_ALL, OneOfNumbers(_S.app_id, "numbers"), OneOfNumbers(_S.gapp_id, "numbers")),
    _FOUND,
)
LINES = Listing(
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
BY_REF = Statement(
    select(game_sessions)
    .where(_S.gsid >= bindparam("begins"), _S.gsid < bindparam("beyond"), _S.ends_at > bindparam("now"))
    .limit(1)
)
REFUSALS = Statement(
    select(audit_refusals)
    .where(audit_refusals.c.subject == bindparam("gsid"))
    .order_by(audit_refusals.c.position.desc())
    .limit(REFUSALS_SHOWN)
)


def listed(wanted: Wanted, now: int, *, state: str, among: Collection[int] | None) -> Verb[Page[GameLine]]:
    numbers = sorted(among or ())
    return LINES.page(wanted, _line, now=now, state=state, everything=among is None, numbers=numbers)


def session(ref: str, now: int) -> Verb[GameSession | None]:
    rows = yield BY_REF(begins=ref, beyond=f"{ref}g", now=now)
    return GameSession(**{**rows[0]._asdict(), "state": State(rows[0].state)}) if rows else None


def refusals(gsid: str) -> Verb[Sequence[Refusal]]:
    return [_refusal(row) for row in (yield REFUSALS(gsid=gsid))]


def _line(row: Row) -> GameLine:
    fields = row._asdict()
    return GameLine(ref=ref_of(fields.pop("gsid")), state=State(fields.pop("state")), **fields)


def _refusal(row: Row) -> Refusal:
    fields = row._asdict()
    del fields["position"]
    return Refusal(**fields)


class GameListStorage(Stored):
    sessions = survey(listed)
    session = look(session)
    refusals = look(refusals)
