"""A standby that became primary may have missed the last revocations: then everything issued before ends (R3).

Links and whatever else can be taken once are spent, for it may have been taken already; so does a restore.

PostgreSQL starts a new timeline at every promotion, and at every point-in-time restore.
"""

from typing import Final

from sqlalchemy import bindparam, case, update

from gatehouse.audit.model import Record
from gatehouse.storage.audit import record
from gatehouse.storage.installation import EPOCH, fact, state, state_once
from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.accounts import users
from gatehouse.storage.tables.installation import installation, once

TIMELINE: Final = "timeline"
PATIENCE: Final = (
    3_600.0  # seconds for every row of a large table: 100,000 take some, on a busy machine more than ten
)
MILLISECONDS: Final = 1_000

TAKE_OVER = Statement(
    update(installation)
    .where(installation.c.name == TIMELINE, installation.c.value == bindparam("seen"))
    .values(value=bindparam("now"))
    .returning(installation.c.value)
)
RAISE_ALL = Statement(
    update(users).values(rev=case((users.c.rev >= bindparam("epoch"), users.c.rev + 1), else_=bindparam("epoch"))),
    patience=PATIENCE,
)
SPEND_ALL = Statement(update(once).where(once.c.taken_at == 0).values(taken_at=bindparam("now")), patience=PATIENCE)


def note_timeline(timeline: str, *, lossless: bool, epoch: int, entry: Record) -> Verb[bool]:
    """Compare with the timeline last seen; on another one end every token, unless nothing can have been lost.

    Of all nodes that notice exactly one acts; True for that one.
    """
    seen = yield from fact(TIMELINE)
    if seen is None:
        yield from state_once(TIMELINE, timeline)
        return False
    if seen == timeline or not (yield TAKE_OVER(seen=seen, now=timeline)) or lossless:
        return False
    yield RAISE_ALL(epoch=epoch)
    yield SPEND_ALL(now=epoch // MILLISECONDS)
    yield from state(EPOCH, str(epoch))
    yield from record(entry)
    return True
