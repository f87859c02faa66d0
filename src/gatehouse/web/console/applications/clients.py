"""OAuth clients of an application: listed, made, changed, given new secrets, removed (R3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.client_rights import administers, privileges
from gatehouse.admin.clients import ApplicationClients
from gatehouse.admin.model.clients import ClientListItem, ClientListStore, ClientRemovalImpact
from gatehouse.admin.model.paging import PAGE_SIZE, Page
from gatehouse.kernel.clock import Clock
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.clients import OLD_SECRET_LIFETIME
from gatehouse.oauth.model import SCOPES, Client
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.client_forms import ClientForm, apply_form, form_of, new_client, new_form
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.recipes import Snippet, client_recipe
from gatehouse.web.console.applications.shown_once import CreatedSecret, render_secret
from gatehouse.web.console.desk import AdminRequest, ConsoleView, FormProblem
from gatehouse.web.console.editing import FieldConflict, field_conflicts
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.listing import csv_file, read_list_query
from gatehouse.web.console.screens import ConsoleRoute
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.desk import CsrfForm
from gatehouse.web.permissions.clients import client_entry

TAB: Final = "clients"
DAY: Final = 86_400
COLUMNS: Final = {
    "client_id": lambda line: line.client_id,
    "name": lambda line: line.name,
    "profile": lambda line: line.profile,
    "public": lambda line: line.public,
    "sign_ins": lambda line: line.sign_ins,
    "created": lambda line: line.created_at,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientsContext(PageContext):
    template = "console/applications/clients.html"

    head: ApplicationHead
    found: Page[ClientListItem]
    search: str
    call: ApiCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientContext(PageContext):
    template = "console/applications/client.html"

    head: ApplicationHead
    client: Client | None  # None for a new one
    form: ClientForm
    administers: bool
    locked: str  # what the client has that only administrators may change it for; empty when the reader may
    scopes: Sequence[str]
    algorithms: Sequence[str]
    call: ApiCall | None = None
    problem: FormProblem | None = None
    clashes: tuple[FieldConflict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientActionContext(PageContext):
    """Removal, a new secret, or the end of all sign-ins: what breaks, and one button."""

    template = "console/applications/client_act.html"

    head: ApplicationHead
    client: Client
    act: str
    breaks: ClientRemovalImpact
    days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeContext(PageContext):
    template = "console/applications/recipe.html"

    head: ApplicationHead
    client: Client
    snippets: Sequence[Snippet]
    call: ApiCall


class ClientScreens:
    def __init__(
        self,
        *,
        clients: ApplicationClients,
        lists: ClientListStore,
        desk: ConsoleView,
        clock: Clock,
        base_url: str,
    ) -> None:
        self._clients = clients
        self._lists = lists
        self._desk = desk
        self._clock = clock
        self._base_url = base_url

    async def list(self, request: Request, guest: AdminRequest) -> Response:
        model = guest.standing.opened(Operation.APPLICATION_SAVE)
        query = read_list_query(request)
        application_id = model.application.application_id
        found = await self._lists.clients(application_id, query.wanted, self._clock.now())
        if query.is_file:
            return csv_file(f"clients-{application_id}", COLUMNS, found.rows)
        context = ClientsContext(
            head=application_head(guest, model, TAB),
            found=found,
            search=query.q,
            call=clients_call(application_id, await self._clients.list(guest.actor, application_id)),
        )
        return self._desk.show(request, guest, ENTRY, context)

    async def new(self, request: Request, guest: AdminRequest) -> Response:
        model = guest.standing.opened(Operation.APPLICATION_SAVE)
        return self._form(request, guest, model, None, new_form())

    async def create(self, request: Request, guest: AdminRequest, form: ClientForm) -> Response:
        model = guest.standing.opened(Operation.APPLICATION_SAVE)
        client = new_client(form, model.application.application_id, now=self._clock.now())
        value = await self._clients.create(guest.actor, client)
        if value is None:
            return self._desk.done(f"{client_path(client)}/recipe", "client_created")
        return self._show_secret(request, guest, model, client, value)

    async def create_again(
        self, request: Request, guest: AdminRequest, form: ClientForm, problem: FormProblem
    ) -> Response:
        model = guest.standing.opened(Operation.APPLICATION_SAVE)
        return self._form(request, guest, model, None, form, problem=problem)

    async def show(self, request: Request, guest: AdminRequest) -> Response:
        client = await self._client(request, guest)
        model = guest.standing.opened(Operation.APPLICATION_SAVE)
        return self._form(request, guest, model, client, form_of(client))

    async def save(self, request: Request, guest: AdminRequest, form: ClientForm) -> Response:
        client = await self._clients.changeable(guest.actor, *requested_client(request))
        await self._clients.change(guest.actor, apply_form(client, form))
        return self._desk.done(client_path(client), "saved")

    async def save_again(
        self, request: Request, guest: AdminRequest, form: ClientForm, problem: FormProblem
    ) -> Response:
        client = await self._client(request, guest)
        model = guest.standing.opened(Operation.APPLICATION_SAVE)
        return self._form(request, guest, model, client, form, problem=problem)

    async def recipe(self, request: Request, guest: AdminRequest) -> Response:
        client = await self._client(request, guest)
        model = guest.standing.opened(Operation.APPLICATION_SAVE)
        context = RecipeContext(
            head=application_head(guest, model, TAB),
            client=client,
            snippets=client_recipe(client, model.application, base_url=self._base_url),
            call=client_call(client),
        )
        return self._desk.show(request, guest, ENTRY, context)

    async def ask_removal(self, request: Request, guest: AdminRequest) -> Response:
        return await self._ask(
            request, guest, "remove", await self._clients.changeable(guest.actor, *requested_client(request))
        )

    async def ask_rotation(self, request: Request, guest: AdminRequest) -> Response:
        return await self._ask(
            request, guest, "rotate", await self._clients.changeable(guest.actor, *requested_client(request))
        )

    async def ask_ending(self, request: Request, guest: AdminRequest) -> Response:
        return await self._ask(request, guest, "revoke", await self._client(request, guest))

    async def remove(self, request: Request, guest: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        application_id, client_id = requested_client(request)
        await self._clients.remove(guest.actor, application_id, client_id)
        return self._desk.done(application_path(application_id, TAB), "client_removed")

    async def rotate(self, request: Request, guest: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        client = await self._clients.changeable(guest.actor, *requested_client(request))
        value = await self._clients.rotate_secret(guest.actor, *requested_client(request))
        model = guest.standing.opened(Operation.APPLICATION_SAVE)
        return self._show_secret(request, guest, model, client, value)

    async def revoke(self, request: Request, guest: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        client = await self._client(request, guest)
        await self._clients.revoke_tokens(guest.actor, *requested_client(request))
        return self._desk.done(client_path(client), "client_signed_out")

    async def _ask(self, request: Request, guest: AdminRequest, act: str, client: Client) -> Response:
        model = guest.standing.opened(Operation.APPLICATION_SAVE)
        context = ClientActionContext(
            head=application_head(guest, model, TAB),
            client=client,
            act=act,
            breaks=await self._lists.breaks(client.client_id, self._clock.now()),
            days=OLD_SECRET_LIFETIME // DAY,
        )
        return self._desk.show(request, guest, ENTRY, context)

    async def _client(self, request: Request, guest: AdminRequest) -> Client:
        return await self._clients.get(guest.actor, *requested_client(request))

    def _show_secret(
        self, request: Request, guest: AdminRequest, model: ApplicationModel, client: Client, value: str
    ) -> Response:
        secret = CreatedSecret(
            name="client_secret", tab=TAB, back=f"{client_path(client)}/recipe", value=value, about=client.client_id
        )
        return render_secret(self._desk, request, guest, model, secret)

    def _form(
        self,
        request: Request,
        guest: AdminRequest,
        model: ApplicationModel,
        client: Client | None,
        form: ClientForm,
        *,
        problem: FormProblem | None = None,
    ) -> Response:
        stored = None if client is None else form_of(client)
        stale = stored is not None and problem is not None and problem.is_conflict and form.version != stored.version
        context = ClientContext(
            head=application_head(guest, model, TAB),
            client=client,
            form=form,
            administers=administers(guest.actor),
            locked="" if client is None or administers(guest.actor) else ", ".join(privileges(client)),
            scopes=SCOPES,
            algorithms=[alg.value for alg in Algorithm],
            call=client_call(client) if client else None,
            problem=problem,
            clashes=field_conflicts(form, stored) if stale and stored is not None else (),
        )
        return self._desk.show(request, guest, ENTRY, context, status=problem.status if problem else None)

    def screens(self) -> Sequence[ConsoleRoute]:
        desk, application = self._desk, "/applications/{application_id:int}"
        path, new = f"{application}/clients", f"{application}/new_client"  # a client may be called `new`
        one = f"{path}/{{client_id}}"
        return [
            desk.shown(path, self.list),
            desk.shown(new, self.new),
            desk.posted(new, ClientForm, self.create, again=self.create_again, fresh=True),
            desk.shown(one, self.show),
            desk.posted(one, ClientForm, self.save, again=self.save_again, fresh=True),
            desk.shown(f"{one}/recipe", self.recipe),
            desk.shown(f"{one}/remove", self.ask_removal, fresh=True),
            desk.posted(f"{one}/remove", CsrfForm, self.remove, fresh=True),
            desk.shown(f"{one}/rotate", self.ask_rotation, fresh=True),
            desk.posted(f"{one}/rotate", CsrfForm, self.rotate, fresh=True),
            desk.shown(f"{one}/revoke", self.ask_ending, fresh=True),
            desk.posted(f"{one}/revoke", CsrfForm, self.revoke, fresh=True),
        ]


def clients_call(application_id: int, clients: Sequence[Client]) -> ApiCall:
    """The answer has all of them: of more than a page of this list each one shows its own."""
    return ApiCall(
        path="client",
        body={"action": "get", "application_id": application_id},
        record=[client_entry(one) for one in clients] if len(clients) <= PAGE_SIZE else None,
    )


def client_call(client: Client) -> ApiCall:
    return ApiCall(
        path="client",
        body={
            "action": "get",
            "application_id": client.application_id,
            "data": {"client_id": client.client_id},
        },
        record=client_entry(client),
    )


def requested_client(request: Request) -> tuple[int, str]:
    return request.path_params["application_id"], request.path_params["client_id"]


def client_path(client: Client) -> str:
    return f"{application_path(client.application_id or 0, TAB)}/{client.client_id}"
