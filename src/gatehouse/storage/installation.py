"""Facts about this installation: one row a name."""

from typing import Final

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from gatehouse.storage.runner import Stored, act, look
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.installation import installation

EPOCH: Final = "epoch"  # Unix milliseconds of the last restore: every token issued before is refused (R3)

_put = insert(installation)

FACT = Statement(select(installation.c.value).where(installation.c.name == bindparam("name")))
STATE_ONCE = Statement(_put.on_conflict_do_nothing().returning(installation.c.name))
STATE = Statement(_put.on_conflict_do_update(index_elements=["name"], set_={"value": _put.excluded.value}))

REPLACE = Statement(
    update(installation)
    .where(installation.c.name == bindparam("of"), installation.c.value == bindparam("before"))
    .values(value=bindparam("after"))
    .returning(installation.c.name)
)


def fact(name: str) -> Verb[str | None]:
    rows = yield FACT(name=name)
    return rows[0].value if rows else None


def state_once(name: str, value: str) -> Verb[bool]:
    """Keep the fact unless it is known; True for the one caller who was first."""
    rows = yield STATE_ONCE(name=name, value=value)
    return bool(rows)


def state(name: str, value: str) -> Verb[None]:
    yield STATE(name=name, value=value)


def replace(name: str, before: str, after: str) -> Verb[bool]:
    """Keep the fact if it still is what was read; True for the one caller who was first."""
    return bool((yield REPLACE(of=name, before=before, after=after)))


def epoch() -> Verb[int]:
    """When everything issued before was revoked; 0 for never."""
    return int((yield from fact(EPOCH)) or 0)


class InstallationStorage(Stored):
    fact = look(fact)
    epoch = look(epoch)
    state_once = act(state_once)
    state = act(state)
