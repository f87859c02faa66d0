"""The console's home page: counts, and what expires soon."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Select, bindparam, exists, func, literal_column, or_, select

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION
from gatehouse.gamesessions.model import GameSessionState
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import passkeys, totp_factors, users
from gatehouse.storage.tables.gamesessions import game_sessions
from gatehouse.storage.tables.oauth import clients
from gatehouse.storage.tables.permissions import applications, projects, role_assignments, roles, service_tokens


class EndingKind(StrEnum):
    """What expires; the texts are `home.ends_<value>`."""

    ROLE = "role"
    SERVICE_TOKEN = "service_token"  # noqa: S105 - a kind, no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingSoon:
    what: EndingKind
    name: str  # of the role, or the purpose of a token
    application_id: int
    application: str
    user_id: str = ""
    nick: str = ""
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationCounts:
    """Counts of the main kinds of records."""

    people: int
    administrators_with_factor: int
    projects: int
    applications: int  # without application 1
    roles: int  # of those applications
    clients: int
    waiting_games: int


_NOW: Final = bindparam("now", type_=BigInteger())
_UNTIL: Final = bindparam("until", type_=BigInteger())
_MOST: Final = bindparam("most", type_=BigInteger())


def _count(counted: Select[Any], name: str) -> ColumnElement[int]:
    return counted.scalar_subquery().label(name)


_WITH_FACTOR = (
    select(func.count())
    .select_from(role_assignments)
    .where(
        role_assignments.c.application_id == CENTRAL_APPLICATION,
        role_assignments.c.role_key == ADMINISTRATOR_ROLE,
        role_assignments.c.project_id == "",
        or_(
            exists().where(totp_factors.c.user_id == role_assignments.c.user_id),
            exists().where(passkeys.c.user_id == role_assignments.c.user_id),
        ),
    )
)
COUNTS = Statement(
    select(
        _count(select(func.count()).select_from(users), "people"),
        _count(_WITH_FACTOR, "administrators_with_factor"),
        _count(select(func.count()).where(projects.c.removed.is_(False)), "projects"),
        _count(
            select(func.count()).where(
                applications.c.removed.is_(False), applications.c.application_id != CENTRAL_APPLICATION
            ),
            "applications",
        ),
        _count(select(func.count()).where(roles.c.application_id != CENTRAL_APPLICATION), "roles"),
        _count(select(func.count()).where(clients.c.removed.is_(False)), "clients"),
        _count(
            select(func.count()).where(
                game_sessions.c.state == GameSessionState.PENDING.value, game_sessions.c.ends_at > _NOW
            ),
            "waiting_games",
        ),
    )
)
ENDING_ROLES = Statement(
    select(
        role_assignments.c.application_id,
        role_assignments.c.user_id,
        role_assignments.c.expired.label("at"),
        applications.c.name.label("application"),
        users.c.nick,
        roles.c.name,
    )
    .join(applications, applications.c.application_id == role_assignments.c.application_id)
    .join(users, users.c.user_id == role_assignments.c.user_id)
    .join(
        roles,
        (roles.c.application_id == role_assignments.c.application_id)
        & (roles.c.role_key == role_assignments.c.role_key),
    )
    .where(
        role_assignments.c.expired > literal_column("0"),  # as in the partial index
        role_assignments.c.expired > _NOW,
        role_assignments.c.expired <= _UNTIL,
    )
    .order_by(role_assignments.c.expired, role_assignments.c.user_id)
    .limit(_MOST)
)
ENDING_TOKENS = Statement(
    select(
        service_tokens.c.application_id,
        service_tokens.c.comment.label("name"),
        service_tokens.c.ends_at.label("at"),
        applications.c.name.label("application"),
    )
    .join(applications, applications.c.application_id == service_tokens.c.application_id)
    .where(service_tokens.c.ends_at > _NOW, service_tokens.c.ends_at <= _UNTIL, service_tokens.c.revoked.is_(False))
    .order_by(service_tokens.c.ends_at)
    .limit(_MOST)
)


def counts(now: int) -> Verb[InstallationCounts]:
    (row,) = yield COUNTS(now=now)
    return InstallationCounts(**row._asdict())


def ending_soon(now: int, until: int, most: int) -> Verb[Sequence[EndingSoon]]:
    """Return roles and keys that expire between the two times, the next first."""
    span = {"now": now, "until": until, "most": most}
    held = [EndingSoon(what=EndingKind.ROLE, **row._asdict()) for row in (yield ENDING_ROLES(**span))]
    tokens = [EndingSoon(what=EndingKind.SERVICE_TOKEN, **row._asdict()) for row in (yield ENDING_TOKENS(**span))]
    return sorted([*held, *tokens], key=lambda one: one.at)[:most]


class HomeStore(SqlStore):
    counts = snapshot_read(counts)
    ending_soon = snapshot_read(ending_soon)
