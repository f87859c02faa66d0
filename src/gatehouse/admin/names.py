"""Names for the ids that screens show."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import bindparam, or_, select

from gatehouse.admin.paging import contains_pattern, contains_search
from gatehouse.storage.accounts.users import USER_ID_OF_LOGIN, login_parameters
from gatehouse.storage.runner import SqlStore, read, snapshot_read
from gatehouse.storage.statements import InStringList, Row, Statement, Verb
from gatehouse.storage.tables.accounts import users

MAX_FOUND: Final = 10


class NamedClient(Struct, frozen=True, kw_only=True):
    client_id: str
    name: str
    application_id: int


class NamedPerson(Struct, frozen=True, kw_only=True):
    user_id: str
    nick: str
    login: str  # "" for a service account
    blocked: bool = False
    ban_ends: tuple[int, ...] = ()  # of each active ban, from whatever it is; 0 for no end

    def is_banned(self, now: int) -> bool:
        return any(end == 0 or now < end for end in self.ban_ends)


class NamedApplication(Struct, frozen=True, kw_only=True):
    application_id: int
    name: str


class NamedProject(Struct, frozen=True, kw_only=True):
    project_id: str
    title: str
    alias: str = ""  # the ID or alias that is exactly the text it was found by


class NamedProjectGroup(Struct, frozen=True, kw_only=True):
    group_id: str
    title: str
    project_id: str


class NamedRole(Struct, frozen=True, kw_only=True):
    application_id: int
    application: str
    role_key: str
    name: str


_PERSON_COLUMNS: Final = (users.c.user_id, users.c.nick, users.c.login, users.c.blocked, users.c.bans)
_IS_PERSON: Final = users.c.kind == "person"
PEOPLE_BY_ID = Statement(lambda: select(*_PERSON_COLUMNS).where(InStringList(users.c.user_id, "user_ids")))

FIND_PEOPLE_AMONG = Statement(
    lambda: (
        select(*_PERSON_COLUMNS)
        .where(_IS_PERSON, InStringList(users.c.user_id, "among"), contains_search(users.c.nick, users.c.user_id))
        .order_by(users.c.nick, users.c.user_id)
        .limit(MAX_FOUND)
    )
)
FIND_PEOPLE_EXACTLY = Statement(
    lambda: (
        select(*_PERSON_COLUMNS)
        .where(_IS_PERSON, or_(users.c.user_id == bindparam("user_id"), users.c.user_id == USER_ID_OF_LOGIN))
        .order_by(users.c.user_id)
    )
)


def people_by_id(user_ids: Collection[str]) -> Verb[Mapping[str, NamedPerson]]:
    """Return people by id, without deleted accounts."""
    if not user_ids:
        return {}
    return {row.user_id: person_from_row(row) for row in (yield PEOPLE_BY_ID(user_ids=sorted(user_ids)))}


def person_from_row(row: Row) -> NamedPerson:
    return NamedPerson(
        user_id=row.user_id, nick=row.nick, login=row.login or "", blocked=row.blocked, ban_ends=ban_ends(row.bans)
    )


def ban_ends(bans: Iterable[Mapping[str, Any]]) -> tuple[int, ...]:
    """The ends of the bans that an account carries."""
    return tuple(int(ban.get("until", 0)) for ban in bans)


def find_people_among(text: str, among: Collection[str]) -> Verb[Sequence[NamedPerson]]:
    """Return the first of these people with the text in nick or id."""
    rows = yield FIND_PEOPLE_AMONG(search=contains_pattern(text), among=sorted(among))
    return [person_from_row(row) for row in rows]


def find_person_exactly(user_id: str, login: str) -> Verb[Sequence[NamedPerson]]:
    """Return those with this id or this whole login."""
    rows = yield FIND_PEOPLE_EXACTLY(user_id=user_id, **login_parameters(login))
    return [person_from_row(row) for row in rows]


class NameStore(SqlStore):
    people_by_id = read(people_by_id)
    find_people_among = snapshot_read(find_people_among)
    find_person_exactly = read(find_person_exactly)
