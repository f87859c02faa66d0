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
from gatehouse.permissions.model.role import Role
from gatehouse.permissions.model.service_account import SERVICE_ACCOUNT_FIELDS, ServiceAccount
from gatehouse.permissions.rights.guard import GuardTarget, Operation, require_operation
from gatehouse.web.api.permissions.service_accounts import ServiceAccountEntry
from gatehouse.web.api.permissions.service_accounts import service_account_entry as account_entry
from gatehouse.web.console.edit_screen import EditScreen, FormDraft
from gatehouse.web.console.forms import form_text, split_lines
from gatehouse.web.console.frame import ApiCall, NewSecretContext
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.paths import ConsoleEntry
from gatehouse.web.console.projects.holdings import (
    OWNER,
    HoldingPlace,
    HoldingRow,
    HoldingsForm,
    PlacedRole,
    assignable_roles,
    load_places,
    membership_document,
    parse_scopes,
    placed_roles,
    rows_from_form,
    scopes_from_rows,
    shown_rows,
)
from gatehouse.web.console.projects.project import (
    ProjectHead,
    ProjectLoader,
    may_in_project,
    project_head,
    project_path,
)
from gatehouse.web.console.view import AdminRequest, Confirmation, ConsoleRoute, ConsoleView
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
    rows: Sequence[HoldingRow]
    places: Sequence[HoldingPlace]
    roles: Sequence[Role]


class ServiceAccountScreens:
    def __init__(
        self, *, loader: ProjectLoader, accounts: ServiceAccountCommands, lists: ProjectListStore, view: ConsoleView
    ) -> None:
        self._loader = loader
        self._accounts = accounts
        self._lists = lists
        self._view = view

    async def _list(self, request: Request, admin: AdminRequest, query: ListQuery) -> ServiceAccountsContext:
        model = await self._loader.load(request, admin)
        text = query.page_request.search.lower()
        every = await self._load_lines(admin, model)
        lines = [
            line
            for line in every
            if text in f"{line.account.name} {line.account.comment} {line.account.user_id}".lower()
        ]
        project_id = model.project.project_id
        return ServiceAccountsContext(
            head=project_head(admin, model.project, "service_accounts"),
            lines=lines,
            may_save=may_in_project(admin, Operation.SERVICE_ACCOUNTS, model),
            call=ApiCall(
                path="serviceAccount",
                body={"action": "get", "data": {"project_id": project_id}},
                record=[account_entry(line.listed) for line in every],
            ),
        )

    async def _load(self, request: Request, admin: AdminRequest) -> ProjectModel:
        model = await self._loader.load(request, admin)
        require_operation(admin.rights, Operation.SERVICE_ACCOUNTS, GuardTarget(project_id=model.project.project_id))
        return model

    async def _create(
        self, request: Request, admin: AdminRequest, model: ProjectModel, form: ServiceAccountForm
    ) -> Response:
        places, central = await load_places(self._lists, model), admin.authenticated.central
        holds = (
            membership_document(
                scopes_from_rows(rows_from_form(form), {}, places, ""), model.project.project_id, central
            )
            or {}
        )
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

    async def _page(
        self, _request: Request, admin: AdminRequest, model: ProjectModel, draft: FormDraft[ServiceAccountForm]
    ) -> NewServiceAccountContext:
        return NewServiceAccountContext(
            head=project_head(admin, model.project, "service_accounts"),
            rows=shown_rows(draft.form, role=DEFAULT_ROLE),
            places=(await load_places(self._lists, model)).all,
            roles=[role for role in assignable_roles(admin.authenticated.central) if role.key != OWNER],
        )

    async def _load_lines(self, admin: AdminRequest, model: ProjectModel) -> Sequence[ServiceAccountLine]:
        central, places = admin.authenticated.central, await load_places(self._lists, model)

        def line(listed: ListedServiceAccount) -> ServiceAccountLine:
            scopes = parse_scopes(listed.holds, model.project.project_id)
            return ServiceAccountLine(listed=listed, held=placed_roles(scopes, places, central))

        return [line(one) for one in await self._accounts.list(admin.actor, central, model.project.project_id)]

    def routes(self) -> Sequence[ConsoleRoute]:
        view, path = self._view, "/projects/{project_id}/service_accounts"
        accounts = ListScreen(view=view, path=path, query=ListQuery, page=self._list, file=service_accounts_file)
        new = EditScreen(
            view=view,
            path=f"{path}/new",
            form=ServiceAccountForm,
            load=self._load,
            page=self._page,
            save=self._create,
            fresh=True,
            fresh_page=True,
        )
        return [
            *accounts.routes(),
            *new.routes(),
            *view.confirmation(f"{path}/{{user_id}}/revoke", CsrfForm, self.confirm_revocation, self.revoke),
        ]


def service_accounts_file(page: ServiceAccountsContext) -> CsvFile[ServiceAccountLine]:
    return CsvFile(name=f"{page.head.project_id}-service-accounts", columns=COLUMNS, rows=page.lines)


def parse_days(text: str) -> int | None:
    if text and not (text.isascii() and text.isdecimal() and len(text) <= MAX_DAYS_DIGITS):
        raise Malformed("days: enter a number, or leave empty for the default").on_screen("number_or_default")
    return int(text) if text else None
