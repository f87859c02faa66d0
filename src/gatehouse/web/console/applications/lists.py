"""The list of applications, and a new one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.applications import ApplicationLine, ApplicationListStore, Home
from gatehouse.admin.model.paging import Page
from gatehouse.permissions.commands.applications import ApplicationDraft, Applications
from gatehouse.permissions.errors import NoRight
from gatehouse.web.console.applications.head import HERE, path_of
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.listing import csv_file, list_query
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.parse import read_query

COLUMNS: Final = {
    "id": lambda line: line.application_id,
    "name": lambda line: line.name,
    "description": lambda line: line.description,
    "project": lambda line: line.project_id,
    "roles": lambda line: line.roles,
    "clients": lambda line: line.clients,
    "removed": lambda line: line.removed,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationsContext(PageContext):
    template = "console/applications/list.html"

    found: Page[ApplicationLine]
    search: str
    may_create: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApplicationContext(PageContext):
    template = "console/applications/new.html"

    homes: Sequence[Home]
    form: "NewApplicationForm"
    may_stand_alone: bool
    problem: Problem | None = None


class NewApplicationForm(Guarded, frozen=True, kw_only=True):
    name: str = ""
    description: str = ""
    project_id: str = ""


class ApplicationLists:
    def __init__(self, *, applications: Applications, lists: ApplicationListStore, desk: ConsoleDesk) -> None:
        self._applications = applications
        self._lists = lists
        self._desk = desk

    async def list(self, request: Request, guest: Guest) -> Response:
        query = list_query(request)
        found = await self._lists.applications(guest.sight, query.wanted)
        if query.is_file:
            return csv_file("applications", COLUMNS, found.rows)
        context = ApplicationsContext(found=found, search=query.q, may_create=may_create(guest))
        return self._desk.show(request, guest, HERE, context)

    async def new(self, request: Request, guest: Guest) -> Response:
        """`?project_id=` fills the field in: how other screens lead here."""
        if not may_create(guest):
            raise NoRight("cannot create applications anywhere")
        return await self._new(request, guest, read_query(request, NewApplicationForm))

    async def create(self, request: Request, guest: Guest, form: NewApplicationForm) -> Response:  # noqa: ARG002
        draft = ApplicationDraft(
            name=form.name.strip(),
            description=form.description.strip(),
            project_id=form.project_id.strip() or UNSET,
        )
        made = await self._applications.save(guest.actor, draft)
        return self._desk.done(path_of(made.application_id), "application_created")

    async def new_again(self, request: Request, guest: Guest, form: NewApplicationForm, problem: Problem) -> Response:
        return await self._new(request, guest, form, problem)

    async def _new(
        self, request: Request, guest: Guest, form: NewApplicationForm, problem: Problem | None = None
    ) -> Response:
        context = NewApplicationContext(
            homes=await self._lists.homes(guest.sight),
            form=form,
            may_stand_alone=guest.sight.may_create,
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[Screen]:
        desk = self._desk
        return [
            desk.shown("/applications", self.list),
            desk.shown("/applications/new", self.new),
            desk.posted("/applications/new", NewApplicationForm, self.create, again=self.new_again),
        ]


def may_create(guest: Guest) -> bool:
    return guest.sight.may_create or bool(guest.sight.managed)
