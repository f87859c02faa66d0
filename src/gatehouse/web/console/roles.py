"""Roles of every application one sees: the list, and a new one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.names import NamedApplication, NamedPerson
from gatehouse.admin.model.paging import Page
from gatehouse.admin.model.roles import RoleLine, RoleListStore, RoleSight
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.callers.desk import Visit
from gatehouse.permissions.commands.app_schemas import AppSchemas, RoleDraft
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.console.conditions import Conditions, condition_words
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.listing import ListQuery, csv_file
from gatehouse.web.console.places import Entry
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.pages.words import Words
from gatehouse.web.parse import read_query

HERE: Final = Entry.ROLES


class RoleQuery(ListQuery, frozen=True, kw_only=True):
    application: int = 0  # 0 for all

    @property
    def rest(self) -> str:
        """The query of the other pages of the same list."""
        search = f"q={quote(self.q)}&" if self.q else ""
        return search + (f"application={self.application}&" if self.application else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class RolesContext(PageContext):
    template = "console/roles/list.html"

    found: Page[RoleLine]
    query: RoleQuery
    applications: Sequence[NamedApplication]
    names: Mapping[str, NamedPerson]  # of people whom conditions name
    may_save: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRoleContext(PageContext):
    template = "console/roles/new.html"

    applications: Sequence[NamedApplication]
    form: "NewRoleForm"
    problem: Problem | None = None


class NewRoleForm(Guarded, frozen=True, kw_only=True):
    application: str = ""
    name: str = ""
    description: str = ""


class RoleScreens:
    def __init__(
        self,
        *,
        schemas: AppSchemas,
        lists: RoleListStore,
        conditions: Conditions,
        desk: ConsoleDesk,
        clock: Clock,
    ) -> None:
        self._schemas = schemas
        self._lists = lists
        self._conditions = conditions
        self._desk = desk
        self._clock = clock

    async def list(self, request: Request, guest: Guest) -> Response:
        query, sight = read_query(request, RoleQuery), await self._sight(guest)
        found = await self._lists.roles(
            sight, query.wanted, application_id=max(0, query.application), now=self._clock.now()
        )
        tests = [line.condition.test for line in found.rows if line.condition and line.readable]
        names = await self._conditions.names_in(*tests)
        if query.is_file:
            return csv_file("roles", columns(self._desk.words(request), names), found.rows)
        context = RolesContext(
            found=found,
            query=query,
            applications=await self._lists.applications(sight, editable=False),
            names=names,
            may_save=sight.may_save,
        )
        return self._desk.show(request, guest, HERE, context)

    async def new(self, request: Request, guest: Guest) -> Response:
        asked = read_query(request, RoleQuery).application
        return await self._new(request, guest, NewRoleForm(application=str(asked) if asked else ""))

    async def create(self, request: Request, guest: Guest, form: NewRoleForm) -> Response:  # noqa: ARG002
        """A role that says nothing and is for nobody yet; all the rest is said on its own page."""
        if not form.application:
            raise Malformed("application: choose an application")
        application_id = grammar.parse_application_id(form.application, "application")
        there = await self._desk.about(guest, application_id)
        name = form.name.strip()
        draft = RoleDraft(name=name, description=form.description.strip(), version=0)
        await self._schemas.save_role(there.actor, there.standing.application(), draft)
        return self._desk.done(role_path(application_id, name), "role_created")

    async def new_again(self, request: Request, guest: Guest, form: NewRoleForm, problem: Problem) -> Response:
        return await self._new(request, guest, form, problem)

    async def _new(
        self, request: Request, guest: Guest, form: NewRoleForm, problem: Problem | None = None
    ) -> Response:
        sight = await self._sight(guest)
        applications = await self._lists.applications(sight, editable=True)
        context = NewRoleContext(applications=applications, form=form, problem=problem)
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    async def _sight(self, guest: Guest) -> RoleSight:
        if guest.sight.everything:
            return RoleSight(everything=True)
        projects = sorted(guest.sight.projects | guest.sight.managed)
        among = guest.sight.applications | frozenset(await self._lists.applications_of(projects))
        standings = await self._desk.standings(guest, among)
        return RoleSight(
            named=opened(standings, Operation.ROLE_NAMES),
            readable=opened(standings, Operation.ROLES_GET),
            editable=opened(standings, Operation.ROLES_SAVE) & opened(standings, Operation.ROLES_GET),
        )

    def screens(self) -> Sequence[Screen]:
        desk = self._desk
        return [
            desk.shown("/roles", self.list),
            desk.shown("/roles/new", self.new),
            desk.posted("/roles/new", NewRoleForm, self.create, again=self.new_again),
        ]


def opened(standings: Mapping[int, Visit], operation: Operation) -> frozenset[int]:
    return frozenset(one for one, visit in standings.items() if is_open(visit.rights, operation, visit.about))


def role_path(application_id: int, name: str) -> str:
    return f"{HERE.path}/{application_id}/{quote(name)}"


def seats(line: RoleLine) -> str:
    return f"{line.holders} of {line.user_limit}" if line.user_limit else str(line.holders)


def columns(t: Words, names: Mapping[str, NamedPerson]) -> Mapping[str, Callable[[RoleLine], object]]:
    """What may not be seen of a role is left empty."""

    def told(line: RoleLine) -> str:
        return condition_words(t, line.condition.test, names).unescape() if line.condition else ""

    return {
        "role": lambda line: line.name,
        "description": lambda line: line.description,
        "application": lambda line: line.application,
        "application_id": lambda line: line.application_id,
        "protected": lambda line: line.protected if line.readable else "",
        "default": lambda line: line.default if line.readable else "",
        "condition": lambda line: told(line) if line.readable else "",
        "seats": lambda line: seats(line) if line.readable else "",
        "holders": lambda line: line.holders if line.readable else "",
    }
