"""Keeps clients (oauth/store.py)."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import Record
from gatehouse.kernel.weighted_cache import WeightedCache
from gatehouse.oauth.errors import ClientChanged, ClientExists, ClientNotFound
from gatehouse.oauth.model import ClaimSource, Client, ClientSecret, Profile, SecretKind, TokenSettings
from gatehouse.storage.audit import is_recorded, record
from gatehouse.storage.live_applications import is_of_live
from gatehouse.storage.runner import Runner, Stored, act, look, survey
from gatehouse.storage.statements import Document, Row, Statement, Verb
from gatehouse.storage.tables.oauth import client_secrets, clients

LISTS: Final = ("redirect_hosts", "redirect_uris", "post_logout_uris", "scopes", "origins")
KNOWN_BYTES: Final = 16 * 2**20  # of clients in memory
KNOWN: Final = "known"
FIXED: Final = frozenset({"client_id", "created_at", "version"})  # what a save never changes
CHANGEABLE: Final = tuple(column.name for column in clients.c if column.name not in FIXED)

INSERT_CLIENT = Statement(insert(clients).on_conflict_do_nothing().returning(clients.c.client_id))
UPDATE_CLIENT = Statement(
    update(clients)
    .where(clients.c.client_id == bindparam("of"), clients.c.version == bindparam("seen"))
    .values({name: bindparam(name) for name in CHANGEABLE} | {"version": clients.c.version + 1})
    .returning(clients.c.client_id)
)
LIVE = clients.c.removed.is_(False)
# A client of a removed application is there to be managed, and refused wherever it comes itself (R5, PR-11).
SERVES = or_(clients.c.application_id.is_(None), is_of_live(clients.c.application_id))
_VERSION = select(clients.c.version).where(clients.c.client_id == bindparam("client_id"), LIVE)
VERSION = Statement(_VERSION)
SERVING_VERSION = Statement(_VERSION.where(SERVES))
CLIENT = Statement(select(clients).where(clients.c.client_id == bindparam("client_id")))
# Holds the row until the commit, and tells whoever read the client before that its secrets are others now.
TOUCH_CLIENT = Statement(
    update(clients)
    .where(clients.c.client_id == bindparam("of"), LIVE)
    .values(version=clients.c.version + 1)
    .returning(clients.c.client_id)
)
REMOVE_CLIENT = Statement(
    update(clients)
    .where(clients.c.client_id == bindparam("of"), LIVE)
    .values(removed=True, version=clients.c.version + 1)
    .returning(clients.c.version)
)
ALL_CLIENTS = Statement(select(clients).where(LIVE).order_by(clients.c.client_id))
_OF_APPLICATION = (LIVE, clients.c.application_id == bindparam("application_id"))
CLIENTS_OF = Statement(select(clients).where(*_OF_APPLICATION).order_by(clients.c.client_id))
ORIGINS = Statement(
    select(clients.c.origins).where(LIVE, clients.c.origins != bindparam("none", [], type_=Document()))
)
REMOVED_IDS = Statement(select(clients.c.client_id).where(clients.c.removed.is_(True)))
INSERT_SECRET = Statement(insert(client_secrets))
_BY_AGE = (client_secrets.c.created_at, client_secrets.c.slot)
SECRETS = Statement(
    select(client_secrets).where(client_secrets.c.client_id == bindparam("client_id")).order_by(*_BY_AGE)
)
ALL_SECRETS = Statement(select(client_secrets).order_by(*_BY_AGE))
SECRETS_OF = Statement(
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
END_SECRET = Statement(
    update(client_secrets)
    .where(client_secrets.c.client_id == bindparam("of"), client_secrets.c.slot == bindparam("of_slot"))
    .values(expires_at=bindparam("expires_at"))
)


def create(client: Client, entry: Record) -> Verb[None]:
    try:
        yield from add_client(client)
    except ClientExists:
        if (yield from is_recorded(entry)):
            return  # by an earlier run
        raise
    yield from record(entry)


def add_client(client: Client) -> Verb[None]:
    fields = asdict(client)
    del fields["secrets"]
    if not (yield INSERT_CLIENT(**fields)):
        raise ClientExists
    yield from _put_secrets(client)


def change(client: Client, entry: Record) -> Verb[None]:
    yield from change_client(client)
    yield from record(entry)


def change_client(client: Client) -> Verb[None]:
    """Replace the client, and its secrets, if its version is still the one that was read. Raises ClientChanged."""
    fields = asdict(client)
    if not (
        yield UPDATE_CLIENT(**{name: fields[name] for name in CHANGEABLE}, of=client.client_id, seen=client.version)
    ):
        raise ClientChanged
    yield DROP_SECRETS(of=client.client_id)
    yield from _put_secrets(client)


def _put_secrets(client: Client) -> Verb[None]:
    yield INSERT_SECRET.many([_secret_columns(client.client_id, secret) for secret in client.secrets])


def client_of(client_id: str) -> Verb[Client]:
    """Whole, a removed one too. Raises ClientNotFound."""
    rows = yield CLIENT(client_id=client_id)
    if not rows:
        raise ClientNotFound
    secrets = yield SECRETS(client_id=client_id)
    return whole_client(rows[0]._asdict(), map(_secret, secrets))


def all_clients() -> Verb[Sequence[Client]]:
    rows = yield ALL_CLIENTS()
    return with_secrets(rows, (yield ALL_SECRETS()))


def clients_of(application_id: int) -> Verb[Sequence[Client]]:
    rows = yield CLIENTS_OF(application_id=application_id)
    return with_secrets(rows, (yield SECRETS_OF(application_id=application_id)))


def with_secrets(rows: Sequence[Row], secrets: Sequence[Row]) -> Sequence[Client]:
    held: dict[str, list[ClientSecret]] = {}
    for row in secrets:
        held.setdefault(row.client_id, []).append(_secret(row))
    return [whole_client(row._asdict(), held.get(row.client_id, ())) for row in rows]


def origins() -> Verb[frozenset[str]]:
    rows = yield ORIGINS()
    return frozenset(origin for row in rows for origin in row.origins)


def removed_ids() -> Verb[frozenset[str]]:
    """The ids of removed clients: spent, so that nothing issued to one ever fits another."""
    rows = yield REMOVED_IDS()
    return frozenset(row.client_id for row in rows)


def rotate_secret(client_id: str, secret: ClientSecret, entry: Record, *, old_ends_at: int) -> Verb[None]:
    if not (yield TOUCH_CLIENT(of=client_id)):
        raise ClientNotFound
    if (yield from is_recorded(entry)):
        return  # by an earlier run, and a second one would take the secret away that the client has
    held = yield SECRETS(client_id=client_id)
    held.sort(key=lambda secret: not secret.expires_at)  # the newest has no end, also within one second
    for old in held[:-1]:
        yield DROP_SECRET(of=client_id, of_slot=old.slot)
    newest = held[-1].slot if held else 0
    yield END_SECRET(of=client_id, of_slot=newest, expires_at=old_ends_at)
    yield INSERT_SECRET(**_secret_columns(client_id, replace(secret, slot=2 if newest == 1 else 1)))
    yield from record(entry)


def remove(client_id: str, entry: Record, *, seen: int | None = None) -> Verb[None]:
    rows = yield REMOVE_CLIENT(of=client_id)
    if not rows:
        raise ClientNotFound
    if seen is not None and rows[0].version != seen + 1:
        raise ClientChanged
    yield DROP_SECRETS(of=client_id)
    yield from record(entry)


class KnownClients:
    """Clients in memory under their versions: a statement that brings the version along need not bring the rest.

    Every use has read the version just now, and a client is read anew when that is another; so nothing is decided
    from memory alone. Only committed states are kept: these verbs are for reads, never for a transaction.
    """

    def __init__(self, runner: Runner) -> None:
        self._known: WeightedCache[Client] = WeightedCache(KNOWN_BYTES)
        # After a failover that lost a change, one version may stand for two states.
        runner.listen("clients", lambda _: self._known.clear())

    def client(self, client_id: str, version: Statement = VERSION) -> Verb[Client]:
        """Raises ClientNotFound, for removed ones too."""
        rows = yield version(client_id=client_id)
        if not rows:
            raise ClientNotFound
        return (yield from self.at(client_id, rows[0].version))

    def at(self, client_id: str, version: int) -> Verb[Client]:
        """The client, removed or not, whose version was read just now."""
        known = self._known.get(KNOWN, client_id)
        if known is None or known.version != version:
            known = yield from client_of(client_id)
            self._known.put(KNOWN, client_id, known, known.weight)
        return known


class OAuthStorage(Stored):
    def __init__(self, runner: Runner, known: KnownClients) -> None:
        super().__init__(runner)
        self._known = known

    async def client(self, client_id: str) -> Client:
        return await self.runner.recall((KnownClients, client_id), lambda: self._known.client(client_id))

    async def serving_client(self, client_id: str) -> Client:
        return await self.runner.recall(
            (SERVING_VERSION, client_id), lambda: self._known.client(client_id, SERVING_VERSION)
        )

    create = act(create, repeatable=True)
    change = act(change)
    clients = survey(all_clients)
    clients_of = survey(clients_of)
    origins = look(origins)
    rotate_secret = act(rotate_secret, repeatable=True)
    remove = act(remove)


def _secret_columns(client_id: str, secret: ClientSecret) -> dict[str, object]:
    return {"client_id": client_id, **asdict(secret)}


def whole_client(fields: dict[str, Any], secrets: Iterable[ClientSecret] = ()) -> Client:
    """The client whose columns these are."""
    read: dict[str, Any] = {name: tuple(fields[name]) for name in LISTS}
    read["profile"] = Profile(fields["profile"])
    read["claims"] = msgspec.convert(fields["claims"], dict[str, ClaimSource])
    read["token_settings"] = msgspec.convert(fields["token_settings"], TokenSettings)
    return Client(**{**fields, **read}, secrets=tuple(secrets))


def _secret(row: Row) -> ClientSecret:
    fields = row._asdict()
    del fields["client_id"]
    fields["kind"] = SecretKind(row.kind)
    return ClientSecret(**fields)
