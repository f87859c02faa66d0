"""Custom keys of an application: listed, added, removed (R6)."""

from collections.abc import Sequence

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.model import AuditRecord
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.applications import application_target
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.keys.published import new_application_key
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.application_key import ApplicationKey, KeySource
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation
from gatehouse.permissions.store import ApplicationKeyStore, ApplicationStore


class CustomKeyCommands:
    def __init__(
        self, *, store: ApplicationKeyStore, applications: ApplicationStore, recorder: Recorder, clock: Clock
    ) -> None:
        self._store = store
        self._applications = applications
        self._recorder = recorder
        self._clock = clock

    async def list(self, actor: Actor, application_id: int) -> Sequence[ApplicationKey]:
        await find_managed_application(self._applications, actor, Operation.APPLICATION_KEYS, application_id)
        keys = await self._store.application_keys(application_id)
        return [key for key in keys if key.source is KeySource.CUSTOM]

    async def add(self, actor: Actor, application_id: int, text: object) -> ApplicationKey:
        """Raises LimitReached beyond ten, Malformed for what is no sound public key."""
        await find_managed_application(self._applications, actor, Operation.APPLICATION_KEYS, application_id)
        key = new_application_key(
            text,
            application_id=application_id,
            source=KeySource.CUSTOM,
            now=self._clock.now(),
            place="data.public_key",
        )
        record = self._record(AuditEvent.APPLICATION_KEY_ADDED, actor, application_id, key.kid)
        await self._store.add_application_key(key, (record,))
        return key

    async def remove(self, actor: Actor, application_id: int, kid: str) -> None:
        """Raises KeyNotFound, also for a key of another application and for service_meta.public_key."""
        await find_managed_application(self._applications, actor, Operation.APPLICATION_KEYS, application_id)
        record = self._record(AuditEvent.APPLICATION_KEY_REMOVED, actor, application_id, kid)
        await self._store.delete_application_key(application_id, kid, (record,))

    def _record(self, event: AuditEvent, actor: Actor, application_id: int, kid: str) -> AuditRecord:
        return self._recorder.record(
            event, actor.origin, subject=f"application {application_id}", details={"kid": kid}
        )


async def find_managed_application(
    applications: ApplicationStore, actor: Actor, operation: Operation, application_id: int
) -> Application:
    """Raises NoRight before it tells whether there is such an application (checklist PA-13)."""
    try:
        application: Application | None = await applications.application(application_id)
    except ApplicationNotFound:
        application = None
    require_operation(actor.rights, operation, application_target(application_id, application))
    if application is None or application.removed:
        raise ApplicationNotFound
    return application
