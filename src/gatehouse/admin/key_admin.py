"""Signing keys for administrators: status, and rotation ahead of schedule."""

from gatehouse.admin.keys import KeyTimeline, key_timeline
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.model import KeyLine, KeyPurpose, KeyStore
from gatehouse.keys.rotation import KEY_LINES, KeyRotation, RotationMode, RotationPolicy
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require_operation


class KeyAdmin:
    def __init__(
        self, *, store: KeyStore, rotation: KeyRotation, keyring: Keyring, policy: RotationPolicy, clock: Clock
    ) -> None:
        self._store = store
        self._rotation = rotation
        self._keyring = keyring
        self._clock = clock
        self.policy = policy

    async def timeline(self, actor: Actor) -> KeyTimeline:
        require_operation(actor.rights, Operation.ADMINISTER)
        keys = (await self._store.load_keys()).keys
        return key_timeline(keys, KEY_LINES, now=self._clock.now(), every=self.policy.interval)

    async def rotate(self, actor: Actor, line: KeyLine, manner: RotationMode) -> None:
        """Rotate the keys. Raises RotationPending if a planned rotation is in progress.

        A key that sealed the audit log is never revoked, because the log could no longer be verified.
        """
        require_operation(actor.rights, Operation.ADMINISTER)
        if line.purpose is KeyPurpose.AUDIT and manner is RotationMode.DISTRUST:
            raise BadInput("audit log keys cannot be distrusted: its old seals could no longer be verified")
        await self._rotation.rotate(line, origin=actor.origin, mode=manner)
        await self._keyring.reload()
