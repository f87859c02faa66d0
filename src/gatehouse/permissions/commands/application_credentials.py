"""Custom keys of an application (R6)."""

from collections.abc import Sequence

from msgspec import Struct

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.authentication.application_keys import new_application_key
from gatehouse.permissions.commands.applications import find_application
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.model.application import Application, ApplicationKey, KeySource
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation
from gatehouse.permissions.store import ApplicationKeyStore, ApplicationStore


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
