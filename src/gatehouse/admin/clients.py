"""OAuth clients of an application as the console lists them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace
from sqlalchemy import BigInteger, Text, bindparam, func, select

from gatehouse.admin.paging import Page, PagedList, PageRequest, contains_search
from gatehouse.audit.events import AuditEvent
from gatehouse.images.loading import NewImage
from gatehouse.kernel.private_schemes import has_plain_scheme
from gatehouse.oauth.client_document import ClientPatch, apply_patch
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import SINGLE_FIELDS, Client, ClientProfile
from gatehouse.permissions.commands.versions import refuse_old_version
from gatehouse.permissions.errors import AdministratorsOnly, Malformed, NoRight
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import GuardTarget, Operation, is_open
from gatehouse.storage.audit import refusal_from_row
from gatehouse.storage.runner import SqlStore, snapshot_read
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.audit import audit_refusals
from gatehouse.storage.tables.oauth import clients, consents, grants


class ClientListItem(Struct, frozen=True, kw_only=True):
    client_id: str
    name: str
    profile: str
    public: bool
    machine: bool
    sign_ins: int  # that are good now
    created_at: int


class ClientRemovalImpact(Struct, frozen=True, kw_only=True):
    """What ends when a client is removed."""

    sign_ins: int
    people: int
    consents: int
    last_at: int  # last sign-in through it; 0 for never


class ClientArrival(Struct, frozen=True, kw_only=True):
    """Whether sign-ins through a client arrive, and the newest request that was refused since."""

    last_at: int  # last sign-in through it; 0 for never
    refused_at: int = 0
    received: str = ""  # the redirect URI of the refused request


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
        clients.c.machine,
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
    lambda: (
        select(
            func.count().label("sign_ins"),
            func.count(grants.c.user_id.distinct()).label("people"),
            select(func.count()).where(consents.c.client_id == _THIS_CLIENT).scalar_subquery().label("consents"),
            func.coalesce(func.max(grants.c.created_at), 0).label("last_at"),
        )
        .select_from(grants)
        .where(grants.c.client_id == _THIS_CLIENT, *_LIVE_GRANTS)
    )
)


NEWEST_REFUSAL = Statement(
    lambda: (
        select(audit_refusals)
        .where(
            audit_refusals.c.subject == _THIS_CLIENT,
            audit_refusals.c.event == AuditEvent.PAGE_REFUSED.value,
            audit_refusals.c.at >= bindparam("since", type_=BigInteger()),
        )
        .order_by(audit_refusals.c.position.desc())
        .limit(1)
    )
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


def client_arrival(client_id: str, now: int) -> Verb[ClientArrival]:
    """Return the last sign-in through the client, and the refused request that came after it."""
    (row,) = yield REMOVAL_IMPACT(client=client_id, now=now)
    refused = yield NEWEST_REFUSAL(client=client_id, since=row.last_at)
    if not refused:
        return ClientArrival(last_at=row.last_at)
    refusal = refusal_from_row(refused[0])
    received = str(refusal.details.get("received", ""))
    return ClientArrival(last_at=row.last_at, refused_at=refusal.at, received=received)


class ClientListStore(SqlStore):
    arrival = snapshot_read(client_arrival)
    clients = snapshot_read(list_clients)
    removal_impact = snapshot_read(removal_impact)


# Decide who may change an OAuth client, from what the client is and what it is to become (R3).


def administers(actor: Actor) -> bool:
    return is_open(actor.rights, Operation.ADMINISTER)


def may_save_own_api(actor: Actor, application_id: int | None) -> bool:
    """Whether the actor may save clients of the application that call the service as the application (R11)."""
    return is_open(actor.rights, Operation.APPLICATION_KEYS, GuardTarget(application_id=application_id))


def privileges(client: Client) -> Iterator[str]:
    """Name what the client has beyond its own application; a client with none of it is an ordinary one."""
    yield from (field.name for field in SINGLE_FIELDS if field.field.administrators_only and field.value_of(client))
    if client.may_exchange and client.profile is ClientProfile.OIDC:
        yield "may_exchange in profile oidc"
    if any(source.application_id != client.application_id for source in client.claims.values()):
        yield "claims of another application"
    if any(map(has_plain_scheme, client.redirect_uris)):
        yield "a redirect URI whose scheme has no dot, which any program on a device can claim"


def require_client_right(actor: Actor, before: Client | None, after: Client | None = None) -> None:
    """Raise AdministratorsOnly unless the actor may turn one client into the other.

    `before` is None for a client that is created; `after` is None for everything that is not a save: a new secret,
    removal. The whole client is guarded, not its fields: a redirect URI, a key or a secret of a privileged client is
    as good as its privilege (checklist CL-01). The right to save the application has been checked before.

    Raises NoRight for a client that may call the service as its application: that takes canCreateJwt, as any other
    credential of the application does (R11).
    """
    if administers(actor):
        return
    for client in (before, after):
        if client is not None and client.own_api_scopes and not may_save_own_api(actor, client.application_id):
            raise NoRight("the client may call the service as its application: canCreateJwt is needed")
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
