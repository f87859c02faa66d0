"""Lists the deliveries of a webhook (admin/model/webhooks.py)."""

from dataclasses import fields
from typing import Final

from sqlalchemy import Text, bindparam, func, or_, select

from gatehouse.admin.model.paging import Page, Wanted
from gatehouse.admin.model.webhooks import DeliveryLine
from gatehouse.storage.admin.searching import Listing, found_in
from gatehouse.storage.runner import Stored, survey
from gatehouse.storage.statements import Row, Verb
from gatehouse.storage.tables.webhooks import webhook_deliveries
from gatehouse.storage.webhooks import NEWEST_FIRST

_STATE: Final = bindparam("state", type_=Text())
_WHERE: Final = (
    webhook_deliveries.c.webhook_id == bindparam("of", type_=Text()),
    or_(_STATE == "", webhook_deliveries.c.state == _STATE),
    found_in(webhook_deliveries.c.event),
)
LINES = Listing(
    select(*(webhook_deliveries.c[field.name] for field in fields(DeliveryLine)))
    .where(*_WHERE)
    .order_by(*NEWEST_FIRST),
    counted=select(func.count().label("total")).select_from(webhook_deliveries).where(*_WHERE),
)


def listed(webhook_id: str, wanted: Wanted, state: str) -> Verb[Page[DeliveryLine]]:
    return LINES.page(wanted, _line, of=webhook_id, state=state)


def _line(row: Row) -> DeliveryLine:
    return DeliveryLine(**row._asdict())


class DeliveryListStorage(Stored):
    deliveries = survey(listed)
