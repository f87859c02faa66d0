"""Service accounts of a project: programs that hold roles in it. The token of a new one is shown once."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.projects import ProjectListStore
from gatehouse.fields.derive import entry_columns
from gatehouse.permissions.commands.service_accounts import (
    ListedServiceAccount,
    ServiceAccountCommands,
    ServiceAccountDraft,
)
from gatehouse.permissions.errors import Malformed, PersonNotFound
from gatehouse.permissions.model.facts import ProjectModel
from gatehouse.permissions.model.project import SERVICE_ACCOUNT_FIELDS, ServiceAccount
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.web.api.permissions.service_accounts import ServiceAccountEntry
from gatehouse.web.api.permissions.service_accounts import service_account_entry as account_entry
from gatehouse.web.console.forms import csv_file, form_text, read_list_query, split_lines
from gatehouse.web.console.frame import ApiCall, NewSecretContext
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.projects.holdings import (
    OWNER,
    HoldingPlace,
    HoldingRow,
    HoldingsForm,
    PlacedRole,
    apply_row_action,
    assignable_roles,
    is_row_action,
    load_places,
    membership_document,
    parse_scopes,
    placed_roles,
    rows_from_form,
    scopes_from_rows,
)
from gatehouse.web.console.projects.project import (
    ProjectHead,
    ProjectLoader,
    may_in_project,
    project_head,
    project_path,
)
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView, FormProblem
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm
from gatehouse.web.pages.template_filters import exact_time

ENTRY: Final = ConsoleEntry.PROJECTS
DEFAULT_ROLE: Final = "app_developer"  # what a new row starts with
MAX_DAYS_DIGITS: Final = 5  # digits
COLUMNS: Final = {
    **entry_columns(SERVICE_ACCOUNT_FIELDS, "entry"),
    "roles": lambda line: [f"{held.role} ({held.place.title})" for held in line.held],
}


class ServiceAccountLine(Struct, frozen=True, kw_only=True):
    listed: ListedServiceAccount
    held: Sequence[PlacedRole]

    @property
    def account(self) -> ServiceAccount:
        return self.listed.account

    @property
    def entry(self) -> ServiceAccountEntry:
        return account_entry(self.listed)


class ServiceAccountsContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/accounts.html"

    head: ProjectHead
    lines: Sequence[ServiceAccountLine]
    search: str
    may_save: bool
    call: ApiCall


class ServiceAccountForm(HoldingsForm, frozen=True, kw_only=True):
    name: str = ""
    comment: str = ""
    ip_ranges: str = ""
    public_key: str = ""
    days: str = ""


class NewServiceAccountContext(PageContext, frozen=True, kw_only=True):
    template = "console/projects/new_account.html"

    head: ProjectHead
    form: ServiceAccountForm
    rows: Sequence[HoldingRow]
    places: Sequence[HoldingPlace]
    roles: Sequence[Role]
    problem: FormProblem | None = None


class ServiceAccountScreens:
    def __init__(
        self, *, loader: ProjectLoader, accounts: ServiceAccountCommands, lists: ProjectListStore, view: ConsoleView
    ) -> None:
        self._loader = loader
        self._accounts = accounts
        self._lists = lists
        self._view = view

    async def list(self, request: Request, admin: AdminRequest) -> Response:
        model, query = await self._loader.load(request, admin), read_list_query(request)
        text = query.page_request.search.lower()
        every = await self._load_lines(admin, model)
        lines = [
            line
            for line in every
            if text in f"{line.account.name} {line.account.comment} {line.account.user_id}".lower()
        ]
        if query.is_file:
            return csv_file(f"{model.project.project_id}-service-accounts", COLUMNS, lines)
        project_id = model.project.project_id
        context = ServiceAccountsContext(
            head=project_head(admin, model.project, "service_accounts"),
            lines=lines,
            search=query.q,
            may_save=may_in_project(admin, Operation.SERVICE_ACCOUNTS, model),
            call=ApiCall(
                path="serviceAccount",
                body={"action": "get", "data": {"project_id": project_id}},
                record=[account_entry(line.listed) for line in every],
            ),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def new(self, request: Request, admin: AdminRequest) -> Response:
        model = await self._loader.load(request, admin)
        require_operation(admin.rights, Operation.SERVICE_ACCOUNTS, GuardTarget(project_id=model.project.project_id))
        return await self._render_form(request, admin, model, ServiceAccountForm(), [])

    async def create(self, request: Request, admin: AdminRequest, form: ServiceAccountForm) -> Response:
        model, rows = await self._loader.load(request, admin), rows_from_form(form)
        require_operation(admin.rights, Operation.SERVICE_ACCOUNTS, GuardTarget(project_id=model.project.project_id))
        if is_row_action(form.do):
            return await self._render_form(
                request, admin, model, form, apply_row_action(rows, form.do, role=DEFAULT_ROLE)
            )
        places, central = await load_places(self._lists, model), admin.authenticated.central
        holds = membership_document(scopes_from_rows(rows, {}, places), model.project.project_id, central) or {}
        draft = ServiceAccountDraft(
            project_id=model.project.project_id,
            name=form.name.strip(),
            comment=form.comment.strip(),
            ip_ranges=list(split_lines(form.ip_ranges)),
            public_key=form_text(form.public_key),
            days=parse_days(form.days.strip()),
            roles=holds.get("roles"),
            applications=holds.get("applications"),
            services=holds.get("services"),
            groups=holds.get("groups"),
        )
        created = await self._accounts.create(admin.actor, central, draft)
        t, path = self._view.words(request), project_path(model.project.project_id, "service_accounts")
        user_id = created.listed.account.user_id
        context = NewSecretContext(
            title=t("accounts.made", name=created.listed.account.name),
            trail=[(model.project.title, path)],
            text=t("accounts.once"),
            value=created.jwt,
            facts=[(t("field.id"), user_id), (t("accounts.ends"), exact_time(t, created.ends_at))],
            back=path,
        )
        return self._view.render(request, admin, ENTRY, context)

    async def rerender_new(
        self, request: Request, admin: AdminRequest, form: ServiceAccountForm, problem: FormProblem
    ) -> Response:
        model = await self._loader.load(request, admin)
        return await self._render_form(request, admin, model, form, rows_from_form(form), problem=problem)

    async def confirm_revocation(self, request: Request, admin: AdminRequest) -> Confirmation:
        model, t = await self._loader.load(request, admin), self._view.words(request)
        user_id = request.path_params["user_id"]
        line = next((one for one in await self._load_lines(admin, model) if one.account.user_id == user_id), None)
        if line is None:
            raise PersonNotFound
        return Confirmation(
            title=t("accounts.revoke_title", name=line.account.name),
            trail=[(model.project.title, project_path(model.project.project_id, "service_accounts"))],
            text=t("accounts.revoke_text"),
            roles=line.held,
            button=t("accounts.revoke"),
        )

    async def revoke(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        await self._accounts.revoke(admin.actor, request.path_params["user_id"])
        return self._view.redirect_with_flash(
            project_path(request.path_params["project_id"], "service_accounts"), "account_revoked"
        )

    async def _render_form(
        self,
        request: Request,
        admin: AdminRequest,
        model: ProjectModel,
        form: ServiceAccountForm,
        rows: Sequence[HoldingRow],
        *,
        problem: FormProblem | None = None,
    ) -> Response:
        context = NewServiceAccountContext(
            head=project_head(admin, model.project, "service_accounts"),
            form=form,
            rows=rows,
            places=(await load_places(self._lists, model)).all,
            roles=[role for role in assignable_roles(admin.authenticated.central) if role.key != OWNER],
            problem=problem,
        )
        return self._view.render(request, admin, ENTRY, context)

    async def _load_lines(self, admin: AdminRequest, model: ProjectModel) -> Sequence[ServiceAccountLine]:
        central, places = admin.authenticated.central, await load_places(self._lists, model)

        def line(listed: ListedServiceAccount) -> ServiceAccountLine:
            scopes = parse_scopes(listed.holds, model.project.project_id)
            return ServiceAccountLine(listed=listed, held=placed_roles(scopes, places, central))

        return [line(one) for one in await self._accounts.list(admin.actor, central, model.project.project_id)]

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/projects/{project_id}/service_accounts"
        return [
            view.page(path, self.list),
            view.page(f"{path}/new", self.new, fresh=True),
            view.form(f"{path}/new", ServiceAccountForm, self.create, rerender=self.rerender_new, fresh=True),
            *view.confirmation(f"{path}/{{user_id}}/revoke", CsrfForm, self.confirm_revocation, self.revoke),
        ]


def parse_days(text: str) -> int | None:
    if text and not (text.isascii() and text.isdecimal() and len(text) <= MAX_DAYS_DIGITS):
        raise Malformed("days: enter a number, or leave empty for the default").on_screen("number_or_default")
    return int(text) if text else None
