"""Service accounts of a project: programs that hold roles in it. The token of a new one is shown once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.model.projects import ProjectListStore
from gatehouse.permissions.commands.service_accounts import Listed, ServiceAccountDraft, ServiceAccounts
from gatehouse.permissions.errors import Malformed, PersonNotFound
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.service_account import ServiceAccount
from gatehouse.permissions.rights.guard import About, Operation, require
from gatehouse.web.console.desk import ConsoleDesk, Guest, Problem
from gatehouse.web.console.editing import typed_lines
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.holdings import (
    Held,
    HeldRow,
    HoldingsForm,
    Place,
    changed_rows,
    document_of,
    givable,
    held_in,
    is_about_rows,
    places_of,
    scopes_in,
    scopes_of,
    typed_rows,
)
from gatehouse.web.console.listing import csv_file, list_query
from gatehouse.web.console.places import Entry
from gatehouse.web.console.project_door import ProjectDoor, may
from gatehouse.web.console.projects import ProjectHead, head
from gatehouse.web.console.screens import Screen
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import Guarded
from gatehouse.web.permissions.service_accounts import entry as account_entry

HERE: Final = Entry.PROJECTS
OWNER: Final = "project_owner"  # never of a service account
NEW_ROLE: Final = "app_developer"  # what a new row starts with
DAYS_LONGEST: Final = 5  # digits
COLUMNS: Final = {
    "user_id": lambda line: line.account.user_id,
    "name": lambda line: line.account.name,
    "comment": lambda line: line.account.comment,
    "ip_ranges": lambda line: line.account.ip_ranges,
    "revoked": lambda line: line.account.revoked,
    "roles": lambda line: [f"{held.role} ({held.place.title})" for held in line.held],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountLine:
    listed: Listed
    held: Sequence[Held]

    @property
    def account(self) -> ServiceAccount:
        return self.listed.account


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountsContext(PageContext):
    template = "console/projects/accounts.html"

    head: ProjectHead
    lines: Sequence[AccountLine]
    search: str
    may_save: bool
    call: ApiCall


class AccountForm(HoldingsForm, frozen=True, kw_only=True):
    name: str = ""
    comment: str = ""
    ip_ranges: str = ""
    public_key: str = ""
    days: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAccountContext(PageContext):
    template = "console/projects/new_account.html"

    head: ProjectHead
    form: AccountForm
    rows: Sequence[HeldRow]
    places: Sequence[Place]
    roles: Sequence[Role]
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeAccountContext(PageContext):
    template = "console/projects/made_account.html"

    head: ProjectHead
    name: str
    user_id: str
    jwt: str = field(repr=False)
    ends_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeAccountContext(PageContext):
    template = "console/projects/revoke_account.html"

    head: ProjectHead
    line: AccountLine
    problem: Problem | None = None


class AccountScreens:
    def __init__(
        self, *, door: ProjectDoor, accounts: ServiceAccounts, lists: ProjectListStore, desk: ConsoleDesk
    ) -> None:
        self._door = door
        self._accounts = accounts
        self._lists = lists
        self._desk = desk

    async def list(self, request: Request, guest: Guest) -> Response:
        model, query = await self._door.enter(request, guest), list_query(request)
        text = query.wanted.search.lower()
        every = await self._lines(guest, model)
        lines = [
            line
            for line in every
            if text in f"{line.account.name} {line.account.comment} {line.account.user_id}".lower()
        ]
        if query.is_file:
            return csv_file(f"{model.project.project_id}-service-accounts", COLUMNS, lines)
        project_id = model.project.project_id
        context = AccountsContext(
            head=head(guest, model.project, "service_accounts"),
            lines=lines,
            search=query.q,
            may_save=may(guest, Operation.SERVICE_ACCOUNTS, model),
            call=ApiCall(
                path="serviceAccount",
                body={"action": "get", "data": {"project_id": project_id}},
                record=[account_entry(line.listed) for line in every],
            ),
        )
        return self._desk.show(request, guest, HERE, context)

    async def new(self, request: Request, guest: Guest) -> Response:
        model = await self._door.enter(request, guest)
        require(guest.rights, Operation.SERVICE_ACCOUNTS, About(project_id=model.project.project_id))
        return await self._form(request, guest, model, AccountForm(), [])

    async def create(self, request: Request, guest: Guest, form: AccountForm) -> Response:
        model, rows = await self._door.enter(request, guest), typed_rows(form)
        require(guest.rights, Operation.SERVICE_ACCOUNTS, About(project_id=model.project.project_id))
        if is_about_rows(form.do):
            return await self._form(request, guest, model, form, changed_rows(rows, form.do, role=NEW_ROLE))
        places, central = await places_of(self._lists, model), guest.standing.central
        holds = document_of(scopes_of(rows, {}, places), model.project.project_id, central) or {}
        draft = ServiceAccountDraft(
            project_id=model.project.project_id,
            name=form.name.strip(),
            comment=form.comment.strip(),
            ip_ranges=list(typed_lines(form.ip_ranges)),
            public_key=form.public_key.replace("\r\n", "\n").strip(),
            days=days_of(form.days.strip()),
            roles=holds.get("roles"),
            applications=holds.get("applications"),
            services=holds.get("services"),
            groups=holds.get("groups"),
        )
        made = await self._accounts.create(guest.actor, central, draft)
        context = MadeAccountContext(
            head=head(guest, model.project, "service_accounts"),
            name=made.listed.account.name,
            user_id=made.listed.account.user_id,
            jwt=made.jwt,
            ends_at=made.ends_at,
        )
        return self._desk.show(request, guest, HERE, context)

    async def new_again(self, request: Request, guest: Guest, form: AccountForm, problem: Problem) -> Response:
        model = await self._door.enter(request, guest)
        return await self._form(request, guest, model, form, typed_rows(form), problem=problem)

    async def ask_revocation(self, request: Request, guest: Guest) -> Response:
        return await self._revocation(request, guest)

    async def revoke(self, request: Request, guest: Guest, form: Guarded) -> Response:  # noqa: ARG002
        await self._accounts.revoke(guest.actor, request.path_params["user_id"])
        return self._desk.done(f"{HERE.path}/{request.path_params['project_id']}/service_accounts", "account_revoked")

    async def revoke_again(self, request: Request, guest: Guest, form: Guarded, problem: Problem) -> Response:  # noqa: ARG002
        return await self._revocation(request, guest, problem)

    async def _revocation(self, request: Request, guest: Guest, problem: Problem | None = None) -> Response:
        model = await self._door.enter(request, guest)
        user_id = request.path_params["user_id"]
        line = next((one for one in await self._lines(guest, model) if one.account.user_id == user_id), None)
        if line is None:
            raise PersonNotFound
        context = RevokeAccountContext(
            head=head(guest, model.project, "service_accounts"), line=line, problem=problem
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    async def _form(
        self,
        request: Request,
        guest: Guest,
        model: ProjectModel,
        form: AccountForm,
        rows: Sequence[HeldRow],
        *,
        problem: Problem | None = None,
    ) -> Response:
        context = NewAccountContext(
            head=head(guest, model.project, "service_accounts"),
            form=form,
            rows=rows,
            places=(await places_of(self._lists, model)).all,
            roles=[role for role in givable(guest.standing.central) if role.key != OWNER],
            problem=problem,
        )
        return self._desk.show(request, guest, HERE, context, status=problem.status if problem else None)

    async def _lines(self, guest: Guest, model: ProjectModel) -> Sequence[AccountLine]:
        central, places = guest.standing.central, await places_of(self._lists, model)

        def line(listed: Listed) -> AccountLine:
            scopes = scopes_in(listed.holds, model.project.project_id)
            return AccountLine(listed=listed, held=held_in(scopes, places, central))

        return [line(one) for one in await self._accounts.list(guest.actor, central, model.project.project_id)]

    def screens(self) -> Sequence[Screen]:
        desk, path = self._desk, "/projects/{project_id}/service_accounts"
        return [
            desk.shown(path, self.list),
            desk.shown(f"{path}/new", self.new, fresh=True),
            desk.posted(f"{path}/new", AccountForm, self.create, again=self.new_again, fresh=True),
            desk.shown(f"{path}/{{user_id}}/revoke", self.ask_revocation, fresh=True),
            desk.posted(f"{path}/{{user_id}}/revoke", Guarded, self.revoke, again=self.revoke_again, fresh=True),
        ]


def days_of(text: str) -> int | None:
    if text and not (text.isascii() and text.isdecimal() and len(text) <= DAYS_LONGEST):
        raise Malformed("days: enter a number, or leave empty for the default")
    return int(text) if text else None
