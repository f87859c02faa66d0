"""The random key of the installation, sealed under the master key, so that re-wrapping never changes it.

A mark behind the key says that a head of the audit log was made. Without it the absence of a head would prove
nothing: an installation whose head and log were deleted would look like one from before there were heads.
"""

import base64
import secrets
from typing import Final

from gatehouse.audit.head import Head, HeadBox
from gatehouse.audit.model import GENESIS
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Misconfigured
from gatehouse.keys.errors import Tampered, WrongMasterKey
from gatehouse.keys.sealing import KEY_BYTES, MasterKeys, key_id_of
from gatehouse.storage.opening import Storage

INSTANCE_KEY: Final = "instance_key"  # what the master key opens first, and audit codes are made with
HAS_HEAD: Final = b"\x01"


class InstanceKeyMissing(Misconfigured):
    """The database was served from, and its own key was deleted since."""


def open_instance_key(masters: MasterKeys, kept: str) -> bytes:
    """Return the key without its mark; raise WrongMasterKey or Tampered."""
    return opened(masters, kept)[:KEY_BYTES]


def has_head(masters: MasterKeys, kept: str) -> bool:
    return opened(masters, kept).endswith(HAS_HEAD, KEY_BYTES)


def opened(masters: MasterKeys, kept: str) -> bytes:
    plain = masters.open(base64.b64decode(kept), purpose=INSTANCE_KEY)
    if plain[KEY_BYTES:] not in (b"", HAS_HEAD):
        raise Tampered(f"{INSTANCE_KEY}: unknown format")
    return plain


async def refuse_wrong_master_key(storage: Storage, masters: MasterKeys) -> None:
    kept = await storage.installation.fact(INSTANCE_KEY)
    if kept is None:
        return
    try:
        opened(masters, kept)
    except WrongMasterKey as error:
        held = key_id_of(base64.b64decode(kept))
        raise WrongMasterKey(
            f"the database is encrypted with master key {held}, but security.master_key is "
            f"{masters.primary_id}: configure the right key there or in security.previous_master_keys"
        ) from error


async def instance_key(storage: Storage, masters: MasterKeys, clock: Clock) -> bytes:
    """Return the key; the first who comes makes it, and the head of the audit log with it."""
    kept = await storage.installation.fact(INSTANCE_KEY)
    if kept is None:
        await refuse_missing_key(storage)
        await make_head(storage, masters, clock, None, secrets.token_bytes(KEY_BYTES))
    elif not has_head(masters, kept):
        await make_head(storage, masters, clock, kept, open_instance_key(masters, kept))
    return open_instance_key(masters, await storage.installation.fact(INSTANCE_KEY) or "")


async def refuse_missing_key(storage: Storage) -> None:
    """Signing keys are made after the instance key: where there are some, it was deleted.

    A new one would make the audit log begin anew, as if nothing had happened before.
    """
    if (await storage.keys.load()).keys and await storage.installation.fact(INSTANCE_KEY) is None:
        raise InstanceKeyMissing(f"{INSTANCE_KEY} is missing from the database: restore a backup")


async def make_head(storage: Storage, masters: MasterKeys, clock: Clock, kept: str | None, key: bytes) -> None:
    """Mark the key, and make the head from the newest seal there is; of two who try at once one succeeds."""
    end = await storage.audit.chain_end()
    place, link = (end.seal.place, end.seal.link) if end.seal else (0, GENESIS)
    head = Head(place=place, link=link, at=clock.now(), begins=end.first_place or place + 1, unlinked=place)
    sealed = base64.b64encode(masters.seal(key + HAS_HEAD, purpose=INSTANCE_KEY)).decode()
    await storage.audit.make_head((INSTANCE_KEY, kept, sealed), HeadBox(masters).close(head))
