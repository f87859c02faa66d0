"""The console's home page: counts, and what expires soon."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    bindparam,
    cast,
    distinct,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
)

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION
from gatehouse.audit.model import TallyKind
from gatehouse.kernel.sketches import count_distinct, decode_sketch, merge_sketches
from gatehouse.kernel.times import HOUR
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import InNumberList, InStringList, Statement, Verb
from gatehouse.storage.tables.accounts import passkeys, totp_factors, users
from gatehouse.storage.tables.audit import active_people, audit_events, sign_in_targets, tallies
from gatehouse.storage.tables.oauth import clients
from gatehouse.storage.tables.permissions import applications, role_assignments, roles, service_tokens
from gatehouse.storage.tables.projects import projects

APPLICATION_TARGET: Final = "application "  # audit/sign_in_tally.py
CLIENT_TARGET: Final = "client "


class EndingKind(StrEnum):
    """What expires; the texts are `home.ends_<value>`."""

    ROLE = "role"
    SERVICE_TOKEN = "service_token"  # noqa: S105 - a kind, no secret


class EndingSoon(Struct, frozen=True, kw_only=True):
    what: EndingKind
    name: str  # of the role, or the purpose of a token
    application_id: int
    application: str
    user_id: str = ""
    nick: str = ""
    at: int


class PeriodCount(Struct, frozen=True, kw_only=True):
    """What was counted in a period, and in the one before it."""

    now: int = 0
    before: int = 0


class TimeBucket(Struct, frozen=True, kw_only=True):
    at: int  # its beginning
    signed_in: int = 0
    refused: int = 0
    game: int = 0


class Period(Struct, frozen=True, kw_only=True):
    """A number of hours that ends with the one that has begun, divided into buckets."""

    hours: int
    bucket_hours: int

    def start(self, now: int) -> int:
        return now - now % HOUR - (self.hours - 1) * HOUR


class PeriodFigures(Struct, frozen=True, kw_only=True):
    buckets: Sequence[TimeBucket]
    signed_in: PeriodCount
    refused: PeriodCount
    game: PeriodCount
    people: PeriodCount


class TopApplication(Struct, frozen=True, kw_only=True):
    application_id: int  # 0 for a client without an application
    name: str
    times: int


MAX_COUNTED_PEOPLE: Final = 1_000  # of an application's card


class ProjectCard(Struct, frozen=True, kw_only=True):
    project_id: str
    title: str
    description: str
    members: int
    applications: int
    ending: int  # roles that expire soon
    changed_at: int | None


class ApplicationCard(Struct, frozen=True, kw_only=True):
    application_id: int
    name: str
    description: str
    logo: str  # ID of the image; empty without one
    people: int  # with a role; at most MAX_COUNTED_PEOPLE
    ending: int  # roles that expire soon


class InstallationCounts(Struct, frozen=True, kw_only=True):
    """Counts of the main kinds of records."""

    administrators_with_factor: int
    projects: int
    applications: int  # without application 1
    roles: int  # of those applications
    clients: int


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
    lambda: select(
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
    )
)
_ROLE_ENDS: Final = (
    role_assignments.c.expired > literal_column("0"),  # as in the partial index
    role_assignments.c.expired > _NOW,
    role_assignments.c.expired <= _UNTIL,
)
ENDING_ROLES = Statement(
    lambda: (
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
        .where(*_ROLE_ENDS)
        .order_by(role_assignments.c.expired, role_assignments.c.user_id)
        .limit(_MOST)
    )
)
ENDING_TOKENS = Statement(
    lambda: (
        select(
            service_tokens.c.application_id,
            service_tokens.c.comment.label("name"),
            service_tokens.c.ends_at.label("at"),
            applications.c.name.label("application"),
        )
        .join(applications, applications.c.application_id == service_tokens.c.application_id)
        .where(
            service_tokens.c.ends_at > _NOW, service_tokens.c.ends_at <= _UNTIL, service_tokens.c.revoked.is_(False)
        )
        .order_by(service_tokens.c.ends_at)
        .limit(_MOST)
    )
)


_FIRST: Final = bindparam("first", type_=BigInteger())
_BUCKET: Final = cast(tallies.c.hour - _FIRST, BigInteger) // bindparam("width", type_=BigInteger())
BUCKETS = Statement(
    lambda: (
        select(_BUCKET.label("number"), tallies.c.what, func.sum(tallies.c.times).label("times"))
        .where(tallies.c.hour >= _FIRST)
        .group_by(literal_column("number"), tallies.c.what)
    )
)
SKETCHES = Statement(
    lambda: select(active_people.c.hour, active_people.c.sketch).where(active_people.c.hour >= _FIRST)
)
MAX_TARGETS: Final = 50  # before clients are added to their applications
TARGETS = Statement(
    lambda: (
        select(sign_in_targets.c.target, func.sum(sign_in_targets.c.times).label("times"))
        .where(sign_in_targets.c.hour >= _FIRST)
        .group_by(sign_in_targets.c.target)
        .order_by(literal_column("times").desc(), sign_in_targets.c.target)
        .limit(MAX_TARGETS)
    )
)
TARGET_APPLICATIONS = Statement(
    lambda: select(applications.c.application_id, applications.c.name).where(
        InNumberList(applications.c.application_id, "numbers")
    )
)
TARGET_CLIENTS = Statement(
    lambda: (
        select(
            clients.c.client_id, clients.c.name, clients.c.application_id, applications.c.name.label("application")
        )
        .join_from(clients, applications, applications.c.application_id == clients.c.application_id, isouter=True)
        .where(InStringList(clients.c.client_id, "ids"))
    )
)


def period_figures(period: Period, now: int) -> Verb[PeriodFigures]:
    """Return the figures of the period; `before` is the same time before it."""
    start, width = period.start(now), period.bucket_hours * HOUR
    first = start - period.hours * HOUR
    rows = yield BUCKETS(first=first, width=width)
    sketches = yield SKETCHES(first=first)
    times = {(int(row.number), row.what): int(row.times) for row in rows}
    size = period.hours // period.bucket_hours
    return PeriodFigures(
        buckets=[_time_bucket(times, size + number, first, width) for number in range(size)],
        signed_in=_period_count(times, TallyKind.SIGNED_IN, size),
        refused=_period_count(times, TallyKind.REFUSED, size),
        game=_period_count(times, TallyKind.GAME, size),
        people=PeriodCount(
            now=_distinct(row.sketch for row in sketches if row.hour >= start),
            before=_distinct(row.sketch for row in sketches if row.hour < start),
        ),
    )


def _time_bucket(times: Mapping[tuple[int, str], int], number: int, first: int, width: int) -> TimeBucket:
    return TimeBucket(
        at=first + number * width,
        signed_in=times.get((number, TallyKind.SIGNED_IN), 0),
        refused=times.get((number, TallyKind.REFUSED), 0),
        game=times.get((number, TallyKind.GAME), 0),
    )


def _period_count(times: Mapping[tuple[int, str], int], what: TallyKind, size: int) -> PeriodCount:
    return PeriodCount(
        now=sum(times.get((number, what), 0) for number in range(size, 2 * size)),
        before=sum(times.get((number, what), 0) for number in range(size)),
    )


def _distinct(sketches: Iterable[bytes]) -> int:
    return count_distinct(merge_sketches(decode_sketch(sketch) for sketch in sketches))


def top_applications(first: int, limit: int) -> Verb[Sequence[TopApplication]]:
    """Return the applications most signed in to since that hour, those of their clients included."""
    targets = {row.target: int(row.times) for row in (yield TARGETS(first=first))}
    ids = {target.removeprefix(CLIENT_TARGET): target for target in targets if target.startswith(CLIENT_TARGET)}
    numbers = [
        int(target.removeprefix(APPLICATION_TARGET)) for target in targets if target.startswith(APPLICATION_TARGET)
    ]
    totals: dict[tuple[int, str], int] = {}
    for row in (yield TARGET_CLIENTS(ids=sorted(ids))) if ids else ():
        key = (row.application_id or 0, row.application or row.name)
        totals[key] = totals.get(key, 0) + targets[ids[row.client_id]]
    for row in (yield TARGET_APPLICATIONS(numbers=sorted(numbers))) if numbers else ():
        key = (row.application_id, row.name)
        totals[key] = totals.get(key, 0) + targets[f"{APPLICATION_TARGET}{row.application_id}"]
    most = sorted(totals.items(), key=lambda total: (-total[1], total[0]))[:limit]
    return [TopApplication(application_id=number, name=name, times=times) for (number, name), times in most]


def counts() -> Verb[InstallationCounts]:
    (row,) = yield COUNTS()
    return InstallationCounts(**row._asdict())


def ending_soon(now: int, until: int, most: int) -> Verb[Sequence[EndingSoon]]:
    """Return roles and keys that expire between the two times, the next first."""
    span = {"now": now, "until": until, "most": most}
    role_ends = [EndingSoon(what=EndingKind.ROLE, **row._asdict()) for row in (yield ENDING_ROLES(**span))]
    tokens = [EndingSoon(what=EndingKind.SERVICE_TOKEN, **row._asdict()) for row in (yield ENDING_TOKENS(**span))]
    return sorted([*role_ends, *tokens], key=lambda ending: ending.at)[:most]


_HERE: Final = projects.c.project_id
PROJECT_CARDS = Statement(
    lambda: (
        select(
            _HERE,
            projects.c.title,
            projects.c.description,
            _count(
                select(func.count(distinct(role_assignments.c.user_id))).where(
                    role_assignments.c.project_id == _HERE,
                    or_(role_assignments.c.expired == 0, role_assignments.c.expired > _NOW),
                ),
                "members",
            ),
            _count(
                select(func.count()).where(applications.c.project_id == _HERE, applications.c.removed.is_(False)),
                "applications",
            ),
            _count(
                select(func.count())
                .select_from(role_assignments)
                .where(role_assignments.c.project_id == _HERE, *_ROLE_ENDS),
                "ending",
            ),
            select(func.max(audit_events.c.at))
            .where(audit_events.c.subject == literal("project ") + _HERE)
            .scalar_subquery()
            .label("changed_at"),
        )
        .where(InStringList(projects.c.project_id, "projects"), projects.c.removed.is_(False))
        .order_by(projects.c.title_key)
        .limit(_MOST)
    )
)


_THIS_APPLICATION: Final = bindparam("application", type_=BigInteger())
APPLICATION_CARDS = Statement(
    lambda: (
        select(
            applications.c.application_id,
            applications.c.name,
            applications.c.description,
            applications.c.logo,
            _count(
                select(func.count())
                .select_from(role_assignments)
                .where(role_assignments.c.application_id == applications.c.application_id, *_ROLE_ENDS),
                "ending",
            ),
        )
        .where(InNumberList(applications.c.application_id, "ids"), applications.c.removed.is_(False))
        .order_by(func.lower(applications.c.name), applications.c.application_id)
        .limit(_MOST)
    )
)
# Counted one application at a time, so that a large one is read only so far.
PEOPLE_WITH_A_ROLE = Statement(
    lambda: select(func.count().label("people")).select_from(
        select(role_assignments.c.user_id)
        .where(
            role_assignments.c.application_id == _THIS_APPLICATION,
            or_(role_assignments.c.expired == 0, role_assignments.c.expired > _NOW),
        )
        .distinct()
        .limit(MAX_COUNTED_PEOPLE)
        .subquery()
    )
)


def application_cards(
    application_ids: Collection[int], now: int, until: int, most: int
) -> Verb[Sequence[ApplicationCard]]:
    """Return the first applications by name; `ending` counts roles that expire until then."""
    rows = yield APPLICATION_CARDS(ids=sorted(application_ids), now=now, until=until, most=most)
    cards = []
    for row in rows:
        (counted,) = yield PEOPLE_WITH_A_ROLE(application=row.application_id, now=now)
        cards.append(ApplicationCard(**row._asdict(), people=counted.people))
    return cards


def project_cards(project_ids: Collection[str], now: int, until: int, most: int) -> Verb[Sequence[ProjectCard]]:
    """Return the first projects by title; `ending` counts roles that expire until then."""
    rows = yield PROJECT_CARDS(projects=sorted(project_ids), now=now, until=until, most=most)
    return [ProjectCard(**row._asdict()) for row in rows]


class HomeStore(SqlStore):
    period_figures = snapshot_read(period_figures)
    top_applications = snapshot_read(top_applications)
    project_cards = snapshot_read(project_cards)
    application_cards = snapshot_read(application_cards)
    counts = snapshot_read(counts)
    ending_soon = snapshot_read(ending_soon)
