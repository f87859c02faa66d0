"""The version of all projects with their applications and groups: what memory keeps of them is kept under it (R5)."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Integer, func, literal_column, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from gatehouse.storage.statements import Statement, Verb
from gatehouse.storage.tables.projects import permission_clock

ADVISORY_LOCK_ID: Final[ColumnElement[int]] = literal_column(str(0x7374_7275), Integer)  # any constant of our own


class AdvisoryLock(FunctionElement[int]):
    """A lock of the transaction. SQLite needs none: whoever writes there is alone.

    PostgreSQL queues advisory locks; at a row each newcomer who shares would pass whoever waits to be alone.
    """

    inherit_cache = True
    type = Integer()


@compiles(AdvisoryLock, "postgresql")
def _lock_on_postgres(element: AdvisoryLock, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ANN401
    return compiler.process(element.clauses, **kw)


@compiles(AdvisoryLock, "sqlite")
def _lock_on_sqlite(_element: AdvisoryLock, _compiler: SQLCompiler, **_kw: Any) -> str:  # noqa: ANN401
    return "1"


STRUCTURE_VERSION = func.coalesce(
    select(permission_clock.c.structure).where(permission_clock.c.only == 1).scalar_subquery(), 0
)
INSERT_VERSION_ROW = Statement(upsert(permission_clock).values(only=1, structure=0).on_conflict_do_nothing())
READ_STRUCTURE_VERSION = Statement(select(STRUCTURE_VERSION.label("structure")))
LOCK_STRUCTURE_SHARED = Statement(
    select(AdvisoryLock(func.pg_advisory_xact_lock_shared(ADVISORY_LOCK_ID)).label("held"))
)
LOCK_STRUCTURE = Statement(select(AdvisoryLock(func.pg_advisory_xact_lock(ADVISORY_LOCK_ID)).label("held")))
BUMP_STRUCTURE_VERSION = Statement(
    upsert(permission_clock)
    .values(only=1, structure=1)
    .on_conflict_do_update(index_elements=["only"], set_={"structure": permission_clock.c.structure + 1})
)


def lock_structure_shared() -> Verb[None]:
    """First in every verb that gives somebody something: what a project has it still has when that is given.

    Before any row is held, here and in the two below, so that nobody who has rows waits for it.
    """
    yield LOCK_STRUCTURE_SHARED()


def lock_structure() -> Verb[None]:
    """First in every verb that may come to change it, by an application that moves or a role that ends."""
    yield LOCK_STRUCTURE()


def begin_structure_change() -> Verb[None]:
    """First in every verb that changes a project or a group.

    It is held until the commit, so such verbs run one after the other: what they look up before they write
    (is the title free, how many projects has he) is still so when they have written.
    """
    yield from lock_structure()
    yield BUMP_STRUCTURE_VERSION()


def read_structure_version() -> Verb[int]:
    rows = yield READ_STRUCTURE_VERSION()
    return int(rows[0].structure)
