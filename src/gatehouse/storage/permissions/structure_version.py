"""The version of all projects with their applications and groups: what memory keeps of them is kept under it (R5)."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Integer, func, literal_column, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.projects import permission_clock

LOCK: Final[ColumnElement[int]] = literal_column(str(0x7374_7275), Integer)  # any constant of our own


class Held(FunctionElement[int]):
    """A lock of the transaction. SQLite needs none: whoever writes there is alone.

    PostgreSQL queues advisory locks; at a row each newcomer who shares would pass whoever waits to be alone.
    """

    inherit_cache = True
    type = Integer()


@compiles(Held, "postgresql")
def _on_postgres(element: Held, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ANN401
    return compiler.process(element.clauses, **kw)


@compiles(Held, "sqlite")
def _on_sqlite(_element: Held, _compiler: SQLCompiler, **_kw: Any) -> str:  # noqa: ANN401
    return "1"


VERSION = func.coalesce(select(permission_clock.c.structure).where(permission_clock.c.only == 1).scalar_subquery(), 0)
START = Statement(upsert(permission_clock).values(only=1, structure=0).on_conflict_do_nothing())
READ = Statement(select(VERSION.label("structure")))
HOLD = Statement(select(Held(func.pg_advisory_xact_lock_shared(LOCK)).label("held")))
HOLD_ALONE = Statement(select(Held(func.pg_advisory_xact_lock(LOCK)).label("held")))
TICK = Statement(
    upsert(permission_clock)
    .values(only=1, structure=1)
    .on_conflict_do_update(index_elements=["only"], set_={"structure": permission_clock.c.structure + 1})
)


def hold_structure() -> Verb[None]:
    """First in every verb that gives somebody something: what a project has it still has when that is given.

    Before any row is held, here and in the two below, so that nobody who has rows waits for it.
    """
    yield HOLD()


def hold_structure_alone() -> Verb[None]:
    """First in every verb that may come to change it, by an application that moves or a role that ends."""
    yield HOLD_ALONE()


def change_structure() -> Verb[None]:
    """First in every verb that changes a project or a group.

    It is held until the commit, so such verbs run one after the other: what they look up before they write
    (is the title free, how many projects has he) is still so when they have written.
    """
    yield from hold_structure_alone()
    yield TICK()


def version() -> Verb[int]:
    rows = yield READ()
    return int(rows[0].structure)
