"""The random key of the installation, sealed under the master key, so that re-wrapping never changes it.

A mark after the key records that a head of the audit log was made. Without it the absence of a head would prove
nothing: an installation whose head and log were deleted would look like one from before there were heads.
"""

import base64
import secrets
from typing import Final

from gatehouse.audit.head import ChainHead, HeadCodec
from gatehouse.audit.model import GENESIS
from gatehouse.kernel.clock import Clock
from gatehouse.kernel.errors import Misconfigured
from gatehouse.keys.model import Tampered, WrongMasterKey
from gatehouse.keys.sealing import KEY_BYTES, MasterKeys, sealing_key_id
from gatehouse.storage.database import Storage
from gatehouse.storage.installation import MASTER_KEYS

INSTANCE_KEY: Final = "instance_key"  # what the master key opens first, and audit codes are made with
HEAD_MARK: Final = b"\x01"


class InstanceKeyMissing(Misconfigured):
    """The database has been in use, and its instance key was deleted since."""


def open_instance_key(masters: MasterKeys, sealed: str) -> bytes:
    """Return the key without its mark; raise WrongMasterKey or Tampered."""
    return unseal_instance_key(masters, sealed)[:KEY_BYTES]


def has_head(masters: MasterKeys, sealed: str) -> bool:
    return unseal_instance_key(masters, sealed).endswith(HEAD_MARK, KEY_BYTES)


def unseal_instance_key(masters: MasterKeys, sealed: str) -> bytes:
    plain = masters.open(base64.b64decode(sealed), purpose=INSTANCE_KEY)
    if plain[KEY_BYTES:] not in (b"", HEAD_MARK):
        raise Tampered(f"{INSTANCE_KEY}: unknown format")
    return plain


async def refuse_wrong_master_key(storage: Storage, masters: MasterKeys) -> None:
    """Raise WrongMasterKey when a key in use is not configured; follow the installation's choice otherwise."""
    kept = await storage.installation.value(INSTANCE_KEY)
    if kept is None:
        return
    named = (await storage.installation.value(MASTER_KEYS) or "").split()
    in_use = dict.fromkeys([*named, sealing_key_id(base64.b64decode(kept))])
    masters.follow(" ".join(in_use))
    if masters.missing:
        raise WrongMasterKey(
            f"the database is encrypted with master key {' and '.join(in_use)}, but security.master_key is "
            f"{masters.primary_id}: configure the right key there or in security.previous_master_keys"
        )
    unseal_instance_key(masters, kept)


async def ensure_instance_key(storage: Storage, masters: MasterKeys, clock: Clock) -> bytes:
    """Return the key; the first caller creates it, together with the head of the audit log."""
    kept = await storage.installation.value(INSTANCE_KEY)
    if kept is None:
        await refuse_missing_key(storage)
        await create_audit_head(storage, masters, clock, None, secrets.token_bytes(KEY_BYTES))
    elif not has_head(masters, kept):
        await create_audit_head(storage, masters, clock, kept, open_instance_key(masters, kept))
    kept = await storage.installation.value(INSTANCE_KEY) or ""
    if not await storage.nodes.master_keys_in_use():
        await storage.installation.set_value_once(MASTER_KEYS, sealing_key_id(base64.b64decode(kept)))
    masters.follow(await storage.nodes.master_keys_in_use())
    return open_instance_key(masters, kept)


async def refuse_missing_key(storage: Storage) -> None:
    """Refuse a database with signing keys but without an instance key.

    The instance key is made first, so it was deleted. A new one would restart the audit log as if nothing had
    happened before.
    """
    if (await storage.keys.load_keys()).keys and await storage.installation.value(INSTANCE_KEY) is None:
        raise InstanceKeyMissing(f"{INSTANCE_KEY} is missing from the database: restore a backup")


async def create_audit_head(
    storage: Storage, masters: MasterKeys, clock: Clock, previous: str | None, key: bytes
) -> None:
    """Mark the key, and make the head from the newest seal there is; of two concurrent callers one succeeds."""
    end = await storage.audit.chain_end()
    place, link = (end.seal.place, end.seal.link) if end.seal else (0, GENESIS)
    head = ChainHead(place=place, link=link, at=clock.now(), begins=end.first_place or place + 1, unlinked=place)
    sealed = base64.b64encode(masters.seal(key + HEAD_MARK, purpose=INSTANCE_KEY)).decode()
    await storage.audit.create_head((INSTANCE_KEY, previous, sealed), HeadCodec(masters).encode(head))
