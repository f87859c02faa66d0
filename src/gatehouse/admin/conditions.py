"""The people who match a condition, counted while it is edited."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

from msgspec import Struct
from sqlalchemy import CTE, ColumnElement, Select, and_, false, func, literal, or_, select, true

from gatehouse.admin.names import NamedPerson
from gatehouse.admin.paging import ESCAPE, Page, PageRequest, contains_pattern
from gatehouse.permissions.model import condition
from gatehouse.permissions.model.condition import (
    AllOf,
    ConditionTest,
    Domain,
    Everyone,
    FromNetwork,
    HasPurchase,
    HasTag,
    OneOfUsers,
)
from gatehouse.permissions.model.group import Group
from gatehouse.storage.permissions.grant_keys import DomainOf
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import passkeys, totp_factors, user_purchases, user_tags, users
from gatehouse.storage.tables.projects import group_members

MAX_COUNT: Final = 10_000  # no more are counted
FIRST_FEW: Final = 5  # listed by name


class ConditionMatch(Struct, frozen=True, kw_only=True):
    """People who match if the address is left out; with an `ip` in the condition that is the maximum."""

    count: int
    first: Sequence[NamedPerson] = ()

    @property
    def is_beyond(self) -> bool:
        return self.count >= MAX_COUNT


class GroupMember(Struct, frozen=True, kw_only=True):
    """A member of a group, and why."""

    user_id: str
    nick: str
    listed: bool
    conditions: tuple[str, ...]  # titles of those that the person meets


Clause = ColumnElement[bool]

_HAS_TOTP: Final[Clause] = users.c.user_id.in_(select(totp_factors.c.user_id))
_HAS_PASSKEY: Final[Clause] = users.c.user_id.in_(select(passkeys.c.user_id))
COMPUTED_TAGS: Final[Mapping[str, Clause]] = {  # tags that are in no table (accounts/model.py)
    "email_verified": users.c.email_verified.is_(True),
    "phone_verified": users.c.phone_verified.is_(True),
    "2step": or_(_HAS_TOTP, _HAS_PASSKEY, users.c.email_code.is_(True), users.c.phone_code.is_(True)),
    "2step_totp": _HAS_TOTP,
    "2step_passkey": _HAS_PASSKEY,
    "2step_email": users.c.email_code.is_(True),
    "2step_phone": users.c.phone_code.is_(True),
}


class ConditionClauses:
    """Tests as clauses, with their lists as parameters."""

    def __init__(self) -> None:
        self.lists: dict[str, list[str]] = {}

    def clause_for(self, test: ConditionTest) -> Clause:  # noqa: PLR0911 - one per kind
        match test:
            case Domain(name):
                return and_(users.c.email_verified.is_(True), DomainOf(users.c.login_key) == name)
            case OneOfUsers(user_ids):
                name = f"ids_{len(self.lists)}"
                self.lists[name] = sorted(user_ids)
                return InStringList(users.c.user_id, name)
            case HasTag(tag):
                has_tag = users.c.user_id.in_(select(user_tags.c.user_id).where(user_tags.c.tag == tag))
                return or_(has_tag, COMPUTED_TAGS[tag]) if tag in COMPUTED_TAGS else has_tag
            case HasPurchase(purchase):
                bought = select(user_purchases.c.user_id).where(user_purchases.c.purchase == purchase)
                return users.c.user_id.in_(bought)
            case FromNetwork():
                return true()
            case Everyone(holds):
                return true() if holds else false()
            case AllOf(parts):
                return and_(*map(self.clause_for, parts))
            case condition.AnyOf(parts):
                return or_(*map(self.clause_for, parts))
            case _:
                assert_never(test)


def count_matches(test: ConditionTest) -> Verb[ConditionMatch]:
    """One scan of all people: the matches are counted, and the first few listed."""
    clauses = ConditionClauses()
    matches = select(users.c.user_id).where(clauses.clause_for(test)).limit(MAX_COUNT).cte("found")
    first = select(matches.c.user_id).order_by(matches.c.user_id).limit(FIRST_FEW)
    named = select(_total(matches), users.c.user_id, users.c.nick, users.c.login).where(users.c.user_id.in_(first))
    rows = yield Statement(lambda: named.order_by(users.c.user_id))(**clauses.lists)
    people = [NamedPerson(user_id=row.user_id, nick=row.nick, login=row.login or "") for row in rows]
    return ConditionMatch(count=rows[0].total if rows else 0, first=people)


def members_of_group(group: Group, page_request: PageRequest) -> Verb[Page[GroupMember]]:
    """Return a page of a group's members by id, searched by nick or id; counted up to MAX_COUNT."""
    clauses = ConditionClauses()
    listed = users.c.user_id.in_(select(group_members.c.user_id).where(group_members.c.group_id == group.group_id))
    reasons = [listed, *(clauses.clause_for(group_condition.condition.test) for group_condition in group.conditions)]
    belongs = and_(or_(*reasons), _matches_search(page_request.search))
    matches = select(users.c.user_id).where(belongs).limit(MAX_COUNT).cte("found")
    rows = yield Statement(lambda: _members_with_reasons(reasons, matches, page_request))(**clauses.lists)
    return Page(
        rows=[_member(group, row) for row in rows],
        total=rows[0].total if rows else 0,
        number=page_request.page,
        size=page_request.size,
    )


def _total(matches: CTE) -> ColumnElement[int]:
    return select(func.count()).select_from(matches).scalar_subquery().label("total")


def _matches_search(search: str) -> Clause:
    if not search:
        return true()
    pattern = literal(contains_pattern(search))
    return or_(func.lower(users.c.nick).like(pattern, escape=ESCAPE), users.c.user_id.like(pattern, escape=ESCAPE))


def _members_with_reasons(reasons: Sequence[Clause], matches: CTE, page_request: PageRequest) -> Select[Any]:
    """A page of members; why they belong is evaluated for the page alone."""
    page = select(matches.c.user_id).order_by(matches.c.user_id).limit(page_request.size).offset(page_request.offset)
    why = (reason.label(f"why_{index}") for index, reason in enumerate(reasons))
    named = select(_total(matches), users.c.user_id, users.c.nick, *why)
    return named.where(users.c.user_id.in_(page)).order_by(users.c.user_id)


def _member(group: Group, row: Row) -> GroupMember:
    _, user_id, nick, listed, *met = row
    titles = (group_condition.title for group_condition, holds in zip(group.conditions, met, strict=True) if holds)
    return GroupMember(user_id=user_id, nick=nick, listed=bool(listed), conditions=tuple(titles))


class ConditionMatchStore(SqlStore):
    count_matches = snapshot_read(count_matches)
    members_of_group = snapshot_read(members_of_group)
