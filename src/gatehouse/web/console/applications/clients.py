"""The screens of an application's OAuth clients (R3)."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.application_clients import ApplicationClients
from gatehouse.admin.clients import (
    ClientDraft,
    ClientListItem,
    ClientListStore,
    ClientRemovalImpact,
    administers,
    may_save_own_api,
    privileges,
)
from gatehouse.admin.paging import PAGE_SIZE, Page
from gatehouse.fields.model import DescribedField, Field
from gatehouse.images.model import image_path
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.client_commands import OLD_SECRET_LIFETIME
from gatehouse.oauth.model import SCOPES, Client
from gatehouse.oauth.token_command import token_command
from gatehouse.oauth.vocabulary import AUTHZEN
from gatehouse.permissions.model.facts import ApplicationModel
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.api.permissions.clients import client_entry
from gatehouse.web.console.applications.client_forms import (
    FORM_ROWS,
    ClientForm,
    ClientKind,
    apply_form,
    form_of,
    kind_of_client,
    new_client,
    new_form,
)
from gatehouse.web.console.applications.connect import connect_path
from gatehouse.web.console.applications.environment import Variable, client_environment, environment_file
from gatehouse.web.console.applications.head import (
    ENTRY,
    ApplicationHead,
    CreatedSecret,
    application_head,
    application_path,
    render_secret,
)
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.frame import ApiCall
from gatehouse.web.console.image_forms import LogoForm, logo_routes
from gatehouse.web.console.list_screen import CsvFile, ListQuery, ListScreen
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

TAB: Final = "clients"
DAY: Final = 86_400
COLUMNS: Final = {
    "client_id": lambda line: line.client_id,
    "name": lambda line: line.name,
    "profile": lambda line: line.profile,
    "public": lambda line: line.public,
    "machine": lambda line: line.machine,
    "sign_ins": lambda line: line.sign_ins,
    "created": lambda line: line.created_at,
}


OWN_API_KINDS: Final = (ClientKind.WEB, ClientKind.MACHINE)  # those with a secret, in profile oidc


class ClientsContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/clients.html"

    head: ApplicationHead
    found: Page[ClientListItem]
    call: ApiCall


class ClientContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/client.html"

    head: ApplicationHead
    client: Client | None  # None for a new one
    logo: str  # path of its image
    administers: bool
    locked: str  # why only administrators may change the client; empty if the reader may
    lacks_credentials_right: bool  # which the client takes, because it may call the service as the application
    offers_own_api: bool  # to those who may give its scopes
    rows: Mapping[str, Sequence[Sequence[DescribedField[Field]]]]  # of the form, by section
    scopes: Sequence[str]
    own_api_scopes: Sequence[str]
    kinds: Sequence[ClientKind] = tuple(ClientKind)
    call: ApiCall | None = None


class ClientActionContext(PageContext, frozen=True, kw_only=True):
    """Confirmation of a removal, a new secret, or the end of all sign-ins, with its consequences."""

    template = "console/applications/client_act.html"

    head: ApplicationHead
    client: Client
    act: str
    breaks: ClientRemovalImpact
    days: int


class NewClientQuery(msgspec.Struct, frozen=True, kw_only=True):
    """How other screens lead to the form of a client that fits."""

    kind: str = ClientKind.WEB.value


class ClientScreens:
    def __init__(
        self,
        *,
        clients: ApplicationClients,
        lists: ClientListStore,
        view: ConsoleView,
        clock: Clock,
        base_url: str,
    ) -> None:
        self._clients = clients
        self._lists = lists
        self._view = view
        self._clock = clock
        self._base_url = base_url

    async def _list(self, _request: Request, admin: AdminRequest, query: ListQuery) -> ClientsContext:
        model = admin.authenticated.require_application(Operation.APPLICATION_SAVE)
        application_id = model.application.application_id
        return ClientsContext(
            head=application_head(admin, model, TAB),
            found=await self._lists.clients(application_id, query.page_request, self._clock.now()),
            call=clients_call(application_id, await self._clients.list(admin.actor, application_id), self._base_url),
        )

    async def _new_form(self, request: Request, admin: AdminRequest) -> ClientForm:
        admin.authenticated.require_application(Operation.APPLICATION_SAVE)
        asked = read_query(request, NewClientQuery)
        return msgspec.structs.replace(new_form(), kind=asked.kind)

    async def _new_page(
        self, _request: Request, admin: AdminRequest, _blank: ClientForm, _draft: FormDraft[ClientForm]
    ) -> ClientContext:
        return self._context(admin, None)

    async def _create(
        self, request: Request, admin: AdminRequest, _blank: ClientForm, form: ClientForm
    ) -> Saved | Response:
        model = admin.authenticated.require_application(Operation.APPLICATION_SAVE)
        client = new_client(form, model.application.application_id, now=self._clock.now())
        value = await self._clients.create(admin.actor, client)
        if value is None:
            path = connect_path(model.application.application_id, client=client)
            return Saved(address=path, message="client_created")
        return self._render_secret(request, admin, model, client, value)

    async def _page(
        self, _request: Request, admin: AdminRequest, client: Client, _draft: FormDraft[ClientForm]
    ) -> ClientContext:
        return self._context(admin, client)

    async def _save(self, request: Request, admin: AdminRequest, _client: Client, form: ClientForm) -> Saved:
        client = await self._clients.get_changeable(admin.actor, *requested_client(request))
        await self._clients.change(admin.actor, apply_form(client, form))
        return Saved(address=client_path(client))

    async def upload_logo(self, request: Request, admin: AdminRequest, form: LogoForm) -> Response:
        return await self._save_logo(request, admin, ClientDraft(logo=form.upload, logo_uri=form.url), "logo_saved")

    async def remove_logo(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        return await self._save_logo(request, admin, ClientDraft(logo=None), "logo_removed")

    async def _save_logo(self, request: Request, admin: AdminRequest, draft: ClientDraft, message: str) -> Response:
        application_id, client_id = requested_client(request)
        draft = msgspec.structs.replace(draft, client_id=client_id)
        await self._clients.save_draft(admin.actor, application_id, draft)
        return self._view.redirect_with_flash(f"{application_path(application_id, TAB)}/{client_id}", message)

    async def confirm_removal(self, request: Request, admin: AdminRequest) -> Response:
        return await self._render_confirmation(
            request, admin, "remove", await self._clients.get_changeable(admin.actor, *requested_client(request))
        )

    async def confirm_rotation(self, request: Request, admin: AdminRequest) -> Response:
        return await self._render_confirmation(
            request, admin, "rotate", await self._clients.get_changeable(admin.actor, *requested_client(request))
        )

    async def confirm_revocation(self, request: Request, admin: AdminRequest) -> Response:
        return await self._render_confirmation(request, admin, "revoke", await self._load_client(request, admin))

    async def remove(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        application_id, client_id = requested_client(request)
        await self._clients.remove(admin.actor, application_id, client_id)
        return self._view.redirect_with_flash(application_path(application_id, TAB), "client_removed")

    async def rotate(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        client = await self._clients.get_changeable(admin.actor, *requested_client(request))
        value = await self._clients.rotate_secret(admin.actor, *requested_client(request))
        model = admin.authenticated.require_application(Operation.APPLICATION_SAVE)
        until = self._clock.now() + OLD_SECRET_LIFETIME
        return render_secret(self._view, request, admin, model, rotated_secret(client, value, until=until))

    async def revoke(self, request: Request, admin: AdminRequest, form: CsrfForm) -> Response:  # noqa: ARG002
        client = await self._load_client(request, admin)
        await self._clients.revoke_tokens(admin.actor, *requested_client(request))
        return self._view.redirect_with_flash(client_path(client), "client_signed_out")

    async def _render_confirmation(
        self, request: Request, admin: AdminRequest, action: str, client: Client
    ) -> Response:
        model = admin.authenticated.require_application(Operation.APPLICATION_SAVE)
        context = ClientActionContext(
            head=application_head(admin, model, TAB),
            client=client,
            act=action,
            breaks=await self._lists.removal_impact(client.client_id, self._clock.now()),
            days=OLD_SECRET_LIFETIME // DAY,
        )
        return self._view.render(request, admin, ENTRY, context)

    async def _load_client(self, request: Request, admin: AdminRequest) -> Client:
        return await self._clients.get(admin.actor, *requested_client(request))

    def _render_secret(
        self, request: Request, admin: AdminRequest, model: ApplicationModel, client: Client, value: str
    ) -> Response:
        secret = client_secret(client, value, base_url=self._base_url, api=model.application.api)
        return render_secret(self._view, request, admin, model, secret)

    def _context(self, admin: AdminRequest, client: Client | None) -> ClientContext:
        model = admin.authenticated.require_application(Operation.APPLICATION_SAVE)
        may_give = may_save_own_api(admin.actor, model.application.application_id)
        return ClientContext(
            head=application_head(admin, model, TAB),
            client=client,
            lacks_credentials_right=client is not None and bool(client.own_api_scopes) and not may_give,
            offers_own_api=may_give and (client is None or kind_of_client(client) in OWN_API_KINDS),
            logo=image_path(client.logo) if client else "",
            administers=administers(admin.actor),
            locked="" if client is None or administers(admin.actor) else ", ".join(privileges(client)),
            rows=FORM_ROWS,
            scopes=SCOPES,
            own_api_scopes=offered_scopes(client),
            call=client_call(client, self._base_url) if client else None,
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        view, application = self._view, "/applications/{application_id:int}"
        path, new = f"{application}/clients", f"{application}/new_client"  # a client may be called `new`
        one = f"{path}/{{client_id}}"
        clients = ListScreen(view=view, path=path, query=ListQuery, page=self._list, file=clients_file)
        new_client = EditScreen(
            view=view,
            path=new,
            form=ClientForm,
            load=self._new_form,
            page=self._new_page,
            save=self._create,
            fresh=True,
        )
        client = EditScreen(
            view=view,
            path=one,
            form=ClientForm,
            load=self._load_client,
            form_of=form_of,
            page=self._page,
            save=self._save,
            undoable=True,
            fresh=True,
        )
        return [
            *clients.routes(),
            *new_client.routes(),
            *client.routes(),
            *logo_routes(client, self.upload_logo, self.remove_logo),
            view.page(f"{one}/remove", self.confirm_removal, fresh=True),
            view.form(f"{one}/remove", CsrfForm, self.remove, fresh=True),
            view.page(f"{one}/rotate", self.confirm_rotation, fresh=True),
            view.form(f"{one}/rotate", CsrfForm, self.rotate, fresh=True),
            view.page(f"{one}/revoke", self.confirm_revocation, fresh=True),
            view.form(f"{one}/revoke", CsrfForm, self.revoke, fresh=True),
        ]


def offered_scopes(client: Client | None) -> tuple[str, ...]:
    """Return the scopes of the service's own API that the form has: those with endpoints, and what the client has."""
    held = () if client is None else client.own_api_scopes
    return tuple(dict.fromkeys((AUTHZEN, *held)))


def clients_file(page: ClientsContext) -> CsvFile[ClientListItem]:
    return CsvFile(name=f"clients-{page.head.application_id}", columns=COLUMNS, rows=page.found.rows)


def client_secret(
    client: Client, value: str, *, base_url: str, api: Mapping[str, object] | None = None
) -> CreatedSecret:
    """`api`: the API of the application, which a machine is to call."""
    return CreatedSecret(
        name="client_secret",
        tab=TAB,
        back=connect_path(client.application_id or 0, client=client),
        value=value,
        command=token_command(base_url, client, value, api) if client.machine else "",
        about=client.client_id,
        environment=environment_file(client_environment(client, value, base_url=base_url)),
        environment_name=client.client_id,
    )


def rotated_secret(client: Client, value: str, *, until: int) -> CreatedSecret:
    """The one line of the environment that changes; everything else stays as it is."""
    return CreatedSecret(
        name="client_secret",
        tab=TAB,
        back=client_path(client),
        value=value,
        about=client.client_id,
        environment=environment_file({Variable.CLIENT_SECRET: value}),
        environment_name=client.client_id,
        old_works_until=until,
    )


def clients_call(application_id: int, clients: Sequence[Client], base_url: str) -> ApiCall:
    """The call for the list; its answer is shown only if it fits one page."""
    return ApiCall(
        path="client",
        body={"action": "get", "application_id": application_id},
        record=[client_entry(client, base_url) for client in clients] if len(clients) <= PAGE_SIZE else None,
    )


def client_call(client: Client, base_url: str) -> ApiCall:
    return ApiCall(
        path="client",
        body={
            "action": "get",
            "application_id": client.application_id,
            "data": {"client_id": client.client_id},
        },
        record=client_entry(client, base_url),
    )


def requested_client(request: Request) -> tuple[int, str]:
    return request.path_params["application_id"], request.path_params["client_id"]


def client_path(client: Client) -> str:
    return f"{application_path(client.application_id or 0, TAB)}/{client.client_id}"
