"""A new application: its kind decides what is created with it, and what comes next."""

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from msgspec import UNSET
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.application_clients import ApplicationClients
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.clients import check_new_client
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import Client, ClientProfile, new_token_settings
from gatehouse.permissions.commands.access_keys import AccessKeyCommands
from gatehouse.permissions.commands.applications import ApplicationCommands, ApplicationDraft
from gatehouse.permissions.errors import Malformed, NoRight
from gatehouse.permissions.rights.guard import Operation
from gatehouse.web.console.applications.clients import client_secret
from gatehouse.web.console.applications.connect import connect_path
from gatehouse.web.console.applications.head import ENTRY, application_path, render_secret
from gatehouse.web.console.applications.keys import access_key_secret
from gatehouse.web.console.applications.kinds import PRODUCTS, ApplicationKind
from gatehouse.web.console.applications.lists import may_create
from gatehouse.web.console.applications.snippets import ADDRESS, BY_NAME, Snippet
from gatehouse.web.console.combobox import ComboboxKind, ComboboxOption
from gatehouse.web.console.edit_screen import EditScreen, FormDraft, Saved
from gatehouse.web.console.forms import split_lines
from gatehouse.web.console.lookup import Lookup
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

FIELDS: Final = {"project_id": ComboboxKind.PROJECT}
CLIENT_SCOPES: Final = ("openid", "email", "profile")
NOT_IN_CLIENT_ID: Final = re.compile(r"[^a-z0-9]+", re.ASCII)
MAX_CLIENT_NAME: Final = 64
CLIENT_ID_NAME_LENGTH: Final = 40
CLIENT_ID_RANDOM_BYTES: Final = 3  # tells apart applications of the same name
KINDS_WITH_SECRET: Final = frozenset(
    {ApplicationKind.WEB, ApplicationKind.PAGE, ApplicationKind.MACHINE, ApplicationKind.JOB, ApplicationKind.PRODUCT}
)
KINDS_WITH_CLIENT: Final = KINDS_WITH_SECRET - {ApplicationKind.MACHINE}


class NewApplicationForm(CsrfForm, frozen=True, kw_only=True):
    name: str = ""
    description: str = ""
    project_id: str = ""
    redirect_uris: str = ""
    product: str = PRODUCTS[0].name
    app_url: str = ""  # where the product is


class ApplicationKindsContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/kinds.html"

    kinds: Sequence[tuple[str, str]]  # name, address


class NewApplicationContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/new.html"

    kind: str
    picked: Mapping[str, ComboboxOption]
    products: Sequence[tuple[str, str]]  # name, title
    may_be_standalone: bool


class NewApplicationScreens:
    def __init__(
        self,
        *,
        applications: ApplicationCommands,
        clients: ApplicationClients,
        access_keys: AccessKeyCommands,
        lookup: Lookup,
        view: ConsoleView,
        clock: Clock,
        base_url: str,
    ) -> None:
        self._applications = applications
        self._clients = clients
        self._access_keys = access_keys
        self._lookup = lookup
        self._view = view
        self._clock = clock
        self._base_url = base_url

    async def choose(self, request: Request, admin: AdminRequest) -> Response:
        require_creation(admin)
        project_id = read_query(request, NewApplicationForm).project_id
        query = f"?{urlencode({'project_id': project_id})}" if project_id else ""
        kinds = [(kind.value, f"{ENTRY.path}/new/{kind}{query}") for kind in ApplicationKind]
        return self._view.render(request, admin, ENTRY, ApplicationKindsContext(kinds=kinds))

    async def _blank(self, request: Request, admin: AdminRequest) -> NewApplicationForm:
        """`?project_id=` fills the field in: how other screens lead here."""
        require_creation(admin)
        return read_query(request, NewApplicationForm) if request.method == "GET" else NewApplicationForm()

    async def _create(
        self, request: Request, admin: AdminRequest, _blank: NewApplicationForm, form: NewApplicationForm
    ) -> Saved | Response:
        """Everything is checked before the first thing is created."""
        kind, form = requested_kind(request), await self._lookup.resolve(admin, form, FIELDS)
        client = new_client(kind, form, now=self._clock.now()) if kind in KINDS_WITH_CLIENT else None
        draft = ApplicationDraft(
            name=form.name.strip(),
            description=form.description.strip(),
            project_id=form.project_id.strip() or UNSET,
            settings={"game": {"enabled": True}} if kind is ApplicationKind.GAME else UNSET,
        )
        application_id = (await self._applications.save(admin.actor, draft)).application.application_id
        there = await self._view.for_application(admin, application_id)
        if client is not None:
            snippet = BY_NAME[form.product] if kind is ApplicationKind.PRODUCT else None
            return await self._create_client(request, there, replace(client, application_id=application_id), snippet)
        if kind is ApplicationKind.MACHINE:
            return await self._create_key(request, there, application_id)
        next_page = connect_path(application_id) if kind is ApplicationKind.GAME else application_path(application_id)
        return Saved(address=next_page, message="application_created")

    async def _create_client(
        self, request: Request, there: AdminRequest, client: Client, snippet: Snippet | None
    ) -> Response:
        value = await self._clients.create(there.actor, client)
        next_page = connect_path(client.application_id or 0, snippet, client)
        if value is None:
            return self._view.redirect_with_flash(next_page, "application_created")
        secret = replace(client_secret(client, value, base_url=self._base_url), back=next_page)
        model = there.authenticated.require_application(Operation.APPLICATION_SAVE)
        return render_secret(self._view, request, there, model, secret)

    async def _create_key(self, request: Request, there: AdminRequest, application_id: int) -> Response:
        model = there.authenticated.require_application(Operation.ACCESS_KEYS)
        new = await self._access_keys.create(there.actor, application_id, model.application.name)
        secret = replace(
            access_key_secret(application_id, new.value, base_url=self._base_url),
            back=connect_path(application_id, BY_NAME["permissions"]),
        )
        return render_secret(self._view, request, there, model, secret)

    async def _page(
        self, request: Request, admin: AdminRequest, _blank: NewApplicationForm, draft: FormDraft[NewApplicationForm]
    ) -> NewApplicationContext:
        return NewApplicationContext(
            kind=requested_kind(request).value,
            picked=await self._lookup.describe(admin, draft.form, FIELDS),
            products=[(one.name, one.title) for one in PRODUCTS],
            may_be_standalone=admin.visibility.may_create,
        )

    def routes(self) -> Sequence[ConsoleRoute]:
        """A form that creates a secret needs a fresh sign-in, like that of the secret alone."""
        view, here = self._view, "/applications/new"
        forms = [
            route
            for kind in ApplicationKind
            for route in EditScreen(
                view=view,
                path=f"{here}/{kind}",
                form=NewApplicationForm,
                load=self._blank,
                page=self._page,
                save=self._create,
                fresh=kind in KINDS_WITH_SECRET,
            ).routes()
        ]
        return [view.page(here, self.choose), *forms]


def require_creation(admin: AdminRequest) -> None:
    if not may_create(admin):
        raise NoRight("cannot create applications anywhere")


def requested_kind(request: Request) -> ApplicationKind:
    return ApplicationKind(request.scope["path"].rpartition("/")[2])


def new_client(kind: ApplicationKind, form: NewApplicationForm, *, now: int) -> Client:
    """Return the client that the kind needs. Raises Malformed, which names the field."""
    product = next((one for one in PRODUCTS if one.name == form.product), None)
    if kind is not ApplicationKind.PRODUCT:
        uris = () if kind is ApplicationKind.JOB else tuple(split_lines(form.redirect_uris))
    elif product is None:
        raise Malformed("product: choose a product from the list").on_screen("choose_product")
    else:
        uris = (form.app_url.strip().rstrip("/") + product.callback,)
    is_page, is_machine = kind is ApplicationKind.PAGE, kind is ApplicationKind.JOB
    origins = dict.fromkeys(found["origin"] for found in map(ADDRESS.fullmatch, uris) if found)
    client = Client(
        client_id=new_client_id(form.name),
        name=form.name.strip()[:MAX_CLIENT_NAME],
        profile=ClientProfile.OIDC,
        redirect_uris=uris,
        origins=tuple(origins) if is_page else (),
        scopes=() if is_machine else CLIENT_SCOPES,
        token_settings=new_token_settings(ClientProfile.OIDC),
        may_exchange=False,
        require_pkce=kind is not ApplicationKind.PRODUCT or (product is not None and not product.lacks_pkce),
        public=is_page,
        machine=is_machine,
        created_at=now,
    )
    try:
        check_new_client(client)
    except BadClient as error:
        field = "app_url" if kind is ApplicationKind.PRODUCT else error.field or "name"
        raise Malformed(f"{field}: {error.detail}") from None
    return client


def new_client_id(name: str) -> str:
    words = NOT_IN_CLIENT_ID.sub("-", name.lower()).strip("-")[:CLIENT_ID_NAME_LENGTH].strip("-")
    return f"{words or 'app'}-{secrets.token_hex(CLIENT_ID_RANDOM_BYTES)}"
