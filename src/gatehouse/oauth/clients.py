"""Clients: made, shown, changed, removed, and their secrets rotated."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Final

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_secret
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.client_rules import check_client
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import Client, ClientProfile, ClientSecret, SecretKind
from gatehouse.oauth.store import ClientStore, GrantStore

OLD_SECRET_LIFETIME: Final = 7 * 86_400  # seconds the former secret is still accepted after a rotation


class Clients:
    def __init__(
        self,
        *,
        store: ClientStore,
        grants: GrantStore,
        master_keys: MasterKeys,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._store = store
        self._grants = grants
        self._master_keys = master_keys
        self._recorder = recorder
        self._clock = clock

    async def create(self, client: Client, origin: AuditOrigin) -> str | None:
        """Keep a new client; returns its secret, which is never shown again, or None for a public client."""
        check_client(client)
        secret = None if client.public else new_secret()
        kept = () if secret is None else (self.stored_secret(client, secret),)
        record = self._recorder.record(
            AuditEvent.CLIENT_CREATED, origin, subject=client.client_id, details={"profile": client.profile.value}
        )
        await self._store.create_client(replace(client, secrets=kept), record)
        return secret

    async def change(self, client: Client, origin: AuditOrigin) -> None:
        """Keep the client as it is given, unless somebody changed it since it was read. Raises ClientChanged."""
        before = await self._store.client(client.client_id)
        check_client(client)
        for field in ("profile", "public"):
            if getattr(client, field) != getattr(before, field):
                raise BadClient(
                    "profile and public cannot be changed because the secret is stored in another form", field=field
                )
        record = self._recorder.record(
            AuditEvent.CLIENT_CHANGED,
            origin,
            subject=client.client_id,
            details={"fields": ", ".join(changed_fields(before, client))},
        )
        await self._store.change_client(client, record)

    async def rotate_secret(self, client_id: str, origin: AuditOrigin) -> str:
        """Give the client a new secret; the old one stays good for a while, so that nobody is cut off."""
        client = await self._store.client(client_id)
        if client.public:
            raise BadClient("a public client has no secret", field="client_id")
        secret = new_secret()
        record = self._recorder.record(AuditEvent.CLIENT_SECRET_ROTATED, origin, subject=client_id)
        await self._store.rotate_secret(
            client_id,
            self.stored_secret(client, secret),
            record,
            old_ends_at=self._clock.now() + OLD_SECRET_LIFETIME,
        )
        return secret

    async def get(self, client_id: str) -> Client:
        return await self._store.client(client_id)

    async def remove(self, client_id: str, origin: AuditOrigin, *, seen: int | None = None) -> None:
        """Take the client away; whatever it was granted is dead, and its id is spent."""
        record = self._recorder.record(AuditEvent.CLIENT_REMOVED, origin, subject=client_id)
        await self._store.remove_client(client_id, record, seen=seen)

    async def revoke_tokens(self, client_id: str, origin: AuditOrigin) -> int:
        """End whatever it was granted; how many grants there were. Raises ClientNotFound."""
        await self._store.client(client_id)
        entry = self._recorder.record(AuditEvent.CLIENT_TOKENS_REVOKED, origin, subject=client_id)
        return await self._grants.revoke_client_grants(client_id, self._clock.now(), entry)

    async def list(self, application_id: int | None = None) -> Sequence[Client]:
        """All of them, or those of one application."""
        return await (
            self._store.clients() if application_id is None else self._store.clients_of_application(application_id)
        )

    def stored_secret(self, client: Client, secret: str) -> ClientSecret:
        return new_stored_secret(client, secret, masters=self._master_keys, now=self._clock.now())


def changed_fields(before: Client, after: Client) -> list[str]:
    names = (field.name for field in fields(Client) if field.name not in {"secrets", "version"})
    return [name for name in names if getattr(before, name) != getattr(after, name)]


def new_stored_secret(client: Client, secret: str, *, masters: MasterKeys, now: int) -> ClientSecret:
    """The form in which a secret is stored: sealed where the proof needs it, else a digest (R3)."""
    if client.profile is ClientProfile.NATIVE:
        kind = SecretKind.SEALED
        kept = masters.seal(secret.encode(), purpose=client_secret_purpose(client.client_id))
    else:
        kind, kept = SecretKind.SHA256, sha256(secret)
    return ClientSecret(kind=kind, secret=kept, created_at=now)


def client_secret_purpose(client_id: str) -> str:
    return f"client-secret:{client_id}"
