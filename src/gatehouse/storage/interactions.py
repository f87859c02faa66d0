"""Keeps sign-ins under way (interaction/store.py)."""

from dataclasses import replace
from functools import partial

from sqlalchemy import bindparam, delete, insert, select, update

from gatehouse.audit.model import Record
from gatehouse.interaction.errors import InteractionMoved
from gatehouse.interaction.model import Interaction, Step
from gatehouse.storage.audit import record
from gatehouse.storage.rows import columns_of
from gatehouse.storage.runner import Stored, brief_act, look
from gatehouse.storage.statements import Row, Statement, Verb
from gatehouse.storage.tables.accounts import interactions

_THIS = interactions.c.digest == bindparam("of")
_LIVE = interactions.c.ends_at > bindparam("now")

BEGIN = Statement(insert(interactions))
FIND = Statement(select(interactions).where(_THIS, _LIVE))
MOVE = Statement(
    update(interactions)
    .where(_THIS, interactions.c.version == bindparam("seen"))
    .values(
        {name: bindparam(name) for name in ("step", "user_id", "auth", "failures", "ask")}
        | {"version": interactions.c.version + 1}
    )
    .returning(interactions.c.version)
)
FINISH = Statement(delete(interactions).where(_THIS, _LIVE).returning(*interactions.c))


def begin(interaction: Interaction) -> Verb[None]:
    yield BEGIN(**columns_of(interaction))


def find(digest: bytes, now: int) -> Verb[Interaction | None]:
    rows = yield FIND(of=digest, now=now)
    return _interaction(rows[0]) if rows else None


def move(interaction: Interaction) -> Verb[Interaction]:
    moved = yield MOVE(
        of=interaction.digest,
        seen=interaction.version,
        step=interaction.step,
        user_id=interaction.user_id,
        auth=interaction.auth,
        failures=interaction.failures,
        ask=interaction.ask,
    )
    if not moved:
        raise InteractionMoved
    return replace(interaction, version=moved[0].version)


def finish(digest: bytes, now: int, entry: Record | None = None) -> Verb[Interaction | None]:
    rows = yield FINISH(of=digest, now=now)
    if rows and entry is not None:
        yield from record(entry)
    return _interaction(rows[0]) if rows else None


class InteractionStorage(Stored):
    begin = brief_act(begin)
    find = look(find)
    move = brief_act(move, at_once=move)

    async def finish(self, digest: bytes, now: int, entry: Record | None = None) -> Interaction | None:
        verb = partial(finish, digest, now, entry)
        return await self.runner.act(verb, brief=True, at_once=verb if entry is None else None)


def _interaction(row: Row) -> Interaction:
    return Interaction(**{**row._asdict(), "step": Step(row.step)})
