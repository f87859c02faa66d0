"""Lists people (admin/model/people.py).

With a hundred thousand of them every list is asked for in the one shape that its filters have, so that each walks
along an index: the ids of a page first, and only for these what is shown of them.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from gatehouse.accounts.model import ADMINISTRATOR_ROLE, CENTRAL_APPLICATION
from gatehouse.admin.model.paging import Page, PageRequest
from gatehouse.admin.model.people import PeopleFilter, PersonListItem
from gatehouse.audit.events import AuditEvent
from gatehouse.storage.admin import person
from gatehouse.storage.admin.searching import ESCAPE, OFFSET, SIZE, contains_pattern, has_prefix, prefix_parameters
from gatehouse.storage.permissions.held import UNEXPIRED
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import sessions, user_tags, users
from gatehouse.storage.tables.audit import audit_events
from gatehouse.storage.tables.user_records import role_assignments

MAX_COUNTED: Final = 10_000  # beyond that nobody turns pages, and counting would take longer than looking
_TAG: Final = bindparam("tag", type_=Text())
_DOMAIN: Final = bindparam("domain", type_=Text())

_ADMINISTRATORS: Final = select(role_assignments.c.user_id).where(
    role_assignments.c.application_id == CENTRAL_APPLICATION,
    role_assignments.c.role_key == ADMINISTRATOR_ROLE,
    role_assignments.c.project_id == "",
    UNEXPIRED,
)
_TAGGED: Final = exists().where(user_tags.c.user_id == users.c.user_id, user_tags.c.tag == _TAG)
_MATCHES_PREFIX: Final = or_(
    has_prefix(users.c.login_key, "login"),
    has_prefix(func.lower(users.c.nick), "nick"),
    has_prefix(func.lower(users.c.nick), "plain"),  # SQLite leaves letters beyond ASCII as they are
    has_prefix(users.c.user_id, "id"),
)
_FILTERS: Final[Mapping[PeopleFilter, tuple[ColumnElement[bool], ...]]] = {
    PeopleFilter.EVERYBODY: (),
    PeopleFilter.BLOCKED: (users.c.blocked.is_(True),),
    PeopleFilter.ADMINISTRATORS: (users.c.user_id.in_(_ADMINISTRATORS),),
    PeopleFilter.SERVICE_ACCOUNTS: (users.c.kind == literal_column("'service'"),),  # as the index says it
}
# Sessions are dropped when they end; the log still knows when somebody last came.
LAST_SEEN_AT: Final = (
    select(func.max(sessions.c.seen_at)).where(sessions.c.user_id == users.c.user_id).scalar_subquery()
)
LAST_SIGNED_IN_AT: Final = (
    select(func.max(audit_events.c.at))
    .where(
        audit_events.c.subject == users.c.user_id,
        or_(audit_events.c.event == AuditEvent.SIGNED_IN.value, audit_events.c.event == AuditEvent.LOGGED_IN.value),
    )
    .scalar_subquery()
)
PEOPLE_ROWS = Statement(
    select(
        users.c.user_id,
        users.c.kind,
        users.c.nick,
        users.c.login,
        users.c.email_verified,
        users.c.blocked,
        users.c.reg_time,
        users.c.user_id.in_(_ADMINISTRATORS).label("administers"),
        LAST_SEEN_AT.label("seen_at"),
        LAST_SIGNED_IN_AT.label("signed_in_at"),
    ).where(InStringList(users.c.user_id, "ids"))
)


class PeopleSearch:
    """What was typed: an address's domain after an @, else how an address, a nick or an id begins."""

    def __init__(self, text: str) -> None:
        self.is_domain = text.startswith("@")
        self.is_any = bool(text)
        self._text = text

    @property
    def parameters(self) -> dict[str, object]:
        typed = self._text
        if self.is_domain:
            return {"domain": contains_pattern(typed)}
        ascii_lower = "".join(letter.lower() if letter.isascii() else letter for letter in typed)
        return (
            prefix_parameters("login", typed.casefold())
            | prefix_parameters("nick", typed.lower())
            | prefix_parameters("plain", ascii_lower)
            | prefix_parameters("id", typed)
        )


@cache
def _list_statements(
    among: PeopleFilter, *, tagged: bool, searched: bool, by_domain: bool
) -> tuple[Statement, Statement]:
    """The ids of a page, and how many there are in all."""
    by_tag = tagged and not searched and among is PeopleFilter.EVERYBODY
    if by_tag:  # then the tag's own index leads
        ids: Select[Any] = select(user_tags.c.user_id).where(user_tags.c.tag == _TAG)
        ordered = ids.order_by(user_tags.c.user_id)
    else:
        ids = select(users.c.user_id).where(
            *_conditions(among, tagged=tagged, searched=searched, by_domain=by_domain)
        )
        ordered = ids.order_by(users.c.reg_time.desc(), users.c.user_id.desc())
    counted = select(func.count().label("total")).select_from(ids.limit(MAX_COUNTED + 1).subquery())
    return Statement(ordered.limit(SIZE).offset(OFFSET)), Statement(counted)


def _conditions(among: PeopleFilter, *, tagged: bool, searched: bool, by_domain: bool) -> list[ColumnElement[bool]]:
    found = list(_FILTERS[among])
    if tagged:
        found.append(_TAGGED)
    if searched:
        found.append(users.c.login_key.like(_DOMAIN, escape=ESCAPE) if by_domain else _MATCHES_PREFIX)
    return found


def list_people(among: PeopleFilter, tag: str, wanted: PageRequest, now: int) -> Verb[Page[PersonListItem]]:
    search = PeopleSearch(wanted.search)
    ids, counted = _list_statements(among, tagged=bool(tag), searched=search.is_any, by_domain=search.is_domain)
    asked = (
        (search.parameters if search.is_any else {})
        | ({"tag": tag} if tag else {})
        | ({"now": now} if among is PeopleFilter.ADMINISTRATORS else {})
    )
    (count,) = yield counted(**asked)
    found = (yield ids(**asked, offset=wanted.offset, size=wanted.size)) if count.total else ()
    named = [row.user_id for row in found]
    rows = {row.user_id: row for row in (yield PEOPLE_ROWS(ids=named, now=now))}
    return Page(
        rows=[list_item(rows[one]) for one in named if one in rows],
        total=min(count.total, MAX_COUNTED),
        number=wanted.page,
        size=wanted.size,
        is_cut=count.total > MAX_COUNTED,
    )


def list_item(row: Row) -> PersonListItem:
    return PersonListItem(
        user_id=row.user_id,
        kind=row.kind,
        nick=row.nick,
        login=row.login or "",
        email_verified=row.email_verified,
        blocked=row.blocked,
        administers=bool(row.administers),
        registered_at=row.reg_time,
        seen_at=max(row.seen_at or 0, row.signed_in_at or 0),
    )


class PeopleListStorage(SqlStore):
    people = snapshot_read(list_people)
    account_state = snapshot_read(person.account_state)
    direct_permissions = snapshot_read(person.direct_permissions)
    applications = snapshot_read(person.applications_by_name)
    activity = snapshot_read(person.list_activity)
    erasure_impact = snapshot_read(person.erasure_impact)
