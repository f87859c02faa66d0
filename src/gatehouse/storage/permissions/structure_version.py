"""The version of all projects with their applications and groups: what memory keeps of them is kept under it (R5)."""

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.projects import permission_clock

VERSION = func.coalesce(select(permission_clock.c.structure).where(permission_clock.c.only == 1).scalar_subquery(), 0)
START = Statement(insert(permission_clock).values(only=1, structure=0).on_conflict_do_nothing())
READ = Statement(select(VERSION.label("structure")))
_ROW = select(permission_clock.c.structure).where(permission_clock.c.only == 1)
HOLD = Statement(_ROW.with_for_update(read=True))
HOLD_ALONE = Statement(_ROW.with_for_update())
TICK = Statement(
    insert(permission_clock)
    .values(only=1, structure=1)
    .on_conflict_do_update(index_elements=["only"], set_={"structure": permission_clock.c.structure + 1})
)


def change_structure() -> Verb[None]:
    """First in every verb that changes a project or a group.

    The row is held until the commit, so such verbs run one after the other: what they look up before they write
    (is the title free, how many projects has he) is still so when they have written.
    """
    yield TICK()


def hold_structure_alone() -> Verb[None]:
    """First in every verb that may come to change it, by an application that moves or a role that ends."""
    yield HOLD_ALONE()


def hold_structure() -> Verb[None]:
    """First in every verb that gives somebody something: what a project has it still has when that is given.

    The row is the first that any verb holds, so that nobody who has others waits for it.
    """
    yield HOLD()


def version() -> Verb[int]:
    rows = yield READ()
    return int(rows[0].structure)
