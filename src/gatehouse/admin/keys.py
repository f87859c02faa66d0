"""Signing keys in an administrator's hand: looked at, and rotated before their time."""

from gatehouse.admin.key_strip import Picture, picture
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import BadInput
from gatehouse.keys.keyring import Keyring
from gatehouse.keys.model import KeyLine, Purpose
from gatehouse.keys.rotation import LINES, Manner, Rotation, RotationPolicy
from gatehouse.keys.store import KeyStore
from gatehouse.permissions.rights.actor import Actor
from gatehouse.permissions.rights.guard import Operation, require


class KeyOffice:
    def __init__(
        self, *, store: KeyStore, rotation: Rotation, keyring: Keyring, policy: RotationPolicy, clock: Clock
    ) -> None:
        self._store = store
        self._rotation = rotation
        self._keyring = keyring
        self._clock = clock
        self.policy = policy

    async def picture(self, actor: Actor) -> Picture:
        require(actor.rights, Operation.ADMINISTER)
        keys = (await self._store.load()).keys
        return picture(keys, LINES, now=self._clock.now(), every=self.policy.every)

    async def rotate(self, actor: Actor, line: KeyLine, manner: Manner) -> None:
        """Raises RotationPending when a planned one is under way.

        Nothing is ever said against what sealed the audit log: then nobody could verify it any more.
        """
        require(actor.rights, Operation.ADMINISTER)
        if line.purpose is Purpose.AUDIT and manner is Manner.DISTRUST:
            raise BadInput("audit log keys cannot be distrusted: its old seals could no longer be verified")
        await self._rotation.rotate(line, origin=actor.origin, manner=manner)
        await self._keyring.reload()
