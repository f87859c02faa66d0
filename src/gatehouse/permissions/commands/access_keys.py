"""Access keys (interface §4.8, R6)."""

import secrets
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gatehouse.audit.events import AuditEvent
from gatehouse.audit.recorder import Recorder
from gatehouse.fields.secrets import SecretRecord, SecretText
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.digests import sha256
from gatehouse.kernel.ids import new_key_id
from gatehouse.keys.sealing import MasterKeys
from gatehouse.permissions.commands.application_credentials import find_managed_application
from gatehouse.permissions.documents import grammar
from gatehouse.permissions.model.access_key import AccessKey, access_key_purpose
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation
from gatehouse.permissions.store import ApplicationKeyStore, ApplicationStore

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
