"""Static service JWTs and `with_email` secrets: both need can_administer."""

import secrets
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.permissions.authentication.service_jwts import IssuedServiceToken, ServiceTokens
from gatehouse.permissions.commands.application_credentials import find_managed_application
from gatehouse.permissions.errors import KeyNotFound
from gatehouse.permissions.model.service_token import EmailSecret, ServiceToken
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation
from gatehouse.permissions.store import ApplicationStore, PermissionStore

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
        matches = [secret for secret in await self.list(actor, application_id) if secret.ref == ref]
        details = {"secret": ref}
        entry = self.recorder.record(
            AuditEvent.EMAIL_SECRET_REVOKED, actor.origin, subject=f"application {application_id}", details=details
        )
        if not matches or not await self.store.remove_email_secret(application_id, matches[0].digest, entry):
            raise KeyNotFound

    async def create_as_operator(self, application_id: int, origin: AuditOrigin) -> str:
        """The same for the operator, without a check of rights."""
        secret = secrets.token_urlsafe(SECRET_BYTES)
        entry = self.recorder.record(AuditEvent.EMAIL_SECRET_MADE, origin, subject=f"application {application_id}")
        await self.store.add_email_secret(application_id, sha256(secret), self.clock.now(), entry)
        return secret
