"""Static service JWTs and `with_email` secrets, by the hand of a person: both take can_administer."""

import secrets
from collections.abc import Sequence
from typing import Final

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditOrigin
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.permissions.callers.service_jwts import IssuedServiceToken, ServiceTokens
from gatehouse.permissions.commands.custom_keys import find_managed_application
from gatehouse.permissions.errors import KeyNotFound
from gatehouse.permissions.model.service_token import EmailSecret, ServiceToken
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation
from gatehouse.permissions.store import ApplicationStore, PermissionStore

SECRET_BYTES: Final = 32


class ServiceTokenCommands:
    def __init__(self, *, tokens: ServiceTokens, applications: ApplicationStore) -> None:
        self._tokens = tokens
        self._applications = applications

    async def list(self, actor: Actor, application_id: int) -> Sequence[ServiceToken]:
        await find_managed_application(self._applications, actor, Operation.ADMINISTER, application_id)
        return await self._tokens.list(application_id)

    async def issue(self, actor: Actor, application_id: int, *, days: int | None, comment: str) -> IssuedServiceToken:
        await find_managed_application(self._applications, actor, Operation.ADMINISTER, application_id)
        return await self._tokens.issue(application_id, days=days, comment=comment, origin=actor.origin)

    async def revoke(self, actor: Actor, application_id: int, jti: str) -> None:
        await find_managed_application(self._applications, actor, Operation.ADMINISTER, application_id)
        await self._tokens.revoke(application_id, jti, actor.origin)


class EmailSecretCommands:
    """Who sends one with a login of the application gets the user's e-mail address in the answer (R1)."""

    def __init__(
        self, *, store: PermissionStore, applications: ApplicationStore, recorder: Recorder, clock: Clock
    ) -> None:
        self._store = store
        self._applications = applications
        self._recorder = recorder
        self._clock = clock

    async def create(self, actor: Actor, application_id: int) -> str:
        """The secret, which is never shown again; those made before stay good."""
        await find_managed_application(self._applications, actor, Operation.ADMINISTER, application_id)
        return await self.create_as_operator(application_id, actor.origin)

    async def list(self, actor: Actor, application_id: int) -> Sequence[EmailSecret]:
        await find_managed_application(self._applications, actor, Operation.ADMINISTER, application_id)
        return await self._store.email_secrets(application_id)

    async def revoke(self, actor: Actor, application_id: int, ref: str) -> None:
        """Raises KeyNotFound."""
        found = [one for one in await self.list(actor, application_id) if one.ref == ref]
        details = {"secret": ref}
        entry = self._recorder.record(
            AuditEvent.EMAIL_SECRET_REVOKED, actor.origin, subject=f"application {application_id}", details=details
        )
        if not found or not await self._store.remove_email_secret(application_id, found[0].digest, entry):
            raise KeyNotFound

    async def create_as_operator(self, application_id: int, origin: AuditOrigin) -> str:
        """The same by the hand of whoever runs the service."""
        secret = secrets.token_urlsafe(SECRET_BYTES)
        entry = self._recorder.record(AuditEvent.EMAIL_SECRET_MADE, origin, subject=f"application {application_id}")
        await self._store.add_email_secret(application_id, sha256(secret), self._clock.now(), entry)
        return secret
