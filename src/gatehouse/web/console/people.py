"""People: the list, and a new one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.paging import Page
from gatehouse.admin.model.people import Among, PeopleListStore, PersonLine
from gatehouse.admin.people import PeopleOffice
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.rights.guard import Operation, require
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.listing import ListQuery, csv_file
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.parse import read_query

HERE: Final = Entry.PEOPLE
COLUMNS: Final = {
    "id": lambda line: line.user_id,
    "nick": lambda line: line.nick,
    "email": lambda line: line.login,
    "verified": lambda line: line.email_verified,
    "kind": lambda line: line.kind,
    "blocked": lambda line: line.blocked,
    "administrator": lambda line: line.administers,
    "registered": lambda line: line.registered_at,
    "last seen": lambda line: line.seen_at or "",
}


class Entrance(StrEnum):
    """How a new person comes in; the words are `people.entrance_<value>`."""

    INVITE = "invite"
    PASSWORD = "password"  # noqa: S105 - words
    NONE = "none"


class PeopleQuery(ListQuery, frozen=True, kw_only=True):
    among: str = ""
    tag: str = ""

    @property
    def chosen(self) -> Among:
        return Among(self.among) if self.among in list(Among) else Among.EVERYBODY

    @property
    def kept(self) -> str:
        """What the next page is asked for with."""
        given = {"q": self.q, "among": self.among, "tag": self.tag}
        query = urlencode({name: value for name, value in given.items() if value})
        return f"{query}&" if query else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleContext(PageContext):
    template = "console/people/list.html"

    found: Page[PersonLine]
    query: PeopleQuery
    choices: Sequence[Among] = tuple(Among)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPersonContext(PageContext):
    template = "console/people/new.html"

    form: "NewPersonForm"
    entrances: Sequence[Entrance] = tuple(Entrance)
    problem: Problem | None = None


class NewPersonForm(Guarded, frozen=True, kw_only=True):
    login: str = ""
    nick: str = ""
    lang: str = "en"
    entrance: str = Entrance.INVITE.value
    password: str = ""


NOTES: Final[Mapping[str, str]] = {
    Entrance.INVITE: "person_invited",
    Entrance.PASSWORD: "person_created",
    Entrance.NONE: "person_created",
}


class PeopleScreens:
    def __init__(self, *, office: PeopleOffice, lists: PeopleListStore, desk: ConsoleDesk, clock: Clock) -> None:
        self._office = office
        self._lists = lists
        self._desk = desk
        self._clock = clock

    async def list(self, request: Request, guest: Guest) -> Response:
        require(guest.rights, Operation.ADMINISTER)
        query = read_query(request, PeopleQuery)
        found = await self._lists.people(query.chosen, query.tag.strip(), query.wanted, self._clock.now())
        if query.is_file:
            return csv_file("people", COLUMNS, found.rows)
        return self._desk.show(request, guest, HERE, PeopleContext(found=found, query=query))

    async def new(self, request: Request, guest: Guest) -> Response:
        require(guest.rights, Operation.ADMINISTER)
        return self._desk.show(request, guest, HERE, NewPersonContext(form=NewPersonForm()))

    async def create(self, request: Request, guest: Guest, form: NewPersonForm) -> Response:  # noqa: ARG002
        if form.entrance == Entrance.INVITE:
            made = await self._office.invite(guest.actor, login=form.login, nick=form.nick, lang=form.lang)
        else:
            password = form.password if form.entrance == Entrance.PASSWORD else None
            nick = form.nick.strip() or form.login.partition("@")[0]
            made = await self._office.create(
                guest.actor, login=form.login, nick=nick, lang=form.lang, password=password
            )
        return self._desk.done(f"{HERE.path}/{made.user_id}", NOTES.get(form.entrance, "person_created"))

    async def new_again(self, request: Request, guest: Guest, form: NewPersonForm, problem: Problem) -> Response:
        """What was typed stays, but for the password."""
        kept = NewPersonForm(login=form.login, nick=form.nick, lang=form.lang, entrance=form.entrance)
        context = NewPersonContext(form=kept, problem=problem)
        return self._desk.show(request, guest, HERE, context, status=problem.status)

    def screens(self) -> Sequence[Screen]:
        desk = self._desk
        return [
            desk.shown("/people", self.list),
            desk.shown("/people/new", self.new),
            desk.posted("/people/new", NewPersonForm, self.create, again=self.new_again),
        ]
