"""Game sign-ins of the last hours with their results: confirmed ones from the audit log, failed ones from refusals.

A session itself is deleted when it expires. One that no one finished leaves nothing behind.
"""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from sqlalchemy import BigInteger, Text, bindparam, or_, select, type_coerce

from gatehouse.admin.activity import ActivityFilter, activity
from gatehouse.admin.paging import ESCAPE, contains_pattern
from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.storage.audit import refusal_from_row
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.audit import audit_refusals

MAX_SHOWN: Final = 100
MAX_READ: Final = 1_000  # of each kind, for one page


class GameResult(StrEnum):
    """The texts are `games.result_<value>`."""

    CONFIRMED = "confirmed"
    FAILED = "failed"


class RecentGame(Struct, frozen=True, kw_only=True):
    at: int
    result: GameResult
    gsid: str
    application_id: int  # 0 for none
    user_id: str  # empty when no one had signed in
    reason: str  # of a failure
    record_id: str
    refusal: Refusal | None = None  # of a failure


class RecentGames(Struct, frozen=True, kw_only=True):
    rows: Sequence[RecentGame]
    is_cut: bool  # there are more than are shown


class RecentGamesFilter(Struct, frozen=True, kw_only=True):
    since: int
    result: GameResult | None = None
    user_id: str = ""
    application_id: int = 0
    among: Collection[int] | None = None  # the only applications visible to this viewer; None for all


_PERSONAL: Final = type_coerce(audit_refusals.c.personal, Text)
_DETAILS: Final = type_coerce(audit_refusals.c.details, Text)
FAILED_SINCE = Statement(
    lambda: (
        select(audit_refusals)
        .where(
            audit_refusals.c.event == AuditEvent.GAME_ENDED.value,
            audit_refusals.c.at >= bindparam("since", type_=BigInteger()),
            _PERSONAL.like(bindparam("whom", type_=Text()), escape=ESCAPE),
            or_(
                _DETAILS.like(bindparam("app_first", type_=Text()), escape=ESCAPE),
                _DETAILS.like(bindparam("app_last", type_=Text()), escape=ESCAPE),
            ),
        )
        .order_by(audit_refusals.c.position.desc())
        .limit(bindparam("most", type_=BigInteger()))
    )
)
ANYTHING: Final = "%"
CLOSED_BY_ADMIN: Final = "closed by an administrator"  # gamesessions/administration.py


def recent_games(wanted: RecentGamesFilter) -> Verb[RecentGames]:
    """Return the newest ones that match, at most MAX_SHOWN."""
    rows: list[RecentGame] = []
    is_cut = False
    if wanted.result in (None, GameResult.CONFIRMED):
        page = yield from activity(_confirmed_filter(wanted), MAX_READ)
        rows += [_from_record(record) for record in page.records]
        is_cut = page.after is not None
    if wanted.result in (None, GameResult.FAILED):
        number = wanted.application_id
        failed = yield FAILED_SINCE(
            since=wanted.since,
            whom=contains_pattern(f'"actor":"{wanted.user_id}"') if wanted.user_id else ANYTHING,
            app_first=contains_pattern(f'"app_id":{number},') if number else ANYTHING,
            app_last=contains_pattern(f'"app_id":{number}}}') if number else ANYTHING,
            most=MAX_READ,
        )
        rows += [_from_refusal(refusal_from_row(row)) for row in failed]
        is_cut |= len(failed) == MAX_READ
    if wanted.among is not None:
        rows = [row for row in rows if row.application_id in wanted.among]
    rows.sort(key=lambda row: (row.at, row.record_id), reverse=True)
    return RecentGames(rows=rows[:MAX_SHOWN], is_cut=is_cut or len(rows) > MAX_SHOWN)


def _confirmed_filter(wanted: RecentGamesFilter) -> ActivityFilter:
    return ActivityFilter(
        events=(AuditEvent.GAME_CONFIRMED.value,),
        subject=wanted.user_id,
        application_id=wanted.application_id,
        since=wanted.since,
    )


def _from_record(record: AuditRecord) -> RecentGame:
    return RecentGame(
        at=record.at,
        result=GameResult.CONFIRMED,
        gsid=str(record.details.get("gsid", "")),
        application_id=_number(record.details.get("app_id")),
        user_id=record.subject,
        reason="",
        record_id=record.record_id,
    )


def _from_refusal(refusal: Refusal) -> RecentGame:
    by_admin = refusal.reason.startswith(CLOSED_BY_ADMIN)
    actor = "" if by_admin else refusal.personal.get("actor", "")
    return RecentGame(
        at=refusal.at,
        result=GameResult.FAILED,
        gsid=refusal.subject,
        application_id=_number(refusal.details.get("app_id")),
        user_id=actor if actor.isdecimal() else "",
        reason=refusal.reason,
        record_id=refusal.record_id,
        refusal=refusal,
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


class RecentGameStore(SqlStore):
    recent = snapshot_read(recent_games)
