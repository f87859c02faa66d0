"""Credentials of an application: custom keys, access keys, service JWTs and e-mail secrets (R1, R2, R6)."""

import secrets
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin, AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_key_id
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.authentication.application_keys import new_application_key
from gatehouse.permissions.authentication.jwts import IssuedServiceToken, ServiceTokens
from gatehouse.permissions.commands.applications import find_application
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.errors import ApplicationNotFound, KeyNotFound
from gatehouse.permissions.model.application import (
    AccessKey,
    Application,
    ApplicationKey,
    EmailSecret,
    KeySource,
    ServiceToken,
    access_key_purpose,
)
from gatehouse.permissions.rights.guard import Operation
from gatehouse.permissions.rights.rights import Actor
from gatehouse.permissions.store import ApplicationKeyStore, ApplicationStore, PermissionStore


class CustomKeyCommands(Struct, kw_only=True, eq=False):
    store: ApplicationKeyStore
    applications: ApplicationStore
    recorder: Recorder
    clock: Clock

    async def list(self, actor: Actor, application_id: int) -> Sequence[ApplicationKey]:
        await find_managed_application(self.applications, actor, Operation.APPLICATION_KEYS, application_id)
        keys = await self.store.application_keys(application_id)
        return [key for key in keys if key.source is KeySource.CUSTOM]

    async def add(self, actor: Actor, application_id: int, text: object) -> ApplicationKey:
        """Add a custom key. Raises LimitReached beyond ten, Malformed for an invalid public key."""
        await find_managed_application(self.applications, actor, Operation.APPLICATION_KEYS, application_id)
        key = new_application_key(
            text,
            application_id=application_id,
            source=KeySource.CUSTOM,
            now=self.clock.now(),
            place="data.public_key",
        )
        record = self._record(AuditEvent.APPLICATION_KEY_ADDED, actor, application_id, key.kid)
        await self.store.add_application_key(key, (record,))
        return key

    async def remove(self, actor: Actor, application_id: int, kid: str) -> None:
        """Remove a custom key.

        Raises KeyNotFound, also for one of another application and for service_meta.public_key.
        """
        await find_managed_application(self.applications, actor, Operation.APPLICATION_KEYS, application_id)
        record = self._record(AuditEvent.APPLICATION_KEY_REMOVED, actor, application_id, kid)
        await self.store.delete_application_key(application_id, kid, (record,))

    def _record(self, event: AuditEvent, actor: Actor, application_id: int, kid: str) -> AuditRecord:
        return self.recorder.record(
            event, actor.origin, subject=f"application {application_id}", details={"kid": kid}
        )


async def find_managed_application(
    applications: ApplicationStore, actor: Actor, operation: Operation, application_id: int
) -> Application:
    """The same as find_application, but a removed one is not found either."""
    application = await find_application(applications, actor, operation, application_id)
    if application.removed:
        raise ApplicationNotFound
    return application


# Access keys (interface §4.8, R6).


VALUE_BYTES: Final = 32  # 64 hex characters (R6)


class NewAccessKey(SecretRecord, frozen=True, kw_only=True):
    key: AccessKey
    value: SecretText  # never shown again


def new_access_key(application_id: int, comment: str, *, masters: MasterKeys, now: int) -> NewAccessKey:
    return stored_access_key(secrets.token_hex(VALUE_BYTES), application_id, comment, masters=masters, now=now)


def stored_access_key(
    value: str, application_id: int, comment: str, *, masters: MasterKeys, now: int
) -> NewAccessKey:
    """A value in its stored form: a digest for lookups, and sealed for Signature."""
    key_id = new_key_id()
    key = AccessKey(
        key_id=key_id,
        application_id=application_id,
        digest=sha256(value),
        sealed=masters.seal(value.encode(), purpose=access_key_purpose(key_id)),
        comment=comment,
        created_at=now,
        modified_at=now,
    )
    return NewAccessKey(key=key, value=value)


class AccessKeyCommands(Struct, kw_only=True, eq=False):
    store: ApplicationKeyStore
    applications: ApplicationStore
    masters: MasterKeys
    recorder: Recorder
    clock: Clock

    async def list(self, actor: Actor, application_id: int) -> Sequence[AccessKey]:
        await find_managed_application(self.applications, actor, Operation.ACCESS_KEYS, application_id)
        return await self.store.access_keys(application_id)

    async def create(self, actor: Actor, application_id: int, comment: object) -> NewAccessKey:
        """Create an access key. Raises LimitReached when the application has two."""
        await find_managed_application(self.applications, actor, Operation.ACCESS_KEYS, application_id)
        new = new_access_key(
            application_id,
            grammar.check_comment(comment, place="data.comment"),
            masters=self.masters,
            now=self.clock.now(),
        )
        record = self.recorder.record(
            AuditEvent.ACCESS_KEY_MADE,
            actor.origin,
            subject=f"application {application_id}",
            details={"key_id": new.key.key_id, "comment": new.key.comment},
        )
        await self.store.add_access_key(new.key, (record,))
        return new

    async def delete(self, actor: Actor, application_id: int, key_id: str) -> None:
        """Delete an access key. Raises AccessKeyNotFound, also for one of another application (AK-05)."""
        await find_managed_application(self.applications, actor, Operation.ACCESS_KEYS, application_id)
        record = self.recorder.record(
            AuditEvent.ACCESS_KEY_REMOVED,
            actor.origin,
            subject=f"application {application_id}",
            details={"key_id": key_id},
        )
        await self.store.delete_access_key(application_id, key_id, (record,))


# Static service JWTs and `with_email` secrets: both need can_administer.


SECRET_BYTES: Final = 32


class ServiceTokenCommands(Struct, kw_only=True, eq=False):
    tokens: ServiceTokens
    applications: ApplicationStore

    async def list(self, actor: Actor, application_id: int) -> Sequence[ServiceToken]:
        await find_managed_application(self.applications, actor, Operation.ADMINISTER, application_id)
        return await self.tokens.list(application_id)

    async def issue(self, actor: Actor, application_id: int, *, days: int | None, comment: str) -> IssuedServiceToken:
        await find_managed_application(self.applications, actor, Operation.ADMINISTER, application_id)
        return await self.tokens.issue(application_id, days=days, comment=comment, origin=actor.origin)

    async def revoke(self, actor: Actor, application_id: int, jti: str) -> None:
        await find_managed_application(self.applications, actor, Operation.ADMINISTER, application_id)
        await self.tokens.revoke(application_id, jti, actor.origin)


class EmailSecretCommands(Struct, kw_only=True, eq=False):
    """Commands for `with_email` secrets: a login request with one returns the user's email address (R1)."""

    store: PermissionStore
    applications: ApplicationStore
    recorder: Recorder
    clock: Clock

    async def create(self, actor: Actor, application_id: int) -> str:
        """Create a secret, which is never shown again; earlier ones stay valid."""
        await find_managed_application(self.applications, actor, Operation.ADMINISTER, application_id)
        return await self.create_as_operator(application_id, actor.origin)

    async def list(self, actor: Actor, application_id: int) -> Sequence[EmailSecret]:
        await find_managed_application(self.applications, actor, Operation.ADMINISTER, application_id)
        return await self.store.email_secrets(application_id)

    async def revoke(self, actor: Actor, application_id: int, ref: str) -> None:
        """Revoke a secret. Raises KeyNotFound."""
        found = [one for one in await self.list(actor, application_id) if one.ref == ref]
        details = {"secret": ref}
        entry = self.recorder.record(
            AuditEvent.EMAIL_SECRET_REVOKED, actor.origin, subject=f"application {application_id}", details=details
        )
        if not found or not await self.store.remove_email_secret(application_id, found[0].digest, entry):
            raise KeyNotFound

    async def create_as_operator(self, application_id: int, origin: AuditOrigin) -> str:
        """The same for the operator, without a check of rights."""
        secret = secrets.token_urlsafe(SECRET_BYTES)
        entry = self.recorder.record(AuditEvent.EMAIL_SECRET_MADE, origin, subject=f"application {application_id}")
        await self.store.add_email_secret(application_id, sha256(secret), self.clock.now(), entry)
        return secret
