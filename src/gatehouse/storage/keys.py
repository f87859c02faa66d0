"""Keeps signing keys (keys/store.py)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from sqlalchemy import BigInteger, bindparam, cast, func, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.audit.model import Record
from gatehouse.keys.errors import KeysChanged
from gatehouse.keys.model import Algorithm, Purpose, SigningKey
from gatehouse.keys.store import StoredKeys
from gatehouse.storage.audit import record
from gatehouse.storage.installation import fact, state_once
from gatehouse.storage.runner import Stored, act, recall, survey
from gatehouse.storage.statements import Notice, Row, Statement, Verb
from gatehouse.storage.tables.installation import installation
from gatehouse.storage.tables.keys import signing_keys

CHANNEL: Final = "keys"
VERSION: Final = "keys_version"

_STORED_VERSION = select(cast(installation.c.value, BigInteger)).where(installation.c.name == VERSION)
# A column of every statement that brings the facts about a token along: which keys it is to be judged by.
KEYS_VERSION: Final = func.coalesce(_STORED_VERSION.scalar_subquery(), 0).label(VERSION)
READ_VERSION = Statement(select(KEYS_VERSION))
KEYS = Statement(select(signing_keys).order_by(signing_keys.c.created_at, signing_keys.c.kid))
INSERT_KEY = Statement(insert(signing_keys))
KNOWN = Statement(select(signing_keys.c.kid))
CHANGE_KEY = Statement(
    update(signing_keys)
    .where(signing_keys.c.kid == bindparam("of"))
    .values({name: bindparam(name) for name in ("sealed_private", "signs_from", "signs_until", "verifies_until")})
)
NEXT_VERSION = Statement(
    update(installation)
    .where(installation.c.name == VERSION, installation.c.value == bindparam("seen"))
    .values(value=bindparam("next"))
    .returning(installation.c.value)
)


def load() -> Verb[StoredKeys]:
    version = yield from fact(VERSION)
    rows = yield KEYS()
    return StoredKeys(version=int(version or 0), keys=tuple(_key(row) for row in rows))


def version() -> Verb[int]:
    rows = yield READ_VERSION()
    return int(rows[0].keys_version)


def save(keys: Sequence[SigningKey], *, seen: int, entry: Record) -> Verb[None]:
    yield from state_once(VERSION, "0")
    if not (yield NEXT_VERSION(seen=str(seen), next=str(seen + 1))):
        raise KeysChanged
    known = {row.kid for row in (yield KNOWN())}
    # Changed ones first: the old key's end must be set before its successor, which has none, comes in.
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
    yield from record(entry)
    yield Notice(CHANNEL, str(seen + 1))


class KeyStorage(Stored):
    load = survey(load)
    version = recall(version)
    save = act(save)


def _key(row: Row) -> SigningKey:
    return SigningKey(**{**row._asdict(), "alg": Algorithm(row.alg), "purpose": Purpose(row.purpose)})
