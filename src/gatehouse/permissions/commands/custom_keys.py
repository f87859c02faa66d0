"""Custom keys of an application: listed, added, removed (R6)."""

from collections.abc import Sequence

from gatehouse.audit.events import Event
from gatehouse.audit.model import Record
from gatehouse.audit.recorder import Recorder
from gatehouse.kernel.clock import Clock
from gatehouse.permissions.commands.applications import about
from gatehouse.permissions.errors import ApplicationNotFound
from gatehouse.permissions.keys.published import new_key
from gatehouse.permissions.model.application import Application
from gatehouse.permissions.model.application_key import ApplicationKey, KeySource
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require
from gatehouse.permissions.store import ApplicationKeyStore, ApplicationStore


class CustomKeys:
    def __init__(
        self, *, store: ApplicationKeyStore, applications: ApplicationStore, recorder: Recorder, clock: Clock
    ) -> None:
        self._store = store
        self._applications = applications
        self._recorder = recorder
        self._clock = clock

    async def list(self, actor: Actor, application_id: int) -> Sequence[ApplicationKey]:
        await may_manage(self._applications, actor, Operation.APPLICATION_KEYS, application_id)
        keys = await self._store.application_keys(application_id)
        return [key for key in keys if key.source is KeySource.CUSTOM]

    async def add(self, actor: Actor, application_id: int, text: object) -> ApplicationKey:
        """Raises LimitReached beyond ten, Malformed for what is no sound public key."""
        await may_manage(self._applications, actor, Operation.APPLICATION_KEYS, application_id)
        key = new_key(
            text,
            application_id=application_id,
            source=KeySource.CUSTOM,
            now=self._clock.now(),
            place="data.public_key",
        )
        record = self._record(Event.APPLICATION_KEY_ADDED, actor, application_id, key.kid)
        await self._store.add_application_key(key, (record,))
        return key

    async def remove(self, actor: Actor, application_id: int, kid: str) -> None:
        """Raises KeyNotFound, also for a key of another application and for service_meta.public_key."""
        await may_manage(self._applications, actor, Operation.APPLICATION_KEYS, application_id)
        record = self._record(Event.APPLICATION_KEY_REMOVED, actor, application_id, kid)
        await self._store.delete_application_key(application_id, kid, (record,))

    def _record(self, event: Event, actor: Actor, application_id: int, kid: str) -> Record:
        return self._recorder.record(
            event, actor.origin, subject=f"application {application_id}", details={"kid": kid}
        )


async def may_manage(
    applications: ApplicationStore, actor: Actor, operation: Operation, application_id: int
) -> Application:
    """Raises NoRight before it tells whether there is such an application (checklist PA-13)."""
    try:
        application: Application | None = await applications.application(application_id)
    except ApplicationNotFound:
        application = None
    require(actor.rights, operation, about(application_id, application))
    if application is None or application.removed:
        raise ApplicationNotFound
    return application
