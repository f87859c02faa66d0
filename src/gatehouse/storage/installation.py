"""Facts about this installation: one row per name."""

from typing import Final

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.storage.runner import SqlStore, read, write
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import passkeys
from gatehouse.storage.tables.installation import installation

MASTER_KEYS: Final = "master_keys"  # the ids of the master keys in use, the one to seal with first (app/nodes.py)
BASE_URL: Final = "base_url"  # of the last process that served
PASSKEY_HOST: Final = "passkey_host"  # what the passkeys belong to; counts while there are any

_UPSERT = insert(installation)

READ_VALUE = Statement(lambda: select(installation.c.value).where(installation.c.name == bindparam("name")))
SET_VALUE_ONCE = Statement(lambda: _UPSERT.on_conflict_do_nothing().returning(installation.c.name))
SET_VALUE = Statement(
    lambda: _UPSERT.on_conflict_do_update(index_elements=["name"], set_={"value": _UPSERT.excluded.value})
)

REPLACE_VALUE = Statement(
    lambda: (
        update(installation)
        .where(installation.c.name == bindparam("of"), installation.c.value == bindparam("before"))
        .values(value=bindparam("after"))
        .returning(installation.c.name)
    )
)


ANY_PASSKEY = Statement(lambda: select(passkeys.c.credential_id).limit(1))  # every command asks: it imports little


def read_value(name: str) -> Verb[str | None]:
    rows = yield READ_VALUE(name=name)
    return rows[0].value if rows else None


def set_value_once(name: str, value: str) -> Verb[bool]:
    """Store the fact unless there is one; True only for the first caller."""
    rows = yield SET_VALUE_ONCE(name=name, value=value)
    return bool(rows)


def set_value(name: str, value: str) -> Verb[None]:
    yield SET_VALUE(name=name, value=value)


def replace_value(name: str, before: str, after: str) -> Verb[bool]:
    """Replace the fact if it still has the value that was read; True only for the first caller."""
    return bool((yield REPLACE_VALUE(of=name, before=before, after=after)))


def are_there_passkeys() -> Verb[bool]:
    return bool((yield ANY_PASSKEY()))


class InstallationStorage(SqlStore):
    value = read(read_value)
    are_there_passkeys = read(are_there_passkeys)
    set_value_once = write(set_value_once)
    set_value = write(set_value)
