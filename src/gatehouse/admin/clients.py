"""OAuth clients of an application as the console lists them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from msgspec import UNSET, UnsetType

from gatehouse.admin.paging import Page, PageRequest
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.client_document import ClientPatch, apply_patch
from gatehouse.oauth.clients import Clients, check_client_id
from gatehouse.oauth.errors import BadClient, ClientChanged, ClientNotFound
from gatehouse.oauth.model import Client, ClientProfile
from gatehouse.permissions.commands.application_credentials import find_managed_application
from gatehouse.permissions.commands.drafts import expected_version, refuse_old_version
from gatehouse.permissions.errors import AdministratorsOnly, Malformed, VersionConflict
from gatehouse.permissions.rights.guard import Operation, is_open, require_operation
from gatehouse.permissions.rights.rights import Actor
from gatehouse.permissions.store import ApplicationStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientListItem:
    client_id: str
    name: str
    profile: str
    public: bool
    sign_ins: int  # still valid
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRemovalImpact:
    """What ends when a client is removed."""

    sign_ins: int
    people: int
    consents: int
    last_at: int  # the last sign-in through it; 0 for never


class ClientListStore(Protocol):
    async def clients(self, application_id: int, page_request: PageRequest, now: int) -> Page[ClientListItem]:
        """Return a page of the application's clients by id."""

    async def removal_impact(self, client_id: str, now: int) -> ClientRemovalImpact:
        """Return what ends when the client is removed."""


# Who may change an OAuth client, by its state before and after (R3).


def administers(actor: Actor) -> bool:
    return is_open(actor.rights, Operation.ADMINISTER)


def privileges(client: Client) -> Iterator[str]:
    """The client's powers beyond its own application; an ordinary client has none."""
    if client.first_party:
        yield "first_party"
    if client.redirect_hosts:
        yield "redirect_hosts"
    if client.may_exchange and client.profile is ClientProfile.OIDC:
        yield "may_exchange in profile oidc"
    if any(source.application_id != client.application_id for source in client.claims.values()):
        yield "claims of another application"


def require_client_right(actor: Actor, before: Client | None, after: Client | None = None) -> None:
    """Raise AdministratorsOnly unless the actor may turn one client into the other.

    `before` is None for a client that is created; `after` is None for everything that is not a save: a new secret,
    removal. The whole client is guarded, not its fields: a redirect URI, a key or a secret of a privileged client is
    as good as its privilege (checklist CL-01). The right to save the application has been checked before.
    """
    if administers(actor):
        return
    for client in (before, after):
        held = ", ".join(privileges(client)) if client is not None else ""
        if held:
            raise AdministratorsOnly(f"can_administer is needed: the client has {held}")
    if after is not None and after.may_exchange != (before is not None and before.may_exchange):
        raise AdministratorsOnly("can_administer is needed: may_exchange changes")


# OAuth clients as API requests describe them (R3, R6).


class ClientDraft(ClientPatch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of client; other fields of a client record are ignored (R6)."""

    client_id: str = ""
    application_id: int | UnsetType | None = UNSET  # a client cannot be moved
    version: int | UnsetType = UNSET
    created: Any = None
    secrets: Any = None


def new_client(draft: ClientDraft, application_id: int | None, *, administers: bool, now: int) -> Client:
    """Defaults of a new client; powers beyond its application only by default for administrators (R3)."""
    if draft.name is UNSET:
        raise Malformed("data.name: required for a new client")
    blank = Client(client_id=draft.client_id, name="", application_id=application_id, created_at=now)
    refuse_other_application(draft, blank)
    return apply_patch(draft, blank, is_new=True, exchanges=administers)


def changed_client(draft: ClientDraft, before: Client, *, administers: bool) -> Client:
    refuse_other_application(draft, before)
    refuse_old_version(draft.version, before.version)
    return apply_patch(draft, before, is_new=False, exchanges=administers)


def refuse_other_application(draft: ClientDraft, client: Client) -> None:
    """Raise Malformed if the draft names another application, instead of ignoring it."""
    if draft.application_id is not UNSET and draft.application_id != client.application_id:
        raise Malformed("data.application_id: a client cannot be moved to another application")


def malformed_field(field: str, detail: str) -> Malformed:
    """The error for a field of the request."""
    return Malformed(f"data.{field}: {detail}" if field else f"data: {detail}")


# Commands for the OAuth clients of an application (R3).


SAVE_ATTEMPTS: Final = 8  # of a save without a version, which overrides concurrent saves (R6)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientWithSecret:
    """A client and its new secret, which is shown only once; a public client has none."""

    client: Client
    secret: str = field(default="", repr=False)


class ApplicationClients:
    """Commands on clients: canSave of the application for ordinary ones, can_administer for privileged ones.

    Without an application they apply to every client, those of no application too, for administrators.
    """

    def __init__(self, *, clients: Clients, applications: ApplicationStore) -> None:
        self._clients = clients
        self._applications = applications

    async def list(self, actor: Actor, application_id: int | None) -> Sequence[Client]:
        await self.require_right(actor, application_id)
        return await self._clients.list(application_id)

    async def get(self, actor: Actor, application_id: int | None, client_id: str) -> Client:
        """Raises ClientNotFound, also for a client of another application."""
        await self.require_right(actor, application_id)
        client = await self._clients.get(check_client_id(client_id))
        if application_id is not None and client.application_id != application_id:
            raise ClientNotFound
        return client

    async def get_changeable(self, actor: Actor, application_id: int | None, client_id: str) -> Client:
        """Return the client. Raises AdministratorsOnly if the actor may not change it."""
        client = await self.get(actor, application_id, client_id)
        require_client_right(actor, client)
        return client

    async def create(self, actor: Actor, client: Client) -> str | None:
        """Create the client and return its secret, which is never shown again; None for a public client."""
        await self.require_right(actor, client.application_id)
        require_client_right(actor, None, client)
        return await self._clients.create(client, actor.origin)

    async def change(self, actor: Actor, client: Client) -> None:
        before = await self.get(actor, client.application_id, client.client_id)
        require_client_right(actor, before, client)
        if client.version != before.version:  # only the version that the right was checked on is replaced
            raise ClientChanged
        await self._clients.change(client, actor.origin)

    async def rotate_secret(self, actor: Actor, application_id: int | None, client_id: str) -> str:
        await self.get_changeable(actor, application_id, client_id)
        return await self._clients.rotate_secret(client_id, actor.origin)

    async def revoke_tokens(self, actor: Actor, application_id: int | None, client_id: str) -> int:
        """End the client's grants; canSave is enough for every client, because the client does not change."""
        await self.get(actor, application_id, client_id)
        return await self._clients.revoke_tokens(client_id, actor.origin)

    async def remove(
        self, actor: Actor, application_id: int | None, client_id: str, version: int | UnsetType = UNSET
    ) -> None:
        await self.get_changeable(actor, application_id, client_id)
        await self._clients.remove(client_id, actor.origin, seen=expected_version(version))

    async def require_right(self, actor: Actor, application_id: int | None) -> None:
        """Raise NoRight before anything is revealed."""
        if application_id is None:
            require_operation(actor.rights, Operation.ADMINISTER)
        else:
            await find_managed_application(self._applications, actor, Operation.APPLICATION_SAVE, application_id)


class DraftedClients:
    """The same commands for API requests; errors name the field."""

    def __init__(self, *, clients: ApplicationClients, clock: Clock) -> None:
        self._clients = clients
        self._clock = clock

    async def create(self, actor: Actor, application_id: int | None, draft: ClientDraft) -> ClientWithSecret:
        await self._clients.require_right(
            actor, application_id
        )  # a missing right is reported before other errors (R6)
        try:
            client = new_client(draft, application_id, administers=administers(actor), now=self._clock.now())
            secret = await self._clients.create(actor, client)
        except BadClient as error:
            raise malformed_field(error.field, error.detail) from None
        return await self._with_secret(actor, client, secret)

    async def save(self, actor: Actor, application_id: int | None, draft: ClientDraft) -> Client:
        """Save the client. Raises VersionConflict for an outdated version; a save without a version overrides."""
        for _ in range(SAVE_ATTEMPTS):
            before = await self._clients.get_changeable(actor, application_id, draft.client_id)
            try:
                await self._clients.change(actor, changed_client(draft, before, administers=administers(actor)))
            except BadClient as error:
                raise malformed_field(error.field, error.detail) from None
            except ClientChanged:
                continue  # a named version is compared again
            return await self._clients.get(actor, application_id, draft.client_id)
        raise VersionConflict("the client was changed concurrently; try again")

    async def rotate(self, actor: Actor, application_id: int | None, client_id: str) -> ClientWithSecret:
        try:
            secret = await self._clients.rotate_secret(actor, application_id, client_id)
        except BadClient as error:
            raise malformed_field(error.field, error.detail) from None
        return ClientWithSecret(client=await self._clients.get(actor, application_id, client_id), secret=secret)

    async def _with_secret(self, actor: Actor, client: Client, secret: str | None) -> ClientWithSecret:
        made = await self._clients.get(actor, client.application_id, client.client_id)
        return ClientWithSecret(client=made, secret=secret or "")
