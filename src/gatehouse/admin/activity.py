"""The audit log as the console shows it: newest first, one page read at a time, and who may see which records."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Select,
    Subquery,
    Text,
    TextClause,
    and_,
    bindparam,
    func,
    or_,
    select,
    text,
)

from gatehouse.admin.paging import ESCAPE, contains_pattern
from gatehouse.audit.model import AuditRecord, Refusal
from gatehouse.storage.audit import EVENT_BY_ID, chain_end, refusal_from_row
from gatehouse.storage.runner import SqlStore, read, snapshot_read
from gatehouse.storage.statements import InNumberList, InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import user_aliases, users
from gatehouse.storage.tables.audit import OTHER_ACTOR_SQL, RARE_EVENT_SQL, audit_events, audit_refusals
from gatehouse.storage.tables.oauth import clients
from gatehouse.storage.tables.permissions import applications
from gatehouse.storage.tables.projects import groups, projects

PAGE: Final = 50
MAX_EXAMINED: Final = 5_000  # records read for one page: a filter that finds little never reads the whole log
FOREVER: Final = 1 << 62


class ActivityCursor(Struct, frozen=True, kw_only=True, order=True):
    """A position in the log; older records come after it."""

    at: int
    record_id: str


class ActivityFilter(Struct, frozen=True, kw_only=True):
    """Which records; an empty field matches any."""

    events: tuple[str, ...] = ()
    actor: str = ""
    subject: str = ""
    subjects: tuple[str, ...] | None = None  # the only ones visible to this viewer; None for administrators
    names: tuple[str, ...] = ()  # subject or actor is any of these
    history_of: tuple[str, ...] = ()  # only rare events about any of these
    application_id: int = 0
    text: str = ""  # contained in ids or details
    since: int = 0
    until: int = FOREVER  # not included
    after: ActivityCursor | None = None


class ActivityPage(Struct, frozen=True, kw_only=True):
    records: Sequence[AuditRecord]
    after: ActivityCursor | None = None  # where older records may be; None if there are none
    examined: bool = False  # the page is short because the scan limit was reached, not because there is no more


class RefusalPage(Struct, frozen=True, kw_only=True):
    """Refused requests, the newest first."""

    rows: Sequence[Refusal]
    after: int  # where older ones begin; 0 if there are none


class ProjectContents(Struct, frozen=True, kw_only=True):
    """What some projects contain, whether or not the viewer may see it."""

    applications: Sequence[int]
    groups: Sequence[tuple[str, str]]  # the project's id, and its own


FREQUENT_EVENTS: Final = frozenset({"game.confirmed", "grant.made", "login.done", "session.ended", "session.opened"})


def _flag(name: str) -> ColumnElement[bool]:
    return bindparam(name, type_=Boolean())


def _number(name: str) -> ColumnElement[int]:
    return bindparam(name, type_=BigInteger())


def _like(column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    return func.lower(column).like(bindparam(name, type_=Text()), escape=ESCAPE)


def _matches_filter(scanned: Subquery) -> ColumnElement[bool]:
    """The remaining filters, for the records that an index scan has found."""
    columns = (scanned.c.record_id, scanned.c.subject, scanned.c.actor, scanned.c.request_id, scanned.c.details)
    here = bindparam("application", type_=Text())
    return and_(
        or_(_flag("any_event"), InStringList(scanned.c.event, "events")),
        or_(_flag("any_actor"), scanned.c.actor == bindparam("by", type_=Text())),
        or_(_flag("any_subject"), scanned.c.subject == bindparam("about", type_=Text())),
        or_(_flag("any_text"), *(_like(column, "text") for column in columns)),
        or_(
            _flag("any_application"),
            scanned.c.subject == here,
            *(_like(scanned.c.details, f"app{n}") for n in range(4)),
        ),
    )


def _newest_events(*led_by: ColumnElement[bool] | TextClause) -> Select[Any]:
    at, record_id = audit_events.c.at, audit_events.c.record_id
    return (
        select(audit_events)
        .where(
            *led_by,
            at >= _number("since"),
            at <= _number("newest"),
            or_(at < _number("newest"), record_id < bindparam("before", type_=Text())),
        )
        .order_by(at.desc(), record_id.desc())
    )


class LogScan:
    """One index scan: the statement for a page of matching records, and how far it read."""

    def __init__(self, *led_by: ColumnElement[bool] | TextClause) -> None:
        scanned = _newest_events(*led_by).limit(_number("scan")).subquery()  # bounded
        newest_first = (scanned.c.at.desc(), scanned.c.record_id.desc())
        page = select(scanned).where(_matches_filter(scanned)).order_by(*newest_first).limit(_number("most"))
        self.page: Final = Statement(lambda: page)
        self.scan_end: Final = Statement(lambda: _newest_events(*led_by).limit(1).offset(_number("scan")))


_SCAN_KEY: Final = bindparam("led", type_=Text())
SCAN_ALL = LogScan()
SCAN_BY_SUBJECT = LogScan(audit_events.c.subject == _SCAN_KEY)
SCAN_ABOUT = LogScan(audit_events.c.subject == _SCAN_KEY, text(RARE_EVENT_SQL))
SCAN_BY_ACTOR = LogScan(audit_events.c.actor == _SCAN_KEY, text(OTHER_ACTOR_SQL))
SCAN_BY_RARE_EVENT = LogScan(audit_events.c.event == _SCAN_KEY, text(RARE_EVENT_SQL))


class KeyedScan(Struct, frozen=True):
    scan: LogScan
    key: str = ""

    def with_key(self, params: Mapping[str, object]) -> Mapping[str, object]:
        return {**params, "led": self.key} if self.key else params


def activity(filters: ActivityFilter, limit: int) -> Verb[ActivityPage]:
    """Merge the newest of each scan; what is older than where one of them stopped belongs to a later page."""
    leads = list(_scans(filters))
    shared = {**_window_parameters(filters), "scan": _scan_limit(filters, limit, len(leads))}
    params = {**_filter_parameters(filters, limit), **shared}
    rows_by_id: dict[str, Row] = {}
    horizon: ActivityCursor | None = None
    for lead in leads:
        rows = yield lead.scan.page(**lead.with_key(params))
        rows_by_id |= {row.record_id: row for row in rows}
        if len(rows) > limit:
            stopped: ActivityCursor | None = _spot_from_row(rows[-1])
        else:  # without row filters, a page that is not full is the last
            stopped = (yield from _scan_end(lead, shared)) if _filters_rows(filters) else None
        horizon = max((cursor for cursor in (horizon, stopped) if cursor), default=None)
    newest = sorted(rows_by_id.values(), key=_spot_from_row, reverse=True)
    page = [row for row in newest if horizon is None or _spot_from_row(row) > horizon][:limit]
    full = len(page) == limit
    after = _spot_from_row(page[-1]) if full and (len(newest) > limit or horizon) else _just_after_horizon(horizon)
    return ActivityPage(
        records=[_record_from_row(row) for row in page], after=after, examined=not full and after is not None
    )


def _scan_limit(filters: ActivityFilter, limit: int, leads: int) -> int:
    """How many records each scan reads: many subjects share the limit of one page."""
    return MAX_EXAMINED if filters.subjects is None else max(limit + 1, MAX_EXAMINED // max(leads, 1))


def _filters_rows(filters: ActivityFilter) -> bool:
    """Whether a scan may find records that the filters exclude."""
    return bool(filters.events or filters.actor or filters.text or filters.application_id)


def _just_after_horizon(horizon: ActivityCursor | None) -> ActivityCursor | None:
    """The cursor before the horizon: its record was not read, so the next page begins with it."""
    return None if horizon is None else ActivityCursor(at=horizon.at, record_id=f"{horizon.record_id}g")


def _scan_end(lead: KeyedScan, shared: Mapping[str, object]) -> Verb[ActivityCursor | None]:
    """Where the scan stopped; None if it reached the end."""
    rows = yield lead.scan.scan_end(**lead.with_key(shared))
    return _spot_from_row(rows[0]) if rows else None


def _scans(filters: ActivityFilter) -> Iterator[KeyedScan]:
    """The scans with the fewest records that together find every match."""
    if filters.history_of:
        yield from (KeyedScan(SCAN_ABOUT, subject) for subject in filters.history_of)
    elif filters.subject:
        yield from (
            KeyedScan(SCAN_BY_SUBJECT, subject) for subject in (filters.subject,) if _is_visible(filters, subject)
        )
    elif filters.subjects is not None:
        yield from (KeyedScan(SCAN_BY_SUBJECT, subject) for subject in filters.subjects)
    elif filters.names:
        yield from (KeyedScan(scan, name) for name in filters.names for scan in (SCAN_BY_SUBJECT, SCAN_BY_ACTOR))
    elif filters.actor:
        yield KeyedScan(SCAN_BY_ACTOR, filters.actor)
        yield KeyedScan(SCAN_BY_SUBJECT, filters.actor)  # actions of the actor on their own account
    elif filters.events and FREQUENT_EVENTS.isdisjoint(filters.events):
        yield from (KeyedScan(SCAN_BY_RARE_EVENT, event) for event in filters.events)
    else:
        yield KeyedScan(SCAN_ALL)


def _is_visible(filters: ActivityFilter, subject: str) -> bool:
    return filters.subjects is None or subject in filters.subjects


def _window_parameters(filters: ActivityFilter) -> Mapping[str, object]:
    end = filters.until - 1
    start = filters.after if filters.after and filters.after.at <= end else None
    # "g" sorts after every hexadecimal digit, so the whole second is included.
    return {
        "since": filters.since,
        "newest": start.at if start else end,
        "before": start.record_id if start else "g",
    }


def _filter_parameters(filters: ActivityFilter, limit: int) -> Mapping[str, object]:
    number = filters.application_id
    marks = [f'"{name}":{number}{end}' for name in ("application_id", "app_id") for end in (",", "}")]
    return {
        "most": limit + 1,
        "any_event": not filters.events,
        "events": list(filters.events),
        "any_actor": not filters.actor,
        "by": filters.actor,
        "any_subject": not filters.subject,
        "about": filters.subject,
        "any_text": not filters.text,
        "text": contains_pattern(filters.text),
        "any_application": not number,
        "application": f"application {number}",
        **{f"app{place}": contains_pattern(mark) for place, mark in enumerate(marks)},
    }


FIRST_RECORD = Statement(lambda: select(func.min(audit_events.c.at).label("at")))


def first_record_at() -> Verb[int]:
    """Return when the log begins; 0 for an empty one."""
    (row,) = yield FIRST_RECORD()
    return row.at or 0


def find_record(record_id: str) -> Verb[AuditRecord | None]:
    """Return the record with this id."""
    rows = yield EVENT_BY_ID(record_id=record_id)
    return _record_from_row(rows[0]) if rows else None


_AFTER: Final = _number("after")
REFUSALS = Statement(
    lambda: (
        select(audit_refusals)
        .where(or_(_AFTER == 0, audit_refusals.c.position < _AFTER))
        .order_by(audit_refusals.c.position.desc())
        .limit(_number("most"))
    )
)


def refusals(after: int, limit: int) -> Verb[RefusalPage]:
    """Return a page; `after` is where the page before ended, 0 for the newest."""
    rows = yield REFUSALS(after=after, most=limit + 1)
    page = rows[:limit]
    return RefusalPage(
        rows=[refusal_from_row(row) for row in page], after=page[-1].position if len(rows) > limit else 0
    )


APPLICATIONS_OF_PROJECTS = Statement(
    lambda: (
        select(applications.c.application_id)
        .where(InStringList(applications.c.project_id, "projects"))
        .order_by(applications.c.application_id)
    )
)
GROUPS_OF_PROJECTS = Statement(
    lambda: (
        select(groups.c.project_id, groups.c.group_id)
        .where(InStringList(groups.c.project_id, "projects"))
        .order_by(groups.c.group_id)
    )
)


def project_contents(project_ids: Collection[str]) -> Verb[ProjectContents]:
    """Return the applications and groups of these projects, removed ones too."""
    of_applications = yield APPLICATIONS_OF_PROJECTS(projects=sorted(project_ids))
    of_groups = yield GROUPS_OF_PROJECTS(projects=sorted(project_ids))
    return ProjectContents(
        applications=[row.application_id for row in of_applications],
        groups=[(row.project_id, row.group_id) for row in of_groups],
    )


# The names of what records are about.


class NamedIds(Struct, frozen=True, kw_only=True):
    """Ids that some records contain."""

    people: Collection[str] = ()
    applications: Collection[int] = ()
    projects: Collection[str] = ()
    groups: Collection[str] = ()
    clients: Collection[str] = ()


class RecordNames(Struct, frozen=True, kw_only=True):
    """Names by id; an id without one was deleted, or is none."""

    people: Mapping[str, str] = field(default_factory=dict)
    current_ids: Mapping[str, str] = field(default_factory=dict)  # of people, by a former ID
    applications: Mapping[int, str] = field(default_factory=dict)
    projects: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    clients: Mapping[str, str] = field(default_factory=dict)


NAMES_OF_PEOPLE = Statement(  # an account that was merged or upgraded is found by its former ID
    lambda: (
        select(users.c.user_id.label("id"), users.c.nick.label("name"), users.c.user_id)
        .where(InStringList(users.c.user_id, "ids"))
        .union_all(
            select(user_aliases.c.alias, users.c.nick, users.c.user_id)
            .join_from(user_aliases, users, users.c.user_id == user_aliases.c.user_id)
            .where(InStringList(user_aliases.c.alias, "ids"))
        )
    )
)
NAMES_OF_APPLICATIONS = Statement(
    lambda: select(applications.c.application_id.label("id"), applications.c.name).where(
        InNumberList(applications.c.application_id, "ids")
    )
)
NAMES_OF_PROJECTS = Statement(
    lambda: select(projects.c.project_id.label("id"), projects.c.title.label("name")).where(
        InStringList(projects.c.project_id, "ids")
    )
)
NAMES_OF_GROUPS = Statement(
    lambda: select(groups.c.group_id.label("id"), groups.c.title.label("name")).where(
        InStringList(groups.c.group_id, "ids")
    )
)
NAMES_OF_CLIENTS = Statement(
    lambda: select(clients.c.client_id.label("id"), clients.c.name).where(InStringList(clients.c.client_id, "ids"))
)


def record_names(ids: NamedIds) -> Verb[RecordNames]:
    people = (yield NAMES_OF_PEOPLE(ids=sorted(ids.people))) if ids.people else ()
    return RecordNames(
        people={row.id: row.name for row in people},
        current_ids={row.id: row.user_id for row in people if row.id != row.user_id},
        applications=(yield from _names(NAMES_OF_APPLICATIONS, ids.applications)),
        projects=(yield from _names(NAMES_OF_PROJECTS, ids.projects)),
        groups=(yield from _names(NAMES_OF_GROUPS, ids.groups)),
        clients=(yield from _names(NAMES_OF_CLIENTS, ids.clients)),
    )


def _names(statement: Statement, ids: Collection[Any]) -> Verb[Mapping[Any, str]]:
    return {row.id: row.name for row in (yield statement(ids=sorted(ids)))} if ids else {}


def _spot_from_row(row: Row) -> ActivityCursor:
    return ActivityCursor(at=row.at, record_id=row.record_id)


def _record_from_row(row: Row) -> AuditRecord:
    return AuditRecord(**row._asdict())


class ActivityStore(SqlStore):
    activity = snapshot_read(activity)
    find_record = read(find_record)
    first_record_at = read(first_record_at)
    chain_end = read(chain_end)
    project_contents = snapshot_read(project_contents)
    refusals = snapshot_read(refusals)
    record_names = snapshot_read(record_names)
