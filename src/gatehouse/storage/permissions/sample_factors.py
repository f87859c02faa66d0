"""Which applications accept the sample factor, and whose players sent it (accounts/sample_factor.py)."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from gatehouse.storage.runner import SqlStore, read, snapshot_read, write
from gatehouse.storage.statements import InNumberList, Statement, Verb
from gatehouse.storage.tables.installation import installation
from gatehouse.storage.tables.permissions import applications

FACT: Final = "sample_factor:"  # before the ID of the application; the value is the time of the last one
RECENT: Final = 30 * 86_400  # seconds after which an application is not named any more
MAX_NAMED: Final = 10

_UPSERT = insert(installation)
REFUSING = Statement(
    lambda: select(applications.c.application_id).where(
        InNumberList(applications.c.application_id, "among"), applications.c.accepts_sample_factor.is_(False)
    )
)
RECORD = Statement(
    lambda: _UPSERT.on_conflict_do_update(index_elements=["name"], set_={"value": _UPSERT.excluded.value})
)
RECORDED = Statement(
    lambda: select(installation.c.name, installation.c.value).where(installation.c.name.like("sample_factor:%"))
)
NAMES = Statement(
    lambda: (
        select(applications.c.name)
        .where(InNumberList(applications.c.application_id, "among"), applications.c.removed.is_(False))
        .order_by(applications.c.application_id)
        .limit(bindparam("most"))
    )
)


def refusing_applications(application_ids: Sequence[int]) -> Verb[Sequence[int]]:
    return [row.application_id for row in (yield REFUSING(among=sorted(application_ids)))]


def record_sample_factor(application_id: int, now: int) -> Verb[None]:
    yield RECORD(name=f"{FACT}{application_id}", value=str(now))


def sample_factor_applications(now: int) -> Verb[Sequence[str]]:
    """Return the names of applications whose players sent the sample factor lately."""
    recorded = yield RECORDED()
    recent = [int(row.name.removeprefix(FACT)) for row in recorded if now - int(row.value) < RECENT]
    return [row.name for row in (yield NAMES(among=sorted(recent), most=MAX_NAMED))] if recent else []


class SampleFactorStorage(SqlStore):
    refusing_applications = read(refusing_applications)
    record_sample_factor = write(record_sample_factor)
    applications = snapshot_read(sample_factor_applications)
