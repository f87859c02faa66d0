"""Stores clients (oauth/store.py)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import asdict, replace
from sqlalchemy import bindparam, delete, exists, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import AuditRecord
from gatehouse.images.model import StoredImage, client_logo_owner
from gatehouse.kernel.cache import WeightedCache
from gatehouse.keys.model import Algorithm
from gatehouse.oauth.errors import ClientChanged, ClientExists, ClientNotFound
from gatehouse.oauth.model import (
    LIST_FIELDS,
    ClaimSource,
    Client,
    ClientProfile,
    ClientSecret,
    SecretKind,
    TokenSettings,
)
from gatehouse.oauth.workloads.model import WorkloadIdentity
from gatehouse.storage.audit import add_audit_record, has_audit_record
from gatehouse.storage.epoch import CLIENT_REV, next_rev
from gatehouse.storage.images import put_image, remove_image
from gatehouse.storage.oauth.apis import acting_programs, application_logo, find_api, project_of
from gatehouse.storage.permissions.row_readers import belongs_to_live_application
from gatehouse.storage.runner import Runner, SqlStore, read, snapshot_read, write
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.oauth import client_origins, client_secrets, clients, consents, grants

CACHE_BYTES: Final = 16 * 2**20  # bytes of clients in memory
CACHE_GROUP: Final = "known"
FIXED_COLUMNS: Final = frozenset({"client_id", "created_at", "version"})  # columns that a save never changes
CHANGEABLE_COLUMNS: Final = tuple(column.name for column in clients.c if column.name not in FIXED_COLUMNS)

_COLUMNS: Final = tuple(CLIENT_REV.label("rev") if column.name == "rev" else column for column in clients.c)

INSERT_CLIENT = Statement(lambda: insert(clients).on_conflict_do_nothing().returning(clients.c.client_id))
UPDATE_CLIENT = Statement(
    lambda: (
        update(clients)
        .where(clients.c.client_id == bindparam("of"), clients.c.version == bindparam("seen"))
        .values({name: bindparam(name) for name in CHANGEABLE_COLUMNS} | {"version": clients.c.version + 1})
        .returning(exists().where(client_origins.c.client_id == bindparam("of")).label("has_origins"))
    )
)
NOT_REMOVED = clients.c.removed.is_(False)
# A client of a removed application can be managed, but is refused at every endpoint (R5, PR-11).
APPLICATION_LIVE = or_(clients.c.application_id.is_(None), belongs_to_live_application(clients.c.application_id))
_CLIENT_VERSION = select(clients.c.version, CLIENT_REV.label("rev")).where(
    clients.c.client_id == bindparam("client_id"), NOT_REMOVED
)
CLIENT_VERSION = Statement(lambda: _CLIENT_VERSION)
SERVING_CLIENT_VERSION = Statement(lambda: _CLIENT_VERSION.where(APPLICATION_LIVE))
CLIENT_BY_ID = Statement(lambda: select(*_COLUMNS).where(clients.c.client_id == bindparam("client_id")))
# Locks the row until the commit; the new version tells earlier readers that the secrets changed.
TOUCH_CLIENT = Statement(
    lambda: (
        update(clients)
        .where(clients.c.client_id == bindparam("of"), NOT_REMOVED)
        .values(version=clients.c.version + 1)
        .returning(clients.c.client_id)
    )
)
REMOVE_CLIENT = Statement(
    lambda: (
        update(clients)
        .where(clients.c.client_id == bindparam("of"), NOT_REMOVED)
        .values(removed=True, logo="", version=clients.c.version + 1)
        .returning(clients.c.version)
    )
)
RAISE_CLIENT = Statement(
    lambda: (
        update(clients)
        .where(clients.c.client_id == bindparam("of"), NOT_REMOVED)
        .values(rev=next_rev(CLIENT_REV), version=clients.c.version + 1)
    )
)
REVOKE_CLIENT_GRANTS = Statement(
    lambda: (
        update(grants)
        .where(grants.c.client_id == bindparam("of"), grants.c.revoked_at == 0, grants.c.ends_at > bindparam("now"))
        .values(revoked_at=bindparam("now"))
        .returning(grants.c.grant_id)
    )
)
ALL_CLIENTS = Statement(lambda: select(*_COLUMNS).where(NOT_REMOVED).order_by(clients.c.client_id))
_OF_APPLICATION = (NOT_REMOVED, clients.c.application_id == bindparam("application_id"))
CLIENTS_OF_APPLICATION = Statement(lambda: select(*_COLUMNS).where(*_OF_APPLICATION).order_by(clients.c.client_id))
INSERT_ORIGIN = Statement(lambda: insert(client_origins))
DROP_ORIGINS = Statement(lambda: delete(client_origins).where(client_origins.c.client_id == bindparam("of")))
ORIGIN_OF_ANY = Statement(
    lambda: select(client_origins.c.client_id).where(client_origins.c.origin == bindparam("origin")).limit(1)
)
REMOVED_CLIENT_IDS = Statement(lambda: select(clients.c.client_id).where(clients.c.removed.is_(True)))
_IS_USED = or_(
    exists().where(grants.c.client_id == clients.c.client_id),
    exists().where(consents.c.client_id == clients.c.client_id),
)
USED_CLIENT = Statement(
    lambda: select(clients.c.client_id).where(clients.c.client_id == bindparam("of"), NOT_REMOVED, _IS_USED)
)
# Clients with a metadata document that no one has used; they are stored again when their document is fetched.
DELETE_UNUSED = Statement(
    lambda: (
        delete(clients)
        .where(clients.c.client_id.like("https://%"), NOT_REMOVED, clients.c.created_at <= bindparam("by"), ~_IS_USED)
        .returning(clients.c.client_id)
    )
)
INSERT_SECRET = Statement(lambda: insert(client_secrets))
_BY_AGE = (client_secrets.c.created_at, client_secrets.c.slot)
SECRETS_OF_CLIENT = Statement(
    lambda: select(client_secrets).where(client_secrets.c.client_id == bindparam("client_id")).order_by(*_BY_AGE)
)
ALL_SECRETS = Statement(lambda: select(client_secrets).order_by(*_BY_AGE))
SECRETS_OF_APPLICATION = Statement(
    lambda: (
        select(client_secrets)
        .join(clients, clients.c.client_id == client_secrets.c.client_id)
        .where(*_OF_APPLICATION)
        .order_by(*_BY_AGE)
    )
)
DROP_SECRET = Statement(
    lambda: delete(client_secrets).where(
        client_secrets.c.client_id == bindparam("of"), client_secrets.c.slot == bindparam("of_slot")
    )
)
DROP_SECRETS = Statement(lambda: delete(client_secrets).where(client_secrets.c.client_id == bindparam("of")))
SET_SECRET_END = Statement(
    lambda: (
        update(client_secrets)
        .where(client_secrets.c.client_id == bindparam("of"), client_secrets.c.slot == bindparam("of_slot"))
        .values(expires_at=bindparam("expires_at"))
    )
)


def create_client(client: Client, entry: AuditRecord, logo: StoredImage | None = None) -> Verb[None]:
    try:
        yield from insert_client(client)
    except ClientExists:
        if (yield from has_audit_record(entry)):
            return  # by an earlier run
        raise
    if logo is not None:
        yield from put_image(client_logo_owner(client.client_id), logo, entry.at)
    yield from add_audit_record(entry)


def insert_client(client: Client) -> Verb[None]:
    if not (yield INSERT_CLIENT(**columns_of(client))):
        raise ClientExists
    yield from _put_lists(client)


def update_client(
    client: Client, entry: AuditRecord, logo: StoredImage | None = None, *, ended: AuditRecord | None = None
) -> Verb[None]:
    yield from replace_client(client)
    if ended is not None:
        yield from end_client_grants(client.client_id, ended.at)
        yield from add_audit_record(ended)
    if logo is not None:
        yield from put_image(client_logo_owner(client.client_id), logo, entry.at)
    yield from add_audit_record(entry)


def end_client_grants(client_id: str, now: int) -> Verb[int]:
    """End every grant of the client and the tokens it got for itself; return how many grants there were."""
    yield RAISE_CLIENT(of=client_id, epoch=now * 1_000)
    return len((yield REVOKE_CLIENT_GRANTS(of=client_id, now=now)))


def replace_client(client: Client) -> Verb[None]:
    """Replace the client, and its secrets, if its version is still the one that was read. Raises ClientChanged.

    The image of a client that names no logo is deleted.
    """
    columns = columns_of(client)
    changed = {name: columns[name] for name in CHANGEABLE_COLUMNS}
    rows = yield UPDATE_CLIENT(**changed, of=client.client_id, seen=client.version)
    if not rows:
        raise ClientChanged
    yield DROP_SECRETS(of=client.client_id)
    if rows[0].has_origins:
        yield DROP_ORIGINS(of=client.client_id)
    yield from _put_lists(client)
    if not client.logo:
        yield from remove_image(client_logo_owner(client.client_id))


def _put_lists(client: Client) -> Verb[None]:
    if client.secrets:
        yield INSERT_SECRET.bulk([_secret_columns(client.client_id, secret) for secret in client.secrets])
    if client.origins and not client.removed:
        origins = dict.fromkeys(client.origins)
        yield INSERT_ORIGIN.bulk([{"origin": origin, "client_id": client.client_id} for origin in origins])


def _drop_lists(client_id: str) -> Verb[None]:
    yield DROP_SECRETS(of=client_id)
    yield DROP_ORIGINS(of=client_id)


def client_by_id(client_id: str) -> Verb[Client]:
    """Return the client with its secrets, even if it is removed. Raises ClientNotFound."""
    rows = yield CLIENT_BY_ID(client_id=client_id)
    if not rows:
        raise ClientNotFound
    secrets = yield SECRETS_OF_CLIENT(client_id=client_id)
    return client_from_fields(rows[0]._asdict(), map(_secret_from_row, secrets))


def all_clients() -> Verb[Sequence[Client]]:
    rows = yield ALL_CLIENTS()
    return clients_with_secrets(rows, (yield ALL_SECRETS()))


def clients_of_application(application_id: int) -> Verb[Sequence[Client]]:
    rows = yield CLIENTS_OF_APPLICATION(application_id=application_id)
    return clients_with_secrets(rows, (yield SECRETS_OF_APPLICATION(application_id=application_id)))


def clients_with_secrets(rows: Sequence[Row], secrets: Sequence[Row]) -> Sequence[Client]:
    by_client: dict[str, list[ClientSecret]] = {}
    for row in secrets:
        by_client.setdefault(row.client_id, []).append(_secret_from_row(row))
    return [client_from_fields(row._asdict(), by_client.get(row.client_id, ())) for row in rows]


def is_registered_origin(origin: str) -> Verb[bool]:
    """Whether a client that is not removed registered exactly this origin: a preflight names no client (R3)."""
    return bool((yield ORIGIN_OF_ANY(origin=origin)))


def removed_client_ids() -> Verb[frozenset[str]]:
    """Return the ids of removed clients.

    They are never reused, so that nothing issued to one is valid for another.
    """
    rows = yield REMOVED_CLIENT_IDS()
    return frozenset(row.client_id for row in rows)


def rotate_secret(client_id: str, secret: ClientSecret, entry: AuditRecord, *, old_ends_at: int) -> Verb[None]:
    if not (yield TOUCH_CLIENT(of=client_id)):
        raise ClientNotFound
    if (yield from has_audit_record(entry)):
        return  # by an earlier run; a second rotation would remove the secret that the client has
    stored = yield SECRETS_OF_CLIENT(client_id=client_id)
    stored.sort(key=lambda secret: not secret.expires_at)  # the newest has no end, also within one second
    for old in stored[:-1]:
        yield DROP_SECRET(of=client_id, of_slot=old.slot)
    newest = stored[-1].slot if stored else 0
    yield SET_SECRET_END(of=client_id, of_slot=newest, expires_at=old_ends_at)
    yield INSERT_SECRET(**_secret_columns(client_id, replace(secret, slot=2 if newest == 1 else 1)))
    yield from add_audit_record(entry)


def remove_client(client_id: str, entry: AuditRecord, *, seen: int | None = None) -> Verb[None]:
    rows = yield REMOVE_CLIENT(of=client_id)
    if not rows:
        raise ClientNotFound
    if seen is not None and rows[0].version != seen + 1:
        raise ClientChanged
    yield from _drop_lists(client_id)
    yield from remove_image(client_logo_owner(client_id))
    yield from add_audit_record(entry)


def is_client_in_use(client_id: str) -> Verb[bool]:
    return bool((yield USED_CLIENT(of=client_id)))


def delete_unused_clients(before: int) -> Verb[None]:
    """Delete the clients that were stored for their document before that time and were never allowed anything."""
    for row in (yield DELETE_UNUSED(by=before)):
        yield from _drop_lists(row.client_id)
        yield from remove_image(client_logo_owner(row.client_id))


class ClientCache:
    """Caches clients by version, so that a statement only has to read the version.

    Every use has just read the version, and a client is read again when its version differs: nothing is decided from
    the cache alone. Only committed states are cached: these verbs are for reads, never for a transaction.
    """

    def __init__(self, runner: Runner) -> None:
        self._cache: WeightedCache[Client] = WeightedCache(CACHE_BYTES)
        # After a failover that lost a change, one version may mean two states.
        runner.listen("clients", lambda _: self._cache.clear())

    @property
    def weight(self) -> int:
        """Estimated bytes."""
        return self._cache.weight

    def client(self, client_id: str, version: Statement = CLIENT_VERSION) -> Verb[Client]:
        """Return the client. Raises ClientNotFound, also for a removed one."""
        rows = yield version(client_id=client_id)
        if not rows:
            raise ClientNotFound
        return (yield from self.client_at_version(client_id, rows[0].version, rows[0].rev))

    def client_at_version(self, client_id: str, version: int, rev: int) -> Verb[Client]:
        """Return the client at the version that was just read, removed or not; its `rev` also rises without one."""
        known = self._cache.get(CACHE_GROUP, client_id)
        if known is None or (known.version, known.rev) != (version, rev):
            known = yield from client_by_id(client_id)
            self._cache.put(CACHE_GROUP, client_id, known, known.weight)
        return known


class ClientStorage(SqlStore):
    def __init__(self, runner: Runner, cache: ClientCache) -> None:
        super().__init__(runner)
        self._cache = cache

    @property
    def cache_weight(self) -> int:
        """Estimated bytes of the cached clients."""
        return self._cache.weight

    async def client(self, client_id: str) -> Client:
        return await self.runner.cached_read((ClientCache, client_id), lambda: self._cache.client(client_id))

    async def active_client(self, client_id: str) -> Client:
        return await self.runner.cached_read(
            (SERVING_CLIENT_VERSION, client_id), lambda: self._cache.client(client_id, SERVING_CLIENT_VERSION)
        )

    create_client = write(create_client, repeatable=True)
    change_client = write(update_client)
    clients = snapshot_read(all_clients)
    clients_of_application = snapshot_read(clients_of_application)
    is_registered_origin = read(is_registered_origin)
    rotate_secret = write(rotate_secret, repeatable=True)
    remove_client = write(remove_client)
    find_api = read(find_api)
    is_client_in_use = read(is_client_in_use)
    acting_programs = read(acting_programs)
    project_of = read(project_of)
    application_logo = read(application_logo)


def columns_of(client: Client) -> dict[str, Any]:
    columns: dict[str, Any] = {column.name: getattr(client, column.name) for column in clients.c}
    # Values are stored under attribute names, not under wire names.
    return {**columns, "token_settings": msgspec.structs.asdict(client.token_settings)}


def _secret_columns(client_id: str, secret: ClientSecret) -> dict[str, object]:
    return {"client_id": client_id, **asdict(secret)}


def client_from_fields(fields: dict[str, Any], secrets: Iterable[ClientSecret] = ()) -> Client:
    """Build a client from its columns."""
    read: dict[str, Any] = {name: tuple(fields[name]) for name in LIST_FIELDS}
    read["profile"] = ClientProfile(fields["profile"])
    sources = {claim: _known_members(source, ClaimSource) for claim, source in fields["claims"].items()}
    read["claims"] = msgspec.convert(sources, dict[str, ClaimSource])
    identities = [_known_members(identity, WorkloadIdentity) for identity in fields["workload_identities"]]
    read["workload_identities"] = msgspec.convert(identities, tuple[WorkloadIdentity, ...])
    tokens = _known_members(fields["token_settings"], TokenSettings)
    read["token_settings"] = TokenSettings(**{**tokens, "id_token_alg": Algorithm(tokens["id_token_alg"])})
    return Client(**{**fields, **read}, secrets=tuple(secrets))


def _known_members(document: Mapping[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Leave out what a later version stored; in a request the same member is refused."""
    return {name: value for name, value in document.items() if name in kind.__struct_fields__}


def _secret_from_row(row: Row) -> ClientSecret:
    fields = row._asdict()
    del fields["client_id"]
    fields["kind"] = SecretKind(row.kind)
    return ClientSecret(**fields)
