"""Contract tests of keys/model.py."""

import asyncio

from msgspec.structs import replace

from gatehouse.audit.events import AuditEvent
from gatehouse.keys.model import KeysChanged
from gatehouse.storage.database import Storage
from tests.support.builders import NOW, a_record
from tests.support.keys import first_keys


async def test_only_one_of_many_nodes_saves_keys_from_the_same_version(storage: Storage) -> None:
    keys = first_keys()
    await storage.keys.save_keys(keys, seen=0, entry=a_record(AuditEvent.KEY_MADE))
    version = (await storage.keys.load_keys()).version
    ended = [replace(keys[0], signs_until=NOW + n) for n in range(1, 6)]
    saves = [storage.keys.save_keys([key], seen=version, entry=a_record(AuditEvent.KEY_ROTATED)) for key in ended]
    outcomes = await asyncio.gather(*saves, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == [KeysChanged.__name__] * 4 + ["NoneType"]
    stored_keys = await storage.keys.load_keys()
    assert stored_keys.version == version + 1
    assert next(key for key in stored_keys.keys if key.kid == keys[0].kid) == ended[outcomes.index(None)]
    assert [record.event for record in await storage.audit.unsealed_records(10)].count(AuditEvent.KEY_ROTATED) == 1
