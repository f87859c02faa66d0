"""Create, change and remove clients, and rotate their secrets."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import fields, replace

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.images.model import StoredImage
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_secret
from gatehouse.keys.sealing import MasterKeys
from gatehouse.oauth.clients import check_client, check_new_client
from gatehouse.oauth.errors import BadClient
from gatehouse.oauth.model import Client, ClientProfile, ClientSecret, SecretKind
from gatehouse.oauth.store import ClientStore, GrantStore
from gatehouse.oauth.workloads.checks import refuse_own_issuer

OLD_SECRET_LIFETIME: Final = 7 * 86_400  # seconds the former secret is still accepted after a rotation


class Clients(Struct, kw_only=True, eq=False):
    store: ClientStore
    grants: GrantStore
    master_keys: MasterKeys
    recorder: Recorder
    clock: Clock
    issuer: str  # of this service

    async def create(self, client: Client, origin: AuditOrigin, logo: StoredImage | None = None) -> str | None:
        """Store a new client; returns its secret, which is never shown again, or None if it has none."""
        check_new_client(client)
        refuse_own_issuer(client, self.issuer)
        secret = None if client.public or client.workload_identities else new_secret()
        secrets = () if secret is None else (self.stored_secret(client, secret),)
        record = self.recorder.record(
            AuditEvent.CLIENT_CREATED, origin, subject=client.client_id, details={"profile": client.profile.value}
        )
        new = replace(client, secrets=secrets, rev=first_rev(client.created_at))
        await self.store.create_client(new, record, logo)
        return secret

    async def change(self, client: Client, origin: AuditOrigin, logo: StoredImage | None = None) -> None:
        """Store the changed client and its new logo. Raises ClientChanged when it was changed since it was read.

        Workload identities end its secrets: it has one or the other (R11). So does their end, if another node stored
        a secret meanwhile.
        """
        before = await self.store.client(client.client_id)
        check_client(client)
        refuse_own_issuer(client, self.issuer)
        if client.workload_identities or before.workload_identities:
            client = replace(client, secrets=())
        for field in ("profile", "public"):
            if getattr(client, field) != getattr(before, field):
                raise BadClient(
                    "profile and public cannot be changed because the secret is stored in another form", field=field
                )
        record = self.recorder.record(
            AuditEvent.CLIENT_CHANGED,
            origin,
            subject=client.client_id,
            details={"fields": ", ".join(changed_fields(before, client))},
        )
        await self.store.change_client(client, record, logo)

    async def rotate_secret(self, client_id: str, origin: AuditOrigin) -> str:
        """Give the client a new secret; the old one stays valid for a while, so that sign-ins keep working."""
        client = await self.store.client(client_id)
        if client.public or client.has_document or client.workload_identities:
            raise BadClient("this client has no secret", field="client_id")
        secret = new_secret()
        record = self.recorder.record(AuditEvent.CLIENT_SECRET_ROTATED, origin, subject=client_id)
        await self.store.rotate_secret(
            client_id,
            self.stored_secret(client, secret),
            record,
            old_ends_at=self.clock.now() + OLD_SECRET_LIFETIME,
        )
        return secret

    async def get(self, client_id: str) -> Client:
        return await self.store.client(client_id)

    async def remove(self, client_id: str, origin: AuditOrigin, *, seen: int | None = None) -> None:
        """Remove the client: its grants end, and its ID is never reused."""
        record = self.recorder.record(AuditEvent.CLIENT_REMOVED, origin, subject=client_id)
        await self.store.remove_client(client_id, record, seen=seen)

    async def revoke_tokens(self, client_id: str, origin: AuditOrigin) -> int:
        """End all grants of the client and the tokens it got for itself; returns how many grants there were.

        Raises ClientNotFound.
        """
        await self.store.client(client_id)
        entry = self.recorder.record(AuditEvent.CLIENT_TOKENS_REVOKED, origin, subject=client_id)
        return await self.grants.revoke_client_tokens(client_id, self.clock.now(), entry)

    async def list(self, application_id: int | None = None) -> Sequence[Client]:
        """Return all clients, or those of one application."""
        return await (
            self.store.clients() if application_id is None else self.store.clients_of_application(application_id)
        )

    def stored_secret(self, client: Client, secret: str) -> ClientSecret:
        return new_stored_secret(client, secret, masters=self.master_keys, now=self.clock.now())


def first_rev(created_at: int) -> int:
    """Return the revocation epoch of a new client.

    It is a time, so that nothing issued to a client of this ID before a restore is valid for the next one.
    """
    return created_at * 1_000


def changed_fields(before: Client, after: Client) -> list[str]:
    names = (field.name for field in fields(Client) if field.name not in {"secrets", "version", "rev"})
    return [name for name in names if getattr(before, name) != getattr(after, name)]


def new_stored_secret(client: Client, secret: str, *, masters: MasterKeys, now: int) -> ClientSecret:
    """Return the stored form of a secret: sealed if the proof needs it, otherwise a digest (R3)."""
    if client.profile is ClientProfile.NATIVE:
        kind = SecretKind.SEALED
        stored = masters.seal(secret.encode(), purpose=client_secret_purpose(client.client_id))
    else:
        kind, stored = SecretKind.SHA256, sha256(secret)
    return ClientSecret(kind=kind, secret=stored, created_at=now)


def client_secret_purpose(client_id: str) -> str:
    return f"client-secret:{client_id}"
