"""OAuth clients of an application as the console lists them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace
from sqlalchemy import BigInteger, Text, bindparam, func, select

from gatehouse.admin.paging import Page, PagedList, PageRequest, contains_search
from gatehouse.images.loading import ImageLoader, NewImage
from gatehouse.images.model import LOGO, BadImage, StoredImage, image_url
from gatehouse.kernel.clock import Clock
from gatehouse.oauth.client_document import ClientPatch, apply_patch
from gatehouse.oauth.clients import Clients, check_client_id, check_new_client
from gatehouse.oauth.errors import BadClient, ClientChanged, ClientNotFound
from gatehouse.oauth.model import SINGLE_FIELDS, Client, ClientProfile
from gatehouse.permissions.commands.application_credentials import find_managed_application
from gatehouse.permissions.commands.drafts import expected_version, refuse_old_version
from gatehouse.permissions.errors import AdministratorsOnly, Malformed, VersionConflict
from gatehouse.permissions.rights.guard import Operation, is_open, require_operation
from gatehouse.permissions.rights.rights import Actor
from gatehouse.permissions.store import ApplicationStore
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.oauth import clients, consents, grants


class ClientListItem(Struct, frozen=True, kw_only=True):
    client_id: str
    name: str
    profile: str
    public: bool
    sign_ins: int  # that are good now
    created_at: int


class ClientRemovalImpact(Struct, frozen=True, kw_only=True):
    """What ends when a client is removed."""

    sign_ins: int
    people: int
    consents: int
    last_at: int  # last sign-in through it; 0 for never


_THIS_APPLICATION: Final = bindparam("of", type_=BigInteger())
_NOW: Final = bindparam("now", type_=BigInteger())
_THIS_CLIENT: Final = bindparam("client", type_=Text())
_LIVE_GRANTS: Final = (grants.c.revoked_at == 0, grants.c.ends_at > _NOW)
_WHERE: Final = (
    clients.c.application_id == _THIS_APPLICATION,
    clients.c.removed.is_(False),
    contains_search(clients.c.client_id, clients.c.name),
)
CLIENT_LIST = PagedList(
    select(
        clients.c.client_id,
        clients.c.name,
        clients.c.profile,
        clients.c.public,
        select(func.count())
        .where(grants.c.client_id == clients.c.client_id, *_LIVE_GRANTS)
        .scalar_subquery()
        .label("sign_ins"),
        clients.c.created_at,
    )
    .where(*_WHERE)
    .order_by(clients.c.client_id),
    counted=select(func.count().label("total")).select_from(clients).where(*_WHERE),
)
REMOVAL_IMPACT = Statement(
    select(
        func.count().label("sign_ins"),
        func.count(grants.c.user_id.distinct()).label("people"),
        select(func.count()).where(consents.c.client_id == _THIS_CLIENT).scalar_subquery().label("consents"),
        func.coalesce(func.max(grants.c.created_at), 0).label("last_at"),
    )
    .select_from(grants)
    .where(grants.c.client_id == _THIS_CLIENT, *_LIVE_GRANTS)
)


def list_clients(application_id: int, page_request: PageRequest, now: int) -> Verb[Page[ClientListItem]]:
    """Return a page of the application's clients, ordered by ID."""
    return CLIENT_LIST.read_page(page_request, _list_item, row_params={"now": now}, of=application_id)


def _list_item(row: Row) -> ClientListItem:
    return ClientListItem(**row._asdict())


def removal_impact(client_id: str, now: int) -> Verb[ClientRemovalImpact]:
    """Count what would end with the client."""
    (row,) = yield REMOVAL_IMPACT(client=client_id, now=now)
    return ClientRemovalImpact(**row._asdict())


class ClientListStore(SqlStore):
    clients = snapshot_read(list_clients)
    removal_impact = snapshot_read(removal_impact)


# Decide who may change an OAuth client, from what the client is and what it is to become (R3).


def administers(actor: Actor) -> bool:
    return is_open(actor.rights, Operation.ADMINISTER)


def privileges(client: Client) -> Iterator[str]:
    """Name what the client has beyond its own application; a client with none of it is an ordinary one."""
    yield from (one.name for one in SINGLE_FIELDS if one.field.administrators_only and one.value_of(client))
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
        names = ", ".join(privileges(client)) if client is not None else ""
        if names:
            raise AdministratorsOnly(f"can_administer is needed: the client has {names}")
    if after is not None and after.may_exchange != (before is not None and before.may_exchange):
        raise AdministratorsOnly("can_administer is needed: may_exchange changes")


# From a request to a whole OAuth client (R3, R6).


class ClientDraft(ClientPatch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`data` of client; other fields of a client record are ignored (R6)."""

    client_id: str = ""
    application_id: int | UnsetType | None = UNSET  # a client stays where it is made
    version: int | UnsetType = UNSET
    created: Any = None
    secrets: Any = None
    logo: bytes | UnsetType | None = UNSET  # an image as base64
    logo_uri: str | UnsetType | None = UNSET  # fetched once; the address that this service answers changes nothing


def new_client(draft: ClientDraft, application_id: int | None, *, administers: bool, now: int) -> Client:
    """Build a new client; only an administrator's may exchange tokens by default (R3)."""
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
    """Raise Malformed for another application_id: ignoring it would hide the mistake."""
    if draft.application_id is not UNSET and draft.application_id != client.application_id:
        raise Malformed("data.application_id: a client cannot be moved to another application")


def with_logo(client: Client, logo: NewImage) -> Client:
    """Return the client with the ID of a new logo, without one, or with UNSET as it is."""
    return client if logo is UNSET else replace(client, logo="" if logo is None else logo.image_id)


@contextmanager
def client_problems_in_request() -> Iterator[None]:
    """Report what is wrong with a client at its place in the request."""
    try:
        yield
    except BadClient as error:
        said = Malformed(f"data.{error.field}: {error.detail}" if error.field else f"data: {error.detail}")
        raise said.on_screen(error.screen_key, **error.screen_values) from None


# OAuth clients of an application, for people who may save it (R3).


SAVE_ATTEMPTS: Final = 8  # of a save without a version, which wins over concurrent saves (R6)


class ApplicationClients:
    """canSave of the application manages its ordinary clients; privileged ones need can_administer.

    Without an application it is about every client, those of no application too, for who administers.
    """

    def __init__(
        self,
        *,
        clients: Clients,
        images: ImageLoader,
        applications: ApplicationStore,
        clock: Clock,
        base_url: str,
    ) -> None:
        self._clients = clients
        self._images = images
        self._applications = applications
        self._clock = clock
        self._base_url = base_url

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
        """The client, for an actor who may change it. Raises AdministratorsOnly."""
        client = await self.get(actor, application_id, client_id)
        require_client_right(actor, client)
        return client

    async def create(self, actor: Actor, client: Client, logo: StoredImage | None = None) -> str | None:
        """The secret, which is never shown again; None for a public client."""
        await self.require_right(actor, client.application_id)
        require_client_right(actor, None, client)
        return await self._clients.create(client, actor.origin, logo)

    async def change(self, actor: Actor, client: Client, logo: StoredImage | None = None) -> None:
        before = await self.get(actor, client.application_id, client.client_id)
        require_client_right(actor, before, client)
        if client.version != before.version:  # what is replaced is what the right was checked on
            raise ClientChanged
        await self._clients.change(client, actor.origin, logo)

    async def create_from_draft(self, actor: Actor, application_id: int | None, draft: ClientDraft) -> str | None:
        """Create what a request describes; returns the secret like `create`."""
        await self.require_right(actor, application_id)  # a missing right is reported before a bad field (R6)
        client = new_client(draft, application_id, administers=administers(actor), now=self._clock.now())
        require_client_right(actor, None, client)
        check_new_client(client)  # before an image is fetched for it
        logo = await self._load_logo(actor, draft, client)
        return await self.create(actor, with_logo(client, logo), logo or None)

    async def save_draft(self, actor: Actor, application_id: int | None, draft: ClientDraft) -> None:
        """Raises VersionConflict for a version that is not the current one; a save without a version wins."""
        before = await self.get_changeable(actor, application_id, draft.client_id)
        logo = await self._load_logo(actor, draft, before)
        for _ in range(SAVE_ATTEMPTS):
            before = await self.get_changeable(actor, application_id, draft.client_id)
            after = with_logo(changed_client(draft, before, administers=administers(actor)), logo)
            try:
                return await self.change(actor, after, logo or None)
            except ClientChanged:
                continue  # a draft with a version fails when its version is compared again
        raise VersionConflict("the client was changed concurrently; try again")

    async def _load_logo(self, actor: Actor, draft: ClientDraft, client: Client) -> NewImage:
        """Return the new logo that the draft asks for. Raises BadClient, Unavailable."""
        current = image_url(self._base_url, client.logo)
        try:
            return await self._images.load_change(
                draft.logo, draft.logo_uri, LOGO, field="logo", current=current, uploader=actor.origin.actor
            )
        except BadImage as error:
            refusal = BadClient(error.detail, field=error.field)
            raise refusal.on_screen(error.screen_key, **error.screen_values) from None

    async def rotate_secret(self, actor: Actor, application_id: int | None, client_id: str) -> str:
        await self.get_changeable(actor, application_id, client_id)
        return await self._clients.rotate_secret(client_id, actor.origin)

    async def revoke_tokens(self, actor: Actor, application_id: int | None, client_id: str) -> int:
        """End what the client was granted: no change of the client, so canSave is enough for every one."""
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
