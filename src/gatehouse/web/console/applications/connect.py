"""How to connect a program to an application: snippets with the values of this installation."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.admin.application_clients import ApplicationClients
from gatehouse.admin.clients import ClientArrival, ClientListStore
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.permissions.errors import Malformed
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.rights.guard import Operation, is_open
from gatehouse.web.console.applications.head import ENTRY, ApplicationHead, application_head, application_path
from gatehouse.web.console.applications.snippets import (
    BY_NAME,
    CLIENT_KINDS,
    SNIPPETS,
    Snippet,
    SnippetFile,
    SnippetKind,
    example_site,
    render_snippet,
    snippet_redirect,
)
from gatehouse.web.console.view import AdminRequest, ConsoleRoute, ConsoleView
from gatehouse.web.http.parse import read_query
from gatehouse.web.http.responses import NO_STORE
from gatehouse.web.pages.contexts import PageContext
from gatehouse.web.pages.forms import CsrfForm

TAB: Final = "connect"
MAX_ENVIRONMENT_LENGTH: Final = 16_384  # characters
FILE_NAME: Final = re.compile(r"[A-Za-z0-9._~-]{1,64}", re.ASCII)


class ConnectQuery(msgspec.Struct, frozen=True, kw_only=True):
    snippet: str = ""
    client: str = ""


class EnvironmentForm(CsrfForm, frozen=True, kw_only=True):
    name: str = ""
    text: str = ""


class ConnectContext(PageContext, frozen=True, kw_only=True):
    template = "console/applications/connect.html"

    head: ApplicationHead
    groups: Sequence[tuple[str, Sequence[tuple[Snippet, str]]]]  # by kind, with the address of each
    snippet: Snippet
    files: Sequence[SnippetFile]
    needs_client: bool
    client: Client | None
    clients: Sequence[tuple[str, str]]  # that fit: id, name
    missing_redirect: str  # that the client has not registered; empty if it has
    requires_missing_pkce: bool
    issuer: str
    arrival: ClientArrival | None = None


class ConnectScreens:
    def __init__(
        self, *, clients: ApplicationClients, lists: ClientListStore, view: ConsoleView, clock: Clock, base_url: str
    ) -> None:
        self._clients = clients
        self._lists = lists
        self._clock = clock
        self._view = view
        self._base_url = base_url

    async def show(self, request: Request, admin: AdminRequest) -> Response:
        model = admin.authenticated.require_application(Operation.APPLICATION_GET)
        application, query = model.application, read_query(request, ConnectQuery)
        found = await self._load_clients(admin, application.application_id)
        asked = next((one for one in found if one.client_id == query.client), None)
        snippet = BY_NAME.get(query.snippet) or default_snippet(application, asked or next(iter(found), None))
        fitting = [one for one in found if snippet.kind in CLIENT_KINDS and snippet.fits(one)]
        client = asked if asked in fitting else next(iter(fitting), None)
        redirect = snippet_redirect(snippet, client)
        context = ConnectContext(
            head=application_head(admin, model, TAB),
            groups=snippet_groups(application, client or asked),
            snippet=snippet,
            files=render_snippet(
                snippet,
                client,
                application_id=application.application_id,
                base_url=self._base_url,
                api=application.api,
                site=example_site(application.protected_sites if is_administrator(admin) else ()),
            ),
            needs_client=snippet.kind in CLIENT_KINDS,
            client=client,
            clients=[(one.client_id, one.name) for one in fitting],
            missing_redirect="" if client is None or client.machine or redirect in client.redirect_uris else redirect,
            requires_missing_pkce=client is not None and snippet.lacks_pkce and client.require_pkce,
            issuer=self._base_url,
            arrival=await self._arrival(client),
        )
        return self._view.render(request, admin, ENTRY, context)

    async def _arrival(self, client: Client | None) -> ClientArrival | None:
        if client is None or client.machine or client.machine:
            return None
        return await self._lists.arrival(client.client_id, self._clock.now())

    async def _load_clients(self, admin: AdminRequest, application_id: int) -> Sequence[Client]:
        """None for those who may not see them."""
        if not is_open(admin.rights, Operation.APPLICATION_SAVE, admin.authenticated.target):
            return ()
        return await self._clients.list(admin.actor, application_id)

    async def download(self, request: Request, admin: AdminRequest, form: EnvironmentForm) -> Response:  # noqa: ARG002
        """Sends back as a file what the page of a new secret shows: the secret itself is stored nowhere."""
        admin.authenticated.require_application(Operation.APPLICATION_GET)
        if len(form.text) > MAX_ENVIRONMENT_LENGTH or not FILE_NAME.fullmatch(form.name):
            raise Malformed("text: not a file of this console")
        disposition = {"Content-Disposition": f'attachment; filename="{form.name}.env"', **NO_STORE}
        return Response(form.text.replace("\r\n", "\n"), media_type="text/plain; charset=utf-8", headers=disposition)

    def routes(self) -> Sequence[ConsoleRoute]:
        here = "/applications/{application_id:int}"
        return [
            self._view.page(f"{here}/connect", self.show),
            self._view.form(f"{here}/env", EnvironmentForm, self.download),
        ]


def is_administrator(admin: AdminRequest) -> bool:
    """Whether they see the protected sites."""
    return is_open(admin.rights, Operation.ADMINISTER, admin.authenticated.target)


def default_snippet(application: Application, client: Client | None) -> Snippet:
    if is_game(application) or client is None:
        return BY_NAME["game-python" if is_game(application) else "flask"]
    return next(one for one in SNIPPETS if one.kind in CLIENT_KINDS and one.fits(client))


def snippet_groups(
    application: Application, client: Client | None
) -> Sequence[tuple[str, Sequence[tuple[Snippet, str]]]]:
    """By kind, games first in a game.

    Games where game login is off, and the native profile without such a client, are left out.
    """
    hidden: set[SnippetKind] = set() if has_game_login(application) else {SnippetKind.GAME}
    if client is None or client.profile is not ClientProfile.NATIVE:
        hidden.add(SnippetKind.NATIVE)
    first = SnippetKind.GAME if is_game(application) else None

    def order(one: Snippet) -> tuple[bool, int]:
        return one.kind is not first, kind_order(one)

    shown = (one for one in SNIPPETS if one.kind not in hidden)
    return [
        (kind.value, [(one, connect_path(application.application_id, one, client)) for one in snippets])
        for kind, snippets in groupby(sorted(shown, key=order), key=lambda one: one.kind)
    ]


def kind_order(snippet: Snippet) -> int:
    return list(SnippetKind).index(snippet.kind)


def connect_path(application_id: int, snippet: Snippet | None = None, client: Client | None = None) -> str:
    query: Mapping[str, str] = {
        **({"snippet": snippet.name} if snippet else {}),
        **({"client": client.client_id} if client else {}),
    }
    return application_path(application_id, TAB) + (f"?{urlencode(query)}" if query else "")


def has_game_login(application: Application) -> bool:
    game = application.settings.get("game")
    return not isinstance(game, Mapping) or game.get("enabled") is not False


def is_game(application: Application) -> bool:
    """Whether game login was switched on for this application by name."""
    game = application.settings.get("game")
    return isinstance(game, Mapping) and game.get("enabled") is True
