"""Search among people, for administrators and for readers of an application.

A search reads one index from the newest account on, which has everything it compares, and stops at a full page or
after 100,000 accounts (docs/decisions/0037-searching-people.md).
"""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import BigInteger, ColumnElement, Select, Text, bindparam, exists, func, or_, select, tuple_

from gatehouse.accounts.model import MAX_SEARCH_KEY, User, search_key
from gatehouse.kernel.text import compatible
from gatehouse.storage.accounts.users import SELECT_USER, USER_ID_OF_LOGIN, login_parameters, user_from_row
from gatehouse.storage.runner import SqlStore, read, snapshot_read
from gatehouse.storage.statements import DialectFunction, InStringList, Statement, Verb
from gatehouse.storage.tables.accounts import user_tags, users
from gatehouse.storage.tables.permissions import user_records

MAX_SEARCHED: Final = 100_000  # accounts that one search compares
FEW: Final = 2_000  # people with a tag or a record who are looked up one by one


class PersonPosition(Struct, frozen=True, kw_only=True):
    """Where a page ended; people who registered earlier come after it."""

    reg_time: int
    user_id: str


class PeopleQuestion(Struct, frozen=True, kw_only=True):
    """Whom to find; None and empty fields match everyone."""

    text: str = ""  # part of a nick; for administrators also of a name or a login
    login: str = ""  # the whole address
    tag: str = ""
    since: int = 0
    blocked: bool | None = None
    application_id: int | None = None  # only people with a record there, and their nicks only


class FoundPeople(Struct, frozen=True, kw_only=True):
    users: Sequence[User]
    after: PersonPosition | None  # None on the last page; a page that is not full may have one
    searched: int = 0  # the newest accounts, if only these were compared and the page is not full


class TextPosition(DialectFunction[int]):
    """The position of a text in another, from 1; 0 when it is not in it."""

    inherit_cache = True
    type = BigInteger()
    on_postgres = "strpos({0})"
    on_sqlite = "instr({0})"


_TEXT: Final = bindparam("text", type_=Text())
_RESPELLED: Final = bindparam("respelled", type_=Text())
_TAG: Final = bindparam("tag", type_=Text())
_APPLICATION: Final = bindparam("application", type_=BigInteger())
_NICK_ONLY: Final = (users.c.nick_key,)
_ALL_TEXTS: Final = (users.c.nick_key, users.c.name_key, users.c.login_key)
_TAGGED: Final = select(user_tags.c.user_id).where(user_tags.c.tag == _TAG)
_RECORDED: Final = select(user_records.c.user_id).where(user_records.c.application_id == _APPLICATION)
COUNT_TAGGED = Statement(lambda: select(func.count().label("total")).select_from(_TAGGED.limit(FEW + 1).subquery()))
COUNT_RECORDED = Statement(
    lambda: select(func.count().label("total")).select_from(_RECORDED.limit(FEW + 1).subquery())
)
USERS_BY_ID = Statement(lambda: SELECT_USER.where(InStringList(users.c.user_id, "ids")))
NICK_IN_APPLICATION = Statement(
    lambda: (
        select(users.c.nick)
        .join(user_records, user_records.c.user_id == users.c.user_id)
        .where(
            user_records.c.application_id == bindparam("application_id"),
            user_records.c.user_id == bindparam("user_id"),
        )
    )
)


class SearchShape(Struct, frozen=True, kw_only=True):
    """What one statement compares. `few_…`: the people with it are looked up instead of everyone."""

    text: bool
    respelled: bool  # login addresses are stored in another spelling of the text
    bounded: bool
    login: bool
    blocked: bool
    continues: bool
    tagged: bool
    few_tagged: bool
    recorded: bool
    few_recorded: bool


NEWEST: Final = (users.c.reg_time.desc(), users.c.user_id.desc())


def _place(name: str) -> Any:  # noqa: ANN401 - a tuple of SQL
    return tuple_(bindparam(f"{name}_time", type_=BigInteger()), bindparam(f"{name}_id", type_=Text()))


IS_SEARCHED: Final = tuple_(users.c.reg_time, users.c.user_id) >= _place("end")
_IS_LATER: Final = tuple_(users.c.reg_time, users.c.user_id) < _place("from")
_LAST_SEARCHED: Final = select(users.c.reg_time, users.c.user_id).order_by(*NEWEST).limit(1)
LAST_SEARCHED = Statement(lambda: _LAST_SEARCHED.offset(bindparam("skipped", type_=BigInteger())))
LAST_SEARCHED_FROM = Statement(
    lambda: _LAST_SEARCHED.where(_IS_LATER).offset(bindparam("skipped", type_=BigInteger()))
)


def last_searched(after: PersonPosition | None) -> Verb[PersonPosition | None]:
    """Return where a search from this position ends; None if it reaches the oldest account."""
    if after is None:
        rows = yield LAST_SEARCHED(skipped=MAX_SEARCHED)
    else:
        rows = yield LAST_SEARCHED_FROM(skipped=MAX_SEARCHED, **position_parameters("from", after))
    return PersonPosition(**rows[0]._asdict()) if rows else None


def position_parameters(name: str, position: PersonPosition | None) -> dict[str, object]:
    return {} if position is None else {f"{name}_time": position.reg_time, f"{name}_id": position.user_id}


def contains_text(columns: Collection[ColumnElement[str]], *, respelled: bool) -> ColumnElement[bool]:
    matches = [TextPosition(column, _TEXT) > 0 for column in columns]
    return or_(*matches, *([TextPosition(users.c.login_key, _RESPELLED) > 0] if respelled else []))


def text_parameters(text: str) -> dict[str, object]:
    """Return what a search for the text compares; with `respelled` if addresses have it in another spelling."""
    typed, respelled = search_key(text), compatible(text)[:MAX_SEARCH_KEY]
    parameters: dict[str, object] = {"text": typed}
    return parameters if respelled == typed else {**parameters, "respelled": respelled}


@cache
def search_statement(shape: SearchShape) -> Statement:
    query: Select[Any] = select(users.c.user_id, users.c.reg_time).where(*_conditions(shape)).order_by(*NEWEST)
    return Statement(lambda: query.limit(bindparam("most", type_=BigInteger())))


def _conditions(shape: SearchShape) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [
        users.c.kind == "person",
        users.c.reg_time >= bindparam("since", type_=BigInteger()),
    ]
    if shape.login:
        conditions.append(users.c.user_id == USER_ID_OF_LOGIN)
    if shape.blocked:
        conditions.append(users.c.blocked == bindparam("blocked"))
    if shape.continues:
        conditions.append(_IS_LATER)
    if shape.bounded:
        conditions.append(IS_SEARCHED)
    if shape.text:
        columns = _NICK_ONLY if shape.recorded else _ALL_TEXTS
        conditions.append(contains_text(columns, respelled=shape.respelled))
    if shape.tagged:
        tagged = exists().where(user_tags.c.user_id == users.c.user_id, user_tags.c.tag == _TAG)
        conditions.append(users.c.user_id.in_(_TAGGED) if shape.few_tagged else tagged)
    if shape.recorded:
        recorded = exists().where(
            user_records.c.user_id == users.c.user_id, user_records.c.application_id == _APPLICATION
        )
        conditions.append(users.c.user_id.in_(_RECORDED) if shape.few_recorded else recorded)
    return conditions


def search_people(question: PeopleQuestion, after: PersonPosition | None, limit: int) -> Verb[FoundPeople]:
    """Return a page of people, the newest first; a search for a text ends after MAX_SEARCHED accounts."""
    tags = (yield COUNT_TAGGED(tag=question.tag))[0].total if question.tag else 0
    within = question.application_id
    records = (yield COUNT_RECORDED(application=within))[0].total if within is not None else 0
    end = (yield from last_searched(after)) if question.text else None
    texts = text_parameters(question.text) if question.text else {}
    shape = SearchShape(
        text=bool(question.text),
        respelled="respelled" in texts and within is None,
        bounded=end is not None,
        login=bool(question.login),
        blocked=question.blocked is not None,
        continues=after is not None,
        tagged=bool(question.tag),
        few_tagged=tags <= FEW,
        recorded=within is not None,
        few_recorded=records <= FEW,
    )
    if not shape.respelled:
        texts.pop("respelled", None)
    parameters = _parameters(question, after) | texts | position_parameters("end", end)
    rows = yield search_statement(shape)(**parameters, most=limit + 1)
    ids = [row.user_id for row in rows[:limit]]
    users_by_id = {row.user_id: user_from_row(row._asdict()) for row in (yield USERS_BY_ID(ids=ids))} if ids else {}
    is_full = len(rows) > limit
    return FoundPeople(
        users=[users_by_id[user_id] for user_id in ids if user_id in users_by_id],
        after=PersonPosition(reg_time=rows[limit - 1].reg_time, user_id=ids[-1]) if is_full else end,
        searched=MAX_SEARCHED if end and not is_full else 0,
    )


def _parameters(question: PeopleQuestion, after: PersonPosition | None) -> dict[str, object]:
    parameters: dict[str, object] = {"since": question.since}
    if question.login:
        parameters |= login_parameters(question.login)
    if question.blocked is not None:
        parameters["blocked"] = question.blocked
    if question.tag:
        parameters["tag"] = question.tag
    if question.application_id is not None:
        parameters["application"] = question.application_id
    return parameters | position_parameters("from", after)


def nick_in_application(application_id: int, user_id: str) -> Verb[str | None]:
    """Return the nick of a person with a record in the application."""
    rows = yield NICK_IN_APPLICATION(application_id=application_id, user_id=user_id)
    return rows[0].nick if rows else None


class PeopleSearchStore(SqlStore):
    search = snapshot_read(search_people)
    nick_in_application = read(nick_in_application)
