"""Stores signing keys (keys/model.py)."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import asdict
from sqlalchemy import BigInteger, bindparam, cast, func, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import AuditRecord
from gatehouse.keys.model import KeyPurpose, KeysChanged, SigningKey, StoredKeys, key_algorithm
from gatehouse.storage.audit import add_audit_record
from gatehouse.storage.installation import read_value, set_value_once
from gatehouse.storage.runner import SqlStore, cached_read, snapshot_read, write
from gatehouse.storage.statements import Notification, Row, Statement, Verb
from gatehouse.storage.tables.installation import installation, signing_keys

CHANNEL: Final = "keys"
VERSION_NAME: Final = "keys_version"

_STORED_VERSION = select(cast(installation.c.value, BigInteger)).where(installation.c.name == VERSION_NAME)
# The version of the key set, a column of every statement that loads the facts about a token.
KEYS_VERSION: Final = func.coalesce(_STORED_VERSION.scalar_subquery(), 0).label(VERSION_NAME)
READ_KEYS_VERSION = Statement(lambda: select(KEYS_VERSION))
ALL_KEYS = Statement(lambda: select(signing_keys).order_by(signing_keys.c.created_at, signing_keys.c.kid))
INSERT_KEY = Statement(lambda: insert(signing_keys))
KNOWN_KIDS = Statement(lambda: select(signing_keys.c.kid))
CHANGE_KEY = Statement(
    lambda: (
        update(signing_keys)
        .where(signing_keys.c.kid == bindparam("of"))
        .values({name: bindparam(name) for name in ("sealed_private", "signs_from", "signs_until", "verifies_until")})
    )
)
BUMP_KEYS_VERSION = Statement(
    lambda: (
        update(installation)
        .where(installation.c.name == VERSION_NAME, installation.c.value == bindparam("seen"))
        .values(value=bindparam("next"))
        .returning(installation.c.value)
    )
)


def load_keys() -> Verb[StoredKeys]:
    version = yield from read_value(VERSION_NAME)
    rows = yield ALL_KEYS()
    return StoredKeys(version=int(version or 0), keys=tuple(_key_from_row(row) for row in rows))


def read_keys_version() -> Verb[int]:
    rows = yield READ_KEYS_VERSION()
    return int(rows[0].keys_version)


def save_keys(keys: Sequence[SigningKey], *, seen: int, entry: AuditRecord) -> Verb[None]:
    yield from set_value_once(VERSION_NAME, "0")
    if not (yield BUMP_KEYS_VERSION(seen=str(seen), next=str(seen + 1))):
        raise KeysChanged
    known = {row.kid for row in (yield KNOWN_KIDS())}
    # Changed keys first: the old key's end must be set before its successor, which has none, is inserted.
    for key in sorted(keys, key=lambda key: key.kid not in known):
        if key.kid in known:
            yield CHANGE_KEY(
                of=key.kid,
                sealed_private=key.sealed_private,
                signs_from=key.signs_from,
                signs_until=key.signs_until,
                verifies_until=key.verifies_until,
            )
        else:
            yield INSERT_KEY(**asdict(key))
    yield from add_audit_record(entry)
    yield Notification(CHANNEL, str(seen + 1))


class KeyStorage(SqlStore):
    load_keys = snapshot_read(load_keys)
    keys_version = cached_read(read_keys_version)
    save_keys = write(save_keys)


def _key_from_row(row: Row) -> SigningKey:
    return SigningKey(**{**row._asdict(), "alg": key_algorithm(row.alg), "purpose": KeyPurpose(row.purpose)})
