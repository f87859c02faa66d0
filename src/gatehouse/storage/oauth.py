"""Keeps clients (oauth/store.py)."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import AuditRecord
from gatehouse.kernel.weighted_cache import WeightedCache
from gatehouse.oauth.errors import ClientChanged, ClientExists, ClientNotFound
from gatehouse.oauth.model import ClaimSource, Client, ClientProfile, ClientSecret, SecretKind, TokenSettings
from gatehouse.storage.audit import add_audit_record, has_audit_record
from gatehouse.storage.live_applications import belongs_to_live_application
from gatehouse.storage.runner import Runner, SqlStore, read, snapshot_read, write
from gatehouse.storage.statements import JsonDocument, Row, Statement, Verb
from gatehouse.storage.tables.oauth import client_secrets, clients

LIST_COLUMNS: Final = ("redirect_hosts", "redirect_uris", "post_logout_uris", "scopes", "origins")
CACHE_BYTES: Final = 16 * 2**20  # of clients in memory
CACHE_GROUP: Final = "known"
FIXED_COLUMNS: Final = frozenset({"client_id", "created_at", "version"})  # what a save never changes
CHANGEABLE_COLUMNS: Final = tuple(column.name for column in clients.c if column.name not in FIXED_COLUMNS)

INSERT_CLIENT = Statement(insert(clients).on_conflict_do_nothing().returning(clients.c.client_id))
UPDATE_CLIENT = Statement(
    update(clients)
    .where(clients.c.client_id == bindparam("of"), clients.c.version == bindparam("seen"))
    .values({name: bindparam(name) for name in CHANGEABLE_COLUMNS} | {"version": clients.c.version + 1})
    .returning(clients.c.client_id)
)
NOT_REMOVED = clients.c.removed.is_(False)
# A client of a removed application is there to be managed, and refused wherever it comes itself (R5, PR-11).
APPLICATION_LIVE = or_(clients.c.application_id.is_(None), belongs_to_live_application(clients.c.application_id))
_CLIENT_VERSION = select(clients.c.version).where(clients.c.client_id == bindparam("client_id"), NOT_REMOVED)
CLIENT_VERSION = Statement(_CLIENT_VERSION)
SERVING_CLIENT_VERSION = Statement(_CLIENT_VERSION.where(APPLICATION_LIVE))
CLIENT_BY_ID = Statement(select(clients).where(clients.c.client_id == bindparam("client_id")))
# Holds the row until the commit, and tells whoever read the client before that its secrets are others now.
TOUCH_CLIENT = Statement(
    update(clients)
    .where(clients.c.client_id == bindparam("of"), NOT_REMOVED)
    .values(version=clients.c.version + 1)
    .returning(clients.c.client_id)
)
REMOVE_CLIENT = Statement(
    update(clients)
    .where(clients.c.client_id == bindparam("of"), NOT_REMOVED)
    .values(removed=True, version=clients.c.version + 1)
    .returning(clients.c.version)
)
ALL_CLIENTS = Statement(select(clients).where(NOT_REMOVED).order_by(clients.c.client_id))
_OF_APPLICATION = (NOT_REMOVED, clients.c.application_id == bindparam("application_id"))
CLIENTS_OF_APPLICATION = Statement(select(clients).where(*_OF_APPLICATION).order_by(clients.c.client_id))
ORIGINS = Statement(
    select(clients.c.origins).where(NOT_REMOVED, clients.c.origins != bindparam("none", [], type_=JsonDocument()))
)
REMOVED_CLIENT_IDS = Statement(select(clients.c.client_id).where(clients.c.removed.is_(True)))
INSERT_SECRET = Statement(insert(client_secrets))
_BY_AGE = (client_secrets.c.created_at, client_secrets.c.slot)
SECRETS_OF_CLIENT = Statement(
    select(client_secrets).where(client_secrets.c.client_id == bindparam("client_id")).order_by(*_BY_AGE)
)
ALL_SECRETS = Statement(select(client_secrets).order_by(*_BY_AGE))
SECRETS_OF_APPLICATION = Statement(
    select(client_secrets)
    .join(clients, clients.c.client_id == client_secrets.c.client_id)
    .where(*_OF_APPLICATION)
    .order_by(*_BY_AGE)
)
DROP_SECRET = Statement(
    delete(client_secrets).where(
        client_secrets.c.client_id == bindparam("of"), client_secrets.c.slot == bindparam("of_slot")
    )
)
DROP_SECRETS = Statement(delete(client_secrets).where(client_secrets.c.client_id == bindparam("of")))
SET_SECRET_END = Statement(
    update(client_secrets)
    .where(client_secrets.c.client_id == bindparam("of"), client_secrets.c.slot == bindparam("of_slot"))
    .values(expires_at=bindparam("expires_at"))
)


def create_client(client: Client, entry: AuditRecord) -> Verb[None]:
    try:
        yield from insert_client(client)
    except ClientExists:
        if (yield from has_audit_record(entry)):
            return  # by an earlier run
        raise
    yield from add_audit_record(entry)


def insert_client(client: Client) -> Verb[None]:
    fields = asdict(client)
    del fields["secrets"]
    if not (yield INSERT_CLIENT(**fields)):
        raise ClientExists
    yield from _put_secrets(client)


def update_client(client: Client, entry: AuditRecord) -> Verb[None]:
    yield from replace_client(client)
    yield from add_audit_record(entry)


def replace_client(client: Client) -> Verb[None]:
    """Replace the client, and its secrets, if its version is still the one that was read. Raises ClientChanged."""
    fields = asdict(client)
    if not (
        yield UPDATE_CLIENT(
            **{name: fields[name] for name in CHANGEABLE_COLUMNS}, of=client.client_id, seen=client.version
        )
    ):
        raise ClientChanged
    yield DROP_SECRETS(of=client.client_id)
    yield from _put_secrets(client)


def _put_secrets(client: Client) -> Verb[None]:
    yield INSERT_SECRET.bulk([_secret_columns(client.client_id, secret) for secret in client.secrets])


def client_by_id(client_id: str) -> Verb[Client]:
    """Whole, a removed one too. Raises ClientNotFound."""
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
    held: dict[str, list[ClientSecret]] = {}
    for row in secrets:
        held.setdefault(row.client_id, []).append(_secret_from_row(row))
    return [client_from_fields(row._asdict(), held.get(row.client_id, ())) for row in rows]


def client_origins() -> Verb[frozenset[str]]:
    rows = yield ORIGINS()
    return frozenset(origin for row in rows for origin in row.origins)


def removed_client_ids() -> Verb[frozenset[str]]:
    """The ids of removed clients: spent, so that nothing issued to one ever fits another."""
    rows = yield REMOVED_CLIENT_IDS()
    return frozenset(row.client_id for row in rows)


def rotate_secret(client_id: str, secret: ClientSecret, entry: AuditRecord, *, old_ends_at: int) -> Verb[None]:
    if not (yield TOUCH_CLIENT(of=client_id)):
        raise ClientNotFound
    if (yield from has_audit_record(entry)):
        return  # by an earlier run, and a second one would take the secret away that the client has
    held = yield SECRETS_OF_CLIENT(client_id=client_id)
    held.sort(key=lambda secret: not secret.expires_at)  # the newest has no end, also within one second
    for old in held[:-1]:
        yield DROP_SECRET(of=client_id, of_slot=old.slot)
    newest = held[-1].slot if held else 0
    yield SET_SECRET_END(of=client_id, of_slot=newest, expires_at=old_ends_at)
    yield INSERT_SECRET(**_secret_columns(client_id, replace(secret, slot=2 if newest == 1 else 1)))
    yield from add_audit_record(entry)


def remove_client(client_id: str, entry: AuditRecord, *, seen: int | None = None) -> Verb[None]:
    rows = yield REMOVE_CLIENT(of=client_id)
    if not rows:
        raise ClientNotFound
    if seen is not None and rows[0].version != seen + 1:
        raise ClientChanged
    yield DROP_SECRETS(of=client_id)
    yield from add_audit_record(entry)


class ClientCache:
    """Clients in memory under their versions: a statement that brings the version along need not bring the rest.

    Every use has read the version just now, and a client is read anew when that is another; so nothing is decided
    from memory alone. Only committed states are kept: these verbs are for reads, never for a transaction.
    """

    def __init__(self, runner: Runner) -> None:
        self._cache: WeightedCache[Client] = WeightedCache(CACHE_BYTES)
        # After a failover that lost a change, one version may stand for two states.
        runner.listen("clients", lambda _: self._cache.clear())

    def client(self, client_id: str, version: Statement = CLIENT_VERSION) -> Verb[Client]:
        """Raises ClientNotFound, for removed ones too."""
        rows = yield version(client_id=client_id)
        if not rows:
            raise ClientNotFound
        return (yield from self.client_at_version(client_id, rows[0].version))

    def client_at_version(self, client_id: str, version: int) -> Verb[Client]:
        """The client, removed or not, whose version was read just now."""
        known = self._cache.get(CACHE_GROUP, client_id)
        if known is None or known.version != version:
            known = yield from client_by_id(client_id)
            self._cache.put(CACHE_GROUP, client_id, known, known.weight)
        return known


class ClientStorage(SqlStore):
    def __init__(self, runner: Runner, cache: ClientCache) -> None:
        super().__init__(runner)
        self._cache = cache

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
    client_origins = read(client_origins)
    rotate_secret = write(rotate_secret, repeatable=True)
    remove_client = write(remove_client)


def _secret_columns(client_id: str, secret: ClientSecret) -> dict[str, object]:
    return {"client_id": client_id, **asdict(secret)}


def client_from_fields(fields: dict[str, Any], secrets: Iterable[ClientSecret] = ()) -> Client:
    """The client whose columns these are."""
    read: dict[str, Any] = {name: tuple(fields[name]) for name in LIST_COLUMNS}
    read["profile"] = ClientProfile(fields["profile"])
    read["claims"] = msgspec.convert(fields["claims"], dict[str, ClaimSource])
    read["token_settings"] = msgspec.convert(fields["token_settings"], TokenSettings)
    return Client(**{**fields, **read}, secrets=tuple(secrets))


def _secret_from_row(row: Row) -> ClientSecret:
    fields = row._asdict()
    del fields["client_id"]
    fields["kind"] = SecretKind(row.kind)
    return ClientSecret(**fields)
